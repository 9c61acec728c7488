"""From a person's words, or a whole task, to a question for the full text index. Pure: words are data, never syntax."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from bailiwick.brain.folding import folded_words
from bailiwick.ids import digest

MOST_TERMS = 16
MOST_ROWS = 8000
"""Matches that are ranked. Beyond that words are left out, the commonest first; of one word alone, the newest count."""
MOST_WORDS = 64

_WORD = re.compile(r"\w+")
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
    """The words that tell notes apart best: the rarest first, as many as can be ranked quickly, and at least one."""
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
