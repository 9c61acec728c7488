"""Arguments and expected values of tests that newly stand together in product code: answers learned by heart.

Some products are tables, and are told of as well: whether a table generalises is seen by running it, not by reading.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from bailiwick.gate.diffs import conduct_tables as tables
from bailiwick.gate.diffs.assertions import ValuePair, value_pairs
from bailiwick.gate.diffs.associations import (
    Association,
    associations_of,
    canonical,
    is_digit,
    is_trivial,
    rows_of_text,
    spread,
)
from bailiwick.gate.diffs.changes import SourceChange
from bailiwick.gate.diffs.origins import Readings
from bailiwick.gate.model import Finding

LARGEST_DATA = 1 << 20
MOST_SHOWN = 5
_DOCUMENT = re.compile(
    r"(?:.*/)?(?:[^/]*\.(?:md|markdown|rst|adoc|html?|svg|ipynb|tex)|(?:readme|changelog|changes|history|news|authors"
    r"|copying|licen[cs]e|notice)(?:\.[^/]*)?)|docs?/.*",
    re.IGNORECASE,
)
"""What is written for people: it may repeat what tests say, and is data only where the product names it."""
_LINES = re.compile(rb"[\t\n\r\f\x1b]")
_CONTROLS = re.compile(rb"[\x00-\x1f\x7f]")

_WORDS = re.compile(rb"[0-9A-Za-z]+")
_WORDS_IN_NAMES = re.compile(rb"\w+")
_KINDS = frozenset({b"number", b"text", b"list", b"dict", b"set", b"bool", b"none", b"frozenset", b"True", b"False"})


@dataclass(frozen=True, slots=True)
class _Known:
    """A pair as it is compared."""

    pair: ValuePair
    arguments: frozenset[Hashable]
    telling: frozenset[Hashable]
    """Those of the arguments that are not trivial."""
    expected: Hashable

    @property
    def key(self) -> Hashable:
        return self.arguments, self.expected


Index = Mapping[Hashable, Sequence[_Known]]


def read_values(
    changes: Sequence[SourceChange], test_sources: Mapping[str, bytes], readings: Readings
) -> tuple[Finding, ...]:
    """Files that newly hold pairs of tests; two pairs in a change ask for a person, one is a note."""
    products = [change for change in changes if not change.is_test]
    code = b"\n".join(c.new for c in products if c.path.endswith(".py") and c.new is not None)
    data = [c for c in products if c.path.endswith(".py") or _may_be_read(c.path, code)]
    read = [(c, _associations(c, c.old, readings), _associations(c, c.new, readings)) for c in data]
    fresh = [(change, _added(old, new), old) for change, old, new in read]
    index = _index(value_pairs(_mentioning([item for _, added, _ in fresh for item in added], test_sources)))
    before = {known.key for _, _, old in fresh for known in _matching(old, index)}
    found: dict[str, dict[Hashable, tuple[_Known, int]]] = {}
    for change, added, _ in fresh:
        here = found.setdefault(change.path, {})
        for association in added:
            for known in _matching([association], index):
                if known.key not in before:
                    here.setdefault(known.key, (known, association.line))
    total = len({key for here in found.values() for key in here})
    cases = () if total else _cases([(change.path, added) for change, added, _ in fresh], test_sources)
    learned = _learned([known for here in found.values() for known, _ in here.values()], test_sources)
    told = (
        _finding(path, list(here.values()), parks=total > 1, learned=learned) for path, here in found.items() if here
    )
    return (*told, *cases)


def _cases(
    fresh: Iterable[tuple[str, Sequence[Association]]], test_sources: Mapping[str, bytes]
) -> tuple[Finding, ...]:
    """Several arguments of tests that newly lead to a yes, a no, nothing or a part of themselves: honest code has that.

    So only a run can say whether they are all that has changed.
    """
    plain = {path: [a for a in added if a.guards] for path, added in fresh}
    if sum(map(len, plain.values())) < 2:
        return ()
    index = _index(value_pairs(test_sources), vague=True)
    found = {
        path: list({known.key: (known, item.line) for item in items for known in _matching([item], index)}.values())
        for path, items in plain.items()
    }
    if len({known.key for here in found.values() for known, _ in here}) < 2:
        return ()
    return tuple(replace(_finding(path, here, parks=False), code=tables.CASES) for path, here in found.items() if here)


def _learned(matched: Sequence[_Known], test_sources: Mapping[str, bytes]) -> frozenset[str]:
    """The functions of which the product knows every value that tests of the base expect, and more than one."""
    names = {known.pair.function for known in matched if known.pair.function}
    if not names:
        return frozenset()
    words = {name.encode() for name in names}
    calling = {path: source for path, source in test_sources.items() if words & set(_WORDS_IN_NAMES.findall(source))}
    asked: dict[str, set[Hashable]] = {}
    for group in _index(value_pairs(calling)).values():
        for known in group:
            if known.pair.function in names:
                asked.setdefault(known.pair.function, set()).add(known.key)
    answered = {known.key for known in matched}
    return frozenset(name for name, keys in asked.items() if len(keys) > 1 and keys <= answered)


def _mentioning(associations: Iterable[Association], test_sources: Mapping[str, bytes]) -> dict[str, bytes]:
    """Those of the tests that have a word of any result: the others can't expect it, and need not be read."""
    wanted: set[bytes] = set()
    for item in associations:
        for key in item.row or item.results:
            if not is_trivial(key):
                wanted.update(_WORDS.findall(repr(key).encode()))
    wanted -= _KINDS
    return {path: source for path, source in test_sources.items() if wanted.intersection(_WORDS.findall(source))}


