"""`stop`, `rewind`, `fork`, `reload`: steering runs. Each says what is next."""

from __future__ import annotations

import asyncio
import json
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click

from bailiwick.app.service import App, open_app
from bailiwick.cli.printing import printing
from bailiwick.clock import SystemClock
from bailiwick.engine import events as ev
from bailiwick.errors import NotReady, UsageError
from bailiwick.ids import NAME, Json
from bailiwick.journal.rows import RunFilter, RunRow
from bailiwick.processes.children import end_children
from bailiwick.processes.owner import current_owner, shown
from bailiwick.runs import documents as doc
from bailiwick.runs.control import Control, ControlResult, Point, read_point, standing_point
from bailiwick.runs.find import find_run, name_of
from bailiwick.runs.query import children_of, is_held, state_alone
from bailiwick.runs.start import starting_limits
from bailiwick.terminal.output import Printer, clean, is_terminal

REFUSED = "BW244"
MOMENT, GRACE = 1.0, 3.0
"""`stop --all`: seconds that holders get to end their processes, and that a process gets after TERM."""
LANDING = 10.0
"""Seconds that `stop --now` stays: longer than TERM, 5 s and KILL take."""
UNCHANGED = "it is the definition the run has"


def may_ask(out: Printer) -> bool:
    """Whether a person is there to be asked."""
    return not out.json and is_terminal(sys.stdin) and is_terminal(sys.stdout)


def refuse(outcome: ControlResult) -> None:
    """Raise `UsageError` when the run refused the message."""
    if outcome.refused:
        name = name_of(outcome.row)
        hint = f"bailiwick runs show {name}"
        raise UsageError(f"run '{name}' refused it: {clean(outcome.refused)}", hint=hint, code=REFUSED)


def after(app: App, outcome: ControlResult) -> str:
    """What is next for a run that can go on: its holder goes on by itself, else somebody has to walk it."""
    row, name = outcome.row, name_of(outcome.row)
    if not outcome.taken:
        return f"its worker has not taken it yet; see: bailiwick runs show {name}"
    if row.owner is not None and is_held(row, current_owner("bailiwick"), app.runtime.clock.now()):
        return f"{shown(row.owner)} goes on with it: bailiwick logs -f {name}"
    if row.status in ("done", "failed"):
        return f"bailiwick runs show {name}"
    return f"go on with: bailiwick resume {name}"


def _document(outcome: ControlResult, text: str, following: str) -> dict[str, Json]:
    state = state_alone(outcome.row, current_owner("bailiwick"), SystemClock().now())
    return {**doc.row_document(outcome.row, state), "taken": outcome.taken, "done": text, "next": following}


def report(out: Printer, outcome: ControlResult, text: str, following: str) -> int:
    """Say what was done and what is next."""
    if out.json:
        out.emit_json(_document(outcome, text, following))
    else:
        out.line(text)
        out.line(f"  {following}")
    return 0


@click.command()
@click.argument("run", required=False)
@click.option("--now", is_flag=True, help="End the running processes too; they are entered again on resume.")
@click.option("--all", "every", is_flag=True, help="Stop every run now: no process of any run is left.")
@printing
async def stop(out: Printer, run: str | None, now: bool, every: bool) -> int:
    """Stop RUN at the next node boundary, or now. It stays resumable.

    \b
    Example:  bailiwick stop hello-default --now
    """
    if bool(run) == every:
        raise UsageError("name one run, or give --all", hint="bailiwick runs list", code="BW245")
    async with open_app() as app:
        store = app.runtime.store
        ready = await store.runs(RunFilter(status=("ready",)))
        rows = [await find_run(store, run)] if run else [row for row in ready if row.parent is None]
        control = Control(app.runtime, app.by)
        stopping = [asyncio.ensure_future(control.stop(row, now=now or every)) for row in rows]
        if not run:
            await _end_everything([row.id for row in ready], stopping)
        outcomes = list(await asyncio.gather(*stopping))
        if run:
            refuse(outcomes[0])
        if now or every:
            outcomes = [await _landed(app, outcome) for outcome in outcomes]
        for outcome in outcomes:
            await _pass_on(app, control, outcome.row)
        told = [(outcome, *_stopped(app, outcome)) for outcome in outcomes]
    if out.json:
        documents = [_document(outcome, text, then) for outcome, text, then in told]
        out.emit_json(documents[0] if run else {"stopped": documents})
        return 0
    for _, text, then in told:
        out.line(text)
        out.line(f"  {then}")
    if not told:
        out.line("No run is going on.")
    return 0


