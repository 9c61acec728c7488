"""What a run of pytest told over the pipe, read, checked and cross-checked. Pure."""

from __future__ import annotations

import hashlib
import json
import re
import struct
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, cast

from bailiwick.gate.evidence import Evidence, kept_evidence, read_evidence
from bailiwick.ids import Json

TestOutcome = Literal["passed", "failed", "error", "skipped", "xfailed", "xpassed"]
"""How one test ended; `error`: before or after the test itself."""
RED: frozenset[TestOutcome] = frozenset({"failed", "error"})
LONGEST_RECORD = 4 << 20
MOST_BYTES = 256 << 20
"""What a run may send at most; more is a fault."""
TEXTS_KEPT, TEXT_KEPT = 40, 3000
"""Of how many red tests of a base it is kept what they said, and how many characters."""
_KEPT_SETS = ("deselected", "witnessed", "contradicted", "changed")
_HEAD = 20
_SEAL = 16
_NO_FAILURES = (0, 5)
"""Exit codes of pytest without a failure: all passed, nothing to run."""
_TOLD = ("Skipped", "SkipTest", "XFailed")
"""What a test raises to say something else than that it failed."""
_COUNT = re.compile(r'\b(tests|failures|errors)="(\d+)"')
_Rank: dict[TestOutcome, int] = {"passed": 0, "xpassed": 1, "skipped": 2, "xfailed": 3, "error": 4, "failed": 5}


@dataclass(frozen=True, slots=True)
class PytestItem:
    """A test: its id, its file, and where its function is written. Paths are relative to the tree."""

    id: str
    path: str
    code_path: str = ""
    line: int = 0
    name: str = ""


@dataclass(frozen=True, slots=True)
class Fault:
    """Something about a run that doesn't fit together."""

    code: str
    what: str


@dataclass(frozen=True, slots=True)
class PytestSession:
    """One run of pytest as far as it is known from all that was told. Empty where nothing was."""

    outcomes: Mapping[str, TestOutcome] = field(default_factory=dict)
    items: tuple[PytestItem, ...] = ()
    texts: Mapping[str, str] = field(default_factory=dict)
    """What pytest says about each failure, by id or by the file that can't be collected."""
    uncollected: tuple[str, ...] = ()
    """Files that can't be collected."""
    deselected: frozenset[str] = frozenset()
    witnessed: frozenset[str] = frozenset()
    """Tests whose function was seen to run to its end, by return or by exception."""
    returned: frozenset[str] = frozenset()
    """Tests whose function was seen to return."""
    contradicted: frozenset[str] = frozenset()
    """Tests that are reported as passed although they were seen to fail."""
    changed: frozenset[str] = frozenset()
    """Parts of pytest that were exchanged during the run."""
    hooks: Mapping[str, int] = field(default_factory=dict)
    """How many functions of each `file:hook` take part."""
    faults: tuple[Fault, ...] = ()
    exit: int | None = None
    slowest: float = 0.0
    """Seconds of the slowest test."""
    evidence: Evidence = field(default_factory=Evidence)

    @property
    def passed(self) -> frozenset[str]:
        """The tests that count as passed."""
        return frozenset(test for test, outcome in self.outcomes.items() if outcome in ("passed", "xpassed"))

    @property
    def red(self) -> tuple[str, ...]:
        """The tests that fail, then the files that can't be collected."""
        failing = (test for test, outcome in self.outcomes.items() if outcome in RED)
        return tuple(dict.fromkeys((*failing, *self.uncollected)))

    @property
    def test_files(self) -> frozenset[str]:
        """The files that hold test functions, wherever they are."""
        return frozenset(item.path for item in self.items if item.code_path == item.path)

    def counts(self) -> tuple[tuple[str, int], ...]:
        """How many tests ended how."""
        counted = Counter(self.outcomes.values())
        return tuple((name, counted[name]) for name in _Rank if counted[name])

    def to_json(self) -> dict[str, Json]:
        """As a document, with what the first failures said."""
        return {
            "outcomes": dict(self.outcomes),
            "items": [[i.id, i.path, i.code_path, i.line, i.name] for i in self.items],
            "uncollected": list(self.uncollected),
            **{name: sorted(getattr(self, name)) for name in _KEPT_SETS},
            "hooks": dict(self.hooks),
            "faults": [[fault.code, fault.what] for fault in self.faults],
            "exit": self.exit,
            "slowest": round(self.slowest, 3),
            "evidence": self.evidence.to_json(),
            "texts": {test: self.texts.get(test, "")[-TEXT_KEPT:] for test in self.red[:TEXTS_KEPT]},
        }


