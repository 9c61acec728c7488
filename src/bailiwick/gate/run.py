"""How a gate decides: pure, so that the same outcomes always give the same verdict."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bailiwick.gate.globs import first_match
from bailiwick.gate.model import CheckResult, Finding, Outcome, RevertedChange, Verdict
from bailiwick.gate.testfiles import belongs_to_tests, is_test_file

if TYPE_CHECKING:
    from bailiwick.gate.spec import CheckSpec

NOT_FOUND = 127
EXPECTATION = "says what tests expect"
"""The rule by which data that only tests read is protected."""
KILLED = (-9, 137)
_NUMBERS = re.compile(r"0x[0-9a-fA-F]+|\d+(?:[.,]\d+)*")
_NO_SPACE = ("no space left on device", "disk quota exceeded")
_SHELLS = ("sh", "bash", "dash", "zsh")
_INTERPRETERS = (*_SHELLS, "python", "python3", "node", "ruby", "perl", "deno", "bun")
_TOOL_FOLDERS = ("scripts/", "script/", "tools/", "ci/", ".ci/", "bin/", "dev/", "hack/")


@dataclass(frozen=True, slots=True)
class CommandResult:
    """One run of a command: how it ended and what it printed, as lines that are safe to show."""

    code: int | None
    lines: tuple[str, ...] = ()
    seconds: float = 0.0
    digest: str = ""
    timed_out: bool = False
    missing: str = ""
    """The program that is not there."""
    disk: str = ""
    """Which limit of the disk ended it."""

    @property
    def good(self) -> bool:
        """Whether it succeeded."""
        return self.code == 0 and not self.timed_out

    @property
    def is_infrastructure(self) -> bool:
        """Whether it looks like the machine's fault rather than the code's."""
        full = any(word in line.casefold() for line in self.lines for word in _NO_SPACE)
        return self.timed_out or bool(self.disk) or self.code is None or self.code in (NOT_FOUND, *KILLED) or full


def judge(here: CommandResult, there: CommandResult | None) -> tuple[Outcome, str]:
    """How a command ended on the proposed tree (`here`), given how it ended on the base; with a word on why."""
    if here.good:
        return "passed", ""
    if here.missing:
        return "failed", ""
    how = "ran out of time" if here.timed_out else f"exits with {here.code}"
    if here.disk:
        how = f"was ended ({here.disk})"
    if there is None or there.good:
        return "failed", f"the check {how} here and succeeds on the base"
    if here.is_infrastructure and there.is_infrastructure:
        return "environment", f"the check {how}, on the base too: your change is not the cause"
    if here.timed_out == there.timed_out and here.code == there.code and not new_lines(here, there):
        return "red_on_base", "the check fails on the base too, in the same way"
    return "failed", "the check fails on the base too, but not in the same way"


def new_lines(here: CommandResult, there: CommandResult) -> set[str]:
    """What only one of two runs printed; numbers don't count: lines move, and times differ."""
    return {_NUMBERS.sub("#", line) for line in here.lines} - {_NUMBERS.sub("#", line) for line in there.lines}


def is_excused(check: CheckResult, known_red: Sequence[str]) -> bool:
    """Whether a check that is red on the base may stay so: a person named it, or every test that fails in it."""
    named = set(known_red)
    return check.outcome == "red_on_base" and (
        check.name in named or bool(check.failing and named.issuperset(check.failing))
    )


def verdict_of(checks: Iterable[CheckResult], known_red: Sequence[str] = ()) -> Verdict:
    """What follows from all checks. Red is a fact about the change; without one, the environment's fault comes first.

    A check that is red on the base is red here too unless a person said that it may be: otherwise a red base would
    pass for a green gate.
    """
    listed = tuple(checks)
    outcomes = {check.outcome for check in listed if not is_excused(check, known_red)}
    if any(is_blocked(check) for check in listed) or "failed" in outcomes:
        return "red"
    if "environment" in outcomes:
        return "environment"
    return "red" if "red_on_base" in outcomes else "green"


def is_blocked(check: CheckResult) -> bool:
    """Whether a check found something that blocks, whatever its exit code."""
    return check.outcome != "environment" and any(finding.blocks for finding in check.findings)


def settled(check: CheckResult) -> CheckResult:
    """A check whose outcome agrees with its findings: passed with a finding that blocks is failed."""
    return replace(check, outcome="failed") if check.outcome == "passed" and is_blocked(check) else check


