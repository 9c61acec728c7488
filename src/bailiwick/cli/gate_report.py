"""A gate's report as lines for people, and its progress while it runs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator

from bailiwick.gate.failure_lines import reason_of
from bailiwick.gate.headline import advice, evidence, headline
from bailiwick.gate.model import CheckResult, GateReport
from bailiwick.gate.report import doubt_line, line_of
from bailiwick.gate.spec import GateSpec
from bailiwick.processes.proc import plain_line
from bailiwick.terminal.output import Printer, clean, clip, duration

UNBORN = "the work tree itself, as there is no commit yet"
_MARKS = {"passed": "✓", "failed": "✗", "environment": "!", "red_on_base": "✗"}
_SHOWN = 20
_LINES = 40
LONGEST = 400


def shown_progress(*, quiet: bool) -> Callable[[str], None]:
    """Says what goes on, one plain line for each phase, on standard error; also where that is no terminal."""

    def show(text: str) -> None:
        if not quiet:
            Printer.on(sys.stderr).line(f"  … {plain_line(text.encode())}")

    return show


def introduce(spec: GateSpec, base: str, sandbox: str) -> Iterator[str]:
    """What is going to be checked, and who said so."""
    source = {"operator": spec.file, "base": f"{spec.file} of the base commit", "detected": "detected (no gate.yaml)"}
    yield f"gate     {source[spec.origin]}"
    yield f"base     {base}"
    yield f"sandbox  {sandbox}"
    if spec.prepare:
        yield f"prepare  {'; '.join(' '.join(command) for command in spec.prepare)}"
    for check in spec.checks:
        yield f"check    {check.name}: {' '.join(check.run) or check.kind}"
    for note in spec.notes:
        yield str(note).replace("\n  try:", "; try:")


def describe(report: GateReport) -> Iterator[str]:
    """A report for people: what was allowed or reverted first, then every check, the verdict and what to do."""
    return (clip(clean(line), LONGEST) for line in _describe(report))


def _describe(report: GateReport) -> Iterator[str]:
    yield from _protected(report)
    for check in report.checks:
        yield from _about(check)
    if report.without:
        yield "without what was allowed:"
        for check in report.without:
            yield f"  {_MARKS[check.outcome]} {check.name}: {check.outcome.replace('_', ' ')}"
    for finding in (*report.findings, *report.weakening)[:_SHOWN]:
        yield f"{'✗' if finding.blocks else '!'} {line_of(finding)}"
    yield from _doubts(report)
    yield from _evidence(report)
    for line in report.unprotected:
        yield f"not protected  {line}"
    yield f"gate: {headline(report)}   (report {report.digest[:12]}, {duration(report.seconds)})"
    for line in advice(report):
        yield f"  {line}"


def _protected(report: GateReport) -> Iterator[str]:
    """The changes to protected paths, those first that a person approved."""
    for part in sorted(report.taken, key=lambda part: not part.allowed)[:_SHOWN]:
        yield f"! {'allowed' if part.allowed else 'reverted (protected)'}  {part.path} ({part.change}; {part.rule})"
    if len(report.taken) > _SHOWN:
        yield f"! and {len(report.taken) - _SHOWN} more changes to protected paths"


def _doubts(report: GateReport) -> Iterator[str]:
    """What a person has to look at, with the hunk, or what was approved beforehand."""
    for doubt in report.doubts[:_SHOWN]:
        yield f"! {'needs your approval' if report.verdict == 'needs_person' else 'look at'}  {doubt_line(doubt)}"
        for line in doubt.patch.splitlines()[:_LINES]:
            yield f"    {line}"


def _evidence(report: GateReport) -> Iterator[str]:
    """Which tests show the change, in the right words: new ones are called new, healed ones healed."""
    for number, line in enumerate(evidence(report)):
        yield f"{'' if number else 'evidence':<10} {line}"


def _about(check: CheckResult) -> Iterator[str]:
    counts = ", ".join(f"{number} {name.removesuffix('s') if number == 1 else name}" for name, number in check.counts)
    facts = ", ".join(part for part in (check.level, counts, duration(check.seconds)) if part)
    yield f"{_MARKS[check.outcome]} {check.name}: {check.outcome.replace('_', ' ')} ({facts})"
    for finding in check.findings[:_SHOWN]:
        yield f"    {line_of(finding)}"
    if check.outcome != "passed":
        for line in check.output.splitlines()[-_LINES:]:
            yield f"    {line}"
        for test in check.failing[:_SHOWN]:
            why = reason_of(check, test)
            yield f"    fails: {test}" + (f"  ({why})" if why else "")
    if check.hint:
        yield f"    try: {check.hint}"
