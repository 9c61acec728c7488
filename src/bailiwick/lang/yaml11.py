"""Scalars of YAML 1.1, for files that were written for workhorse: read by the library that read them there."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bailiwick.ids import Json

LONGEST = 200
"""A longer scalar is text: no number or time is written with so many characters."""


class Workhorse:
    """Reads plain scalars as PyYAML's safe loader does. A date is the text that Python shows of it."""

    def __init__(self) -> None:
        import yaml

        self._node = yaml.ScalarNode
        self._loader: Any = yaml.SafeLoader("")
        self._text = "tag:yaml.org,2002:str"
        self._plain = {self._text, "tag:yaml.org,2002:merge", "tag:yaml.org,2002:value"}

    def read(self, text: str, tag: str | None = None) -> Json:
        """The value of a scalar; raises `ValueError` for one that looks like a number or a time and is none."""
        if len(text) > LONGEST and tag is None:
            return text
        tag = tag or self._loader.resolve(self._node, text, (True, False))
        if tag in self._plain:
            return text
        try:
            value = self._loader.construct_object(self._node(tag, text))
        except (KeyError, TypeError, IndexError, AttributeError) as error:
            raise ValueError(f"not a {tag.rpartition(':')[2]}") from error
        return str(value) if isinstance(value, date) else value


def same(one: Json, other: Json) -> bool:
    """Whether two readings of a scalar are the same value: 1, 1.0 and true are three."""
    return type(one) is type(other) and one == other
