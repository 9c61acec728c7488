"""Shapes that only configuration has: sizes, shares, paths, references to secrets, limits that may be lifted."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from bailiwick.ids import Json
from bailiwick.lang.fields import Findings, Schema, Shape
from bailiwick.lang.values import Value

UNLIMITED: Final = "unlimited"
NOT_A_REFERENCE = "BW213"
# Patterns are compiled at their first use: an import has to be cheap.
REFERENCE = r"\$\{secret:[^{}\s]+\}"
_USERINFO = r"(?<=://)[^/@\s]+(?=@)"
_SIZE = r"([0-9]{1,12}(?:\.[0-9]{1,6})?) ?([kMGT]?)B?"
_ZONE = r"[A-Za-z0-9_+/-]{1,64}"
_FACTORS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


class Size:
    """A number of bytes: `500 MB`, `20GB`, `1000000`; factors of 1,000."""

    __slots__ = ()
    expects = "a size such as 500 MB or 20 GB"

    def accepts(self, data: Json) -> bool:
        return isinstance(data, str | int) and not isinstance(data, bool)

    def read(self, value: Value, found: Findings) -> Json:
        if self.accepts(value.data):
            parts = re.fullmatch(_SIZE, str(value.data).strip())
            if parts:
                return round(float(parts[1]) * _FACTORS[parts[2]])
        found.wrong(value, self.expects)
        return None

    def schema(self) -> Schema:
        return {
            "anyOf": [{"type": "integer", "minimum": 0}, {"type": "string", "pattern": r"^\d+(\.\d+)? ?[kMGT]?B?$"}]
        }


class Share:
    """A part of a whole: `30%` or `0.3`, read as 0.3."""

    __slots__ = ()
    expects = "a share such as 30%"

    def accepts(self, data: Json) -> bool:
        return isinstance(data, str | int | float) and not isinstance(data, bool)

    def read(self, value: Value, found: Findings) -> Json:
        data = value.data
        if isinstance(data, str) and re.fullmatch(r"\d{1,3}(\.\d{1,6})? ?%", data.strip()):
            share = float(data.strip().rstrip("% ")) / 100
        elif isinstance(data, int | float) and not isinstance(data, bool):
            share = float(data)
        else:
            share = -1.0
        if 0 <= share <= 1:
            return share
        found.wrong(value, self.expects)
        return None

    def schema(self) -> Schema:
        number = {"type": "number", "minimum": 0, "maximum": 1}
        return {"anyOf": [number, {"type": "string", "pattern": r"^\d+(\.\d+)? ?%$"}]}


class Zone:
    """A time zone that this machine knows, by its name: `Europe/Berlin`, `UTC`."""

    __slots__ = ()
    expects = "a time zone such as Europe/Berlin or UTC"

    def accepts(self, data: Json) -> bool:
        return isinstance(data, str)

    def read(self, value: Value, found: Findings) -> Json:
        from zoneinfo import ZoneInfo

        name = value.data
        try:
            if isinstance(name, str) and re.fullmatch(_ZONE, name):
                ZoneInfo(name)
                return name
        except (KeyError, ValueError, OSError):
            pass
        found.wrong(value, self.expects)
        return None

    def schema(self) -> Schema:
        return {"type": "string", "pattern": f"^{_ZONE}$"}


class FilePath:
    """A path; its layer makes it absolute, from the file's directory or the one where a command was given."""

    __slots__ = ()
    expects = "a path"

    def accepts(self, data: Json) -> bool:
        return isinstance(data, str)

    def read(self, value: Value, found: Findings) -> Json:
        data = value.data
        if isinstance(data, str) and data.strip() and "\0" not in data:
            return data
        found.wrong(value, self.expects)
        return None

    def schema(self) -> Schema:
        return {"type": "string", "minLength": 1}


class SecretText:
    """A reference `${secret:path#key}`. A plain text is refused without being repeated: it would end up in a log."""

    __slots__ = ()
    expects = "a reference such as ${secret:agents/claude#token}"

    def accepts(self, data: Json) -> bool:
        return isinstance(data, str)

    def read(self, value: Value, found: Findings) -> Json:
        data = value.data
        if isinstance(data, str) and re.fullmatch(REFERENCE, data):
            return data
        what = f"expected {self.expects}, found a plain value"
        found.error(
            NOT_A_REFERENCE,
            what,
            value.place,
            "put it into a secret provider, refer to it, and change it: it was readable",
        )
        return None

    def schema(self) -> Schema:
        return {"type": "string", "pattern": r"^\$\{secret:[^{}\s]+\}$"}


@dataclass(frozen=True, slots=True)
class Ceiling:
    """A limit of some shape that `unlimited` lifts; lifted, it reads None."""

    bound: Shape

    @property
    def expects(self) -> str:
        """See `Shape`."""
        return f"{self.bound.expects} or {UNLIMITED}"

    def accepts(self, data: Json) -> bool:
        return data == UNLIMITED or self.bound.accepts(data)

    def read(self, value: Value, found: Findings) -> Json:
        if value.data == UNLIMITED:
            return None
        if not self.bound.accepts(value.data):
            found.wrong(value, self.expects)
            return None
        return self.bound.read(value, found)

    def schema(self) -> Schema:
        return {"anyOf": [self.bound.schema(), {"enum": [UNLIMITED]}]}


def masked(value: Json) -> Json:
    """A value as it may be shown: references to secrets and passwords in URLs are covered."""
    if isinstance(value, str):
        return re.sub(_USERINFO, "***", re.sub(REFERENCE, "${secret:***}", value))
    if isinstance(value, list):
        return [masked(item) for item in value]
    if isinstance(value, dict):
        return {name: masked(part) for name, part in value.items()}
    return value


def as_value(data: Json, file: str) -> Value:
    """A value that did not come from a file; `file` names the variable or the flag it came from."""
    value = Value(data, file)
    if isinstance(data, dict):
        value.entries.update({str(name): as_value(part, file) for name, part in data.items()})
    elif isinstance(data, list):
        value.items.extend(as_value(item, file) for item in data)
    return value


def from_text(text: str, shape: Shape) -> Json:
    """What a text from a variable or the command line means for a shape; the shape still has to check it."""
    if shape.accepts(text):
        return text
    words = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}
    if shape.accepts(True) and text.lower() in words:
        return words[text.lower()]
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    if shape.accepts([]):
        inner = text.strip().removeprefix("[").removesuffix("]")
        return [part.strip().strip("'\"") for part in inner.split(",") if part.strip()]
    return text
