"""The check that is a run of pytest: exit code 0 alone is not green.

The base and the proposed tree are run the same way. Every test of the base has to be there and to be told honestly;
with its expectation exchanged it has to fail (`inversion`); new tests have to fail on the base to prove the change.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeVar

from bailiwick.fence.toolchains import install_hint
from bailiwick.gate.backends.pytest_command import read_call
from bailiwick.gate.backends.pytest_run import Asked, Ran, Runner
from bailiwick.gate.ids import (
    bounded,
    compare,
    judge_inverted,
    missing_ids,
    paths_of,
    proven_by,
    run_faults,
    tampering,
    targets_of,
)
from bailiwick.gate.inversion import invert
from bailiwick.gate.model import CheckResult, Finding, Outcome
from bailiwick.gate.outcomes import RED, Item, Session, read_session
from bailiwick.gate.shown import last_lines
from bailiwick.gate.testfiles import is_test_file
from bailiwick.ids import Json, digest

if TYPE_CHECKING:
    from bailiwick.gate.port import Bench, Which
    from bailiwick.gate.spec import CheckSpec

OUTPUT = 64 * 1024
LIMIT = 10.0
"""Seconds that a test which must fail may take at least."""
TRIES = 4
NAMED = 10
_STARTERS = ("sitecustomize", "usercustomize")
_TEST_FOLDERS = {"tests", "test", "testing"}
_A = TypeVar("_A")
_B = TypeVar("_B")


class PytestCheck:
    """Runs pytest on both trees and compares all that can be known about the two runs."""

    async def run(self, spec: CheckSpec, bench: Bench) -> CheckResult:
        call = read_call(spec.run)
        if call is None:
            hint = "run: [pytest, …] or [python, -m, pytest, …]; for another runner use kind: command"
            found = Finding("not-pytest", f"the command of the check '{spec.name}' does not start pytest")
            return _result(spec, "environment", findings=(found,), hint=hint)
        return await _Study(spec, bench, Runner(call, bench, spec.timeout)).result()


@dataclass(frozen=True, slots=True)
class _Turned:
    """Files with tests that must fail, and the ids of those tests."""

    files: dict[str, bytes | None] = field(default_factory=dict)
    ids: frozenset[str] = frozenset()


class _Study:
    """One check: the runs it needs, and what they show together."""

    def __init__(self, spec: CheckSpec, bench: Bench, runner: Runner) -> None:
        self._spec = spec
        self._bench = bench
        self._runner = runner
        self._token = f"t{secrets.token_hex(6)}"
        self._known: dict[str, Json] = {} if bench.base_results is None else bench.base_results
        self._changed = {change.path: change.status for change in bench.changes}

    async def result(self) -> CheckResult:
        """Run what is needed; a change that is red already is not inverted."""
        started = _started_by_python(path for path in self._changed if path not in self._bench.allowed)
        if started:
            return _result(self._spec, "failed", findings=started)
        ran, base = await _both(self._runner.run(Asked("proposed")), self._base())
        if ran.missing:
            found = Finding("missing-tool", f"{ran.missing} is not in the sandbox or has no pytest", blocks=True)
            return _result(self._spec, "failed", ran, findings=(found,), hint=install_hint("pytest"))
        here = ran.session
        if all("no-records" in {fault.code for fault in session.faults} for session in (here, base)):
            hint = "pytest can't even be started, on the base neither: this is not about the change"
            return _result(self._spec, "environment", ran, hint=hint)
        findings = [*run_faults(base, here), *tampering(base, here, allowed=self._bench.allowed)]
        excused, unstable = await self._second_look(base, here)
        findings += compare(base, here, allowed=self._bench.allowed, unstable=unstable)
        outcome = _outcome(here, excused, findings)
        if outcome == "failed" or self._bench.cancel.is_set():
            return self._told(ran, outcome, findings)
        shown, proven, liars = await self._inverted(base, here)
        proof, unproven, more = await self._proof(base, here, liars)
        findings += [*shown, *more]
        counts = (*here.counts(), ("expected", len(base.outcomes)), ("inverted", proven))
        told = self._told(ran, _outcome(here, excused, findings), findings)
        return replace(told, proof=proof, unproven=unproven, counts=counts)

    def _told(self, ran: Ran, outcome: Outcome, findings: Iterable[Finding]) -> CheckResult:
        if self._bench.cancel.is_set():
            return _result(self._spec, "environment", ran, hint="the check was ended before it was done")
        return _result(self._spec, outcome, ran, findings=bounded(findings))

    async def _base(self) -> Session:
        """How the base does; known from before, or run once."""
        kept = self._kept()
        if "session" in kept:
            return read_session(kept["session"])
        ran = await self._runner.run(Asked("base"))
        if not ran.missing and not ran.end.cancelled and not ran.session.faults:
            kept.update(session=ran.session.to_json(), seconds=round(ran.end.seconds, 3))
        return ran.session

    def _kept(self) -> dict[str, Json]:
        """What is known of the base from before, for exactly this command."""
        known = self._known
        entry = known.get(self._spec.name)
        if not isinstance(entry, dict) or entry.get("run") != list(self._spec.run):
            entry = known[self._spec.name] = {"run": list(self._spec.run)}
        return entry

    async def _second_look(self, base: Session, here: Session) -> tuple[frozenset[str], frozenset[str]]:
        """Ids that are red on the base too, and ids that the base itself does not have each time.

        A test that is red here and was green on the base gets a second run there: one that wavers is no proof.
        """
        red = frozenset(base.red)
        suspects = [test for test in here.red if test in base.passed]
        missing = missing_ids(base, here)
        if suspects:
            self._bench.show(f"{self._spec.name}: {len(suspects)} tests are red; once more on the base")
            again = await self._runner.run(Asked("base", only=suspects))
            red |= frozenset(again.session.red)
        unstable: frozenset[str] = frozenset()
        if missing:
            again = await self._runner.run(Asked("base", collect_only=True))
            if again.session.items:
                unstable = missing - {item.id for item in again.session.items}
        return red, unstable

    async def _turn(self, which: Which, items: Iterable[Item], wanted: Collection[str]) -> _Turned:
        """The files of a tree that hold these tests, inverted."""
        foreign = self._changed if which == "base" else ()
        files: dict[str, bytes | None] = {}
        ids: set[str] = set()
        for path, targets in targets_of(items, wanted, foreign).items():
            source = await self._bench.read(which, path)
            turned = invert(source, targets, self._token) if source is not None else None
            if turned is not None and turned.done:
                files[path] = turned.source
                ids.update(test for target in turned.done for test in targets[target])
        return _Turned(files, frozenset(ids))

    async def _inverted(self, base: Session, here: Session) -> tuple[list[Finding], int, frozenset[str]]:
        """Findings of the inverted run, how many tests it proves, and new tests that pass although they must fail."""
        old = await self._turn("base", base.items, base.passed)
        new = await self._turn("proposed", here.items, here.passed - base.outcomes.keys())
        provable = (await self._provable(base, old)) & here.passed & old.ids
        unprovable = self._unprovable((base.passed & here.passed) - provable)
        if not provable and not new.ids:
            return unprovable, 0, frozenset()
        self._bench.show(
            f"{self._spec.name}: {len(provable | new.ids)} tests once more with their expectation exchanged"
        )
        asked = self._must_fail("proposed", {**new.files, **old.files}, provable | new.ids, base)
        turned = (await self._runner.run(asked)).session
        liars = frozenset(test for test in new.ids if turned.outcomes.get(test) not in RED)
        shown = sum(turned.outcomes.get(test) in RED for test in provable)
        return [*judge_inverted(provable, turned, self._kept().get("inverted_faults", ())), *unprovable], shown, liars

    def _must_fail(self, which: Which, files: dict[str, bytes | None], only: Collection[str], base: Session) -> Asked:
        """A run of tests that must fail. One of them may wait for ever for what no longer comes: it is ended."""
        seconds = float(self._kept().get("seconds", 0.0))
        return Asked(which, files, only, limit=LIMIT + 3 * base.slowest, timeout=LIMIT * 30 + 6 * seconds)

    async def _provable(self, base: Session, turned: _Turned) -> frozenset[str]:
        """The tests that fail on the base when they must; known from before, or tried once.

        A test at which the run breaks off, for it ends the process or can't be ended, is left out and the others go on.
        """
        kept = self._kept()
        if "provable" in kept:
            return frozenset(kept["provable"])
        failed: set[str] = set()
        left = set(turned.ids)
        for _ in range(TRIES):
            if not left:
                break
            there = (await self._runner.run(self._must_fail("base", turned.files, left, base))).session
            kept["inverted_faults"] = sorted({fault.code for fault in there.faults})
            failed.update(test for test, outcome in there.outcomes.items() if outcome == "failed")
            stopped = next((item.id for item in there.items if item.id not in there.outcomes), None)
            if stopped is None or not there.faults:
                break
            left -= {stopped, *there.outcomes}
        kept["provable"] = sorted(failed)
        return frozenset(failed)

    def _unprovable(self, ids: Collection[str]) -> list[Finding]:
        if not ids:
            return []
        named = ", ".join(sorted(ids)[:NAMED]) + (", …" if len(ids) > NAMED else "")
        what = f"{len(ids)} tests can't be shown to fail when they must, on the base neither: {named}"
        return [Finding("unprovable", what, blocks=False)]

    async def _proof(
        self, base: Session, here: Session, liars: Collection[str]
    ) -> tuple[tuple[str, ...], str, list[Finding]]:
        """The tests that fail on the base and pass here; else why there are none; and what changed tests hide."""
        healed = [test for test in base.red if test in here.passed]
        files = paths_of(here.items)
        new = {test: files[test] for test in sorted(here.passed - base.outcomes.keys()) if test in files}
        there, hidden = await _both(self._new_on_base(new), self._as_the_base_has_them(base, here))
        shown = proven_by(new, there).difference(liars)
        proof = (*healed, *sorted(shown))
        if proof or not self._bench.changes:
            return proof, "", hidden
        if not new:
            return (), "no test shows this fix: the change brings no new test that passes", hidden
        return (
            (),
            f"no test shows this fix: {len(new)} new tests pass on the base too, or pass whatever happens",
            hidden,
        )

    async def _new_on_base(self, new: Mapping[str, str]) -> Session:
        """The new tests on the base, with the files that belong to them."""
        if not new:
            return Session()
        wanted = {path for path, status in self._changed.items() if status != "D" and _belongs_to_tests(path)}
        wanted.update(path for path in new.values() if path in self._changed)
        files = {path: await self._bench.read("proposed", path) for path in sorted(wanted)}
        return (await self._runner.run(Asked("base", files, only=new))).session

    async def _as_the_base_has_them(self, base: Session, here: Session) -> list[Finding]:
        """Tests that the change edits without anybody's leave, in the form of the base, on the change."""
        edited = {path for path, status in self._changed.items() if status != "A"}.difference(self._bench.allowed)
        held = {item.id: item.path for item in base.items if item.path in edited and item.id in base.passed}
        if not held:
            return []
        files = {path: await self._bench.read("base", path) for path in sorted(set(held.values()))}
        ran = await self._runner.run(Asked("proposed", files, only=held))
        return [
            Finding("weakened-test", f"{test}: it does not pass in the form that the base has", path)
            for test, path in held.items()
            if test not in ran.session.passed and test in here.outcomes
        ]


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


def _belongs_to_tests(path: str) -> bool:
    return is_test_file(path) or bool(_TEST_FOLDERS.intersection(path.split("/")[:-1]))


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
