"""The later acts of the demonstration: an issue becomes a proposal after one red gate, and a cheat is found out."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass, field, replace
from pathlib import Path

from bailiwick.demo.service import Say, events_of
from bailiwick.errors import NotReady
from bailiwick.ids import Json
from bailiwick.pipelines.model import ISSUE_TO_PR
from bailiwick.pipelines.simulation import Play, SimulatedRepository, staged

_VERDICTS = {"green": "✓ green", "red": "✗ red", "needs_person": "needs a person", "environment": "could not be run"}


@dataclass(slots=True)
class Act:
    """What was seen of one act: verdicts of the gate in order, the proposal's branch, why there is none, the code."""

    code: int = 0
    verdicts: list[str] = field(default_factory=list)
    branch: str = ""
    reason: str = ""
    skipped: str = ""


def perform_act(folder: Path, play: Play, flags: tuple[str, ...], say: Say) -> Act:
    """Give one play in `folder`, with the real command and the real gate; where it can't be had it is left out.

    All acts share a home, so that what is known of the project's base is looked at once.
    """
    try:
        with staged(ISSUE_TO_PR, play, folder) as stage:
            return _given(replace(stage, home=folder.parent / "acts"), flags, say)
    except NotReady as error:
        say("left out", f"{error.what}; {error.hint}")
        return Act(skipped=error.what)


def _given(stage: SimulatedRepository, flags: tuple[str, ...], say: Say) -> Act:
    act = Act()
    command = stage.command(ISSUE_TO_PR, (*flags, "--events"))
    with subprocess.Popen(
        command,
        cwd=stage.repository,
        env=stage.environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        for event in events_of(process):
            _see(event, act, say)
        said = process.stderr.read() if process.stderr else ""
    act.code = process.returncode
    if act.code == NotReady.exit_code:
        act.skipped = said.strip().splitlines()[-1] if said.strip() else "not ready"
        say("left out", act.skipped)
    return act


def _see(event: dict[str, Json], act: Act, say: Say) -> None:
    """One line for what people care about."""
    match event["type"], event.get("node"):
        case "EffectStarted", "implement":
            say("agent", "reads the issue and changes the code, in a worktree of its own")
        case "EffectStarted", "fix":
            say("agent", "is told what failed, and tries again")
        case "StepPassed", "verdict":
            act.verdicts.append(str(event["value"]))
            say("gate", _VERDICTS.get(act.verdicts[-1], act.verdicts[-1]))
        case "EffectFinished", _:
            proposal = (event.get("outputs") or {}).get("proposal")
            if isinstance(proposal, dict) and "branch" in proposal:
                act.branch = str(proposal["branch"])
                say("proposes", f"{act.branch}: gate passed, proposing, NOT merging")
        case "RunFinished", _:
            act.reason = str(event.get("reason") or "")
        case _:
            pass
