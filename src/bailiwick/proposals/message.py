"""The commit of a proposal in words: a fixed subject, and trailers that say where the change comes from. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field

from bailiwick.proposals.model import ChangeCost, ProposalKind
from bailiwick.proposals.neutral import one_line, plain

HEALED = "Agent: self-healing fix for failing CI"
UNFINISHED = "Agent: unfinished work, not proposed"
"""The subject of what a run leaves on its branch when it gives up."""
SUBJECT = 100
TITLE = 200
"""Forges take 255 characters; a prefix for drafts has to fit too."""
DEFAULT_AUTHOR = "Bailiwick agent <agent@bailiwick.invalid>"


@dataclass(frozen=True, slots=True)
class ChangeOrigin:
    """Where a change comes from, for the trailers of its commit."""

    run: str
    report: str
    models: tuple[str, ...] = ()
    cost: ChangeCost = field(default_factory=ChangeCost)
    signed_off_by: str = ""


def subject(kind: ProposalKind, stem: str) -> str:
    """The first line; of the issue only a harmless line is in it."""
    if kind == "self-heal":
        return HEALED
    return f"Agent: implement {plain(stem, SUBJECT) or 'an issue'}"


def commit_message(kind: ProposalKind, stem: str, origin: ChangeOrigin) -> str:
    """The whole message. The same change of the same run has the same message."""
    models = ", ".join(plain(model, 80) for model in origin.models) or "unknown"
    trailers = [
        f"Run: {one_line(origin.run)}",
        f"Gate-Report: {one_line(origin.report)}",
        f"Models: {models}",
        f"Cost: {origin.cost}",
    ]
    if origin.signed_off_by:
        trailers.append(f"Signed-off-by: {one_line(origin.signed_off_by)}")
    return f"{subject(kind, stem)}\n\n" + "\n".join(trailers) + "\n"
