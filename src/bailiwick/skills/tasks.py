"""The task that a model is given: `key: value` lines that nothing in a value can forge, after what happened before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bailiwick.ids import Json
from bailiwick.skills.model import Tool

INDENT = "  "
"""Before the second and later lines of a value: a line that begins a key stands at the margin."""
MAX_ENTRIES = 50
MAX_LINE = 400
"""Characters of one entry of the history."""
TITLE = "## Session history"
RULE = "---"
_APART = frozenset({"session_id", "model"})
"""Arguments that are about the call and not about the work."""


def task_text(tool: Tool, arguments: Mapping[str, Json], more: Mapping[str, str] | None = None) -> str:
    """The task of a call: the phase, the given arguments in the tool's order, then `more` lines."""
    values: dict[str, Json] = {"phase": tool.phase or tool.name}
    for one in tool.all_arguments:
        value = arguments.get(one.name)
        if one.name not in _APART and value not in (None, "", []):
            values[one.name] = value
    return "\n".join(_line(key, value) for key, value in {**values, **(more or {})}.items())


def with_history(task: str, entries: Sequence[Mapping[str, Json]], phase: str) -> str:
    """The task after a block of a session's earlier entries but those of this phase; without any, just the task."""
    told = [_told(entry) for entry in entries if entry.get("phase") != phase][-MAX_ENTRIES:]
    if not told:
        return task
    return "\n".join((TITLE, "", *told, "", RULE, "", task))


def _line(key: str, value: Json) -> str:
    text = ", ".join(_flat(str(item)) for item in value) if isinstance(value, list | tuple) else str(value)
    first, *rest = text.splitlines() or [""]
    return "\n".join((f"{key}: {first}".rstrip(), *(f"{INDENT}{line}".rstrip() for line in rest)))


def _told(entry: Mapping[str, Json]) -> str:
    """One entry as one line: when, what, how it ended, in which words and which file."""
    skill, phase = _word(entry, "skill"), _word(entry, "phase")
    name = f"{skill}/{phase}" if phase and phase != skill else skill
    head = " ".join(word for word in (_word(entry, "timestamp"), name) if word)
    line = f"- {head}: {_word(entry, 'final_status') or 'unknown'}"
    if message := _word(entry, "message"):
        line += f" – {message}"
    if path := _word(entry, "file_path"):
        line += f" ({path})"
    return line if len(line) <= MAX_LINE else line[: MAX_LINE - 1] + "…"


def _word(entry: Mapping[str, Json], key: str) -> str:
    value = entry.get(key)
    return "" if value is None else _flat(str(value))


def _flat(text: str) -> str:
    return " ".join(text.split())
