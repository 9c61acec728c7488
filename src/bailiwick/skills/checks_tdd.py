"""The checks of test-driven work: red for the right reason, green without touching a test, refactored under green."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass

from bailiwick.errors import UsageError
from bailiwick.gate.outcomes import RED, PytestSession
from bailiwick.gate.testfiles import is_test_file, self_loading, shadowed
from bailiwick.git.names import shown
from bailiwick.git.objects import TreeChange
from bailiwick.ids import Json
from bailiwick.routing.model import CheckOutcome, Result
from bailiwick.skills.additions import lost_names, only_adds
from bailiwick.skills.reasons import FailureReason, fails_always, nothing_ran, output_reason, pytest_reason
from bailiwick.skills.site import CheckArguments, ProjectState, refused
from bailiwick.skills.trials import CheckRun

NOT_GREEN = "BW293"
NO_TEST = "BW294"
NAMED = 3
_TEST_FOLDERS = {"tests", "test", "__tests__", "spec"}
_BY_PYTEST = frozenset({
    "_pytest.terminal.TerminalReporter.startdir", "_pytest.config.Config._getini_unknown_type",
    "_pytest.config.Config.invocation_dir", "_pytest.config.Config.inifile", "_pytest.config.Config.rootdir",
    "_pytest.main.Session.startdir", "_pytest.nodes.Node.fspath",
})  # fmt: skip
"""What pytest exchanges of its own at each start, for the sake of old plugins. None of it decides over an outcome."""
_REQUIREMENT = re.compile(r"^\s*([A-Za-z][A-Za-z0-9._-]*)")


@dataclass(frozen=True, slots=True)
class _Named:
    """A test as a caller names it: its file, and the rest of the id."""

    file: str
    rest: str

    @classmethod
    def of(cls, text: str) -> _Named:
        file, mark, rest = text.partition("::")
        return cls(file.removeprefix("./"), mark + rest)

    def has(self, test: str, path: str) -> bool:
        """Whether a test of a run is the one, or one of those, that were named."""
        if path != self.file:
            return False
        mine = "::" + test.partition("::")[2]
        return not self.rest or mine == self.rest or mine.startswith((f"{self.rest}[", f"{self.rest}::"))


async def check_red(_result: Result, site: ProjectState, asked: CheckArguments) -> CheckOutcome:
    """One test file is new or has more than before, and the tests fail because of what is not written yet."""
    test, fault = await _only_a_test(site)
    where = str(site.root / test) if test else ""
    if fault := fault or await _lost_in_file(site, test):
        return refused(fault, file_path=where)
    tried, fault = await _run(site, asked)
    if fault := fault or (_all_green(tried) if tried.good else ""):
        return refused(fault, tried.output, where)
    if tried.session is not None:
        fault, reason = _pytest_red(tried.session, test, await declared(site))
        source = await site.read("after", test) or b""
        if not fault and (line := fails_always(source, reason.at)):
            fault = f"line {reason.at} of the test fails whatever is written: {line}"
    else:
        reason = output_reason(tried.output)
        fault = (await _whose(site, asked, test, tried.output)) if reason.right else _wrong(reason)
    if fault := fault or await _lost_in_run(site, asked, tried, test):
        return refused(fault, tried.output, where)
    found: dict[str, Json] = {"reason": reason.kind, "shown_by": reason.line}
    return CheckOutcome(ok=True, output=tried.output, file_path=where, details=found)


async def _lost_in_file(site: ProjectState, test: str) -> str:
    """Why a written test file has less than it had before; "" where it is new, or where something was only added."""
    old, new = await site.read("before", test), await site.read("after", test)
    if old is None or not old.strip() or only_adds(old, new or b"", test):
        return ""
    return (
        f"{shown(test)} was there before, and not all of it is there any more: every test, fixture and setting of it "
        "has to stay as it is. Give the whole file with the new test added, or a new file beside it"
    )


async def _lost_in_run(site: ProjectState, asked: CheckArguments, after: CheckRun, test: str) -> str:
    """Which tests the new one keeps from running or passing; those of its own file wait until it can be loaded."""
    before = await site.run("before", asked.test_cmd) if after.session is not None else after
    if before.session is None or after.session is None:
        return ""
    old, new = before.session, after.session
    unloadable = [name for name in new.uncollected if name not in old.uncollected and not _is_of(name, test)]
    if unloadable:
        return f"{unloadable[0]} can't be loaded any more since {test} is there"
    lost = [name for name in sorted(old.passed) if new.outcomes.get(name) in RED]
    if not new.uncollected:
        there = frozenset(item.id for item in new.items)
        lost += [item.id for item in old.items if item.id not in there]
    return f"{len(lost)} tests that were there before are lost or fail, the first is {lost[0]}" if lost else ""


def _is_of(name: str, test: str) -> bool:
    """Whether what a runner names is this test file or lies in it."""
    return f"/{test}".endswith("/" + name.partition("::")[0])


async def _whose(site: ProjectState, asked: CheckArguments, test: str, output: str) -> str:
    """Why a failure may be another test's; "" where the new one is named, or nothing failed before it was there."""
    if test.rpartition("/")[2].partition(".")[0] in output or (await site.run("before", asked.test_cmd)).good:
        return ""
    return f"the tests failed before too, and nothing in the output tells of {test}"


