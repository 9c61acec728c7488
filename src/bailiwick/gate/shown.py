"""The end of a program's output, safe to show."""

from __future__ import annotations

from bailiwick.processes.proc import plain_line

KEPT = 64 * 1024
"""Bytes of output that a report keeps: the last ones."""
_INDENT = 40


def shown_lines(raw: bytes, sandbox: int = KEPT) -> tuple[str, ...]:
    """The last lines of some output that fit, each safe to show; what was cut off is said."""
    kept = _end_of(raw, sandbox)
    cut = len(raw) - len(kept)
    lines = last_lines(raw, sandbox)
    return (f"… {cut} bytes before this are left out", *lines) if cut else lines


def last_lines(raw: bytes, sandbox: int) -> tuple[str, ...]:
    """The last whole lines of some output that fit, each safe to show."""
    return tuple(_safe(line) for line in _end_of(raw, sandbox).splitlines())


def _end_of(raw: bytes, sandbox: int) -> bytes:
    return raw if len(raw) <= sandbox else raw[-sandbox:].partition(b"\n")[2]


def _safe(raw: bytes) -> str:
    """A line without anything that acts on a terminal; its indent stays, for diffs and code are read by it."""
    bare = raw.lstrip(b" \t")
    return " " * min(len(raw) - len(bare), _INDENT) + plain_line(bare)