async def _end_everything(runs: list[str], stopping: Sequence[asyncio.Future[ControlResult]]) -> None:
    """The holders were told; whoever has not ended its processes a moment later has them ended from here."""
    if stopping:
        await asyncio.wait(stopping, timeout=MOMENT)
    await asyncio.gather(*(end_children({"BAILIWICK_RUN": run}, GRACE) for run in runs))


async def _landed(app: App, outcome: ControlResult) -> ControlResult:
    """The outcome once the run's processes have ended, which takes a holder a few seconds at most."""
    store, clock = app.runtime.store, app.runtime.clock
    until = clock.monotonic() + LANDING
    row = outcome.row
    heard = await store.wait_for_news()
    while outcome.taken and row.status == "ready" and (left := until - clock.monotonic()) > 0:
        row = await store.run(row.id) or row
        heard = await store.wait_for_news(heard, left) if row.status == "ready" else heard
    return replace(outcome, row=row)


async def _pass_on(app: App, control: Control, row: RunRow) -> None:
    """Let runs below take the stop that their parent sent them, where nobody walks them."""
    store = app.runtime.store
    for child in children_of(row, await store.runs(RunFilter(root_id=row.root_id, status=("ready",)))):
        held = is_held(child, current_owner("bailiwick"), app.runtime.clock.now())
        if not held and await store.inbox(child.id):
            await control.send(child, "wake", {})
            await _pass_on(app, control, child)


def _stopped(app: App, outcome: ControlResult) -> tuple[str, str]:
    name = name_of(outcome.row)
    if outcome.refused:
        return f"{name} was not stopped: {outcome.refused}", f"bailiwick runs show {name}"
    if outcome.row.status == "stopped":
        return f"{name} is stopped", f"go on with: bailiwick resume {name}"
    if not outcome.taken:
        return f"{name} is asked to stop", after(app, outcome)
    then = f"bailiwick runs wait {name}   ·   at once: bailiwick stop {name} --now"
    return f"{name} stops when the running node is done", then


@click.command()
@click.argument("run")
@click.argument("point", metavar="NODE[@VISIT]")
@click.option("--yes", is_flag=True, help="Don't ask, although effects are not undone.")
@printing
async def rewind(out: Printer, run: str, point: str, yes: bool) -> int:
    """Go back to before a visit of NODE (the last one). What happened after it is not undone.

    \b
    Example:  bailiwick runs rewind hello-default build@1 --yes
    """
    node, visit = read_point(point)
    async with open_app() as app:
        row = await find_run(app.runtime.store, run)
        control = Control(app.runtime, app.by)
        before = await control.point(row, node, visit)
        if before.effects and not yes and not _confirmed(out, before):
            out.line("nothing was changed")
            return 0
        outcome = await control.rewind(row, before)
        refuse(outcome)
        following = after(app, outcome)
    return report(out, outcome, f"{name_of(row)} is back before '{before.node}', visit {before.visit}", following)


def _confirmed(out: Printer, point: Point) -> bool:
    """Ask whether to go back past effects that stay done; without a terminal raise `UsageError` with the list."""
    counts = Counter(point.effects)
    listed = [f"{name}{f' ({count} times)' if count > 1 else ''}" for name, count in counts.items()]
    if not may_ask(out):
        names = ", ".join(listed[:10]) + (f" and {len(listed) - 10} more" if len(listed) > 10 else "")
        hint = "add --yes to go back all the same"
        raise UsageError(f"these effects are not undone: {names}", hint=hint, code="BW246")
    out.line("These effects are done and are not undone; they may happen again:")
    for name in listed:
        out.line(f"  {name}")
    return click.confirm(f"Go back to before '{point.node}', visit {point.visit}?", default=False)


