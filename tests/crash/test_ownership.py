"""One holder at a time: a frozen one is fenced, a dead one replaced at once, a living one named; children go too."""

from __future__ import annotations

import asyncio
import os
import signal
from collections import Counter
from pathlib import Path

import pytest

from bailiwick.clock import SystemClock
from bailiwick.journal.rows import Message, RunRow
from bailiwick.processes.children import find_children, read_stat
from bailiwick.processes.guards import find_guards
from bailiwick.testing.harness import CrashCase, Home, begin, look, opened
from bailiwick.testing.polling import until
from tests.crash.scene import Crowd, command, create, cut, go_on, judge, let_go, runs_at
from tests.crash.shapes import CHAIN, CLING, DAEMON, HIDING, HOLD, Shape

pytestmark = pytest.mark.slow

SHORT = {"LEASE": 1.0, "RENEW": 0.3, "MARGIN": 0.2}
"""A lease that a test can sit out."""
SOON = 120.0


def row_of(case: CrashCase) -> RunRow:
    """The run's row, as any reader sees it."""
    return asyncio.run(look(case.home.state))[case.root].row


def test_a_holder_frozen_past_its_lease_appends_nothing_when_it_wakes(crowd: Crowd, tmp_path: Path) -> None:
    """A laptop that slept, a container that was paused: somebody else has gone on, and the sleeper has to notice."""
    case = create(HOLD, tmp_path)
    first = crowd.walk(case, **SHORT)
    until(lambda: runs_at(case, "held"), what="the first holder's work")
    first.send_signal(signal.SIGSTOP)
    children = find_children({"BAILIWICK_RUN": case.root})
    clock = SystemClock()
    until(lambda: row_of(case).lease_until < clock.now(), what="the end of the lease")
    cut(case)
    second = crowd.walk(case, **SHORT, name="the second")
    until(lambda: runs_at(case, "held", 2), what="the second holder's work")
    assert set(children).isdisjoint(find_children({"BAILIWICK_RUN": case.root})), "children of the first were left"
    first.send_signal(signal.SIGCONT)
    _, words = first.communicate(timeout=SOON)
    assert first.returncode == 8, words
    assert "error[BW301]" in words, "it says that it was fenced"
    let_go(case)
    assert second.wait(timeout=SOON) == 0
    assert judge(case) == []
    owners = asyncio.run(look(case.home.state))[case.root].bodies("OwnerChanged")
    assert len(owners) == 2
    assert "the second" in owners[1]["owner"]


def test_a_holder_frozen_within_its_lease_goes_on(crowd: Crowd, tmp_path: Path) -> None:
    """A short sleep is no reason to start over."""
    case = create(HOLD, tmp_path)
    first = crowd.walk(case)
    until(lambda: runs_at(case, "held"), what="the holder's work")
    first.send_signal(signal.SIGSTOP)
    let_go(case)
    first.send_signal(signal.SIGCONT)
    assert first.wait(timeout=SOON) == 0
    assert judge(case) == []
    assert len(asyncio.run(look(case.home.state))[case.root].bodies("OwnerChanged")) == 1


@pytest.mark.parametrize("renew", [0.3, 3600.0])
def test_a_holder_frozen_past_its_lease_goes_on_when_nobody_took_the_run(
    crowd: Crowd, tmp_path: Path, renew: float
) -> None:
    """Its lease is over and news has come, so it looks for runs to claim: its own it must not claim."""
    case = create(HOLD, tmp_path)
    first = crowd.walk(case, **{**SHORT, "RENEW": renew})
    until(lambda: runs_at(case, "held"), what="the holder's work")
    first.send_signal(signal.SIGSTOP)
    clock = SystemClock()
    until(lambda: row_of(case).lease_until < clock.now(), what="the end of the lease")
    asyncio.run(_wake(case, clock.now()))
    first.send_signal(signal.SIGCONT)
    until(lambda: not asyncio.run(look(case.home.state))[case.root].inbox, what="the message being taken")
    let_go(case)
    _, words = first.communicate(timeout=SOON)
    assert first.returncode == 0, words
    assert judge(case) == []
    assert len(asyncio.run(look(case.home.state))[case.root].bodies("OwnerChanged")) == 1
    assert row_of(case).epoch == 1