def file_of(test: str) -> str:
    """The file of a test id such as `tests/test_a.py::test_b[1]`."""
    return test.partition("::")[0]


def about_wanted_tests(checks: Iterable[CheckResult], out: Sequence[RevertedChange]) -> bool:
    """Whether a red gate fails only in tests that the agent wanted to change and could not.

    Where a check knows its failing tests, each has to be in a file whose change was taken out. Where it has only an
    exit code, everything that was taken out has to be a test, so that nobody is asked about a changed Makefile.
    """
    wanted = {part.path for part in out}
    only_tests = all(is_test_file(part.path) or is_expectation(part) for part in out)
    red = [check for check in checks if check.outcome in ("failed", "red_on_base")]
    if not red or not wanted:
        return False
    expected = any(map(is_expectation, out))
    for check in red:
        if check.failing:
            if not expected and not {file_of(test) for test in check.failing} <= wanted:
                return False
        elif check.level != "exit-code" or not only_tests or check.code == NOT_FOUND:
            return False
    return True


def is_expectation(part: RevertedChange) -> bool:
    """Whether a reverted change is one of data that tests compare with, which may be about tests of any file."""
    return not part.path.endswith(".py") and (part.rule == EXPECTATION or belongs_to_tests(part.path))


def wanted_paths(checks: Iterable[CheckResult], out: Sequence[RevertedChange]) -> tuple[str, ...]:
    """The reverted paths that red checks are about: files of failing tests with the data they compare with.

    All of them where a check knows no tests.
    """
    red = [check for check in checks if check.outcome in ("failed", "red_on_base")]
    if not all(check.failing for check in red):
        return tuple(part.path for part in out)
    files = {file_of(test) for check in red for test in check.failing}
    return tuple(part.path for part in out if part.path in files or is_expectation(part))


def requested(out: Sequence[RevertedChange], wanted: Sequence[str]) -> tuple[str, ...]:
    """Those of the taken-out paths that the agent says it needs."""
    return tuple(part.path for part in out if first_match(wanted, part.path))


def own_tools(checks: Iterable[CheckSpec], files: frozenset[str]) -> tuple[str, ...]:
    """Files of the repository that checks run as programs: who may change them need not pass the check."""
    found: dict[str, None] = {}
    for check in checks:
        for word in _programs(check.run):
            path = word.removeprefix("./")
            if path in files:
                found[path] = None
    return tuple(found)


def _programs(run: Sequence[str]) -> Iterable[str]:
    if not run:
        return
    if "/" in run[0]:
        yield run[0]
    program = run[0].rpartition("/")[2]
    script = next((word for word in run[1:] if not word.startswith("-")), "")
    if program in _SHELLS or (program in _INTERPRETERS and script.removeprefix("./").startswith(_TOOL_FOLDERS)):
        yield script


@dataclass(frozen=True, slots=True)
class Proof:
    """Which tests show the change, over all checks; else why none does. The fields are those of a report."""

    proof: tuple[str, ...] = ()
    healed: tuple[str, ...] = ()
    unproven: str = ""
    exercised: tuple[str, ...] = ()
    unexercised: str = ""


def proof_of(checks: Iterable[CheckResult], *, changed: bool) -> Proof:
    """The tests that prove the fix or exercise the change; else why there are none."""
    listed = tuple(checks)
    new = tuple(dict.fromkeys(test for check in listed for test in check.proof))
    healed = tuple(dict.fromkeys(test for check in listed for test in check.healed))
    exercised = tuple(dict.fromkeys(test for check in listed for test in check.exercised))
    unexercised = next((check.unexercised for check in listed if check.unexercised and not exercised), "")
    said = next((check.unproven for check in listed if check.unproven), "no test shows this fix")
    unproven = "" if new or healed or not changed else said
    return Proof(new, healed=healed, unproven=unproven, exercised=exercised, unexercised=unexercised)


def taken_findings(findings: Iterable[Finding], taken: Sequence[RevertedChange]) -> tuple[Finding, ...]:
    """Findings about the asked tree; what was taken out, or allowed by a person, blocks nothing."""
    words = {part.path: "allowed" if part.allowed else "reverted" for part in taken}
    return tuple(
        replace(f, blocks=False, what=f"{f.what} ({words[f.path]})") if f.path in words else f for f in findings
    )
