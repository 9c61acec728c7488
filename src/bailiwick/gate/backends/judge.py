"""The check that is a model's opinion: whether a change solves its issue or games its tests.

It can only add doubt. A judge that can't be asked has said nothing, which is the environment's fault, not the change's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bailiwick.gate.model import CheckResult, Finding
from bailiwick.gate.port import Case, Opinion

if TYPE_CHECKING:
    from bailiwick.gate.port import CheckContext
    from bailiwick.gate.spec import CheckSpec

SECONDS = 120.0
"""How long a judge may take where the check says nothing shorter."""
DOUBT = "judge"
"""The code of a judge's doubt."""


class JudgeCheck:
    """Asks a model of the operator's choice, which must not be the one that wrote the change."""

    async def run(self, spec: CheckSpec, context: CheckContext) -> CheckResult:
        model, judging = str(spec.options["model"]), context.judging
        if not context.changes:
            return _result(spec, "nothing was changed, so there is nothing to judge")
        if any(is_same_model(author, model) for author in judging.authors):
            what = f"the model {model} wrote this change: it can't judge it"
            hint = f"name another model for the check '{spec.name}' in the gate file, or let another one write"
            return _unasked(spec, Opinion(trouble=what, hint=hint))
        if judging.judge is None:
            return _unasked(spec, Opinion(trouble="no model can be asked from here", hint="run it with bailiwick gate"))
        paths = tuple(change.path for change in context.changes)
        case = Case(judging.issue, await context.diff(), judging.findings, paths)
        context.show(f"{spec.name}: asking {model}")
        seconds = min(SECONDS, spec.timeout or SECONDS)
        opinion = await judging.judge(model, case, seconds=seconds, cancel=context.cancel)
        if opinion.trouble:
            return _unasked(spec, opinion)
        cost = "cost unknown" if opinion.usd is None else f"${opinion.usd:.4f}"
        if not opinion.doubt:
            return _result(spec, f"{model} has no doubt ({cost})")
        path = opinion.path if opinion.path in paths else paths[0]
        found = Finding(DOUBT, f"{model} doubts the change: {opinion.doubt}", path, blocks=False, parks=True)
        return _result(spec, f"{model} doubts the change ({cost})", found)


def is_same_model(one: str, other: str) -> bool:
    """Whether two names are of the same model: `claude/claude-x` and `claude-x` are, a backend's bare name is none."""
    bare = [name.rpartition("/")[2].casefold().removesuffix(":latest") for name in (one, other)]
    return bool(bare[0]) and bare[0] == bare[1]


def _result(spec: CheckSpec, said: str, *findings: Finding) -> CheckResult:
    return CheckResult(spec.name, spec.kind, "external", "passed", findings=findings, output=said)


def _unasked(spec: CheckSpec, opinion: Opinion) -> CheckResult:
    found = Finding("judge-unasked", f"the judge gave no opinion: {opinion.trouble}", blocks=False)
    return CheckResult(spec.name, spec.kind, "external", "environment", findings=(found,), hint=opinion.hint)
