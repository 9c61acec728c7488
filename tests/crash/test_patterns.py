"""issue-to-pr and self-heal die wherever they are, and the same command again ends them: one proposal, nothing left."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from bailiwick import crashpoints
from bailiwick.sandbox.service import sweep_scratch
from bailiwick.testing.polling import until
from tests.acceptance.command import Result
from tests.crash.commands import Commands
from tests.crash.shop import GIVING_UP, IN_A_ROW, Shop, groups, open_shop, script_of
from tests.crash.tracing import SEED, counter, killer, read_counts
from tests.needs import need

pytestmark = [pytest.mark.needs("sandbox"), pytest.mark.slow]

KILLED = -9
PATTERNS = ("issue-to-pr", "self-heal")
NAMED = {
    "issue-to-pr": (
        "worktree.filled", "gate.checked:2", "proposal.committed", "proposal.pushed", "proposal.opened",
        "worktree.put_away",
    ),
    "self-heal": ("worktree.made", "gate.recorded:2", "proposal.branched", "document.committed"),
}  # fmt: skip
"""Where each pattern dies in every test run."""
SAMPLE, EVERYWHERE = 8, 60
"""Moments, and system calls, at which each pattern dies in a nightly run, and with `--all-points`."""
STEP = 0.05


@pytest.fixture(scope="module")
def commands() -> Iterator[Commands]:
    """One maker of processes for all tests here."""
    made = Commands()
    yield made
    made.close()


def walk(commands: Commands, shop: Shop, pattern: str, point: str = "") -> Result:
    """Give the command; it dies at a point, if one is named."""
    shop.person.extra.pop("BAILIWICK_CRASH_AT", None)
    if point:
        shop.person.extra["BAILIWICK_CRASH_AT"] = point
    done = commands.run(shop.person, *shop.command(pattern))
    if point:
        assert done.code == KILLED, f"{point} was not reached: {done.out}{done.err}"
    return done


def left(commands: Commands, shop: Shop) -> list[str]:
    """What is left behind by commands that have ended; scratch directories wait for the next fence."""
    sweep_scratch(shop.person.home / "cache")
    return [*shop.leftovers(), *shop.processes(), *groups(commands.pids)]


def finish(commands: Commands, shop: Shop, pattern: str, before: dict[str, bytes]) -> list[str]:
    """Give the command again, without any harm, and say what is not as promised."""
    done = walk(commands, shop, pattern)
    words = f"{done.out}{done.err}"
    found = [f"it ended with {done.code}: {words}"] if done.code != 0 else []
    found += [] if "gate passed, proposing, NOT merging" in words else [f"no proposal is announced: {words}"]
    found += [f"left: {one}" for one in left(commands, shop)]
    if shop.picture() != before:
        found.append("the person's own files were touched")
    if shop.shown != ["published"]:
        found.append(f"the files of proposals show {shop.shown}")
    names = [proposal.branch for proposal in shop.proposals]
    if not (len(names) == 1 and names == shop.branches == shop.pushed == shop.pulls):
        found.append(f"proposals {names}, branches {shop.branches}, there {shop.pushed}, pulls {shop.pulls}")
    if [proposal.status for proposal in shop.proposals] != ["published"]:
        found.append("the proposal does not know that it is published")
    return found


def set_up(shop: Shop) -> dict[str, bytes]:
    """The person has work of their own in the tree."""
    (shop.root / "mine.txt").write_text("not committed\n")
    return shop.picture()


@pytest.mark.parametrize(
    ("pattern", "point"),
    [
        pytest.param(pattern, point, marks=() if number % 4 == 0 else pytest.mark.nightly)
        for pattern in NAMED
        for number, point in enumerate(NAMED[pattern])
    ],
)
def test_a_killed_command_given_again_ends_with_one_proposal(
    commands: Commands, tmp_path: Path, pattern: str, point: str
) -> None:
    """One pull request, one branch here and there, no worktree, no process; the person's files as they were."""
    with open_shop(tmp_path, pattern) as shop:
        before = set_up(shop)
        walk(commands, shop, pattern, point)
        assert finish(commands, shop, pattern, before) == []


@pytest.mark.nightly
def test_a_run_that_dies_again_and_again_still_ends_with_one_proposal(commands: Commands, tmp_path: Path) -> None:
    """Each next owner dies a little later than the one before."""
    with open_shop(tmp_path, "issue-to-pr") as shop:
        before = set_up(shop)
        for point in IN_A_ROW:
            walk(commands, shop, "issue-to-pr", point)
            assert len(shop.pulls) <= 1
        assert finish(commands, shop, "issue-to-pr", before) == []


