"""What a run of pytest told besides outcomes: who acted, what was patched, which comparisons lied. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from bailiwick.ids import Json


@dataclass(frozen=True, slots=True)
class Lie:
    """A comparison that also holds for a value it must not hold for. `site` is its place, see `instrument`."""

    site: int
    what: str


@dataclass(frozen=True, slots=True)
class Pair:
    """Two objects of one class that differ and are equal. `document` is how the other tree is asked about them."""

    site: int
    what: str
    document: list[Json]


@dataclass(frozen=True, slots=True)
class Evidence:
    """All of it, by test or by file. Paths are relative to the tree."""

    events: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """By interpreter event and file: the line that caused it."""
    opened: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By file that was opened: the files whose code did it."""
    written: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By file that was written, moved or removed: the files whose code did it."""
    grafts: frozenset[tuple[str, str]] = frozenset()
    """A name in a module outside the tree, and the file of the tree whose function it means."""
    origins: tuple[tuple[str, str], ...] = ()
    """A changed module, and the file outside the tree that was imported in its place."""
    settings: frozenset[str] = frozenset()
    """The file that pytest takes its settings from."""
    syntax: tuple[tuple[str, int, str], ...] = ()
    """Changed files that are no Python: path, line, what is wrong."""
    reached: Mapping[str, frozenset[int]] = field(default_factory=dict)
    """By test: the places of assertions that it reached."""
    failed: Mapping[str, frozenset[int]] = field(default_factory=dict)
    """By test: the places of asserts that did not hold."""
    lies: Mapping[str, tuple[Lie, ...]] = field(default_factory=dict)
    loose: Mapping[str, tuple[Lie, ...]] = field(default_factory=dict)
    """Comparisons that allow a small difference which no test allows."""
    pairs: Mapping[str, tuple[Pair, ...]] = field(default_factory=dict)
    """By test: objects that differ and are equal by what the change decides."""
    apart: frozenset[int] = frozenset()
    """The numbers of pairs, asked for from outside, that are told apart."""
    hits: Mapping[str, frozenset[int]] = field(default_factory=dict)
    """By test: the numbers of the changed functions that it called."""
    calls: tuple[dict[str, Json], ...] = ()
    """Calls of changed functions that were recorded."""
    replayed: tuple[dict[str, Json], ...] = ()
    """What recorded calls did when they were made again in a test."""
    alone: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """How tests ended as if without their tool."""
    bare: frozenset[str] = frozenset()
    """Tests that ask for nothing that only their tool could give."""
    path: tuple[str, ...] = ()
    """Where modules were looked for when they were."""

    def to_json(self) -> dict[str, Json]:
        """What is worth keeping of a base."""
        return {
            "events": [[event, path, line] for (event, path), line in self.events.items()],
            "opened": {path: list(openers) for path, openers in self.opened.items()},
            "written": {path: list(openers) for path, openers in self.written.items()},
            "grafts": sorted([name, path] for name, path in self.grafts),
            "settings": sorted(self.settings),
        }


def read_evidence(records: Mapping[str, Sequence[dict[str, Json]]], finish: dict[str, Json]) -> Evidence:
    """From the records of a run, by their type."""
    audit = (records.get("audit") or [{}])[-1]
    calls = (records.get("calls") or [{}])[-1]
    near = records.get("near", ())
    return Evidence(
        events=_events([*audit.get("events", ()), *(r["event"] for r in records.get("event", ()))]),
        opened=_opened(audit.get("opened", {})),
        written=_opened(audit.get("written", {})),
        grafts=_pairs(finish.get("grafts", ())),
        settings=frozenset(map(str, finish.get("settings", ()))),
        origins=tuple((str(path), str(file)) for path, file in finish.get("origins", ())),
        syntax=tuple((str(r["path"]), int(r["line"]), str(r["what"])) for r in records.get("syntax", ())),
        reached={str(r["id"]): frozenset(map(int, r["reached"])) for r in near},
        failed={str(r["id"]): frozenset(map(int, r["failed"])) for r in near if r["failed"]},
        lies={str(r["id"]): _lies(r["lies"]) for r in near if r["lies"]},
        loose={str(r["id"]): _lies(r["loose"]) for r in near if r.get("loose")},
        pairs={str(r["id"]): _pairs_of(r["pairs"]) for r in near if r.get("pairs")},
        apart=frozenset(int(number) for r in records.get("pairs", ()) for number in r["apart"]),
        hits={str(r["id"]): frozenset(map(int, r["functions"])) for r in records.get("hits", ())},
        calls=tuple(calls.get("calls", ())),
        replayed=tuple(records.get("call", ())),
        alone=ends_of(records.get("alone", ())),
        bare=frozenset(str(test) for r in records.get("bare", ()) for test in r["ids"]),
        path=tuple(map(str, calls.get("path", ()))),
    )


def kept_evidence(data: dict[str, Json]) -> Evidence:
    """From what was kept of a base."""
    return Evidence(
        events=_events(data.get("events", ())),
        opened=_opened(data.get("opened", {})),
        written=_opened(data.get("written", {})),
        grafts=_pairs(data.get("grafts", ())),
        settings=frozenset(map(str, data.get("settings", ()))),
    )


def ends_of(records: Iterable[dict[str, Json]]) -> dict[str, tuple[str, ...]]:
    """How tests ended without their tool, from what was told."""
    return {str(r["test"]): tuple(map(str, r["ends"])) for r in records}


def _lies(items: Iterable[Sequence[Json]]) -> tuple[Lie, ...]:
    return tuple(Lie(int(site), str(what)) for site, what in items)


def _pairs_of(items: Iterable[Sequence[Json]]) -> tuple[Pair, ...]:
    return tuple(Pair(int(site), str(what), list(document)) for site, what, document in items)


def _events(items: Iterable[Sequence[Json]]) -> dict[tuple[str, str], int]:
    return {(str(event), str(path)): int(line) for event, path, line in items}


def _opened(data: dict[str, Json]) -> dict[str, tuple[str, ...]]:
    return {path: tuple(map(str, openers)) for path, openers in data.items()}


def _pairs(items: Iterable[Sequence[Json]]) -> frozenset[tuple[str, str]]:
    return frozenset((str(first), str(second)) for first, second in items)
