"""Writes workflow directories for tests, and loads them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

import pytest

from bailiwick.engine.graph import Graph
from bailiwick.errors import InputInvalid, Problem
from bailiwick.lang.load import Finder, Loaded, load

END = "  - {id: done, type: terminal}\n"


@dataclass
class Flow:
    """A workflow directory that a test fills."""

    root: Path

    def write(self, name: str, text: str) -> Path:
        """Write a file, its directories included."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text), encoding="utf-8")
        return path

    def nodes(self, nodes: str, head: str = "") -> None:
        """Write a workflow.yaml that starts at `a`, with these nodes and an end called `done`."""
        body = "".join(f"  {line}\n" for line in dedent(nodes).strip("\n").splitlines())
        self.write("workflow.yaml", f"start: a\n{dedent(head)}nodes:\n{body}{END}")

    def load(self, find: Finder | None = None, *, strict: bool = False) -> Loaded:
        """Load it."""
        return load(self.root, find, strict=strict)

    def graph(self) -> Graph:
        """Its compiled form."""
        return self.load().graph

    def problems(self) -> list[Problem]:
        """All problems of a workflow that can't be loaded."""
        with pytest.raises(InputInvalid) as caught:
            self.load()
        return caught.value.problems()

    def problem(self, code: str) -> Problem:
        """The one error with this code, which has a place and a hint as every problem must."""
        [found] = [problem for problem in self.problems() if problem.code == code]
        assert not found.warning
        return complete(found)

    def warning(self, code: str) -> Problem:
        """The one warning with this code of a workflow that loads."""
        [found] = [problem for problem in self.load().warnings if problem.code == code]
        assert found.warning
        return complete(found)


def complete(problem: Problem) -> Problem:
    """A problem that tells a person what, where and how to fix it."""
    assert problem.what
    assert problem.place is not None
    assert problem.hint
    return problem


def word_at(problem: Problem) -> str:
    """What stands in the file where a problem points to, up to the end of the line."""
    assert problem.place is not None
    line = Path(problem.place.file).read_text(encoding="utf-8").splitlines()[problem.place.line - 1]
    return line[problem.place.column - 1 :]


def at(problem: Problem) -> tuple[int, int]:
    """The line and column of a problem."""
    assert problem.place is not None
    return problem.place.line, problem.place.column
