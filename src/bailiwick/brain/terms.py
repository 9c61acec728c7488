"""From a person's words, or a whole task, to a question for the full text index. Pure: words are data, never syntax.

Words are compared without regard to case, accents and umlauts; scripts without spaces in pairs of signs. What is put
into the index and what is asked go through the same folding, so that both always meet.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator

from bailiwick.ids import digest

MOST_TERMS = 16
MOST_ROWS = 8000
"""Matches that are ranked. Beyond that words are left out, the commonest first; of one word alone, the newest count."""
MOST_WORDS = 64

_WORD = re.compile(r"\w+")
_ROUNDS = 3
"""How often one folding can open the way for another."""
_ACCENT = re.compile("[\u0300-\u036f]")
_UMLAUTS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "å": "aa", "ø": "oe", "æ": "ae"})
_SIGNS = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u2fdf\u3005-\u3007\u3031-\u3035\u3041-\u3096\u309d-\u30ff"
    "\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]+"
)
"""Runs of Chinese, Japanese, Korean and other signs that are written without spaces between words."""
_SAY_NOTHING = frozenset(
    _WORD.findall(
        "a an and are as at be been but by can could did do does for from had has have how i if in into is it its "
        "may more must no not of on one or our should so some such than that the their them then there these they "
        "this those to too up use was we were what when where which while who why will with would you your"
    )
)
"""Words that nearly every English text has: they say nothing about what a task is about."""


def words(text: str, *, broad: bool) -> list[str]:
    """The distinct words of a text in its order, folded; of a whole task only those that say something."""
    found = dict.fromkeys(word for word in folded_words(text) if word.strip("_"))
    if broad:
        said = [word for word in found if (len(word) > 1 or not word.isascii()) and word not in _SAY_NOTHING]
        return said[: 4 * MOST_WORDS]
    return list(found)[:MOST_WORDS]


def chosen(candidates: Iterable[str], count: Callable[[str], int]) -> list[str]:
    """The words that the note ranking goes by: the rarest first, as many as are quick, and at least one."""
    counted = sorted((number, word) for word in candidates if (number := count(word)))
    kept: list[str] = []
    rows = 0
    for number, word in counted[:MOST_TERMS]:
        rows += number
        if kept and rows > MOST_ROWS:
            break
        kept.append(word)
    return kept


def phrase(word: str) -> str:
    """A word as the index's language quotes it."""
    return '"' + word.replace('"', '""') + '"'


def question(terms: Iterable[str], facets: Iterable[str]) -> str:
    """Notes with any of the terms, and with one of the facets where there are some."""
    text = f"{{title tags body}} : ({' OR '.join(phrase(term) for term in terms)})"
    limits = " OR ".join(phrase(facet) for facet in facets)
    return f"facet : ({limits}) AND {text}" if limits else text


def facets_of(scope: str, status: str) -> str:
    """The marks under which a note is found: its status, and its scope with its status."""
    return f"{status_facet(status)} {scope_facet(scope, status)}"


def scope_facet(scope: str, status: str) -> str:
    """The mark of one scope and status."""
    return f"s{digest(scope)[:16]}{status}"


def status_facet(status: str) -> str:
    """The mark of a status in any scope."""
    return f"q{status}"


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
