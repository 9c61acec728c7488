"""Runs the bundled workflow with the real command, kills it in the middle, runs it again, and says what was kept.

Later acts: an issue becomes a proposal after one red gate, and a cheat is found out.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from bailiwick.bundled_files import BUNDLED_FILES
from bailiwick.config.variables import child_environment
from bailiwick.errors import InternalBug, NotReady
from bailiwick.ids import Json
from bailiwick.pipelines.model import ISSUE_TO_PR
from bailiwick.pipelines.simulation import Play, SimulatedRepository, staged

WORKFLOW = BUNDLED_FILES / "workflows" / "demo"
KILL_IN = "report"
Say = Callable[[str, str], None]
_VERDICTS = {"green": "✓ green", "red": "✗ red", "needs_person": "needs a person", "environment": "could not be run"}


@dataclass(slots=True)
class DemoRecord:
    """What was seen: events of both walks, and what the scripts themselves wrote down."""

    first: list[dict[str, Json]] = field(default_factory=list)
    second: list[dict[str, Json]] = field(default_factory=list)
    effects: Counter[str] = field(default_factory=Counter)
    report: str = ""
    code: int = 0

    @property
    def kept(self) -> int:
        """Steps that were durable when the machine died."""
        return sum(e["type"] in ("StepDone", "StepPassed") for e in self.first)

    @property
    def reentered(self) -> int:
        """Effects that had only begun."""
        return sum(e["type"] == "EffectLost" for e in self.second)

    @property
    def repeated(self) -> list[str]:
        """Finished effects that ran again: must be empty."""
        finished = {e["key"] for e in self.first if e["type"] == "EffectFinished" and not e.get("failure")}
        again = {e["key"] for e in self.second if e["type"] == "EffectStarted"}
        return sorted(finished & again)


def play(home: Path, say: Say) -> DemoRecord:
    """Play the demonstration below `home`."""
    tale = DemoRecord()
    script = str(WORKFLOW / "simulate.yaml")
    command = [sys.executable, "-m", "bailiwick", "run", str(WORKFLOW), "--events", "--simulate", script]
    process = _start(command, home)
    for event in _events(process):
        tale.first.append(event)
        _tell(event, say)
        if event["type"] == "EffectStarted" and event["node"] == KILL_IN:
            process.send_signal(signal.SIGKILL)
    process.wait()
    say("kill -9", f"our own worker (pid {process.pid}), in the middle of '{KILL_IN}'")
    process = _start(command, home)
    for event in _events(process):
        tale.second.append(event)
        _tell(event, say)
    tale.code = process.wait()
    _inspect(tale, home)
    return tale


def _start(command: list[str], home: Path) -> subprocess.Popen[str]:
    env = child_environment({"BAILIWICK_HOME": str(home), "AGENT_INVOKE_BACKOFF_BASE_S": "1"})
    return subprocess.Popen(
        command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=home
    )


def _events(process: subprocess.Popen[str]) -> Iterator[dict[str, Json]]:
    """What a command with `--events` says; what is no event, or cut off, is passed over."""
    if process.stdout is None:
        raise InternalBug("the demonstration has no output to read")
    for line in process.stdout:
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if isinstance(event, dict) and "type" in event:
            yield event


def _tell(event: dict[str, Json], say: Say) -> None:
    """One line for what people care about."""
    match event["type"]:
        case "StepPassed" if event.get("value") is not None:
            say("decides", f"{event['node']}: {event['value']} → {event['next']}")
        case "ScopesForked":
            say("fans out", f"{event['node']}: {len(event['members'])} items, 2 at a time")
        case "StepDone":
            say("✓", f"{event['scope']}/{event['node']}" if event["scope"] else str(event["node"]))
        case "WaitOpened":
            kind = "tries again" if event["kind"] == "retry" else "waits"
            say(kind, f"{event['node']}: {event.get('body', {}).get('failure') or 'durably, on disk'}")
        case "EffectStarted" if event.get("rung") == "reask":
            say("asks again", f"{event['node']}: the answer was not JSON; asked for that alone, in the same session")
        case "EffectLost":
            say("again", "the same command; what had only begun is entered again with the same key")
        case _:
            pass


def _inspect(tale: DemoRecord, home: Path) -> None:
    """Read what the scripts wrote down in the workspace: the proof is theirs, not ours."""
    logs = sorted((home / "state" / "workspaces").glob("*/effects.log"))
    for log in logs:
        tale.effects.update(line.split()[0] for line in log.read_text().splitlines())
        report = log.with_name("report.txt")
        tale.report = report.read_text().strip() if report.exists() else ""


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
        for event in _events(process):
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
