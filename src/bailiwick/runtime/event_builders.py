"""Commands that were carried out and results that came back, as events."""

from __future__ import annotations

from bailiwick.engine import commands as co
from bailiwick.engine import events as ev
from bailiwick.engine.retry_agent import AttemptPlan
from bailiwick.engine.rules import MESSAGE
from bailiwick.runtime.kinds import Done, Failed
from bailiwick.runtime.timing import due_at

NO_PLAN = AttemptPlan("")


def started(start: co.StartEffect) -> ev.EffectStarted:
    """An attempt that is about to begin; the first of a visit with what the visit asks for."""
    plan = start.plan or NO_PLAN
    return ev.EffectStarted(
        start.scope,
        node=start.node,
        visit=start.visit,
        ordinal=start.ordinal,
        attempt=start.attempt,
        key=start.key,
        entry=start.entry,
        request=start.request if start.fixes else None,
        notes=list(start.notes),
        rung=plan.rung,
        model=plan.model,
        level=plan.level,
        policy=start.policy,
    )


def finished(start: co.StartEffect, result: Done | Failed, seconds: float) -> ev.EffectFinished:
    """An attempt that ended."""
    if isinstance(result, Done):
        return ev.EffectFinished(
            start.scope, key=start.key, outputs=result.outputs, failure=None, log=result.log, seconds=seconds
        )
    found = result.failure
    failure = {"kind": found.kind, "message": found.message[:MESSAGE], "detail": found.detail}
    return ev.EffectFinished(start.scope, key=start.key, outputs={}, failure=failure, log=result.log, seconds=seconds)


def opened(wait: co.OpenWait, now: float, zone: str | None) -> list[ev.Event]:
    """A wait with its due time; one whose time can't be read is refused at once, with the reason."""
    refused = ""
    due = now + wait.seconds if wait.seconds is not None else wait.at
    if wait.until:
        try:
            due = due_at(wait.until, now, zone)
        except ValueError as error:
            refused = str(error)
    if due is not None and wait.latest is not None:
        due = min(due, wait.latest)
    out: list[ev.Event] = [
        ev.WaitOpened(
            wait.scope,
            node=wait.node,
            visit=wait.visit,
            id=wait.id,
            kind=wait.kind,
            ordinal=wait.ordinal,
            due_at=due,
            body=wait.body,
            notes=list(wait.notes),
        )
    ]
    if refused:
        out.append(ev.WaitClosed(wait.scope, wait.id, "refused", refused))
    return out
