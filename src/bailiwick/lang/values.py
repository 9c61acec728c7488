"""A value of an input file together with the places of its parts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from bailiwick.errors import Place

if TYPE_CHECKING:
    from bailiwick.ids import Json

_SHORT = 40


class Value:
    """A YAML value: its plain JSON `data`, its place, its parts with theirs. Never changed: aliases share parts.

    `entries` are a mapping's values by key, `items` a list's; places are made when they are asked for, which is rare.
    """

    __slots__ = ("column", "data", "entries", "file", "items", "line", "marks")
    _no_entries: ClassVar[dict[str, Any]] = {}
    _no_items: ClassVar[list[Any]] = []

    def __init__(self, data: Json, file: str, line: int = 0, column: int = 0) -> None:
        self.data = data
        self.file = file
        self.line = line
        self.column = column
        mapping = data.__class__ is dict
        self.entries: dict[str, Value] = {} if mapping else self._no_entries
        self.marks: dict[str, tuple[int, int]] = {} if mapping else self._no_entries
        self.items: list[Value] = [] if data.__class__ is list else self._no_items

    @property
    def place(self) -> Place:
        """Where the value begins."""
        return Place(self.file, self.line, self.column)

    def key_place(self, key: str) -> Place:
        """Where one key stands; the value's own place if it has no such key."""
        return Place(self.file, *self.marks[key]) if key in self.marks else self.place

    def at(self, *path: str | int) -> Place:
        """The place of a part, or of the nearest enclosing part there is."""
        here = self
        for step in path:
            if isinstance(step, int) and step < len(here.items):
                here = here.items[step]
            elif isinstance(step, str) and step in here.entries:
                here = here.entries[step]
            else:
                break
        return here.place

    def __repr__(self) -> str:
        return f"Value({self.data!r} at {self.place})"


def describe(data: Json) -> str:
    """How a value is named in a message: its type, and the value where it is short."""
    match data:
        case None:
            return "nothing (null)"
        case bool():
            return f"the boolean {str(data).lower()}"
        case int() | float():
            return f"the number {data}"
        case str():
            return f"the text {data!r}" if len(data) <= _SHORT else f"a text of {len(data)} characters"
        case list():
            return "a list"
        case _:
            return "a mapping"
