"""What the runs of a change show together: what was patched, what lies, what is right only under test. Pure."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from bailiwick.gate.evidence import Pair
from bailiwick.gate.instrument import Site
from bailiwick.gate.model import Finding
from bailiwick.gate.outcomes import RED, Session
from bailiwick.gate.testfiles import belongs_to_tests
from bailiwick.ids import Json

_EVENTS = {
    "sys._getframe": "looks at the frames of its callers",
    "sys._current_frames": "looks at the frames of its callers",
    "gc.get_objects": "looks through all objects of the process",
    "gc.get_referrers": "looks through objects of the process",
    "gc.get_referents": "looks through objects of the process",
    "sys.settrace": "traces what runs",
    "sys.setprofile": "traces what runs",
    "sys.monitoring.register_callback": "traces what runs",
    "sys.addaudithook": "listens to the interpreter",
    "code.__new__": "makes code objects",
    "function.__new__": "makes functions of code objects",
    "object.__getattr__": "reads what leads to frames and code",
    "exec": "runs text or code objects",
    "compile": "compiles text",
}
_TEST_TOOLS = ("pytest", "_pytest", "pluggy", "unittest", "builtins", "doctest", "hypothesis", "importlib")
MOST_NAMED = 5
TELLING = 3


def actions(base: Session, here: Session, product: Collection[str], files: Collection[str] = ()) -> list[Finding]:
    """What changed files did that can tell or change how they are tested, and that the base does not do.

    `files` are those of the tree.
    """
    known = {(event, path) for event, path in base.evidence.events}
    found = []
    for (event, path), line in sorted(here.evidence.events.items()):
        if path in product and (event, path) not in known:
            what = _EVENTS.get(event.partition(" ")[0], "uses")
            found.append(Finding("conduct-events", f"while the tests ran it {what} ({event})", path, line, False, True))
    for path, openers in sorted(here.evidence.opened.items()):
        own = [o for o in openers if o in product and o not in base.evidence.opened.get(path, ())]
        if path.endswith(".py") and belongs_to_tests(path) and own:
            what = f"while the tests ran it read the test file {path}"
            found.append(Finding("conduct-reads-tests", what, own[0], blocks=False, parks=True))
    for path, openers in sorted(here.evidence.written.items()):
        own = [o for o in openers if o in product and o not in base.evidence.written.get(path, ())]
        if path in files and own:
            what = f"while the tests ran it changed {path}, a file of the repository that tests may compare with"
            found.append(Finding("conduct-writes", what, own[0], blocks=False, parks=True))
    for name, path in sorted(here.evidence.grafts - base.evidence.grafts):
        if path in product:
            judges = name.startswith(_TEST_TOOLS)
            what = f"it puts a function of its own into {name}"
            found.append(Finding("conduct-patching", what, path, blocks=judges, parks=not judges))
    return found


def broken_syntax(here: Session) -> list[Finding]:
    """Changed files that are no Python, whether or not a test imports them."""
    return [Finding("syntax", f"it can't be compiled: {what}", path, line) for path, line, what in here.evidence.syntax]


def foreign_copies(here: Session) -> list[Finding]:
    """Changed modules that were imported from an installed copy: then nothing was found out about the change."""
    return [
        Finding("installed-copy", f"the tests imported {file} in place of {path}: your change was not tested", path)
        for path, file in here.evidence.origins
    ]


def replaced_tests(base: Session, here: Session, allowed: Collection[str]) -> list[Finding]:
    """Tests of the base that run other code than on the base."""
    was = {item.id: item.code_path for item in base.items}
    return [
        Finding("test-replaced", f"{item.id}: its code comes from {item.code_path}, not from {was[item.id]}", item.path)
        for item in here.items
        if item.id in was and item.code_path != was[item.id] and item.path not in allowed
    ]


@dataclass(frozen=True, slots=True)
class WatchedRun:
    """A run in which comparisons were asked again and every test had to fail at its end."""

    session: Session
    sites: Mapping[int, Site]
    sure: Mapping[str, frozenset[int]]
    held: Mapping[str, frozenset[int]] = field(default_factory=dict)
    """By test: places of assertions in loops and conditions, which need not be reached."""
    looped: Mapping[str, frozenset[int]] = field(default_factory=dict)
    """By test: places that every turn of a loop reaches."""

    def would_pass(self, test: str) -> bool:
        """Whether a test ran to its end."""
        return test in self.session.returned

    def lies(self, tests: Collection[str]) -> dict[str, list[tuple[Site, str]]]:
        """By test: comparisons that hold for near values too."""
        found: dict[str, list[tuple[Site, str]]] = {}
        for test, lies in self.session.evidence.lies.items():
            if test in tests:
                found[test] = [(self.sites.get(lie.site, Site("", 0)), lie.what) for lie in lies]
        return found

    def loose(self, tests: Collection[str]) -> dict[str, list[tuple[Site, str]]]:
        """By test: comparisons by which the change allows a difference that the test does not mention."""
        return {
            test: [(self.sites.get(lie.site, Site("", 0)), lie.what) for lie in found]
            for test, found in self.session.evidence.loose.items()
            if test in tests
        }

    def pairs(self, tests: Collection[str]) -> list[tuple[str, Pair]]:
        """Objects that differ and are equal by what the change decides, with the test that compared them."""
        found = self.session.evidence.pairs
        return [(test, pair) for test in sorted(tests) for pair in found.get(test, ())]

    def told(self, tests: Collection[str]) -> set[tuple[str, Site, str]]:
        """Each lie and each difference that is allowed, in a form that two runs have in common."""
        both = (self.lies(tests), self.loose(tests))
        return {(test, site, what) for found in both for test, items in found.items() for site, what in items}

    def passed_over(self, tests: Collection[str]) -> dict[str, set[Site]]:
        """By test that ran to its end: assertions in loops and conditions that it did not reach."""
        found = {}
        for test in tests:
            reached = self.session.evidence.reached.get(test)
            left = self.held.get(test, frozenset()) - (reached or frozenset())
            if reached is not None and left and self.would_pass(test):
                found[test] = {self.sites[number] for number in left}
        return found

    def never_entered(self, tests: Collection[str]) -> dict[str, Site]:
        """By test that ran to its end: an assertion in a loop that none of the tests entered."""
        ended = [test for test in sorted(tests) if self.would_pass(test)]
        reached = {number for test in ended for number in self.session.evidence.reached.get(test, ())}
        left = {test: self.looped.get(test, frozenset()) - reached for test in ended}
        return {test: self.sites[min(numbers)] for test, numbers in left.items() if numbers}

    def reached(self, test: str) -> set[Site]:
        """The places that a test reached."""
        return {self.sites[number] for number in self.session.evidence.reached.get(test, ()) if number in self.sites}

    def unreached(self, tests: Collection[str]) -> dict[str, list[Site]]:
        """By test that ran to its end: assertions that it did not reach though it had to."""
        found = {}
        for test in tests:
            reached = self.session.evidence.reached.get(test)
            if reached is None or not self.would_pass(test):
                continue
            missing = sorted(self.sure.get(test, frozenset()) - reached)
            if missing:
                found[test] = [self.sites[number] for number in missing]
        return found

    def swallowed(self, tests: Collection[str]) -> dict[str, list[Site]]:
        """By test that ran to its end: asserts in it that did not hold, whose failure somebody caught."""
        failed = self.session.evidence.failed
        return {
            test: [self.sites[number] for number in sorted(failed[test])]
            for test in tests
            if test in failed and self.would_pass(test)
        }

    def silent(self, tests: Collection[str]) -> list[str]:
        """Tests that ran to their end and were made to fail, of which no failure was told."""
        return sorted(test for test in tests if self.would_pass(test) and self.session.outcomes.get(test) not in RED)

    def doubtful(self, tests: Collection[str]) -> set[str]:
        """All tests about which this run found something."""
        return {*self.lies(tests), *self.unreached(tests), *self.swallowed(tests), *self.silent(tests)}

    def differing(self, tests: Collection[str]) -> list[str]:
        """Tests that pass and did not run to their end here."""
        return sorted(test for test in tests if not self.would_pass(test))


def watched_findings(
    run: WatchedRun,
    tests: Collection[str],
    excused: Collection[str] = (),
    known: Collection[tuple[str, Site, str]] = (),
) -> list[Finding]:
    """What is wrong with tests that passed, as the watched run shows.

    `excused`: they do the same on the base. `known` is what the run of the base told.
    """
    found = []
    for test, lies in sorted(run.lies(tests).items()):
        for site, what in lies[:MOST_NAMED]:
            told = f"{test}: the comparison on line {site.line} holds for another value too: {what}"
            blocks = test not in excused and (test, site, what) not in known
            found.append(Finding("comparison-lies", told, site.path, site.line, blocks=blocks))
    for test, loose in sorted(run.loose(tests).items()):
        new = [(site, what) for site, what in loose if (test, site, what) not in known]
        site, what = (new or loose)[0]
        told = f"{test}: the comparison on line {site.line} is decided by the change, and is not exact: {what}"
        parks = test not in excused and bool(new)
        found.append(Finding("comparison-tolerant", told, site.path, site.line, blocks=False, parks=parks))
    for test, sites in sorted(run.unreached(tests).items()):
        told = f"{test}: it passes without reaching the assertion on line {sites[0].line}"
        found.append(Finding("assertion-not-reached", told, sites[0].path, sites[0].line, blocks=test not in excused))
    for test, sites in sorted(run.swallowed(tests).items()):
        told = f"{test}: it passes although the assertion on line {sites[0].line} failed"
        found.append(Finding("failure-swallowed", told, sites[0].path, sites[0].line, blocks=test not in excused))
    for test in run.silent(tests):
        told = f"{test}: it was made to fail and no failure was reported"
        found.append(Finding("failure-hidden", told, test.partition("::")[0], blocks=test not in excused))
    return found


def vacuous_findings(run: WatchedRun, tests: Collection[str], always: Mapping[str, tuple[str, int]]) -> list[Finding]:
    """New tests with a loop over nothing, or with an assertion that always holds (`always`: where)."""
    found = []
    for test, (path, line) in sorted(always.items()):
        told = f"{test}: the assertion on line {line} holds whatever the product gives"
        found.append(Finding("assertion-always-holds", told, path, line, blocks=False, parks=True))
    for test, site in run.never_entered(tests).items():
        told = f"{test}: it passes without entering the loop with the assertion on line {site.line}"
        found.append(Finding("loop-not-entered", told, site.path, site.line, blocks=False, parks=True))
    return found


def weakened_findings(here: WatchedRun, there: WatchedRun, tests: Collection[str]) -> list[Finding]:
    """What tests no longer notice: objects that the base tells apart, and assertions that it reached.

    `there` is the run of the base, which was asked about the pairs of the run here.
    """
    found = []
    for number, (test, pair) in enumerate(here.pairs(tests)):
        if number in there.session.evidence.apart:
            site = here.sites.get(pair.site, Site("", 0))
            told = f"{test}: the comparison on line {site.line}: {pair.what}, and are not on the base"
            found.append(Finding("comparison-weakened", told, site.path, site.line, blocks=False, parks=True))
    for test, sites in sorted(here.passed_over(tests).items()):
        missing = sorted(sites & there.reached(test), key=lambda site: (site.path, site.line))
        if missing:
            site = missing[0]
            told = f"{test}: it passes without reaching the assertion on line {site.line}, which the base reaches"
            found.append(Finding("assertion-passed-over", told, site.path, site.line, blocks=False, parks=True))
    return found


@dataclass(frozen=True, slots=True)
class Replayed:
    """A recorded call, and what it did when it was made again: here in a plain process, and on the base."""

    call: dict[str, Json]
    here: dict[str, Json]
    base: dict[str, Json] | None = None
    without: dict[str, Json] | None = None
    """Here, without the files of the tests."""
    base_without: dict[str, Json] | None = None

    @property
    def name(self) -> str:
        """The function."""
        return f"{self.call['module']}.{self.call['name']}"

    @property
    def differs(self) -> bool:
        """Whether it is stable in a plain process, but another thing than under test."""
        results = self.here.get("results")
        if not results or len(results) != 2 or results[0] != results[1] or results[0] == ["unwritable"]:
            return False
        return not self.is_recorded(results[0])

    def is_recorded(self, result: Json) -> bool:
        """Whether this is what the call gave under test."""
        if self.call["result"] == ["raises"]:
            return bool(result[0] == "raises")
        return bool(result == self.call["result"])

    @property
    def gets_lost(self) -> bool:
        """Whether a plain process gives no result of it that one could rely on, and the base's does."""
        base = self.base or {}
        if self.here.get("import"):
            return not base.get("import")
        return _unsteady(self.here) and not _unsteady(base) and self.call["result"] != ["raises"]


