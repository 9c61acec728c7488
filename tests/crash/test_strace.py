"""The process dies before its n-th write, sync or rename, whatever it was doing; and the disk says no instead."""

from __future__ import annotations

import fcntl
import json
from itertools import pairwise
from pathlib import Path

import pytest

from tests.crash.scene import Nursery, create, cut, go_on
from tests.crash.shapes import CHAIN, SHAPES
from tests.crash.tracing import (
    SAMPLE,
    breaker,
    choose,
    counter,
    killer,
    order_of_writes,
    read_counts,
    watcher,
)
from tests.needs import need

pytestmark = pytest.mark.slow

WALKED = sorted(set(SHAPES) - {"stop"})


@pytest.fixture(autouse=True)
def _strace() -> None:
    need("strace")


def counts_of(name: str, nursery: Nursery, folder: Path) -> dict[str, int]:
    """How often each call is made by a run of this shape; counted once for all workers."""
    known = folder / f"calls-{name}.json"
    with (folder / f"calls-{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not known.exists():
            root = folder / f"calls-{name}"
            root.mkdir()
            case = create(SHAPES[name], root)
            done = nursery.run(case.home, "walk", case.root, counter(root / "calls"))
            assert done.code == 0, done.words
            known.write_text(json.dumps(read_counts(root / "calls")))
    counts: dict[str, int] = json.loads(known.read_text())
    return counts


@pytest.fixture
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that all workers of a test run have."""
    base = tmp_path_factory.getbasetemp()
    return base.parent if base.name.startswith("popen-") else base


@pytest.mark.parametrize("name", WALKED)
def test_a_crash_at_any_system_call_changes_nothing_that_matters(
    nursery: Nursery, tmp_path: Path, shared: Path, request: pytest.FixtureRequest, name: str
) -> None:
    """Named points are where somebody thought of a crash; this is everywhere else."""
    every = request.config.getoption("--all-points", default=False)
    counts = counts_of(name, nursery, shared)
    points = choose(name, counts, None if every else SAMPLE // len(WALKED))
    found, killed = [], 0
    for call, nth in points:
        root = tmp_path / f"{call}-{nth}"
        root.mkdir()
        case = create(SHAPES[name], root)
        done = nursery.run(case.home, "walk", case.root, killer(call, nth))
        assert done.killed or done.code == 0, f"{call} {nth}: {done.words}"
        if done.killed:
            killed += 1
            cut(case)
        found += [f"{call} {nth}: {text}" for text in go_on(case)]
    assert found == []
    share = 0.8 if every else 0.5  # of a few, the last of a call may not come this time
    assert killed >= len(points) * share, "most points have to be reached, or nothing was tried"


@pytest.mark.parametrize("error", ["ENOSPC", "EIO"])
@pytest.mark.parametrize(
    ("name", "call", "first"),
    [
        ("chain", "pwrite64", 9),
        ("map", "pwrite64", 30),
        ("chain", "fdatasync", 4),
        ("big", "fsync", 1),
        ("ask", "fdatasync", 6),
    ],
)
def test_a_disk_that_says_no_pauses_the_run_and_loses_nothing(
    nursery: Nursery, tmp_path: Path, name: str, call: str, first: int, error: str
) -> None:
    """Full disks and bad cables are ordinary: the holder says so, tries again, and the run goes on where it was."""
    case = create(SHAPES[name], tmp_path)
    done = nursery.run(case.home, "walk", case.root, breaker(call, error, first, first + 3))
    assert not done.killed, done.words
    assert "Traceback" not in done.words, done.words
    assert "can't be written" in done.words, done.words
    if done.code != 0:
        cut(case)
    assert go_on(case) == [], done.words


@pytest.mark.parametrize(("bug", "kept"), [("", True), ("no sync", False)])
def test_a_commit_is_on_the_disk_before_the_effect_it_announces_begins(
    nursery: Nursery, tmp_path: Path, bug: str, kept: bool
) -> None:
    """A killed process leaves its writes to the kernel, a power cut does not: only a sync in between is a promise."""
    case = create(CHAIN, tmp_path)
    done = nursery.run(case.home, "walk", case.root, watcher(tmp_path / "calls"), bug=bug)
    assert done.code == 0, done.words
    order = order_of_writes(tmp_path / "calls")
    assert order.count("begin") == 3
    assert all(before == "sync" for before, after in pairwise(order) if after == "begin") is kept
