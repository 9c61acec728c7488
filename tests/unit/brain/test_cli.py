"""`bailiwick brain` as a person uses it: what is printed, and what an agent's process may not do."""

from __future__ import annotations

import io
import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from bailiwick.brain.service import scope_of
from bailiwick.cli.commands.brain import brain
from bailiwick.errors import NotFound, UsageError


@dataclass
class BrainUser:
    """Somebody in a repository."""

    repository: Path

    def runs(self, *args: str, stdin: str = "") -> tuple[int, str]:
        """Give a command; errors of ours are raised."""
        runner = CliRunner()
        with runner.isolation(io.BytesIO(stdin.encode())) as (out, _, _):
            code = brain.main(list(args), standalone_mode=False) or 0
            return code, out.getvalue().decode()

    def json(self, *args: str) -> Any:
        """The document that a command prints."""
        return json.loads(self.runs(*args, "--json")[1])


@pytest.fixture
def person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> BrainUser:
    """In a project without a remote, without a terminal."""
    monkeypatch.setenv("BAILIWICK_HOME", str(tmp_path / "home"))
    shop = tmp_path / "shop"
    shop.mkdir()
    subprocess.run(["git", "init", "-q"], cwd=shop, check=True)
    monkeypatch.chdir(shop)
    return BrainUser(shop)


def _id(told: Any) -> str:
    made: str = told["notes"][0]["id"]
    return made


def test_a_note_is_written_found_read_and_approved(person: BrainUser) -> None:
    """Each answer names the next step."""
    code, printed = person.runs("write", "--tag", "money", "Prices are", "rounded.")
    assert (code, "pending" in printed) == (0, True)
    name = printed.split()[0]
    assert f"brain approve {name}" in printed
    code, printed = person.runs("query", "rounding")
    assert (code, printed.splitlines()[0].split()[:2]) == (0, [name, "pending"])
    assert "Prices are rounded." in printed
    assert person.runs("approve", name[:6])[1].split()[:2] == [name, "approved"]
    assert "already" in person.runs("approve", name)[1]
    shown = person.runs("show", name)[1]
    for part in ("approved", "money", scope_of(person.repository), f"{name}-prices-are-rounded.md", "commit", "by "):
        assert part in shown


def test_programs_get_documents(person: BrainUser) -> None:
    """With provenance in each note."""
    name = _id(person.json("write", "--title", "T", "--type", "lesson", "text"))
    (found,) = person.json("query", "text")["notes"]
    assert (found["id"], found["type"], found["status"], found["title"]) == (name, "lesson", "pending", "T")
    assert len(found["commit"]) == 40
    assert found["path"].endswith(".md")
    assert person.json("list")["notes"] == [found]
    assert person.json("show", name) == found
    assert person.json("reindex")["notes"] == 1
    assert person.json("stale", name)["notes"][0]["status"] == "stale"
    assert person.json("list")["notes"] == []
    assert len(person.json("list", "--status", "stale")["notes"]) == 1


def test_standard_input_is_a_note(person: BrainUser) -> None:
    """A file piped in; --approve says that a person has read it."""
    _, printed = person.runs("write", "--approve", "-", stdin="# Releases\n\nOn Tuesdays.\n")
    assert printed.split()[1:3] == ["approved", "Releases"]
    with pytest.raises(UsageError, match="empty"):
        person.runs("write", "-", stdin="")


def test_other_projects_are_seen_only_by_name(
    person: BrainUser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The project is where the person stands; outside of one there are global notes."""
    person.runs("write", "rounding of the shop")
    person.runs("write", "--scope", "global", "rounding for all")
    monkeypatch.chdir(tmp_path)
    assert [note["text"] for note in person.json("query", "rounding")["notes"]] == ["rounding for all"]
    assert len(person.json("query", "rounding", "--all-scopes")["notes"]) == 2
    assert len(person.json("query", "rounding", "--scope", "shop")["notes"]) == 2
    with pytest.raises(NotFound) as error:
        person.runs("query", "rounding", "--scope", "nowhere")
    assert scope_of(person.repository) in error.value.hint


def test_what_belongs_to_a_run_decides_nothing(person: BrainUser, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may write, as an agent; which notes hold is a person's word."""
    name = _id(person.json("write", "a"))
    monkeypatch.setenv("BAILIWICK_RUN", "run-7")
    for args in (("approve", name), ("reject", name), ("supersede", name, name), ("write", "--approve", "x")):
        with pytest.raises(UsageError) as error:
            person.runs(*args)
        assert error.value.code == "BW477"
    note = person.json("write", "b")["notes"][0]
    assert (note["status"], note["source"]) == ("pending", "run run-7")


def test_a_hostile_note_is_text_on_the_terminal(person: BrainUser) -> None:
    """Put there by hand or by a pull: what would act is not printed."""
    folder = Path(person.runs("path")[1].strip())
    (folder / "notes" / "global").mkdir(parents=True)
    (folder / "notes" / "global" / "x.md").write_bytes(b"# evil\x1b]0;owned\x07\x1b[2J\n\nbody \x1b[31mred\x9b1m\n")
    listed = person.runs()[1]
    shown = person.runs("show", listed.split()[0])[1]
    assert "evil" in listed
    assert "body red" in shown
    assert "\x1b" not in listed + shown + person.runs("query", "evil")[1]
    assert "\x9b" not in listed + shown


def test_an_empty_brain_says_what_to_do(person: BrainUser) -> None:
    """And reading makes nothing."""
    assert "brain write" in person.runs("list")[1]
    assert "No note" in person.runs("query", "x")[1]
    with pytest.raises(NotFound):
        person.runs("show", "n-1")
    assert not Path(person.runs("path")[1].strip()).exists()


def test_one_note_takes_the_place_of_another(person: BrainUser) -> None:
    """The old one says by which."""
    old, new = _id(person.json("write", "old")), _id(person.json("write", "new"))
    assert person.json("supersede", old, new)["notes"][0]["superseded_by"] == new
    assert new in person.runs("show", old)[1]
