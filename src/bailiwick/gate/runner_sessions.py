"""What the runs of other languages' runners were, from all that they told. Pure."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from bailiwick.gate.outcomes import Fault, PytestItem, PytestSession, TestOutcome
from bailiwick.ids import Json

_NODE_OUTCOMES: dict[str, TestOutcome] = {"passed": "passed", "failed": "failed", "skipped": "skipped"}
_GO_OUTCOMES: dict[str, TestOutcome] = {"pass": "passed", "fail": "failed", "skip": "skipped"}
_CARGO_OUTCOMES: dict[str, TestOutcome] = {"ok": "passed", "failed": "failed", "ignored": "skipped"}
_GO_TEST = re.compile(r"(?m)^\s*func\s+((?:Test|Fuzz|Example)\w*)\s*\(")
_NOT_BUILT = re.compile(r"FAIL\s+(\S+) \[(?:build|setup) failed\]")
_RUNNING = re.compile(r"(?m)^\s*Running (?:unittests )?(?P<source>\S+) \((?P<program>[^)\n]+)\)")
_RESULT = re.compile(r"(?m)^test result: (?:ok|FAILED)\. \d+ passed; \d+ failed; \d+ ignored")
_DOC = re.compile(
    r"(?m)^test (?P<file>\S+\.\w+) - (?P<name>.*?) ?\(line \d+\)(?: - [a-z ]+)? \.\.\. (?P<how>ok|FAILED|ignored)"
)
_DOC_OUTCOMES: dict[str, TestOutcome] = {"ok": "passed", "FAILED": "failed", "ignored": "skipped"}


_TEXT = 4000
"""Characters that are kept of what a failure said."""


@dataclass(slots=True)
class _Tests:
    """Tests as they are told, each with an id of its own."""

    outcomes: dict[str, TestOutcome] = field(default_factory=dict)
    items: list[PytestItem] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)
    seen: Counter[str] = field(default_factory=Counter)

    def add(self, path: str, name: str, outcome: TestOutcome, text: str = "") -> None:
        """Add a test; a second one of the same name gets a number."""
        plain = f"{path}::{name}"
        self.seen[plain] += 1
        test = plain if self.seen[plain] == 1 else f"{plain}#{self.seen[plain]}"
        self.outcomes[test] = outcome
        self.items.append(PytestItem(test, path))
        if text:
            self.texts[test] = text

    def session(self, **also: Json) -> PytestSession:
        """The run."""
        return PytestSession(outcomes=self.outcomes, items=tuple(self.items), **{"texts": self.texts, **also})


def read_node(
    records: Sequence[Mapping[str, Json]], fault: Fault | None, code: int | None, *, own_process: bool
) -> PytestSession:
    """A run of a JavaScript runner. `own_process`: each file of tests has a process that ends by itself."""
    try:
        return _read_node(records, fault, code, own_process=own_process)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        what = f"something else wrote into the pipe of test results: {type(error).__name__}: {error}"
        return PytestSession(faults=(Fault("forged-record", what),), exit=code)


def _read_node(
    records: Sequence[Mapping[str, Json]], fault: Fault | None, code: int | None, *, own_process: bool
) -> PytestSession:
    tests = _Tests()
    unloaded: dict[str, str] = {}
    for record in records:
        if record["t"] == "test":
            name = " > ".join(str(part) for part in record["names"])
            tests.add(str(record["file"]), name, _NODE_OUTCOMES[record["outcome"]], str(record.get("text", "")))
        elif record["t"] == "unloaded":
            unloaded[str(record["file"])] = str(record["text"])
    faults = [*([fault] if fault else ()), *_node_faults(records, code, own_process=own_process)]
    red = sum(outcome == "failed" for outcome in tests.outcomes.values()) + len(unloaded)
    if not faults and code is not None and bool(red) != bool(code) and red:
        faults.append(Fault("reports-disagree", f"{red} tests or files failed, the process ended with {code}"))
    changed = frozenset(str(name) for r in records if r["t"] in ("judges", "bye") for name in r["changed"])
    slowest = max((float(r.get("ms") or 0) / 1000 for r in records if r["t"] == "test"), default=0.0)
    return tests.session(
        witnessed=_witnessed(records),
        texts={**tests.texts, **unloaded},
        uncollected=tuple(unloaded),
        changed=changed,
        faults=tuple(faults),
        exit=code,
        slowest=slowest,
    )


def _witnessed(records: Iterable[Mapping[str, Json]]) -> frozenset[str]:
    """Tests that were seen to run in the process of their file."""
    ran = _Tests()
    for record in records:
        for name in record.get("ran", ()):
            ran.add(str(record["file"]), str(name), "passed")
    return frozenset(ran.outcomes)


def _node_faults(records: Sequence[Mapping[str, Json]], code: int | None, *, own_process: bool) -> Iterator[Fault]:
    ended = f"the process ended with {'no exit code' if code is None else code}"
    tests = [record for record in records if record["t"] == "test"]
    end = next((record for record in records if record["t"] == "end"), None)
    if not tests and end is None:
        yield Fault("no-records", f"nothing came from the test runner; {ended}")
        return
    if end is None:
        yield Fault("cut-short", f"the run was cut short after {len(tests)} tests: {ended}")
        return
    if own_process:
        done = {record["who"] for record in records if record["t"] == "bye"}
        broken = {record["file"] for record in records if record["t"] == "unloaded"}
        silent = [r["file"] for r in records if r["t"] == "hello" and r["who"] not in done and r["file"] not in broken]
        if silent:
            what = f"{len(silent)} files of tests ended before they could say how, the first is {silent[0]}"
            yield Fault("cut-short", what)
    yield from _node_counts(tests, end)


def _node_counts(tests: Iterable[Mapping[str, Json]], end: Mapping[str, Json]) -> Iterator[Fault]:
    counted = Counter(str(test["outcome"]) for test in tests if not test.get("suite"))
    said = end["counts"]
    failed = (said.get("fail") or 0) + (said.get("cancelled") or 0)
    if counted["failed"] == 0 and failed > 0 and not any(test["outcome"] == "failed" for test in tests):
        unloaded = end.get("broken", 0) or said.get("tests", 0) > sum(counted.values())
        if not unloaded:
            yield Fault("reports-disagree", f"no test failed one by one, the runner counts {failed}")
    if counted["failed"] and not failed:
        yield Fault("reports-disagree", f"{counted['failed']} tests failed one by one, the runner counts none")
    if said.get("pass") is not None and said["pass"] < counted["passed"]:
        what = f"{counted['passed']} tests passed one by one, the runner counts {said['pass']}"
        yield Fault("reports-disagree", what)


@dataclass(frozen=True, slots=True)
class GoTree:
    """What of a tree of Go has to be known to read a run: its module, and its files of tests with their texts."""

    module: str
    tests: Mapping[str, str] = field(default_factory=dict)
    canaries: Mapping[str, str] = field(default_factory=dict)
    """By folder, the name of the test that was added there and has to pass."""

    def folder(self, package: str) -> str:
        """The folder of a package."""
        return "" if package == self.module else package.removeprefix(f"{self.module}/")

    def files(self, folder: str) -> list[str]:
        """The files of tests in a folder."""
        return [path for path in self.tests if path.rpartition("/")[0] == folder]

    def file_of(self, folder: str, test: str) -> str:
        """The file in which a test is written; the folder where none is."""
        top = test.partition("/")[0]
        found = (path for path in self.files(folder) if top in _GO_TEST.findall(self.tests[path]))
        return next(found, folder)


@dataclass(slots=True)
class _Package:
    """What `go test` said about a package."""

    action: str = ""
    started: set[str] = field(default_factory=set)
    ended: dict[str, TestOutcome] = field(default_factory=dict)
    text: str = ""

    def take(self, event: Mapping[str, Json]) -> None:
        """Take one event."""
        test, action = event.get("Test", ""), event["Action"]
        if action == "output":
            self.text = (self.text + str(event.get("Output", "")))[-_TEXT:]
        elif test and action == "run":
            self.started.add(test)
        elif test and action in _GO_OUTCOMES:
            _worst(self.ended, test, _GO_OUTCOMES[action])
        elif not test and action in _GO_OUTCOMES:
            self.action = action

    def faults(self, name: str, canary: str) -> Iterator[Fault]:
        """What does not fit together; the test of ours is no longer among the outcomes afterwards."""
        told = self.ended.pop(canary, "") == "passed"
        if canary and not told and self.action != "fail" and self.ended:
            yield Fault("forged-record", f"{name}: what it printed was not printed by its tests")
        silent = self.started - self.ended.keys() - {canary}
        if silent and self.action != "fail":
            yield Fault("cut-short", f"{name}: {len(silent)} tests began and did not end")


def read_go(stdout: bytes, code: int | None, tree: GoTree) -> PytestSession:
    """A run of `go test -json`."""
    packages: dict[str, _Package] = {}
    for event in _go_events(stdout):
        packages.setdefault(str(event.get("Package", "")), _Package()).take(event)
    packages = {name: package for name, package in packages.items() if package.action}
    tests = _Tests()
    faults: list[Fault] = []
    uncollected: dict[str, str] = {}
    for name, package in packages.items():
        folder = tree.folder(name)
        faults += package.faults(name, tree.canaries.get(folder, ""))
        for test, outcome in package.ended.items():
            tests.add(tree.file_of(folder, test), test, outcome, package.text if outcome == "failed" else "")
        if package.action == "fail" and "failed" not in package.ended.values():
            uncollected |= dict.fromkeys(tree.files(folder) or [folder], package.text)
    if not packages:
        faults.append(Fault("no-records", f"nothing came from go test; the process ended with {code}"))
    red = any(outcome == "failed" for outcome in tests.outcomes.values()) or uncollected
    if red and code == 0:
        faults.append(Fault("reports-disagree", "tests failed, go test ended with 0"))
    return tests.session(
        texts={**tests.texts, **uncollected}, uncollected=tuple(uncollected), faults=tuple(faults), exit=code
    )


def _go_events(stdout: bytes) -> Iterator[dict[str, Json]]:
    for line in stdout.decode("utf-8", "replace").splitlines():
        if found := _NOT_BUILT.match(line):  # older versions say so beside the events
            yield {"Action": "output", "Package": found[1], "Output": line}
            yield {"Action": "fail", "Package": found[1]}
        try:
            event = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(event, dict) and isinstance(event.get("Action"), str):
            yield event


def _worst(found: dict[str, TestOutcome], test: str, outcome: TestOutcome) -> None:
    """Keep the worst that is said about a test: a second, better word about it may be a printed one."""
    rank: dict[TestOutcome, int] = {"passed": 0, "skipped": 1, "failed": 2}
    if test not in found or rank[outcome] > rank[found[test]]:
        found[test] = outcome


def read_cargo(
    records: Sequence[Mapping[str, Json]], fault: Fault | None, output: tuple[str, str], code: int | None
) -> PytestSession:
    """A run of `cargo test`: what each test program listed and logged, and the tests of documentation.

    `output` is what cargo printed, standard output first.
    """
    stdout, stderr = output
    sources = {m["program"].rpartition("/")[2]: m["source"] for m in reversed(list(_RUNNING.finditer(stderr)))}
    tests = _Tests()
    faults = [fault] if fault else []
    programs = _programs(records)
    for program in programs:
        path = sources.get(program.name.rpartition("/")[2], program.name.rpartition("/")[2])
        for name, outcome in program.outcomes.items():
            tests.add(path, name, outcome, stdout[-_TEXT:] if outcome == "failed" else "")
        faults += program.faults(path)
    for doc in _DOC.finditer(stdout):
        tests.add(doc["file"], f"doc {doc['name']}".strip(), _DOC_OUTCOMES[doc["how"]])
    if not programs and not tests.outcomes and code != 0:
        faults.append(Fault("no-records", f"no test program was started; cargo ended with {code}"))
    if len(sources) > len(programs) and not faults:
        what = f"{len(sources)} test programs were started, {len(programs)} told how they ended"
        faults.append(Fault("cut-short", what))
    harnessed = sum(not program.single for program in programs)
    if len(_RESULT.findall(stdout)) < harnessed and not faults:
        faults.append(Fault("cut-short", "not every test program printed its result"))
    red = any(outcome == "failed" for outcome in tests.outcomes.values())
    if red and code == 0:
        faults.append(Fault("reports-disagree", "tests failed, cargo ended with 0"))
    return tests.session(faults=tuple(faults), exit=code)


@dataclass(slots=True)
class _Program:
    """A test program: what it listed, what it logged, how it ended."""

    name: str
    listed: list[str] = field(default_factory=list)
    outcomes: dict[str, TestOutcome] = field(default_factory=dict)
    single: bool = False
    code: int | None = None
    pending: str = ""

    def take(self, word: str, said: str) -> None:
        """Take one line."""
        if word == "list" and said.endswith(": test"):
            self.listed.append(said.removesuffix(": test"))
        elif word == "log":
            self._log(said)
        elif word == "single":
            self.single = True
            self.outcomes["program"] = "passed" if said == "0" else "failed"
        elif word == "end":
            self.code = int(said)

    def _log(self, said: str) -> None:
        """A line such as `ok a::b` or `ignored: too slow a::b`; what a failure says may go on for several lines."""
        words = said.split()
        how = words[0].rstrip(":") if words else ""
        if how in _CARGO_OUTCOMES:
            self.pending = how
        if self.pending and words and words[-1] in self.listed:
            self.outcomes[words[-1]] = _CARGO_OUTCOMES[self.pending]
            self.pending = ""

    def faults(self, path: str) -> Iterator[Fault]:
        """What does not fit together."""
        if self.code is None:
            yield Fault("cut-short", f"{path}: the test program did not end")
            return
        silent = [test for test in self.listed if test not in self.outcomes]
        if silent:
            what = f"{path}: {len(silent)} of {len(self.listed)} tests have no outcome, the first is {silent[0]}"
            yield Fault("cut-short", f"{what}: the program ended with {self.code}")
        red = [test for test, outcome in self.outcomes.items() if outcome == "failed"]
        if bool(red) != bool(self.code):
            yield Fault("reports-disagree", f"{path}: {len(red)} tests failed, the program ended with {self.code}")


def _programs(records: Iterable[Mapping[str, Json]]) -> list[_Program]:
    found: list[_Program] = []
    for record in records:
        if record["t"] == "begin":
            found.append(_Program(str(record["said"])))
        elif found:
            found[-1].take(str(record["t"]), str(record["said"]))
    return found


def merged(sessions: Sequence[PytestSession]) -> PytestSession:
    """Several runs of one command as one."""
    if len(sessions) == 1:
        return sessions[0]
    codes = [session.exit for session in sessions]
    return PytestSession(
        outcomes={test: outcome for s in sessions for test, outcome in s.outcomes.items()},
        items=tuple(item for s in sessions for item in s.items),
        texts={key: text for s in sessions for key, text in s.texts.items()},
        uncollected=tuple(path for s in sessions for path in s.uncollected),
        changed=frozenset(name for s in sessions for name in s.changed),
        faults=tuple(fault for s in sessions for fault in s.faults),
        exit=next((code for code in codes if code != 0), 0),
        slowest=max((s.slowest for s in sessions), default=0.0),
    )
