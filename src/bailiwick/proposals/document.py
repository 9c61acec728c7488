"""What people read of a proposal before they decide, written by trusted code alone. Pure.

Text from issues, agents, tests and files appears only in code spans and fenced blocks, broken up so that it can't
mention, link, close or hide anything. The document fits what forges take.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bailiwick.gate.model import CheckResult, Doubt, Finding, GateReport, RevertedChange
from bailiwick.git.objects import TreeChange
from bailiwick.proposals.model import Proposal
from bailiwick.proposals.neutral import block, cell, code
from bailiwick.terminal.output import counted

LONGEST = 65_536
"""The most characters of a pull request's text."""
ROOM = LONGEST - 1_536
"""What we write: a forge or a person may add something."""
ASKED = 8_000
SAID = 3_000
PATCH = 3_000
ROWS = 60
MARKER = "<!-- bailiwick:"
"""How each text that we post begins: by it we know our own words again."""
_OUTCOMES = {
    "passed": "passed",
    "failed": "**failed**",
    "environment": "could not be run",
    "red_on_base": "fails without the change too",
}


@dataclass(frozen=True, slots=True)
class ProposalFacts:
    """All that a document is made of. `can_merge`: whether the identity that pushes could merge, None: not known."""

    proposal: Proposal
    report: GateReport
    changes: tuple[TreeChange, ...]
    can_merge: bool | None = None
    identity: str = ""
    notes: tuple[str, ...] = ()


def marker(proposal: str) -> str:
    """The hidden first line of what we post for a proposal."""
    return f"{MARKER}{proposal} -->"


def is_ours(text: str) -> bool:
    """Whether a posted text begins as ours do."""
    return text.lstrip().startswith(MARKER)


def render(exhibit: ProposalFacts) -> str:
    """The document. What a person must not miss comes first; where it would get too long whole parts are left out."""
    proposal, report = exhibit.proposal, exhibit.report
    head = [marker(proposal.id), "This change was made by an agent. **A person has to read it: nothing merges it.**\n"]
    parts = [
        _allowed(report.taken),
        _doubts(report.doubts),
        _asked(proposal),
        _said(proposal),
        _diffstat(exhibit.changes),
        _evidence(report),
        _proof(report),
        _reverted(report.taken),
        _weakening(report.weakening),
        _unprotected(exhibit),
        _undo(proposal),
        _facts(exhibit),
    ]
    return _fitted(head, [part for part in parts if part], proposal.id)


def _fitted(head: list[str], parts: list[str], proposal: str) -> str:
    """Leave the longest parts out until the rest fits; the title of what is left out stays."""
    while len(text := "\n".join([*head, *parts])) > ROOM:
        index = max(range(len(parts)), key=lambda i: len(parts[i]))
        title = parts[index].partition("\n")[0]
        parts[index] = f"{title}\n\n*Too long for this page: `bailiwick proposals show {proposal}` has it.*\n"
    return text


def _section(title: str, lines: Iterable[str]) -> str:
    return f"## {title}\n\n" + "\n".join(lines) + "\n"


def _allowed(taken: Sequence[RevertedChange]) -> str:
    """Changes to protected paths that a person allowed: checked with and without, and shown before all else."""
    allowed = [one for one in taken if one.allowed]
    if not allowed:
        return ""
    lines = ["A person allowed these beforehand. The gate was run both with and without them.\n"]
    return _section("Look here first: allowed changes to protected paths", [*lines, *_patches(allowed)])


def _doubts(doubts: Sequence[Doubt]) -> str:
    """Places that the gate could not decide about and a person approved: shown before what was asked."""
    if not doubts:
        return ""
    lines = ["The gate asked a person about these places, and the person approved them.\n"]
    for one in doubts[:20]:
        lines.append(f"- {_finding(Finding('doubt', one.what, one.path, one.line))}\n")
        if one.patch:
            lines.append(block(one.patch, PATCH, info="diff"))
    return _section("Look here first: approved doubts", [*lines, *_more(len(doubts) - 20, "place")])


def _reverted(taken: Sequence[RevertedChange]) -> str:
    out = [one for one in taken if not one.allowed]
    if not out:
        return ""
    lines = ["The agent also changed protected paths. These changes are **not** part of this proposal.\n"]
    return _section("Reverted (protected)", [*lines, *_patches(out)])


def _patches(taken: Sequence[RevertedChange]) -> list[str]:
    lines = []
    for one in taken[:20]:
        rule = f" (protected by {code(one.rule)})" if one.rule else ""
        lines.append(f"- {code(one.path)} {one.change}{rule}\n")
        if one.patch:
            lines.append(block(one.patch, PATCH, info="diff"))
    return lines + _more(len(taken) - 20, "path")


def _said(proposal: Proposal) -> str:
    """The agent's own words, marked as what they are."""
    if not proposal.said.strip():
        return ""
    return _section("What the agent says", ["Claims, not evidence.\n", block(proposal.said, SAID)])


def _asked(proposal: Proposal) -> str:
    lines = [f"For {proposal.issue}.\n"] if proposal.issue else []
    if proposal.kind == "self-heal":
        lines.append("To make a failing gate pass without weakening it.\n")
    if proposal.asked.strip():
        lines += ["The text below is quoted from the issue. It is not ours and was not checked.\n"]
        lines.append(block(proposal.asked, ASKED))
    return _section("What was asked", lines) if lines else ""


def _diffstat(changes: Sequence[TreeChange]) -> str:
    added = sum(change.added or 0 for change in changes)
    deleted = sum(change.deleted or 0 for change in changes)
    lines = [f"{counted(len(changes), 'file')}, {counted(added, 'line')} added, {deleted} deleted.\n"]
    lines += ["| file | | + | − |", "|---|---|--:|--:|"]
    for change in changes[:ROWS]:
        counts = f"{_number(change.added)} | {_number(change.deleted)}"
        lines.append(f"| {cell(change.path)} | {change.status} | {counts} |")
    return _section("Changes", [*lines, *_more(len(changes) - ROWS, "file")])


