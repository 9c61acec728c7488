"""The folder on the disk: links, crashes at every step, people who work in it at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest

from bailiwick.brain.notes import OWN, NoteFolder, NoteWriter
from bailiwick.errors import NotReady
from bailiwick.locks import STEP, held
from tests.unit.brain.place import Mind, mind_at, run


class Cut(Exception):
    """The power goes."""


@dataclass(frozen=True)
class Fragile(NoteWriter):
    """A keeper whose process ends at a step."""

    at: str = ""

    def _announce(self, paths: Iterable[str]) -> None:
        super()._announce(paths)
        self._end("announced")

    def _place(self, path: str, data: bytes) -> None:
        if self.at == "half":
            super()._place(path, data)
            (self.folder.root / path).rename((self.folder.root / path).with_name(f".{Path(path).name}.new"))
        self._end("half")
        super()._place(path, data)
        self._end("placed")

    async def _commit(self, paths: Iterable[str], message: str, at: float) -> str:
        made = await super()._commit(paths, message, at)
        self._end("committed")
        return made

    def _end(self, step: str) -> None:
        if self.at == step:
            raise Cut


@pytest.fixture
def mind(tmp_path: Path) -> Mind:
    """A brain with nothing in it."""
    return mind_at(tmp_path)


@pytest.mark.parametrize("at", ["announced", "half", "placed", "committed"])
def test_a_crash_anywhere_leaves_a_brain_that_the_next_write_completes(mind: Mind, at: str) -> None:
    """Whole notes only, nothing half written stays, and everything is committed in the end."""
    keeper = mind.brain.keeper
    first = run(mind.brain.write("The first."))
    mind.brain.keeper = Fragile(keeper.folder, keeper.environment, at=at)
    with pytest.raises(Cut):
        run(mind.brain.write("The second."))
    there = ["The first."] if at in ("announced", "half") else ["The first.", "The second."]
    assert sorted(found.note.text for found in run(mind.brain.list())) == there
    mind.brain.keeper = keeper
    last = run(mind.brain.write("The last."))
    texts = sorted(found.note.text for found in run(mind.brain.list()))
    assert texts == sorted([*there, "The last."])
    assert all(found.commit for found in run(mind.brain.list()))
    assert mind.git("status", "--porcelain") == ""
    assert [path.name for path in mind.root.rglob(".n-*")] == []
    assert first.id != last.id


def test_what_a_person_is_about_to_commit_is_left_alone(mind: Mind) -> None:
    """Only our own paths go into our commits."""
    run(mind.brain.write("One."))
    mind.puts("mine.txt", "not yet")
    mind.git("add", "mine.txt")
    mind.puts("draft.md", "not even added")
    run(mind.brain.write("Two."))
    assert mind.git("status", "--porcelain") == "A  mine.txt\n?? draft.md"
    assert mind.git("log", "-1", "--format=%an <%ae>") == "bailiwick <bailiwick@localhost>"


def test_hooks_of_the_folder_are_never_run(mind: Mind) -> None:
    """A note is no reason to run a program."""
    run(mind.brain.write("One."))
    hook = mind.puts(".git/hooks/pre-commit", "#!/bin/sh\ntouch ran\nexit 1\n")
    hook.chmod(0o755)
    run(mind.brain.write("Two."))
    assert not (mind.root / "ran").exists()
    assert mind.git("status", "--porcelain") == ""


def test_a_merge_in_progress_delays_the_commit_and_nothing_else(mind: Mind) -> None:
    """The note is there at once; it is committed with the first change after the merge."""
    run(mind.brain.write("One."))
    mind.git("checkout", "-q", "-b", "side")
    mind.puts("a.md", "1")
    mind.git("add", "a.md")
    mind.git("commit", "-q", "-m", "side")
    mind.git("checkout", "-q", "main")
    mind.puts("b.md", "1")
    mind.git("add", "b.md")
    mind.git("commit", "-q", "-m", "main")
    mind.git("merge", "-q", "--no-ff", "--no-commit", "side")
    saved = run(mind.brain.set_status([run(mind.brain.write("Two.")).id], "approved", "pat"))
    assert (saved.commit, "merge" in saved.owed) == ("", True)
    assert "Two." in [found.note.text for found in run(mind.brain.list())]
    mind.git("commit", "-q", "-m", "merged")
    run(mind.brain.write("Three."))
    assert mind.git("status", "--porcelain") == ""


def test_links_are_not_followed(mind: Mind, tmp_path: Path) -> None:
    """A pulled repository may hold links: nothing outside is read as a note, nothing is written there."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.md").write_text("secret")
    mind.puts("here.md", "here")
    (mind.root / "link.md").symlink_to(outside / "secret.md")
    (mind.root / "folder").symlink_to(outside)
    (mind.root / "notes").symlink_to(outside)
    assert list(NoteFolder(mind.root).survey().files) == ["here.md"]
    assert NoteFolder(mind.root).read("link.md") is None
    with pytest.raises(NotReady, match="link"):
        run(mind.brain.write("x"))
    assert [path.name for path in outside.iterdir()] == ["secret.md"]


def test_only_markdown_that_is_not_hidden_counts(mind: Mind) -> None:
    """Logs of sessions may lie beside the notes, and programs keep folders of their own."""
    for path in ("a.md", "deep/er/b.md", "sessions/s.jsonl", ".obsidian/c.md", ".d.md", "e.txt"):
        mind.puts(path, "x")
    assert sorted(NoteFolder(mind.root).survey().files) == ["a.md", "deep/er/b.md"]


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    """With its place and what to do."""
    mind = mind_at(tmp_path)
    mind.root.parent.mkdir(mode=0o700)
    mind.root.write_text("a file")
    with pytest.raises(NotReady) as error:
        run(mind.brain.write("x"))
    assert error.value.code == "BW572"
    assert "brain_dir" in error.value.hint


def test_the_last_commit_of_each_note_is_known(mind: Mind) -> None:
    """Our own, those of a person, and those that a pull brought; in one look at what is new."""
    one = run(mind.brain.write("One."))
    two = run(mind.brain.write("Two."))
    first, second = (run(mind.brain.get(note.id)).commit for note in (one, two))
    assert mind.git("log", "--format=%H") == f"{second}\n{first}"
    (mind.root / one.path).write_text((mind.root / one.path).read_text() + "\nMore.\n")
    mind.git("commit", "-q", "-a", "-m", "by hand")
    assert run(mind.brain.get(one.id)).commit == mind.git("rev-parse", "HEAD")
    assert run(mind.brain.get(two.id)).commit == second
    mind.git("reset", "-q", "--hard", first)
    mind.git("gc", "-q")
    assert run(mind.brain.get(one.id)).commit == first


def test_nobody_writes_before_they_hold_the_lock(mind: Mind) -> None:
    """Of many that write into a fresh brain at once, each would take the half written file of another away."""
    own = mind.root / OWN
    own.mkdir(parents=True)

    async def history() -> tuple[list[str], list[str]]:
        keeper = mind.brain.keeper
        inside = asyncio.Event()

        async def wait() -> None:
            async with keeper.hold():
                inside.set()

        async with held(own / "lock"):
            waiting = asyncio.ensure_future(wait())
            await asyncio.wait({waiting}, timeout=STEP)
            early = sorted(path.name for path in own.iterdir())
            assert not inside.is_set()
        await waiting
        return early, sorted(path.name for path in own.iterdir())

    assert run(history()) == (["lock"], [".gitignore", "lock"])