async def _wake(case: CrashCase, now: float) -> None:
    async with opened(case.home.state) as runtime:
        await runtime.store.send(Message(case.root, "wake", "wake", {}, now))


def test_a_second_process_on_a_run_is_refused_with_the_holders_name(crowd: Crowd, tmp_path: Path) -> None:
    """Two walks of one run would do everything twice; the person has to hear who is at it."""
    case = create(HOLD, tmp_path)
    first = crowd.walk(case, name="the first")
    until(lambda: runs_at(case, "held"), what="the first holder's work")
    before = row_of(case)
    second = crowd.command(case, "run", str(tmp_path / "flows" / "hold"), "--no-input")
    _, words = second.communicate(timeout=SOON)
    assert second.returncode == 8, words
    assert f"pid {first.pid}" in words
    assert "the first" in words
    assert (row_of(case).epoch, row_of(case).seq) == (before.epoch, before.seq)
    let_go(case)
    assert first.wait(timeout=SOON) == 0
    assert judge(case) == []


def test_a_dead_holder_is_replaced_before_its_lease_ends(crowd: Crowd, tmp_path: Path) -> None:
    """Its death can be proved here, so nobody has to sit out fifteen seconds."""
    case = create(HOLD, tmp_path)
    first = crowd.walk(case, LEASE=3600.0)
    until(lambda: runs_at(case, "held"), what="the first holder's work")
    first.kill()
    first.wait()
    cut(case)
    let_go(case)
    assert go_on(case) == []
    assert SystemClock().now() < case.cuts[0][case.root].row.lease_until


def test_children_that_will_not_go_are_gone_before_re_entry(crowd: Crowd, tmp_path: Path) -> None:
    """A script that ignores TERM, and one that left its process group: two of a kind at once would spoil the work."""
    case = create(CLING, tmp_path)
    first = crowd.walk(case)
    pids = case.home.state / "workspaces" / case.root / "pids"
    until(lambda: pids.exists() and len(pids.read_text().split()) == 2, what="the clinging processes")
    first.kill()
    first.wait()
    cut(case)
    second = crowd.walk(case, GRACE=0.2)
    _, words = second.communicate(timeout=SOON)
    assert second.returncode == 0, words
    assert judge(case) == []


@pytest.mark.parametrize("shape", [HIDING, DAEMON], ids=lambda shape: shape.name)
def test_children_without_marks_are_gone_before_re_entry(crowd: Crowd, tmp_path: Path, shape: Shape) -> None:
    """A script that cleared its environment and left its session; a daemon that lost its parent as well and is deaf."""
    case = create(shape, tmp_path)
    first = crowd.walk(case)
    pids = case.home.state / "workspaces" / case.root / "pids"
    until(lambda: pids.exists() and bool(pids.read_text().strip()), what="the hidden process")
    hidden = int(pids.read_text())
    first.kill()
    first.wait()
    cut(case)
    second = crowd.walk(case, GRACE=0.2)
    _, words = second.communicate(timeout=SOON)
    assert second.returncode == 0, words
    assert judge(case) == []
    stat = read_stat(hidden)
    assert stat is None or stat.dead


