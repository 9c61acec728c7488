"""Characters that make a reader see something else than a computer does."""

from __future__ import annotations

import io
import re
import tokenize
import unicodedata
from collections.abc import Collection, Iterator

BIDIRECTIONAL = frozenset(map(chr, [*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F, 0x061C]))
_FILLERS = frozenset("\u115f\u1160\u3164\uffa0\u180e\u00ad\u034f\u17b4\u17b5")
"""Letters that show nothing; some may even stand in names."""
_JOINERS = frozenset("\u200c\u200d")
_PLAIN_CONTROLS = frozenset("\t\n\r\f")
_LOOK_ALIKE = dict(
    zip(
        "аеорсухіјѕһԁԛԝѵАВЕКМНОРСТХІЈЅοικνραυτΑΒΕΖΗΙΚΜΝΟΡΤΥΧ",
        "aeopcyxijshdqwvABEKMHOPCTXIJSoikvpautABEZHIKMNOPTYX",
        strict=True,
    )
)
"""Letters of Cyrillic and Greek that look like Latin ones."""


def invisible(line: str, *, first: bool = False) -> Iterator[str]:
    """Each character of a line that is not seen or turns the order of others; `first`: it may begin with a mark."""
    for place, sign in enumerate(line):
        if sign.isascii() and (sign.isprintable() or sign in _PLAIN_CONTROLS):
            continue
        if sign == "\ufeff" and first and place == 0:
            continue
        if _is_invisible(sign) and not _belongs(line, place):
            yield sign


def _is_invisible(sign: str) -> bool:
    return sign in _FILLERS or unicodedata.category(sign) in ("Cf", "Cc", "Zl", "Zp") or "\ufe00" <= sign <= "\ufe0f"


def _belongs(line: str, place: int) -> bool:
    """Whether an invisible character is part of a written one: emoji and some scripts are joined by such."""
    sign = line[place]
    before = line[place - 1] if place else ""
    if "\ufe00" <= sign <= "\ufe0f":
        return bool(before) and (not before.isascii() or before in "0123456789#*")
    after = line[place + 1] if place + 1 < len(line) else ""
    return sign in _JOINERS and bool(before and after) and not (before.isascii() or after.isascii())


def named(sign: str) -> str:
    """A character that can't be shown, as people look it up."""
    return f"U+{ord(sign):04X} {unicodedata.name(sign, 'control character')}"


def odd_names(source: str, lines: Collection[int]) -> Iterator[tuple[int, str, str]]:
    """Names in these lines of a Python source that are read otherwise than they look: line, name, why."""
    for line, name in _names(source):
        if line in lines and not name.isascii():
            why = _oddity(name)
            if why:
                yield line, name, why


def _names(source: str) -> Iterator[tuple[int, str]]:
    try:
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type == tokenize.NAME:
                yield token.start[0], token.string
    except (tokenize.TokenError, SyntaxError, ValueError):
        for number, line in enumerate(source.splitlines(), 1):
            yield from ((number, word) for word in re.findall(r"[^\W\d]\w*", line))


def _oddity(name: str) -> str:
    read = unicodedata.normalize("NFKC", name)
    if read != name and read.isascii():
        return f"Python reads it as {read!r}"
    scripts = {script for sign in name if (script := _script(sign))}
    if len(scripts & {"LATIN", "CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "COPTIC"}) > 1:
        return f"it mixes letters of {' and '.join(sorted(scripts))}"
    looks = "".join(_LOOK_ALIKE.get(sign, sign) for sign in name)
    return f"it looks like {looks!r}" if looks.isascii() else ""


def _script(sign: str) -> str:
    return unicodedata.name(sign, "").partition(" ")[0] if sign.isalpha() else ""
