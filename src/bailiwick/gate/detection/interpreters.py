"""Which Python a project is tested with, of those that are installed. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable

VERSIONS = tuple(f"3.{minor}" for minor in range(15, 8, -1))
"""The versions that can be chosen, the newest first."""
CAUTIOUS = "3.12"
"""The newest that is taken where a project does not say which ones it knows."""


def installed(has_tool: Callable[[str], bool]) -> tuple[str, ...]:
    """The versions that are there, the newest first."""
    return tuple(version for version in VERSIONS if has_tool(f"python{version}"))


def choose(asked: str, requires: str, listed: Collection[str], there: Iterable[str]) -> str:
    """The version to use; empty where none of those that are there will do.

    `asked` is the text of `.python-version`; `requires` is requires-python; `listed` are those of the classifiers.
    """
    wanted = re.search(r"3\.\d+", asked)
    known_here = tuple(there)
    if wanted and wanted[0] in known_here:
        return wanted[0]
    allowed = [version for version in known_here if allows(requires, version)]
    known = [version for version in allowed if version in listed]
    careful = [version for version in allowed if _key(version) <= _key(CAUTIOUS)]
    return next(iter((*known, *careful, *allowed)), "")


_RUNS_ON = (((6, 2, 5), "3.9"), ((7, 2), "3.10"), ((7, 3), "3.11"), ((8, 2), "3.12"))
"""Before which version pytest does not run on anything newer than which Python."""


def newest_for(requirements: Iterable[str]) -> str:
    """The newest Python that a pinned pytest runs on; empty where pytest is not held back."""
    for text in requirements:
        pinned = re.match(r"pytest\s*(?:==\s*([\d.]+)|.*?<\s*([\d.]+))", text)
        if pinned is None:
            continue
        version = _key((pinned[1] or pinned[2]).strip("."))
        for limit, newest in _RUNS_ON:
            if version < limit or (pinned[2] and version == limit):
                return newest
    return ""


def allows(requires: str, version: str) -> bool:
    """Whether a range of versions has room for some release of a minor version."""
    return all(_allows(part.strip(), version) for part in requires.split(",") if part.strip())


def _allows(part: str, version: str) -> bool:
    found = re.fullmatch(r"(>=|<=|==|!=|~=|>|<|\^)?\s*v?(\d+(?:\.\d+)*)(\.\*)?.*", part)
    if found is None:
        return True
    sign, bound, wild = found[1] or "==", _key(found[2]), found[3]
    here = _key(version)
    short = bound[:2]
    if sign in (">=", "^"):
        return here >= short
    if sign == "~=":
        return here >= short and here[: max(1, len(bound) - 1)] <= bound[: max(1, len(bound) - 1)]
    if sign == ">":
        return here > short or (here == short and len(bound) > len(short))
    if sign == "<":
        return here < short or (here == short and len(bound) > len(short) and any(bound[2:]))
    if sign == "<=":
        return here <= short
    if sign == "!=":
        return not (wild and here[: len(bound)] == bound)
    return here[: len(short)] == short


def is_newer(version: str, other: str) -> bool:
    """Whether a version comes after another."""
    return _key(version) > _key(other)


def _key(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))
