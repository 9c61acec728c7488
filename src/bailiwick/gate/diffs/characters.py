"""Characters that make a reader see something else than a computer does."""

from __future__ import annotations

import builtins
import io
import keyword
import re
import tokenize
import unicodedata
from collections.abc import Collection, Iterator

BIDIRECTIONAL = frozenset(map(chr, [*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F, 0x061C]))
_IGNORABLE = frozenset(
    chr(number)
    for first, last in (
        (0x00AD, 0x00AD),
        (0x034F, 0x034F),
        (0x115F, 0x1160),
        (0x17B4, 0x17B5),
        (0x180B, 0x180F),
        (0x2065, 0x2065),
        (0x3164, 0x3164),
        (0xFE00, 0xFE0F),
        (0xFFA0, 0xFFA0),
        (0xFFF0, 0xFFF8),
        (0xE0000, 0xE0FFF),
    )
    for number in range(first, last + 1)
)
"""What shows nothing by the rules of Unicode, beside what its category tells; some may even stand in names."""
_EMPTY_PATTERN = "\u2800"
"""Braille without a dot: it looks like a blank and is none."""
_USUAL_BLANKS = frozenset(" \u00a0\u2009\u202f")
"""Blanks that people set on purpose, between numbers and their units."""
_WIDE_BLANK = "\u3000"
"""The blank of Chinese and Japanese text."""
_JOINERS = frozenset("\u200c\u200d")
_PLAIN_CONTROLS = frozenset("\t\n\r\f")
_LOOK_ALIKE = str.maketrans(
    "аеорсухіјѕһԁԛԝѵАВЕКМНОРСТХІЈЅοικνραυτΑΒΕΖΗΙΚΜΝΟΡΤΥΧ",
    "aeopcyxijshdqwvABEKMHOPCTXIJSoikvpautABEZHIKMNOPTYX",
)
"""Letters of Cyrillic and Greek that look like Latin ones."""
_PHONETIC = str.maketrans(
    "ɡɑɩʋꞵᴀᴄᴅᴇᴊᴋᴍᴏᴘᴛᴜᴠᴡᴢꜰꜱʙɢʜɪɴʏʟǀꓐꓑꓒꓓꓔꓖꓗꓙꓚꓜꓝꓟꓠꓡꓢꓣꓦꓧꓨꓪꓫꓬꓮꓰꓲꓳꓴ",
    "gaivbacdejkmoptuvwzfsbghinyllBPdDTGKJCZFMNLSRVHGWXYAEIOU",
)
"""Letters of sound writing and of scripts made from Latin that look like its own; hardly a word has them."""
_NATIONAL = str.maketrans("ıȷƒɛəđłø", "ijfeedlo")
"""Letters of languages that are told from others at a second look: they count beside a name that they look like."""


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
    category = unicodedata.category(sign)
    blank = category == "Zs" and sign not in _USUAL_BLANKS
    return blank or sign in _IGNORABLE or sign == _EMPTY_PATTERN or category in ("Cf", "Cc", "Zl", "Zp")


def _belongs(line: str, place: int) -> bool:
    """Whether an invisible character is part of a written one: emoji and some scripts are joined by such."""
    sign = line[place]
    before = line[place - 1] if place else ""
    if "\ufe00" <= sign <= "\ufe0f":
        return bool(before) and (not before.isascii() or before in "0123456789#*")
    after = line[place + 1] if place + 1 < len(line) else ""
    if sign == _EMPTY_PATTERN:
        return any("\u2801" <= other <= "\u28ff" or other == sign for other in (before, after) if other) and _drawn(
            line
        )
    if "\U000e0100" <= sign <= "\U000e01ef" or "\u180b" <= sign <= "\u180d":
        return unicodedata.name(before or " ", "").startswith(("CJK", "MONGOLIAN"))
    if sign == _WIDE_BLANK:
        return not (before.isascii() and after.isascii())
    return sign in _JOINERS and bool(before and after) and not (before.isascii() or after.isascii())


def _drawn(line: str) -> bool:
    """Whether a line holds patterns of Braille, as pictures and progress bars do."""
    return any("\u2801" <= sign <= "\u28ff" for sign in line)


def named(sign: str) -> str:
    """A character that can't be shown, as people look it up."""
    return f"U+{ord(sign):04X} {unicodedata.name(sign, 'control character')}"


def odd_names(source: str, lines: Collection[int]) -> Iterator[tuple[int, str, str]]:
    """Names in these lines of a Python source that are read otherwise than they look: line, name, why."""
    names = list(_names(source))
    known: set[str] | None = None
    for line, name in names:
        if line in lines and not name.isascii():
            known = known or {*(other for _, other in names), *dir(builtins), *keyword.kwlist}
            why = _oddity(name, known)
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


def _oddity(name: str, known: Collection[str]) -> str:
    read = unicodedata.normalize("NFKC", name)
    if read != name and read.isascii():
        return f"Python reads it as {read!r}"
    scripts = {script for sign in name if (script := _script(sign))}
    if len(scripts & {"LATIN", "CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "COPTIC"}) > 1:
        return f"it mixes letters of {' and '.join(sorted(scripts))}"
    looks = name.translate(_LOOK_ALIKE | _PHONETIC)
    near = looks.translate(_NATIONAL)
    return f"it looks like {near!r}" if looks.isascii() or (near.isascii() and near in known) else ""


def _script(sign: str) -> str:
    return unicodedata.name(sign, "").partition(" ")[0] if sign.isalpha() else ""