SLOW = """checks:
  - {name: word, run: [sh, -c, "grep broken word.txt && sleep 617; ! grep broken word.txt"], timeout: 2s}
protected: [".bailiwick/**"]
"""


def test_a_command_killed_while_a_check_runs_takes_the_sandbox_with_it(commands: Commands, tmp_path: Path) -> None:
    """What runs inside must not outlive whoever watches it, and its control groups must not pile up."""
    with open_shop(tmp_path, "issue-to-pr", gate=SLOW) as shop:
        before = set_up(shop)
        done = commands.run(shop.person, *shop.command("issue-to-pr"), kill_when=lambda: "617" in str(shop.inside()))
        assert done.code == KILLED, done.out + done.err
        until(lambda: shop.inside() == [], what="the end of what ran inside")
        assert finish(commands, shop, "issue-to-pr", before) == []


@pytest.mark.parametrize("point", GIVING_UP)
def test_work_that_was_given_up_is_kept_once(commands: Commands, tmp_path: Path, point: str) -> None:
    """No proposal, but the branch with what there is, told to the person however often the command died."""
    with open_shop(tmp_path, "self-heal") as shop:
        (tmp_path / "self-heal.yaml").write_text(script_of("self-heal", ("broken one", "broken two", "broken three")))
        before = set_up(shop)
        walk(commands, shop, "self-heal", point)
        done = walk(commands, shop, "self-heal")
        assert done.code == 6, done.out + done.err
        assert "gave up after 3 fix calls" in done.out
        (branch,) = shop.branches
        assert f"git branch -D {branch}" in done.out
        assert (shop.proposals, shop.pulls, shop.pushed, left(commands, shop)) == ([], [], [], [])
        assert shop.picture() == before


def count_of(request: pytest.FixtureRequest) -> int:
    """How many points are tried."""
    return EVERYWHERE if request.config.getoption("--all-points", default=False) else SAMPLE


@pytest.mark.nightly
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_crash_at_any_system_call_changes_nothing_that_matters(
    commands: Commands, tmp_path: Path, pattern: str, request: pytest.FixtureRequest
) -> None:
    """Where nobody thought of a point: before the n-th write, sync or rename."""
    need("strace")
    points = [(call, nth) for call, most in _counts(commands, tmp_path, pattern).items() for nth in range(1, most + 1)]
    found = []
    for call, nth in random.Random(f"{SEED} {pattern}").sample(points, count_of(request)):
        with open_shop(tmp_path / f"{call}-{nth}", pattern) as shop:
            before = set_up(shop)
            done = commands.run(shop.person, *shop.command(pattern), tracer=killer(call, nth))
            assert done.code in (KILLED, 0), done.out + done.err
            found += [f"{call} {nth}: {text}" for text in finish(commands, shop, pattern, before)]
    assert found == []


def _counts(commands: Commands, tmp_path: Path, pattern: str) -> dict[str, int]:
    """How often each call is made by a command."""
    with open_shop(tmp_path / "counted", pattern) as shop:
        done = commands.run(shop.person, *shop.command(pattern), tracer=counter(tmp_path / "calls"))
        assert done.code == 0, done.out + done.err
    return read_counts(tmp_path / "calls")


@pytest.mark.nightly
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_crash_at_any_moment_changes_nothing_that_matters(
    commands: Commands, tmp_path: Path, pattern: str, request: pytest.FixtureRequest
) -> None:
    """Killed from outside, at whatever it is just doing."""
    found = []
    for number in range(count_of(request)):
        with open_shop(tmp_path / str(number), pattern) as shop:
            before = set_up(shop)
            commands.run(shop.person, *shop.command(pattern), kill_after=number * STEP)
            found += [f"after {number * STEP:.2f} s: {text}" for text in finish(commands, shop, pattern, before)]
    assert found == []


@pytest.mark.nightly
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_crash_at_each_named_point_changes_nothing_that_matters(
    commands: Commands, tmp_path: Path, pattern: str, request: pytest.FixtureRequest
) -> None:
    """Those of the engine too, the first time and, with `--all-points`, the next times."""
    found, reached = [], set[str]()
    times = (1, 2, 3) if request.config.getoption("--all-points", default=False) else (1,)
    for point, nth in [(point, nth) for point in sorted(crashpoints.NAMES) for nth in times]:
        with open_shop(tmp_path / f"{point}-{nth}", pattern) as shop:
            before = set_up(shop)
            shop.person.extra["BAILIWICK_CRASH_AT"] = f"{point}:{nth}"
            if commands.run(shop.person, *shop.command(pattern)).code == KILLED:
                reached.add(point)
            found += [f"{point}:{nth}: {text}" for text in finish(commands, shop, pattern, before)]
    assert found == []
    assert reached >= {point.partition(":")[0] for point in IN_A_ROW}
