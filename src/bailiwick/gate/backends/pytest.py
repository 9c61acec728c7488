"""The check that is a run of pytest: exit code 0 alone is not green.

Every test of the base has to be there and to be told honestly, without the agent's new tests beside it. Tests that
touch changed code are run again with their comparisons asked for near values, and with the changed functions raising.
New tests are run apart, and on the base to prove the change. Recorded calls are made again in a plain process.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Collection, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from bailiwick.fence.toolchains import install_hint
from bailiwick.gate.backends.pytest_change import ChangeView, absent_files, view_change, watched_files
from bailiwick.gate.backends.pytest_command import read_call
from bailiwick.gate.backends.pytest_run import Asked, Ran, Runner
from bailiwick.gate.ids import (
    BROKEN,
    bounded,
    compare,
    missing_ids,
    paths_of,
    proven_by,
    run_faults,
    tampering,
)
from bailiwick.gate.judging import (
    Replayed,
    WatchedRun,
    actions,
    broken_syntax,
    foreign_copies,
    generality,
    only_under_test,
    replaced_tests,
    watched_findings,
)
from bailiwick.gate.model import CheckResult, Finding, Outcome
from bailiwick.gate.outcomes import RED, Session, TestOutcome, read_session
from bailiwick.gate.shown import last_lines
from bailiwick.ids import Json, digest
from bailiwick.runtime.kinds import Exit

if TYPE_CHECKING:
    from bailiwick.gate.port import Bench
    from bailiwick.gate.spec import CheckSpec

OUTPUT = 64 * 1024
LIMIT = 10.0
"""Seconds that a test which must fail may take at least."""
TRIES = 4
MOST_CALLS = 120
_STARTERS = ("sitecustomize", "usercustomize")
_A = TypeVar("_A")
_B = TypeVar("_B")
UNEXERCISED = "no test exercises this change"


class PytestCheck:
    """Runs pytest on both trees and compares all that can be known about the runs."""

    async def run(self, spec: CheckSpec, bench: Bench) -> CheckResult:
        study = self._study(spec, bench)
        if study is None:
            hint = "run: [pytest, …] or [python, -m, pytest, …]; for another runner use kind: command"
            found = Finding("not-pytest", f"the command of the check '{spec.name}' does not start pytest")
            return _result(spec, "environment", findings=(found,), hint=hint)
        return await study.result()

    async def base(self, spec: CheckSpec, bench: Bench) -> Session:
        """How the base does, from what is kept or run once; empty where it can't be run."""
        study = self._study(spec, bench)
        return Session() if study is None else (await study.base()).session

    def _study(self, spec: CheckSpec, bench: Bench) -> _Study | None:
        call = read_call(spec.run)
        return None if call is None else _Study(spec, bench, Runner(call, bench, spec.timeout))


@dataclass(frozen=True, slots=True)
class _Added:
    """What the new tests show."""

    findings: tuple[Finding, ...] = ()
    passed: frozenset[str] = frozenset()
    proof: tuple[str, ...] = ()
    red: tuple[str, ...] = ()
    ran: Ran | None = None
    watched: WatchedRun | None = None


