"""How values are shown to people: secrets covered, times and sizes in their own units."""

from __future__ import annotations

from dataclasses import dataclass

from bailiwick.config.keys import Key, find_key
from bailiwick.config.service import Config
from bailiwick.config.shapes import UNLIMITED, Ceiling, Share, Size, masked
from bailiwick.ids import Json
from bailiwick.lang.fields import Duration

_SPANS = (("d", 86400.0), ("h", 3600.0), ("m", 60.0), ("s", 1.0))
_SIZES = (("TB", 10**12), ("GB", 10**9), ("MB", 10**6), ("kB", 10**3))


@dataclass(frozen=True, slots=True)
class Row:
    """One key as it is shown."""

    key: str
    value: Json
    words: str
    origins: list[str]


def masked_items(config: Config, name: str | None = None) -> list[Row]:
    """Every key, or those at and below a name, with nothing secret in them."""
    rows = []
    for full, raw in config.items():
        key = find_key(full)
        if key is not None and (name is None or full == name or full.startswith(f"{name}.")):
            value = masked(raw)
            rows.append(Row(full, value, worded(value, key), [str(origin) for origin in config.origins(full)]))
    return rows


def table(rows: list[Row], *, origin: bool) -> str:
    """Rows as aligned lines."""
    keys = max((len(row.key) for row in rows), default=0)
    words = max((len(row.words) for row in rows), default=0)
    if not origin:
        return "\n".join(f"{row.key:<{keys}}  {row.words}" for row in rows)
    return "\n".join(f"{row.key:<{keys}}  {row.words:<{words}}  {', '.join(row.origins)}" for row in rows)


def worded(value: Json, key: Key) -> str:
    """A value in the form that `config set` takes."""
    shape = key.shape.bound if isinstance(key.shape, Ceiling) else key.shape
    if value is None:
        return UNLIMITED if isinstance(key.shape, Ceiling) else "-"
    if isinstance(shape, Duration):
        return span(float(value))
    if isinstance(shape, Share):
        return f"{100 * float(value):g}%"
    if isinstance(shape, Size):
        return next((f"{value / factor:g} {unit}" for unit, factor in _SIZES if value >= factor), str(value))
    return shown(value)


def span(seconds: float) -> str:
    """`43200` as `12h`, `5400` as `1h30m`."""
    out = ""
    left = seconds
    for unit, factor in _SPANS:
        whole = int(left // factor)
        if whole:
            out += f"{whole}{unit}"
            left -= whole * factor
    milliseconds = round(left * 1000)
    return out + (f"{milliseconds}ms" if milliseconds else "") or "0s"


def shown(value: Json) -> str:
    """A plain value as text; nothing for null. Control characters are escaped: a value is no terminal command."""
    match value:
        case None:
            return ""
        case bool():
            return str(value).lower()
        case float():
            return f"{value:g}" if abs(value) < 1e6 else str(value)
        case list():
            return "[" + ", ".join(shown(item) for item in value) + "]"
        case _:
            return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in str(value))