async def check_green(_result: Result, site: ProjectState, asked: CheckArguments) -> CheckOutcome:
    """The tests pass, the named one among them, and nothing that decides over them was touched."""
    named = _Named.of(asked.test_path)
    where = _product_file(site)
    if fault := await touched(site):
        return refused(fault, file_path=where)
    tried, fault = await _run(site, asked)
    fault = fault or _not_green(tried) or _not_run(tried, named)
    return refused(fault, tried.output, where) if fault else CheckOutcome(ok=True, output=tried.output, file_path=where)


async def check_refactor(result: Result, site: ProjectState, asked: CheckArguments) -> CheckOutcome:
    """No test and no public name was lost, all tests are green, and the file was changed or said to need no change."""
    where = str(site.root / asked.impl_path)
    if fault := await touched(site):
        return refused(fault, file_path=where)
    changed = {change.path for change in site.changes}
    if not changed and result.files:
        return refused("the files that were given are as they were before", file_path=where)
    if changed and asked.impl_path not in changed:
        return refused(f"{asked.impl_path} is the file to improve, and it was not changed", file_path=where)
    if fault := await _names_gone(site):
        return refused(fault, file_path=where)
    before = await site.run("before", asked.test_cmd) if changed else None
    tried, fault = await _run(site, asked)
    fault = fault or _not_green(tried) or _not_run(tried, _Named.of(asked.test_path))
    fault = fault or (_lost(before, tried) if before is not None else "")
    return refused(fault, tried.output, where) if fault else CheckOutcome(ok=True, output=tried.output, file_path=where)


async def _names_gone(site: ProjectState) -> str:
    """Which public names a refactoring took away; others may use them, whether a test does or not."""
    for change in site.changes:
        old = await site.read("before", change.path) if change.status != "A" else None
        lost = lost_names(old, await site.read("after", change.path), change.path) if old is not None else []
        if lost:
            named = ", ".join(lost[:NAMED])
            return (
                f"{shown(change.path)} had {named}, which a caller may use, and has it no more: keep every public name"
            )
    return ""


async def expect_test(site: ProjectState, asked: CheckArguments) -> None:
    """Raise `UsageError` where the test that a call names is not in the project."""
    file = _Named.of(asked.test_path).file
    if file not in await site.files("before"):
        raise UsageError(
            f"test_path {shown(asked.test_path)} is not a file of the project {site.root}",
            hint="name it relative to project_root; an ignored file does not count",
            code=NO_TEST,
        )


