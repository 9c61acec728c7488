"""How the outcome of a call is told at a terminal. What others wrote in it is shown as plain text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from bailiwick.git.names import shown
from bailiwick.ids import Json

if TYPE_CHECKING:
    from bailiwick.routing.model import Outcome

EXHAUSTED = 6
_CODES = {"pass": 0, "fail": 1, "error": 1}
_LINES = 40
"""Lines of the tests' output that are shown."""
_WIDE = 2000
"""Characters of one line."""


def document(outcome: Outcome | Mapping[str, Json]) -> dict[str, Json]:
    """The outcome of a call as one JSON document."""
    if isinstance(outcome, Mapping):
        return dict(outcome)
    more: dict[str, Json] = {"call": outcome.call, "why": outcome.why}
    return {**outcome.result.to_json(), **more, **({"error": outcome.error} if outcome.error else {})}


def exit_code(told: Mapping[str, Json]) -> int:
    """0 for done or answered, 1 for a failure that was told, 6 where no tier gave anything that holds."""
    if "attempts" not in told:
        return 0
    if told.get("error"):
        return EXHAUSTED
    return _CODES.get(str(told.get("status")), 1)


def lines(told: Mapping[str, Json]) -> Iterator[str]:
    """A result for people: what came of it, where it is, what was found, who tried."""
    if "attempts" not in told:
        yield from _tiers(told["tiers"]) if isinstance(told.get("tiers"), list) else _details(dict(told), "")
        return
    head = (told.get("status"), _name(told), told.get("model_used"))
    yield "  ".join(plain(str(part)) for part in head if part)
    for text in dict.fromkeys(told.get(key) for key in ("message", "error")):
        if text:
            yield f"  {plain(str(text))}"
    if told.get("file_path"):
        yield f"  file  {plain(str(told['file_path']))}"
    for finding in told.get("findings") or ():
        yield from _finding(finding)
    for candidate in told.get("candidates") or ():
        yield f"  - {plain(str(candidate.get('title') or candidate))}"
    yield from _details(told.get("details") or {}, "  ")
    if told.get("status") != "pass":
        yield from (f"  | {indented(line)}" for line in str(told.get("runner_output") or "").splitlines()[-_LINES:])
    for attempt in told.get("attempts") or ():
        yield f"  {_attempt(attempt)}"
    if told.get("why"):
        yield f"  why   {plain(str(told['why']))}"


def _tiers(tiers: list[Json]) -> Iterator[str]:
    """Each tier: whether it can be reached and how that was found out, its models, what stands in the way."""
    for one in tiers:
        state = "reachable" if one.get("reachable") else "NOT reachable"
        yield plain(f"{one.get('name')} ({one.get('tier')}): {state}, {one.get('said')}")
        yield f"    asked      {plain(str(one.get('probed')))}"
        for name, word in (("models", "models"), ("loaded", "loaded"), ("missing", "missing")):
            if one.get(name):
                yield f"    {word:9}  {plain(', '.join(map(str, one[name])))}"
        if one.get("cooling_until"):
            yield f"    left alone until {plain(str(one['cooling_until']))}: {plain(str(one.get('cooling_why')))}"


def plain(text: str) -> str:
    """A text on one line that is safe to show: what a terminal would obey is spelled out."""
    return indented(" ".join(text.split()))


def indented(line: str) -> str:
    """A line that is safe to show, with the blanks that it begins with."""
    return shown(line if len(line) <= _WIDE else line[: _WIDE - 1] + "…")


def _name(told: Mapping[str, Json]) -> str:
    skill, phase = str(told.get("skill") or ""), str(told.get("phase") or "")
    return f"{skill} {phase}" if phase and phase != skill else skill


def _finding(finding: Mapping[str, Json]) -> Iterator[str]:
    place = f"{finding.get('file', '')}:{finding.get('line', '')}"
    yield plain(f"{place}: {finding.get('severity', '')}: {finding.get('title', '')}")
    for key in ("detail", "suggestion"):
        if finding.get(key):
            yield f"    {plain(str(finding[key]))}"


def _details(value: Json, indent: str) -> Iterator[str]:
    """Nested values as indented lines."""
    if isinstance(value, dict):
        for key, part in value.items():
            if isinstance(part, dict | list):
                yield f"{indent}{plain(str(key))}:"
                yield from _details(part, indent + "  ")
            elif part not in (None, ""):
                yield f"{indent}{plain(str(key))}: {plain(str(part))}"
    elif isinstance(value, list):
        for part in value:
            first, *rest = list(_details(part, "")) or [""]
            yield f"{indent}- {first}"
            yield from (f"{indent}  {line}" for line in rest)
    else:
        yield f"{indent}{plain(str(value))}"


def _attempt(attempt: Mapping[str, Json]) -> str:
    seconds = float(attempt.get("duration_ms") or 0) / 1000
    who = f"{attempt.get('attempt')}. {attempt.get('model')} ({attempt.get('tier')})"
    text = f"{who}: {attempt.get('verdict')}, {seconds:.1f} s"
    return plain(f"{text}: {attempt['feedback']}" if attempt.get("feedback") else text)
