"""Why a call went the way it did: sentences from what the store kept of it, and from nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bailiwick.clock import iso
from bailiwick.errors import NotFound
from bailiwick.ids import Json
from bailiwick.journal.port import Store
from bailiwick.journal.rows import AttemptRow, CallRow
from bailiwick.routing.model import NOT_ASKED
from bailiwick.routing.stats import INTERRUPTED, IsDead, status_of

PREFIX = "c-"
"""What the ids of calls begin with."""
LAST = 10
"""How many calls are looked at for an id that was cut short."""
_SHOWN = 300
_VERDICTS = {
    "accept": "accepted",
    "accept_unverified": "accepted, not verified",
    "escalate": "rejected",
    "error": "failed",
}


@dataclass(frozen=True, slots=True)
class CallExplanation:
    """A call and why it went that way: the choice in one line, how it ended, a line per attempt."""

    call: CallRow
    status: str
    choice: str
    ending: str
    lines: tuple[str, ...]

    def to_json(self) -> dict[str, Json]:
        """One document."""
        row = self.call
        return {
            "call": row.id,
            "skill": row.skill,
            "phase": row.phase,
            "session_id": row.session_id,
            "by": row.by,
            "origin": row.origin,
            "run": row.run,
            "node": row.node,
            "started_at": iso(row.started_at),
            "status": self.status,
            "chain": list(row.chain),
            "model_used": row.model_used,
            "choice": self.choice,
            "ending": self.ending,
            "attempts": list(self.lines),
        }


def is_call(name: str) -> bool:
    """Whether a name is a call's, not a run's."""
    return name.startswith(PREFIX)


async def tell(store: Store, name: str, now: float, is_dead: IsDead) -> CallExplanation:
    """Explain the call with this id, or the only one that begins with it; `NotFound` where there is none."""
    begun = await store.calls(id=name, limit=-1)
    rows = [row for row in begun if row.id == name] or begun
    if len(rows) != 1:
        near = ", ".join(row.id for row in (rows or await store.calls(limit=LAST))[:LAST])
        what = f"'{name}' begins the ids of {len(rows)} calls" if rows else f"there is no call '{name}'"
        raise NotFound(what, hint=near or "make one: bailiwick skill review --files FILE")
    return explain(rows[0], await store.attempts(call=rows[0].id), status_of(rows[0], now, is_dead))


def explain(row: CallRow, attempts: Sequence[AttemptRow], status: str) -> CallExplanation:
    """The story of a call."""
    lines = [_attempt(one, attempts[index + 1 :]) for index, one in enumerate(attempts)]
    return CallExplanation(
        row, status=status, choice=_choice(row, attempts), ending=_ending(row, attempts, status), lines=tuple(lines)
    )


def _choice(row: CallRow, attempts: Sequence[AttemptRow]) -> str:
    """One line: which models, why these, where it began, which were left out before the last that was asked."""
    parts = [row.why or _default_why(row)]
    if row.chain:
        parts.append(f"chain: {' → '.join(row.chain)}")
        skipped = {one.model: one.feedback.removeprefix(NOT_ASKED) for one in attempts if not _was_asked(one)}
        known = [one.model for one in attempts]
        reached = max((row.chain.index(model) for model in known if model in row.chain), default=-1)
        skipped |= {model: "no reason is on record" for model in row.chain[:reached] if model not in known}
        parts += [f"{NOT_ASKED}{model}, {why}" for model, why in skipped.items()]
    return _line("; ".join(parts))


def _default_why(row: CallRow) -> str:
    if row.model:
        return f"{row.model} was named by the caller: no escalation, no verifier"
    return f"the chain of {row.skill}"


def _was_asked(one: AttemptRow) -> bool:
    return not one.feedback.startswith(NOT_ASKED)


def _attempt(one: AttemptRow, later: Sequence[AttemptRow]) -> str:
    if not _was_asked(one):
        return _line(f"attempt {one.attempt}: {one.model} ({one.tier}) {one.feedback}")
    facts = [one.tier, f"{one.duration_ms / 1000:.1f} s"]
    if one.tier == "local":
        facts.append("warm" if one.warm_start else "cold")
    facts.append("cost unknown" if one.cost is None else f"${one.cost:.4f}")
    why = f": {one.feedback}" if one.feedback else ""
    then = ""
    if later and one.verdict in ("escalate", "error"):
        then = " → tried again" if later[0].model == one.model else f" → {_line(later[0].model)}"
    verified = " by a check or the verifier" if one.verdict == "accept" and one.verified else ""
    words = f"{_VERDICTS.get(one.verdict, one.verdict)}{verified}"
    return _line(f"attempt {one.attempt}: {one.model} ({', '.join(facts)}) {words}{why}") + then


def _ending(row: CallRow, attempts: Sequence[AttemptRow], status: str) -> str:
    if status == "open":
        return "it is being worked on"
    if status == INTERRUPTED:
        return "it was interrupted: its process ended before it did; what was reserved for it counts as spent"
    used = f" with {row.model_used}" if row.model_used else ""
    words = {"pass": f"it passed{used}", "fail": f"it failed{used}", "error": "it ended with an error"}[row.status]
    count = sum(map(_was_asked, attempts))
    tries = f" after {count} attempt{'' if count == 1 else 's'}" if count else ""
    return _line(f"{words}{tries}{f': {row.message}' if row.message else ''}")


def _line(text: str) -> str:
    """One line that is safe to show: a model's words are in it."""
    from bailiwick.processes.proc import plain_line

    return plain_line(" ".join(text.split()).encode("utf-8", "replace"), _SHOWN)
