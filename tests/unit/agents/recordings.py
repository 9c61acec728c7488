"""Recordings of agent programs, and what is expected of whoever reads them."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from hypothesis import strategies as st

from bailiwick.agents.classify import classify
from bailiwick.agents.invoke import conclude
from bailiwick.agents.port import (
    AgentEvent,
    Answered,
    Emit,
    LimitSeen,
    ProcessEnded,
    SessionKnown,
    ToolBegan,
    ToolEnded,
    Trouble,
    Used,
)
from bailiwick.agents.streams import read_object
from bailiwick.processes.command import Exit

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bailiwick.ids import Json

FOLDER = Path(__file__).parents[2] / "transcripts"
NOW = 1_794_782_000.0
"""About when the recordings were made."""
_E = TypeVar("_E")


class Reader(Protocol):
    """What reads the lines of one run."""

    outcome: Answered | Trouble | None

    def see(self, event: dict[str, Json]) -> None: ...


def cases(cli: str) -> list[dict[str, str]]:
    """The rows of `expected.tsv`."""
    with (FOLDER / cli / "expected.tsv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def lines_of(cli: str, case: str) -> list[bytes]:
    """What the program printed."""
    return (FOLDER / cli / f"{case}.jsonl").read_bytes().splitlines()


def end_of(cli: str, row: dict[str, str]) -> Exit:
    """How the program ended; one that never did was ended by the silence clock."""
    stderr = FOLDER / cli / f"{row['case']}.stderr"
    said = stderr.read_bytes() if stderr.exists() else b""
    if row["exit"] == "timeout":
        return Exit(-15, b"", said, 1.0, timed_out=True, why="silence")
    return Exit(int(row["exit"]), b"", said, 1.0)


def summary(cli: str, make: Callable[[Emit], Reader], row: dict[str, str]) -> dict[str, str]:
    """What a reader makes of a recording, in the words of `expected.tsv`."""
    events: list[AgentEvent] = []
    reader = make(events.append)
    for line in lines_of(cli, row["case"]):
        event = read_object(line)
        if event is not None:
            reader.see(event)
    conclude(end_of(cli, row), reader.outcome, events.append)
    failed = classify(events, expects_answer=True, now=NOW, zone="UTC")
    return {
        "case": row["case"],
        "exit": row["exit"],
        "class": "good" if failed is None else str(failed.kind),
        **_last(events[-1]),
        **_before(events[:-1]),
    }


def _last(event: AgentEvent) -> dict[str, str]:
    match event:
        case Answered(text=text, stop=said):
            status = resets = None
        case Trouble(message=text, type=said, status=status, resets_at=resets, final=True):
            pass
        case ProcessEnded(stderr=text, why=said):
            status = resets = None
        case _:
            raise AssertionError(f"a turn does not end with {event}")
    text = text.replace("\n", " ")[:90]
    return {"final": type(event).__name__, "status": _word(status), "said": said, "resets": _word(resets), "text": text}


def _before(events: list[AgentEvent]) -> dict[str, str]:
    assert not any(isinstance(event, Answered | ProcessEnded) for event in events)
    sessions = {event.id for event in _only(events, SessionKnown)}
    assert len(sessions) <= 1
    used = [(use.input, use.output, use.cached, use.usd) for use in _only(events, Used)]
    ended = [event.denied for event in _only(events, ToolEnded)]
    limits = [
        ":".join((seen.window, "hit" if seen.hit else "ok", _word(seen.used), _word(seen.resets_at)))
        for seen in _only(events, LimitSeen)
    ]
    return {
        "session": next(iter(sessions), "")[:13],
        "used": "/".join(map(_word, used[-1])) if used else "",
        "tools": f"{len(_only(events, ToolBegan))}/{ended.count(False)}/{ended.count(True)}",
        "notices": str(sum(not trouble.final for trouble in _only(events, Trouble))),
        "limits": ",".join(limits),
    }


def _only(events: Sequence[AgentEvent], kind: type[_E]) -> list[_E]:
    return [event for event in events if isinstance(event, kind)]


def _word(value: float | None) -> str:
    return "" if value is None else str(value)


def hostile_lines(cli: str) -> st.SearchStrategy[dict[str, Json]]:
    """Objects of the right names with anything in them: what a newer, broken or malicious program might print."""
    names = sorted({name for row in cases(cli)[:40] for line in lines_of(cli, row["case"]) for name in _names(line)})
    words = sorted({str(event.get("type")) for row in cases(cli) for event in _events(cli, row["case"])})
    leaves = st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(words) | st.text(max_size=5)
    keys = st.sampled_from(names)
    values = st.recursive(leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=4))
    return st.builds(
        lambda kind, rest: {**rest, "type": kind}, st.sampled_from(words), st.dictionaries(keys, values, max_size=8)
    )


def _events(cli: str, case: str) -> list[dict[str, Json]]:
    return [event for event in map(read_object, lines_of(cli, case)) if event is not None]


def _names(line: bytes) -> set[str]:
    found: set[str] = set()
    todo: list[Json] = [read_object(line)]
    while todo:
        value = todo.pop()
        if isinstance(value, dict):
            found.update(value)
            todo += value.values()
        elif isinstance(value, list):
            todo += value
    return found
