"""`status`, `why`, `logs` and `runs wait`: what people ask while runs go on."""

from __future__ import annotations

from dataclasses import replace
from difflib import get_close_matches
from io import StringIO

import click

from bailiwick.app.service import App, open_app
from bailiwick.cli.printing import printing
from bailiwick.engine.events import Entry
from bailiwick.engine.state import State
from bailiwick.engine.visits import visits
from bailiwick.errors import NotFound, UsageError
from bailiwick.ids import Json
from bailiwick.journal.codec import decode
from bailiwick.journal.rows import RunFilter, RunRow
from bailiwick.lang.durations import seconds_of
from bailiwick.processes.owner import current_owner, shown
from bailiwick.runs import documents as doc
from bailiwick.runs.find import find_run, name_of
from bailiwick.runs.foreground import TIME, exit_code
from bailiwick.runs.log_lines import BAD, OK, WAIT, LogFormatter, LogLine
from bailiwick.runs.query import Overview, RunStatus, is_held, overview, run_tree, standing, tree_state
from bailiwick.runs.why import RunHistory, explain, explain_node
from bailiwick.terminal.output import Printer, Styled, counted, json_text

GLANCE = 1.0
"""Seconds after which `status --watch` looks even though nothing was written: a process that dies writes nothing."""
CLEAR = "\x1b[2J\x1b[H"
SHOWN = 10
NODES = 20
"""Nodes that an error names."""
STYLES = {
    "failed": "bad",
    "done": "good",
    **dict.fromkeys(("sleeping", "queued"), "dim"),
    **dict.fromkeys(("waiting", "stopped", "interrupted", "default"), "wait"),
}


@click.command()
@click.option("--watch", is_flag=True, help="Stay, and show it again when something changed; Ctrl-C ends it.")
@printing
async def status(out: Printer, watch: bool) -> int:
    """Show what waits for you, what failed, sleeps, runs or finished.

    \b
    Examples:
      bailiwick status
      bailiwick status --watch
    """
    async with open_app() as app:
        last = ""
        seen = await app.runtime.store.wait_for_news()
        while True:
            text = await _overview_text(app, out, indent=None if watch else 2)
            if text != last:
                out.write(CLEAR + text if watch and out.width else text)
            last = text
            if not watch:
                return 0
            seen = await app.runtime.store.wait_for_news(seen, GLANCE)


async def _overview_text(app: App, out: Printer, *, indent: int | None) -> str:
    """Everything `status` shows, as it is written; a document has one line without `indent`."""
    now = app.runtime.clock.now()
    found = await overview(app.runtime.store, current_owner("bailiwick"), now)
    text = StringIO()
    aside = replace(out, out=text)
    if out.json:
        aside.write(json_text(doc.overview_document(found), indent=indent) + "\n")
    elif found:
        _print_overview(aside, found, now)
    else:
        aside.line(no_runs())
    return text.getvalue()


def no_runs() -> str:
    """What to do where there is nothing yet."""
    return "No runs yet.  See it work:  bailiwick demo   ·   Make a workflow:  bailiwick new hello"


def _print_overview(out: Printer, found: Overview, now: float) -> None:
    if found.questions:
        out.line(Styled("Waits for you", "strong"))
    for asked in found.questions:
        due = f"  (until {out.time(asked.due_at, now)})" if asked.due_at is not None else ""
        where = f"  {asked.place}" if asked.place else ""
        out.line(f"  {out.symbol('waits')} ", Styled(asked.run, "wait"), f"{where}  {asked.text}{due}")
        out.line(f"      {asked.command}", whole=True)
    _section(out, "Failed", [(s.name, f"at {s.node}: {s.note}", _ago(out, s, now)) for s in found.of("failed")])
    _section(out, "Stopped", [(s.name, f"at {s.node}", f"bailiwick resume {s.name}") for s in found.of("stopped")])
    lost = [(s.name, f"at {s.node}", f"bailiwick resume {s.name}") for s in found.of("interrupted")]
    _section(out, "Interrupted", lost)
    _section(out, "Queued", [(s.name, f"at {s.node}", walker(s)) for s in found.of("queued")])
    _section(out, "Sleeping", [(s.name, f"at {s.node}", _until(out, s, now)) for s in found.of("sleeping")])
    going = [(s.name, f"at {s.node}, {counted(s.steps, 'step')}", walker(s)) for s in found.of("running")]
    _section(out, "Running", going)
    _section(out, "Finished lately", [(s.name, _result(s), _ago(out, s, now)) for s in found.of("done")])
    if found.next_commands():
        out.line(Styled("Next  ", "dim"), "   ·   ".join(found.next_commands()))