class _Study:
    """One check: the runs it needs, and what they show together."""

    def __init__(self, spec: CheckSpec, bench: Bench, runner: Runner) -> None:
        self.spec = spec
        self.bench = bench
        self.runner = runner
        self._token = f"_t{secrets.token_hex(6)}"
        self._known: dict[str, Json] = {} if bench.base_results is None else bench.base_results

    async def result(self) -> CheckResult:
        """Run what is needed; a change that is red already is not looked at any closer."""
        changed = [change.path for change in self.bench.changes]
        started = _started_by_python(path for path in changed if path not in self.bench.allowed)
        if started:
            return _result(self.spec, "failed", findings=started)
        base = await self.base()
        if base.missing:
            return self._not_there(base)
        if not changed:
            return self._unchanged(base)
        view = await view_change(self.bench, _test_files(base.session))
        ran, absent = await _both(self.runner.run(Asked("proposed", view.without)), self._absent(view, base.session))
        if ran.missing:
            return self._not_there(ran)
        return await _Judgement(self, view, base.session, ran, absent).result()

    def _not_there(self, ran: Ran) -> CheckResult:
        found = Finding("missing-tool", f"{ran.missing} is not in the sandbox or has no pytest", blocks=True)
        return _result(self.spec, "failed", ran, findings=(found,), hint=install_hint("pytest"))

    def _unchanged(self, base: Ran) -> CheckResult:
        """The base itself: there is nothing to compare it with."""
        here = base.session
        if "no-records" in {fault.code for fault in here.faults}:
            hint = "pytest can't even be started: look at its output"
            return _result(self.spec, "environment", base, hint=hint)
        faults = [replace(finding, blocks=False) for finding in run_faults(here, here)]
        return self.told(base, _outcome(here, frozenset(here.red), faults), faults)

    def told(self, ran: Ran, outcome: Outcome, findings: Iterable[Finding]) -> CheckResult:
        """The result; a check that was cancelled says nothing."""
        if self.bench.cancel.is_set():
            return _result(self.spec, "environment", ran, hint="the check was ended before it was done")
        return _result(self.spec, outcome, ran, findings=bounded(findings))

    async def base(self) -> Ran:
        """How the base does; known from before, or run once. A test that never ends there counts as failed."""
        kept = self._kept()
        if "session" in kept:
            return Ran(read_session(kept["session"]), _ended(kept))
        ran = await self.runner.run(Asked("base"))
        if ran.missing or ran.end.cancelled:
            return ran
        ran = replace(ran, session=await self._without_endless(ran.session))
        if "no-records" not in {fault.code for fault in ran.session.faults}:
            kept.update(session=ran.session.to_json(), seconds=round(ran.end.seconds, 3), code=ran.end.code)
        return ran

    async def _without_endless(self, session: Session) -> Session:
        """A whole run of the base although one of its tests hangs or ends the process: the others once more."""
        endless: list[str] = []
        found = session
        for _ in range(TRIES):
            if not any(fault.code in ("cut-short", "timeout") for fault in found.faults) or not found.items:
                break
            stopped = next((item.id for item in found.items if item.id not in found.outcomes), None)
            if stopped is None or self.bench.cancel.is_set():
                break
            endless.append(stopped)
            self.bench.show(f"{self.spec.name}: {stopped} never ends on the base; the others once more without it")
            found = (await self.runner.run(Asked("base", left_out=endless))).session
        if not endless:
            return session
        never: dict[str, TestOutcome] = dict.fromkeys(endless, "failed")
        outcomes = {**found.outcomes, **never}
        texts = {**found.texts, **dict.fromkeys(endless, "it never ends on the base")}
        return replace(found, outcomes=outcomes, items=session.items, texts=texts, exit=1)

    def _kept(self) -> dict[str, Json]:
        """What is known of the base from before, for exactly this command."""
        known = self._known
        entry = known.get(self.spec.name)
        if not isinstance(entry, dict) or entry.get("run") != list(self.spec.run):
            entry = known[self.spec.name] = {"run": list(self.spec.run)}
        return entry

    def must_fail(self, asked: Asked, base: Session) -> Asked:
        """A run of tests that must fail. One of them may wait for ever for what no longer comes: it is ended."""
        seconds = float(self._kept().get("seconds", 0.0))
        return replace(asked, token=self._token, limit=LIMIT + 3 * base.slowest, timeout=LIMIT * 30 + 6 * seconds)

    async def _absent(self, view: ChangeView, base: Session) -> Session | None:
        """The tests of the base with every changed function raising; None where no function changed."""
        if not view.touched:
            return None
        files = {**view.without, **await absent_files(self.bench, view, self._token)}
        asked = self.must_fail(Asked("proposed", files, mode="absent"), base)
        return (await self.runner.run(asked)).session

    async def second_look(self, base: Session, here: Session) -> tuple[frozenset[str], frozenset[str]]:
        """Ids that are red on the base too, and ids that the base itself does not have each time.

        A test that is red here and was green on the base gets a second run there: one that wavers is no proof.
        """
        red = frozenset(base.red)
        suspects = [test for test in here.red if test in base.passed]
        missing = missing_ids(base, here)
        if suspects:
            self.bench.show(f"{self.spec.name}: {len(suspects)} tests are red; once more on the base")
            again = await self.runner.run(Asked("base", only=suspects))
            red |= frozenset(again.session.red)
        unstable: frozenset[str] = frozenset()
        if missing:
            again = await self.runner.run(Asked("base", collect_only=True))
            if again.session.items:
                unstable = missing - {item.id for item in again.session.items}
        return red, unstable

    async def watch(self, view: ChangeView, base: Session, tests: Collection[str], here: Session) -> WatchedRun:
        """Tests of the base on the change, with their comparisons asked again."""
        given = dict(view.without)
        made = await watched_files(self.bench, "proposed", tests, here.items, self._token, given)
        files = {**given, **made.files}
        asked = Asked("proposed", files, only=tests, mode="watched", calls=_recorded(view))
        ran = await self.runner.run(self.must_fail(asked, base))
        return WatchedRun(ran.session, made.sites, made.sure)

    async def watch_base(self, base: Session, tests: Collection[str]) -> WatchedRun:
        """The same on the base."""
        made = await watched_files(self.bench, "base", tests, base.items, self._token, {})
        asked = Asked("base", made.files, only=tests, mode="watched")
        ran = await self.runner.run(self.must_fail(asked, base))
        return WatchedRun(ran.session, made.sites, made.sure)

    async def added(self, view: ChangeView, base: Session) -> _Added:
        """The new tests: on the change, watched, and on the base."""
        within = view.with_tests
        if not within:
            return _Added()
        known = tuple(base.outcomes)
        here, there = await _both(
            self.runner.run(Asked("proposed", within=within, left_out=known)),
            self.runner.run(Asked("base", dict(view.tests), within=within, left_out=known)),
        )
        new = here.session.passed
        files = paths_of(here.session.items)
        if not new:
            return _Added(red=here.session.red, ran=here, findings=tuple(_new_faults(here.session)))
        made = await watched_files(self.bench, "proposed", new, here.session.items, self._token, {})
        asked = Asked("proposed", made.files, only=new, mode="watched", calls=_recorded(view))
        ran = await self.runner.run(self.must_fail(asked, base))
        watched = WatchedRun(ran.session, made.sites, made.sure)
        doubtful = watched.doubtful(new)
        proof = proven_by({test: files[test] for test in new if test in files}, there.session) - doubtful
        findings = [replace(f, parks=f.blocks, blocks=False) for f in watched_findings(watched, new)]
        return _Added(
            findings=(*_new_faults(here.session), *findings),
            passed=new,
            proof=tuple(sorted(proof)),
            red=here.session.red,
            ran=here,
            watched=watched,
        )

    async def notice_new(self, view: ChangeView, base: Session, tests: Collection[str]) -> tuple[str, ...]:
        """Which of the new tests notice that the changed functions raise."""
        files = await absent_files(self.bench, view, self._token)
        asked = Asked("proposed", files, only=tests, mode="absent")
        ran = await self.runner.run(self.must_fail(asked, base))
        return tuple(sorted(test for test in tests if ran.session.outcomes.get(test) in RED))

    async def replay(self, view: ChangeView, runs: Iterable[WatchedRun | None]) -> list[Replayed]:
        """Recorded calls made again in a plain process, here and, as far as they exist there, on the base."""
        sessions = [run.session for run in runs if run is not None and run.session.evidence.calls]
        calls = [call for session in sessions for call in session.evidence.calls][:MOST_CALLS]
        if not calls:
            return []
        path = sessions[0].evidence.path
        here, there = await _both(
            self.runner.replay("proposed", view.without, calls, path), self.runner.replay("base", {}, calls, path)
        )
        found = {int(record["number"]): record for record in here}
        base = {int(record["number"]): record for record in there}
        return [Replayed(call, found[number], base.get(number)) for number, call in enumerate(calls) if number in found]


