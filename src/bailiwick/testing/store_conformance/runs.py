# ruff: noqa: S101 - a conformance suite asserts
"""Promises about runs as such: made once, found, listed, archived, deleted; kept over a restart."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bailiwick.errors import JournalCorrupt, NotFound, UsageError
from bailiwick.ids import digest
from bailiwick.journal.port import Store
from bailiwick.journal.rows import Batch, PinnedFile, Reservation, RunFilter, WaitFilter
from bailiwick.testing.store_conformance.stage import (
    NOW,
    StoreFixture,
    ended_run,
    event,
    held_run,
    message,
    new_run,
    on_store,
    on_two_handles,
    sure,
    wait_row,
)


class RunPromises(StoreFixture):
    """What is promised about a run's row and its surroundings."""

    @on_store
    async def test_a_new_run_is_ready_at_once_with_its_first_events(self, store: Store) -> None:
        """A run without its first event could be claimed and would mean nothing."""
        row = await store.create(new_run(first=(event('{"n":1}'), event('{"n":2}')), summary={"node": "a"}))
        assert (row.status, row.seq, row.epoch, row.owner, row.wake_at) == ("ready", 2, 0, None, NOW)
        assert row.summary == {"node": "a"}
        assert [(one.seq, one.body) for one in await store.read("r1")] == [(1, '{"n":1}'), (2, '{"n":2}')]

    @on_store
    async def test_a_run_gives_back_every_fact_it_was_created_with(self, store: Store) -> None:
        """Lists and resumes read these; a column mixed up would show only there."""
        facts: dict[str, Any] = {
            "source": "/flows/a",
            "runs_dir": "/runs",
            "parent": "p",
            "generation": 3,
            "priority": 7,
        }
        made = await store.create(new_run(run_key="k", min_reader=2, root_id="top", **facts))
        row = await sure(store)
        assert row == made
        assert (row.source, row.runs_dir, row.parent, row.generation, row.priority) == tuple(facts.values())
        assert (row.workflow, row.run_key, row.root_id, row.min_reader) == ("flow", "k", "top", 2)
        assert (row.definition, row.created_at, row.archived, row.host) == ("d1", NOW, False, None)

    @on_store
    async def test_creating_a_run_twice_gives_the_first_one_back(self, store: Store) -> None:
        """A creator that crashed before it heard the answer tries again with the same id."""
        await store.create(new_run(first=(event(),)))
        again = await store.create(new_run(first=(event(), event()), workflow="other"))
        assert (again.workflow, again.seq) == ("flow", 1)
        assert len(await store.read("r1")) == 1

    @on_store
    async def test_an_unknown_run_is_none(self, store: Store) -> None:
        """Absence is an answer, not an error."""
        assert await store.run("nobody") is None
        assert await store.find("flow", "default") is None
        assert await store.read("nobody") == []

    @on_store
    async def test_find_gives_the_run_that_is_not_archived(self, store: Store) -> None:
        """A fresh start frees the name; the run that was set aside must not come back."""
        await ended_run(store, "old", run_key="default")
        await store.archive("old")
        assert await store.find("flow", "default") is None
        await store.create(new_run("new", run_key="default", generation=1))
        found = await store.find("flow", "default")
        assert found is not None
        assert found.id == "new"

    @on_store
    async def test_one_name_and_key_is_one_run(self, store: Store) -> None:
        """Two processes that start the same run at the same moment get the same one."""
        first = await store.create(new_run("a", run_key="default", first=(event(),)))
        second = await store.create(new_run("b", run_key="default", first=(event(), event())))
        assert (second.id, second.seq) == (first.id, 1)
        assert await store.run("b") is None

    @on_store
    async def test_a_run_is_created_with_the_blobs_of_its_first_events(self, store: Store) -> None:
        """A context given at the start may be larger than a row."""
        data = b"x" * 5000
        name = digest(data)
        await store.create(new_run(first=(event(f'{{"context":{{"k":{{"$blob":"{name}"}}}}}}'),), blobs={name: data}))
        assert store.blob(name) == data

    @on_store
    async def test_lists_are_filtered_and_newest_first(self, store: Store) -> None:
        """What `runs` shows; archived ones only when asked for."""
        await store.create(new_run("a", created_at=NOW - 2))
        await store.create(new_run("b", workflow="other", created_at=NOW - 1))
        await ended_run(store, "c", root_id="a")
        assert [row.id for row in await store.runs()] == ["c", "b", "a"]
        assert [row.id for row in await store.runs(RunFilter(status=("ready",)))] == ["b", "a"]
        assert [row.id for row in await store.runs(RunFilter(workflow="other"))] == ["b"]
        assert [row.id for row in await store.runs(RunFilter(root_id="a"))] == ["c", "a"]
        await store.archive("c")
        assert [row.id for row in await store.runs()] == ["b", "a"]
        assert [row.id for row in await store.runs(RunFilter(archived=True))] == ["c", "b", "a"]

    @on_store
    async def test_runs_are_found_by_parts_of_their_names_and_by_when_they_ended(self, store: Store) -> None:
        """A person types the beginning of an id, or a key; `status` shows what ended lately, however long it took."""
        for number, ended in enumerate((NOW, NOW + 50, None)):
            row = await held_run(store, f"ab{number}", run_key=f"k{number}", created_at=NOW - number)
            if ended is not None:
                last = replace(event(), at=ended)
                await store.append(row.id, row.epoch, Batch(after=0, events=(last,), status="done", release=True))
        assert [row.id for row in await store.runs(RunFilter(id="ab"))] == ["ab0", "ab1", "ab2"]
        assert [row.id for row in await store.runs(RunFilter(id="ab1"))] == ["ab1"]
        assert await store.runs(RunFilter(id="b")) == []
        assert [row.id for row in await store.runs(RunFilter(run_key="k2"))] == ["ab2"]
        assert [row.id for row in await store.runs(RunFilter(ended_since=NOW + 1))] == ["ab1"]
        assert [row.id for row in await store.runs(RunFilter(status=("ready", "done")), limit=2)] == ["ab0", "ab1"]
        await store.send(message("ab1"))
        assert await store.runs(RunFilter(status=("done",), ended_since=NOW + 1)) == []

    @on_two_handles
    async def test_a_list_holds_runs_or_calls(self, first: Store, second: Store) -> None:
        """People list what they started; thousands of calls are kept apart from it."""
        for number, kind in enumerate(("run", "call", "call", "run")):
            await first.create(new_run(f"{kind}{number}", kind=kind, created_at=NOW + number, workflow=kind))
        calls = RunFilter(kind="call")
        assert [(row.id, row.kind) for row in await second.runs()] == [("run3", "run"), ("run0", "run")]
        assert [(row.id, row.kind) for row in await second.runs(calls)] == [("call2", "call"), ("call1", "call")]
        assert [row.id for row in await second.runs(limit=1, before="run3")] == ["run0"]
        assert [row.id for row in await second.runs(calls, limit=1, before="run3")] == ["call2"]
        assert await second.runs(RunFilter(workflow="call")) == []
        assert await second.runs(RunFilter(id="call")) == []
        assert (await sure(second, "call1")).kind == "call"

    @on_store
    async def test_only_an_ended_run_is_archived_or_deleted(self, store: Store) -> None:
        """A run that somebody may still walk can't be taken away under them."""
        await store.create(new_run())
        for verb in (store.archive, store.delete):
            with pytest.raises(UsageError, match="not over"):
                await verb("r1")
            with pytest.raises(NotFound):
                await verb("nobody")
        assert (await sure(store)).archived is False

    @on_store
    async def test_deleting_removes_the_run_with_its_children_and_leaves_others(self, store: Store) -> None:
        """Deletion is whole: no row is left behind and none of a stranger's goes."""
        top = await held_run(store)
        batch = Batch(
            after=0,
            events=(event(),),
            waits_opened=(wait_row(),),
            children=(new_run("kid", root_id="r1", parent="r1", first=(event(),)),),
            reserve=(Reservation("run:r1", "e", "usd", 1.0), Reservation("day:1", "e", "usd", 1.0)),
            status="stopped",
            release=True,
        )
        await store.append("r1", top.epoch, batch)
        await held_run(store, "other")
        with pytest.raises(UsageError, match="kid"):
            await store.delete("r1")
        await ended_run(store, "kid")
        await store.delete("r1")
        assert [row.id for row in await store.runs(RunFilter(archived=True))] == ["other"]
        assert await store.read("r1") == await store.read("kid") == []
        assert await store.waits() == []
        assert await store.spend("run:r1") == []
        assert len(await store.spend("day:1")) == 1

    @on_store
    async def test_a_deleted_run_may_be_made_again_from_nothing(self, store: Store) -> None:
        """Neither old messages nor remembered duplicates may reach the new one."""
        await store.create(new_run(first=(event(),)))
        await store.send(message())
        row = await held_run(store)
        ids = tuple(one.id for one in await store.inbox("r1"))
        await store.append("r1", row.epoch, Batch(after=1, consumed=ids, status="done", release=True))
        await store.delete("r1")
        fresh = await store.create(new_run())
        assert (fresh.seq, fresh.epoch) == (0, 0)
        assert await store.send(message()) is True

    @on_store
    async def test_a_run_that_a_fork_reads_is_not_deleted(self, store: Store) -> None:
        """A fork keeps the prefix by reference; without it the fork could not be read."""
        await ended_run(store)
        await ended_run(store, "fork", first=(event('{"run":"r1","seq":4}', "Forked"),))
        with pytest.raises(UsageError, match="fork"):
            await store.delete("r1")
        await store.delete("fork")
        await store.delete("r1")
        assert await store.runs(RunFilter(archived=True)) == []

    @on_store
    async def test_definitions_are_kept_by_digest(self, store: Store) -> None:
        """Resuming reads the compiled definition and nothing else."""
        await store.define("d1", {"start": "a", "names": ["ä", None, 1.5]})
        await store.define("d1", {"start": "other"})
        assert await store.definition("d1") == {"start": "a", "names": ["ä", None, 1.5]}
        with pytest.raises(JournalCorrupt, match="d2"):
            await store.definition("d2")

    def test_a_definition_keeps_the_files_it_was_pinned_with(self, tmp_path: Path) -> None:
        """A machine that never saw the workflow lays them out; they outlast the runs, and a value of the same bytes."""
        files = [PinnedFile("prompts/a.md", b"do"), PinnedFile("run.sh", b"x" * 2_000_000, executable=True)]

        async def before(store: Store) -> None:
            await store.define("d1", {})
            assert await store.definition_files("d1") == []
            await store.define("d1", {}, files)
            await store.define("d1", {}, files)
            await store.define("d2", {}, [PinnedFile("same.md", b"do")])
            row = await held_run(store, blobs={digest(b"do"): b"do"})
            await store.append("r1", row.epoch, Batch(after=row.seq, status="done", release=True))
            await store.delete("r1")

        async def after(store: Store) -> None:
            assert await store.definition_files("d1") == files
            assert await store.definition_files("d2") == [PinnedFile("same.md", b"do")]
            assert await store.definition_files("d3") == []

        self.play(tmp_path, before, after)

    def test_everything_acknowledged_is_there_after_reopening(self, tmp_path: Path) -> None:
        """The reason for having a journal."""

        async def before(store: Store) -> None:
            row = await held_run(store)
            batch = Batch(after=0, events=(event('{"n":1}'),), waits_opened=(wait_row(),), blobs={"d": b"x"})
            await store.append("r1", row.epoch, batch)
            await store.send(message(body={"yes": True}))

        async def after(store: Store) -> None:
            row = await sure(store)
            assert (row.seq, row.epoch) == (1, 1)
            assert row.owner is not None
            assert row.owner.name == "ann@laptop"
            assert [one.body for one in await store.read("r1")] == ['{"n":1}']
            assert [one.id for one in await store.waits(WaitFilter(run_id="r1"))] == ["w1"]
            assert [one.body for one in await store.inbox("r1")] == [{"yes": True}]

        self.play(tmp_path, before, after)

    @on_two_handles
    async def test_another_handle_sees_that_something_was_committed(self, mine: Store, other: Store) -> None:
        """One cheap question wakes a whole process; its own writes must not keep it awake."""
        seen = await mine.wait_for_news()
        assert await mine.wait_for_news(seen, 0) == seen
        await other.create(new_run())
        news = await mine.wait_for_news(seen)
        assert news != seen
        assert await mine.wait_for_news(news, 0) == news
        await mine.create(new_run("r2"))
        assert await mine.wait_for_news(news, 0) == news
        await other.send(message())
        await mine.create(new_run("r3"))
        assert await mine.wait_for_news(news) not in (seen, news)

    @on_two_handles
    async def test_everybody_who_waits_for_news_hears_of_them(self, mine: Store, other: Store) -> None:
        """Several workers and views of one process wait on one handle: none takes the news away from another."""
        seen = await mine.wait_for_news()
        waiting = [asyncio.ensure_future(mine.wait_for_news(seen)) for _ in range(3)]
        await asyncio.sleep(0)
        assert not any(one.done() for one in waiting)
        await other.create(new_run())
        assert seen not in await asyncio.gather(*waiting)

    @on_store
    async def test_pages_hold_every_run_that_fits_once_and_in_order(self, store: Store) -> None:
        """Runs of one moment come in the order they were made; a page goes on exactly behind the last one."""
        for number in range(7):
            await store.create(new_run(f"r{number}", created_at=NOW + number // 3))
        await store.create(new_run("c", parent="r1", root_id="r1", created_at=NOW))
        await store.create(new_run("o", workflow="other", created_at=NOW - 5))
        started = RunFilter(called=False)
        everything = [row.id for row in await store.runs(started)]
        assert everything == ["r6", "r5", "r4", "r3", "r2", "r1", "r0", "o"]
        paged: list[str] = []
        while rows := await store.runs(started, limit=3, before=paged[-1] if paged else None):
            assert len(rows) <= 3
            paged += [row.id for row in rows]
        assert paged == everything
        assert [row.id for row in await store.runs(RunFilter(since=NOW + 1))] == ["r6", "r5", "r4", "r3"]
        assert "c" in [row.id for row in await store.runs()]
        assert await store.runs(RunFilter(status=("done", "failed"))) == []
        assert await store.runs(before="nobody") == []
