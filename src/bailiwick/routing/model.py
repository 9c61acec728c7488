"""What a routed call is made of: the chain, what a tier gives, how it was judged, what is put on record. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from bailiwick.ids import Json

TierName = Literal["local", "subagent", "managed"]
Verdict = Literal["accept", "accept_unverified", "escalate", "error"]
Status = Literal["pass", "fail", "error"]

NOT_ASKED = "not asked: "
"""How the feedback of an attempt begins that was none: its tier was skipped, and this is why."""
DEADLINE = 600.0
"""Seconds that a call may take in all."""
VERIFY_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Candidate:
    """One model of a chain: on which tier it runs, by which agent backend, and whether it leaves the house."""

    model: str
    tier: TierName
    backend: str
    cloud: bool


@dataclass(frozen=True, slots=True)
class Chain:
    """Models in order of cost. `pinned`: the caller named the model, so nothing is escalated or verified."""

    candidates: tuple[Candidate, ...]
    verifier: Candidate | None
    why: str
    pinned: bool = False


@dataclass(frozen=True, slots=True)
class FileOut:
    """A file that a model without tools wants written, relative to the project."""

    path: str
    content: str


@dataclass(frozen=True, slots=True)
class VerifierUsage:
    """What it took to have an attempt judged, whatever the verdict; what is not known is None."""

    model: str
    duration_ms: int
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost: float | None = None

    def to_json(self) -> dict[str, Json]:
        """The verifier's part of an attempt."""
        tokens = {"input": self.input_tokens, "output": self.output_tokens}
        return {"model": self.model, "duration_ms": self.duration_ms, "tokens": tokens, "cost": self.cost}


@dataclass(frozen=True, slots=True)
class Attempt:
    """One tier's try. `duration_ms` and tokens are generation's alone; what is not known is None, never 0.

    `cost` is of generation and verifier together. A tier that was skipped is on record as an `error` that took no time
    and cost nothing, with the reason as `feedback`; it counts in no statistics.
    """

    attempt: int
    model: str
    tier: TierName
    duration_ms: int
    verdict: Verdict
    warm_start: bool = False
    verified: bool | None = None
    feedback: str = ""
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost: float | None = None
    output_summary: str = ""
    runner_output: str = ""
    verifier: VerifierUsage | None = None

    @property
    def asked(self) -> bool:
        """Whether the model was asked at all."""
        return not self.feedback.startswith(NOT_ASKED)

    def to_json(self) -> dict[str, Json]:
        """The attempt as it stands in results, logs and statistics."""
        judged: dict[str, Json] = {"verifier": self.verifier.to_json()} if self.verifier else {}
        return {
            "attempt": self.attempt,
            "model": self.model,
            "tier": self.tier,
            "duration_ms": self.duration_ms,
            "warm_start": self.warm_start,
            "verified": self.verified,
            "verdict": self.verdict,
            "feedback": self.feedback,
            "tokens": {"input": self.input_tokens, "output": self.output_tokens},
            "cost": self.cost,
            "output_summary": self.output_summary,
            "runner_output": self.runner_output,
            **judged,
        }


@dataclass(frozen=True, slots=True)
class Result:
    """What a call comes to. `verified` is an exit code's or a verifier's word, never the model's own.

    `details` is what a skill adds of its own (hypotheses, root_cause, answer, …). `attempts` is set by the router only.
    """

    status: Status
    phase: str
    skill: str
    message: str
    file_path: str = ""
    runner_output: str = ""
    verified: bool | None = None
    model_used: str = ""
    files: tuple[FileOut, ...] = ()
    findings: tuple[Mapping[str, Json], ...] = ()
    candidates: tuple[Mapping[str, Json], ...] = ()
    details: Mapping[str, Json] = field(default_factory=dict)
    attempts: tuple[Attempt, ...] = ()

    def to_json(self) -> dict[str, Json]:
        """The result contract; the contents of files stay where they were written."""
        return {
            "status": self.status,
            "phase": self.phase,
            "skill": self.skill,
            "file_path": self.file_path,
            "runner_output": self.runner_output,
            "verified": self.verified,
            "model_used": self.model_used,
            "message": self.message,
            "files": [one.path for one in self.files],
            "findings": [dict(one) for one in self.findings],
            "candidates": [dict(one) for one in self.candidates],
            "details": dict(self.details),
            "attempts": [one.to_json() for one in self.attempts],
        }


@dataclass(frozen=True, slots=True)
class CheckOutcome:
    """What the deterministic checks of a tier's output said. `ran` is False where there was nothing to check.

    `status`, `file_path` and `details` replace the model's own words where they are given.
    """

    ok: bool
    ran: bool = True
    output: str = ""
    feedback: str = ""
    file_path: str = ""
    details: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Job:
    """One call to be routed. `files` are named for models without tools: their contents go into the task, bounded.

    `seconds` is the deadline. `schema` is the JSON Schema of the model's own answer (without what the router adds).
    `origin` says who asks: cli, mcp, node; `run` and `node` are set for a node of a run, which brings its own money:
    `max_usd` of it. `chain` is a node's own; `local_only` keeps the call in the house whatever the files say.
    """

    skill: str
    phase: str
    discipline: str
    task: str
    root: str = ""
    files: tuple[str, ...] = ()
    model: str | None = None
    session_id: str | None = None
    writes: bool = False
    seconds: float = DEADLINE
    schema: Json = None
    by: str = ""
    origin: str = "cli"
    run: str = ""
    node: str = ""
    chain: tuple[str, ...] = ()
    local_only: bool = False
    max_usd: float | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the caller gets: the result (the best attempt's where all tiers failed), the call's id and the reason."""

    call: str
    result: Result
    why: str
    error: str = ""
