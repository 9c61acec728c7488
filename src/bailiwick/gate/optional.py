"""Linters that were only detected: they count where they are green on the base, else they are left out and named."""

from __future__ import annotations

from dataclasses import replace

from bailiwick.gate.model import CheckResult, Finding
from bailiwick.gate.spec import CheckSpec

LEFT_OUT = "left-out"


def excuse(spec: CheckSpec, result: CheckResult) -> CheckResult:
    """The result of an optional check that is red or missing on the base too: passed, with a note that says so."""
    missing = any(finding.code == "missing-tool" for finding in result.findings)
    if not spec.optional or not (missing or result.outcome in ("red_on_base", "environment")):
        return result
    why = "is not in the sandbox" if missing else "is red on the base too"
    what = f"{spec.run[0]} is configured and {why}: it is left out of the detected gate"
    return replace(result, outcome="passed", findings=(Finding(LEFT_OUT, what, blocks=False),), output="")


def is_left_out(result: CheckResult) -> bool:
    """Whether a check was left out."""
    return any(finding.code == LEFT_OUT for finding in result.findings)
