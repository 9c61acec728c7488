"""The check that is a command: its exit code decides, and a rerun on the base tells whose fault it is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bailiwick.environments.prepared import bin_folders, tool_variables
from bailiwick.gate.model import CheckResult, Finding
from bailiwick.gate.run import NOT_FOUND, CommandResult, judge
from bailiwick.gate.shown import KEPT, shown_lines
from bailiwick.ids import digest
from bailiwick.sandbox.disk import disk_words
from bailiwick.sandbox.toolchains import install_hint

if TYPE_CHECKING:
    from bailiwick.gate.port import CheckContext, Which
    from bailiwick.gate.spec import CheckSpec
    from bailiwick.processes.command import Exit

READ = 16 << 20
"""Bytes of output that are read at most; the digest is over these."""
_SHIM = b"bailiwick-shim: "


class CommandCheck:
    """Runs a command in a fresh checkout without network."""

    async def run(self, spec: CheckSpec, context: CheckContext) -> CheckResult:
        here = await try_command(spec, context, "proposed")
        there = None
        if not here.good and not here.missing and not context.cancel.is_set():
            context.show(f"{spec.name}: red; running it again on the base")
            there = await try_command(spec, context, "base")
        outcome, hint = judge(here, there)
        findings: tuple[Finding, ...] = ()
        if here.missing:
            findings = (Finding("missing-tool", f"the program '{here.missing}' is not in the sandbox"),)
            hint = install_hint(here.missing)
        return CheckResult(
            name=spec.name,
            kind=spec.kind,
            level="exit-code",
            outcome=outcome,
            command=spec.run,
            code=here.code,
            seconds=here.seconds,
            findings=findings,
            output="\n".join(here.lines),
            output_digest=here.digest,
            hint=hint,
        )


async def try_command(spec: CheckSpec, context: CheckContext, which: Which) -> CommandResult:
    """Run the command of a check once in a fresh checkout."""
    tree = await context.fresh(which)
    sandbox_spec = context.sandboxes.sandbox_spec("gate", tree, environment=context.environment)
    env = gate_variables(context, tree)
    try:
        end = await context.sandboxes.run(
            sandbox_spec, spec.run, env=env, timeout=spec.timeout, cancel=context.cancel, keep=READ
        )
    except FileNotFoundError:
        return CommandResult(NOT_FOUND, missing=spec.run[0])
    return trial_of(end, spec.run[0])


def gate_variables(context: CheckContext, tree: Path) -> dict[str, str]:
    """The environment of a command of the gate: tools of the prepared environment come before the operator's."""
    base = context.sandboxes.env(tool_variables(context.environment))
    here = tree if context.sandboxes.sandbox.name == "none" else None
    folders = [str(folder) for folder in bin_folders(context.environment, here)]
    return {**base, "PATH": ":".join([*folders, base.get("PATH", "")]), "CI": "true", "PYTHONDONTWRITEBYTECODE": "1"}


def trial_of(end: Exit, program: str) -> CommandResult:
    """What there is to know about an ended process."""
    missing = end.code == NOT_FOUND and _SHIM + program.encode() + b": not found" in end.stderr
    sandbox = KEPT if not end.stderr else KEPT - min(len(end.stderr), KEPT // 4)
    return CommandResult(
        code=None if end.cancelled else end.code,
        lines=(*shown_lines(end.stdout, sandbox), *shown_lines(end.stderr, KEPT // 4)),
        seconds=end.seconds,
        digest=digest(end.stdout + b"\0" + end.stderr),
        timed_out=end.timed_out,
        missing=program if missing else "",
        disk=disk_words(end),
    )
