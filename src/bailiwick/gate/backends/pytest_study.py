"""The runs of one pytest check: the base, the change without its new tests, watched, absent, new tests, replay."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bailiwick.gate.backends.pytest_change import ChangeView, absent_files, other_files, watched_files
from bailiwick.gate.backends.pytest_run import Plainly, PytestRequest, Runner
from bailiwick.gate.backends.ran import RanTests, both, kept_results
from bailiwick.gate.diffs.proofs import computing, empty_proofs, hollow, using_results
from bailiwick.gate.evidence import ends_of
from bailiwick.gate.ids import missing_ids, paths_of, proven_by
from bailiwick.gate.judging import WatchedRun, vacuous_findings, watched_findings
from bailiwick.gate.model import Finding
from bailiwick.gate.outcomes import PytestSession, TestOutcome, read_session
from bailiwick.gate.plainly import PlainTestRun, could_be_alone, undeclared
from bailiwick.gate.port import read_many
from bailiwick.gate.replays import Replayed
from bailiwick.gate.testfiles import belongs_to_tests
from bailiwick.ids import Json
from bailiwick.processes.command import Exit
from bailiwick.terminal.output import counted

if TYPE_CHECKING:
    from bailiwick.gate.port import CheckContext
    from bailiwick.gate.spec import CheckSpec

LIMIT = 10.0
"""Seconds that a test which must fail may take at least."""
TRIES = 4
MOST_CALLS = 120
MOST_ALONE = 60
"""Tests that are run without their tool at most."""
MOST_SECONDS = 60.0
"""What all of these together may take."""
_MANIFESTS = ("pyproject.toml", "setup.cfg", "setup.py", "requirements.txt", "Pipfile", "environment.yml")


@dataclass(frozen=True, slots=True)
class AddedTests:
    """What the new tests show."""

    findings: tuple[Finding, ...] = ()
    passed: frozenset[str] = frozenset()
    proof: tuple[str, ...] = ()
    red: tuple[str, ...] = ()
    ran: RanTests | None = None
    watched: WatchedRun | None = None


class Study:
    """The runs that one check needs; what is known of the base is kept by whoever made the bench."""

    def __init__(self, spec: CheckSpec, context: CheckContext, runner: Runner) -> None:
        self.spec = spec
        self.context = context
        self.runner = runner
        self._token = f"_t{secrets.token_hex(6)}"
        self._kept = kept_results(context, spec.name, list(spec.run))

    async def base(self) -> RanTests:
        """How the base does; known from before, or run once. A test that never ends there counts as failed."""
        kept = self._kept
        if "session" in kept:
            end = Exit(int(kept.get("code") or 0), b"", b"", float(kept.get("seconds", 0.0)))
            return RanTests(read_session(kept["session"]), end)
        ran = await self.runner.run(PytestRequest("base"))
        if ran.missing or ran.end.cancelled:
            return ran
        ran = replace(ran, session=await self._without_endless(ran.session))
        if "no-records" not in {fault.code for fault in ran.session.faults}:
            kept.update(session=ran.session.to_json(), seconds=round(ran.end.seconds, 3), code=ran.end.code)
        return ran

    async def _without_endless(self, session: PytestSession) -> PytestSession:
        """A whole run of the base although one of its tests hangs or ends the process: the others once more."""
        endless: list[str] = []
        found = session
        for _ in range(TRIES):
            if not any(fault.code in ("cut-short", "timeout") for fault in found.faults) or not found.items:
                break
            stopped = next((item.id for item in found.items if item.id not in found.outcomes), None)
            if stopped is None or self.context.cancel.is_set():
                break
            endless.append(stopped)
            self.context.show(f"{self.spec.name}: {stopped} never ends on the base; re-running the others without it")
            found = (await self.runner.run(PytestRequest("base", left_out=endless))).session
        if not endless:
            return session
        never: dict[str, TestOutcome] = dict.fromkeys(endless, "failed")
        outcomes = {**found.outcomes, **never}
        texts = {**found.texts, **dict.fromkeys(endless, "it never ends on the base")}
        return replace(found, outcomes=outcomes, items=session.items, texts=texts, exit=1)

    def must_fail(self, asked: PytestRequest, base: PytestSession) -> PytestRequest:
        """A run of tests that must fail. One of them may wait for ever for what no longer comes: it is ended."""
        seconds = float(self._kept.get("seconds", 0.0))
        return replace(asked, token=self._token, limit=LIMIT + 3 * base.slowest, timeout=LIMIT * 30 + 6 * seconds)

    async def absent(self, view: ChangeView, base: PytestSession) -> PytestSession | None:
        """The tests of the base with every changed function raising; None where no function changed."""
        if not view.touched:
            return None
        files = {**view.without, **await absent_files(self.context, view, self._token)}
        asked = self.must_fail(PytestRequest("proposed", files, mode="absent"), base)
        return (await self.runner.run(asked)).session

    async def second_look(self, base: PytestSession, here: PytestSession) -> tuple[frozenset[str], frozenset[str]]:
        """Ids that are red on the base too, and ids that the base itself does not have each time.

        A test that is red here and was green on the base gets a second run there: one that wavers is no proof.
        """
        red = frozenset(base.red)
        suspects = [test for test in here.red if test in base.passed]
        missing = missing_ids(base, here)
        if suspects:
            self.context.show(f"{self.spec.name}: {counted(len(suspects), 'test')} red; running again on the base")
            again = await self.runner.run(PytestRequest("base", only=suspects))
            red |= frozenset(again.session.red)
        unstable: frozenset[str] = frozenset()
        if missing:
            again = await self.runner.run(PytestRequest("base", collect_only=True))
            if again.session.items:
                unstable = missing - {item.id for item in again.session.items}
        return red, unstable

    async def watch(
        self, view: ChangeView, base: PytestSession, tests: Collection[str], here: PytestSession
    ) -> WatchedRun:
        """Tests of the base on the change, with their comparisons asked again."""
        return await self._watch(tests, PytestRequest("proposed", view.without, calls=_recorded(view)), here, base)

    async def watch_base(
        self, base: PytestSession, tests: Collection[str], pairs: tuple[list[Json], ...] = ()
    ) -> WatchedRun:
        """The same on the base, which is also asked about pairs of objects."""
        return await self._watch(tests, PytestRequest("base", pairs=pairs), base, base)

    async def _watch(
        self, tests: Collection[str], asked: PytestRequest, known: PytestSession, base: PytestSession
    ) -> WatchedRun:
        """Tests with their comparisons asked again; `known` is a run from which they are known."""
        made = await watched_files(
            self.context, asked.which, tests=tests, items=known.items, token=self._token, given=asked.files
        )
        whole = replace(asked, files={**asked.files, **made.files}, only=tests, mode="watched")
        ran = await self.runner.run(self.must_fail(whole, base))
        return WatchedRun(ran.session, made.sites, made.reach)

    async def added(self, view: ChangeView, base: PytestSession) -> AddedTests:
        """The new tests: on the change, watched, and on the base."""
        within = view.with_tests
        if not within:
            return AddedTests()
        known = tuple(base.outcomes)
        here, there = await both(
            self.runner.run(PytestRequest("proposed", within=within, left_out=known)),
            self.runner.run(PytestRequest("base", dict(view.tests), within=within, left_out=known)),
        )
        new = here.session.passed
        files = paths_of(here.session.items)
        if not new:
            return AddedTests(red=here.session.red, ran=here, findings=tuple(_new_faults(here.session)))
        watched = await self._watch(new, PytestRequest("proposed", calls=_recorded(view)), here.session, base)
        fresh = {test: files[test] for test in new if test in files}
        always = hollow(fresh, view.tests)
        doubtful = watched.doubtful(new) | watched.never_entered(new).keys() | always.keys()
        names = {one.function.name for one in view.touched if one.decides}
        touched = computing(names, await read_many(self.context, "proposed", view.product))
        proof = proven_by(fresh, there.session) - doubtful - empty_proofs(fresh, view.tests, touched)
        findings = [replace(f, parks=f.blocks, blocks=False) for f in watched_findings(watched, new)]
        findings += vacuous_findings(watched, new, always)
        return AddedTests(
            findings=(*_new_faults(here.session), *findings),
            passed=new,
            proof=tuple(sorted(proof)),
            red=here.session.red,
            ran=here,
            watched=watched,
        )

    async def notice_new(self, view: ChangeView, base: PytestSession, tests: Collection[str]) -> tuple[str, ...]:
        """Which of the new tests notice that the changed functions raise, if only by not being importable then."""
        files = await absent_files(self.context, view, self._token)
        asked = PytestRequest("proposed", files, only=tests, mode="absent")
        ran = await self.runner.run(self.must_fail(asked, base))
        return tuple(sorted(test for test in tests if ran.session.outcomes.get(test) != "passed"))

    async def hold_anyway(self, view: ChangeView, base: PytestSession, tests: Collection[str]) -> frozenset[str]:
        """Which of the new tests pass as well where changed functions, whose results they use, give something else."""
        names = {touched.function.name for touched in view.touched if touched.decides}
        asked = using_results({test: test.partition("::")[0] for test in tests}, view.tests, names)
        files = await other_files(self.context, view) if asked else {}
        if not files:
            return frozenset()
        ran = await self.runner.run(self.must_fail(PytestRequest("proposed", files, only=asked), base))
        return frozenset(test for test in asked if ran.session.outcomes.get(test) == "passed")

    async def replay(
        self, view: ChangeView, runs: Iterable[WatchedRun | None], passed: Collection[str], base: PytestSession
    ) -> tuple[list[Replayed], list[PlainTestRun]]:
        """Recorded calls and bare tests of those that passed, in plain processes, here and on the base."""
        sessions = [run.session for run in runs if run is not None]
        changed = {touched.function.qualname for touched in view.touched if touched.decides}
        found = [call for session in sessions for call in session.evidence.calls]
        calls = sorted(found, key=lambda call: call["name"] not in changed)[:MOST_CALLS]
        tests = could_be_alone(sessions[0].evidence.bare, passed)[:MOST_ALONE] if sessions else []
        if not calls and not tests:
            return [], []
        seconds = min(LIMIT + 5 * float(self._kept.get("seconds", 0.0)), MOST_SECONDS)
        asked = Plainly(
            calls,
            tests=tests,
            path=sessions[0].evidence.path,
            hidden=await self._beside(view),
            blocked=await self._only_for_tests(),
            seconds=seconds,
        )
        known = could_be_alone(sessions[0].evidence.bare, base.passed)
        on_base = replace(asked, tests=[test for test in tests if test in known])
        here, there = await both(
            self.runner.replay("proposed", view.without, asked), self.runner.replay("base", {}, on_base)
        )
        told = [
            {int(record["number"]): record for record in one.get(kind, ())}
            for one in (here, there)
            for kind in ("call", "without")
        ]
        made = [
            Replayed(
                call,
                here=told[0][number],
                base=told[2].get(number),
                without=told[1].get(number),
                base_without=told[3].get(number),
            )
            for number, call in enumerate(calls)
            if number in told[0]
        ]
        was = ends_of(there.get("alone", ()))
        return made, [
            PlainTestRun(test, ends, was.get(test, ())) for test, ends in ends_of(here.get("alone", ())).items()
        ]

    async def _beside(self, view: ChangeView) -> list[str]:
        """The files of the tests, of base and change."""
        listed = {*await self.context.files("proposed"), *await self.context.files("base"), *view.without}
        return sorted(path for path in listed if belongs_to_tests(path))

    async def _only_for_tests(self) -> list[str]:
        """Packages that are only there because test tools need them."""
        texts = [await self.context.read("proposed", name) for name in _MANIFESTS]
        return undeclared(text.decode("utf-8", "replace") for text in texts if text is not None)


def _recorded(view: ChangeView) -> tuple[tuple[str, int, str], ...]:
    """The functions whose calls are recorded: also unchanged ones below changed code of their module."""
    return tuple((t.path, t.function.line, t.function.qualname) for t in view.touched)


def _new_faults(session: PytestSession) -> Iterable[Finding]:
    """What went wrong with the run of new tests."""
    for fault in session.faults:
        yield Finding(f"new-tests-{fault.code}", f"in the run of the new tests: {fault.what}")