@click.command()
@click.argument("run")
@click.option("--at", "point", metavar="NODE[@VISIT]", help="Before which visit; default: where it stands.")
@click.option("--set", "values", metavar="KEY=VALUE", multiple=True, help="Set a context value (JSON, else text).")
@click.option("--run-id", metavar="ID", help="The new run's id.")
@printing
async def fork(out: Printer, run: str, point: str | None, values: tuple[str, ...], run_id: str | None) -> int:
    """Make a new run that shares RUN's journal up to a visit and goes its own way from there.

    \b
    Example:  bailiwick runs fork hello-default --at build --set retries=3
    """
    changes = dict(_pair(text) for text in values)
    if run_id is not None and not NAME.fullmatch(run_id):
        hint = "letters, digits, '_', '.', '-'; at most 64"
        raise UsageError(f"run id '{clean(run_id)}' is not a valid name", hint=hint)
    async with open_app() as app:
        row = await find_run(app.runtime.store, run)
        control, library = Control(app.runtime, app.by), app.runtime.library
        if point is None:
            entries = await library.history(row.id)
            start = standing_point(entries, library.replay(entries), name_of(row))
        else:
            start = await control.point(row, *read_point(point))
        limits = starting_limits(app.config, (await library.state(row.id)).graph.budget)
        made = await control.fork(row, start, values=changes, key=run_id or await _free_key(app, row), limits=limits)
        outcome = ControlResult(made, ())
        following = after(app, outcome)
    done = f"{name_of(made)} is a fork of {name_of(row)} before '{start.node}', visit {start.visit}"
    return report(out, outcome, done, following)


def _pair(text: str) -> tuple[str, Json]:
    key, sign, value = text.partition("=")
    if not sign or not key:
        raise UsageError(f"--set {text} has no value", hint="write --set KEY=VALUE", code="BW247")
    try:
        return key, json.loads(value, parse_constant=lambda _: value)
    except ValueError:
        return key, value


async def _free_key(app: App, row: RunRow) -> str:
    for number in range(1, 1000):
        key = f"{row.run_key[:52]}-fork{number if number > 1 else ''}"
        if await app.runtime.store.find(row.workflow, key) is None:
            return key
    raise UsageError(f"run '{name_of(row)}' has many forks", hint="choose a --run-id")


@click.command()
@click.argument("run")
@printing
async def reload(out: Printer, run: str) -> int:
    """Let RUN adopt its workflow's files as they are now, if everything it is in the middle of still exists.

    \b
    Example:  bailiwick runs reload hello-default
    """
    from bailiwick.workflows.service import load_workflow

    async with open_app() as app:
        row = await find_run(app.runtime.store, run)
        name = name_of(row)
        if not row.source or not Path(row.source).exists():
            where = row.source or "nowhere"
            raise NotReady(f"run '{name}' was started from {where}, which is not there", hint="put the workflow back")
        loaded = load_workflow(row.source, Path.cwd(), app.config.paths.config)
        for warning in loaded.warnings:
            Printer.on(sys.stderr).problem(warning)
        outcome = await Control(app.runtime, app.by).reload(row, loaded)
        following = after(app, outcome)
    if outcome.refused == UNCHANGED:
        return report(out, outcome, f"{name} has these files already", following)
    if outcome.refused:
        way = f"put these nodes back, or start over: bailiwick run {row.source} --fresh"
        report(out, outcome, f"{name} did not adopt the files: {outcome.refused}", way)
        return 1
    adopted = any(isinstance(event, ev.DefinitionAdopted) for event in outcome.events)
    verb = "goes on with" if adopted else "was told to adopt"
    if outcome.row.status == "failed":
        following = f"go on with: bailiwick resume {name}"
    return report(out, outcome, f"{name} {verb} the files of {row.source}", following)
