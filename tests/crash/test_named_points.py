"""The process dies at each named point, in each shape where the point means something else, and the run goes on."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from bailiwick import crashpoints
from bailiwick.testing.harness import CrashCase, Home, begin, opened
from tests.crash.scene import Nursery, create, cut, go_on, judge
from tests.crash.shapes import CALL, CHAIN, SHAPES, Shape
from tests.crash.shop import GIVING_UP, IN_A_ROW

WALKING = {
    "append.before_commit": ("chain:1", "chain:3", "map:2", "call:3", "ask:2", "big:3", "stop:1"),
    "append.after_commit": ("chain:1", "chain:2", "parallel:2", "nested:3", "sleep:4"),
    "blob.written": ("big:1",),
    "effect.before_start_commit": ("chain:2", "retry:3", "loop:3"),
    "effect.after_start_commit": ("chain:1", "map:2", "nested:3", "call:2"),
    "effect.spawned": ("chain:2", "parallel:2", "map:4", "retry:2", "big:2"),
    "effect.finished_before_commit": ("chain:1", "map:3", "retry:1", "call:2", "sleep:2"),
    "effect.finished_after_commit": ("chain:3", "loop:2", "nested:2", "big:2"),
    "wait.opened": ("sleep:1", "sleep:2", "retry:1", "ask:1"),
    "child.created": ("call:1",),
    "claim.taken": ("chain:1", "call:2", "ask:2"),
    "claim.released": ("chain:1", "chain:2", "call:1", "ask:1"),
    "inbox.sent": ("ask:1",),
    "inbox.drained": ("ask:1", "call:1", "stop:1"),
    "run.finished": ("chain:1", "call:1", "call:2"),
    "project.visit": ("loop:1", "loop:9", "map:5"),
    "scope.joined": ("parallel:1", "map:1", "nested:1", "nested:2"),
    "stop.landed": ("stop:1",),
}
STARTING = ("pin.written", "run.created")
PAIRS = [
    pytest.param(point, *place.split(":"), marks=() if number == 0 else pytest.mark.nightly)
    for point, places in WALKING.items()
    for number, place in enumerate(places)
]
"""Each point once in every run of the tests, in all its places at night."""


def test_every_named_point_is_tried() -> None:
    """A point that nobody dies at proves nothing."""
    of_patterns = {point.partition(":")[0] for points in (IN_A_ROW, GIVING_UP) for point in points}
    assert {*WALKING, *STARTING, *of_patterns} == set(crashpoints.NAMES)


@pytest.mark.parametrize("name", sorted(SHAPES))
def test_an_undisturbed_run_passes_every_check(nursery: Nursery, tmp_path: Path, name: str) -> None:
    """The measure itself has to be right before anything is held against it."""
    case = create(SHAPES[name], tmp_path)
    done = nursery.run(case.home, "walk", case.root)
    assert done.code == 0, done.words
    assert judge(case) == []


@pytest.mark.parametrize(("point", "shape", "nth"), PAIRS)
def test_a_crash_there_changes_nothing_that_matters(
    nursery: Nursery, tmp_path: Path, point: str, shape: str, nth: str
) -> None:
    """Same verdict, no finished effect again, an unfinished one once, nothing left behind."""
    case = create(SHAPES[shape], tmp_path)
    done = nursery.run(case.home, "walk", case.root, crash=f"{point}:{nth}")
    assert done.killed, f"{point} was not reached {nth} times by {shape}: {done.words}"
    cut(case)
    assert go_on(case) == []


@pytest.mark.parametrize("second", ["effect.spawned", "append.after_commit", "effect.finished_before_commit"])
def test_a_crash_of_the_next_owner_changes_nothing_either(nursery: Nursery, tmp_path: Path, second: str) -> None:
    """Recovery is a walk like any other and dies like any other."""
    case = create(CHAIN, tmp_path)
    for point in ("effect.spawned:2", f"{second}:1"):
        done = nursery.run(case.home, "walk", case.root, crash=point)
        assert done.killed, done.words
        cut(case)
    assert go_on(case) == []


@pytest.mark.parametrize("point", STARTING)
@pytest.mark.parametrize("shape", [CHAIN, CALL], ids=["chain", "call"])
def test_a_crash_while_starting_leaves_nothing_half(nursery: Nursery, tmp_path: Path, point: str, shape: Shape) -> None:
    """The same command again starts the run, or finds it; never two, never half of one."""
    home = Home(tmp_path)
    home.state.mkdir()
    directory = shape.write(tmp_path / "flows")
    done = nursery.run(home, "start", directory, crash=point)
    assert done.killed, done.words
    case = asyncio.run(_start_again(home, directory))
    case.context = shape.context
    assert go_on(case) == []


async def _start_again(home: Home, directory: Path) -> CrashCase:
    async with opened(home.state) as runtime:
        row = await begin(runtime, directory)
        assert [one.id for one in await runtime.store.runs()] == [row.id]
    return CrashCase(home, row.id, "done", {})