def _section(out: Printer, title: str, rows: list[tuple[str, str, str]]) -> None:
    if not rows:
        return
    out.line(Styled(title, "strong"))
    if out.width and sum(max(map(len, column)) for column in zip(*rows, strict=True)) + 6 > out.width:
        for name, what, tail in rows[:SHOWN]:
            out.line(f"  {name}  {what}", Styled(f"  {tail}", "dim"))
    else:
        out.table([(f"  {name}", what, Styled(tail, "dim")) for name, what, tail in rows[:SHOWN]])
    if len(rows) > SHOWN:
        out.line(f"  {out.symbol('more')} {len(rows) - SHOWN} more: bailiwick runs list")


def _result(found: RunStatus) -> str:
    return f"degraded by {', '.join(found.degraded)}" if found.degraded else "done"


def _ago(out: Printer, found: RunStatus, now: float) -> str:
    return out.relative(float(found.ended_at or found.row.created_at), now)


def _until(out: Printer, found: RunStatus, now: float) -> str:
    if found.orphaned:
        return walker(found)
    return f"until {out.time(found.due_at, now)}" if found.due_at is not None else ""


def walker(found: RunStatus) -> str:
    """Who walks a run, or what to do where nobody does."""
    if found.holder:
        return f"by {found.holder}"
    if found.orphaned:
        return f"no worker is running it: bailiwick worker, or bailiwick resume {found.name}"
    return ""


@click.command()
@click.argument("run", required=False)
@click.argument("node", required=False)
@click.option("-f", "--follow", is_flag=True, help="Stay until the run is over.")
@printing
async def logs(out: Printer, run: str | None, node: str | None, follow: bool) -> int:
    """Tell what RUN (the newest one if left out) did, line by line; with NODE only that node's part.

    \b
    Example:  bailiwick logs -f hello-default build
    """
    told: list[Json] = []
    async with open_app() as app:
        store, library = app.runtime.store, app.runtime.library
        heard = await store.wait_for_news()
        row = await find_run(store, run) if run else await newest(app)
        news = await library.history(row.id)
        if node is not None:
            require_node(name_of(row), node, library.replay(news), news)
        chronicle = LogFormatter(library.fetch)
        seen = 0
        while True:
            for entry in news:
                seen = entry[0]
                line = chronicle.tell(entry)
                if line is None or node not in (None, line.place, line.place.rsplit("/", 1)[-1]):
                    continue
                if out.json:
                    told.append(doc.line_document(line))
                else:
                    _print_line(out, line, app.runtime.clock.now())
            if not follow or row.status != "ready":
                break
            heard = await store.wait_for_news(heard)
            row, news = await _news(app, row, seen)
        state = (await standing_of(app, row)).state
    if out.json:
        out.emit_json({**doc.row_document(row, state), "lines": told})
    return 0


def require_node(run: str, node: str, state: State, entries: list[Entry]) -> None:
    """Raise `NotFound` with the nodes there are unless the run's workflow has one of this name, or had it once."""
    visited = {visit.place for visit in visits(entries)} | {visit.node for visit in visits(entries)}
    known = [*state.graph.nodes, *sorted(visited - set(state.graph.nodes))]
    if node in known:
        return
    near = get_close_matches(node, known, 3)
    hint = f"did you mean {' or '.join(near)}?" if near else f"its nodes: {', '.join(known[:NODES])}"
    raise NotFound(f"run '{run}' has no node '{node}'", hint=hint)


async def standing_of(app: App, row: RunRow) -> RunStatus:
    """Where a run stands now."""
    rows = await app.runtime.store.runs(RunFilter(root_id=row.root_id, archived=True))
    return standing(row, rows, current_owner("bailiwick"), app.runtime.clock.now())


async def newest(app: App) -> RunRow:
    """The run that was started last."""
    rows = await app.runtime.store.runs(RunFilter(called=False), limit=1)
    if not rows:
        raise NotFound("there is no run yet", hint="bailiwick demo, or bailiwick new hello")
    return rows[0]


async def _news(app: App, row: RunRow, seen: int) -> tuple[RunRow, list[Entry]]:
    """The row, then what came after event `seen`: a row that is over has all its events in the journal."""
    store = app.runtime.store
    fresh = await store.run(row.id)
    if fresh is None:
        raise NotFound(f"run '{name_of(row)}' was removed", hint="bailiwick runs list")
    return fresh, [(stored.seq, stored.at, decode(stored)) for stored in await store.read(row.id, seen)]