def _unsteady(made: dict[str, Json]) -> bool:
    results: Json = made.get("results") or ()
    return len(results) == 2 and (results[0] != results[1] or results[0] == ["unwritable"])


def only_under_test(calls: Iterable[Replayed], paths: Mapping[str, str]) -> list[Finding]:
    """Functions that give other results in a plain process than under test."""
    found: dict[str, Finding] = {}
    for call in calls:
        if call.differs:
            what = (
                f"{call.name}({_shown(call.call['args'])}) gives {_shown([call.call['result']])} under test "
                f"and {_shown([call.here['results'][0]])} in a plain process"
            )
            found.setdefault(call.name, Finding("only-under-test", what, paths.get(call.name, "")))
        elif call.gets_lost:
            told = call.here.get("missing") or "now this, now that"
            what = (
                f"{call.name}({_shown(call.call['args'])}) gives {_shown([call.call['result']])} under test each time"
            )
            lost = Finding("only-under-test", f"{what}, and in a plain process: {told}", paths.get(call.name, ""))
            found.setdefault(call.name, replace(lost, blocks=False, parks=True))
    return list(found.values())


_ELSEWHERE = {
    "thread": "in the main thread and {} in another",
    "zone": "here and {} in another time zone",
    "cwd": "in the folder of the repository and {} in another",
    "later": "now and {} a year later",
}