def read_session(data: dict[str, Json]) -> PytestSession:
    """A run from its document."""
    return PytestSession(
        **{
            **data,
            **{name: frozenset(data[name]) for name in _KEPT_SETS},
            "items": tuple(PytestItem(*item) for item in data["items"]),
            "uncollected": tuple(data["uncollected"]),
            "faults": tuple(Fault(*fault) for fault in data["faults"]),
            "evidence": kept_evidence(data.get("evidence", {})),
        }
    )


class PipeRecords:
    """Takes the bytes of a pipe as they come; the first that can't be ours are a fault, and the end of it."""

    def __init__(self) -> None:
        self.all: list[dict[str, Json]] = []
        self.fault: Fault | None = None
        self._rest = bytearray()
        self._size = 0

    def feed(self, data: bytes) -> None:
        """Take some bytes."""
        self._size += len(data)
        if self.fault is None:
            self._rest += data
            while self._take():
                pass
        if self._size > MOST_BYTES:
            self._fail("the run sends more data than any real test run")

    def close(self) -> None:
        """There is no more: a record that began and did not end was cut."""
        if self._rest and self.fault is None:
            self._fail("the last record is cut off")

    def _take(self) -> bool:
        """Take the first record of what is there; False where it is not whole, or can't be ours."""
        raise NotImplementedError

    def _fail(self, what: str) -> None:
        self.fault = self.fault or Fault("forged-record", f"something else wrote into the pipe of test results: {what}")
        self._rest.clear()


class Records(PipeRecords):
    """Records of pytest's process, each sealed by the run's key and numbered."""

    def __init__(self, key: bytes) -> None:
        super().__init__()
        self._key = key

    def _take(self) -> bool:
        if len(self._rest) < _HEAD:
            return False
        (length,) = struct.unpack_from(">I", self._rest)
        if length > LONGEST_RECORD:
            self._fail(f"record {len(self.all)} is too long")
            return False
        if len(self._rest) < _HEAD + length:
            return False
        body = bytes(self._rest[_HEAD : _HEAD + length])
        wanted = hashlib.blake2b(struct.pack(">Q", len(self.all)) + body, key=self._key, digest_size=_SEAL).digest()
        if wanted != bytes(self._rest[4:_HEAD]):
            self._fail(f"record {len(self.all)} does not have the seal of this run")
            return False
        del self._rest[: _HEAD + length]
        try:
            record = json.loads(body)
            if b"\\ud" in body:  # half of a pair stands for no character, and no document can hold it
                record = json.loads(json.dumps(record, ensure_ascii=False).encode("utf-8", "replace"))
        except (ValueError, RecursionError):
            record = None
        if not isinstance(record, dict):
            self._fail(f"record {len(self.all)} can't be read")
            return False
        self.all.append(record)
        return True


def read_records(records: Records, code: int | None, *, collect_only: bool = False) -> PytestSession:
    """What a run was, from its records and the exit code of its process (None: it was ended from outside)."""
    try:
        return _read(records, code, collect_only=collect_only)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        fault = Fault(
            "forged-record", f"something else wrote into the pipe of test results: {type(error).__name__}: {error}"
        )
        return PytestSession(faults=(fault,), exit=code)


def _read(records: Records, code: int | None, *, collect_only: bool) -> PytestSession:
    by_type: dict[str, list[dict[str, Json]]] = {}
    for record in records.all:
        by_type.setdefault(str(record.get("t")), []).append(record)
    reports = by_type.get("report", [])
    finish = (by_type.get("finish") or [{}])[-1]
    items = tuple(PytestItem(**item) for record in by_type.get("items", []) for item in record["items"])
    outcomes = _outcomes(reports)
    uncollected = {record["id"]: record["text"] for record in by_type.get("uncollected", [])}
    failed = {r["id"]: r["text"] for r in reports if r["outcome"] == "failed" and r["text"]}
    told = _Told(by_type, items=items, outcomes=outcomes, uncollected=tuple(uncollected), finish=finish)
    found = told.faults(code, collect_only=collect_only)
    return PytestSession(
        outcomes=outcomes,
        items=items,
        texts={**failed, **uncollected},
        uncollected=tuple(uncollected),
        deselected=frozenset(test for record in by_type.get("deselected", []) for test in record["ids"]),
        witnessed=frozenset(r["id"] for r in reports if r["when"] == "call" and ("returned" in r or "raised" in r)),
        returned=frozenset(r["id"] for r in reports if r["when"] == "call" and "returned" in r),
        contradicted=frozenset(report["id"] for report in reports if _contradicts(report)),
        changed=frozenset(finish.get("changed", ())),
        hooks=finish.get("hooks", {}),
        faults=(*([records.fault] if records.fault else ()), *found),
        exit=code,
        slowest=max((float(report.get("seconds", 0.0)) for report in reports), default=0.0),
        evidence=read_evidence(by_type, finish),
    )


