"""The classes of a failed turn, and what an attempt tells the ladder about its failure. Pure."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from enum import StrEnum

from bailiwick.ids import Json


class FailureKind(StrEnum):
    """Why a turn failed, in the order in which a turn is looked at: the first that fits is its class."""

    SPAWN = "spawn"
    AUTH = "auth"
    BILLING = "billing"
    CAP = "cap"
    RATE_LIMIT = "rate_limit"
    OVERLOADED = "overloaded"
    UNREACHABLE = "unreachable"
    OVERFLOW = "overflow"
    REFUSED = "refused"
    TOOL_DENIED = "tool_denied"
    DISK = "disk"
    TIMEOUT = "timeout"
    CRASH = "crash"
    EMPTY = "empty"
    BAD_OUTPUT = "bad_output"
    REJECTED = "rejected"
    BUDGET = "budget"
    HELD = "held"


ENDPOINT = frozenset({FailureKind.RATE_LIMIT, FailureKind.OVERLOADED, FailureKind.UNREACHABLE})
"""The endpoint is at fault: when retries are used up it is waited for, never worked around."""
TRANSIENT = ENDPOINT | {FailureKind.TIMEOUT, FailureKind.EMPTY}
"""Trying the same again may help."""
FREE = frozenset({FailureKind.CAP, FailureKind.HELD, FailureKind.AUTH, FailureKind.BILLING})
"""Failures that use up no retry: nothing was tried, or trying could not help."""


@dataclass(frozen=True, slots=True)
class Detail:
    """What is known of a failed turn besides its class. Times are seconds since the epoch, spans seconds.

    `models` is how many models the chain had that it was a part of; 0 where the node's knobs tell. `final`: the same
    again would only fail again. `unjudged`: there was an output, and whoever should have judged it gave no verdict.
    """

    evidence: str = ""
    resets_at: float | None = None
    retry_after: float | None = None
    session: str | None = None
    can_compact: bool = False
    can_resume: bool = False
    transient: bool = False
    problem: str = ""
    backend: str = ""
    model: str = ""
    credential: str = ""
    models: int = 0
    final: bool = False
    unjudged: bool = False

    def to_json(self) -> dict[str, Json]:
        """Only what is said."""
        return {name: value for name, value in asdict(self).items() if value not in (None, "", False)}

    @classmethod
    def from_json(cls, data: Json) -> Detail:
        """Read it back; names this version does not know are passed over."""
        known = {f.name for f in fields(cls)}
        return cls(**{k: v for k, v in data.items() if k in known}) if isinstance(data, dict) else cls()