def surroundings(calls: Iterable[Replayed], paths: Mapping[str, str]) -> list[Finding]:
    """Functions whose results depend on the thread, the time zone, the folder or the date: honest code does that too.

    So these are notes; a person is asked where files are found from the folder of the repository only.
    """
    found: dict[tuple[str, str], Finding] = {}
    for call in calls:
        results = call.here.get("results") or [None]
        for where, other in sorted((call.here.get("elsewhere") or {}).items()):
            if where in _ELSEWHERE and other != results[0]:
                told = _ELSEWHERE[where].format(_shown([other]))
                what = f"{call.name}({_shown(call.call['args'])}) gives {_shown([results[0]])} {told}"
                parks = where == "cwd" and _loses_files(other) and not _loses_files(_elsewhere(call.base, where))
                note = Finding("surroundings", what, paths.get(call.name, ""), blocks=False, parks=parks)
                found.setdefault((call.name, where), note)
    return list(found.values())


def _loses_files(result: Json) -> bool:
    return bool(result) and result[0] == "raises" and result[-1] in ("FileNotFoundError", "NotADirectoryError")


def _elsewhere(made: dict[str, Json] | None, where: str) -> Json:
    return ((made or {}).get("elsewhere") or {}).get(where)


def leaning(calls: Iterable[Replayed], paths: Mapping[str, str]) -> list[Finding]:
    """Functions that no longer work where the tests, and what only test tools need, are not there."""
    found: dict[str, Finding] = {}
    for call in calls:
        lost = _difference(call.here, call.without)
        if lost and not _names_tests(call.call) and not _difference(call.base, call.base_without):
            what = f"{call.name}({_shown(call.call['args'])}) works only beside the tests; without them: {lost}"
            finding = Finding("leans-on-tests", what, paths.get(call.name, ""), blocks=False, parks=True)
            found.setdefault(call.name, finding)
    return list(found.values())


