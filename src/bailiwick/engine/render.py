"""What the engine needs of templates: a pure function from template and context to a value. `lang.templates` is it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from bailiwick.ids import Json

Lookup = Callable[[str], Json]
"""Finds a context value by its top-level name; raises `KeyError` where there is none."""


@dataclass(frozen=True, slots=True)
class Rendered:
    """A rendered value and the variables it missed (they rendered empty)."""

    value: Json
    missing: tuple[str, ...] = ()


class RenderFailed(Exception):
    """The template could not be rendered: syntax, a forbidden access, too large, or a missing name under `strict`."""


class Renderer(Protocol):
    """Renders templates. The same template and context give the same value."""

    def text(self, template: str, lookup: Lookup) -> Rendered:
        """The text of a template."""

    def file(self, name: str, lookup: Lookup) -> Rendered:
        """The text of a template file of the workflow; it keeps its last newline."""

    def value(self, template: Json, lookup: Lookup) -> Rendered:
        """A JSON value whose texts are templates; a text that is one lone expression keeps its type."""
