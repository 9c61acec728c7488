"""The writer thread: shared commits, and what it notices while it is busy."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from bailiwick.clock import ManualClock
from bailiwick.journal.sqlite import SqliteStore
from bailiwick.testing.store_conformance.stage import message, new_run


def play(tmp_path: Path, scene: Callable[[SqliteStore], Awaitable[None]]) -> None:
    async def history() -> None:
        store = await opened(tmp_path)
        try:
            await scene(store)
        finally:
            await store.close()

    asyncio.run(history())


async def opened(tmp_path: Path) -> SqliteStore:
    return await SqliteStore.open(tmp_path / "journal.db", now=ManualClock().now)


def test_what_is_queued_together_pays_for_one_commit(tmp_path: Path) -> None:
    """A hundred branches that end at once must not wait for a hundred fsyncs."""
    commits: list[None] = []

    def count() -> bool:
        commits.append(None)
        return False

    async def scene(store: SqliteStore) -> None:
        await store.create(new_run())
        await store._writer.do(lambda tx: tx.db.set_commit_hook(count))
        commits.clear()
        with store._writer._guard:
            sends = [asyncio.ensure_future(store.send(message(dedupe=f"m{number}"))) for number in range(100)]
            await asyncio.sleep(0)
        assert await asyncio.gather(*sends) == [True] * 100
        assert len(commits) <= 2

    play(tmp_path, scene)


def test_operations_are_carried_out_in_the_order_they_came(tmp_path: Path) -> None:
    """A holder that does not wait between two appends relies on it."""

    async def scene(store: SqliteStore) -> None:
        await store.create(new_run())
        await asyncio.gather(*(store.send(message(dedupe=f"m{n}", body=n)) for n in range(600)))
        assert [row.body for row in await store.inbox("r1")] == list(range(600))

    play(tmp_path, scene)


def test_a_caller_that_gives_up_disturbs_nobody(tmp_path: Path) -> None:
    """A cancelled task leaves its operation to the writer; those beside it get their answers."""

    async def scene(store: SqliteStore) -> None:
        with store._writer._guard:
            first, second = (asyncio.ensure_future(store.create(new_run(name))) for name in ("a", "b"))
            await asyncio.sleep(0)
            first.cancel()
        assert (await second).id == "b"
        assert first.cancelled()
        assert await store.run("a") is not None

    play(tmp_path, scene)


def test_a_busy_writer_still_notices_the_commits_of_others(tmp_path: Path) -> None:
    """The question is asked on the event loop and may not wait; under load the writer itself has to look."""

    async def scene(store: SqliteStore) -> None:
        seen = await store.wait_for_news()
        other = await opened(tmp_path)
        await other.create(new_run("theirs"))
        await other.close()
        await store.create(new_run("mine"))
        with store._writer._guard:
            news = await store.wait_for_news(seen, 0)
            assert news != seen
            assert await store.wait_for_news(news, 0) == news

    play(tmp_path, scene)
