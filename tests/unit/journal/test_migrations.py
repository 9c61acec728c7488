"""Databases of earlier versions: what they hold is there after the upgrade, and what is derived from it is right."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path

import apsw
from hypothesis import given
from hypothesis import strategies as st

from bailiwick.clock import ManualClock
from bailiwick.engine.events import EffectFinished, Entry
from bailiwick.ids import Json
from bailiwick.journal import calls
from bailiwick.journal.codec import encode
from bailiwick.journal.queries import migrations, query
from bailiwick.journal.rows import AttemptRow, RunFilter
from bailiwick.journal.sqlite import SqliteStore
from bailiwick.runtime.attempt_rows import attempt_rows
from bailiwick.runtime.money import TURNED_AWAY, UNCALLED
from bailiwick.testing.store_conformance.calls import call
from bailiwick.testing.store_conformance.stage import new_run

RUN = """
INSERT INTO run VALUES (:id, 'w', 'k' || :id, :status, 0, 0, NULL, 0, NULL, 0, :id, NULL, 'd', 1);
INSERT INTO run_fact (run_id, source, runs_dir, generation, created_at) VALUES (:id, '', '', 0, 10);
"""


def older(path: Path, schema: int, sql: str = "") -> None:
    """A database as the version with this schema left it."""
    db = apsw.Connection(str(path))
    db.pragma("journal_mode", "WAL")
    for number, text in migrations()[:schema]:
        db.execute(text)
        db.execute("UPDATE meta SET schema = ?", (number,))
        db.execute("INSERT INTO migration (number, applied_at) VALUES (?, 0)", (number,))
    for name, status in (("going", "ready"), ("failed", "failed"), ("done", "done")):
        db.execute(RUN, {"id": name, "status": status})
    if sql:
        db.execute(sql)
    db.close()


def opened(path: Path, look: Callable[[SqliteStore], Awaitable[None]]) -> None:
    """Open it with the version of now, and look."""

    async def scene() -> None:
        store = await SqliteStore.open(path, now=ManualClock().now)
        try:
            await look(store)
        finally:
            await store.close()

    asyncio.run(scene())


def test_a_database_of_before_calls_gets_their_tables_and_keeps_its_runs(tmp_path: Path) -> None:
    """People upgrade with runs in flight."""
    older(tmp_path / "journal.db", 2)

    async def look(store: SqliteStore) -> None:
        await store.create(new_run())
        await store.begin_call(call())
        assert [row.id for row in await store.runs()] == ["r1", "done", "failed", "going"]
        assert [row.id for row in await store.calls()] == ["c-1"]

    opened(tmp_path / "journal.db", look)


def test_runs_of_before_are_known_to_have_ended_when_they_did(tmp_path: Path) -> None:
    """Their summary says when; without one it is not later than they were made."""
    older(tmp_path / "journal.db", 5, """INSERT INTO run_summary VALUES ('done', '{"ended_at": 90.5}')""")

    async def look(store: SqliteStore) -> None:
        for since, names in ((90, ["done"]), (91, []), (10, ["done", "failed"])):
            assert [row.id for row in await store.runs(RunFilter(ended_since=since))] == names

    opened(tmp_path / "journal.db", look)


INDEXED = 10
"""The schema from which on every attempt of a model has a row."""
AMOUNTS = st.none() | st.integers(0, 10**7)
DOLLARS = st.none() | st.floats(0, 1_000, allow_nan=False) | st.integers(0, 9)
USAGE = st.fixed_dictionaries(
    {}, optional={"input": AMOUNTS, "output": AMOUNTS, "usd": DOLLARS, "cumulative": st.booleans()}
)
ROUTED = st.fixed_dictionaries(
    {"verdict": st.sampled_from(["accept", "escalate", "error", ""])},
    optional={
        "skill": st.sampled_from(["review", "", None]),
        "candidate": st.sampled_from(["small/a", "", None]),
        "tier": st.sampled_from(["local", "managed", None]),
        "warm_start": st.none() | st.booleans(),
        "verified": st.none() | st.booleans(),
    },
)
ASKED = st.fixed_dictionaries(
    {"backend": st.sampled_from(["claude", "ollama", "simulate", "it's"])},
    optional={
        "model": st.none() | st.text(max_size=9),
        "session": st.sampled_from([None, "s", "t"]),
        "usage": st.none() | USAGE,
        "prompt": st.sampled_from(["p", "long" * 2_000]),
    },
)
LOGS = st.just({"stderr": "a script is no model"}) | ASKED | st.builds(lambda one, two: {**one, **two}, ASKED, ROUTED)
FAILURES = st.none() | st.fixed_dictionaries(
    {"kind": st.sampled_from(sorted({*TURNED_AWAY, *UNCALLED, "bad_output", "timeout"})), "message": st.text()}
)
EVENTS = st.builds(
    EffectFinished,
    scope=st.just(""),
    key=st.sampled_from(["k1", "k2"]),
    failure=FAILURES,
    log=LOGS,
    seconds=st.integers(0, 10**7).map(lambda ms: ms / 1_000),
)


def written(db: apsw.Connection, run: str, events: Sequence[EffectFinished]) -> None:
    """The journal of a run, as a version without an index left it."""
    for seq, event in enumerate(events, 1):
        row, _ = encode(event, 100.5 + seq)
        db.execute(
            "INSERT INTO event (run_id, seq, type, version, body, at) VALUES (?, ?, ?, ?, ?, ?)",
            (run, seq, row.type, row.version, row.body, row.at),
        )


def indexed_now(run: str, events: Sequence[EffectFinished]) -> list[AttemptRow]:
    """The rows that the version of now writes for the same events, one batch each."""
    history: list[Entry] = []
    rows: list[AttemptRow] = []
    for seq, event in enumerate(events, 1):
        rows += attempt_rows(run, seq - 1, [(event, 100.5 + seq)], history)
        history.append((seq, 100.5 + seq, event))
    return rows


@given(st.lists(EVENTS, max_size=8))
def test_attempts_of_before_are_indexed_as_those_of_now(events: list[EffectFinished]) -> None:
    """Statistics are the same to the digit, also where a session's totals count up."""
    db = apsw.Connection(":memory:")
    for _, text in migrations()[: INDEXED - 1]:
        db.execute(text)
    db.execute(RUN, {"id": "r", "status": "done"})
    written(db, "r", events)
    db.execute(migrations()[INDEXED - 1][1])
    rows = [calls.attempt_row(row) for row in db.execute(query("attempt.listed"), {"since": 0.0})]
    assert rows == [replace(row, workflow="w", feedback="") for row in indexed_now("r", events)]


