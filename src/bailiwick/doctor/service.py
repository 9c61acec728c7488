"""Checks of this machine, each with the exact command that fixes it."""

from __future__ import annotations

import asyncio
import platform
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from bailiwick import __version__
from bailiwick.clock import SystemClock
from bailiwick.config.service import Config
from bailiwick.config.variables import Environment
from bailiwick.errors import BailiwickError
from bailiwick.journal.opening import database_of, opened_store
from bailiwick.journal.rows import RunFilter
from bailiwick.terminal.output import budget_limit, counted


@dataclass(frozen=True, slots=True)
class DoctorFinding:
    """What was looked at, whether it is well, what was found, how to fix it. `needed`: nothing works without it."""

    name: str
    ok: bool
    found: str
    fix: str = ""
    needed: bool = True


@dataclass(frozen=True, slots=True)
class FenceReport:
    """The findings, and what is not protected, in words."""

    findings: tuple[DoctorFinding, ...]
    unprotected: tuple[str, ...]


async def look_at_fence(config: Config, *, fix: bool) -> FenceReport:
    """Try the sandbox for real and look for leftovers; with `fix` those are removed."""
    findings, open_ends = await _sandbox(config)
    cleaned = (_environments(config),) if fix else ()
    return FenceReport((*findings, await _leftovers(config, fix=fix), *cleaned), open_ends)


async def _sandbox(config: Config) -> tuple[tuple[DoctorFinding, ...], tuple[str, ...]]:
    from bailiwick.sandbox.selftest import self_test
    from bailiwick.sandbox.service import open_sandboxes

    try:
        sandboxes = await open_sandboxes(config, attended=True)
        standing = await sandboxes.look()
    except BailiwickError as error:
        return (DoctorFinding("sandbox", ok=False, found=error.what, fix=error.hint, needed=False),), ()
    works = sandboxes.sandbox.name != "none"
    first = DoctorFinding("sandbox", works, standing.found, standing.fix, needed=False)
    if not works:
        return (first,), standing.unprotected
    probes = await self_test(sandboxes)
    leaks = [probe for probe in probes if not probe.protected]
    words = f"{len(probes)} escape attempts from inside, {len(probes) - len(leaks)} failed as they should"
    tried = DoctorFinding("self-test", not leaks, words, "; ".join(f"{p.name}: {p.found}" for p in leaks))
    return (first, tried), standing.unprotected


async def _leftovers(config: Config, *, fix: bool) -> DoctorFinding:
    from bailiwick.git.worktrees import Worktrees

    state = config.paths.state
    if not (state / "worktrees").is_dir():
        return DoctorFinding("worktrees", ok=True, found="none left over")
    try:
        alive = await _unfinished(config)
    except BailiwickError as error:
        return DoctorFinding("worktrees", ok=False, found=f"can't be told: {error.what}", fix=error.hint, needed=False)
    worktrees = Worktrees(state, SystemClock())
    orphans = await worktrees.orphans(lambda run: run in alive)
    if fix:
        for orphan in orphans:
            await worktrees.remove(orphan)
    if not orphans:
        return DoctorFinding("worktrees", ok=True, found=f"none left over, {len(await worktrees.list())} in use")
    if fix:
        return DoctorFinding("worktrees", ok=True, found=f"{len(orphans)} left over, removed")
    listed = ", ".join(f"{orphan.path.name} ({orphan.why})" for orphan in orphans[:5])
    found = f"{len(orphans)} left over: {listed}"
    return DoctorFinding("worktrees", ok=False, found=found, fix="bailiwick doctor --fix", needed=False)


def _environments(config: Config) -> DoctorFinding:
    """Remove environments that nobody used for longer than they are kept."""
    from bailiwick.environments.prepared import sweep_environments

    gone = sweep_environments(config.paths.cache, float(config.get("retention.environments")), SystemClock().now())
    return DoctorFinding("prepared", ok=True, found=f"{counted(len(gone), 'unused environment')} removed")


async def _unfinished(config: Config) -> frozenset[str]:
    """The runs that may still want their worktree: all but those that are done."""
    if not database_of(config.paths.state).is_file():
        return frozenset()
    async with opened_store(config.paths.state, SystemClock()) as store:
        return frozenset(row.id for row in await store.runs(RunFilter(status=("ready", "stopped", "failed"))))


PYTHON = (3, 11)
TOLD_FOR = 30 * 86400.0
"""Seconds for which lost events are told."""


def examine(config: Config) -> list[DoctorFinding]:
    """Every check, in the order a person would want them."""
    return [
        _python(),
        _sqlite(),
        _state(config),
        _journal(config),
        _disk(config),
        _awake(config),
        _tool("bash", "scripts named .sh need it", "apt-get install bash", needed=True),
        _tool("python3", "scripts named .py need it", "apt-get install python3", needed=True),
        _tool("git", "repositories need it", "apt-get install git", needed=False),
        _processes(),
        *_agents(),
    ]


def _agents() -> list[DoctorFinding]:
    """Whether the programs of agent backends are there; `bailiwick agents` says more."""
    from bailiwick.agents.registry import PROGRAMS

    return [
        _tool(program, f"backend '{name}' needs it", f"bailiwick agents says how to get '{program}'", needed=False)
        for name, program in PROGRAMS.items()
    ]


