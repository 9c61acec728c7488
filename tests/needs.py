"""Parts of a machine that some tests can't do without: such a test is skipped with the reason, or fails in CI.

    @pytest.mark.needs("sandbox")
    def test_…

A developer's machine may have nothing but Python, make and git; where a change is judged every part has to be there.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Callable
from functools import cache
from typing import NoReturn

import pytest


def is_judged() -> bool:
    """Whether a missing part is a failure here."""
    return os.environ.get("CI") == "true"


def lack(reason: str) -> NoReturn:
    """End a test whose part is missing: skipped, or failed where a change is judged."""
    if is_judged():
        pytest.fail(f"this has to be here: {reason}")
    pytest.skip(f"NOT TESTED: {reason}")


@cache
def _sandbox() -> str:
    from bailiwick.sandbox.backends.bwrap import BwrapBackend

    if shutil.which("bwrap") is None:
        return "no sandbox works here: bwrap is not installed (make system)"
    standing = asyncio.run(BwrapBackend().check())
    return "" if standing.ok else f"no sandbox works here: {standing.found}"


@cache
def _program(name: str) -> str:
    return "" if shutil.which(name) else f"{name} is not installed (make system)"


_PARTS: dict[str, Callable[[], str]] = {
    "sandbox": _sandbox,
    "strace": lambda: _program("strace"),
    "node": lambda: _program("node"),
    "npm": lambda: _program("npm"),
    "busybox": lambda: _program("busybox"),
    "openssl": lambda: _program("openssl"),
    "bash": lambda: _program("bash"),
}


def program(name: str) -> None:
    """Go on only where this program is installed; nobody has to have it."""
    if shutil.which(name) is None:
        pytest.skip(f"NOT TESTED: {name} is not installed")


def need(part: str) -> None:
    """Go on only where the machine has this part."""
    reason = _PARTS[part]()
    if reason:
        lack(reason)


def look_at_marks(item: pytest.Item) -> None:
    """End a test whose marks name a part that is missing, before anything is set up for it."""
    for mark in item.iter_markers("needs"):
        for part in mark.args:
            need(part)
