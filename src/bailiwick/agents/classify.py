"""Why a turn failed, told from its events by the rules of `rules.py`. Pure: the same events give the same class.

Only what a backend reports as trouble is looked at, never what the agent said or what its tools printed. Structured
fields come first; words count only where they start a message. Of several classes the first in the order of
`FailureKind` is taken, so that a 429 whose words name a spent budget is no rate limit.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from bailiwick.agents.port import (
    AgentEvent,
    Answered,
    Compacted,
    LimitSeen,
    ProcessEnded,
    Said,
    SessionKnown,
    ToolBegan,
    ToolEnded,
    Trouble,
)
from bailiwick.agents.resets import next_month, parse_reset, parse_retry_after, parse_wait
from bailiwick.agents.rules import FailureRule, Where, rules
from bailiwick.agents.streams import one_line
from bailiwick.engine.failures import Detail, FailureKind
from bailiwick.ids import Json
from bailiwick.sandbox.spec import OURS

_LONGEST = 65_536
_LAYERS = 6
_JUST_OVER = 86400 - 900.0
_NAMES = frozenset(kind.value for kind in FailureKind)
_ORDER = {kind: place for place, kind in enumerate(FailureKind)}
_PLAIN = str.maketrans({"’": "'", "‘": "'", "∙": "·", "•": "·", "\u00a0": " "})
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f\x7f-\x9f]+")
_ENVELOPES = (
    re.compile(r"\[?API Error:\s+", re.IGNORECASE),
    re.compile(r"error:\s+", re.IGNORECASE),
    re.compile(
        r"Failed to get response from the AI model; retried \d+ times \([^)]*\)(?: \([^)]*\))? Last error: ",
        re.IGNORECASE,
    ),
    re.compile(r"Reconnecting\.\.\. (?:\d+/\d+ )?\(?", re.IGNORECASE),
    re.compile(r"Execution failed: ", re.IGNORECASE),
)
_STATUS_SAID = (
    re.compile(r"unexpected status (?P<status>[45]\d\d) [^:]{1,60}: ", re.IGNORECASE),
    re.compile(r"exceeded retry limit, last status: (?P<status>[45]\d\d) ", re.IGNORECASE),
)
_STATUS_FIRST = re.compile(r"(?P<status>[45]\d\d)\s+(?=\S)")
_COMMAND = re.compile(r"the command ended with code (?P<code>-?\d{1,3})(?::\s*|$)")
_SESSION_WORDS = re.compile(r"\b(?:5-hour|session) limit\b", re.IGNORECASE)
_TOLD = {"silence": "the agent gave no sign of life for too long", "total": "the turn took longer than it may"}


@dataclass(frozen=True, slots=True)
class Classified:
    """The class of a failed turn, one line for people, and what else is known of it."""

    kind: FailureKind
    message: str
    detail: Detail


@dataclass(frozen=True, slots=True)
class _Evidence:
    """Why a class fits: the rule or the event that says so, and the words it was found in."""

    kind: FailureKind
    name: str
    text: str
    weak: bool = False
    transient: bool = False
    monthly: bool = False
    final: bool = False


@dataclass(slots=True)
class _Seen:
    """What matters of a turn's events. Notices that came before the agent went on are forgotten."""

    answer: Answered | None = None
    ended: ProcessEnded | None = None
    troubles: list[Trouble] = field(default_factory=list)
    limits: list[LimitSeen] = field(default_factory=list)
    compacted: Compacted | None = None
    session: str | None = None
    denied: bool = False

    @property
    def answered(self) -> bool:
        """Whether there is an answer that says anything."""
        return self.answer is not None and (bool(self.answer.text.strip()) or self.answer.structured is not None)

    @property
    def final(self) -> list[Trouble]:
        """The troubles that ended the turn."""
        return [trouble for trouble in self.troubles if trouble.final]


def classify(events: Sequence[AgentEvent], *, expects_answer: bool, now: float, zone: str | None) -> Classified | None:
    """The class of a failed turn; None when the turn is good. Whether a good answer is usable is not asked here."""
    seen = _gather(events)
    if not seen.final and seen.answered:
        found = list(_from_answer(seen.answer))
        return _told(found, seen, now, zone) if found else None
    if seen.ended is not None and seen.ended.why == "budget":
        return _told(
            [_Evidence(FailureKind.BUDGET, "ended at its budget", "the turn reached its budget")], seen, now, zone
        )
    if seen.ended is not None and seen.ended.why == "disk":
        words = seen.ended.stderr.rpartition(OURS)[2] or "it wrote more than a sandbox may hold"
        return _told([_Evidence(FailureKind.DISK, "disk", words)], seen, now, zone)
    if not seen.final and not seen.denied and not expects_answer and _ended_well(seen):
        return None
    found = [*_from_troubles(seen), *_from_limits(seen), *_from_answer(seen.answer), *_from_process(seen)]
    return _told(found or [_leftover(seen)], seen, now, zone)


