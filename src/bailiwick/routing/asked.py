"""Every time that a model was asked, by a routed call or by a node of a run, in one shape for statistics."""

from __future__ import annotations

from dataclasses import dataclass

from bailiwick.journal.port import Store
from bailiwick.journal.rows import AttemptRow
from bailiwick.routing.model import NOT_ASKED


@dataclass(frozen=True, slots=True)
class ModelAttempt:
    """A model was asked once. `subject` is the skill, or `workflow NAME`; what is not known is None, never 0."""

    subject: str
    model: str
    tier: str
    verdict: str
    at: float
    duration_ms: int
    cold: bool
    input_tokens: int | None
    output_tokens: int | None
    cost: float | None
    call: str = ""
    verified: bool | None = None


async def asked_since(store: Store, since: float | None) -> list[ModelAttempt]:
    """Attempts of routed calls in the order of time, then those of nodes by run; tiers that were skipped left out."""
    rows = await store.attempts(since=since)
    routed = [row for row in rows if row.call and not row.feedback.startswith(NOT_ASKED)]
    by_nodes = sorted((row for row in rows if not row.call), key=lambda row: (row.run, row.attempt))
    return [_asked(row) for row in (*routed, *by_nodes)]


def _asked(row: AttemptRow) -> ModelAttempt:
    return ModelAttempt(
        row.skill or f"workflow {row.workflow}",
        model=row.model,
        tier=row.tier,
        verdict=row.verdict,
        at=row.at,
        duration_ms=row.duration_ms,
        cold=row.tier == "local" and not row.warm_start,
        input_tokens=row.input_tokens,
        output_tokens=row.output_tokens,
        cost=row.cost,
        call=row.call,
        verified=row.verified,
    )
