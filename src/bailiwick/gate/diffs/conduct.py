"""What in a change lets code tell that it is tested, or changes what judges it. Only what the base has not is told.

A facility that moves from one changed file to another is not new. What asks for a person is rare in honest work; what
honest code does as well is a note.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from bailiwick.gate.diffs import conduct_tables as tables
from bailiwick.gate.diffs.changes import SourceChange
from bailiwick.gate.diffs.facilities import Use, uses_in
from bailiwick.gate.diffs.origins import Readings
from bailiwick.gate.diffs.syntax import Unreadable, parse
from bailiwick.gate.diffs.texts import TestNames, text_uses
from bailiwick.gate.diffs.values import read_values
from bailiwick.gate.model import Finding

MOST = 200
_Key = tuple[str, str, bool]


@dataclass(frozen=True, slots=True)
class _Compared:
    """The uses of facilities in both versions of a file."""

    change: SourceChange
    before: tuple[Use, ...]
    after: tuple[Use, ...]
    unreadable: str = ""


def read_conduct(changes: Sequence[SourceChange], test_sources: Mapping[str, bytes]) -> tuple[Finding, ...]:
    """What a change does that asks for a person (`parks`) or is worth a note, by path and line."""
    names, readings = TestNames(test_sources), Readings()
    compared = [_compare(change, names, readings) for change in changes if change.path.endswith(".py")]
    found: list[Finding] = []
    for side in (True, False):
        listed = [item for item in compared if item.change.is_test is side]
        found += _surplus(listed)
        found += [_unreadable(item) for item in listed if item.unreadable]
    found += read_values(changes, test_sources, readings)
    found.sort(key=lambda finding: (not finding.parks, finding.path, finding.line, finding.what))
    return tuple(found[:MOST])


def _compare(change: SourceChange, names: TestNames, readings: Readings) -> _Compared:
    before = _uses(change.old, change, names, readings)
    if change.new is None:
        return _Compared(change, before or (), ())
    after = _uses(change.new, change, names, readings)
    if after is not None:
        return _Compared(change, before or (), after)
    if change.old is not None and before is None:
        return _Compared(change, (), ())
    return _Compared(change, before or (), (), _why(change.new))


def _why(source: bytes) -> str:
    try:
        parse(source)
    except Unreadable as error:
        return str(error)
    return "it is nested too deeply"


def _uses(source: bytes | None, change: SourceChange, names: TestNames, readings: Readings) -> tuple[Use, ...] | None:
    """The uses in one version; None where it can't be read."""
    read = readings.read(source)
    if read is None:
        return None
    parsed, origins = read
    try:
        found = uses_in(parsed, origins, is_test=change.is_test)
        return found if change.is_test else (*found, *text_uses(parsed.tree, origins.folder, change.path, names))
    except RecursionError:
        return None


def _unreadable(item: _Compared) -> Finding:
    what = f"the file can't be read as Python ({item.unreadable}): {tables.WHY[tables.UNREADABLE]}"
    return Finding(tables.UNREADABLE, what, item.change.path, blocks=False, parks=True)


def _surplus(listed: Sequence[_Compared]) -> Iterator[Finding]:
    """What all files together have more of than before, told where it is."""
    left: Counter[_Key] = Counter()
    for item in listed:
        left.update(_counted(item.after))
        left.subtract(_counted(item.before))
    for item in listed:
        more = _counted(item.after) - _counted(item.before)
        for key, count in more.items():
            told = min(count, left[key])
            if told > 0:
                left[key] -= told
                yield _finding(item, key, told)


def _counted(uses: Iterable[Use]) -> Counter[_Key]:
    return Counter((use.code, use.name, use.parks) for use in uses)


def _finding(item: _Compared, key: _Key, count: int) -> Finding:
    code, name, parks = key
    uses = [use for use in item.after if (use.code, use.name, use.parks) == key]
    known = set((item.change.old or b"").splitlines())
    lines = (item.change.new or b"").splitlines()
    fresh = [use for use in uses if use.line > len(lines) or lines[use.line - 1] not in known]
    line = (fresh or uses[-count:])[0].line
    was = any((use.code, use.name) == (code, name) for use in item.before)
    often = f" ({count} times)" if count > 1 else ""
    more = "one more use of " if was else ""
    found = Finding(code, f"{more}{name}{often}: {tables.WHY[code]}", item.change.path, line, blocks=False, parks=parks)
    if (
        code == tables.EXIT
        and was
        and name in ("sys.exit", "exit", "quit", "raise SystemExit", "raise KeyboardInterrupt")
    ):
        return replace(found, parks=False)
    return found
