"""Gate reports: kept by their digest, put into words for the agent and for people, told apart by their signature."""

from __future__ import annotations

import json
import os
import secrets
import textwrap
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from bailiwick.config.paths import make_private
from bailiwick.durable import sync_folder
from bailiwick.errors import NotFound
from bailiwick.gate.failure_lines import reason_of
from bailiwick.gate.model import CheckResult, Doubt, Finding, GateReport, read_report
from bailiwick.gate.run import is_blocked
from bailiwick.ids import Json, canonical, digest

FOLDER = "gates"
MISSING_TOOL = "missing-tool"
"""The code of a finding: the program of a check is not here."""
FOR_AGENT = 24 * 1024
"""Characters of failing output that an agent is given."""
_LISTED = 40
_OUTPUT_OF_ONE = 8 * 1024
_HUNK = 2_000


def store_report(state: Path, report: GateReport) -> str:
    """Keep a report for good; its digest. What is there already is the same."""
    folder = make_private(make_private(state) / FOLDER)
    name = report.digest
    write_document(folder / f"{name}.json", report.to_json())
    return name


def write_document(path: Path, document: Json) -> None:
    """Write a document so that it is there whole or not at all."""
    made = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with made.open("xb") as stream:
            stream.write(canonical(document).encode("utf-8", "surrogatepass"))
            stream.flush()
            os.fsync(stream.fileno())
        made.rename(path)
    finally:
        with suppress(FileNotFoundError):
            made.unlink()
    sync_folder(path.parent)


def load_report(state: Path, name: str) -> GateReport:
    """A kept report, by its digest or the beginning of it; raises `NotFound`."""
    folder = state / FOLDER
    found = sorted(folder.glob(f"{name}*.json")) if name.isalnum() else []
    if len(found) != 1:
        raise NotFound(f"there is no gate report '{name}'", hint="give its digest, or enough of its beginning")
    report = read_document(found[0])
    if report is None or not _is_whole(found[0]):
        raise NotFound(f"the gate report '{name}' was changed or can't be read", hint="run the gate again")
    return report


def _is_whole(path: Path) -> bool:
    """Whether a kept report is what it was: its name is the digest of its bytes, whichever version wrote it."""
    return digest(path.read_bytes()) == path.stem


def read_document(path: Path) -> GateReport | None:
    """The report in a file; None where there is none that can be read."""
    try:
        return read_report(json.loads(path.read_bytes().decode("utf-8", "surrogatepass")))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def signature(report: GateReport) -> str:
    """What tells "the same failure with the same diff" from progress: the tree as asked for, and what is red in it."""
    red = sorted([c.name, c.outcome, c.code, sorted(c.failing), sorted(_words(c))] for c in red_checks(report))
    return digest(canonical({"base": report.base, "asked": report.asked, "red": red}))[:40]


def _words(check: CheckResult) -> set[str]:
    return {f"{f.code} {f.path} {f.what}" for f in check.findings if f.blocks}


def without_tool(report: GateReport) -> tuple[CheckResult, ...]:
    """The checks that could not be run since their program is not here; each has a hint how to install it."""
    return tuple(c for c in report.checks if any(finding.code == MISSING_TOOL for finding in c.findings))


def red_checks(report: GateReport) -> tuple[CheckResult, ...]:
    """The checks because of which a report is not green."""
    return tuple(c for c in report.checks if c.outcome in ("failed", "red_on_base") or is_blocked(c))


def failing_text(report: GateReport) -> str:
    """What an agent is told about a gate that is not green, bounded.

    Where only the environment failed it is what a person has to know.
    """
    if report.verdict == "environment":
        return _cut("\n".join(part for check in report.checks for part in _trouble(check)))
    parts = [part for check in red_checks(report) for part in _about(check)]
    parts += [f"The tree: {line_of(finding)}" for finding in report.findings[:_LISTED] if finding.blocks]
    out = [t for t in report.taken if not t.allowed]
    if out:
        parts.append("reverted (protected): changes to these paths are not part of the tree that was checked:")
        parts += [f"  {t.path} ({t.change}; {t.rule})" for t in out[:_LISTED]]
    parts += _doubted(report)
    weak = [f for f in report.weakening if f.blocks]
    if weak:
        parts.append("These changes weaken what is checked; undo them:")
        parts += [f"  {line_of(finding)}" for finding in weak[:_LISTED]]
    return _cut("\n".join(parts))


def _doubted(report: GateReport) -> Iterator[str]:
    """What a person would have to approve, so that it can be taken back or explained before they are asked."""
    if not report.doubts:
        return
    yield "A person has to approve these places before the change can be proposed. Take them back, or say why not:"
    for doubt in report.doubts[:_LISTED]:
        yield f"  {doubt_line(doubt)}"
        if doubt.patch:
            yield textwrap.indent(doubt.patch[:_HUNK].rstrip("\n"), "    ")


def doubt_line(doubt: Doubt) -> str:
    """A doubt in one line, with its place."""
    return line_of(Finding("doubt", doubt.what, doubt.path, doubt.line))


def _cut(text: str) -> str:
    return text if len(text) <= FOR_AGENT else text[: FOR_AGENT - 40] + "\n… the rest is left out"


def _trouble(check: CheckResult) -> Iterator[str]:
    if check.outcome == "environment":
        yield f"{check.name}: {'; '.join(finding.what for finding in check.findings) or 'it could not be run'}"
        if check.hint:
            yield f"  try: {check.hint}"
        if check.output:
            yield check.output[-_OUTPUT_OF_ONE:]


def _about(check: CheckResult) -> Iterator[str]:
    how = f" (exit code {check.code})" if check.code not in (None, 0) else ""
    yield f"The check '{check.name}' is red{how}: {' '.join(check.command) or check.kind}"
    for finding in check.findings[:_LISTED]:
        yield f"  {line_of(finding)}"
    known = {test: reason_of(check, test) for test in check.failing[:_LISTED]}
    for test, why in known.items():
        yield f"  fails: {test}" + (f"  ({why})" if why else "")
    more = len(check.failing) - _LISTED
    if more > 0:
        yield f"  and {more} more"
    if check.output:
        cut = check.output[-_OUTPUT_OF_ONE:]
        yield cut if len(cut) == len(check.output) else "…\n" + cut.partition("\n")[2]


def line_of(finding: Finding) -> str:
    """A finding in one line, with its place."""
    where = f"{finding.path}:{finding.line}: " if finding.line else f"{finding.path}: " if finding.path else ""
    return f"{where}{finding.what}"
