"""What doctor says of the sandbox: which sandbox works, what was tried from inside, and what a crash left behind."""

from __future__ import annotations

from dataclasses import dataclass

from bailiwick.clock import SystemClock
from bailiwick.config.service import Config
from bailiwick.doctor.finding import DoctorFinding
from bailiwick.errors import BailiwickError


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
    from bailiwick.sandbox.service import open_fence

    try:
        fence = await open_fence(config, attended=True)
        standing = await fence.look()
    except BailiwickError as error:
        return (DoctorFinding("sandbox", ok=False, found=error.what, fix=error.hint, needed=False),), ()
    works = fence.sandbox.name != "none"
    first = DoctorFinding("sandbox", works, standing.found, standing.fix, needed=False)
    if not works:
        return (first,), standing.unprotected
    probes = await self_test(fence)
    leaks = [probe for probe in probes if not probe.protected]
    words = f"{len(probes)} attempts from inside, {len(probes) - len(leaks)} failed as they should"
    tried = DoctorFinding("self-test", not leaks, words, "; ".join(f"{p.name}: {p.found}" for p in leaks))
    return (first, tried), standing.unprotected


async def _leftovers(config: Config, *, fix: bool) -> DoctorFinding:
    from bailiwick.git.worktrees import Worktrees

    state = config.paths.state
    if not (state / "worktrees").is_dir():
        return DoctorFinding("worktrees", ok=True, found="none is left over")
    try:
        alive = await _unfinished(config)
    except BailiwickError as error:
        return DoctorFinding("worktrees", ok=False, found=f"can't be told: {error.what}", fix=error.hint, needed=False)
    worktrees = Worktrees(state, SystemClock())
    orphans = await worktrees.orphans(lambda run: run in alive)
    if fix:
        for orphan in orphans:
            await worktrees.discard(orphan)
    if not orphans:
        return DoctorFinding("worktrees", ok=True, found=f"none is left over, {len(await worktrees.list())} in use")
    if fix:
        return DoctorFinding("worktrees", ok=True, found=f"{len(orphans)} left over, removed")
    listed = ", ".join(f"{orphan.path.name} ({orphan.why})" for orphan in orphans[:5])
    found = f"{len(orphans)} left over: {listed}"
    return DoctorFinding("worktrees", ok=False, found=found, fix="bailiwick doctor --fix", needed=False)


def _environments(config: Config) -> DoctorFinding:
    """Remove environments that nobody used for longer than they are kept."""
    from bailiwick.environments.prepared import sweep_environments

    gone = sweep_environments(config.paths.cache, float(config.get("retention.environments")), SystemClock().now())
    return DoctorFinding("prepared", ok=True, found=f"{len(gone)} environments were unused for too long, removed")


async def _unfinished(config: Config) -> frozenset[str]:
    """The runs that may still want their worktree: all but those that are done."""
    from bailiwick.journal.sqlite import SqliteStore

    path = config.paths.state / "bailiwick.db"
    if not path.is_file():
        return frozenset()
    store = await SqliteStore.open(path, now=SystemClock().now)
    try:
        return frozenset(row.id for row in await store.runs() if row.status != "done")
    finally:
        await store.close()
