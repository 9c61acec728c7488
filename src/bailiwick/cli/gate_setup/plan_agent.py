"""Where no detected plan is green: an agent proposes one, within bounds; it is kept only if it is green twice."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bailiwick.bundled_files import BUNDLED_FILES
from bailiwick.cli.view.port import RunView
from bailiwick.config.paths import make_private
from bailiwick.errors import StoreError
from bailiwick.gate.backends.pytest_command import read_call
from bailiwick.gate.spec import FILE, CheckSpec, GateSpec, read_gate
from bailiwick.ids import Json

if TYPE_CHECKING:
    from bailiwick.app.service import App
    from bailiwick.engine.state import State
    from bailiwick.gate.model import GateReport
    from bailiwick.gate.trying import PlanTrial

ATTEMPTS: Final = 3
"""How many plans are asked for at most."""
WORKFLOW: Final = BUNDLED_FILES / "setup" / "plan-gate"
_SHOWN = 8000
_NO_TESTS = frozenset({"true", ":", "echo", "printf", "exit", "test", "cat", "ls"})
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Hire:
    """Which agent is asked, and how often: flags of the configuration, a script where it is simulated."""

    flags: dict[str, Json] = field(default_factory=dict)
    simulate: Path | None = None
    attempts: int = ATTEMPTS


@dataclass(frozen=True, slots=True)
class ProposedPlan:
    """A plan of an agent that was green twice, with its reason."""

    spec: GateSpec
    report: GateReport
    reason: str


async def ask_for_plan(
    site: PlanTrial, first: tuple[GateSpec, GateReport], hire: Hire, say: Say
) -> ProposedPlan | None:
    """Ask for plans until one is green twice; None where none is, or where the agent gives no answer."""
    from bailiwick.app.service import open_app

    spec, report = first
    async with open_app(hire.flags, None, hire.simulate, attended=False) as app:
        for attempt in range(1, hire.attempts + 1):
            answer = await _ask(app, site, spec=spec, report=report, hire=hire)
            if answer is None:
                say(f"the agent gave no plan (attempt {attempt} of {hire.attempts})")
                return None
            spec, reason = answer
            say(f"the agent's plan, attempt {attempt} of {hire.attempts}: {reason}")
            for command in (*spec.prepare, spec.checks[0].run):
                say(f"  {' '.join(command)}")
            if fault := fault_of(spec):
                say(f"  not tried: {fault}")
                continue
            report = await site.run(spec)
            if report.verdict == "green" and (await site.run(spec)).verdict == "green":
                return ProposedPlan(spec, report, reason)
            say(f"  {report.verdict}")
    return None


def fault_of(spec: GateSpec) -> str:
    """Why a plan is not even tried: a command that runs no tests is green whatever happens. Empty for a good one."""
    words = spec.checks[0].run
    if not words or words[0].rpartition("/")[2] in _NO_TESTS:
        return "its test command runs no tests"
    return ""


def plan_of(answer: dict[str, Json], protected: tuple[str, ...]) -> GateSpec | None:
    """The gate that an answer describes, read as a file would be; None where it is no gate."""
    from bailiwick.errors import InputInvalid
    from bailiwick.service.setup import gate_text

    try:
        test = tuple(str(word) for word in answer["test"])
        prepare = tuple(tuple(str(word) for word in command) for command in answer["prepare"])
    except (KeyError, TypeError):
        return None
    kind = "pytest" if read_call(test) is not None else "command"
    checks = (CheckSpec("tests", kind, test), CheckSpec("secrets", "secret-scan"))
    spec = GateSpec(prepare=prepare, checks=checks, protected=protected)
    try:
        return replace(read_gate(gate_text(spec).encode(), FILE, "detected"), file="")
    except InputInvalid:
        return None


async def _ask(
    app: App, site: PlanTrial, spec: GateSpec, report: GateReport, hire: Hire
) -> tuple[GateSpec, str] | None:
    """One question: a run of its own, so that its money counts and `bailiwick why` can tell of it."""
    from bailiwick.cli.hosting import ForegroundOptions, host
    from bailiwick.lang.load import load
    from bailiwick.removal import sweep
    from bailiwick.runs.start import StartRequest, chosen_agents, start, starting_limits

    folder = make_private(site.where.paths.make_state() / "plans") / secrets.token_hex(6)
    try:
        await site.git_store.checkout(site.base, folder)
        loaded = load(WORKFLOW)
        params: dict[str, Json] = {
            "tree": str(folder),
            "tried": "\n".join(" ".join(words) for words in (*spec.prepare, *(check.run for check in spec.checks))),
            "output": "\n".join(check.output for check in report.checks if check.outcome != "passed")[-_SHOWN:],
            "marker": secrets.token_hex(8),
        }
        chosen = chosen_agents(hire.flags, hire.simulate)
        limits = starting_limits(app.config, loaded.graph.budget)
        runs = str(app.config.runs_dir)
        key = f"plan-{secrets.token_hex(4)}"
        started = await start(
            app.runtime,
            StartRequest(loaded, params=params, key=key, runs_dir=runs, fresh=True, limits=limits, agents=chosen),
        )
        await host(app, started.row, view=RunView(), options=ForegroundOptions(no_wait=True), notices=())
        values = _answer(await app.runtime.library.state(started.row.id))
    finally:
        await asyncio.to_thread(sweep, folder)
    found = plan_of(values, spec.protected)
    return (found, str(values.get("reason", ""))[:300]) if found is not None else None


def _answer(state: State) -> dict[str, Json]:
    """What the agent answered; nothing where the run did not come to its end."""
    out: dict[str, Json] = {}
    for name in ("prepare", "test", "reason"):
        try:
            out[name] = state.lookup("", name)
        except (KeyError, StoreError):
            return {}
    return out
