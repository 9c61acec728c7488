"""Keeping directories in step: timing, trouble on disk, restarts, and the one thread that serves all runs."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path

import pytest

from bailiwick.clock import ManualClock
from bailiwick.engine import events as ev
from bailiwick.engine.graph import End, Graph
from bailiwick.runtime.layout import read_bookmark
from bailiwick.runtime.projector import Projection, Projector, RunFacts, rebuild
from tests.unit.runtime.journals import FACTS, Journal, every_kind, files_of, graph_of, projection, work


def expected(journal: Journal, where: Path) -> dict[str, bytes | None]:
    rebuild(where, journal.entries, journal.graphs, journal.fetch, run=FACTS)
    return files_of(where)


def take(live: Projection, entries: list[ev.Entry]) -> None:
    for entry in entries:
        live.apply(*entry)
    live.flush()


def test_run_json_is_written_at_most_once_a_second(tmp_path: Path) -> None:
    """Thousands of nodes a second must not mean thousands of rewrites; the end is always written."""
    clock = ManualClock()
    journal = Journal(every_kind()).walk(40)
    live = projection(journal, tmp_path / "run", clock.monotonic)
    take(live, journal.entries[:2])
    first = (tmp_path / "run" / "run.json").read_bytes()
    clock.advance(0.9)
    take(live, journal.entries[2:30])
    assert (tmp_path / "run" / "run.json").read_bytes() == first
    clock.advance(0.2)
    live.flush()
    second = (tmp_path / "run" / "run.json").read_bytes()
    assert second != first
    take(live, journal.entries[30:])
    live.close()
    assert (tmp_path / "run" / "run.json").read_bytes() != second


def test_a_disk_that_says_no_is_tried_again(tmp_path: Path) -> None:
    """The run goes on without its directory; when the disk is back, the directory is whole."""
    journal = Journal(every_kind()).walk(40)
    (tmp_path / "runs").write_text("a file where a directory should be")
    live = projection(journal, tmp_path / "runs" / "run")
    take(live, journal.entries[:20])
    found = str(live.problem)
    assert found.startswith("warning[BW310]")
    assert str(tmp_path / "runs" / "run") in found
    (tmp_path / "runs").unlink()
    take(live, journal.entries[20:])
    live.close()
    assert live.problem is None
    assert files_of(tmp_path / "runs" / "run") == expected(journal, tmp_path / "again")


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("everything", [True, False])
def test_a_deleted_directory_comes_back(tmp_path: Path, seed: int, everything: bool) -> None:
    """Deleting the directory of a live run, or all one sees in it, is no harm: it is a view."""
    journal = Journal(every_kind(), {"big": "b" * 5000}, seed).walk(60)
    live = projection(journal, tmp_path / "run")
    take(live, journal.entries[:30])
    for path in (tmp_path / "run").iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        elif everything or not path.name.startswith("."):
            path.unlink()
    if everything:
        (tmp_path / "run").rmdir()
    take(live, journal.entries[30:])
    live.close()
    assert live.problem is None
    assert files_of(tmp_path / "run") == expected(journal, tmp_path / "again")


def test_a_deleted_node_directory_does_not_stop_the_rest(tmp_path: Path) -> None:
    """A file that can't be added to any more is a reason to start from the journal, not to give up."""
    journal = Journal(graph_of(work("a", "done"), End(id="done")))
    journal.decide()
    scope, flight = journal.state.flights()[0]
    journal.add(ev.EffectLost(scope.path, flight.key, "crash"))
    journal.decide()
    clock = ManualClock()
    live = projection(journal, tmp_path / "run", clock.monotonic)
    take(live, journal.entries)
    assert (tmp_path / "run" / "a" / "attempts.jsonl").exists()
    shutil.rmtree(tmp_path / "run" / "a")
    journal.turn(log={})
    take(live, journal.entries)
    assert "No such file" in str(live.problem)
    live.close()
    assert live.problem is None
    assert files_of(tmp_path / "run") == expected(journal, tmp_path / "again")


