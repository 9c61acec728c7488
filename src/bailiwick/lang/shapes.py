"""The shapes a field of an input file can have. Each reads a value, notes what is wrong, and tells its JSON Schema."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bailiwick.lang import codes
from bailiwick.lang.durations import seconds_of
from bailiwick.lang.findings import Findings, Schema, Shape
from bailiwick.lang.wording import nearest, plain_text, quoted

if TYPE_CHECKING:
    from bailiwick.ids import Json
    from bailiwick.lang.values import Value


@dataclass(frozen=True, slots=True)
class Text:
    """A text, optionally one that fully matches `pattern` (a regular expression that JSON Schema knows too)."""

    pattern: str = ""
    expects: str = "a text"
    empty: bool = True

    def accepts(self, data: Json) -> bool:
        return isinstance(data, str)

    def read(self, value: Value, found: Findings) -> Json:
        data = value.data
        if not isinstance(data, str):
            hint = "quote it" if isinstance(data, bool | int | float) else ""
            found.wrong(value, self.expects, hint)
        elif self.pattern and not re.fullmatch(self.pattern, data):
            found.wrong(value, self.expects, f"it has to match {self.pattern}")
        elif not self.empty and not data.strip():
            found.wrong(value, f"{self.expects} that is not empty")
        else:
            return data
        return None

    def schema(self) -> Schema:
        if self.pattern:
            return {"type": "string", "pattern": f"^(?:{self.pattern})$"}
        return {"type": "string"} if self.empty else {"type": "string", "minLength": 1}


@dataclass(frozen=True, slots=True)
class Scalar:
    """A text, number or boolean, taken as text: `3` is "3", `true` is "true"."""

    expects: str = "a text, a number or a boolean"

    def accepts(self, data: Json) -> bool:
        return isinstance(data, str | int | float)

    def read(self, value: Value, found: Findings) -> Json:
        if not self.accepts(value.data):
            found.wrong(value, self.expects)
            return None
        return plain_text(value.data)

    def schema(self) -> Schema:
        return {"type": ["string", "number", "boolean"]}


def _plain(number: float) -> str:
    """A bound as people write it: no exponent, no needless fraction."""
    return f"{number:,.0f}".replace(",", "") if number == int(number) else f"{number}"


@dataclass(frozen=True, slots=True)
class Number:
    """A number from `low` to `high`; `whole` takes integers only."""

    low: float | None = None
    high: float | None = None
    whole: bool = False

    @property
    def expects(self) -> str:
        name = "a whole number" if self.whole else "a number"
        if self.low is not None and self.high is not None:
            return f"{name} from {_plain(self.low)} to {_plain(self.high)}"
        if self.low is not None:
            return f"{name} of at least {_plain(self.low)}"
        return name if self.high is None else f"{name} of at most {_plain(self.high)}"

    def accepts(self, data: Json) -> bool:
        return isinstance(data, int if self.whole else (int, float)) and not isinstance(data, bool)

    def read(self, value: Value, found: Findings) -> Json:
        data = value.data
        fits = (
            self.accepts(data) and (self.low is None or data >= self.low) and (self.high is None or data <= self.high)
        )
        if not fits:
            found.wrong(value, self.expects)
            return None
        return data

    def schema(self) -> Schema:
        bounds = {"minimum": self.low, "maximum": self.high}
        return {"type": "integer" if self.whole else "number", **{k: v for k, v in bounds.items() if v is not None}}


@dataclass(frozen=True, slots=True)
class Flag:
    """True or false."""

    expects: str = "true or false"

    def accepts(self, data: Json) -> bool:
        return isinstance(data, bool)

    def read(self, value: Value, found: Findings) -> Json:
        if not isinstance(value.data, bool):
            word = {"yes": "true", "on": "true", "no": "false", "off": "false"}.get(str(value.data).lower(), "")
            found.wrong(value, self.expects, f"write {word}" if word else "")
            return None
        return value.data

    def schema(self) -> Schema:
        return {"type": "boolean"}


@dataclass(frozen=True, slots=True)
class Duration:
    """A duration, read as seconds: `90`, `10s`, `1h30m`, `500ms`, `2d`."""

    expects: str = "a duration such as 90s, 1h30m or 500ms"
    low: float = 0.0

    def accepts(self, data: Json) -> bool:
        return isinstance(data, str | int | float) and not isinstance(data, bool)

    def read(self, value: Value, found: Findings) -> Json:
        seconds = seconds_of(value.data)
        if seconds is None:
            found.wrong(value, self.expects)
        elif seconds < self.low:
            found.wrong(value, f"a duration of at least {_plain(self.low)} s")
            return None
        return seconds

    def schema(self) -> Schema:
        units = r"(\d+d)?(\d+h)?(\d+m)?(\d+(\.\d+)?s)?(\d+ms)?"
        return {
            "anyOf": [
                {"type": "number", "minimum": self.low},
                {"type": "string", "minLength": 1, "pattern": rf"^(\d+(\.\d+)?|{units})$"},
            ]
        }


@dataclass(frozen=True, slots=True)
class Choice:
    """One of some texts."""

    texts: tuple[str, ...]

    @property
    def expects(self) -> str:
        return "one of " + ", ".join(self.texts)

    def accepts(self, data: Json) -> bool:
        return isinstance(data, str)

    def read(self, value: Value, found: Findings) -> Json:
        if value.data in self.texts:
            return value.data
        near = nearest(value.data, self.texts) if isinstance(value.data, str) else []
        found.wrong(value, self.expects, quoted(near))
        return None

    def schema(self) -> Schema:
        return {"enum": list(self.texts)}


@dataclass(frozen=True, slots=True)
class Anything:
    """Any JSON value, null included."""

    expects: str = "any value"

    def accepts(self, data: Json) -> bool:
        return True

    def read(self, value: Value, found: Findings) -> Json:
        return value.data

    def schema(self) -> Schema:
        return {}


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list whose items have one shape."""

    item: Shape
    least: int = 0
    most: int | None = None

    @property
    def expects(self) -> str:
        return "a list that is not empty" if self.least else "a list"

    def accepts(self, data: Json) -> bool:
        return isinstance(data, list)

    def read(self, value: Value, found: Findings) -> Json:
        if not isinstance(value.data, list) or len(value.items) < self.least:
            found.wrong(value, self.expects)
            return None
        if self.most is not None and len(value.items) > self.most:
            found.wrong(value, f"a list of at most {self.most} items")
            return None
        return [self.item.read(item, found) for item in value.items]

    def schema(self) -> Schema:
        bounds = {"minItems": self.least or None, "maxItems": self.most}
        return {"type": "array", "items": self.item.schema(), **{k: v for k, v in bounds.items() if v is not None}}