def unprotected() -> list[str]:
    """What is not protected here, in words."""
    return [
        "scripts of a workflow run with your rights and your network: they are your code, not an agent's",
        "anyone who can write your state directory can change what a run will do",
    ]


def stated_limits(config: Config) -> list[str]:
    """The limits that hold with this configuration."""
    run = config.get("budget.run")
    limits = run.items() if isinstance(run, dict) else ()
    parts = [f"{name} {budget_limit(name, value)}" for name, value in limits if value is not None]
    return [f"a run: {', '.join(parts)}"] if parts else []


def _python() -> DoctorFinding:
    version = platform.python_version()
    good = sys.version_info >= PYTHON
    return DoctorFinding("python", good, f"{version}, bailiwick {__version__}", "install Python 3.11 or newer")


def _sqlite() -> DoctorFinding:
    try:
        import apsw
    except ImportError:
        return DoctorFinding("sqlite", ok=False, found="the driver apsw is missing", fix="pip install apsw")
    return DoctorFinding("sqlite", ok=True, found=f"{apsw.sqlite_lib_version()} (bundled)")


def _state(config: Config) -> DoctorFinding:
    from bailiwick.journal.mounts import network_filesystem

    try:
        path = config.paths.make_state()
        kind = network_filesystem(_mounts(), path)
    except BailiwickError as error:
        return DoctorFinding("state", ok=False, found=error.what, fix=error.hint)
    if kind:
        return DoctorFinding(
            "state", ok=False, found=f"{path} is on {kind}", fix="set BAILIWICK_HOME to a local directory"
        )
    return DoctorFinding("state", ok=True, found=f"{path}, mode 0700")


def _journal(config: Config) -> DoctorFinding:
    """Every event and value of the journal, read and checked; and what a lost write-ahead log took away."""
    from bailiwick.journal.inspection import inspect
    from bailiwick.journal.marks import recorded_losses

    path = database_of(config.paths.state)
    if not path.is_file():
        return DoctorFinding("journal", ok=True, found="there is none yet")
    try:
        problems = inspect(path)
    except BailiwickError as error:
        return DoctorFinding("journal", ok=False, found=error.what, fix=error.hint)
    if problems:
        fix = f"stop everything, keep {path.parent} as it is, and restore {path.name} from a backup"
        return DoctorFinding("journal", ok=False, found=f"{path} is damaged: {'; '.join(problems)}", fix=fix)
    lost = recorded_losses(path, SystemClock().now() - TOLD_FOR)
    if lost:
        fix = "bailiwick status names runs that stopped; look at each with: bailiwick why RUN"
        return DoctorFinding(
            "journal", ok=False, found=f"it lost what was written last: {'; '.join(lost)}", fix=fix, needed=False
        )
    return DoctorFinding(
        "journal", ok=True, found=f"{path.stat().st_size / 1e6:.1f} MB, every event and value verified"
    )


def _mounts() -> str:
    try:
        return Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _disk(config: Config) -> DoctorFinding:
    there = next(p for p in (config.paths.state, *config.paths.state.parents) if p.exists())
    free = shutil.disk_usage(there).free
    least = int(config.get("retention.min_free") or 0)
    text = f"{free / 1e9:.0f} GB free" + ("" if free >= least else f"; below {least / 1e9:g} GB nothing new starts")
    fix = "bailiwick du shows what takes space, bailiwick du --remove removes what is kept no longer"
    return DoctorFinding("disk", free >= least, text, fix, needed=False)


def _awake(config: Config) -> DoctorFinding:
    """Whether the machine can be kept awake while an agent works."""
    from bailiwick.runtime.awake import can_inhibit, inhibitor

    if not config.get("night.keep_awake"):
        return DoctorFinding(
            "awake", ok=True, found="night.keep_awake is off: the machine may sleep while an agent works"
        )
    command = inhibitor(1)
    if command is None or not can_inhibit(command):
        missing = f"{command[0]} is refused" if command else "no systemd-inhibit, no caffeinate"
        found = f"nothing here keeps the machine awake while an agent works: {missing}"
        fix = "switch sleep off, or say that it may sleep: bailiwick config set night.keep_awake false"
        return DoctorFinding("awake", ok=False, found=found, fix=fix, needed=False)
    return DoctorFinding("awake", ok=True, found=f"{command[0]} keeps the machine awake while an agent works")


def _tool(name: str, why: str, fix: str, *, needed: bool) -> DoctorFinding:
    found = shutil.which(name)
    return DoctorFinding(name, ok=found is not None, found=found or f"not found: {why}", fix=fix, needed=needed)


def _processes() -> DoctorFinding:
    """Whether whatever a script or an agent starts is found again and ended, tried with a process."""
    from bailiwick.processes.spawning import is_guarding

    if not Path("/proc/self/environ").exists():
        found, fix = "no /proc: children can't be proved gone", "use Linux, or a container"
        return DoctorFinding("processes", ok=False, found=found, fix=fix, needed=False)
    if asyncio.run(is_guarding(Environment().child_environment({}))):
        return DoctorFinding(
            "processes", ok=True, found="children of a dead worker are found and ended, even detached ones"
        )
    found = "children of a dead worker are found by their environment only: one that clears it may outlive the worker"
    fix = "use Linux 5.3 or newer, where prctl(PR_SET_CHILD_SUBREAPER), pidfd_open and Unix sockets are allowed"
    return DoctorFinding("processes", ok=False, found=found, fix=fix, needed=False)
