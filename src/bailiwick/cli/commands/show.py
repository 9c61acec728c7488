"""`runs list`, `show` and `tree`: looking at runs."""

from __future__ import annotations

from typing import Any

import click

from bailiwick.app.service import App, open_app
from bailiwick.cli.commands.query import STYLES, no_runs, standing_of, walker
from bailiwick.cli.printing import printing
from bailiwick.cli.view.ending import results, shown_value
from bailiwick.engine.state import State
from bailiwick.engine.visits import Visit, visits
from bailiwick.journal.rows import RunFilter, RunRow, Status, WaitFilter
from bailiwick.lang.durations import beginning
from bailiwick.processes.owner import current_owner
from bailiwick.runs import documents as doc
from bailiwick.runs.disk import directories
from bailiwick.runs.find import find_run, name_of
from bailiwick.runs.query import RunStatus, questions, standing
from bailiwick.runs.trees import RunTreeRow, grow
from bailiwick.terminal.output import Printer, Styled, duration

SHOWN_VISITS = 40
STATES = ("running", "interrupted", "queued", "waiting", "sleeping", "stopped", "failed", "done")
PAGE = 100


@click.command(name="list")
@click.option("--state", "--status", "state", type=click.Choice(STATES), help="Only runs in this state.")
@click.option("--workflow", metavar="NAME", help="Only runs of this workflow.")
@click.option("--since", metavar="TIME", help="Only runs started since: 2d ago, or 2026-08-01.")
@click.option("--limit", metavar="N", type=click.IntRange(1), help="At most this many, the newest.")
@click.option("--before", metavar="RUN", help="The page after this run, the last one of the page before.")
@click.option("--all", "every", is_flag=True, help="Called runs and archived ones too.")
@printing
async def list_(out: Printer, state: str | None, workflow: str | None, every: bool, **page: Any) -> int:
    """List runs, newest first.

    \b
    Examples:
      bailiwick runs list --state failed --since 2d
      bailiwick runs list --limit 20
    """
    async with open_app() as app:
        now, store = app.runtime.clock.now(), app.runtime.store
        since = beginning(page["since"], now)
        which = RunFilter(status=_stored(state), workflow=workflow, since=since, called=every, archived=every)
        cursor = (await find_run(store, page["before"])).id if page["before"] else None
        found, more = await _fitting(app, which, (state, page["limit"]), cursor)
        empty = not found and not await store.runs(RunFilter(archived=True), limit=1)
    if out.json:
        out.emit_json({"runs": [doc.standing_document(one) for one in found], "more": more})
    elif not found:
        out.line(no_runs() if empty else "No run matches.")
    else:
        lines = [_list_line(out, one, now) for one in found]
        out.table(lines, ("run", "state", "node", "steps", "started", ""), right={3})
        if more:
            out.line(f"{out.symbol('more')} more: --before {found[-1].row.id}")
    return 0


def _stored(state: str | None) -> tuple[Status, ...]:
    """Under which status runs of a state are stored; none is any."""
    match state:
        case None:
            return ()
        case "stopped" | "failed" | "done":
            return (state,)
        case _:
            return ("ready",)


async def _fitting(
    app: App, which: RunFilter, wanted: tuple[str | None, int | None], cursor: str | None
) -> tuple[list[RunStatus], bool]:
    """The first runs that fit, page by page, and whether there are more: no more is read than is needed."""
    state, limit = wanted
    store, me, now = app.runtime.store, current_owner("bailiwick"), app.runtime.clock.now()
    unfinished = await store.runs(RunFilter(status=("ready",), archived=True))
    found: list[RunStatus] = []
    while rows := await store.runs(which, limit=PAGE, before=cursor):
        for row in rows:
            one = standing(row, unfinished if row.status == "ready" else (), me, now)
            if state in (None, one.state):
                if limit is not None and len(found) == limit:
                    return found, True
                found.append(one)
        cursor = rows[-1].id
    return found, False


def _list_line(out: Printer, found: RunStatus, now: float) -> tuple[str | Styled, ...]:
    notes = ["archived"] * found.row.archived + ["degraded"] * bool(found.degraded) + [found.note] * bool(found.note)
    started = out.relative(found.row.created_at, now)
    note = Styled("; ".join(notes) or walker(found).partition(":")[0], "dim")
    name = f"  {found.name}" if found.row.parent else found.name
    return name, Styled(found.state, STYLES.get(found.state, "")), found.node, str(found.steps), started, note


