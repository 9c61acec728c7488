"""The check that is a run of pytest: exit code 0 alone is not green.

Every test of the base has to be there and to be told honestly, without the agent's new tests beside it. Tests that
touch changed code are run again with their comparisons asked for near values, and with the changed functions raising.
New tests are run apart, and on the base to prove the change. Recorded calls are made again in a plain process.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bailiwick.gate.backends.pytest_change import ChangeView, view_change
from bailiwick.gate.backends.pytest_command import read_call
from bailiwick.gate.backends.pytest_run import PytestRequest, Runner
from bailiwick.gate.backends.pytest_study import AddedTests, Study
from bailiwick.gate.backends.ran import RanTests, both, outcome_of, result_of
from bailiwick.gate.detection.missing import missing_at_collection
from bailiwick.gate.ids import BROKEN, bounded, compare, run_faults, tampering
from bailiwick.gate.judging import (
    WatchedRun,
    actions,
    broken_syntax,
    foreign_copies,
    replaced_tests,
    watched_findings,
    weakened_findings,
)
from bailiwick.gate.model import CheckResult, Finding, Outcome
from bailiwick.gate.outcomes import RED, PytestSession
from bailiwick.gate.plainly import PlainTestRun, alone_findings, held
from bailiwick.gate.replays import Replayed, generality, leaning, only_under_test, surroundings
from bailiwick.ids import Json
from bailiwick.sandbox.toolchains import install_hint
from bailiwick.terminal.output import counted

if TYPE_CHECKING:
    from bailiwick.gate.port import CheckContext
    from bailiwick.gate.spec import CheckSpec

_MANIFESTS = ("pyproject.toml", "setup.cfg", "setup.py", "tox.ini", "requirements.txt")
_STARTERS = ("sitecustomize", "usercustomize")
UNEXERCISED = "no test exercises this change"
NOT_YET = "not looked for yet: a person has to look at the change first"


class PytestCheck:
    """Runs pytest on both trees and compares all that can be known about the runs."""

    async def run(self, spec: CheckSpec, context: CheckContext) -> CheckResult:
        study = _study(spec, context)
        if study is None:
            hint = "run: [pytest, …] or [python, -m, pytest, …]; for another runner use kind: command"
            found = Finding("not-pytest", f"the command of the check '{spec.name}' does not start pytest")
            return result_of(spec, "environment", findings=(found,), hint=hint)
        return await _checked(study)

    async def base(self, spec: CheckSpec, context: CheckContext) -> PytestSession:
        """How the base does, from what is kept or run once; empty where it can't be run."""
        study = _study(spec, context)
        return PytestSession() if study is None else (await study.base()).session


def _study(spec: CheckSpec, context: CheckContext) -> Study | None:
    call = read_call(spec.run)
    return None if call is None else Study(spec, context, Runner(call, context, spec.timeout))


async def _checked(study: Study) -> CheckResult:
    """Run what is needed; a change that is red already is not looked at any closer."""
    context = study.context
    changed = [change.path for change in context.changes]
    started = _started_by_python(path for path in changed if path not in context.allowed)
    if started:
        return result_of(study.spec, "failed", findings=started)
    base = await study.base()
    if base.missing:
        return _not_there(study, base)
    lacking = await _lacking(study, base)
    if lacking is not None:
        return lacking
    if not changed:
        return _unchanged(study, base)
    view = await view_change(context, base.session.test_files)
    judged = study.runner.run(PytestRequest("proposed", view.without))
    ran, absent = (await judged, None) if context.brief else await both(judged, study.absent(view, base.session))
    if ran.missing:
        return _not_there(study, ran)
    return await _Judgement(study, view=view, base=base.session, ran=ran, absent=absent).result()


def _not_there(study: Study, ran: RanTests) -> CheckResult:
    found = Finding("missing-tool", f"{ran.missing} is not in the sandbox or has no pytest", blocks=True)
    return result_of(study.spec, "failed", ran, findings=(found,), hint=install_hint("pytest"))


