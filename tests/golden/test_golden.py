"""Journals that earlier versions wrote are read by today's code, to exactly the same end."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from bailiwick.clock import ManualClock
from bailiwick.engine.events import TYPES, Event, body_of, from_body
from bailiwick.engine.state import Deferred, State
from bailiwick.ids import Json
from bailiwick.journal.codec import decode, encode
from bailiwick.journal.rows import EncodedEvent, NewRun, StoredEvent
from bailiwick.journal.sqlite import SqliteStore
from bailiwick.runtime.facts import RunFacts
from bailiwick.runtime.history import RunReader
from bailiwick.runtime.projection import rebuild
from bailiwick.runtime.record import summary
from tests.golden.generate import make

VERSIONS = sorted(path for path in Path(__file__).parent.glob("v*") if path.is_dir())
JOURNALS = sorted(path for version in VERSIONS for path in version.glob("*.ndjson"))


def rows_of(path: Path) -> list[StoredEvent]:
    """The stored rows of a golden journal."""
    lines = path.read_text("utf-8").splitlines()
    return [StoredEvent(seq, **json.loads(line)) for seq, line in enumerate(lines, 1)]


async def open_all(version: Path, folder: Path) -> SqliteStore:
    """A state directory that holds the journals of one version."""
    store = await SqliteStore.open(folder / "bailiwick.db", now=ManualClock().now)
    for digest, body in json.loads((version / "definitions.json").read_text("utf-8")).items():
        await store.define(digest, body)
    for path in sorted(version.glob("*.ndjson")):
        about = json.loads(path.with_suffix(".json").read_text("utf-8"))
        first = tuple(EncodedEvent(row.type, row.version, row.body, row.at) for row in rows_of(path))
        blobs = {name: text.encode("ascii") for name, text in about["blobs"].items()}
        run = NewRun(
            about["run"], path.stem, "default", about["definition"], about["run"], first[0].at, first=first, blobs=blobs
        )
        await store.create(run)
    return store


def shown(state: State) -> Json:
    """What a state comes to, as the golden file has it."""
    found = {
        "status": state.status,
        "reason": state.reason,
        "ended": state.ended,
        "context": state.context(),
        "summary": summary(state),
        "wall": state.wall,
        "visits": state.scopes[""].visits,
        "limits": state.limits,
        "flights": [[scope.path, scope.cursor, flight.key] for scope, flight in state.flights()],
        "waits": [[scope.path, wait.id, wait.kind, wait.due_at] for scope, wait in state.waits()],
    }
    return json.loads(json.dumps(found))


def resolved(event: Event, blobs: dict[str, str]) -> Event:
    """The event with every value that was kept apart in its place."""

    def value(item: Json) -> Json:
        return json.loads(blobs[item.digest]) if isinstance(item, Deferred) else item

    body = {
        name: {key: value(item) for key, item in part.items()} if isinstance(part, dict) else value(part)
        for name, part in body_of(event).items()
    }
    return from_body(type(event).__name__, event.VERSION, body)


def expected(path: Path) -> Json:
    """What its writer saw at the end of a journal."""
    return json.loads(path.with_suffix(".json").read_text("utf-8"))["expected"]


def test_there_is_a_golden_journal() -> None:
    """Without one, the tests below would pass by having nothing to do."""
    assert [version.name for version in VERSIONS][:1] == ["v1"]
    assert len(JOURNALS) >= 4


def test_every_type_of_event_is_in_a_golden_journal() -> None:
    """A type that is in none could change its shape unnoticed, and somebody's run with it."""
    assert {row.type for path in JOURNALS for row in rows_of(path)} == set(TYPES)


@pytest.mark.parametrize("path", JOURNALS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_golden_journal_replays_to_exactly_what_it_came_to(tmp_path: Path, path: Path) -> None:
    """A run of months ago resumes where it stood, whatever was changed since."""

    async def replayed() -> State:
        store = await open_all(path.parent, tmp_path)
        state = await RunReader(store).state(json.loads(path.with_suffix(".json").read_text("utf-8"))["run"])
        state.context()
        await store.close()
        return state

    found, wanted = shown(asyncio.run(replayed())), expected(path)
    found["summary"] = {name: found["summary"][name] for name in wanted["summary"]}  # an index: it may have gained
    assert found == wanted


@pytest.mark.parametrize("path", JOURNALS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_reading_and_writing_an_event_gives_the_same_bytes(path: Path) -> None:
    """A fork, an export or a copy must not change what was signed and counted by its digest."""
    blobs = json.loads(path.with_suffix(".json").read_text("utf-8"))["blobs"]
    for row in rows_of(path):
        again, kept = encode(resolved(decode(row), blobs), row.at)
        assert (again.type, again.version, again.body, again.at) == (row.type, row.version, row.body, row.at)
        assert {name: data.decode("ascii") for name, data in kept.items()}.items() <= blobs.items()


@pytest.mark.parametrize("version", VERSIONS, ids=lambda version: version.name)
def test_the_directory_of_a_golden_run_can_still_be_made(tmp_path: Path, version: Path) -> None:
    """The directory is not kept with the journal; it has to come out of it."""

    async def make_directory() -> None:
        store = await open_all(version, tmp_path)
        library = RunReader(store)
        about = json.loads((version / "main.json").read_text("utf-8"))
        history = await library.history(about["run"])
        facts = RunFacts("main", "default", about["run"])
        rebuild(tmp_path / "made", history, library.definitions.graph, library.fetch, run=facts)
        await store.close()

    asyncio.run(make_directory())
    context = json.loads((tmp_path / "made" / "context.json").read_text("utf-8"))
    wanted = expected(version / "main.ndjson")["context"]
    wanted["big"] = context["big"]
    assert "$ref" in context["big"]
    assert context == wanted
    assert json.loads((tmp_path / "made" / "run.json").read_text("utf-8"))["state"] == "done"


def test_the_generator_still_makes_version_one() -> None:
    """While nothing has changed, the engine decides today what it decided then; a change here needs a new version."""
    made = make()
    for path in (VERSIONS[0] / f"{name}.ndjson" for name in ("main", "inner", "cut", "fork")):
        stored = [[row.type, row.version, row.body, row.at] for row in rows_of(path)]
        assert made[path.stem]["rows"] == stored
