"""What the records say about models and sessions. Pure; unknown stays unknown and is never counted as 0."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import ceil, sqrt
from typing import TypeVar

from bailiwick.clock import iso
from bailiwick.ids import Json
from bailiwick.journal.rows import CallRow, Owner
from bailiwick.routing.asked import ModelAttempt

ACCEPTED = ("accept", "accept_unverified")
INTERRUPTED = "interrupted"
PERCENTILE = 0.95
ENOUGH = 20
"""Outputs of a model that were judged before anything is advised about it."""
UNPRICED = 0.2
"""The share of outputs that has to be accepted where prices are not known."""

IsDead = Callable[[Owner], bool | None]
T = TypeVar("T")
K = TypeVar("K")


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """Tokens and dollars of some calls: the sums of what is known (None: nothing is), and of how many it is not."""

    input_tokens: int | None
    output_tokens: int | None
    tokens_unknown: int
    cost: float | None
    cost_unknown: int


@dataclass(frozen=True, slots=True)
class ModelStats:
    """One model in one skill, or in the nodes of one workflow. Rates are parts of `calls`, times milliseconds.

    `saved` is an estimate over `saved_calls`: what the last model of their chains would have cost, less what they did.
    """

    skill: str
    model: str
    tier: str
    calls: int
    accepted: int
    unverified: int
    escalated: int
    errors: int
    mean_ms: int | None
    p95_ms: int | None
    cold_starts: int
    use: TokenUsage
    saved: float | None
    saved_calls: int

    def to_json(self) -> dict[str, Json]:
        """The numbers, with their rates."""
        facts: dict[str, Json] = asdict(self)
        use = facts.pop("use")
        rates = {"accept_rate": self.accepted / self.calls, "escalation_rate": self.escalated / self.calls}
        return {**facts, **rates, **use}


@dataclass(frozen=True, slots=True)
class SessionStats:
    """The calls of one session; `""` are those without one. `how` counts them by how they ended."""

    session_id: str
    calls: int
    how: Mapping[str, int]
    attempts: int
    skills: tuple[str, ...]
    models: tuple[str, ...]
    first_at: float
    last_at: float
    use: TokenUsage

    def to_json(self) -> dict[str, Json]:
        """The numbers."""
        return {
            "session_id": self.session_id,
            "calls": self.calls,
            "statuses": dict(self.how),
            "attempts": self.attempts,
            "skills": list(self.skills),
            "models": list(self.models),
            "first_at": iso(self.first_at),
            "last_at": iso(self.last_at),
            **asdict(self.use),
        }


def status_of(row: CallRow, now: float, is_dead: IsDead) -> str:
    """How a call stands: an open one whose process is gone, or whose deadline has passed, was interrupted."""
    if row.status != "open":
        return row.status
    late = row.until is not None and now > row.until
    return INTERRUPTED if late or (row.owner is not None and is_dead(row.owner)) else "open"


def by_status(rows: Iterable[CallRow], now: float, is_dead: IsDead) -> dict[str, int]:
    """How many calls stand how."""
    return dict(sorted(Counter(status_of(row, now, is_dead) for row in rows).items()))


def model_stats(asks: Sequence[ModelAttempt], rows: Iterable[CallRow]) -> list[ModelStats]:
    """Every skill and model, skills of calls before workflows, the most used model of a skill first."""
    savings = _savings(asks, rows)
    groups = _grouped(asks, lambda ask: (ask.subject, ask.model))
    found = [_model(skill, model, group, savings.get((skill, model), [])) for (skill, model), group in groups.items()]
    routed = {ask.subject for ask in asks if ask.call}
    return sorted(found, key=lambda one: (one.skill not in routed, one.skill, -one.calls, one.model))


def advice(asks: Sequence[ModelAttempt], rows: Iterable[CallRow]) -> tuple[str, ...]:
    """Which models to take out of their chains: what is accepted of them does not pay for asking them first.

    A try pays where it is accepted more often than its cost is a part of what the last model costs. Luck is allowed
    for: two standard deviations. Errors, and outputs that nobody judged, say nothing about a model.
    """
    called = [ask for ask in asks if ask.call]
    usual = _usual_costs(_grouped(called, lambda ask: ask.call))
    groups = _grouped(called, lambda ask: (ask.subject, ask.model))
    newest = {row.skill: row for row in sorted(rows, key=lambda row: row.started_at) if not row.model}
    found = []
    for skill, row in sorted(newest.items()):
        for model in row.chain[:-1]:
            judged = [ask for ask in groups.get((skill, model), []) if _is_judged(ask)]
            accepted = sum(ask.verdict in ACCEPTED for ask in judged)
            needed = _break_even(judged, usual.get((skill, row.chain[-1]))) * len(judged)
            if len(judged) >= ENOUGH and accepted + 2 * sqrt(accepted + 1) < needed:
                found.append(f"{model} was accepted {accepted} of {len(judged)} times for {skill}: take it out")
    return tuple(found)


def _is_judged(ask: ModelAttempt) -> bool:
    return ask.verdict in ACCEPTED or (ask.verdict == "escalate" and ask.verified is False)


def _break_even(asks: Sequence[ModelAttempt], instead: float | None) -> float:
    """The share of outputs that has to be accepted: what a try costs, verdict included, beside the last model."""
    costs = [ask.cost for ask in asks if ask.cost is not None]
    if not costs or not instead:
        return UNPRICED
    return sum(costs) / len(costs) / instead


def session_stats(
    rows: Iterable[CallRow], asks: Iterable[ModelAttempt], now: float, is_dead: IsDead
) -> list[SessionStats]:
    """Every session, the one that was used last first."""
    of_call = _grouped((ask for ask in asks if ask.call), lambda ask: ask.call)
    found = []
    for session, calls in _grouped(rows, lambda row: row.session_id).items():
        made = [ask for row in calls for ask in of_call.get(row.id, [])]
        ended = max(row.finished_at or row.started_at for row in calls)
        how = by_status(calls, now, is_dead)
        found.append(
            SessionStats(
                session,
                calls=len(calls),
                how=how,
                attempts=len(made),
                skills=_names(row.skill for row in calls),
                models=_names(ask.model for ask in made),
                first_at=min(row.started_at for row in calls),
                last_at=ended,
                use=use_of(made, lost=how.get(INTERRUPTED, 0)),
            )
        )
    return sorted(found, key=lambda one: -one.last_at)


def use_of(asks: Sequence[ModelAttempt], *, lost: int = 0) -> TokenUsage:
    """What some calls used; `lost` ones left no record of it."""
    return TokenUsage(
        _sum(ask.input_tokens for ask in asks),
        output_tokens=_sum(ask.output_tokens for ask in asks),
        tokens_unknown=sum(ask.input_tokens is None or ask.output_tokens is None for ask in asks) + lost,
        cost=_dollars(ask.cost for ask in asks),
        cost_unknown=sum(ask.cost is None for ask in asks) + lost,
    )


def _model(skill: str, model: str, asks: Sequence[ModelAttempt], savings: Sequence[float]) -> ModelStats:
    verdicts = Counter(ask.verdict for ask in asks)
    spans = sorted(ask.duration_ms for ask in asks if ask.verdict != "error")
    return ModelStats(
        skill=skill,
        model=model,
        tier=asks[-1].tier,
        calls=len(asks),
        accepted=sum(verdicts[name] for name in ACCEPTED),
        unverified=verdicts["accept_unverified"],
        escalated=verdicts["escalate"],
        errors=verdicts["error"],
        mean_ms=round(sum(spans) / len(spans)) if spans else None,
        p95_ms=spans[ceil(PERCENTILE * len(spans)) - 1] if spans else None,
        cold_starts=sum(ask.cold for ask in asks),
        use=use_of(asks),
        saved=_dollars(savings),
        saved_calls=len(savings),
    )


def _savings(asks: Sequence[ModelAttempt], rows: Iterable[CallRow]) -> dict[tuple[str, str], list[float]]:
    """By skill and the model that a call ended with: what each call saved against its chain's last model.

    Calls with a model of the caller's choice, with nothing to choose from, or of unknown cost tell nothing.
    """
    of_call = _grouped((ask for ask in asks if ask.call), lambda ask: ask.call)
    usual = _usual_costs(of_call)
    found: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        made = of_call.get(row.id, [])
        if row.model or len(row.chain) < 2 or not made:
            continue
        costs = [ask.cost for ask in made if ask.cost is not None]
        instead = usual.get((row.skill, row.chain[-1]))
        if instead is not None and len(costs) == len(made):
            found.setdefault((row.skill, made[-1].model), []).append(instead - sum(costs))
    return found


def _usual_costs(of_call: Mapping[str, Sequence[ModelAttempt]]) -> dict[tuple[str, str], float]:
    """By skill and model: what a call of the skill costs on the mean where the model answers it."""
    costs: dict[tuple[str, str], list[float]] = {}
    for asks in of_call.values():
        for (skill, model), made in _grouped(asks, lambda ask: (ask.subject, ask.model)).items():
            known = [ask.cost for ask in made if ask.cost is not None]
            if len(known) == len(made) and any(ask.verdict != "error" for ask in made):
                costs.setdefault((skill, model), []).append(sum(known))
    return {name: sum(each) / len(each) for name, each in costs.items()}


def _grouped(items: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    found: dict[K, list[T]] = {}
    for item in items:
        found.setdefault(key(item), []).append(item)
    return found


def _names(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted({name for name in names if name}))


def _sum(values: Iterable[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _dollars(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return round(sum(known), 9) if known else None