async def _lacking(study: Study, base: RanTests) -> CheckResult | None:
    """What the base itself lacks to be collected: a fault of the environment, never a red test."""
    session = base.session
    output = "\n".join(session.texts.get(file, "") for file in session.uncollected)
    if session.exit not in (0, 1, 5):
        output += "\n" + base.text
    if not output.strip():
        return None
    read = {name: await study.context.read("base", name) for name in _MANIFESTS}
    texts = {name: data.decode("utf-8", "replace") for name, data in read.items() if data is not None}
    found = missing_at_collection(texts, output, await study.context.files("base"))
    if found is None or found.kind == "file":
        return None
    what = f"the {found.kind} {found.name} is missing, on the base too: your change was not tested"
    hint = f"add to `prepare` in the gate file: [{', '.join(found.command)}]" if found.command else ""
    return result_of(
        study.spec, "environment", base, findings=(Finding("missing-module", what, blocks=False),), hint=hint
    )


def _unchanged(study: Study, base: RanTests) -> CheckResult:
    """The base itself: there is nothing to compare it with."""
    here = base.session
    if "no-records" in {fault.code for fault in here.faults}:
        hint = "pytest can't be started: look at its output"
        return result_of(study.spec, "environment", base, hint=hint)
    faults = [replace(finding, blocks=False) for finding in run_faults(here, here)]
    return _told(study, base, outcome_of(here, frozenset(here.red), faults), faults)


def _told(study: Study, ran: RanTests, outcome: Outcome, findings: Iterable[Finding]) -> CheckResult:
    """The result; a check that was cancelled says nothing."""
    if study.context.cancel.is_set():
        return result_of(study.spec, "environment", ran, hint="the check was ended before it was done")
    return result_of(study.spec, outcome, ran, findings=bounded(findings))