def _test_files(base: Session) -> frozenset[str]:
    """The files that hold test functions of the base, wherever they are."""
    return frozenset(item.path for item in base.items if item.code_path == item.path)


def _recorded(view: ChangeView) -> tuple[tuple[str, int, str], ...]:
    return tuple((t.path, t.function.line, t.function.qualname) for t in view.touched if t.decides)


@dataclass(slots=True)
class _Judgement:
    """What follows from the first runs, and the further runs that it takes to know."""

    study: _Study
    view: ChangeView
    base: Session
    ran: Ran
    absent: Session | None

    async def result(self) -> CheckResult:
        """The result of the check."""
        base, here, bench = self.base, self.ran.session, self.study.bench
        if all("no-records" in {fault.code for fault in session.faults} for session in (here, base)):
            hint = "pytest can't even be started, on the base neither: this is not about the change"
            return _result(self.study.spec, "environment", self.ran, hint=hint)
        copies = foreign_copies(here)
        if copies:
            hint = "install the project editable in `prepare` (-e .), so that what runs is the tree"
            return _result(self.study.spec, "environment", self.ran, findings=tuple(copies), hint=hint)
        findings = [
            *broken_syntax(here),
            *run_faults(base, here),
            *self._tampering(),
            *replaced_tests(base, here, bench.allowed),
            *actions(base, here, self.view.product),
        ]
        excused, unstable = await self.study.second_look(base, here)
        findings += compare(base, here, allowed=bench.allowed, unstable=unstable)
        outcome = _outcome(here, excused, findings)
        if outcome == "failed" or bench.cancel.is_set():
            return self.study.told(self.ran, outcome, findings)
        return await self._closer(excused, findings)

    def _tampering(self) -> list[Finding]:
        found = tampering(self.base, self.ran.session, allowed=self.study.bench.allowed)
        unfinished = any(fault.code in BROKEN for fault in self.base.faults)
        return [replace(f, blocks=False, parks=f.blocks) for f in found] if unfinished else found

    async def _closer(self, excused: frozenset[str], findings: list[Finding]) -> CheckResult:
        study, view, base, here = self.study, self.view, self.base, self.ran.session
        healed = frozenset(test for test in base.red if test in here.passed)
        chosen = (self._touching() | healed) & here.passed
        watched, added = await _both(self._watched(chosen), study.added(view, base))
        findings += await self._watched_findings(watched, chosen)
        findings += added.findings
        calls = await study.replay(view, (watched, added.watched))
        findings += await self._replay_findings(calls, chosen)
        doubtful = _doubted(watched, chosen)
        noticing = self._noticing()
        if not noticing and added.passed and view.touched:
            noticing = await study.notice_new(view, base, added.passed)
        outcome = _outcome(here, excused, findings)
        ran = self.ran
        if added.red and added.ran is not None:
            outcome, ran = "failed", added.ran
        told = study.told(ran, outcome, findings)
        proof, cured = added.proof, tuple(sorted(healed - doubtful))
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
        study.bench.show(f"{study.spec.name}: {len(chosen)} tests again, each comparison with a near value too")
        return await study.watch(self.view, self.base, chosen, self.ran.session)

    async def _watched_findings(self, watched: WatchedRun | None, chosen: frozenset[str]) -> list[Finding]:
        """What the watched run shows; what the base does too is not about the change."""
        if watched is None:
            return []
        found = watched_findings(watched, chosen)
        differing = watched.differing(chosen)
        suspects = {*watched.doubtful(chosen), *differing}
        known = suspects & self.base.passed
        excused: set[str] = set()
        if known:
            there = await self.study.watch_base(self.base, known)
            excused = known & {*there.doubtful(known), *there.differing(known)}
            found = watched_findings(watched, chosen, excused)
        if differing:
            again = await self.study.watch(self.view, self.base, frozenset(differing), self.ran.session)
            for test in again.differing(differing):
                what = f"{test}: it passes, but not when its comparisons are watched"
                path = test.partition("::")[0]
                found.append(Finding("differs-when-watched", what, path, blocks=test not in excused))
        return found

    async def _replay_findings(self, calls: list[Replayed], chosen: frozenset[str]) -> list[Finding]:
        paths = self._paths(calls)
        found = only_under_test(calls, paths)
        if found and chosen:
            found = [finding for finding in found if await self._is_so_under_test(finding, calls, chosen)]
        return [*found, *generality(calls, paths)]

    def _paths(self, calls: Iterable[Replayed]) -> dict[str, str]:
        """The file of each recorded function."""
        by_name = {touched.function.qualname: touched.path for touched in self.view.touched}
        return {call.name: by_name.get(str(call.call["name"]), "") for call in calls}

    async def _is_so_under_test(self, finding: Finding, calls: list[Replayed], chosen: frozenset[str]) -> bool:
        """Whether the recorded result comes out again under test: else the call depends on something else."""
        asked = [call for call in calls if call.differs and self._paths([call])[call.name] == finding.path]
        given = tuple(call.call for call in asked)
        run = await self.study.runner.run(Asked("proposed", self.view.without, only=sorted(chosen)[:1], replayed=given))
        again = {int(record["number"]): record for record in run.session.evidence.replayed}
        return any(not Replayed(call.call, again[n]).differs for n, call in enumerate(asked) if n in again)


