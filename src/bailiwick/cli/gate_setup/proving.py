"""A gate for a repository that has none: detected, tried on the base, repaired, and said why where it stays red."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from bailiwick.cli.gate_report import UNBORN, describe, introduce, shown_progress
from bailiwick.config.service import Config
from bailiwick.gate.spec import FILE, GateSpec

if TYPE_CHECKING:
    from bailiwick.cli.gate_setup.plan_agent import Hire
    from bailiwick.gate.from_config import Standing
    from bailiwick.gate.model import CheckResult, GateReport
    from bailiwick.gate.trying import PlanTrial, Tried
    from bailiwick.git.store import GitStore
    from bailiwick.ids import Json
    from bailiwick.sandbox.service import Sandboxes

Say = Callable[[str], None]
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Proven:
    """What came of it. `spec` is what would be written; `writes` says whether it is worth writing."""

    spec: GateSpec
    report: GateReport | None
    steps: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    writes: bool = False
    known_red: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Json]:
        """As a document."""
        report = self.report
        return {
            "origin": self.spec.origin,
            "verdict": report.verdict if report is not None else None,
            "gate": self.spec.to_json(),
            "repaired": list(self.steps),
            "remarks": list(self.remarks),
            "known_red": list(self.known_red),
        }


@dataclass(frozen=True, slots=True)
class Wanted:
    """How `init` was asked to prove a gate."""

    run: bool = True
    known_red: bool = False
    quiet: bool = False
    hire: Hire | None = None
    """The agent that is asked where no detected plan is green."""


async def prove_gate(config: Config, root: Path, wanted: Wanted, say: Say) -> Proven:
    """Find the gate of a repository and run it on the base; where it is only detected, repair it until it is green."""
    from bailiwick.gate.from_config import gate_for, look_at_tree
    from bailiwick.git.store import GitStore
    from bailiwick.sandbox.service import open_sandboxes

    sandboxes = await open_sandboxes(config, attended=sys.stdin.isatty())
    git_store = await GitStore.open(config.paths.make_state(), root)
    stands = await look_at_tree(config, git_store, root)
    spec = await gate_for(config, git_store, stands.base, sandboxes)
    site = _site(config, git_store, sandboxes, stands, quiet=wanted.quiet)
    if spec.origin != "detected" or not wanted.run:
        _introduce(spec, stands, site, say)
        report = await site.run(spec) if wanted.run else None
        for line in describe(report) if report is not None else ():
            say(line)
        return Proven(spec, report, writes=spec.origin == "detected")
    return await _prove(site, wanted, stands, say)


def _site(config: Config, git_store: GitStore, sandboxes: Sandboxes, stands: Standing, *, quiet: bool) -> PlanTrial:
    from bailiwick.clock import SystemClock
    from bailiwick.gate.from_config import places_of, whereabouts
    from bailiwick.gate.trying import PlanTrial

    return PlanTrial(
        git_store=git_store,
        sandboxes=sandboxes,
        places=places_of(config),
        where=whereabouts(config, git_store, sandboxes),
        base=stands.base,
        how={"cancel": asyncio.Event(), "show": shown_progress(quiet=quiet), "clock": SystemClock()},
    )


def _introduce(spec: GateSpec, stands: Standing, site: PlanTrial, say: Say) -> None:
    base = UNBORN if stands.unborn else stands.base[:12]
    for line in introduce(spec, base, site.sandboxes.sandbox.name):
        say(line)


async def _prove(site: PlanTrial, wanted: Wanted, stands: Standing, say: Say) -> Proven:
    from bailiwick.gate.spec_lookup import keep_proven
    from bailiwick.gate.trying import try_plans
    from bailiwick.service.setup import gate_text

    tried = await try_plans(site, lambda spec: _introduce(spec, stands, site, say))
    for step in tried.steps:
        say(f"repaired {step}")
    red = () if tried.green else await _red_twice(site, tried, say)
    for line in describe(tried.report):
        say(line)
    if tried.green:
        found = _kept(tried)
        keep_proven(site.where.paths.make_state(), site.where.repository, tried.detected, gate_text(found.spec))
        return found
    if wanted.hire is not None and not red:
        return await _ask_agent(site, tried, wanted.hire, say)
    for line in _advice(tried, red):
        say(line)
    if wanted.known_red and red:
        remark = f"red on the base and known: {', '.join(red)}"
        return replace(_kept(tried), remarks=(remark,), known_red=red)
    return Proven(tried.spec, tried.report, tried.steps, writes=False, known_red=red)


async def _ask_agent(site: PlanTrial, tried: Tried, hire: Hire, say: Say) -> Proven:
    """The plan of an agent, where it is green twice."""
    from bailiwick.cli.gate_setup.plan_agent import ask_for_plan
    from bailiwick.gate.spec_lookup import keep_proven
    from bailiwick.service.setup import gate_text

    found = await ask_for_plan(site, (tried.spec, tried.report), hire, say)
    if found is None:
        say(f"no plan was green twice; write {FILE} by hand")
        return Proven(tried.spec, tried.report, tried.steps, writes=False)
    for line in describe(found.report):
        say(line)
    keep_proven(site.where.paths.make_state(), site.where.repository, tried.detected, gate_text(found.spec))
    remark = f"proposed by an agent, green twice on the base: {found.reason}"
    return Proven(found.spec, found.report, tried.steps, (remark,), writes=True)


def _kept(tried: Tried) -> Proven:
    spec = replace(tried.spec, checks=tuple(replace(check, optional=False) for check in tried.spec.checks))
    remarks = tuple(f"{'proved green on the base' if tried.green else 'tried'} after: {step}" for step in tried.steps)
    return Proven(spec, tried.report, tried.steps, remarks, writes=True)


async def _red_twice(site: PlanTrial, tried: Tried, say: Say) -> tuple[str, ...]:
    """The tests that are red on the base each time; empty where it is not about tests, or where they waver."""
    first = failing_of(tried.report)
    if not first or tried.missing is not None:
        return ()
    again = failing_of(await site.run(tried.spec))
    if again == first:
        return first
    wavering = sorted(set(first) ^ set(again))
    say(f"flaky: {len(wavering)} tests are red one time and not the other: {', '.join(wavering[:5])}")
    return ()


def failing_of(report: GateReport) -> tuple[str, ...]:
    """The ids of the tests that are red on the base; empty where a check is red for another reason."""
    red = [check for check in report.checks if check.outcome != "passed"]
    if any(check.outcome != "red_on_base" or not check.failing for check in red):
        return ()
    return tuple(sorted({test for check in red for test in check.failing}))


def _advice(tried: Tried, red: tuple[str, ...]) -> Iterator[str]:
    """What to do about a plan that is not green."""
    late = [check for check in tried.report.checks if _is_late(check)]
    if late:
        yield f"out of time: {late[0].name} takes longer than its `timeout`; write {FILE} with a longer one"
    if tried.missing is not None:
        yield f"missing: {tried.missing.what}"
        yield f"  try:  {tried.missing.hint}"
    elif red:
        yield f"{len(red)} tests are red on the base each time, before any change"
        yield "  to let exactly these stay red:  bailiwick init --known-red --yes"
        named = " ".join(f"--known-red {test}" for test in red[:_SHOWN])
        yield f"  then:  bailiwick gate {named}{' …' if len(red) > _SHOWN else ''}"
    else:
        yield f"no green plan was found; write {FILE} by hand, or let an agent look:  bailiwick init --agent"


def _is_late(check: CheckResult) -> bool:
    return any(finding.code == "timeout" for finding in check.findings)