@dataclass(slots=True)
class _Judgement:
    """What follows from the first runs, and the further runs that it takes to know."""

    study: Study
    view: ChangeView
    base: PytestSession
    ran: RanTests
    absent: PytestSession | None

    async def result(self) -> CheckResult:
        """The result of the check."""
        base, here, context = self.base, self.ran.session, self.study.context
        if all("no-records" in {fault.code for fault in session.faults} for session in (here, base)):
            hint = "pytest can't be started, not even on the base: your change is not the cause"
            return result_of(self.study.spec, "environment", self.ran, hint=hint)
        copies = foreign_copies(here)
        if copies:
            hint = "install the project editable in `prepare` (-e .), so that what runs is the tree"
            return result_of(self.study.spec, "environment", self.ran, findings=tuple(copies), hint=hint)
        findings = [
            *broken_syntax(here),
            *run_faults(base, here),
            *self._tampering(),
            *replaced_tests(base, here, context.allowed),
            *actions(base, here, self.view.product, frozenset(await context.files("proposed"))),
        ]
        excused, unstable = await self.study.second_look(base, here)
        findings += compare(base, here, allowed=context.allowed, unstable=unstable)
        outcome = outcome_of(here, excused, findings)
        if outcome == "failed" or context.brief or context.cancel.is_set():
            told = _told(self.study, self.ran, outcome, findings)
            return replace(told, unproven=NOT_YET) if context.brief else told
        return await self._closer(excused, findings)

    def _tampering(self) -> list[Finding]:
        found = tampering(self.base, self.ran.session, allowed=self.study.context.allowed)
        unfinished = any(fault.code in BROKEN for fault in self.base.faults)
        return [replace(f, blocks=False, parks=f.blocks) for f in found] if unfinished else found

    async def _closer(self, excused: frozenset[str], findings: list[Finding]) -> CheckResult:
        study, view, base, here = self.study, self.view, self.base, self.ran.session
        healed = frozenset(test for test in base.red if test in here.passed)
        chosen = (self._touching() | healed) & here.passed
        watched, added = await both(self._watched(chosen), study.added(view, base))
        findings += await self._watched_findings(watched, chosen)
        findings += added.findings
        if added.red and added.ran is not None:
            return _told(study, added.ran, "failed", findings)
        if outcome_of(here, excused, findings) == "failed":
            return _told(study, self.ran, "failed", findings)
        (calls, alone), (noticing, proof, anyway) = await both(
            study.replay(view, (watched, added.watched), chosen, base), self._proven(added)
        )
        findings += await self._replay_findings(calls, alone, watched, chosen)
        doubtful = set() if watched is None else watched.doubtful(chosen)
        if added.passed and not proof and view.noticeable and (added.proof or not noticing):
            findings.append(_missing_the_change(added.passed, anyway))
        told = _told(study, self.ran, outcome_of(here, excused, findings), findings)
        cured = tuple(sorted(healed - doubtful))
        counts = (
            *here.counts(),
            ("expected", len(base.outcomes)),
            ("watched", len(chosen)),
            ("new", len(added.passed)),
        )
        return replace(
            told,
            proof=proof,
            healed=cured,
            unproven="" if proof or cured else _unproven(added),
            exercised=noticing,
            unexercised=UNEXERCISED if view.product and not noticing and not proof else "",
            counts=counts,
        )

    async def _proven(self, added: AddedTests) -> tuple[tuple[str, ...], tuple[str, ...], frozenset[str]]:
        """Tests that notice the change, new ones that prove it, and those that would pass with other results too."""
        noticing = self._noticing()
        if not added.passed or not self.view.noticeable or (noticing and not added.proof):
            return noticing, added.proof, frozenset()
        study, view, base = self.study, self.view, self.base
        new, anyway = await both(
            study.notice_new(view, base, added.passed), study.hold_anyway(view, base, frozenset(added.proof))
        )
        anyway &= frozenset(new)
        return noticing or new, tuple(test for test in added.proof if test in new and test not in anyway), anyway

    def _touching(self) -> frozenset[str]:
        """The tests that call changed functions, or notice that they are gone; all, where nobody can know which."""
        if self.absent is None:
            return frozenset()
        found = frozenset(self.absent.evidence.hits) | frozenset(self._noticing())
        if self.view.loose:
            names = {path.rpartition("/")[2].removesuffix(".py") for path in self.view.loose} - {"__init__"}
            found |= {item.id for item in self.ran.session.items if any(name in item.path for name in names)}
        return found or (frozenset(self.ran.session.outcomes) if self.view.loose else frozenset())

    def _noticing(self) -> tuple[str, ...]:
        if self.absent is None:
            return ()
        passed = self.ran.session.passed
        return tuple(sorted(test for test, how in self.absent.outcomes.items() if how in RED and test in passed))

    async def _watched(self, chosen: frozenset[str]) -> WatchedRun | None:
        if not chosen:
            return None
        study = self.study
        tests = counted(len(chosen), "test")
        study.context.show(f"{study.spec.name}: re-running {tests} with other expected values; each must fail")
        return await study.watch(self.view, self.base, chosen, self.ran.session)

    async def _watched_findings(self, watched: WatchedRun | None, chosen: frozenset[str]) -> list[Finding]:
        """What the watched run shows; what the base does too is not about the change."""
        if watched is None:
            return []
        found = watched_findings(watched, chosen)
        differing = watched.differing(chosen)
        asked = {test for test, _ in watched.pairs(chosen)} | {*watched.passed_over(chosen)}
        suspects = {*watched.doubtful(chosen), *watched.loose(chosen), *differing, *asked} & {*self.base.outcomes}
        excused: set[str] = set()
        if suspects:
            pairs = tuple(pair.document for _, pair in watched.pairs(chosen))
            there = await self.study.watch_base(self.base, suspects, pairs)
            known = suspects & self.base.passed
            excused = known & {*there.doubtful(known), *there.differing(known)}
            found = watched_findings(watched, chosen, excused, there.told(suspects))
            found += weakened_findings(watched, there, chosen)
        if differing:
            again = await self.study.watch(self.view, self.base, frozenset(differing), self.ran.session)
            for test in again.differing(differing):
                what = f"{test}: it passes, but not when its comparisons are watched"
                path = test.partition("::")[0]
                found.append(Finding("differs-when-watched", what, path, blocks=test not in excused))
        return found

    async def _replay_findings(
        self, calls: list[Replayed], alone: list[PlainTestRun], watched: WatchedRun | None, chosen: frozenset[str]
    ) -> list[Finding]:
        paths = self._paths(calls)
        suspects = [call for call in calls if call.differs or call.gets_lost]
        failing = [test for test in alone if test.fails]
        tests = chosen or self.ran.session.passed
        if (suspects or failing) and tests:
            bare = frozenset() if watched is None else watched.session.evidence.bare & chosen
            suspects, failing = await self._so_under_test(suspects, failing, bare or tests)
        known = {test.partition("[")[0] for test in self.base.passed}
        path = min(self.view.product, default="")
        found = [*only_under_test(suspects, paths), *alone_findings(failing, known, path), *leaning(calls, paths)]
        return [*found, *surroundings(calls, paths), *generality(calls, paths)]

    def _paths(self, calls: Iterable[Replayed]) -> dict[str, str]:
        """The file of each recorded function."""
        by_name = {touched.function.qualname: touched.path for touched in self.view.touched}
        return {call.name: by_name.get(str(call.call["name"]), "") for call in calls}

    async def _so_under_test(
        self, calls: list[Replayed], tests: list[PlainTestRun], chosen: frozenset[str]
    ) -> tuple[list[Replayed], list[PlainTestRun]]:
        """Those whose results come out again under test: the others depend on something else."""
        names = tuple(test.test for test in tests)
        first = {name: min(one for one in chosen if one.partition("[")[0] == name) for name in names}
        only = sorted(first.values()) or sorted(chosen)[:1]
        given = tuple(call.call for call in calls)
        run = await self.study.runner.run(
            PytestRequest("proposed", self.view.without, only=only, replayed=given, alone=names)
        )
        again = {int(record["number"]): record for record in run.session.evidence.replayed}
        ends = run.session.evidence.alone
        return (
            [call for n, call in enumerate(calls) if _came_again(call, again.get(n, {}))],
            [test for test in tests if held(ends.get(test.test, ()))],
        )


def _missing_the_change(tests: Collection[str], anyway: Collection[str]) -> Finding:
    """New tests that pass with every changed function raising, or giving something else."""
    first = min(anyway or tests)
    what = f"{first}: it is new, and neither it nor any other test notices when the changed functions are gone"
    if anyway:
        what = f"{first}: it is new, and passes as well where the changed functions give something else"
    return Finding("new-tests-miss-the-change", what, first.partition("::")[0], blocks=False, parks=True)


def _came_again(call: Replayed, again: dict[str, Json]) -> bool:
    """Whether a call that was made again under test gave what was recorded, each time."""
    results = again.get("results") or ()
    return len(results) == 2 and all(call.is_recorded(result) for result in results)


def _unproven(added: AddedTests) -> str:
    if not added.passed:
        return "no test shows this fix: the change brings no new test that passes"
    return f"no test shows this fix: {len(added.passed)} new tests pass on the base too, or pass whatever happens"


def _started_by_python(changed: Iterable[str]) -> tuple[Finding, ...]:
    """Files that Python itself would start before anything of ours."""
    return tuple(
        Finding("loads-itself", f"Python starts {path} by itself, before any test", path)
        for path in changed
        if any(part.partition(".")[0] in _STARTERS for part in path.split("/"))
    )