OLD_CALL = """
INSERT INTO call (id, session_id, skill, phase, project, model, by, origin, run, node, started_at, status, model_used,
                  file_path, message, why, size, reserved_usd, chain)
VALUES ('c-1', '', 'review', '', '', '', '', '', '', '', 1, 'pass', '', '', '', '', 0, 0, '[]');
INSERT INTO attempt VALUES ('c-1', 1, 2, 'review', 'small', 'local', 'accept', 1, 0, 9, 5, NULL, 0.5, 'f', 'o', 'r', 7);
"""
LOG: dict[str, Json] = {"backend": "claude", "model": "m", "usage": {"input": 5, "usd": 0.5}}
DAMAGED = "INSERT INTO event (run_id, seq, type, version, body, at) VALUES ('done', 9, 'EffectFinished', 1, '{', 1)"
KILLED = """
import asyncio, os, signal, sys
from pathlib import Path
from bailiwick.clock import ManualClock
from bailiwick.journal import connection
from bailiwick.journal.queries import migrations
from bailiwick.journal.sqlite import SqliteStore

def until_killed():
    for number, text in migrations():
        yield number, text
        if number == int(sys.argv[2]):
            os.kill(os.getpid(), signal.SIGKILL)

connection._newest = lambda: migrations()[-1][0]
connection.migrations = until_killed
asyncio.run(SqliteStore.open(Path(sys.argv[1]), now=ManualClock().now))
"""


def test_an_index_that_was_cut_off_by_a_kill_is_made_again_once(tmp_path: Path) -> None:
    """Old calls, nodes of old journals, nothing twice; an event that can't be read keeps nobody from the rest."""
    path = tmp_path / "journal.db"
    older(path, INDEXED - 1, OLD_CALL)
    db = apsw.Connection(str(path))
    written(db, "done", [EffectFinished("", "k", log=LOG, seconds=1.5)])
    db.execute(DAMAGED)
    db.close()
    for number, _ in migrations()[INDEXED - 2 :]:
        child = subprocess.run([sys.executable, "-c", KILLED, str(path), str(number)], check=False)
        assert child.returncode == -signal.SIGKILL

    async def look(store: SqliteStore) -> None:
        found = [(row.call, row.run, row.attempt, row.cost) for row in await store.attempts()]
        assert found == [("c-1", "", 1, 0.5), ("", "done", 1, 0.5)]
        (row,) = await store.attempts(call="c-1")
        assert (row.input_tokens, row.output_tokens, row.verified, row.warm_start) == (5, None, True, False)
        assert (row.feedback, row.output_summary, row.runner_output, row.size) == ("f", "o", "r", 7)

    for _ in range(2):
        opened(path, look)