def test_a_run_is_parked_while_a_guard_can_not_end_its_processes(crowd: Crowd, tmp_path: Path) -> None:
    """Two copies with one key would be worse than none: nothing is started until the guard can be believed."""
    case = create(HIDING, tmp_path)
    first = crowd.walk(case)
    pids = case.home.state / "workspaces" / case.root / "pids"
    until(lambda: pids.exists() and bool(pids.read_text().strip()), what="the hidden process")
    (guard,) = find_guards({"BAILIWICK_RUN": case.root})
    os.kill(guard, signal.SIGSTOP)
    try:
        first.kill()
        first.wait()
        cut(case)
        second = crowd.walk(case, **SHORT, GRACE=0.1, PATIENCE=0.2)
        assert second.stderr is not None
        words = next(line for line in second.stderr if "will not end" in line)
        assert words.split()[-1] == str(guard)
        assert len([line for line in case.home.lines() if line.word == "start"]) == 1
    finally:
        os.kill(guard, signal.SIGCONT)
    _, words = second.communicate(timeout=SOON)
    assert second.returncode == 0, words
    assert judge(case) == []


def test_a_terminated_command_leaves_a_run_that_goes_on(crowd: Crowd, tmp_path: Path) -> None:
    """A reboot sends TERM: the children end, the code says so, and the next `run` takes up the interrupted node."""
    case = create(HOLD, tmp_path)
    first = crowd.command(case, "run", str(tmp_path / "flows" / "hold"), "--no-input")
    until(lambda: runs_at(case, "held"), what="the command's work")
    first.terminate()
    _, words = first.communicate(timeout=SOON)
    assert first.returncode == 143, words
    assert find_children({"BAILIWICK_RUN": case.root}) == []
    cut(case)
    let_go(case)
    assert go_on(case) == []


@pytest.mark.parametrize("point", ["inbox.sent", "claim.taken", "inbox.drained", "append.before_commit"])
def test_a_killed_stop_does_not_stop_the_run_that_is_resumed(crowd: Crowd, tmp_path: Path, point: str) -> None:
    """Who resumes wants it to go on: a stop that its sender did not live to carry out is over with that."""
    case = create(CHAIN, tmp_path)
    stop = crowd.command(case, "stop", "chain-default", BAILIWICK_CRASH_AT=point)
    stop.communicate(timeout=SOON)
    assert stop.returncode == -signal.SIGKILL
    cut(case)
    resume = crowd.command(case, "resume", "chain-default")
    _, words = resume.communicate(timeout=SOON)
    assert resume.returncode == 0, words
    assert judge(case) == []


def test_a_stop_that_its_holder_did_not_live_to_carry_out_is_over_with_resume(crowd: Crowd, tmp_path: Path) -> None:
    """The stop is in the journal and the run is not stopped: the next owner goes on when it is told to."""
    case = create(HOLD, tmp_path)
    first = crowd.walk(case)
    until(lambda: runs_at(case, "held"), what="the holder's work")
    stop = crowd.command(case, "stop", "hold-default")
    _, words = stop.communicate(timeout=SOON)
    assert stop.returncode == 0, words
    assert asyncio.run(look(case.home.state))[case.root].bodies("StopRequested")
    first.kill()
    first.wait()
    cut(case)
    let_go(case)
    resume = crowd.command(case, "resume", "hold-default")
    _, words = resume.communicate(timeout=SOON)
    assert resume.returncode == 0, words
    assert judge(case) == []


def test_four_processes_share_twenty_runs_without_doing_anything_twice(crowd: Crowd, tmp_path: Path) -> None:
    """As many processes as a state directory is meant for: each effect once, each run walked to its end."""
    home = Home(tmp_path)
    home.state.mkdir()
    asyncio.run(_many(home, CHAIN.write(tmp_path / "flows"), 20))
    for worker in [crowd.start(command(home, "work")) for _ in range(4)]:
        _, words = worker.communicate(timeout=SOON)
        assert worker.returncode == 0, words
    seen = asyncio.run(look(home.state))
    assert Counter(one.row.status for one in seen.values()) == {"done": 20}
    starts = Counter(line.key for line in home.lines() if line.word == "start")
    assert (len(starts), set(starts.values())) == (60, {1})
    assert judge(CrashCase(home, next(iter(seen)), "done", CHAIN.context)) == []


async def _many(home: Home, directory: Path, count: int) -> None:
    async with opened(home.state) as runtime:
        for number in range(count):
            await begin(runtime, directory, f"run{number}")