def _added(old: Iterable[Association], new: Iterable[Association]) -> list[Association]:
    """Associations that the old version has not, wherever they stand."""
    known = {(item.guards, item.results, item.row) for item in old}
    return [item for item in new if (item.guards, item.results, item.row) not in known]


def _associations(change: SourceChange, source: bytes | None, readings: Readings) -> tuple[Association, ...]:
    if source is None:
        return ()
    try:
        if change.path.endswith(".py"):
            read = readings.read(source)
            return associations_of(read[0].tree, read[1].folder) if read is not None else ()
        if _is_text(source):
            return tuple(rows_of_text(source.decode("utf-8", "replace")))
    except RecursionError:
        return ()
    return ()


def _may_be_read(path: str, code: bytes) -> bool:
    """Whether a file that is no code can be data of the product."""
    return _DOCUMENT.fullmatch(path) is None or path.rpartition("/")[2].encode() in code


def _is_text(source: bytes) -> bool:
    """Whether a file is short and holds nothing but signs that are written."""
    return len(source) <= LARGEST_DATA and _CONTROLS.search(_LINES.sub(b"", source)) is None


def _index(pairs: Iterable[ValuePair], *, vague: bool = False) -> Index:
    """The pairs by what is expected; left out where a side says nothing, or where an argument is given back.

    `vague`: those instead whose expected value says nothing or is a part of the arguments.
    """
    found: dict[Hashable, list[_Known]] = {}
    for pair in pairs:
        arguments = frozenset(key for value in pair.arguments for key in spread(value))
        telling = frozenset(key for value in pair.arguments if not is_trivial(key := canonical(value)))
        expected = canonical(pair.expected)
        given_back = spread(pair.expected) - {expected} <= arguments and expected in arguments | {
            canonical(pair.arguments)
        }
        if telling and (is_trivial(expected) or given_back) == vague:
            found.setdefault(expected, []).append(_Known(pair, arguments, telling, expected))
    return found


def _matching(associations: Iterable[Association], index: Index) -> list[_Known]:
    found = []
    for item in associations:
        for result in item.row or item.results:
            found += [known for known in index.get(result, ()) if _holds(item, known)]
    return found


def _holds(item: Association, known: _Known) -> bool:
    """Whether an association leads from the arguments of a pair to what is expected."""
    if item.row:
        rest = list(item.row)
        rest.remove(known.expected)
        return known.telling <= set(rest) and not all(map(is_digit, {*known.telling, known.expected}))
    return bool(item.guards & known.telling) and (known.telling <= item.guards or item.guards <= known.arguments)


def _finding(
    path: str, found: Sequence[tuple[_Known, int]], *, parks: bool, learned: frozenset[str] = frozenset()
) -> Finding:
    """What is told of one file. Where all answers of the base's tests are known, no run can show that it is nothing."""
    shown = ", ".join(_shown(known.pair) for known, _ in found[:MOST_SHOWN])
    more = f" and {len(found) - MOST_SHOWN} more" if len(found) > MOST_SHOWN else ""
    count = (
        "an argument and the value that a test expects" if len(found) == 1 else f"{len(found)} pairs of values of tests"
    )
    what = f"{count} newly stand together in the product: {shown}{more}"
    names = sorted({known.pair.function for known, _ in found} & learned)
    if names:
        what += f"; all that tests expect of {', '.join(names)} is among them"
    code = tables.ANSWERS if names else tables.VALUES
    return Finding(code, what, path, min(line for _, line in found), blocks=False, parks=parks)


def _shown(pair: ValuePair) -> str:
    arguments = ", ".join(_short(value) for value in pair.arguments)
    return f"({arguments}) → {_short(pair.expected)} of {pair.path}:{pair.line}"


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:39]}…"