def test_reopening_writes_only_what_is_new(tmp_path: Path) -> None:
    """A parked run with thousands of visits must not be written again each time it wakes."""
    journal = Journal(every_kind()).walk(80)
    first = projection(journal, tmp_path / "run")
    take(first, journal.entries[:60])
    first.close()
    old = {p: (p.stat().st_ino, p.stat().st_mtime_ns) for p in tmp_path.rglob("*/visits~/prompt.md")}
    second = projection(journal, tmp_path / "run")
    take(second, journal.entries[60:])
    second.close()
    assert old
    assert {p: (p.stat().st_ino, p.stat().st_mtime_ns) for p in old} == old
    assert files_of(tmp_path / "run") == expected(journal, tmp_path / "again")


def test_an_attempt_after_reopening_joins_the_earlier_ones(tmp_path: Path) -> None:
    """A node that was cut off before a restart has one list of attempts, not the last half of it."""
    journal = Journal(graph_of(work("a", "done"), End(id="done")))
    journal.decide()
    scope, flight = journal.state.flights()[0]
    journal.add(ev.EffectLost(scope.path, flight.key, "crash"))
    first = projection(journal, tmp_path / "run")
    take(first, journal.entries)
    first.close()
    known = len(journal.entries)
    journal.turn(log={})
    second = projection(journal, tmp_path / "run")
    take(second, journal.entries[known:])
    second.close()
    lines = (tmp_path / "run" / "a" / "attempts.jsonl").read_text().splitlines()
    assert [(json.loads(line)["entry"], json.loads(line)["result"]) for line in lines] == [(1, "lost"), (2, "ok")]
    assert files_of(tmp_path / "run") == expected(journal, tmp_path / "again")


def test_a_directory_left_by_a_crash_is_made_anew(tmp_path: Path) -> None:
    """A writer that never signed off may have stopped in the middle of a file."""
    journal = Journal(every_kind()).walk(80)
    killed = projection(journal, tmp_path / "run")
    take(killed, journal.entries[:60])
    (tmp_path / "run" / "context.json").write_text("half a fi")
    (tmp_path / "run" / "visits~" / "prompt.md").write_text("")
    later = projection(journal, tmp_path / "run")
    take(later, journal.entries[60:])
    later.close()
    assert files_of(tmp_path / "run") == expected(journal, tmp_path / "again")


def test_a_writer_that_was_replaced_vouches_for_nothing(tmp_path: Path) -> None:
    """After a take-over the old holder's last word must not hide what the new one wrote."""
    journal = Journal(every_kind()).walk(300)
    fenced = projection(journal, tmp_path / "run")
    take(fenced, journal.entries[:30])
    holder = projection(journal, tmp_path / "run")
    take(holder, journal.entries[30:200])
    fenced.close()
    assert read_bookmark(tmp_path / "run") is None
    later = projection(journal, tmp_path / "run")
    take(later, journal.entries[200:])
    later.close()
    assert files_of(tmp_path / "run") == expected(journal, tmp_path / "again")


def test_a_rebuild_keeps_what_people_put_there(tmp_path: Path) -> None:
    """Notes beside the evidence are not ours to delete; a stale node directory is."""
    journal = Journal(every_kind()).walk(40)
    whole = expected(journal, tmp_path / "run")
    (tmp_path / "run" / "notes.txt").write_text("mine")
    (tmp_path / "run" / "call").mkdir(exist_ok=True)
    (tmp_path / "run" / "call" / "stale").write_text("old")
    again = expected(journal, tmp_path / "run")
    assert again == {**whole, "notes.txt": b"mine"}
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_a_directory_that_is_no_runs_is_left_alone(tmp_path: Path) -> None:
    """A person's own directory that happens to have the name is refused, not replaced."""
    journal = Journal(every_kind()).walk(10)
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "thesis.txt").write_text("years of work")
    live = projection(journal, tmp_path / "run")
    take(live, journal.entries)
    live.close()
    assert live.problem is not None
    assert files_of(tmp_path / "run") == {"thesis.txt": b"years of work"}


def test_the_directory_of_an_earlier_run_is_kept_beside(tmp_path: Path) -> None:
    """A fresh start under the same name must not destroy the evidence of the last one."""
    journal = Journal(every_kind()).walk(30)
    rebuild(tmp_path / "run", journal.entries, journal.graphs, journal.fetch, run=RunFacts("flow", "default", "u0"))
    live = projection(journal, tmp_path / "run")
    take(live, journal.entries)
    live.close()
    assert json.loads((tmp_path / "run" / "run.json").read_text())["uid"] == "u1"
    assert json.loads((tmp_path / "run~u0" / "run.json").read_text())["uid"] == "u0"