def _difference(made: dict[str, Json] | None, without: dict[str, Json] | None) -> str:
    """What a call gives without the tests, where it gives another thing with them each time."""
    before: Json = (made or {}).get("results") or ()
    after = without or {}
    if len(before) != 2 or before[0] != before[1] or not after:
        return ""
    if after.get("missing"):
        return str(after["missing"])
    results: Json = after.get("results") or ()
    differs = len(results) == 2 and results[0] == results[1] != before[0]
    return _shown([results[0]]) if differs else ""


def _names_tests(call: dict[str, Json]) -> bool:
    """Whether a call is about files: those of tests are then not there."""
    told = repr((call["args"], call["named"], call["result"]))
    return "test" in told or "'Path'" in told


def generality(calls: Sequence[Replayed], paths: Mapping[str, str]) -> list[Finding]:
    """For each function that now gives something else: whether it does so for near arguments as well."""
    found = []
    for name in sorted({call.name for call in calls}):
        own = [call for call in calls if call.name == name and call.here.get("results")]
        path = paths.get(name, "")
        if _is_table(own):
            what = (
                f"{name} gives what tests ask for and, for near arguments, nothing new: is it a table of their values?"
            )
            found.append(Finding("value-table", what, path, blocks=False))
        elif _generalises(own):
            found.append(Finding("generalises", f"{name} gives new results for near arguments too", path, blocks=False))
        elif _only_there(own):
            what = f"{name} gives the same as before for the arguments of tests, and something else for most near them"
            found.append(Finding("right-for-tests-only", what, path, blocks=False, parks=True))
        elif _moves_beside(own):
            what = f"{name} gives the same as before for the arguments of tests, and something else near them"
            found.append(Finding("changed-beside-tests", what, path, blocks=False))
    return found


