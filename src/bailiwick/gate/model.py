"""What a gate found. Pure: no I/O here."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Literal

from bailiwick.ids import Json, canonical, digest

Verdict = Literal["green", "red", "environment", "needs_person"]
"""`environment`: the tool, disk, network or a service failed, so the change was not tested."""
Outcome = Literal["passed", "failed", "environment", "red_on_base"]
"""How a check ended; `red_on_base`: it fails without the change too, in the same way."""
Level = Literal["tests", "ids", "exit-code", "external"]
"""How much a passed check proves: outcomes with proof, outcomes by id, an exit code, what somebody else says."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a check or the reading of the diff found. `blocks` says that the gate is red because of it.

    `parks` says that a person has to look at it: without anything red the verdict is then `needs_person`. A finding
    that does neither is a note for the reader.
    """

    code: str
    what: str
    path: str = ""
    line: int = 0
    blocks: bool = True
    parks: bool = False

    def to_json(self) -> dict[str, Json]:
        """As a document."""
        return _document(self)


@dataclass(frozen=True, slots=True)
class Doubt:
    """A change that a person has to look at although no check is red because of it: what about it, and the hunk."""

    path: str
    what: str
    line: int = 0
    patch: str = ""

    def to_json(self) -> dict[str, Json]:
        """As a document."""
        return _document(self)


@dataclass(frozen=True, slots=True)
class CheckResult:
    """How one check ended, with what it printed (bounded, safe to show) and the digest of all it printed."""

    name: str
    kind: str
    level: Level
    outcome: Outcome
    command: tuple[str, ...] = ()
    code: int | None = None
    seconds: float = 0.0
    counts: tuple[tuple[str, int], ...] = ()
    findings: tuple[Finding, ...] = ()
    output: str = ""
    output_digest: str = ""
    failing: tuple[str, ...] = ()
    """The ids of the tests that fail, where it knows them."""
    reasons: tuple[str, ...] = ()
    """Why they fail, a line for each: `tests/test_a.py::test_b: tests/test_a.py:12: assert 190 == 180`."""
    hint: str = ""
    proof: tuple[str, ...] = ()
    """Ids of new tests that fail on the base and pass here."""
    healed: tuple[str, ...] = ()
    """Ids of tests of the base that are red there and pass here."""
    unproven: str = ""
    """Why there is no such proof, in words; empty where there is one or where the check can't give any."""
    exercised: tuple[str, ...] = ()
    """Ids of tests that fail when the changed functions raise: they exercise the change."""
    unexercised: str = ""
    """That no test exercises the change, in words; empty where one does or where the check can't know."""

    def to_json(self) -> dict[str, Json]:
        """As a document."""
        return {**_document(self), "seconds": round(self.seconds, 3), "counts": dict(self.counts)}


@dataclass(frozen=True, slots=True)
class RevertedChange:
    """A change to a protected path: taken out of the proposed tree, or allowed by a person. `patch` is the hunk."""

    path: str
    change: Literal["added", "changed", "deleted"]
    patch: str = ""
    allowed: bool = False
    rule: str = ""

    def to_json(self) -> dict[str, Json]:
        """As a document."""
        return _document(self)


@dataclass(frozen=True, slots=True)
class GateReport:
    """The gate report. `tree` is what was tested and what may be proposed; `asked` the tree as the agent left it."""

    verdict: Verdict
    tree: str
    base: str
    asked: str
    policy: str
    environment: str
    sandbox: str
    checks: tuple[CheckResult, ...] = ()
    taken: tuple[RevertedChange, ...] = ()
    weakening: tuple[Finding, ...] = ()
    proof: tuple[str, ...] = ()
    """Ids of new tests that fail on the base and pass here."""
    healed: tuple[str, ...] = ()
    """Ids of tests of the base that are red there and pass here."""
    unproven: str = ""
    """Why there is no such proof, in words; empty where there is one."""
    exercised: tuple[str, ...] = ()
    """Ids of tests that exercise the change: they fail when the changed functions raise."""
    unexercised: str = ""
    """That no test exercises the change, in words; empty where one does or where nobody can know."""
    doubts: tuple[Doubt, ...] = ()
    """What a person has to look at, each with its hunk."""
    wanted: tuple[str, ...] = ()
    """Paths (protected ones, and those of doubts) that the gate would need a person's approval of to turn green."""
    unprotected: tuple[str, ...] = ()
    seconds: float = 0.0
    without: tuple[CheckResult, ...] = ()
    """The same checks without the changes to protected paths that a person allowed, where there are any."""
    findings: tuple[Finding, ...] = ()
    """What was found about the tree itself: new files that shadow a module, new links."""
    reason: str = ""
    """Why the agent says that it has to change a protected path."""

    def to_json(self) -> dict[str, Json]:
        """As a document."""
        told = {"version": 1, **_document(self), "seconds": round(self.seconds, 3)}
        return {"fence" if name == "sandbox" else name: value for name, value in told.items()}

    @property
    def digest(self) -> str:
        """The digest of the report as a document."""
        return digest(canonical(self.to_json()))

    @property
    def failing(self) -> tuple[CheckResult, ...]:
        """The checks that are red because of the change."""
        return tuple(check for check in self.checks if check.outcome == "failed")


def _document(part: Finding | Doubt | CheckResult | RevertedChange | GateReport) -> dict[str, Json]:
    """A report or a part of one as a document: its fields by their names, and what is listed as a list."""
    values = {field.name: getattr(part, field.name) for field in fields(part)}
    return {name: _listed(value) if isinstance(value, tuple) else value for name, value in values.items()}


def _listed(values: tuple[Json, ...]) -> list[Json]:
    return [value.to_json() if hasattr(value, "to_json") else value for value in values]


def read_report(data: dict[str, Json]) -> GateReport:
    """A report from its document."""
    known = {field.name for field in fields(GateReport)}
    return GateReport(
        **{
            **{name: value for name, value in _read(data).items() if name in known},
            "sandbox": data["fence"],
            "checks": tuple(_read_check(item) for item in data["checks"]),
            "taken": tuple(RevertedChange(**item) for item in data["taken"]),
            "weakening": _findings(data["weakening"]),
            "doubts": tuple(Doubt(**item) for item in data.get("doubts", ())),
            "without": tuple(_read_check(item) for item in data.get("without", ())),
            "findings": _findings(data.get("findings", ())),
        }
    )


def _read(data: dict[str, Json]) -> dict[str, Json]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in data.items()}


def _findings(items: Iterable[dict[str, Json]]) -> tuple[Finding, ...]:
    return tuple(Finding(**item) for item in items)


def _read_check(data: dict[str, Json]) -> CheckResult:
    counts, findings = tuple(data["counts"].items()), _findings(data["findings"])
    return CheckResult(**{**_read(data), "counts": counts, "findings": findings})
