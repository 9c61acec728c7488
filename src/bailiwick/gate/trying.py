"""Finds a plan that is green on the base: tries what was detected, reads why it fails, and repairs it a few times."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bailiwick.gate.detection.draft import PlanAdditions
from bailiwick.gate.detection.missing import MissingPart, missing_at_collection
from bailiwick.gate.optional import is_left_out
from bailiwick.gate.service import GateOptions, GatePlaces, GateRequest, run_gate
from bailiwick.gate.spec_lookup import SpecLookup, detect_spec, protected_by

if TYPE_CHECKING:
    from bailiwick.gate.model import CheckResult, GateReport
    from bailiwick.gate.spec import GateSpec
    from bailiwick.git.store import GitStore
    from bailiwick.sandbox.service import Sandboxes

REPAIRS = 3
"""How often a plan is changed at most."""
_MANIFESTS = (".toml", ".cfg", ".ini", ".txt", ".in", "setup.py", "noxfile.py")


@dataclass(frozen=True, slots=True)
class PlanTrial:
    """Where a plan is tried: the base itself, in the sandbox of the gate."""

    git_store: GitStore
    sandboxes: Sandboxes
    places: GatePlaces
    where: SpecLookup
    base: str
    how: GateOptions

    async def run(self, spec: GateSpec) -> GateReport:
        """The gate on the base itself."""
        ask = GateRequest(self.base, await self.git_store.tree_of(self.base))
        return await run_gate(
            ask, spec, git_store=self.git_store, sandboxes=self.sandboxes, places=self.places, **self.how
        )


@dataclass(frozen=True, slots=True)
class Tried:
    """The last plan that was tried and its report; `detected` is the first guess, `steps` say what was repaired."""

    detected: GateSpec
    spec: GateSpec
    report: GateReport
    steps: tuple[str, ...] = ()
    missing: MissingPart | None = None
    """What is missing still, where that is known."""

    @property
    def green(self) -> bool:
        """Whether the plan holds."""
        return self.report.verdict == "green"


async def try_plans(site: PlanTrial, show: Callable[[GateSpec], None]) -> Tried:
    """Try what is detected, and repair it at most three times; the first plan is kept where none becomes green."""
    additions = PlanAdditions()
    detected = await _planned(site, additions)
    show(detected)
    tried = best = await _try(site, detected, detected, ())
    seen = {detected.prepare}
    for _ in range(REPAIRS):
        if tried.green:
            return tried
        wanted, why = next_additions(additions, tried)
        if wanted is None or site.how["cancel"].is_set():
            break
        spec = await _planned(site, wanted)
        if spec.prepare in seen and not wanted.unittest:
            wanted, why = _last_resort(additions, tried)
            if wanted is None:
                break
            spec = await _planned(site, wanted)
        seen.add(spec.prepare)
        additions = wanted
        site.how["show"](f"repairing: {why}")
        tried = await _try(site, detected, spec, (*tried.steps, why))
        best = tried if _reached(tried.report) > _reached(best.report) else best
    return tried if tried.green else best


async def _planned(site: PlanTrial, additions: PlanAdditions) -> GateSpec:
    spec = await detect_spec(site.git_store, site.base, site.where, additions)
    return replace(spec, protected=protected_by(spec, site.where))


async def _try(site: PlanTrial, detected: GateSpec, spec: GateSpec, steps: tuple[str, ...]) -> Tried:
    report = await site.run(spec)
    left = {check.name for check in report.checks if is_left_out(check)}
    if left:
        spec = replace(spec, checks=tuple(check for check in spec.checks if check.name not in left))
    return Tried(detected, spec=spec, report=report, steps=steps, missing=await _missing(site, spec, report))


async def _missing(site: PlanTrial, spec: GateSpec, report: GateReport) -> MissingPart | None:
    """What the tests lacked, by their output."""
    red = [check for check in report.checks if check.outcome != "passed" and check.name == "tests"]
    if not red:
        return None
    files = await site.git_store.files(site.base)
    texts = await site.git_store.blobs(
        site.base, [path for path in files if path.endswith(_MANIFESTS) and path.count("/") < 2]
    )
    told = {path: data.decode("utf-8", "replace") for path, data in texts.items()}
    uses_uv = any(command[:2] == ("uv", "pip") for command in spec.prepare)
    installer = ("uv", "pip", "install") if uses_uv else (".venv/bin/python", "-m", "pip", "install")
    return missing_at_collection(told, red[0].output, tree_files=files, installer=installer)


def next_additions(additions: PlanAdditions, tried: Tried) -> tuple[PlanAdditions | None, str]:
    """What to ask of the next plan after one that was not green, and why; None where nothing is known to help."""
    failed = next((check for check in tried.report.checks if check.name == "prepare"), None)
    if failed is not None:
        return _after_failed_install(additions, tried, failed)
    missing = tried.missing
    if missing is None:
        return _last_resort(additions, tried)
    if missing.kind == "file":
        return None, ""
    if additions.level == 0 and not additions.split and missing.kind == "module":
        return replace(additions, level=1), f"{missing.what}; with everything that the project's runners install"
    if missing.known and missing.requirement not in additions.add:
        return replace(
            additions, add=(*additions.add, missing.requirement)
        ), f"{missing.what}; with {missing.requirement}"
    return None, ""


def _after_failed_install(
    additions: PlanAdditions, tried: Tried, failed: CheckResult
) -> tuple[PlanAdditions | None, str]:
    """The joint install fails: piece by piece. A piece fails: without it. The wider plan fails: the narrow one."""
    what = failed.findings[0].what if failed.findings else ""
    if additions.level:
        narrow = tried.steps and replace(additions, level=0, split=False)
        return (narrow or None), "what the project's runners install can't be installed together"
    if not additions.split:
        return replace(additions, split=True), "not all of it can be installed together; piece by piece"
    pieces = {shlex.join(command): command for command in tried.spec.prepare}
    command = next((words for text, words in pieces.items() if text in what or " ".join(words) in what), ())
    dropped = [word for word in command[-1:] if word != "." and not word.startswith("-")]
    if dropped and dropped[0].startswith(".["):
        dropped = [f"extra {extra}" for extra in dropped[0][2:-1].split(",")]
    if not dropped or set(dropped) <= set(additions.without):
        return None, ""
    return replace(
        additions, without=(*additions.without, *dropped)
    ), f"without {', '.join(dropped)}, which can't be installed"


def _last_resort(additions: PlanAdditions, tried: Tried) -> tuple[PlanAdditions | None, str]:
    """The runner that comes with Python, where the tests can do without pytest and pytest could not run them."""
    red = [check for check in tried.report.checks if check.name == "tests" and check.kind == "pytest"]
    ran = any(dict(check.counts).get("passed") for check in red)
    if red and not ran and not additions.unittest:
        return replace(additions, unittest=True), "pytest could not run the tests; with unittest"
    return None, ""


def _reached(report: GateReport) -> tuple[int, int]:
    """How far a plan got: the environment, then how many tests passed."""
    prepared = not any(check.name == "prepare" for check in report.checks)
    passed = sum(dict(check.counts).get("passed", 0) for check in report.checks)
    return int(prepared), passed
