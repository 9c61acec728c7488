"""Words as they are compared: without regard to case, accents and umlauts; scripts without spaces in pairs of signs.

What is put into the index and what is asked go through the same folding, so that both always meet. Pure.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

_ROUNDS = 3
"""How often one folding can open the way for another."""
_WORD = re.compile(r"\w+")
_ACCENT = re.compile("[\u0300-\u036f]")
_UMLAUTS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "å": "aa", "ø": "oe", "æ": "ae"})
_SIGNS = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u2fdf\u3005-\u3007\u3031-\u3035\u3041-\u3096\u309d-\u30ff"
    "\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]+"
)
"""Runs of Chinese, Japanese, Korean and other signs that are written without spaces between words."""


def fold(text: str) -> str:
    """A text in which spellings that people take for the same are the same; folding it again changes nothing."""
    if text.isascii():
        return text.lower()
    for _ in range(_ROUNDS):
        text = _folded(text)
    return text


def folded_words(text: str) -> list[str]:
    """The words of a text as they stand in the index: folded, umlauts in both spellings, signs in pairs."""
    return list(_words(text, single=False))


def indexed(text: str) -> str:
    """A text as the index gets it: its words, of signs also each alone, after one another."""
    if text.isascii():
        return text.lower()
    return " ".join(_words(text, single=True))


def _words(text: str, *, single: bool) -> Iterator[str]:
    for word in _WORD.findall(unicodedata.normalize("NFC", text)):
        plain = fold(word)
        if plain.isascii() and word.isascii():
            yield plain
            continue
        at = 0
        for run in _SIGNS.finditer(plain):
            yield from _WORD.findall(plain[at : run.start()])
            yield from _pairs(run[0], single=single)
            at = run.end()
        yield from _WORD.findall(plain[at:])
        spelt = fold(word.casefold().translate(_UMLAUTS))
        if spelt != plain and not _SIGNS.search(plain):
            yield from _WORD.findall(spelt)


def _pairs(signs: str, *, single: bool) -> Iterator[str]:
    """Each sign with the next one; a lone one, and where wanted every one, by itself."""
    yield from (signs[at : at + 2] for at in range(len(signs) - 1))
    if single or len(signs) == 1:
        yield from signs


def _folded(text: str) -> str:
    apart = unicodedata.normalize("NFKD", text.casefold())
    return unicodedata.normalize("NFKC", _ACCENT.sub("", apart)).casefold()