def _gather(events: Iterable[AgentEvent]) -> _Seen:
    seen = _Seen()
    for event in events:
        match event:
            case Said():  # also how some tools show an error, so a limit notice stays
                seen.troubles = seen.final
            case ToolBegan() | ToolEnded():
                seen.troubles = seen.final
                seen.limits = []
                seen.denied = seen.denied or (isinstance(event, ToolEnded) and event.denied)
            case Trouble():
                seen.troubles.append(event)
            case LimitSeen(hit=True):
                seen.limits.append(event)
            case Answered():
                seen.answer = event
            case ProcessEnded():
                seen.ended = event
            case Compacted():
                seen.compacted = event
            case SessionKnown():
                seen.session = event.id
            case _:
                pass
    return seen


def _ended_well(seen: _Seen) -> bool:
    """Whether nothing but an answer is missing: the work tree may be the result."""
    if seen.compacted is not None and not seen.compacted.ok:
        return False
    if seen.ended is None:
        return seen.answer is not None or seen.compacted is not None
    return seen.ended.code == 0 and seen.ended.why == "exited"


def _from_troubles(seen: _Seen) -> Iterator[_Evidence]:
    for trouble in seen.troubles:
        yield from _by_field(Where.STATUS, [str(trouble.status or "")], trouble.message)
        yield from _by_field(Where.TYPE, trouble.type.replace(",", " ").split(), trouble.message)
        if trouble.type in _NAMES:  # `spawn` is said of anything that did not start; the words may know better
            weak = trouble.type == FailureKind.SPAWN
            yield _Evidence(FailureKind(trouble.type), f"the backend said {trouble.type}", trouble.message, weak=weak)
        if ended := _COMMAND.match(trouble.message):
            yield from _by_field(Where.EXIT, [ended["code"]], trouble.message)
            yield from _by_lines(trouble.message[ended.end() :], f"the command ended with code {ended['code']}: ")
        else:
            yield from _by_text(trouble.message)
    if seen.compacted is not None and not seen.compacted.ok:
        yield from list(_by_text(seen.compacted.text)) or [
            _Evidence(FailureKind.OVERFLOW, "compaction failed", seen.compacted.text, weak=True)
        ]


def _from_limits(seen: _Seen) -> Iterator[_Evidence]:
    """A limit that stops us is a cap where it says which or until when; a bare one is that only by itself."""
    for limit in seen.limits:
        said = limit.text or f"{limit.window or 'a'} limit is used up"
        is_bare = not limit.window and limit.resets_at is None and not limit.text
        yield _Evidence(FailureKind.CAP, "limit notice", said, weak=is_bare and bool(seen.troubles))


def _from_answer(answer: Answered | None) -> Iterator[_Evidence]:
    if answer is None:
        return
    yield from _by_field(Where.TYPE, [answer.stop] if answer.stop in ("refusal", "content_filter") else [], answer.text)
    if answer.structured is None and len(answer.text) < 400:
        yield from _by_field(Where.ANSWER, [_plain(answer.text)], answer.text)


def _from_process(seen: _Seen) -> Iterator[_Evidence]:
    if seen.denied and not seen.answered:
        yield _Evidence(FailureKind.TOOL_DENIED, "denied tool", "a tool was denied, and there is no answer", weak=True)
    ended = seen.ended
    if ended is None:
        return
    if ended.why in _TOLD:
        yield _Evidence(FailureKind.TIMEOUT, f"{ended.why} clock", _TOLD[ended.why], weak=True)
    elif ended.why == "cancelled":
        yield _Evidence(FailureKind.CRASH, "cancelled", "the turn was cancelled", weak=True, transient=True)
    elif ended.code != 0:
        yield from _by_lines(ended.stderr)
        words = f"the agent's process {_ending(ended.code)}{_last_line(ended.stderr)}"
        if not seen.final:
            yield from _by_field(Where.EXIT, [str(ended.code)], words)


def _leftover(seen: _Seen) -> _Evidence:
    """What a turn is that no rule knows."""
    if seen.troubles and (ended := _COMMAND.match(said := seen.troubles[-1].message)):
        words = f"the command ended with code {ended['code']}{_last_line(said[ended.end() :])}"
        return _Evidence(FailureKind.CRASH, f"exit {ended['code']}", words, final=True)
    if seen.troubles:
        return _Evidence(FailureKind.CRASH, "unknown trouble", seen.troubles[-1].message)
    if seen.ended is not None and seen.ended.code != 0:
        words = f"the agent's process {_ending(seen.ended.code)}{_last_line(seen.ended.stderr)}"
        return _Evidence(FailureKind.CRASH, f"exit {seen.ended.code}", words)
    return _Evidence(FailureKind.EMPTY, "no answer", "the agent gave no answer")


def _by_field(where: Where, subjects: Iterable[str], text: str) -> Iterator[_Evidence]:
    for subject in subjects:
        yield from (_evidence(rule, text or subject) for rule in rules() if rule.where is where and rule.fits(subject))


def _by_lines(text: str, before: str = "") -> Iterator[_Evidence]:
    """What each line says; `before` is put in front of it where people read it."""
    for line in text.splitlines()[-400:]:
        for found in _by_text(line):
            yield replace(found, text=before + found.text)


