"""`config set` changes one value and nothing else."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from bailiwick.config.editing import check_bytes, set_value
from bailiwick.config.keys import find_key
from bailiwick.config.shapes import as_value
from bailiwick.errors import InputInvalid, NotFound, NotReady, UsageError
from bailiwick.lang.fields import Findings

FILE = """\
# my settings
backend: claude   # the usual one

budget:
  # a careful week
  run:
    usd: 3    # dollars
  day: {usd: 9}   # all of it
night:
sandbox:
  allow:   # hosts
  - a.example
  - b.example
# the end
"""


@pytest.mark.parametrize(
    ("name", "text", "old", "new"),
    [
        ("backend", "codex", "backend: claude   #", "backend: codex   #"),
        ("budget.run.usd", "4.5", "usd: 3    #", "usd: 4.5    #"),
        ("budget.day.usd", "8", "{usd: 9}", "{usd: 8}"),
        ("budget.day.tokens", "7", "{usd: 9}", "{usd: 9, tokens: 7}"),
        ("budget.run.wall", "2h", "# dollars\n", "# dollars\n    wall: 2h\n"),
        ("budget.call.usd", "2", "# all of it\n", "# all of it\n  call:\n    usd: 2\n"),
        ("night.agents", "1", "night:\n", "night: {agents: 1}\n"),
        ("model", "yes", "  - b.example\n", '  - b.example\nmodel: "yes"\n'),
        ("sandbox.allow", "c.example", ":   # hosts\n  - a.example\n  - b.example", ": [c.example]"),
        ("power.claude.high", "opus", "  - b.example\n", "  - b.example\npower:\n  claude:\n    high: opus\n"),
    ],
)
def test_only_the_value_changes_and_comments_stay(tmp_path: Path, name: str, text: str, old: str, new: str) -> None:
    """The file is the person's own writing; a tool that reformats it is not used twice."""
    file = tmp_path / "config.yaml"
    file.write_text(FILE)
    assert FILE.count(old) == 1
    set_value(file, name, text, tmp_path)
    assert file.read_text() == FILE.replace(old, new)


def test_a_file_is_made_private_where_there_is_none(tmp_path: Path) -> None:
    """The first `config set` of a new person."""
    file = tmp_path / "new" / "config.yaml"
    set_value(file, "budget.run.usd", "4", tmp_path)
    assert file.read_text() == "budget:\n  run:\n    usd: 4\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [path.name for path in file.parent.iterdir()] == ["config.yaml"]


@pytest.mark.parametrize("text", ["# only words", "a last line without an end: no\n", "backend: claude"])
def test_an_unusual_file_is_handled_or_left_alone(tmp_path: Path, text: str) -> None:
    """No newline at the end, nothing but comments, an unknown key: the result is valid, or the file is as before."""
    file = tmp_path / "config.yaml"
    file.write_text(text)
    try:
        set_value(file, "model", "opus", tmp_path)
    except InputInvalid:
        assert file.read_text() == text
    else:
        assert check_bytes(file.read_bytes(), file).settings["model"].value == "opus"
        assert file.read_text().startswith(text)


@pytest.mark.parametrize(("name", "text"), [("budget.run.usd", "much"), ("publish.mode", "always")])
def test_a_value_that_does_not_fit_is_refused_before_anything_is_written(tmp_path: Path, name: str, text: str) -> None:
    """Bad input: exit 2, nothing half-written."""
    file = tmp_path / "config.yaml"
    with pytest.raises(InputInvalid):
        set_value(file, name, text, tmp_path)
    assert not file.exists()


def test_a_key_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    """With the nearest name, as everywhere."""
    with pytest.raises(NotFound) as caught:
        set_value(tmp_path / "config.yaml", "budget.run.usb", "1", tmp_path)
    assert "'budget.run.usd'" in caught.value.hint


def test_an_intricate_file_is_left_to_the_person(tmp_path: Path) -> None:
    """An anchor that something else uses can't be changed in passing."""
    text = "model: &m opus\nbase: *m\n"
    file = tmp_path / "config.yaml"
    file.write_text(text)
    with pytest.raises(UsageError) as caught:
        set_value(file, "model", "sonnet", tmp_path)
    assert caught.value.code == "BW216"
    with pytest.raises(UsageError):
        set_value(file, "base", "main", tmp_path)
    assert file.read_text() == text


@pytest.mark.parametrize(
    "text", ["0o17", "1e3", "12:30", "null", "a: b", "x # y", "'", '"', "é\u2028", "- a", "{{ x }}", "  "]
)
def test_a_text_that_yaml_would_misread_is_written_so_that_it_is_not(tmp_path: Path, text: str) -> None:
    """What is read back is what was given, whatever it looks like; and a text of spaces is no model."""
    file = tmp_path / "config.yaml"
    key = find_key("model")
    assert key is not None
    found = Findings()
    key.shape.read(as_value(text, "model"), found)
    if found.failed:
        with pytest.raises(InputInvalid):
            set_value(file, "model", text, tmp_path)
    else:
        set_value(file, "model", text, tmp_path)
        assert check_bytes(file.read_bytes(), file).settings["model"].value == text


def test_a_relative_path_is_taken_from_where_the_command_was_given(tmp_path: Path) -> None:
    """In the file it would mean another directory."""
    file = tmp_path / "config" / "config.yaml"
    set_value(file, "runs_dir", "here", tmp_path)
    assert check_bytes(file.read_bytes(), file).settings["runs_dir"].value == str(tmp_path / "here")


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    """Dotfiles are often links into a repository of their own."""
    real = tmp_path / "dotfiles.yaml"
    real.write_text("backend: claude\n")
    real.chmod(0o640)
    link = tmp_path / "config.yaml"
    link.symlink_to(real)
    set_value(link, "backend", "codex", tmp_path)
    assert link.is_symlink()
    assert (real.read_text(), stat.S_IMODE(real.stat().st_mode)) == ("backend: codex\n", 0o640)


def test_a_directory_that_can_not_be_made_is_explained(tmp_path: Path) -> None:
    """Exit 8 with the path, not a traceback."""
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(NotReady) as caught:
        set_value(tmp_path / "file" / "config.yaml", "backend", "codex", tmp_path)
    assert caught.value.code == "BW215"


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("commit.sign", "true", "commit:\n  author: >-\n    Ann\n    <a@b.c>\n  sign: true\n\n# next\nmodel: opus\n"),
        ("commit.author", "B <b@b.c>", 'commit:\n  author: "B <b@b.c>"\n\n# next\nmodel: opus\n'),
    ],
)
def test_a_text_over_several_lines_is_not_cut_in_two(tmp_path: Path, name: str, text: str, expected: str) -> None:
    """A folded text ends where its words end, not at the comment behind it."""
    file = tmp_path / "config.yaml"
    file.write_text("commit:\n  author: >-\n    Ann\n    <a@b.c>\n\n# next\nmodel: opus\n")
    set_value(file, name, text, tmp_path)
    assert file.read_text() == expected
