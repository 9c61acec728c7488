"""A model as judge of a change: a call that is routed and paid for like others; its opinion is kept for that change.

What it reads was written by the author of the change; it stands in blocks marked by a random boundary, so that
verdict-shaped text in there has no effect. Only a strictly parsed answer counts.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bailiwick.config.paths import make_private
from bailiwick.errors import BailiwickError
from bailiwick.gate.port import Case, Opinion
from bailiwick.ids import Json, canonical, digest

if TYPE_CHECKING:
    from bailiwick.routing.model import Outcome
    from bailiwick.routing.service import Router

FOLDER = "judgements"
REASON = 500
SCHEMA: Json = {
    "type": "object",
    "properties": {
        "status": {"enum": ["pass", "fail", "error"]},
        "message": {"type": "string", "minLength": 1},
        "path": {"type": "string"},
    },
    "required": ["status", "message"],
}
"""What a judge answers: "pass" for no doubt, "fail" for a doubt, and why."""


@dataclass(slots=True)
class RoutedJudge:
    """Asks the router, once for each change; `cache` is where opinions are kept."""

    router: Callable[[], Router]
    cache: Path
    by: str = ""

    async def __call__(self, model: str, case: Case, *, seconds: float, cancel: asyncio.Event) -> Opinion:
        """Its opinion; never raises for what a model or a server does."""
        kept = self.cache / FOLDER / f"{digest(canonical([model, asdict(case)]))}.json"
        known = await asyncio.to_thread(_read, kept)
        if known is not None:
            return known
        try:
            outcome = await self._ask(model, case, seconds, cancel)
        except BailiwickError as error:
            return Opinion(trouble=error.what, hint=error.hint)
        opinion = opinion_of(outcome)
        if not opinion.trouble:
            await asyncio.to_thread(_keep, kept, opinion)
        return opinion

    async def _ask(self, model: str, case: Case, seconds: float, cancel: asyncio.Event) -> Outcome:
        from bailiwick.routing.model import Job

        discipline, task = case_for(case)
        job = Job(
            skill="judge",
            phase="judge",
            discipline=discipline,
            task=task,
            model=model,
            schema=SCHEMA,
            seconds=seconds,
            by=self.by,
            origin="gate",
        )
        return await self.router().call(job, None, show=lambda _text: None, cancel=cancel)


def case_for(case: Case) -> tuple[str, str]:
    """The judge's rules, and the case. The mark of the blocks occurs in nothing that stands between them."""
    from bailiwick.routing.tasks import boundary_for, words

    findings = "\n".join(f"- {line}" for line in case.findings)
    mark = boundary_for([case.issue, case.diff, findings])
    return words("judge.md", boundary=mark), words(
        "judge-case.md", boundary=mark, issue=case.issue, diff=case.diff, findings=findings
    )


def opinion_of(outcome: Outcome) -> Opinion:
    """What a routed call came to, as an opinion: an answer that is none, or that could not be had, is trouble."""
    result = outcome.result
    costs = [attempt.cost for attempt in result.attempts]
    usd = None if None in costs else sum(cost or 0.0 for cost in costs)
    if outcome.error or result.status == "error":
        why = " ".join((outcome.error or result.message or "it gave no answer").split())[:REASON]
        return Opinion(trouble=why, hint="bailiwick tier shows which models can be reached", usd=usd)
    if result.status == "pass":
        return Opinion(usd=usd)
    path = result.details.get("path")
    why = " ".join(result.message.split())[:REASON]
    return Opinion(doubt=why, path=path if isinstance(path, str) else "", usd=usd)


def _read(path: Path) -> Opinion | None:
    try:
        return Opinion(**json.loads(path.read_text("utf-8")), usd=0.0)
    except (OSError, ValueError, TypeError):
        return None


def _keep(path: Path, opinion: Opinion) -> None:
    """Keep an opinion so that the same change is judged, and paid for, once."""
    make_private(make_private(path.parent.parent) / FOLDER)
    made = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    made.write_text(json.dumps({"doubt": opinion.doubt, "path": opinion.path}), "utf-8")
    made.rename(path)
