"""Turns at an endpoint: how many at once, who goes first, and what a cancelled call or a dead process leaves."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bailiwick.errors import NotReady
from bailiwick.journal.slots import FileSlots
from bailiwick.routing.endpoints import EndpointAddress
from bailiwick.routing.slots import FAIRNESS, Slots
from bailiwick.testing.polling import until

ONE = EndpointAddress("http://h:1", "m", key="h:1")
TWO = EndpointAddress("http://h:2", "m", key="h:2", concurrency=2)
HOLDER = """
import asyncio, sys
from pathlib import Path
from bailiwick.routing.endpoints import EndpointAddress
from bailiwick.journal.slots import FileSlots
from bailiwick.routing.slots import Slots

async def hold() -> None:
    async with Slots(FileSlots(Path(sys.argv[1])).hold).turn(EndpointAddress("http://h:1", "m", key="h:1"), "m", False):
        print("held", flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)

asyncio.run(hold())
"""


async def settle() -> None:
    """Let every task go as far as it can."""
    for _ in range(20):
        await asyncio.sleep(0)


class Calls:
    """Calls that hold their turn until they are told to end; `order` is the order in which they got it."""

    def __init__(self, slots: Slots, place: EndpointAddress) -> None:
        self.slots = slots
        self.place = place
        self.order: list[str] = []
        self.now: set[str] = set()
        self.most = 0
        self._ends: dict[str, asyncio.Event] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def start(self, name: str, model: str = "m", loaded: bool = False) -> None:
        self._ends[name] = asyncio.Event()
        self._tasks[name] = asyncio.create_task(self._hold(name, model, loaded))
        await settle()

    async def _hold(self, name: str, model: str, loaded: bool) -> None:
        async with self.slots.turn(self.place, model, loaded):
            self.order.append(name)
            self.now.add(name)
            self.most = max(self.most, len(self.now))
            try:
                await self._ends[name].wait()
            finally:
                self.now.discard(name)

    async def end(self, name: str) -> None:
        self._ends[name].set()
        await self._tasks[name]
        await settle()

    async def cancel(self, name: str) -> None:
        self._tasks[name].cancel()
        await asyncio.gather(self._tasks[name], return_exceptions=True)
        await settle()

    async def finish(self) -> None:
        """End all, in the order in which they get their turn."""
        while self.now:
            await self.end(next(name for name in self.order if name in self.now))


def play(tmp_path: Path, place: EndpointAddress, script: object) -> Calls:
    """Run a script of calls at a place."""

    async def go() -> Calls:
        calls = Calls(Slots(FileSlots(tmp_path / "endpoints").hold), place)
        assert callable(script)
        await script(calls)
        return calls

    return asyncio.run(go())


def test_an_endpoint_takes_one_call_at_a_time_where_nothing_is_configured(tmp_path: Path) -> None:
    """A machine with one graphics card answers two calls slower than one after the other."""

    async def script(calls: Calls) -> None:
        for name in "abc":
            await calls.start(name)
        assert (calls.order, calls.slots.waiting(ONE)) == (["a"], 2)
        await calls.finish()

    calls = play(tmp_path, ONE, script)
    assert (calls.order, calls.most) == (["a", "b", "c"], 1)


def test_the_configured_number_of_calls_goes_at_once(tmp_path: Path) -> None:
    """Whoever has room for two says so."""

    async def script(calls: Calls) -> None:
        for name in "abc":
            await calls.start(name)
        assert calls.order == ["a", "b"]
        await calls.end("b")
        assert calls.order == ["a", "b", "c"]
        await calls.finish()

    assert play(tmp_path, TWO, script).most == 2


def test_endpoints_do_not_wait_for_each_other(tmp_path: Path) -> None:
    """Two machines work side by side."""

    async def go() -> None:
        slots = Slots(FileSlots(tmp_path).hold)
        async with asyncio.timeout(600), AsyncExitStack() as stack:
            await stack.enter_async_context(slots.turn(ONE, "m"))
            await stack.enter_async_context(slots.turn(TWO, "m"))

    asyncio.run(go())


def test_calls_for_the_loaded_model_go_first(tmp_path: Path) -> None:
    """Loading a model takes longer than most answers."""

    async def script(calls: Calls) -> None:
        await calls.start("a1", "A")
        for name in ("b1", "a2", "b2", "a3"):
            await calls.start(name, name[0].upper())
        await calls.finish()

    assert play(tmp_path, ONE, script).order == ["a1", "a2", "a3", "b1", "b2"]


def test_a_model_that_a_probe_found_loaded_goes_before_a_cold_one(tmp_path: Path) -> None:
    """A server may have more than one in memory, or another process has loaded it."""

    async def script(calls: Calls) -> None:
        await calls.start("a", "A")
        await calls.start("b", "B")
        await calls.start("c", "C", loaded=True)
        await calls.finish()

    assert play(tmp_path, ONE, script).order == ["a", "c", "b"]


def test_no_call_is_passed_over_for_ever(tmp_path: Path) -> None:
    """A busy model must not starve another."""

    async def script(calls: Calls) -> None:
        await calls.start("a0", "A")
        await calls.start("b", "B")
        for number in range(1, 9):
            await calls.start(f"a{number}", "A")
        await calls.finish()

    order = play(tmp_path, ONE, script).order
    assert order.index("b") == 1 + FAIRNESS


@given(st.lists(st.tuples(st.sampled_from("ABC"), st.booleans()), min_size=1, max_size=24))
def test_the_bound_on_being_passed_over_holds_for_any_mix(
    tmp_path_factory: pytest.TempPathFactory, wanted: list[tuple[str, bool]]
) -> None:
    """Always: at most so many of those who came later go before one who waits."""

    async def script(calls: Calls) -> None:
        for number, (model, loaded) in enumerate(wanted):
            await calls.start(str(number), model, loaded)
        await calls.finish()

    order = [int(name) for name in play(tmp_path_factory.getbasetemp() / "mix", ONE, script).order]
    assert sorted(order) == list(range(len(wanted)))
    for place, number in enumerate(order):
        assert sum(other > number for other in order[:place]) <= FAIRNESS


def test_a_call_that_is_cancelled_while_it_waits_leaves_no_gap(tmp_path: Path) -> None:
    """The next one must not wait for somebody who has left."""

    async def script(calls: Calls) -> None:
        for name in "abc":
            await calls.start(name)
        await calls.cancel("b")
        await calls.end("a")
        assert calls.order == ["a", "c"]
        await calls.finish()

    play(tmp_path, ONE, script)


def test_a_call_that_is_cancelled_while_it_works_frees_its_slot(tmp_path: Path) -> None:
    """A person who gives up must not block the endpoint."""

    async def script(calls: Calls) -> None:
        for name in "ab":
            await calls.start(name)
        await calls.cancel("a")
        assert calls.order == ["a", "b"]
        await calls.finish()

    play(tmp_path, ONE, script)


def test_a_turn_given_in_the_moment_of_cancelling_is_passed_on(tmp_path: Path) -> None:
    """The narrow gap in which a slot could be lost for good."""

    async def go() -> list[str]:
        slots, got = Slots(FileSlots(tmp_path).hold), list[str]()

        async def call(name: str) -> None:
            async with slots.turn(ONE, "m"):
                got.append(name)

        async with asyncio.timeout(600):
            async with slots.turn(ONE, "m"):
                first, second = asyncio.create_task(call("first")), asyncio.create_task(call("second"))
                await settle()
            first.cancel()  # it has its turn by now, but has not run since
            await asyncio.gather(first, second, return_exceptions=True)
        return got

    assert asyncio.run(go()) == ["second"]


def test_another_process_is_waited_for_and_its_death_frees_the_slot(tmp_path: Path) -> None:
    """Two workers share one graphics card; a killed one must not keep it."""
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"

        async def taken(seconds: float) -> bool:
            try:
                async with asyncio.timeout(seconds), Slots(FileSlots(tmp_path).hold).turn(ONE, "m"):
                    return True
            except TimeoutError:
                return False

        assert not asyncio.run(taken(0.1))
        holder.kill()
        until(lambda: holder.poll() is not None, what="the end of the holder")
        assert asyncio.run(taken(600))
    finally:
        holder.kill()
        holder.communicate()


def test_a_busy_process_lets_another_in(tmp_path: Path) -> None:
    """Who frees a slot and has more to do could take it again each time, before the other one looks."""

    async def go() -> int:
        busy, other, rounds = Slots(FileSlots(tmp_path).hold), Slots(FileSlots(tmp_path).hold), 0
        entered = asyncio.Event()

        async def visit() -> None:
            async with other.turn(ONE, "m"):
                entered.set()

        async with asyncio.timeout(600):
            async with busy.turn(ONE, "m"):
                visitor = asyncio.create_task(visit())
                await settle()
            while not entered.is_set():
                rounds += 1
                async with busy.turn(ONE, "m"):
                    await settle()
            await visitor
        return rounds

    assert asyncio.run(go()) == 1


def test_the_locks_are_private_and_named_without_the_address(tmp_path: Path) -> None:
    """An address may tell whom one works with."""

    async def go() -> None:
        async with Slots(FileSlots(tmp_path / "e").hold).turn(ONE, "m"):
            pass

    asyncio.run(go())
    files = sorted((tmp_path / "e").iterdir())
    assert [file.suffix for file in files] == [".0", ".next"]
    assert not any("h:1" in file.name for file in files)
    assert {file.stat().st_mode & 0o777 for file in files} == {0o600}
    assert (tmp_path / "e").stat().st_mode & 0o777 == 0o700


def test_a_directory_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    """Without a lock two processes would collide in silence."""
    (tmp_path / "e").write_text("a file", "utf-8")

    def enter() -> Coroutine[None, None, object]:
        return Slots(FileSlots(tmp_path / "e").hold).turn(ONE, "m").__aenter__()

    with pytest.raises(NotReady):
        asyncio.run(enter())
