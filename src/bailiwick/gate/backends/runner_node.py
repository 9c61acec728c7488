"""Runs of node:test, vitest, jest and mocha, with our reporter in the runner's own process."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bailiwick.gate.backends.ran import RanTests, code_of, timed
from bailiwick.gate.backends.runner_start import NotUnderstoodError, RunnerPlace, RunnerRequest
from bailiwick.gate.outcomes import Fault, PytestSession
from bailiwick.gate.reading import read_all
from bailiwick.gate.run import NOT_FOUND
from bailiwick.gate.runner_commands import CommandStep, node_line, read_package, read_scripts, read_steps
from bailiwick.gate.runner_records import SealedLines
from bailiwick.gate.runner_sessions import merged, read_node
from bailiwick.processes.command import Exit
from bailiwick.sandbox.spec import INNER

if TYPE_CHECKING:
    from bailiwick.gate.port import CheckContext

_JEST_CONFIG = re.compile(r"jest\.config\.\w+")


async def run_node(place: RunnerPlace, asked: RunnerRequest) -> RanTests:
    """Run the command of a check through to its end, its runner with our reporter. What it means the base says."""
    kind, context = place.spec.kind, place.context
    package = await context.read("base", "package.json") or b"{}"
    steps = read_steps(place.spec.run, read_scripts(package))
    if {step.runner for step in steps if step.runner} != {kind}:
        raise NotUnderstoodError
    tree = await context.fresh(asked.which, asked.files or None)
    entry = "" if kind == "node-test" else find_entry(kind, tree, context)
    if kind != "node-test" and not entry:
        return RanTests(PytestSession(), Exit(NOT_FOUND, b"", b"", 0.0), absent=kind)
    own_runner = kind == "jest" and await _has_own_runner(context, package)
    ends: list[Exit] = []
    sessions: list[PytestSession] = []
    for step in steps:
        if step.runner:
            line = node_line(step, entry, str(place.reporters), asked.only, own_runner=own_runner)
            end, session = await _run_step(place, step, line, tree)
            sessions.append(session)
        else:
            end = await place.start(tree, ("sh", "-c", step.text), {})
        ends.append(end)
        if end.why != "exited" or (end.code != 0 and not step.runner):
            break
    return _ran(steps, ends, sessions)


async def _run_step(place: RunnerPlace, step: CommandStep, line: str, tree: Path) -> tuple[Exit, PytestSession]:
    key = secrets.token_bytes(32)
    lines = SealedLines(key)
    with_children = "--test" in step.flags
    witnessed = step.runner == "node-test"
    adopts = with_children or step.runner in ("vitest", "jest")

    inner = ["runner"] if step.runner == "jest" else []
    said = {"adopt": adopts, "witnessed": witnessed, "takers": ["reporter", *inner], "inner": inner}

    def mark(handle: int) -> dict[str, str]:
        return {"BAILIWICK_GATE": json.dumps({"handle": handle, **said})}

    end = await place.heard(
        tree, ("sh", "-c", line), lines=lines, mark=mark, stdin=json.dumps({"key": key.hex()}).encode()
    )
    session = read_node(lines.all, lines.fault, code_of(end), own_process=with_children)
    return end, timed(session, end)


def _ran(steps: Sequence[CommandStep], ends: Sequence[Exit], sessions: Sequence[PytestSession]) -> RanTests:
    """All steps as one run: the first that ended badly decides how it ended."""
    last = next((end for end in ends if end.code != 0 or end.why != "exited"), ends[-1])
    whole = Exit(
        last.code,
        b"\n".join(end.stdout for end in ends),
        b"\n".join(end.stderr for end in ends),
        sum(end.seconds for end in ends),
        timed_out=last.timed_out,
        cancelled=last.cancelled,
        why=last.why,
    )
    session = merged(sessions) if sessions else PytestSession(exit=last.code)
    failed = next((step for step, end in zip(steps, ends, strict=False) if not step.runner and end.code != 0), None)
    if failed is not None:
        what = f"`{failed.text[:200]}`, which belongs to the command, ends with {last.code}"
        session = merged([session, PytestSession(faults=(Fault("step-failed", what),), exit=last.code)])
    missing = "node" if sessions and not session.outcomes and last.code == NOT_FOUND else ""
    absent = failed.words[0] if failed is not None and last.code == NOT_FOUND and failed.words else ""
    return RanTests(session, whole, missing=missing, absent=absent)


def find_entry(name: str, tree: Path, context: CheckContext) -> str:
    """The program of an installed package, relative to the tree; empty where it is not installed."""
    places = [tree / "node_modules"]
    places += [bind.source for bind in context.environment if bind.target == INNER / "node_modules" and not bind.write]
    for place in places:
        try:
            said = read_package((place / name / "package.json").read_bytes()).get("bin")
        except OSError:
            continue
        program = said.get(name) if isinstance(said, dict) else said
        if isinstance(program, str):
            return f"node_modules/{name}/{program.removeprefix('./')}"
    return ""


async def _has_own_runner(context: CheckContext, package: bytes) -> bool:
    """Whether jest is told to use another runner of single files than its usual one."""
    files = [path for path in await context.files("base") if _JEST_CONFIG.fullmatch(path)]
    texts = await read_all(lambda path: context.read("base", path), files)
    return any(b"testRunner" in (text or b"") for text in (*texts.values(), package))
