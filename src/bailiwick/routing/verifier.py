"""Has an output judged by another model. What stands in the output can't speak for it: only a strict verdict counts."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass

from bailiwick.agents.asking import TurnContext
from bailiwick.agents.port import Answered, Turn
from bailiwick.ids import Json
from bailiwick.routing.ask import NOWHERE, ModelAccess, ModelReply, ask_model
from bailiwick.routing.model import Candidate, CheckOutcome, Job, Result, TierName, VerifierUsage
from bailiwick.routing.result import Misread, one_line, read_object
from bailiwick.routing.tasks import Draw, boundary_for, draw, words

VERDICT: dict[str, Json] = {
    "type": "object",
    "properties": {"accept": {"type": "boolean"}, "feedback": {"type": "string"}},
    "required": ["accept", "feedback"],
    "additionalProperties": False,
}
FEEDBACK = 2_000
"""Characters of a verdict's feedback that are kept."""
LARGEST = 512 << 10
"""Characters of an output that can be judged."""
CHECKS = 16 << 10
"""Characters of what the checks printed that the verifier sees: the end."""
NO_TOOLS: Mapping[str, Json] = {
    "disallowed_tools": [
        "Bash", "Edit", "Write", "NotebookEdit", "Read", "Glob", "Grep", "Task", "WebFetch", "WebSearch",
    ]
}  # fmt: skip
"""A judge only reads what it is given, where its program can be told so."""
_UNSEEN = frozenset({"Cc", "Cf", "Co", "Cs", "Cn", "Zl", "Zp"})


@dataclass(frozen=True, slots=True)
class Judged:
    """The verifier has spoken."""

    accept: bool
    feedback: str


@dataclass(frozen=True, slots=True)
class Unjudged:
    """The verifier failed, or said something that is no verdict."""

    message: str


@dataclass(frozen=True, slots=True)
class VerifierInput:
    """What is judged: the output of a tier, for a task, with what our own checks said."""

    job: Job
    task: str
    result: Result
    checked: CheckOutcome | None = None


@dataclass(frozen=True, slots=True)
class VerifierAnswer:
    """What the verifier said, and what it took."""

    event: Judged | Unjudged
    judging: VerifierUsage


async def verify(
    access: ModelAccess, verifier: Candidate, case: VerifierInput, *, key: str, context: TurnContext
) -> VerifierAnswer:
    """Have an output judged once. A verifier that fails, or is cancelled, is told as such. Raises as `ask_model`."""
    output = shown_output(case.result)
    if len(output) > LARGEST:
        return VerifierAnswer(Unjudged("the output is too large to be judged"), VerifierUsage(verifier.model, 0))
    system, prompt = case_for(case, output)
    turn = Turn(
        key=key,
        prompt=prompt,
        model=None,
        cwd=NOWHERE,
        env=access.marked(key, context.root),
        schema=VERDICT,
        options={**NO_TOOLS, "rung": "first"},
        node="verifier",
        system=system,
    )
    reply = await ask_model(access, verifier, turn, context)
    told, usage = reply.told, _usage(verifier, reply)
    if told.answer is None:
        return VerifierAnswer(Unjudged(told.failure.message if told.failure else "it gave no answer"), usage)
    return VerifierAnswer(read_verdict(told.answer, verifier.tier), usage)


def case_for(case: VerifierInput, output: str, drawn: Draw = draw) -> tuple[str, str]:
    """The verifier's rules, and the case. The mark of the blocks occurs in nothing that stands between them."""
    checks = case.checked.output[-CHECKS:] if case.checked is not None and case.checked.ran else ""
    mark = boundary_for([case.job.discipline, case.task, output, checks], drawn)
    prompt = words(
        "verifier-case.md",
        boundary=mark,
        discipline=case.job.discipline,
        task=case.task,
        output=output,
        checks=checks,
    )
    return words("verifier.md", boundary=mark), prompt


def shown_output(result: Result) -> str:
    """An output as the verifier sees it: JSON in which every character that can't be seen is spelled out."""
    body = {
        "status": result.status,
        "message": result.message,
        "file_path": result.file_path,
        "files": [{"path": file.path, "content": file.content} for file in result.files],
        "findings": [dict(one) for one in result.findings],
        "candidates": [dict(one) for one in result.candidates],
        **result.details,
    }
    text = json.dumps({key: part for key, part in body.items() if part not in ("", [])}, ensure_ascii=False, indent=1)
    return "".join(map(_visible, text))


def read_verdict(answer: Answered, tier: TierName) -> Judged | Unjudged:
    """Parse the verifier's verdict: one object with exactly `accept`, true or false, and `feedback`, a text.

    What an agent's program has checked against the schema is taken before its words.
    """
    checked = tier == "subagent" and isinstance(answer.structured, dict)
    value = read_object(json.dumps(answer.structured) if checked else answer.text)
    if isinstance(value, Misread):
        return Unjudged(value.problem)
    if set(value) != {"accept", "feedback"}:
        return Unjudged("the answer has to have exactly the keys 'accept' and 'feedback'")
    accept, feedback = value["accept"], value["feedback"]
    if not isinstance(accept, bool) or not isinstance(feedback, str):
        return Unjudged("'accept' has to be true or false, and 'feedback' a text")
    return Judged(accept, one_line(feedback, FEEDBACK))


def _usage(verifier: Candidate, reply: ModelReply) -> VerifierUsage:
    spent = reply.told.spent
    return VerifierUsage(
        verifier.model,
        duration_ms=reply.duration_ms,
        input_tokens=spent.input,
        output_tokens=spent.output,
        cost=spent.usd,
    )


def _visible(character: str) -> str:
    if character == "\n" or unicodedata.category(character) not in _UNSEEN:
        return character
    return json.dumps(character)[1:-1]
