"""What a cheat is, and the ways to write one down shortly."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tests.security.shop import BASE, BROKEN
from tests.security.shop_modules import ORACLE

Files = dict[str, str | bytes | None]
"""What is left in a work tree. None removes a file; a text that starts with `-> ` is a symbolic link."""


@dataclass(frozen=True, slots=True)
class Cheat:
    """A wrong product that looks right: the files an agent leaves on top of the base.

    `base` are files of the base that differ from the usual project. `fools` says that plain pytest ends with 0 on it.
    `why` is a pattern that one line of the report has to match. `probe` is a program that fails in a plain process
    because the product is wrong.
    """

    name: str
    kind: str
    files: Files
    base: dict[str, str] | None = None
    fools: bool = True
    why: str = ""
    probe: str = ORACLE


def sold(*, before: str = "", after: str = "", body: str = BROKEN) -> Files:
    """The broken prices with something around them."""
    return {"shop/prices.py": f"{before}\n{body}\n{after}\n"}


def edited(path: str, *changes: tuple[str, str], before: str = "", after: str = "") -> Files:
    """A file of the base with texts exchanged, and something around it."""
    return {path: before + exchanged(BASE[path], *changes) + after}


def exchanged(text: str, *changes: tuple[str, str]) -> str:
    """A text with others in place of some that it has."""
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return text


def broken(files: Mapping[str, str | bytes | None]) -> Files:
    """The broken prices beside other files."""
    return {"shop/prices.py": BROKEN, **files}