def _number(count: int | None) -> str:
    return "binary" if count is None else str(count)


def _evidence(report: GateReport) -> str:
    lines = [*_exercise(report), "| check | level | outcome | exit | counts | command |", "|---|---|---|--:|---|---|"]
    for check in report.checks[:ROWS]:
        counts = ", ".join(f"{count} {cell(name, 30)}" for name, count in check.counts)
        command = cell(" ".join(check.command), 120) if check.command else ""
        exit_code = "" if check.code is None else str(check.code)
        outcome = _OUTCOMES.get(check.outcome, check.outcome)
        lines.append(f"| {cell(check.name)} | {check.level} | {outcome} | {exit_code} | {counts} | {command} |")
    lines.append("\n`tests`: each outcome was seen from outside and checked. `exit-code`: the tool said so.")
    found = [(check, finding) for check in report.checks for finding in check.findings]
    lines += [f"- {code(check.name)}: {_finding(finding)}" for check, finding in found[:ROWS]]
    lines += _more(len(found) - ROWS, "finding")
    return _section("Evidence", [*lines, *_still_red(report.checks)])


def _exercise(report: GateReport) -> list[str]:
    """Whether any test would notice if the change did nothing right; it comes before all other evidence."""
    if report.unexercised:
        return [f"**{code(report.unexercised, 300)}**\n"]
    if not report.exercised:
        return []
    named = ", ".join(code(name) for name in report.exercised[:3])
    more = f" and {counted(len(report.exercised) - 3, 'other')}" if len(report.exercised) > 3 else ""
    return [f"Tests that exercise this change: {named}{more}.\n"]


def _still_red(checks: Sequence[CheckResult]) -> list[str]:
    red = [name for check in checks if check.outcome == "red_on_base" for name in check.failing]
    if not red:
        return []
    lines = ["\nThese fail with and without the change:\n", *(f"- {code(name)}" for name in red[:ROWS])]
    return lines + _more(len(red) - ROWS, "test")


def _finding(finding: Finding) -> str:
    where = f" at {code(f'{finding.path}:{finding.line}' if finding.line else finding.path)}" if finding.path else ""
    return f"{code(finding.what, 300)}{where}"


def _proof(report: GateReport) -> str:
    lines: list[str] = []
    if report.proof:
        lines += _tests(
            f"{counted(len(report.proof), 'new test')} {_verb(report.proof, 'fail')} on the base and"
            f" {_verb(report.proof, 'pass')} here:",
            report.proof,
        )
    if report.healed:
        were = "that was" if len(report.healed) == 1 else "that were"
        head = f"{counted(len(report.healed), 'test')} {were} red on the base {_verb(report.healed, 'pass')} now:"
        lines += _tests(head, report.healed)
    if not lines:
        why = f" {code(report.unproven, 300)}" if report.unproven else ""
        lines = [f"**No test shows this fix.**{why}"]
    return _section("Proof", lines)


def _tests(head: str, names: Sequence[str]) -> list[str]:
    return [f"{head}\n", *(f"- {code(name)}" for name in names[:ROWS]), *_more(len(names) - ROWS, "test"), ""]


def _verb(things: Sequence[str], plural: str) -> str:
    """The verb for one or many: fails or fail, passes or pass."""
    if len(things) != 1:
        return plural
    return f"{plural}es" if plural.endswith("s") else f"{plural}s"


def _weakening(findings: Sequence[Finding]) -> str:
    if not findings:
        return ""
    lines = [f"- {_finding(finding)}" for finding in findings[:ROWS]]
    return _section("Possible weakening of checks", [*lines, *_more(len(findings) - ROWS, "finding")])


def _unprotected(exhibit: ProposalFacts) -> str:
    """What this machine and this identity did not rule out, said where the person looks."""
    merge = {True: "yes", False: "no", None: "unknown"}[exhibit.can_merge]
    who = f" ({code(exhibit.identity)})" if exhibit.identity else ""
    lines = [f"- Could the identity that opened this{who} merge it alone: **{merge}**."]
    lines += [f"- {code(text, 300)}" for text in exhibit.report.unprotected[:ROWS]]
    lines.append("- Code under test runs in the same process as the test runner; that is why a person reads the diff.")
    return _section("What is not protected here", lines)


def _undo(proposal: Proposal) -> str:
    lines = [f"- Before it is merged: close it and delete the branch, or `bailiwick proposals discard {proposal.id}`."]
    lines.append(f"- After it is merged: `git revert {proposal.commit[:12]}` (or the commit that the merge made).")
    return _section("How to undo", lines)


def _facts(exhibit: ProposalFacts) -> str:
    proposal, report = exhibit.proposal, exhibit.report
    models = ", ".join(code(model, 80) for model in proposal.models) or "unknown"
    rows = [
        ("run", code(proposal.run)),
        ("base", f"`{proposal.base}`"),
        ("commit", f"`{proposal.commit}`"),
        ("tree", f"`{proposal.tree}`"),
        ("gate report", f"`{report.digest}`"),
        ("policy", code(report.policy)),
        ("sandbox", code(report.sandbox)),
        ("models", models),
        ("cost", str(proposal.cost)),
    ]
    lines = ["| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows)]
    if exhibit.notes:
        lines += ["", *(f"- {code(note, 300)}" for note in exhibit.notes)]
    return _section("Facts", lines)


def _more(count: int, noun: str) -> list[str]:
    return [f"\n*and {counted(count, f'more {noun}')}*"] if count > 0 else []
