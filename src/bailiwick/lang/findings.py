"""Where the problems of an input file are gathered, and what a shape of it promises."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from bailiwick.errors import Place, Problem
from bailiwick.lang import codes
from bailiwick.lang.values import Value, describe
from bailiwick.lang.wording import suggestion

if TYPE_CHECKING:
    from bailiwick.ids import Json

MAX_SUGGESTED = 25
Schema = dict[str, "Json"]
"""A JSON Schema."""


@dataclass(slots=True)
class Findings:
    """Collects problems; `strict` makes unknown keys errors instead of warnings."""

    strict: bool = True
    problems: list[Problem] = field(default_factory=list)
    suggested: int = 0

    @property
    def failed(self) -> bool:
        """Whether there is an error among the problems."""
        return any(not problem.warning for problem in self.problems)

    def failed_since(self, before: int) -> bool:
        """Whether there is an error among the problems after the first `before` ones."""
        return len(self.problems) > before and any(not problem.warning for problem in self.problems[before:])

    def error(self, code: str, what: str, place: Place, hint: str = "") -> None:
        """Note an error."""
        self.problems.append(Problem(code, what, place, hint))

    def warn(self, code: str, what: str, place: Place, hint: str = "") -> None:
        """Note a warning."""
        self.problems.append(Problem(code, what, place, hint, warning=True))

    def suggest(self, name: str, known: Iterable[str], otherwise: str) -> str:
        """A hint with the nearest known names, or `otherwise`; only the first problems are worth the time."""
        self.suggested += 1
        return suggestion(name, known, otherwise) if self.suggested <= MAX_SUGGESTED else otherwise

    def wrong(self, value: Value, expected: str, hint: str = "") -> None:
        """Note a value of the wrong type or out of bounds."""
        self.error(
            codes.WRONG_TYPE,
            f"expected {expected}, found {describe(value.data)}",
            value.place,
            hint or f"give {expected}",
        )


class Shape(Protocol):
    """What a value has to look like."""

    @property
    def expects(self) -> str:
        """The shape in words, as in "expected …"."""

    def accepts(self, data: Json) -> bool:
        """Whether the type fits, before its parts are looked at."""

    def read(self, value: Value, found: Findings) -> Json:
        """The plain value; on a problem, notes it and gives None."""

    def schema(self) -> Schema:
        """The shape as JSON Schema."""
