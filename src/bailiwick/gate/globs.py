"""Patterns of paths as `protected` and `--allow` have them. Pure.

A pattern is anchored at the top of the tree and compared part by part, without regard to upper and lower case:
`*`, `?` and `[…]` stay within one part; `**` as a whole part stands for any number of parts, none included. A pattern
that ends in `/**` or `/` also means the thing itself, so that nobody gets around `tests/**` by making `tests` a link.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

_CACHED = 512


def fault_of(pattern: str) -> str:
    """What is wrong with a pattern, in words; empty where nothing is."""
    parts = pattern.removeprefix("/").split("/")
    if not pattern.strip("/"):
        return "a pattern that names something is expected"
    if pattern.startswith("!"):
        return "exceptions with `!` are not known here"
    if "\\" in pattern or "\0" in pattern:
        return "paths have `/` between their parts and no backslash"
    if any(part in (".", "..") for part in parts):
        return "`.` and `..` can't be parts of a pattern"
    if any("**" in part and part != "**" for part in parts):
        return "`**` has to be a whole part, as in `tests/**`"
    return ""


def matches(pattern: str, path: str) -> bool:
    """Whether a path of the tree is meant by a pattern."""
    return _compiled(pattern).fullmatch(path.casefold()) is not None


def first_match(patterns: Iterable[str], path: str) -> str:
    """The first pattern that means a path; empty where none does."""
    listed = tuple(patterns)
    if not listed or _union(listed).fullmatch(path.casefold()) is None:
        return ""
    return next(pattern for pattern in listed if matches(pattern, path))


@lru_cache(maxsize=8)
def _union(patterns: tuple[str, ...]) -> re.Pattern[str]:
    """All of them in one: thousands of paths are asked about, and few are meant."""
    return re.compile("|".join(f"(?:{_compiled(pattern).pattern})" for pattern in patterns))


@lru_cache(maxsize=_CACHED)
def _compiled(pattern: str) -> re.Pattern[str]:
    text = pattern.removeprefix("/").casefold()
    parts = [part for part in text.split("/") if part]
    below = text.endswith("/") or parts[-1:] == ["**"]
    while len(parts) > 1 and parts[-1] == "**":
        parts.pop()
    if parts == ["**"]:
        return re.compile(r"(?s:.*)")
    out = ""
    for index, part in enumerate(parts):
        last = index == len(parts) - 1
        out += r"(?:[^/]+/)*" if part == "**" else _part(part) + ("" if last else "/")
    return re.compile(out + (r"(?:/(?s:.*))?" if below else ""))


def _part(part: str) -> str:
    """The expression for one part; a `[` that opens nothing that can be read stands for itself."""
    out = ""
    index = 0
    while index < len(part):
        sign = part[index]
        index += 1
        if sign == "*":
            out += "[^/]*"
        elif sign == "?":
            out += "[^/]"
        elif sign == "[" and (signs := _signs(part, index)):
            out += signs
            index = part.find("]", index + 1) + 1
        else:
            out += re.escape(sign)
    return out


def _signs(part: str, start: int) -> str:
    """The expression for `[…]` whose inside begins at `start`; empty where it is never closed or its ranges are not."""
    end = part.find("]", start + 1)
    if end < 0:
        return ""
    inside = part[start:end]
    negated = inside[0] in "!^"
    listed = re.sub(r"([\\\[\]^&~|])", r"\\\1", inside[1:] if negated else inside)
    made = f"(?!/)[{'^' if negated else ''}{listed}]"
    try:
        re.compile(made)
    except re.error:
        return ""
    return made
