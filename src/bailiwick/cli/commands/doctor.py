"""`bailiwick doctor`."""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import asdict
from pathlib import Path

import click

from bailiwick.config.service import load_config
from bailiwick.doctor.service import examine, look_at_fence, stated_limits, unprotected
from bailiwick.terminal.output import Printer

NOT_READY = 8


@click.command()
@click.option("--fix", is_flag=True, help="Remove what a crash left behind.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
def doctor(*, fix: bool, as_json: bool) -> int:
    """Check this machine: one line per thing, and the exact command that fixes it. The sandbox is tried for real.

    \b
    Examples:
      bailiwick doctor
      bailiwick doctor --fix
    """
    config = load_config(Path.cwd(), {})
    looked = examine(config)
    report = asyncio.run(look_at_fence(config, fix=fix))
    findings = [*looked, *report.findings]
    open_ends = [*report.unprotected, *unprotected()]
    bad = any(not f.ok and f.needed for f in findings)
    if as_json:
        rows = [asdict(f) for f in findings]
        click.echo(
            json.dumps({"ok": not bad, "checks": rows, "unprotected": open_ends, "limits": stated_limits(config)})
        )
        return NOT_READY if bad else 0
    out = Printer.on(sys.stdout)
    for finding in findings:
        mark = "✓" if finding.ok else ("✗" if finding.needed else "!")
        out.line(f"{mark} {finding.name:<10} {finding.found}", indent=13)
        if not finding.ok and finding.fix:
            out.line(f"             fix: {finding.fix}")
    out.text("\nNot protected here:")
    for line in open_ends:
        out.line(f"  - {line}")
    for line in stated_limits(config):
        out.text(f"\nLimits ({line}); change them with: bailiwick config set budget.run.usd 5")
    return NOT_READY if bad else 0
