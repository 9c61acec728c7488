"""`runs answer`: what a run asked of a person, or a new ceiling for a budget."""

from __future__ import annotations

import json
import math

import click

from bailiwick.app.service import App, open_app
from bailiwick.cli.commands.control import after, may_ask, refuse, report
from bailiwick.cli.printing import printing
from bailiwick.errors import UsageError
from bailiwick.ids import Json, place
from bailiwick.journal.rows import RunFilter, RunRow, WaitFilter, WaitRow
from bailiwick.lang.durations import seconds_of
from bailiwick.runs.control import Control
from bailiwick.runs.find import find_run, name_of
from bailiwick.runs.query import OpenQuestion, is_question, questions
from bailiwick.runs.start import UNITS
from bailiwick.terminal.output import Printer, budget_limit, clean

WRONG = "BW248"

Asked = tuple[RunRow, WaitRow]


@click.command()
@click.argument("run")
@click.argument("value", required=False)
@click.option("--question", "wait_id", metavar="ID", help="Which question, where several are open: its id or its node.")
@click.option("--wait", "older", metavar="ID", hidden=True, help="The former name of --question.")
@click.option("--json-value", is_flag=True, help="VALUE is JSON, not text.")
@printing
async def answer(
    out: Printer, run: str, value: str | None, wait_id: str | None, older: str | None, json_value: bool
) -> int:
    """Answer the question that RUN asks; or raise a budget with VALUE such as wall=4h or agent_calls=500.

    \b
    Examples:
      bailiwick runs answer hello-default yes
      bailiwick runs answer hello-default wall=4h
    """
    wait_id = wait_id or older
    if value is not None and not json_value and wait_id is None:
        unit, sign, limit = value.partition("=")
        if sign and unit in UNITS:
            return await _budget(out, run, unit, _limit(unit, limit))
    given = _parsed(value) if json_value and value is not None else value
    return await _answer(out, run, given, wait_id)


def _parsed(value: str) -> Json:
    try:
        return json.loads(value)
    except ValueError as error:
        hint = "leave --json-value out to answer with text"
        raise UsageError(f"the answer is not JSON: {error}", hint=hint, code=WRONG) from None


def _limit(unit: str, text: str) -> float:
    try:
        limit = seconds_of(text) if unit == "wall" else float(text)
    except ValueError:
        limit = None
    if limit is None or not math.isfinite(limit) or limit <= 0:
        hint = "a duration such as 4h" if unit == "wall" else "a number above 0"
        raise UsageError(f"{unit}={text} is not a budget", hint=f"{unit}= takes {hint}", code=WRONG)
    return limit


async def _budget(out: Printer, run: str, unit: str, limit: float) -> int:
    async with open_app() as app:
        row = await find_run(app.runtime.store, run)
        for member, wait in await _open(app, row):
            if wait.kind == "budget" and wait.body.get("unit") == unit:
                row = member
        outcome = await Control(app.runtime, app.by).raise_budget(row, unit, limit)
        refuse(outcome)
        following = after(app, outcome)
    return report(out, outcome, f"{name_of(row)} may use {unit} up to {budget_limit(unit, limit)}", following)


async def _answer(out: Printer, run: str, value: Json, wait_id: str | None) -> int:
    async with open_app() as app:
        row = await find_run(app.runtime.store, run)
        member, wait = _choose(row, await _open(app, row), wait_id)
        asked = questions([member], [wait])[0]
        if value is None:
            value = await _asked(out, wait, asked)
            if value is None:
                out.line("nothing was answered")
                return 0
        _check(asked, value)
        outcome = await Control(app.runtime, app.by).answer(member, value, wait.id)
        refuse(outcome)
        following = after(app, outcome)
    where = f"'{asked.place}'" if asked.place else "the budget"
    return report(out, outcome, f"{name_of(member)}: {where} is answered", following)


async def _open(app: App, row: RunRow) -> list[Asked]:
    """Open questions of a run, its own first, then those of the runs below it."""
    store = app.runtime.store
    tree = await store.runs(RunFilter(root_id=row.root_id, status=("ready",)))
    rows = sorted((r for r in tree if row.id in (r.id, r.root_id)), key=lambda r: (r.id != row.id, r.created_at))
    waits = [wait for wait in await store.waits(WaitFilter(root_id=row.root_id)) if is_question(wait)]
    return [(member, wait) for member in rows for wait in waits if wait.run_id == member.id]


def _choose(row: RunRow, found: list[Asked], wait_id: str | None) -> Asked:
    """The question that is meant; raises `UsageError` when there is none, or several and no name."""
    name = name_of(row)
    if wait_id is not None:
        named = [(r, w) for r, w in found if wait_id in (w.id, w.node or w.kind, place(w.scope, w.node))]
        if not named:
            raise UsageError(f"run '{name}' has no open question '{wait_id}'", hint=_listed(found, name), code=WRONG)
        found = named
    own = [(r, w) for r, w in found if r.id == row.id] or found
    if not own:
        if row.status == "stopped":
            raise UsageError(f"run '{name}' is stopped", hint=f"bailiwick resume {name}", code=WRONG)
        raise UsageError(f"run '{name}' asks nothing", hint=f"bailiwick why {name}", code=WRONG)
    if len(own) > 1:
        raise UsageError(f"run '{name}' asks {len(own)} questions", hint=_listed(own, name), code=WRONG)
    return own[0]


def _listed(found: list[Asked], name: str) -> str:
    if not found:
        return f"bailiwick runs show {name}"
    listed = ", ".join(f"{wait.id} ({place(wait.scope, wait.node) or wait.kind})" for _, wait in found[:8])
    return f"--question with one of: {listed}"


async def _asked(out: Printer, wait: WaitRow, asked: OpenQuestion) -> str | None:
    if not may_ask(out):
        raise UsageError(f"no answer was given to: {clean(asked.text)}", hint=clean(asked.command), code=WRONG)
    from bailiwick.cli.prompt import ask_person

    return await ask_person(wait)


def _check(asked: OpenQuestion, value: Json) -> None:
    if asked.choices and value not in asked.choices:
        choices = clean(", ".join(asked.choices))
        raise UsageError(f"{value!r} is not a choice of: {clean(asked.text)}", hint=f"one of: {choices}", code=WRONG)
