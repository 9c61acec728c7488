"""Reading a forge's JSON: a field is what it should be or it is not there; nothing in it is trusted."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime

from bailiwick.agents.streams import at
from bailiwick.ids import Json
from bailiwick.proposals.forges.port import FailedCheck, Remark

MAX_TEXT = 1 << 20


def text(data: Json, *names: str) -> str:
    """A text at a path, cut to what is ever used; empty where there is none."""
    value = at(data, *names)
    return value[:MAX_TEXT] if isinstance(value, str) else ""


def number(data: Json, *names: str) -> int | None:
    """A whole number at a path."""
    value = at(data, *names)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def flag(data: Json, *names: str) -> bool | None:
    """A truth value at a path; None where nothing is said."""
    value = at(data, *names)
    return value if isinstance(value, bool) else None


def moment(said: str) -> float | None:
    """The epoch seconds of a time as forges write it: RFC 3339, or `2026-01-31 10:00:00 UTC`."""
    said = re.sub(r" UTC$", "+00:00", said.strip())
    said = re.sub(r" ([+-]\d\d)(\d\d)$", r"\1:\2", said)
    try:
        at = datetime.fromisoformat(said)
    except ValueError:
        return None
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()


def stamp(at: float) -> str:
    """A time as forges read it."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def later(remarks: Iterable[Remark], since: float) -> tuple[Remark, ...]:
    """The remarks with words that are not older than a time, oldest first."""
    kept = [one for one in remarks if one.text.strip() and (moment(one.at) or 0.0) > since]
    return tuple(sorted(kept, key=lambda one: (moment(one.at) or 0.0, one.id)))


def red_statuses(statuses: Iterable[Json], field: str) -> list[FailedCheck]:
    """The commit statuses that are red, the newest of each context only; lists are newest first."""
    seen: set[str] = set()
    out = []
    for one in statuses:
        name = text(one, "context") or "status"
        if name not in seen:
            seen.add(name)
            if text(one, field) in ("failure", "error"):
                out.append(FailedCheck(name, text(one, "description"), text(one, "target_url")))
    return out


def merge_alone(access_push: bool | None, approvals: int | None, *, admin: bool, protected: bool | None) -> bool | None:
    """Whether an identity could merge without another person, from what a forge tells of its default branch.

    `approvals`: how many others have to approve, None where that is not told. An administrator may pass that over.
    """
    if access_push is False:
        return False
    if protected is False:
        return access_push
    if admin:
        return True
    if approvals is not None and approvals > 0:
        return False
    return None if protected is None or approvals is None else access_push