async def expect_green(site: ProjectState, asked: CheckArguments) -> None:
    """Raise `UsageError` where the tests are not green before anything is done."""
    tried = await site.run("before", asked.test_cmd)
    fault = _unusable(tried) or _not_green(tried)
    if fault:
        raise UsageError(
            f"the tests are not green before the refactoring: {fault}",
            hint="make them pass first, or give a test_cmd that runs those that count",
            code=NOT_GREEN,
        )


async def touched(site: ProjectState) -> str:
    """What of the tests, or of what decides over them, an attempt changed; "" where nothing."""
    before = await site.files("before")
    for change in site.changes:
        path, new = change.path, change.status == "A"
        if is_test_file(path):
            return f"{shown(path)} is a test and was {_done(change)}: the tests have to stay as they are"
        if pattern := self_loading(path, new=new):
            return f"{shown(path)} was {_done(change)}: a test runner or a tool loads it by itself ({pattern})"
        if module := shadowed(path, before) if new else "":
            return f"{shown(path)} would be imported in place of the module {module}"
        if path.rpartition("/")[2] == "pyproject.toml" and await _test_settings(site, path):
            return f"{shown(path)}: the settings of pytest were changed"
        if not new and _in_tests(path) and await site.read("before", path):
            return f"{shown(path)} belongs to the tests and was {_done(change)}"
    return ""


async def _test_settings(site: ProjectState, path: str) -> bool:
    """Whether the settings of the tests differ."""
    found = []
    for text in (await site.read("before", path), await site.read("after", path)):
        try:
            found.append(tomllib.loads((text or b"").decode()).get("tool", {}).get("pytest"))
        except ValueError:
            return True
    return bool(found[0] != found[1])


async def _only_a_test(site: ProjectState) -> tuple[str, str]:
    """The one test file that was written, or why the changes are not that."""
    tests = [change for change in site.changes if is_test_file(change.path)]
    others = [change.path for change in site.changes if change not in tests and not await _is_mark(site, change)]
    if not site.changes:
        return "", "nothing was written: give one test file"
    if others:
        named = ", ".join(map(shown, others[:NAMED]))
        return "", f"only one test file may be written in this phase, but this was changed too: {named}"
    if len(tests) != 1:
        return "", f"exactly one test file has to be written, not {len(tests)}"
    if tests[0].status == "D":
        return "", f"{shown(tests[0].path)} was deleted"
    return tests[0].path, ""


async def _is_mark(site: ProjectState, change: TreeChange) -> bool:
    """Whether a file is the empty package file of a folder of tests."""
    name = change.path.rpartition("/")[2]
    if change.status != "A" or name != "__init__.py" or not _in_tests(change.path):
        return False
    return not (await site.read("after", change.path) or b"").strip()


def _in_tests(path: str) -> bool:
    return bool(_TEST_FOLDERS.intersection(path.split("/")[:-1]))


def _pytest_red(session: PytestSession, test: str, packages: Iterable[str]) -> tuple[str, FailureReason]:
    """Why the run of pytest does not prove the new test, or the reason for which it fails."""
    paths = {item.id: item.path for item in session.items}
    lost = [name for name in session.uncollected if _is_of(name, test)]
    red = [one for one, outcome in session.outcomes.items() if outcome in RED and paths.get(one) == test]
    if not lost and not red:
        others = f"; what fails is {session.red[0]}" if session.red else ""
        return f"no test of {test} fails, so it proves nothing{others}", FailureReason("none")
    known = tuple(packages)
    reasons = [pytest_reason(session.texts.get(name, ""), test, known) for name in (*lost, *red)]
    wrong = next((reason for reason in reasons if not reason.right), None)
    return (_wrong(wrong), wrong) if wrong is not None else ("", reasons[0])


def _wrong(reason: FailureReason) -> str:
    match reason.kind:
        case "broken":
            return f"the test fails because it is broken itself, not because something is missing: {reason.line}"
        case "none":
            return f"no test ran: {reason.line}"
        case _:
            return f"the test has to fail by an assertion or a missing symbol, not like this: {reason.line}"