@click.command()
@click.argument("run")
@click.option("--all", "every", is_flag=True, help="Every visit, not only the last ones.")
@printing
async def show(out: Printer, run: str, every: bool) -> int:
    """Show one run: facts, what it waits for, and its visits.

    \b
    Example:  bailiwick runs show hello-default
    """
    async with open_app() as app:
        runtime = app.runtime
        row = await find_run(runtime.store, run)
        found = await standing_of(app, row)
        entries = await runtime.library.history(row.id)
        state = runtime.library.replay(entries)
        waits = await runtime.store.waits(WaitFilter(run_id=row.id))
        places = _places(app, row, state)
        returned = results(state)
    made = [(visit, _result(visit, found)) for visit in visits(entries)]
    if out.json:
        extra = {
            "params": doc.plain(state.params),
            "definition": state.definition,
            "reentered": state.lost,
            **places,
            "results": returned,
        }
        lists = {"waits": [doc.wait_document(w) for w in waits], "visits": [doc.visit_document(*one) for one in made]}
        out.emit_json({**doc.standing_document(found), **extra, **lists})
        return 0
    _print_facts(out, found, state, places)
    out.facts([("result", f"{name} = {shown_value(value)}") for name, value in returned.items()])
    for asked in questions([row], waits):
        out.line(f"{out.symbol('waits')} {asked.place}  {asked.text}")
        out.line(f"    {asked.command}", whole=True)
    _print_visits(out, made if every else made[-SHOWN_VISITS:], len(made))
    return 0


def _places(app: App, row: RunRow, state: State) -> dict[str, str | None]:
    directory = next(map(str, directories(app.runtime, row)), None)
    return {"directory": directory, "workspace": state.workspace, "source": row.source}


def _print_facts(out: Printer, found: RunStatus, state: State, places: dict[str, str | None]) -> None:
    pairs = [
        ("run", found.name),
        ("state", found.state),
        ("at", found.node),
        ("reason", found.note),
        ("started", out.time(found.row.created_at)),
        ("ended", out.time(found.ended_at) if found.ended_at else ""),
        ("steps", str(state.steps)),
        ("re-entered", str(state.lost or "")),
        ("run by", walker(found).removeprefix("by ")),
        ("degraded by", ", ".join(found.degraded)),
        ("called by", found.row.parent or ""),
        *((name, value or "") for name, value in places.items()),
    ]
    out.facts([(label, value) for label, value in pairs if value])


def _result(visit: Visit, found: RunStatus) -> str:
    """A visit that was under way when its process went is interrupted."""
    return "interrupted" if visit.result == "running" and found.state == "interrupted" else visit.result


def _print_visits(out: Printer, made: list[tuple[Visit, str]], total: int) -> None:
    if len(made) < total:
        out.line(f"{out.symbol('more')} {total - len(made)} earlier visits: --all")
    lines = []
    for visit, ended in made:
        took = duration(visit.seconds) if visit.seconds is not None else ""
        result = Styled("taken back" if visit.undone else ended, STYLES.get(ended, ""))
        tries = str(visit.attempts or "") + (f" +{visit.reentries}" if visit.reentries else "")
        to = f"{out.symbol('arrow')} {visit.next}" if visit.next else ""
        lines.append((visit.place, str(visit.number), result, took, tries, f"{to} {visit.detail}".strip()))
    if lines:
        out.table(lines, ("node", "visit", "result", "took", "tries", ""), right={1, 3})


@click.command()
@click.argument("run")
@printing
async def tree(out: Printer, run: str) -> int:
    """Show a run with its branches, items and the runs it called.

    \b
    Example:  bailiwick runs tree hello-default
    """
    async with open_app() as app:
        row = await find_run(app.runtime.store, run)
        rows = await app.runtime.store.runs(RunFilter(root_id=row.root_id, archived=True))
        me, now = current_owner("bailiwick"), app.runtime.clock.now()
        tree_row = await grow(app.runtime.library, row, rows, lambda one: standing(one, rows, me, now).state)
    parent = next((name_of(r) for r in rows if r.id == row.parent), None)
    if out.json:
        out.emit_json({"called_by": parent, **tree_row.document()})
        return 0
    if parent:
        out.line(Styled(f"called by {parent}", "dim"))
    _print_twig(out, tree_row, "", "")
    return 0


def _print_twig(out: Printer, tree_row: RunTreeRow, lead: str, below: str) -> None:
    bar, turn, gap = ("├─ ", "└─ ", "│  ") if out.unicode else ("|- ", "`- ", "|  ")
    out.line(f"{lead}{tree_row.label}  ", Styled(tree_row.state, STYLES.get(tree_row.state, "")), f"  {tree_row.note}")
    for number, member in enumerate(tree_row.members, 1):
        last = number == len(tree_row.members)
        _print_twig(out, member, below + (turn if last else bar), below + ("   " if last else gap))
