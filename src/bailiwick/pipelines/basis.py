"""The base that work starts from, as the gate sees it: what is checked, with which environment, and how it stands."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from bailiwick.clock import Clock
from bailiwick.config.service import Config
from bailiwick.environments.prepared import Recipe, prepare_environment
from bailiwick.errors import NotReady
from bailiwick.gate.from_config import gate_for, places_of
from bailiwick.gate.model import CheckResult, GateReport
from bailiwick.gate.nodes import document_of
from bailiwick.gate.report import red_checks, without_tool
from bailiwick.gate.run import verdict_of
from bailiwick.gate.service import GateOptions, base_report, environment_builder
from bailiwick.gate.spec import GateSpec
from bailiwick.git.store import GitStore
from bailiwick.ids import Json
from bailiwick.pipelines.model import PreflightLine
from bailiwick.pipelines.preflight import red_base
from bailiwick.sandbox.service import Sandboxes

CANT_RUN = "BW484"


@dataclass(frozen=True, slots=True)
class BaseCheck:
    """A base that was looked at. `names` are paths of a worktree that the environment is bound over."""

    spec: GateSpec
    report: GateReport
    environment: str
    names: tuple[str, ...]

    @property
    def failing(self) -> tuple[str, ...]:
        """What is red: the ids of tests where a check knows them, else the name of the check."""
        return tuple(name for check in red_checks(self.report) for name in (check.failing or (check.name,)))

    @property
    def _shown(self) -> tuple[str, ...]:
        """What is red, for people: a check that knows no tests says its last words."""
        return tuple(
            line
            for check in red_checks(self.report)
            for line in (check.failing or (f"{check.name}: {_last_words(check) or 'red'}",))
        )

    def require_green(self, known_red: Sequence[str], command: str = "the same command with") -> None:
        """Raise `NotReady` unless the base is green, or red in exactly what a person said may be."""
        self.require_known()
        if verdict_of(self.report.checks, known_red) != "green" and not set(self.failing) <= set(known_red):
            raise red_base(self._shown, command)

    def require_known(self) -> None:
        """Raise `NotReady` where the gate could not be run as a whole: no agent can repair that."""
        if self.report.verdict == "environment":
            first = next((check for check in self.report.checks if check.outcome == "environment"), None)
            what = first.findings[0].what if first and first.findings else "the environment failed"
            output = f"\n{first.output}" if first and first.output else ""
            raise NotReady(
                f"the gate can't be run here: {what}{output}",
                hint=(first.hint if first else "") or "bailiwick gate shows more",
                code=CANT_RUN,
            )
        if missing := without_tool(self.report):
            what = "; ".join(f"{check.name}: {finding.what}" for check in missing for finding in check.findings[:1])
            hints = "; ".join(dict.fromkeys(check.hint for check in missing if check.hint))
            raise NotReady(f"the gate can't be run here: {what}", hint=hints or "install it", code=CANT_RUN)

    def outputs(self) -> dict[str, Json]:
        """What a gate node would give back for the base itself."""
        return document_of(self.report)


@dataclass(frozen=True, slots=True)
class BaseInspector:
    """From where a base is looked at."""

    config: Config
    git_store: GitStore
    sandboxes: Sandboxes
    clock: Clock
    cancel: asyncio.Event = field(default_factory=asyncio.Event)
    show: Callable[[str], None] = lambda _: None

    async def spec(self, commit: str) -> GateSpec:
        """What is checked for work on a commit."""
        return await gate_for(self.config, self.git_store, commit, self.sandboxes)

    async def look(self, commit: str, spec: GateSpec) -> BaseCheck:
        """Run the gate on a commit itself, or take what is known of it, and prepare its environment."""
        how: GateOptions = {"cancel": self.cancel, "show": self.show, "clock": self.clock}
        places = places_of(self.config)
        report = await base_report(
            commit, spec, git_store=self.git_store, sandboxes=self.sandboxes, places=places, **how
        )
        if report.verdict == "environment":
            return BaseCheck(spec, report, "", ())
        builder = environment_builder(self.git_store, self.sandboxes, places, **how)
        environment = await prepare_environment(Recipe(spec.prepare, spec.copy), commit, builder)
        return BaseCheck(spec, report, environment.digest, environment.names)


def _last_words(check: CheckResult) -> str:
    told = [finding.what for finding in check.findings if finding.what] or check.output.strip().splitlines()[-1:]
    return "; ".join([*told[:3], *([check.hint] if check.hint else [])])


def gate_line(spec: GateSpec) -> PreflightLine:
    """The gate in a line."""
    origin = {"operator": f"yours ({spec.file})", "base": spec.file, "detected": "detected, as there is no gate.yaml"}
    checks = ", ".join(f"{check.name} ({' '.join(check.run) or check.kind})" for check in spec.checks)
    return PreflightLine("gate", f"{origin[spec.origin]}: {checks or 'nothing to check'}")
