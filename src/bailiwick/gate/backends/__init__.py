"""Kinds of check by name: ours from a static table, others' by entry point. Nothing is imported before it is used."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from bailiwick.errors import UsageError
from bailiwick.gate.spec import GROUP, UNKNOWN_CHECK

if TYPE_CHECKING:
    from bailiwick.gate.port import Check

TABLE: dict[str, str] = {
    "command": "bailiwick.gate.backends.command:CommandCheck",
    "pytest": "bailiwick.gate.backends.pytest:PytestCheck",
    **dict.fromkeys(
        ("node-test", "vitest", "jest", "mocha", "go-test", "cargo-test"), "bailiwick.gate.backends.runners:RunnerCheck"
    ),
    "secret-scan": "bailiwick.gate.backends.secret_scan:SecretScan",
    "diff-size": "bailiwick.gate.backends.diff_size:DiffSize",
    "weakening": "bailiwick.gate.backends.weakening:WeakeningCheck",
    "judge": "bailiwick.gate.backends.judge:JudgeCheck",
}


def find_check(kind: str) -> Check:
    """The check of a kind. Raises `UsageError` for one that nobody provides."""
    if kind in TABLE:
        module, attribute = TABLE[kind].split(":")
        ours: Check = getattr(import_module(module), attribute)()
        return ours
    from importlib.metadata import entry_points

    for point in entry_points(group=GROUP, name=kind):
        theirs: Check = point.load()()
        return theirs
    raise UsageError(f"no kind of check '{kind}'", hint=f"known: {', '.join(TABLE)}", code=UNKNOWN_CHECK)