def _print_line(out: Printer, line: LogLine, now: float) -> None:
    mark = {OK: "done", BAD: "failed", WAIT: "waits"}.get(line.mark)
    style = {OK: "good", BAD: "bad", WAIT: "wait"}.get(line.mark, "")
    head = out.time(line.at, now)
    where = f"{line.place}  " if line.place else ""
    out.line(Styled(head, "dim"), "  ", Styled(out.symbol(mark) if mark else " ", style), f" {where}{line.text}")
    for stream, text in line.output:
        out.line(Styled(f"    {'!' if stream == 'stderr' else '|'} {text}", "dim"))


@click.command()
@click.argument("run")
@click.option("--timeout", metavar="TIME", help="Leave with code 7 after this time, such as 90s or 2h.")
@click.option("--through", is_flag=True, help="Stay while the run waits for a person or for time.")
@printing
async def wait(out: Printer, run: str, timeout: str | None, through: bool) -> int:
    """Wait until RUN is over or parks; gives its exit code.

    \b
    Example:  bailiwick runs wait hello-default --timeout 10m
    """
    limit = seconds_of(timeout) if timeout is not None else None
    if timeout is not None and limit is None:
        raise UsageError(f"--timeout {timeout} is not a duration", hint="write 90s, 10m or 2h", code="BW202")
    async with open_app() as app:
        store, clock = app.runtime.store, app.runtime.clock
        until = None if limit is None else clock.monotonic() + limit
        heard = await store.wait_for_news()
        row = await find_run(store, run)
        late = False
        while True:
            tree = run_tree(row, await store.runs(RunFilter(root_id=row.root_id, archived=True)))
            row, state = tree[0], tree_state(tree)
            if late or row.status != "ready" or (state in ("waiting", "sleeping") and not through):
                break
            left = None if until is None else max(0.0, until - clock.monotonic())
            before, heard = heard, await store.wait_for_news(heard, left)
            late = heard == before
        found = standing(row, tree, current_owner("bailiwick"), clock.now())
    code = TIME if late else exit_code(row, tree)
    if out.json:
        out.emit_json({**doc.standing_document(found), "code": code})
    else:
        state = f"{found.state}, not over in time" if late else found.state
        out.line("  ".join(part for part in (found.name, state, found.note, walker(found)) if part))
    return code


@click.command()
@click.argument("what", metavar="RUN|NODE|CALL", required=False)
@click.argument("node", required=False)
@printing
async def why(out: Printer, what: str | None, node: str | None) -> int:
    """Say why a run waits, stopped, failed or went the way it did; from the journal alone.

    \b
    Examples:
      bailiwick why hello-default          the run
      bailiwick why hello-default check    a node of it
      bailiwick why check                  the node in the newest run that has it
      bailiwick why c-0f3a9d21c4b7e655     a call of a skill: which models were asked, and why
    """
    from bailiwick.routing.explain import is_call

    async with open_app() as app:
        if what is not None and is_call(what):
            return await _why_call(out, app, what)
        row, node = await _subject(app, what, node)
        library = app.runtime.library
        found = await standing_of(app, row)
        entries = await library.history(row.id)
        held = is_held(row, current_owner("bailiwick"), app.runtime.clock.now())
        holder = shown(row.owner) if held and row.owner is not None else ""
        history = RunHistory(name_of(row), entries, library.replay(entries), holder)
        if node:
            require_node(history.name, node, history.state, entries)
        reasons = explain_node(history, node) if node else explain(history)
    if out.json:
        about = doc.row_document(row, found.state)
        out.emit_json({**about, "node": node, "reasons": [doc.reason_document(r) for r in reasons]})
        return 0
    out.line(Styled(history.name, "strong"), f"  {node}" if node else "")
    for reason in reasons:
        when = f"  ({out.time(reason.at)})" if reason.at else ""
        out.line(f"  {reason.text}", Styled(when, "dim"))
        for line in reason.lines:
            out.line(Styled(f"      {line}", "dim"))
    return 0


async def _why_call(out: Printer, app: App, call: str) -> int:
    from bailiwick.routing.reports import why_call

    told = await why_call(app.runtime.store, call, app.runtime.clock.now())
    if out.json:
        out.emit_json(told.to_json())
        return 0
    out.line(Styled(told.call.id, "strong"))
    for line in (told.choice, *told.lines, told.ending):
        out.line(f"  {line}")
    return 0


async def _subject(app: App, what: str | None, node: str | None) -> tuple[RunRow, str | None]:
    """What is meant: a run, a node of a run, or a node of the newest run that has it."""
    store, library = app.runtime.store, app.runtime.library
    if what is None:
        return await newest(app), None
    try:
        return await find_run(store, what), node
    except NotFound:
        if node is not None:
            raise
        for row in await store.runs():
            await library.define(row.definition)
            if what in library.definitions.graph(row.definition).nodes:
                return row, what
        raise
