"""The last words of a pattern: what is proposed and how to look at it, or that nothing is, and what is left. Pure."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from bailiwick.ids import Json
from bailiwick.pipelines.model import SELF_HEAL

NOTHING_TO_HEAL = "nothing to heal"
NO_PROPOSAL = "No PR proposed"
DONE, WAITS = 0, 3


@dataclass(frozen=True, slots=True)
class Ended:
    """A run as its journal has it: its name and workflow, its status, and what it gave: a proposal, or what is kept.

    `found` is what its last gate found, a line each: failing tests with why and where.
    """

    run: str
    workflow: str
    status: str
    proposal: Json = None
    kept: Json = None
    found: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PipelineSummary:
    """What is said at the end, and the exit code that goes with it; `consent`: the proposal that waits for a word."""

    lines: tuple[str, ...]
    code: int
    consent: str = ""


def closing(ended: Ended, code: int, standing: str | None, *, gone: bool = False) -> PipelineSummary:
    """The last words for a run; none while it is not over. `gone`: no commands, as all is removed when we end.

    `standing` is how its proposal stands now, None where there is no such proposal.
    """
    if ended.status == "done" and isinstance(ended.proposal, dict):
        made = _proposed(ended.proposal, code, standing)
        return PipelineSummary(_first_words(ended.proposal), code) if gone else made
    if ended.status == "done":
        return PipelineSummary((NOTHING_TO_HEAL,) if ended.workflow == SELF_HEAL else (), code)
    return PipelineSummary(tuple(_not_proposed(ended, gone=gone)) if ended.status == "failed" else (), code)


def _first_words(proposal: dict[str, Json]) -> tuple[str, ...]:
    """That something is proposed, and under which branch."""
    first = next((line for line in str(proposal.get("text", "")).splitlines() if line), "")
    return (first, f"branch  {proposal.get('branch', '')}")


def _proposed(proposal: dict[str, Json], code: int, now: str | None) -> PipelineSummary:
    name = str(proposal.get("id", ""))
    if now == "published" and not proposal.get("published"):
        return PipelineSummary((f"published since: bailiwick proposals show {name}",), code)
    if now not in (None, "open", "published"):
        return PipelineSummary((f"the proposal {name} is {now}: bailiwick proposals show {name}",), code)
    said = [line for line in str(proposal.get("text", "")).splitlines() if line]
    lines = (*said, f"bailiwick proposals show {name}", f"bailiwick proposals discard {name}")
    waits = bool(proposal.get("needs_consent")) and now != "published"
    return PipelineSummary(lines, WAITS if waits and code == DONE else code, name if waits else "")


def _not_proposed(ended: Ended, *, gone: bool) -> list[str]:
    lines = [NO_PROPOSAL, *(f"  {'' if number else 'gate':<7}  {line}" for number, line in enumerate(ended.found))]
    if gone:
        return lines
    lines.append(f"  why      bailiwick why {ended.run}")
    kept = ended.kept if isinstance(ended.kept, dict) else {}
    if kept.get("branch"):
        branch, base = shlex.quote(str(kept["branch"])), str(kept.get("base", ""))[:12]
        lines += [
            f"  inspect  git diff {base}..{branch}",
            f"  go on    git switch {branch}",
            f"  gate     bailiwick gate --base {base}",
            f"  discard  git branch -D {branch}",
        ]
    return lines
