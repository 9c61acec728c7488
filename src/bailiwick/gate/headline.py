"""A gate report in one line for a person, and what to do next. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from bailiwick.gate.failure_lines import reason_of
from bailiwick.gate.model import CheckResult, Finding, GateReport
from bailiwick.gate.report import doubt_line, line_of, red_checks
from bailiwick.processes.proc import plain_line
from bailiwick.terminal.output import counted

NAMED = 3
"""Paths that a headline names one by one."""
LONGEST = 400
"""Characters of a headline."""
LISTED = 10
"""Failing tests, findings and doubts that are listed below a headline."""


def headline(report: GateReport) -> str:
    """The verdict and the first reason for it, in one line."""
    makers = {"green": _green, "red": _red, "needs_person": _needs_person, "environment": _not_run}
    return _one_line(makers[report.verdict](report))


def told(report: GateReport) -> str:
    """The headline, for a green report with what it rests on: how many tests, and which of them show the change."""
    if report.verdict != "green":
        return headline(report)
    passed = sum(number for check in report.checks for name, number in check.counts if name == "passed")
    tests = [counted(passed, "test")] if passed else []
    return _one_line("; ".join([", ".join([headline(report), *tests]), *list(evidence(report))[-1:]]))


def details(report: GateReport) -> tuple[str, ...]:
    """What backs a headline up, a line each: failing tests with why and where, findings, doubts; none where green."""
    if report.verdict == "green":
        return ()
    lines = [line for check in _ordered(report) for line in (*_failures(check), *map(line_of, _blocking(check)))]
    lines += [line_of(finding) for finding in (*report.findings, *report.weakening) if finding.blocks]
    lines += [doubt_line(doubt) for doubt in report.doubts]
    return tuple(dict.fromkeys(map(_one_line, lines)))[:LISTED]


def reverted(report: GateReport) -> tuple[str, ...]:
    """The protected paths whose changes were reverted."""
    return tuple(part.path for part in report.taken if not part.allowed)


def evidence(report: GateReport) -> Iterator[str]:
    """Which tests show that the change matters and what it fixes, a line each; new and healed tests are told apart."""
    if report.unexercised:
        yield report.unexercised
    elif report.exercised:
        verb = "exercises" if len(report.exercised) == 1 else "exercise"
        yield f"{counted(len(report.exercised), 'test')} {verb} this change: {_listed(report.exercised)}"
    if report.proof:
        what = "1 new test fails" if len(report.proof) == 1 else f"{len(report.proof)} new tests fail"
        does = "passes" if len(report.proof) == 1 else "pass"
        yield f"{what} on the base and {does} here: {_listed(report.proof)}"
    if report.healed:
        was, does = ("was", "passes") if len(report.healed) == 1 else ("were", "pass")
        tests = counted(len(report.healed), "test")
        yield f"{tests} that {was} red on the base {does} now: {_listed(report.healed)}"
    if report.unproven and not report.proof and not report.healed:
        yield report.unproven


def _green(report: GateReport) -> str:
    return f"green, but {report.unexercised}" if report.unexercised else "green"


def _red(report: GateReport) -> str:
    said = next(iter(_red_reasons(report)), "no check is red by itself")
    out = reverted(report)
    return f"red: {said}" + (f"; reverted (protected): {_listed(out)}" if out else "")


def _red_reasons(report: GateReport) -> Iterator[str]:
    for check in _ordered(report):
        yield _red_check(check)
    for finding in (*report.findings, *report.weakening):
        if finding.blocks:
            yield line_of(finding)


def _ordered(report: GateReport) -> list[CheckResult]:
    """The checks that are red, those first that are so because of the change."""
    return sorted(red_checks(report), key=lambda check: check.outcome == "red_on_base")


def _red_check(check: CheckResult) -> str:
    found = [line_of(finding) for finding in _blocking(check)]
    if check.failing:
        first = check.failing[0]
        why = reason_of(check, first)
        more = f" (and {len(check.failing) - 1} more)" if len(check.failing) > 1 else ""
        base = " on the base too" if check.outcome == "red_on_base" else ""
        said = f"{first} fails{base}{f': {why}' if why else ''}{more}"
        return "; ".join([said, *found[:1]])
    if found:
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        return f"{check.name}: {found[0]}{more}"
    last = next((line.strip() for line in reversed(check.output.splitlines()) if line.strip()), "")
    how = f"exits with {check.code}" if check.code is not None else "fails"
    return f"{check.name} {how}" + (f": {last}" if last else "")


def _blocking(check: CheckResult) -> list[Finding]:
    return [finding for finding in check.findings if finding.blocks]


def _failures(check: CheckResult) -> Iterator[str]:
    for test in check.failing[:LISTED]:
        why = reason_of(check, test)
        yield f"{test} fails" + (f": {why}" if why else "")


def _needs_person(report: GateReport) -> str:
    if report.doubts:
        more = f" (and {len(report.doubts) - 1} more)" if len(report.doubts) > 1 else ""
        return f"needs you: {doubt_line(report.doubts[0])}{more}"
    return f"needs your approval for {_listed(report.wanted)} (protected)"


def _not_run(report: GateReport) -> str:
    check = next((check for check in report.checks if check.outcome == "environment"), None)
    if check is None:
        return "not run: the environment failed"
    what = "; ".join(finding.what for finding in check.findings[:1]) or f"{check.name} could not be run"
    return f"not run: {what}" + (f"; {check.hint}" if check.hint else "")


def _one_line(text: str) -> str:
    """Bounded, and without anything that acts on a terminal: parts of it were written by agents and their tests."""
    return plain_line(" ".join(text.split()).encode("utf-8", "replace"), LONGEST)


def _listed(paths: tuple[str, ...]) -> str:
    more = f" and {len(paths) - NAMED} more" if len(paths) > NAMED else ""
    return ", ".join(paths[:NAMED]) + more


def advice(report: GateReport) -> Iterator[str]:
    """What a person who ran the gate can do now, a line each."""
    allow = " ".join(f"--allow {path}" for path in (report.wanted or reverted(report))[:NAMED])
    if report.verdict == "needs_person" and allow:
        yield f"to approve:  bailiwick gate {allow}"
    elif report.verdict == "red":
        if any(check.outcome == "failed" for check in report.checks):
            yield "next:  fix the code and run it again, or let an agent try:  bailiwick self-heal"
        if any(check.outcome == "red_on_base" for check in report.checks):
            yield "red on the base too:  bailiwick self-heal, or name what may stay red:  bailiwick gate --allow-red ID"
        if allow:
            yield f"to keep the reverted changes:  bailiwick gate {allow}"
    elif report.verdict == "environment":
        yield "your change was not tested: repair this first, then run it again"