def serve(projector: Projector, journal: Journal, root: Path, sizes: int = 7) -> None:
    projector.follow("u1", projection(journal, root))
    for start in range(0, len(journal.entries), sizes):
        projector.submit("u1", journal.entries[start : start + sizes])


def test_everything_submitted_is_on_disk_after_close(tmp_path: Path) -> None:
    """A process that ends in order leaves directories that need no rebuild."""

    async def scene() -> None:
        projector = Projector(lambda: 0.0)
        serve(projector, journal, tmp_path / "run")
        await projector.drain()
        assert (tmp_path / "run" / "context.json").exists()
        await projector.close()

    journal = Journal(every_kind()).walk(120)
    asyncio.run(scene())
    assert files_of(tmp_path / "run") == expected(journal, tmp_path / "again")


def test_a_queue_that_is_too_long_is_left_to_the_journal(tmp_path: Path) -> None:
    """A slow disk must cost neither memory nor the walk's time, and nothing may be missing in the end."""

    async def scene() -> None:
        projector = Projector(lambda: 0.0, limit=20)
        projector.follow("u1", projection(journal, tmp_path / "run"))
        with projector._ready:
            projector.submit("u1", journal.entries[:15])
            projector.submit("u1", journal.entries[15:30])
            assert projector._queued == 0
            projector.submit("u1", journal.entries[30:40])
            assert projector._queued == 0
        await projector.drain()
        projector.submit("u1", journal.entries[40:50])
        projector.submit("u1", journal.entries[50:])
        await projector.close()

    journal = Journal(every_kind()).walk(60)
    asyncio.run(scene())
    assert files_of(tmp_path / "run") == expected(journal, tmp_path / "again")


def test_a_problem_is_told_and_forgotten_when_it_is_over(tmp_path: Path) -> None:
    """A person who asks learns why a directory is old; afterwards nothing is left of it."""

    async def scene() -> None:
        projector = Projector(lambda: 0.0)
        serve(projector, journal, tmp_path / "runs" / "run")
        await projector.drain()
        problem = projector.problem("u1")
        assert problem is not None
        assert "could not be written" in str(problem)
        (tmp_path / "runs").unlink()
        await projector.drain()
        assert projector.problem("u1") is None
        await projector.close()

    journal = Journal(every_kind()).walk(30)
    (tmp_path / "runs").write_text("in the way")
    asyncio.run(scene())
    assert files_of(tmp_path / "runs" / "run") == expected(journal, tmp_path / "again")


def torn(definition: str) -> Graph:
    raise ZeroDivisionError(definition)


def test_a_broken_journal_harms_no_other_run(tmp_path: Path) -> None:
    """One thread serves all: an event that cannot be applied is one run's problem."""

    async def scene() -> None:
        projector = Projector(lambda: 0.0)
        broken = Projection(tmp_path / "broken", torn, journal.fetch, run=FACTS, history=journal.history)
        projector.follow("u2", broken)
        projector.submit("u2", journal.entries)
        serve(projector, journal, tmp_path / "run")
        await projector.drain()
        assert projector.problem("u1") is None
        assert projector.problem("u2") is not None
        await projector.close()

    journal = Journal(every_kind()).walk(30)
    asyncio.run(scene())
    assert files_of(tmp_path / "run") == expected(journal, tmp_path / "again")


def test_a_forgotten_run_is_complete_and_can_be_followed_again(tmp_path: Path) -> None:
    """A parked run keeps no memory here; when it wakes, its directory goes on where it was."""

    async def scene() -> None:
        projector = Projector(lambda: 0.0)
        projector.follow("u1", projection(journal, tmp_path / "run"))
        projector.submit("u1", journal.entries[:40])
        projector.forget("u1")
        assert projector._runs == {}
        projector.follow("u1", projection(journal, tmp_path / "run"))
        projector.submit("u1", journal.entries[40:])
        await projector.close()

    journal = Journal(every_kind()).walk(60)
    asyncio.run(scene())
    assert files_of(tmp_path / "run") == expected(journal, tmp_path / "again")
