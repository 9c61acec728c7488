"""What an honest change is, and the ways to write one down shortly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tests.security.shop import BASE
from tests.security.shop_modules import ORACLE

Files = dict[str, str | bytes | None]
"""What is left in a work tree. None removes a file."""


@dataclass(frozen=True, slots=True)
class Honest:
    """One change as people and agents make them, on top of the base.

    `expect` is `needs_person` where it changes a protected path. `base` are files of the base that differ from the
    usual project. `proof` says that one of its new tests fails on the base, `heals` that a red test of the base passes now. `probe` is a program that
    runs to its end in a plain process; empty where the change gives the product another interface.
    """

    name: str
    files: Files
    expect: Literal["green", "needs_person"] = "green"
    base: dict[str, str] | None = None
    proof: bool = False
    heals: bool = False
    probe: str = ORACLE


def edited(path: str, *changes: tuple[str, str], before: str = "", after: str = "") -> Files:
    """A file of the base with texts exchanged, and something around it."""
    text = BASE[path]
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return {path: before + text + after}


def tested(name: str, text: str) -> Files:
    """A new file of tests."""
    return {f"tests/test_{name}.py": text}