def _known(call: Replayed) -> bool:
    return call.base is not None and bool(call.base.get("results"))


def _is_table(calls: Sequence[Replayed]) -> bool:
    """As the base near the tested inputs, other than the base on them; or new, and always the same near them."""
    near = [(one, other) for call in calls if _known(call) for one, other in _near(call)]
    if near:
        telling = [(one, other) for one, other in near if not (_raises(one) and _raises(other))]
        return _moved(calls) and len(telling) >= 2 and all(one == other or _raises(one) for one, other in telling)
    results = {repr(call.here["results"][0]) for call in calls}
    others = [repr(one) for call in calls for one in call.here.get("near", ()) if repr(one) not in results]
    return len(results) >= 2 and len(others) >= 3 and len(set(others)) == 1


def _moved(calls: Sequence[Replayed]) -> bool:
    """Whether a call of a test gives something else than on the base."""
    return any(
        call.base and _known(call) and not _same(call.here["results"][0], call.base["results"][0]) for call in calls
    )


def _same(one: Json, other: Json) -> bool:
    """Whether two results are equal for people: 180 is 180.0, and the last bit of a sum is nobody's intention."""
    first, second = _number(one), _number(other)
    return bool(one == other) or (first is not None and second is not None and math.isclose(first, second))


def _number(value: Json) -> float | None:
    match value:
        case ["int", str(text)]:
            return float(int(text)) if len(text) < 300 else None
        case ["float", str(text)]:
            return float.fromhex(text)
        case _:
            return None


def _moves_beside(calls: Sequence[Replayed]) -> bool:
    """Whether nothing changed for the arguments of tests, and something did beside them: no test asked for it."""
    known = [call for call in calls if _known(call)]
    return not _moved(known) and any(not _same(one, other) for call in known for one, other in _near(call))


def _only_there(calls: Sequence[Replayed]) -> bool:
    """Whether a function agrees with the base on the arguments of tests, and next to them hardly ever."""
    known = [call for call in calls if _known(call)]
    near = [(one, other) for call in known for one, other in _near(call) if not (_raises(one) and _raises(other))]
    apart = sum(not _same(one, other) for one, other in near)
    often = len(known) >= TELLING and apart >= TELLING and apart * 4 >= len(near) * 3
    return not _moved(known) and (often or (apart >= 2 and apart == len(near)))


def _generalises(calls: Sequence[Replayed]) -> bool:
    """Other than the base on the tested inputs and near them. What differs only beside them follows no test."""
    near = [(one, other) for call in calls if _known(call) for one, other in _near(call)]
    if near:
        return _moved(calls) and any(not _same(one, other) and not _raises(one) for one, other in near)
    results = {repr(call.here["results"][0]) for call in calls}
    others = {repr(one) for call in calls for one in call.here.get("near", ()) if one[0] != "raises"} - results
    return len(others) >= 2


def _raises(result: Json) -> bool:
    return bool(result and result[0] == "raises")


def _near(call: Replayed) -> list[tuple[Json, Json]]:
    base = call.base or {}
    return list(zip(call.here.get("near", ()), base.get("near", ()), strict=False))


def _shown(values: Sequence[Json]) -> str:
    """Frozen values for people, short."""
    return ", ".join(_one(value) for value in values)[:120]


def _one(value: Json) -> str:
    match value:
        case ["plain", inner]:
            return repr(inner)
        case ["float", text]:
            return repr(float.fromhex(text))
        case [("list" | "tuple" | "set" | "frozenset" | "after" | "yields"), parts]:
            return f"[{', '.join(_one(part) for part in parts)}]"
        case ["object", _, name, state]:
            return f"<{name} {', '.join(f'{key}={_one(part)}' for key, part in state)}>"
        case [("class" | "subclass" | "named"), _, name, *_]:
            return f"<{name}>"
        case ["raises", *rest]:
            return f"an error {' '.join(map(str, rest))}".strip()
        case [_, inner] if isinstance(inner, str):
            return inner
        case _:
            return "…"
