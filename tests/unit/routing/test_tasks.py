"""What a tier is told: nothing more than the task where there is nothing more, files within bounds, all feedback."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bailiwick.routing.tasks import (
    ALL_BYTES,
    FILE_BYTES,
    MOST_NAMED,
    Shown,
    boundary_for,
    discipline_for,
    draw,
    read_files,
    task_for,
)
from tests.unit.routing.stand_ins import job


def one(folder: Path, name: str, data: bytes | str = b"") -> Path:
    """Write a file."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


def test_a_task_without_files_and_feedback_stays_as_it_is() -> None:
    """Callers rely on the text that they gave, down to its last character."""
    assert task_for(job(task="phase: red\nspec: {{ x }}\n"), ()) == "phase: red\nspec: {{ x }}\n"


def test_feedback_adds_up_in_order() -> None:
    """The third tier knows what was wrong with the first two outputs."""
    told = task_for(job(task="phase: review"), ("too vague", "no {{ line }}"))
    assert told == "phase: review\n\nPrior attempt feedback: too vague\n\nPrior attempt feedback: no {{ line }}"


def test_files_stand_in_marked_blocks() -> None:
    """A file that looks like a task is still only a file: its block ends where the mark is."""
    told = task_for(job(task="t"), (), [Shown("a.py", "x = 1"), Shown("b", note="binary", left_out=True)], lambda: "M")
    begin, end = told.index("[M begins: a.py]"), told.index("[M ends: a.py]")
    assert told[begin:end] == "[M begins: a.py]\nx = 1\n"
    assert told.endswith("Not shown: b (binary)")


def test_a_mark_that_occurs_is_drawn_again() -> None:
    """Also by chance no text may end its own block."""
    marks = iter(["M1", "M2", "M3"])
    assert boundary_for(["has M1", "and M2"], lambda: next(marks)) == "M3"
    assert len({draw() for _ in range(100)}) == 100


def test_the_contents_of_named_files_are_read(tmp_path: Path) -> None:
    """A model without tools sees no file that is not in its task."""
    one(tmp_path, "src/a.py", "x = 1\n")
    one(tmp_path, "b.py", "é")
    found = read_files(str(tmp_path), None, ["src/a.py", str(tmp_path / "b.py"), "src/a.py"])
    assert found == [Shown("src/a.py", "x = 1"), Shown("b.py", "é")]


def test_the_tree_of_the_attempt_is_read_not_the_project(tmp_path: Path) -> None:
    """Each attempt works on its own copy; the model has to see the same."""
    one(tmp_path, "project/a.py", "old")
    one(tmp_path, "tree/a.py", "copy")
    root = tmp_path / "project"
    assert read_files(str(root), tmp_path / "tree", [str(root / "a.py")]) == [Shown("a.py", "copy")]


def test_nothing_outside_the_project_is_read(tmp_path: Path) -> None:
    """Neither by a path that climbs, nor an absolute one, nor a link, nor a link to a folder."""
    one(tmp_path, "secret", "token")
    root = tmp_path / "p"
    root.mkdir()
    (root / "link").symlink_to(tmp_path / "secret")
    (root / "folder").symlink_to(tmp_path)
    names = ["../secret", str(tmp_path / "secret"), "link", "folder/secret", "/etc/passwd", "x/../../secret"]
    found = read_files(str(root), None, names)
    assert [shown.left_out for shown in found] == [True] * len(names)
    assert not any("token" in shown.text + shown.note for shown in found)


def test_a_link_within_the_project_is_followed(tmp_path: Path) -> None:
    """Repositories have them."""
    one(tmp_path, "real.py", "x")
    (tmp_path / "link.py").symlink_to("real.py")
    assert read_files(str(tmp_path), None, ["link.py"]) == [Shown("link.py", "x")]


def test_what_is_no_text_is_named_and_left_out(tmp_path: Path) -> None:
    """Also a pipe, which would be waited for without end."""
    one(tmp_path, "image.png", b"\x89PNG\0")
    one(tmp_path, "latin", b"caf\xe9")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "loop").symlink_to("loop")
    names = ["image.png", "latin", "pipe", "folder", "none", "loop", "a\0b", "n" * 5000]
    found = read_files(str(tmp_path), None, names)
    assert all(shown.left_out and shown.note for shown in found)
    assert found[0].note == "binary, 5 bytes"


def test_long_files_are_cut_with_a_note(tmp_path: Path) -> None:
    """Cut between characters, and said: a model must not take half a file for the whole."""
    one(tmp_path, "long", "x" + "é" * FILE_BYTES)
    (found,) = read_files(str(tmp_path), None, ["long"])
    assert len(found.text.encode()) == FILE_BYTES - 1
    assert found.note == f"cut: the first {FILE_BYTES:,} of {2 * FILE_BYTES + 1:,} bytes"


def test_all_files_together_have_a_bound(tmp_path: Path) -> None:
    """Five files that each fit alone don't fit together; the last is left out, and said to be."""
    names = [f"f{number}" for number in range(5)]
    for name in names:
        one(tmp_path, name, "x" * FILE_BYTES)
    found = read_files(str(tmp_path), None, names)
    assert sum(len(shown.text) for shown in found) == ALL_BYTES
    assert found[-1] == Shown("f4", note="no space is left in the task", left_out=True)


def test_too_many_names_are_counted(tmp_path: Path) -> None:
    """A list of a whole repository is a mistake that must not cost minutes."""
    found = read_files(str(tmp_path), None, [f"f{number}" for number in range(MOST_NAMED + 7)])
    assert (len(found), found[-1].name) == (MOST_NAMED + 1, "7 more")


def test_without_a_project_nothing_is_read() -> None:
    """A call without a root names no files of this machine."""
    assert read_files("", None, ["/etc/passwd"]) == []


@pytest.mark.parametrize("tier", ["local", "subagent"])
def test_the_discipline_comes_first_and_the_contract_after_it(tier: str) -> None:
    """The skill's own words are the law; how to answer is ours."""
    above = discipline_for(job(discipline="Iron law."), "local" if tier == "local" else "subagent")
    assert above.startswith("Iron law.\n\n---\nHow to answer.")
    assert '"status"' in above
    assert ("no tools" in above) is (tier == "local")
    assert "`file_path`" not in above


def test_who_may_write_is_told_how() -> None:
    """A local model gives whole files, an agent changes them itself."""
    assert "never a patch" in discipline_for(job(writes=True), "local")
    assert "Change the files" in discipline_for(job(writes=True), "subagent")