def _ended(kept: dict[str, Json]) -> Exit:
    """How the process of a kept run ended."""
    return Exit(int(kept.get("code") or 0), b"", b"", float(kept.get("seconds", 0.0)))


def _doubted(watched: WatchedRun | None, chosen: Collection[str]) -> set[str]:
    return set() if watched is None else watched.doubtful(chosen)


def _new_faults(session: Session) -> Iterable[Finding]:
    """What went wrong with the run of new tests."""
    for fault in session.faults:
        yield Finding(f"new-tests-{fault.code}", f"in the run of the new tests: {fault.what}")


def _unproven(added: _Added) -> str:
    if not added.passed:
        return "no test shows this fix: the change brings no new test that passes"
    return f"no test shows this fix: {len(added.passed)} new tests pass on the base too, or pass whatever happens"


def _outcome(here: Session, excused: Collection[str], findings: Iterable[Finding]) -> Outcome:
    listed = tuple(findings)
    if any(finding.blocks for finding in listed) or any(test not in excused for test in here.red):
        return "failed"
    same = any(finding.code in ("exit-code", *(fault.code for fault in here.faults)) for finding in listed)
    return "red_on_base" if here.red or same else "passed"


def _started_by_python(changed: Iterable[str]) -> tuple[Finding, ...]:
    """Files that Python itself would start before anything of ours."""
    return tuple(
        Finding("loads-itself", f"Python starts {path} by itself, before any test", path)
        for path in changed
        if any(part.partition(".")[0] in _STARTERS for part in path.split("/"))
    )


def _result(
    spec: CheckSpec, outcome: Outcome, ran: Ran | None = None, *, findings: tuple[Finding, ...] = (), hint: str = ""
) -> CheckResult:
    if ran is None:
        return CheckResult(spec.name, spec.kind, "tests", outcome, spec.run, findings=findings, hint=hint)
    raw = ran.end.stdout + ran.end.stderr
    return CheckResult(
        name=spec.name,
        kind=spec.kind,
        level="tests",
        outcome=outcome,
        command=spec.run,
        code=ran.end.code,
        seconds=ran.end.seconds,
        counts=ran.session.counts(),
        findings=findings,
        output="\n".join(last_lines(raw, OUTPUT)),
        output_digest=digest(ran.end.stdout + b"\0" + ran.end.stderr),
        failing=ran.session.red,
        hint=hint,
    )


async def _both(first: Awaitable[_A], second: Awaitable[_B]) -> tuple[_A, _B]:
    """Both at the same time, each to its end, so that nothing runs on in a tree that is being removed."""
    one, two = await asyncio.gather(first, second, return_exceptions=True)
    if isinstance(one, BaseException):
        raise one
    if isinstance(two, BaseException):
        raise two
    return one, two