def _outcomes(reports: Iterable[dict[str, Json]]) -> dict[str, TestOutcome]:
    """The outcome of each test: the worst of its phases, of its last try. Part of a test counts only if it fails."""
    found: dict[str, TestOutcome] = {}
    for report in reports:
        test, outcome = report["id"], _outcome(report)
        if report["outcome"] == "rerun":
            found.pop(test, None)
        if outcome is None or (report["sub"] and outcome != "failed"):
            continue
        if test not in found or _Rank[outcome] > _Rank[found[test]]:
            found[test] = outcome
    return found


def _outcome(report: dict[str, Json]) -> TestOutcome | None:
    match report["outcome"], report["when"]:
        case "failed", when:
            return "failed" if when == "call" else "error"
        case "skipped", _:
            return "xfailed" if report["xfail"] else "skipped"
        case "passed", "call":
            return "xpassed" if report["xfail"] else "passed"
        case _:
            return None


def _contradicts(report: dict[str, Json]) -> bool:
    """Whether a passed report hides a failure that was seen closer to the test."""
    if report["outcome"] != "passed" or report["sub"]:
        return False
    seen = {report.get("raised", ""), report.get("caught", "")} - {"", "kept", *_TOLD}
    return bool(seen) or report.get("made", "passed") == "failed"


@dataclass(frozen=True, slots=True)
class _Told:
    """The sources that have to agree."""

    by_type: Mapping[str, Sequence[dict[str, Json]]]
    items: tuple[PytestItem, ...]
    outcomes: Mapping[str, TestOutcome]
    uncollected: tuple[str, ...]
    finish: dict[str, Json]

    def faults(self, code: int | None, *, collect_only: bool) -> list[Fault]:
        end = self.by_type.get("end")
        if not self.by_type.get("start"):
            return [Fault("no-records", f"nothing came from pytest; the process ended with {_shown(code)}")]
        if not end or (not self.finish and end[-1]["code"] in (0, 1)):
            what = f"the run was cut short after {len(self.outcomes)} of {len(self.items)} tests"
            return [Fault("cut-short", f"{what}: the process ended with {_shown(code)}")]
        said = cast("int", end[-1]["code"])
        found = []
        if code != said:
            found.append(Fault("reports-disagree", f"pytest ended with {said}, its process with {_shown(code)}"))
        if self.finish and not collect_only:
            found += [Fault("reports-disagree", what) for what in (*self._ids(), *self._failures(said))]
        return found

    def _ids(self) -> Iterable[str]:
        wanted = {item.id for item in self.items}
        silent = sorted(wanted - self.outcomes.keys())
        if silent:
            yield f"{len(silent)} collected tests have no outcome, the first is {silent[0]}"
        unknown = sorted(self.outcomes.keys() - wanted)
        if unknown:
            yield f"{len(unknown)} outcomes are of tests that were not collected, the first is {unknown[0]}"
        if self.finish["collected"] < len(wanted):
            yield f"{len(wanted)} tests were collected, pytest counts {self.finish['collected']}"

    def _failures(self, said: int) -> Iterable[str]:
        red = sum(outcome in RED for outcome in self.outcomes.values()) + len(self.uncollected)
        shown, head = self.finish["shown"], self._report_file()
        sources = {
            "the counter of the session": self.finish["failed"],
            "the summary": shown.get("failed", 0) + shown.get("error", 0) if self.finish["terminal"] else None,
            "the report file": head["failures"] + head["errors"] if head else None,
        }
        for name, count in sources.items():
            if count is not None and bool(count) != bool(red):
                yield f"{red} tests or files failed one by one, {name} says {count}"
        if head and head["tests"] < len(self.outcomes):
            yield f"{len(self.outcomes)} tests have an outcome, the report file has {head['tests']}"
        if red and said in _NO_FAILURES:
            yield f"{red} tests or files failed, pytest ended with {said}"

    def _report_file(self) -> dict[str, int]:
        files = self.by_type.get("file") or [{"head": ""}]
        head = files[-1]["head"].partition("<testsuite ")[2].partition(">")[0]
        counts = {name: int(number) for name, number in _COUNT.findall(head)}
        return counts if len(counts) == 3 else {}


def _shown(code: int | None) -> str:
    if code is None:
        return "no exit code, for it ran out of time"
    return f"exit code {code}" if code >= 0 else f"signal {-code}"
