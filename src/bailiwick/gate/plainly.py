"""Tests that were run without their tool: what that shows about a change. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from bailiwick.gate.model import Finding

LEFT_OUT = "left out"
_NEEDED_BY_TOOLS = ("pluggy", "iniconfig", "packaging", "pygments", "exceptiongroup", "execnet", "coverage", "xdist")


@dataclass(frozen=True, slots=True)
class PlainTestRun:
    """How a test function ended twice without its tool, here and on the base: empty where it passed."""

    test: str
    here: tuple[str, ...]
    base: tuple[str, ...] = ()

    @property
    def fails(self) -> bool:
        """Whether it fails here each time."""
        return failed(self.here)


def failed(ends: Collection[str]) -> bool:
    """Whether a test failed each time."""
    return len(ends) == 2 and all(end and not end.startswith(LEFT_OUT) for end in ends)


def held(ends: Collection[str]) -> bool:
    """Whether a test passed each time."""
    return len(ends) == 2 and not any(ends)


def could_be_alone(bare: Iterable[str], passed: Collection[str]) -> list[str]:
    """Test functions of which every test is bare and passed."""
    by_function: dict[str, list[bool]] = {}
    for test in sorted(bare):
        by_function.setdefault(test.partition("[")[0], []).append(test in passed)
    return [name for name, all_passed in by_function.items() if all(all_passed)]


def alone_findings(tests: Iterable[PlainTestRun], known: Collection[str], path: str) -> list[Finding]:
    """Tests that pass under their tool and fail without it. `known`: they passed on the base already. `path` changed.

    Where the base's own run without the tool passed, the change is what makes the difference. Where the test was red
    there, nobody can know whether it could ever pass like this: a person is asked.
    """
    found = []
    for one in tests:
        was = one.test in known
        if not one.fails or (was and not held(one.base)):
            continue
        what = f"{one.test} passes under pytest and fails where no test tool is loaded: {one.here[0]}"
        found.append(Finding("only-under-test", what, path, blocks=was, parks=not was))
    return found


def undeclared(manifests: Iterable[str]) -> list[str]:
    """Packages that test tools bring along and that no manifest of the project names."""
    words = {word.lower() for text in manifests for word in re.findall(r"[A-Za-z0-9_]+", text)}
    return [name for name in _NEEDED_BY_TOOLS if name not in words]
