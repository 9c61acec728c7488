"""What the tests of the base have to do here: each is there, runs, and is told honestly. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

from bailiwick.gate.model import Finding
from bailiwick.gate.outcomes import RED, PytestItem, PytestSession
from bailiwick.gate.plugin.internals import SETTING

NAMED = 20
"""How many tests a finding of one kind names one by one."""
BROKEN = frozenset({"cut-short", "no-records", "timeout", "disk", "forged-record"})
"""Faults after which it means nothing that a test has no outcome."""
_GOOD_EXITS = (0, 1, 5)
_OUTSIDE = ("/", "<")
_TEST_DATA = "test data "


def missing_ids(base: PytestSession, here: PytestSession) -> frozenset[str]:
    """Tests of the base that have no outcome here although their files could be collected."""
    if any(fault.code in BROKEN for fault in here.faults):
        return frozenset()
    lost = set(here.uncollected)
    files = paths_of(base.items)
    return frozenset(
        test
        for test in base.outcomes
        if test not in here.outcomes and not lost.intersection((files.get(test, ""), test.partition("::")[0]))
    )


def compare(
    base: PytestSession, here: PytestSession, *, allowed: Collection[str] = (), unstable: Collection[str] = ()
) -> list[Finding]:
    """What is wrong with the tests of the base here. `unstable` are ids that change from run to run on the base.

    In files that a person allowed to be changed nothing blocks: that person decides.
    """
    files = paths_of(base.items)
    found: list[Finding] = []

    def add(code: str, test: str, what: str) -> None:
        path = files.get(test, test.partition("::")[0])
        found.append(Finding(code, f"{test}: {what}", path, blocks=path not in allowed))

    for test in sorted(missing_ids(base, here).difference(unstable)):
        if test in here.deselected:
            add("test-deselected", test, "it ran on the base and is deselected here")
        elif there := _moved_example(test, base, here):
            what = f"{test}: its examples are now those of {there}"
            found.append(Finding("test-moved", what, test.partition("::")[0], blocks=False, parks=True))
        else:
            add("test-missing", test, "it has an outcome on the base and none here")
    for test, was in base.outcomes.items():
        now = here.outcomes.get(test)
        if now in ("skipped", "xfailed") and now != was:
            add(f"test-{now}", test, f"{was} on the base, {now} here")
        if now in ("passed", "xpassed") and test in base.witnessed and test not in here.witnessed:
            add("test-not-run", test, "it is reported as passed, but its function never ran")
    for test in sorted(here.contradicted - base.contradicted):
        add("hidden-failure", test, "it is reported as passed, but it raised an error")
    return found


def _moved_example(test: str, base: PytestSession, here: PytestSession) -> str:
    """The new and passed examples of the same function in another module; those of a module carry its name."""
    path, _, name = test.partition("::")
    module = path.removesuffix(".py").replace("/", ".")
    tail = next((name.removeprefix(one) for one in _ends(module) if name.startswith(f"{one}.")), "")
    if not tail or not path.endswith(".py"):
        return ""
    for other, outcome in sorted(here.outcomes.items()):
        there, _, called = other.partition("::")
        if outcome == "passed" and other not in base.outcomes and called.endswith(tail):
            module = there.removesuffix(".py").replace("/", ".")
            if any(called == one + tail for one in _ends(module)):
                return other
    return ""


def _ends(module: str) -> list[str]:
    """A dotted name and what is left of it without its first parts: a folder of sources is no part of the name."""
    parts = module.split(".")
    return [".".join(parts[place:]) for place in range(len(parts))]


def tampering(base: PytestSession, here: PytestSession, *, allowed: Collection[str] = ()) -> list[Finding]:
    """Parts of pytest that were exchanged during the run, and hooks that joined it, which the base has not."""
    found = [_exchanged(name) for name in sorted(here.changed - base.changed)]
    plugins = {place.rpartition(":")[0] for place in base.hooks}
    joined = Counter(here.hooks)
    joined.subtract(base.hooks)
    for place, count in sorted(joined.items()):
        path, _, hook = place.rpartition(":")
        if count > 0:
            known = path in allowed or (path in plugins and not path.startswith(_OUTSIDE))
            what = f"{path} takes part in the test run by {hook}, which it does not on the base"
            found.append(Finding("hook-added", what, path, blocks=not known))
    return found


def _exchanged(name: str) -> Finding:
    """Something of pytest or a library that is no longer what it was; of settings and data a person decides."""
    if name.startswith(_TEST_DATA):
        what = f"{name} was changed in place before that test began: it may compare with other values"
        return Finding("test-data-changed", what, blocks=False, parks=True)
    setting = name.removeprefix(SETTING)
    if setting != name:
        what = f"the code under test changes a setting of the whole process while the tests run: {setting}"
        return Finding("library-setting", what, blocks=False, parks=True)
    return Finding("runner-patched", f"the code under test replaces {name} while the tests run")


def run_faults(base: PytestSession, here: PytestSession) -> list[Finding]:
    """What doesn't fit together in the run here; where the base has the same fault it is not about the change."""
    there = {fault.code for fault in base.faults}
    found = [Finding(fault.code, fault.what, blocks=fault.code not in there) for fault in here.faults]
    if here.exit not in _GOOD_EXITS or (here.exit == 1 and not here.red):
        why = "although no test failed" if not here.red else "which is not how failing tests end"
        if not found and not here.uncollected:
            what = f"pytest ends with {here.exit}, {why}"
            found.append(Finding("exit-code", what, blocks=here.exit != base.exit))
    return found


def bounded(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The first findings of each kind one by one, the others as a number."""
    kept: list[Finding] = []
    counts: Counter[tuple[str, bool]] = Counter()
    for finding in findings:
        kind = (finding.code, finding.blocks)
        counts[kind] += 1
        if counts[kind] <= NAMED:
            kept.append(finding)
    more = [
        Finding(code, f"and {count - NAMED} more of this kind", blocks=blocks)
        for (code, blocks), count in counts.items()
        if count > NAMED
    ]
    return (*kept, *more)


def paths_of(items: Iterable[PytestItem]) -> dict[str, str]:
    """The file of each test."""
    return {item.id: item.path for item in items}


def proven_by(new: Mapping[str, str], there: PytestSession) -> frozenset[str]:
    """Those of the new tests (id and file) that fail on the base, or whose file can't even be collected there."""
    lost = set(there.uncollected)
    return frozenset(
        test
        for test, path in new.items()
        if there.outcomes.get(test) in RED
        or (test not in there.outcomes and lost.intersection((path, test.partition("::")[0])))
    )
