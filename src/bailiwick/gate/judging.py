"""What the runs of a change show together: what was patched, what lies, what is right only under test. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from bailiwick.gate.evidence import Lie, Pair
from bailiwick.gate.instrument import AssertionSite, Reach
from bailiwick.gate.model import Finding
from bailiwick.gate.outcomes import RED, PytestSession
from bailiwick.gate.testfiles import belongs_to_tests

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


def actions(
    base: PytestSession, here: PytestSession, product: Collection[str], files: Collection[str] = ()
) -> list[Finding]:
    """What changed files did that can tell or change how they are tested, and that the base does not do.

    `files` are those of the tree.
    """
    known = {(event, path) for event, path in base.evidence.events}
    found = []
    for (event, path), line in sorted(here.evidence.events.items()):
        if path in product and (event, path) not in known:
            what = f"while the tests ran it {_EVENTS.get(event.partition(' ')[0], 'uses')} ({event})"
            found.append(Finding("conduct-events", what, path, line, blocks=False, parks=True))
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


def broken_syntax(here: PytestSession) -> list[Finding]:
    """Changed files that are no Python, whether or not a test imports them."""
    return [Finding("syntax", f"it can't be compiled: {what}", path, line) for path, line, what in here.evidence.syntax]


def foreign_copies(here: PytestSession) -> list[Finding]:
    """Changed modules that were imported from an installed copy: then the change was not tested."""
    return [
        Finding("installed-copy", f"the tests imported {file} in place of {path}: your change was not tested", path)
        for path, file in here.evidence.origins
    ]


def replaced_tests(base: PytestSession, here: PytestSession, allowed: Collection[str]) -> list[Finding]:
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

    session: PytestSession
    sites: Mapping[int, AssertionSite]
    reach: Mapping[str, Reach] = field(default_factory=dict)

    def _reach(self, test: str) -> Reach:
        return self.reach.get(test, Reach())

    def would_pass(self, test: str) -> bool:
        """Whether a test ran to its end."""
        return test in self.session.returned

    def lies(self, tests: Collection[str]) -> dict[str, list[tuple[AssertionSite, str]]]:
        """By test: comparisons that hold for near values too."""
        return self._placed(self.session.evidence.lies, tests)

    def loose(self, tests: Collection[str]) -> dict[str, list[tuple[AssertionSite, str]]]:
        """By test: comparisons by which the change allows a difference that the test does not mention."""
        return self._placed(self.session.evidence.loose, tests)

    def _placed(
        self, lies: Mapping[str, Sequence[Lie]], tests: Collection[str]
    ) -> dict[str, list[tuple[AssertionSite, str]]]:
        return {
            test: [(self.sites.get(lie.site, AssertionSite("", 0)), lie.what) for lie in found]
            for test, found in lies.items()
            if test in tests
        }

    def pairs(self, tests: Collection[str]) -> list[tuple[str, Pair]]:
        """Objects that differ and are equal by what the change decides, with the test that compared them."""
        found = self.session.evidence.pairs
        return [(test, pair) for test in sorted(tests) for pair in found.get(test, ())]

    def told(self, tests: Collection[str]) -> set[tuple[str, AssertionSite, str]]:
        """Each lie and each difference that is allowed, in a form that two runs have in common."""
        both = (self.lies(tests), self.loose(tests))
        return {(test, site, what) for found in both for test, items in found.items() for site, what in items}

    def passed_over(self, tests: Collection[str]) -> dict[str, set[AssertionSite]]:
        """By test that ran to its end: assertions in loops and conditions that it did not reach."""
        found = {}
        for test in tests:
            reached = self.session.evidence.reached.get(test)
            left = self._reach(test).held - (reached or frozenset())
            if reached is not None and left and self.would_pass(test):
                found[test] = {self.sites[number] for number in left}
        return found

    def never_entered(self, tests: Collection[str]) -> dict[str, AssertionSite]:
        """By test that ran to its end: an assertion in a loop that none of the tests entered."""
        ended = [test for test in sorted(tests) if self.would_pass(test)]
        reached = {number for test in ended for number in self.session.evidence.reached.get(test, ())}
        left = {test: self._reach(test).looped - reached for test in ended}
        return {test: self.sites[min(numbers)] for test, numbers in left.items() if numbers}

    def reached(self, test: str) -> set[AssertionSite]:
        """The places that a test reached."""
        return {self.sites[number] for number in self.session.evidence.reached.get(test, ()) if number in self.sites}

    def unreached(self, tests: Collection[str]) -> dict[str, list[AssertionSite]]:
        """By test that ran to its end: assertions that it did not reach though it had to."""
        found = {}
        for test in tests:
            reached = self.session.evidence.reached.get(test)
            if reached is None or not self.would_pass(test):
                continue
            missing = sorted(self._reach(test).sure - reached)
            if missing:
                found[test] = [self.sites[number] for number in missing]
        return found

    def swallowed(self, tests: Collection[str]) -> dict[str, list[AssertionSite]]:
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
    known: Collection[tuple[str, AssertionSite, str]] = (),
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
            site = here.sites.get(pair.site, AssertionSite("", 0))
            told = f"{test}: the comparison on line {site.line}: {pair.what}, and are not on the base"
            found.append(Finding("comparison-weakened", told, site.path, site.line, blocks=False, parks=True))
    for test, sites in sorted(here.passed_over(tests).items()):
        missing = sorted(sites & there.reached(test), key=lambda site: (site.path, site.line))
        if missing:
            site = missing[0]
            told = f"{test}: it passes without reaching the assertion on line {site.line}, which the base reaches"
            found.append(Finding("assertion-passed-over", told, site.path, site.line, blocks=False, parks=True))
    return found
