"""What is kept of a turn: its transcript and what it used. Unknown is not zero."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

from bailiwick.agents.port import AgentEvent, ProcessEnded, Used
from bailiwick.agents.prices import LOCAL, TokenCount, price_for
from bailiwick.agents.streams import total_of
from bailiwick.ids import Json

KEPT = 2_000
TEXT = 4_000


@dataclass(frozen=True, slots=True)
class TurnUsage:
    """Tokens and money of one turn; None is unknown."""

    input: int | None = None
    output: int | None = None
    cached: int | None = None
    usd: float | None = None
    cumulative: bool = False
    cancelled: bool = False

    def to_json(self) -> dict[str, Json]:
        """What is known."""
        return {name: value for name, value in asdict(self).items() if value is not None and name != "cancelled"}


def priced(spent: TurnUsage, backend: str, model: str | None) -> TurnUsage:
    """With a price where the backend named none: nothing for local models, the table's for known ones, else unknown."""
    if spent.usd is not None or (spent.input is None and spent.output is None and backend not in LOCAL):
        return spent
    tokens = TokenCount(input=spent.input or 0, output=spent.output or 0, cached=spent.cached or 0)
    return replace(spent, usd=price_for(backend)(model or "", tokens))


def is_unpriced(backend: str, model: str | None) -> bool:
    """Whether nobody could say what a turn of this model costs before it is asked."""
    return price_for(backend)(model or "", TokenCount(input=1, output=1)) is None


def tally(events: Sequence[AgentEvent]) -> TurnUsage:
    """The last totals that a backend gave, or the sum of what it streamed."""
    used = [e for e in events if isinstance(e, Used)]
    cancelled = any(isinstance(e, ProcessEnded) and e.why == "cancelled" for e in events)
    if not used:
        return TurnUsage(cancelled=cancelled)
    last = used[-1]
    if last.cumulative:
        return TurnUsage(last.input, last.output, last.cached, last.usd, cumulative=True, cancelled=cancelled)
    return TurnUsage(
        total_of(*(u.input for u in used)),
        total_of(*(u.output for u in used)),
        total_of(*(u.cached for u in used)),
        total_of(*(u.usd for u in used)),
        cancelled=cancelled,
    )


def transcript(events: Sequence[AgentEvent]) -> list[Json]:
    """The events as lines for people: bounded in number and length."""
    lines = [{"event": type(event).__name__, **_short(asdict(event))} for event in events[:KEPT]]
    if len(events) > KEPT:
        lines.append({"event": "Cut", "text": f"{len(events) - KEPT} more events"})
    return lines


def _short(body: dict[str, Json]) -> dict[str, Json]:
    def cut(value: Json) -> Json:
        return value[:TEXT] + "…" if isinstance(value, str) and len(value) > TEXT else value

    return {name: cut(value) for name, value in body.items() if value not in (None, "", False)}