@dataclass(frozen=True, slots=True)
class MapOf:
    """A mapping whose values have one shape, and whose keys may have to match a pattern."""

    item: Shape
    key: str = ""
    least: int = 0

    @property
    def expects(self) -> str:
        return "a mapping that is not empty" if self.least else "a mapping"

    def accepts(self, data: Json) -> bool:
        return isinstance(data, dict)

    def read(self, value: Value, found: Findings) -> Json:
        if not isinstance(value.data, dict) or len(value.entries) < self.least:
            found.wrong(value, self.expects)
            return None
        for key in value.entries if self.key else ():
            if not re.fullmatch(self.key, key):
                found.error(
                    codes.BAD_NAME,
                    f"{key!r} can't be used as a key here",
                    value.key_place(key),
                    f"it has to match {self.key}",
                )
        return {key: self.item.read(part, found) for key, part in value.entries.items()}

    def schema(self) -> Schema:
        out: Schema = {"type": "object", "additionalProperties": self.item.schema()}
        if self.key:
            out["propertyNames"] = {"pattern": f"^(?:{self.key})$"}
        return out | ({"minProperties": self.least} if self.least else {})


@dataclass(frozen=True, slots=True)
class OneOf:
    """The first of several shapes that fits."""

    shapes: tuple[Shape, ...]

    @property
    def expects(self) -> str:
        return " or ".join(shape.expects for shape in self.shapes)

    def accepts(self, data: Json) -> bool:
        return any(shape.accepts(data) for shape in self.shapes)

    def read(self, value: Value, found: Findings) -> Json:
        """The value by the first shape that fits; where none does, the problems of the first whose type fits."""
        first: Findings | None = None
        for shape in self.shapes:
            if shape.accepts(value.data):
                trial = Findings(strict=found.strict)
                data = shape.read(value, trial)
                if not trial.failed:
                    found.problems += trial.problems
                    return data
                first = first or trial
        if first is None:
            found.wrong(value, self.expects)
        else:
            found.problems += first.problems
        return None

    def schema(self) -> Schema:
        return {"anyOf": [shape.schema() for shape in self.shapes]}
