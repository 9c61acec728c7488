"""Checks that are runs of node:test, vitest, jest, mocha, `go test` or `cargo test`: exit code 0 alone is not green.

The tests of the base are run without the new files of tests, which run apart and once more on the base. Each test of
the base has to have an outcome that is no worse than there, and all that a run tells has to agree.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from bailiwick.gate.backends.ran import RanTests, both, kept_results, outcome_of, result_of
from bailiwick.gate.backends.runner_native import run_cargo, run_go
from bailiwick.gate.backends.runner_node import run_node
from bailiwick.gate.backends.runner_start import NotUnderstoodError, RunnerPlace, RunnerRequest
from bailiwick.gate.ids import bounded, compare, missing_ids, paths_of, proven_by
from bailiwick.gate.model import CheckResult, Finding, Outcome
from bailiwick.gate.outcomes import PytestSession, read_session
from bailiwick.gate.reading import read_all
from bailiwick.gate.runner_conduct import conduct
from bailiwick.gate.testfiles import is_test_file
from bailiwick.processes.command import Exit
from bailiwick.sandbox.toolchains import install_hint
from bailiwick.terminal.output import counted

if TYPE_CHECKING:
    from bailiwick.gate.port import CheckContext
    from bailiwick.gate.spec import CheckSpec

_COMMANDS = {
    "node-test": "[node, --test]",
    "vitest": "[npx, vitest, run]",
    "jest": "[npx, jest]",
    "mocha": "[npx, mocha]",
    "go-test": "[go, test, ./...]",
    "cargo-test": "[cargo, test, --offline]",
}
_TEST_FOLDER = re.compile(r"(?:.*/)?(?:tests?|spec|__tests__)/.*\.(?:[cm]?[jt]sx?|rs)")
_ABSENT = re.compile(
    r"Cannot find (?:module|package) '(?P<node>(?:@[\w.-]+/)?[A-Za-z][\w.-]*)(?:/[^']*)?'"
    r"|Failed to (?:load|resolve) (?:url|import) \"?(?P<vite>(?:@[\w.-]+/)?[A-Za-z][\w.-]*)"
    r"|(?:no required module provides|cannot find module providing|cannot find) package \"?(?P<go>[\w./-]+)"
    r"|no matching package named `(?P<cargo>[\w-]+)` found|failed to (?:get|download) `(?P<crate>[\w-]+)"
)


class RunnerCheck:
    """Runs the tests of another language on both trees and compares them id by id."""

    async def run(self, spec: CheckSpec, context: CheckContext) -> CheckResult:
        study = _Study(spec, context)
        try:
            return await study.result()
        except NotUnderstoodError:
            hint = f"run: {_COMMANDS[spec.kind]}, or a script that ends there; for anything else use kind: command"
            what = f"the command of the check '{spec.name}' does not simply start {spec.kind}"
            return result_of(spec, "environment", findings=(Finding("not-understood", what),), hint=hint, level="ids")


@dataclass(slots=True)
class _Study:
    """One check: the runs it needs, and what they show together."""

    spec: CheckSpec
    context: CheckContext
    new: tuple[str, ...] = field(init=False)
    """Files of tests that the change brings."""

    def __post_init__(self) -> None:
        self.new = tuple(c.path for c in self.context.changes if c.status == "A" and _belongs_to_tests(c.path))

    async def result(self) -> CheckResult:
        """Run what is needed."""
        found = await conduct(self.context)
        without: dict[str, bytes | None] = dict.fromkeys(self.new)
        ran, base = await both(self._run(RunnerRequest("proposed", without)), self._base())
        if ran.missing:
            finding = Finding("missing-tool", f"the program '{ran.missing}' is not in the sandbox")
            return result_of(self.spec, "failed", ran, findings=(finding,), hint=install_hint(ran.missing), level="ids")
        here = ran.session
        if absent := self._absent(ran, base):
            finding = Finding(
                "missing-package", f"{absent} is not in the environment, not even on the base", blocks=False
            )
            return result_of(
                self.spec, "environment", ran, findings=(finding,), hint=await self._prepare_hint(absent), level="ids"
            )
        if _never_began(here) and _never_began(base.session):
            hint = "the tests can't be started, not even on the base: your change is not the cause"
            return result_of(self.spec, "environment", ran, hint=hint, level="ids")
        excused, unstable = await self._second_look(base.session, here)
        findings = [*found, *_faults(base.session, here, self.spec.kind), *_patched(base.session, here)]
        findings += compare(base.session, here, allowed=self.context.allowed, unstable=unstable)
        outcome = outcome_of(here, excused, findings)
        if outcome == "failed" or self.context.cancel.is_set():
            return self._told(ran, outcome, findings)
        return await self._with_new(ran, base.session, excused, findings)

    async def _with_new(
        self, ran: RanTests, base: PytestSession, excused: Collection[str], findings: list[Finding]
    ) -> CheckResult:
        """The result with what the new tests show."""
        here = ran.session
        healed = tuple(test for test in base.red if test in here.passed)
        counts = (*here.counts(), ("expected", len(base.outcomes)))
        if not self.new:
            told = self._told(ran, outcome_of(here, excused, findings), findings)
            unproven = (
                "" if healed or not self.context.changes else "no test shows this fix: it brings no file of new tests"
            )
            return replace(told, counts=counts, healed=healed, unproven=unproven)
        brought = await read_all(lambda path: self.context.read("proposed", path), self.new)
        full, there = await both(
            self._run(RunnerRequest("proposed", only=self.new)),
            self._run(RunnerRequest("base", brought, self.new)),
        )
        fresh, files = _only_new(full.session, base), paths_of(full.session.items)
        findings += [
            replace(finding, what=f"with the new tests: {finding.what}")
            for finding in (*_faults(base, full.session, self.spec.kind), *_patched(base, full.session))
            if finding.blocks
        ]
        broken = outcome_of(fresh, (), findings) == "failed"
        outcome = "failed" if broken else outcome_of(here, excused, findings)
        proof = tuple(sorted(proven_by({test: files.get(test, "") for test in fresh.passed}, there.session)))
        unproven = (
            "" if proof or healed else f"no test shows this fix: {len(fresh.passed)} new tests pass on the base too"
        )
        told = self._told(full if broken else ran, outcome, findings)
        counts = (*counts, ("new", len(fresh.outcomes)))
        failing = tuple(dict.fromkeys((*(here.red), *fresh.red)))
        return replace(told, counts=counts, failing=failing, healed=healed, proof=proof, unproven=unproven)

    async def _run(self, asked: RunnerRequest) -> RanTests:
        place = RunnerPlace(self.spec, self.context)
        match self.spec.kind:
            case "go-test":
                return await run_go(place, asked)
            case "cargo-test":
                return await run_cargo(place, asked)
            case _:
                return await run_node(place, asked)

    async def _base(self) -> RanTests:
        """How the base does; known from before, or run once."""
        kept = kept_results(self.context, self.spec.name, [self.spec.kind, *self.spec.run])
        if "session" in kept:
            return RanTests(read_session(kept["session"]), Exit(0, b"", b"", 0.0))
        ran = await self._run(RunnerRequest("base"))
        if (
            not ran.missing
            and not ran.absent
            and not ran.end.cancelled
            and not ran.session.faults
            and not ran.session.red
        ):
            kept["session"] = ran.session.to_json()
        return ran

    async def _second_look(self, base: PytestSession, here: PytestSession) -> tuple[frozenset[str], frozenset[str]]:
        """Ids that are red on the base too, and ids that the base itself does not have each time."""
        red = frozenset(base.red)
        suspects = [test for test in here.red if test in base.passed]
        missing = missing_ids(base, here)
        if not suspects and not missing:
            return red, frozenset()
        self.context.show(
            f"{self.spec.name}: {counted(len(suspects) + len(missing), 'test')} red or missing; again on the base"
        )
        again = (await self._run(RunnerRequest("base"))).session
        if again.faults:
            return red, frozenset()
        return red | frozenset(again.red), frozenset(missing - again.outcomes.keys())

    def _absent(self, ran: RanTests, base: RanTests) -> str:
        """A package that the environment lacks, on the base too; empty where that is not what is wrong."""
        if ran.absent:
            return ran.absent
        found, there = _ABSENT.search(_words(ran)), _ABSENT.search(_words(base))
        if found is None or there is None or not set(ran.session.red) <= set(base.session.red):
            return ""
        if not ran.session.red and not ran.session.faults:
            return ""
        return next((name for name in there.groups() if name), "")

    async def _prepare_hint(self, package: str) -> str:
        files = set(await self.context.files("base"))
        if self.spec.kind == "go-test":
            return "prepare: [[go, mod, vendor]]"
        if self.spec.kind == "cargo-test":
            return "prepare: [[cargo, fetch, --locked]]" if "Cargo.lock" in files else "prepare: [[cargo, fetch]]"
        if files & {"package-lock.json", "npm-shrinkwrap.json"}:
            return "prepare: [[npm, ci]]"
        if "pnpm-lock.yaml" in files:
            return "prepare: [[pnpm, install, --frozen-lockfile]]"
        if "yarn.lock" in files:
            return "prepare: [[yarn, install, --frozen-lockfile]]"
        manifest = await self.context.read("base", "package.json") or b""
        named = f'"{package}"'.encode() in manifest
        return "prepare: [[npm, install]]" if named else f"prepare: [[npm, install, --no-save, {package}]]"

    def _told(self, ran: RanTests, outcome: Outcome, findings: Iterable[Finding]) -> CheckResult:
        if self.context.cancel.is_set():
            return result_of(self.spec, "environment", ran, hint="the check was ended before it was done", level="ids")
        return result_of(self.spec, outcome, ran, findings=bounded(findings), level="ids")


def _belongs_to_tests(path: str) -> bool:
    """Whether a new file is there for tests: one itself, or beside them, where mocha loads every file."""
    return is_test_file(path) or _TEST_FOLDER.fullmatch(path) is not None


def _words(ran: RanTests) -> str:
    return ran.text + "\n".join(ran.session.texts.values())


def _never_began(session: PytestSession) -> bool:
    return "no-records" in {fault.code for fault in session.faults} and not session.outcomes


def _only_new(full: PytestSession, base: PytestSession) -> PytestSession:
    """The new tests of a run."""
    outcomes = {test: outcome for test, outcome in full.outcomes.items() if test not in base.outcomes}
    lost = tuple(path for path in full.uncollected if path not in base.uncollected)
    return replace(full, outcomes=outcomes, uncollected=lost)


def _faults(base: PytestSession, here: PytestSession, kind: str) -> list[Finding]:
    """What doesn't fit together in a run; where the base has the same fault it is not about the change."""
    there = {fault.code for fault in base.faults}
    found = [Finding(fault.code, fault.what, blocks=fault.code not in there) for fault in here.faults]
    if here.exit != 0 and not here.red and not found:
        how = "was ended from outside" if here.exit is None else f"ends with {here.exit}"
        found.append(Finding("exit-code", f"{kind} {how}, although no test failed", blocks=base.exit in (0, None)))
    return found


def _patched(base: PytestSession, here: PytestSession) -> list[Finding]:
    """Parts of runner, assertions and language that the code under test exchanged, which it does not on the base."""
    return [
        Finding("runner-patched", f"the code under test replaces {name} while the tests run")
        for name in sorted(here.changed - base.changed)
    ]
