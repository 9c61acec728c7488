"""Documents with files: the store counts, the file follows, and what an earlier version left is taken in once."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from bailiwick.clock import ManualClock
from bailiwick.errors import NotReady
from bailiwick.ids import Json
from bailiwick.journal.documents import change_document
from bailiwick.journal.opening import opened_store
from bailiwick.journal.port import Store
from bailiwick.journal.projected import IMPORTED, ProjectedDocuments

Scene = Callable[[ProjectedDocuments, ProjectedDocuments], Awaitable[None]]


def read_old(path: Path) -> Json:
    """What an earlier version left."""
    try:
        return json.loads(path.read_bytes())
    except ValueError as error:
        raise NotReady("broken") from error


def many(store: Store, state: Path) -> ProjectedDocuments:
    """A folder of files."""
    return ProjectedDocuments(store, state, "things", read_old, re.compile("[a-z]+"))


def play(state: Path, scene: Scene) -> None:
    """Play a scene with two handles on one state directory, as two processes have."""

    async def played() -> None:
        async with opened_store(state, ManualClock()) as first, opened_store(state, ManualClock()) as second:
            await scene(many(first, state), many(second, state))

    asyncio.run(played())


def old_files(state: Path, **files: Json) -> Path:
    """The folder as an earlier version left it."""
    folder = state / "things"
    folder.mkdir()
    for name, body in files.items():
        (folder / f"{name}.json").write_text(json.dumps(body))
    return folder


def test_files_of_an_earlier_version_are_taken_in_once(tmp_path: Path) -> None:
    """A file that comes or goes afterwards is nobody's word any more."""
    folder = old_files(tmp_path, a=1, b=[2])
    (folder / "not-a-name-1.json").write_text("no")

    async def scene(first: ProjectedDocuments, second: ProjectedDocuments) -> None:
        assert await first.all() == {"a": 1, "b": [2]}
        (folder / "a.json").unlink()
        (folder / "b.json").write_text("[3]")
        (folder / "c.json").write_text("4")
        assert await second.all() == {"a": 1, "b": [2]}
        assert [await second.get(name) for name in "abc"] == [1, [2], None]
        assert (folder / "c.json").read_text() == "4", "what somebody put there is not ours to remove"

    play(tmp_path, scene)


def test_a_kill_in_the_middle_of_the_import_repeats_nothing(tmp_path: Path) -> None:
    """What was taken in, and changed since by whoever went on, stays; the rest follows."""
    old_files(tmp_path, a=1, b=2)

    async def scene(first: ProjectedDocuments, second: ProjectedDocuments) -> None:
        await change_document(first.store, "things", "a", lambda _: "taken in and changed")
        assert await second.all() == {"a": "taken in and changed", "b": 2}
        mark = await first.store.document(IMPORTED, "things")
        assert mark is not None
        assert (mark.version, mark.body) == (1, ["a", "b"])

    play(tmp_path, scene)


def test_a_file_that_can_not_be_read_stops_the_import(tmp_path: Path) -> None:
    """It is told until somebody restores or removes it; nothing is taken in before."""
    folder = old_files(tmp_path, a=1)
    (folder / "b.json").write_text("{")

    async def scene(first: ProjectedDocuments, second: ProjectedDocuments) -> None:
        for _ in range(2):
            with pytest.raises(NotReady):
                await first.get("a")
        assert await first.store.documents("things") == []
        (folder / "b.json").unlink()
        assert await second.all() == {"a": 1}

    play(tmp_path, scene)


def test_a_removed_document_does_not_come_back(tmp_path: Path) -> None:
    """Neither from the file that a kill left behind, nor by an import that began before."""
    folder = old_files(tmp_path, a=1)

    async def scene(first: ProjectedDocuments, second: ProjectedDocuments) -> None:
        await first.all()
        await change_document(first.store, "things", "a", lambda _: None)
        assert (folder / "a.json").exists(), "killed between the commit and the file"
        assert (await second.get("a"), await second.all()) == (None, {})
        assert not (folder / "a.json").exists()
        await second.change("a", lambda known: {"again": known})
        assert await first.get("a") == {"again": None}

    play(tmp_path, scene)


@pytest.mark.parametrize("how", ["get", "all", "change"])
def test_what_a_kill_kept_from_the_file_is_made_good(tmp_path: Path, how: str) -> None:
    """By the next read, or the next write."""

    async def scene(first: ProjectedDocuments, second: ProjectedDocuments) -> None:
        await first.change("a", lambda _: 1)
        await change_document(first.store, "things", "a", lambda _: 2)
        assert json.loads(first.file("a").read_text()) == 1
        match how:
            case "get":
                assert await second.get("a") == 2
            case "all":
                assert await second.all() == {"a": 2}
            case _:
                assert await second.change("a", lambda known: known) == 2
        assert json.loads(first.file("a").read_text()) == 2

    play(tmp_path, scene)


def test_changes_of_two_processes_all_count_and_the_file_shows_the_last(tmp_path: Path) -> None:
    """None is lost, and no late writer puts an older version into the file."""

    async def scene(first: ProjectedDocuments, second: ProjectedDocuments) -> None:
        each = (first, second) * 5
        await asyncio.gather(*(one.change("a", lambda known: (known or 0) + 1) for one in each))
        assert await first.get("a") == 10
        assert json.loads(first.file("a").read_text()) == 10
        assert [path.name for path in first.folder.iterdir()] == ["a.json"]

    play(tmp_path, scene)


def test_files_are_private_and_one_that_can_not_be_written_stops_nothing(tmp_path: Path) -> None:
    """The change is durable; who reads it as a file sees it when it can be written again."""

    async def scene(first: ProjectedDocuments, second: ProjectedDocuments) -> None:
        (tmp_path / "things").write_text("in the way")
        await first.change("a", lambda _: 1)
        assert await second.get("a") == 1
        (tmp_path / "things").unlink()
        assert await second.get("a") == 1
        assert (first.folder.stat().st_mode & 0o777, first.file("a").stat().st_mode & 0o777) == (0o700, 0o600)

    play(tmp_path, scene)


def test_a_change_that_is_refused_leaves_all_as_it_was(tmp_path: Path) -> None:
    """What a change raises is for its caller."""

    async def scene(first: ProjectedDocuments, _second: ProjectedDocuments) -> None:
        def refuse(_known: Json) -> Json:
            raise NotReady("no")

        with pytest.raises(NotReady):
            await first.change("a", refuse)
        assert await first.store.document("things", "a") is None
        assert not first.folder.exists()

    play(tmp_path, scene)