def _by_text(text: str) -> Iterator[_Evidence]:
    """What the words say, envelope by envelope: an error is often an error in an error."""
    layer = _plain(text[:_LONGEST])
    for _ in range(_LAYERS):
        if layer.startswith("{"):
            yield from _by_body(layer, text)
            return
        yield from (_evidence(rule, text) for rule in rules() if rule.where is Where.TEXT and rule.fits(layer))
        found, inner = _unwrap(layer)
        if found:
            yield from _by_field(Where.STATUS, [found], text)
        if inner == layer:
            return
        layer = inner


def _unwrap(layer: str) -> tuple[str, str]:
    """The status that an envelope names and what is inside; the same text where there is no envelope."""
    for pattern in _STATUS_SAID:
        if said := pattern.match(layer):
            return said["status"], layer[said.end() :]
    for pattern in _ENVELOPES:
        if outer := pattern.match(layer):
            inner = layer[outer.end() :]
            status = _STATUS_FIRST.match(inner)
            return (status["status"] if status and pattern is not _ENVELOPES[1] else ""), inner
    if first := _STATUS_FIRST.match(layer):
        inner = layer[first.end() :]
        return (first["status"] if inner.startswith("{") else ""), inner
    return "", layer


def _by_body(layer: str, text: str) -> Iterator[_Evidence]:
    """What a JSON error body says: its type and code, then its message."""
    try:
        body, _ = json.JSONDecoder().raw_decode(layer)
    except (ValueError, RecursionError):
        return
    error = _lowered(body).get("error", body)
    if isinstance(error, dict):
        error = _lowered(error)
        details = error.get("details")
        held = (error, _lowered(details)) if isinstance(details, dict) else (error,)
        names = [each.get(key) for each in held for key in ("type", "code", "error_code", "status")]
        yield from _by_field(Where.TYPE, [name for name in names if isinstance(name, str)], text)
        said = error.get("message")
        if isinstance(said, str) and not said.lstrip().startswith("{"):
            yield from _by_text(said)


def _lowered(data: dict[str, Json]) -> dict[str, Json]:
    return {name.lower(): value for name, value in data.items()}


def _evidence(rule: FailureRule, text: str) -> _Evidence:
    return _Evidence(
        rule.kind, name=rule.name, text=text, weak=rule.weak, transient=rule.transient, monthly=rule.monthly
    )


def _told(found: Sequence[_Evidence], seen: _Seen, now: float, zone: str | None) -> Classified:
    """The first class in the order of `FailureKind`, of the strong evidence if there is any."""
    strong = [each for each in found if not each.weak]
    best = min(strong or found, key=lambda each: _ORDER[each.kind])
    resets_at = _resets_at(best, seen, now, zone) if best.kind in (FailureKind.CAP, FailureKind.RATE_LIMIT) else None
    detail = Detail(
        evidence=f"{best.name}: {_line(best.text, 300)}",
        resets_at=resets_at,
        retry_after=_retry_after(best, seen, now),
        session=seen.session,
        transient=best.kind is FailureKind.CRASH and best.transient,
        final=best.final,
    )
    return Classified(best.kind, _line(best.text, 500) or best.name, detail)


def _resets_at(best: _Evidence, seen: _Seen, now: float, zone: str | None) -> float | None:
    """When the limit ends: as a number from the backend, else from words. What is over is not believed.

    A session limit whose time of day was a few minutes ago has ended by now: it does not last until tomorrow.
    """
    stated = [limit.resets_at for limit in seen.limits] + [trouble.resets_at for trouble in seen.troubles]
    waits = [parse_retry_after(at, now) for at in stated if at is not None and at > 1e9]
    coming = [wait for wait in waits if wait]
    if coming:
        return now + max(coming)
    if best.kind is not FailureKind.CAP:
        return None
    for text in (best.text, *(limit.text for limit in seen.limits), *(trouble.message for trouble in seen.troubles)):
        at = parse_reset(text, now, zone)
        if at is not None and not (_SESSION_WORDS.search(text) and at > now + _JUST_OVER):
            return at
    if best.monthly:
        return next_month(now)
    return None


def _retry_after(best: _Evidence, seen: _Seen, now: float) -> float | None:
    if best.kind not in (FailureKind.CAP, FailureKind.RATE_LIMIT, FailureKind.OVERLOADED, FailureKind.UNREACHABLE):
        return None
    stated = [parse_retry_after(trouble.retry_after, now) for trouble in seen.troubles]
    usable = [wait for wait in stated if wait is not None]
    if usable:
        return max(usable)
    return parse_wait(best.text) if best.kind is FailureKind.RATE_LIMIT else None


def _plain(text: str) -> str:
    """The text with plain quotes and dots, without terminal escapes and outer blanks."""
    return _CONTROL.sub("", text).translate(_PLAIN).strip()


def _line(text: str, length: int) -> str:
    """One line for people: no control characters, cut where it is long."""
    return one_line(_CONTROL.sub(" ", text[: 4 * length]), length)


def _ending(code: int) -> str:
    return f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"


def _last_line(stderr: str) -> str:
    said = [line.strip() for line in stderr.splitlines() if line.strip()]
    return f": {said[-1]}" if said else ""
