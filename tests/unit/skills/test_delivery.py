"""Files come into a project whole, only over what was there when the call began, and never outside of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bailiwick.git.objects import FILE, LINK, NOTHING, SUBMODULE, TreeChange
from bailiwick.skills.delivery import FileDelivery, change_fault, deliver, path_fault, write_files


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/etc/passwd",
        "../x",
        "a/../../x",
        "a//b",
        "./a",
        "a/.",
        ".git/config",
        "sub/.GIT/hooks/x",
        "a\\b",
        "a\nb",
        ".bailiwick/gate.yaml",
        ".Bailiwick/skills/x/SKILL.md",
        "a" * 2000,
        "git~1/config",
        "x\x7f",
    ],
)
def test_a_path_that_leads_out_or_decides_is_refused(path: str) -> None:
    """Out of the project, into git, or into what decides over gates."""
    assert path_fault(path)


@pytest.mark.parametrize("path", ["a.py", "src/pkg/a b.py", "docs/Ünï.md", ".github/x.yml", "a/.bailiwick/x"])
def test_an_ordinary_path_is_taken(path: str) -> None:
    """Most paths are."""
    assert path_fault(path) == ""


@given(st.text(max_size=60))
def test_a_path_that_is_taken_never_leaves_the_project(path: str) -> None:
    """Always: joined to the root and normalised it is below the root."""
    import posixpath

    if not path_fault(path):
        assert posixpath.normpath(posixpath.join("/r", path)).startswith("/r/")
        assert posixpath.normpath(path) == path


@given(
    st.sampled_from("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c\u200b\u2028"),
    st.text(max_size=9),
)
def test_a_path_never_has_a_character_that_hides_what_it_is(sign: str, rest: str) -> None:
    """`gpj.exe` that reads `exe.jpg` is another file to a person than to a machine; the message names the sign."""
    assert path_fault(f"{rest}{sign}x")
    assert "U+202E" in path_fault("src/a\u202egpj.py")
    assert "\u202e" not in path_fault("src/a\u202egpj.py")


def test_links_and_submodules_are_no_changes_that_are_brought() -> None:
    """A link could lead anywhere."""
    assert change_fault([TreeChange("a", "A", NOTHING, LINK, 1, 0)])
    assert change_fault([TreeChange("a", "T", LINK, FILE, 1, 0)])
    assert change_fault([TreeChange("a", "A", NOTHING, SUBMODULE, 1, 0)])
    assert change_fault([TreeChange("a", "M", FILE, FILE, 1, 0), TreeChange("b", "D", FILE, NOTHING, 0, 1)]) == ""


def test_files_are_brought_changed_and_deleted(tmp_path: Path) -> None:
    """All three in one go; the mode of a file stays, and a program can be run."""
    (tmp_path / "old").write_text("1")
    (tmp_path / "gone").write_text("2")
    (tmp_path / "old").chmod(0o640)
    parcels = [
        FileDelivery("old", b"1", b"one"),
        FileDelivery("gone", b"2", None),
        FileDelivery("new/deep/file", None, b"x"),
        FileDelivery("tool", None, b"#!", program=True),
    ]
    assert deliver(tmp_path, parcels) == ""
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["deep", "file", "new", "old", "tool"]
    assert (tmp_path / "old").read_text() == "one"
    assert (tmp_path / "old").stat().st_mode & 0o777 == 0o640
    assert (tmp_path / "tool").stat().st_mode & 0o111


@pytest.mark.parametrize(("old", "there"), [(b"1", "changed by a person"), (None, "made by a person"), (b"1", None)])
def test_nothing_is_brought_over_somebodys_work(tmp_path: Path, old: bytes | None, there: str | None) -> None:
    """A file that changed, came or went meanwhile keeps all others from being brought too."""
    if there is not None:
        (tmp_path / "b").write_text(there)
    why = deliver(tmp_path, [FileDelivery("a", None, b"x"), FileDelivery("b", old, b"y")])
    assert "b was changed in the project" in why
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == ({} if there is None else {"b": there})


def test_no_link_on_the_way_is_followed(tmp_path: Path) -> None:
    """A folder that became a link while the call was at work."""
    outside, root = tmp_path / "outside", tmp_path / "root"
    outside.mkdir()
    root.mkdir()
    (root / "src").symlink_to(outside)
    (root / "file").symlink_to(outside / "target")
    assert deliver(root, [FileDelivery("src/a.py", None, b"x")])
    assert deliver(root, [FileDelivery("file", None, b"x")])
    assert write_files(root, [("src/a.py", b"x")])
    assert list(outside.iterdir()) == []


def test_a_link_in_a_copy_is_replaced_not_written_through(tmp_path: Path) -> None:
    """A project may hold a link that leads out; a model may write a file in its place in the copy."""
    (tmp_path / "secret").write_text("s")
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / "link").symlink_to(tmp_path / "secret")
    assert write_files(tmp_path / "copy", [("link", b"x")]) == ""
    assert (tmp_path / "secret").read_text() == "s"


def test_what_can_not_be_written_leaves_nothing_behind(tmp_path: Path) -> None:
    """The second file's folder is a file: the first is not brought either."""
    (tmp_path / "a").write_text("1")
    why = deliver(tmp_path, [FileDelivery("new", None, b"x"), FileDelivery("a/b", None, b"y")])
    assert why.startswith("nothing was written")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