def _unusable(tried: CheckRun) -> str:
    """Why a run says nothing about the code."""
    if tried.missing:
        return f"the tests can't be run: {tried.missing} is not there"
    if tried.timed_out:
        return "the tests ran out of time"
    if tried.code is None:
        return "the tests were ended before they were done"
    session = tried.session
    if session is None:
        return ""
    if session.faults:
        return f"the run of the tests can't be trusted: {session.faults[0].what}"
    liars = sorted(session.contradicted)
    return f"the run of the tests can't be trusted: {liars[0]} failed and is reported as passed" if liars else ""


async def _run(site: ProjectState, asked: CheckArguments) -> tuple[CheckRun, str]:
    """The tests after the attempt, and why they say nothing about the code; "" where they do."""
    tried = await site.run("after", asked.test_cmd)
    fault = _unusable(tried)
    changed = tried.session.changed - _BY_PYTEST if tried.session is not None else frozenset()
    if fault or not changed:
        return tried, fault
    before = await site.run("before", asked.test_cmd)
    odd = sorted(changed - (before.session.changed if before.session else frozenset()))
    return tried, f"the run of the tests can't be trusted: {odd[0]} was exchanged by the change" if odd else ""


def _all_green(tried: CheckRun) -> str:
    empty = nothing_ran(tried.output)
    return f"no test ran: {empty}" if empty else "the tests pass, so the new test demands nothing that is missing"


def _not_green(tried: CheckRun) -> str:
    if not tried.good:
        red = tried.session.red if tried.session is not None else ()
        named = f": {', '.join(red[:NAMED])}" if red else ""
        return f"the tests fail with exit code {tried.code}{named}"
    empty = nothing_ran(tried.output) if tried.session is None else ""
    return f"no test ran: {empty}" if empty else ""


def _not_run(tried: CheckRun, named: _Named) -> str:
    """Why the named test can't be said to have passed; of another runner than pytest the exit code has to do."""
    session = tried.session
    if session is None:
        return ""
    paths = {item.id: item.path for item in session.items}
    ended = {test: outcome for test, outcome in session.outcomes.items() if named.has(test, paths.get(test, ""))}
    if not ended:
        return f"the test {named.file}{named.rest} was not run by the test command"
    silent = [test for test, outcome in ended.items() if outcome != "passed"]
    return f"{silent[0]} was not passed but {ended[silent[0]]}" if silent else ""


def _lost(before: CheckRun, after: CheckRun) -> str:
    if before.session is None or after.session is None:
        return ""
    lost = sorted(before.session.passed - after.session.passed)
    return f"{len(lost)} tests that passed before no longer do, the first is {lost[0]}" if lost else ""


def _product_file(site: ProjectState) -> str:
    written = [change.path for change in site.changes if change.status != "D"]
    return str(site.root / written[0]) if written else ""


def _done(change: TreeChange) -> str:
    return {"A": "added", "D": "deleted"}.get(change.status, "changed")


async def declared(site: ProjectState) -> tuple[str, ...]:
    """The packages that a Python project says it needs, as far as its usual files tell."""
    found: list[str] = []
    for path in await site.files("before"):
        if "/" not in path and re.fullmatch(r"requirements[^/]*\.(?:txt|in)", path):
            text = (await site.read("before", path) or b"").decode("utf-8", "replace")
            found += [match[1] for line in text.splitlines() if (match := _REQUIREMENT.match(line))]
    return (*found, *_in_project(await site.read("before", "pyproject.toml") or b""))


def _in_project(raw: bytes) -> list[str]:
    try:
        data = tomllib.loads(raw.decode())
    except ValueError:
        return []
    project = data.get("project", {})
    groups = (project.get("optional-dependencies", {}), data.get("dependency-groups", {}))
    listed = [project.get("dependencies", []), *(part for group in groups for part in group.values())]
    lines = [line for part in listed if isinstance(part, list) for line in part if isinstance(line, str)]
    return [match[1] for line in lines if (match := _REQUIREMENT.match(line))]
