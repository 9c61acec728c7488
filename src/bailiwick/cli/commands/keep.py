"""`runs export`, `rebuild` and `prune`: keeping evidence, directories and disk space in order."""

from __future__ import annotations

from pathlib import Path

import click

from bailiwick.app.service import App, open_app
from bailiwick.cli.commands.control import may_ask
from bailiwick.cli.printing import printing
from bailiwick.errors import NotReady, Place, UsageError
from bailiwick.ids import Json
from bailiwick.journal.rows import RunRow
from bailiwick.lang.durations import seconds_of
from bailiwick.processes.owner import current_owner
from bailiwick.runs.control import refuse_if_held
from bailiwick.runs.export import export
from bailiwick.runs.find import find_run, name_of
from bailiwick.runs.prune import Pruned, PruneItem, ended_at, plan, prune
from bailiwick.runs.query import is_held
from bailiwick.runtime.facts import RunFacts
from bailiwick.runtime.projection import rebuild as rebuild_directory
from bailiwick.terminal.output import Printer, Styled, counted, size


@click.command(name="export")
@click.argument("run")
@click.option("-o", "--output", metavar="FILE", help="Where to write; default: RUN.tar.gz here.")
@click.option("--force", is_flag=True, help="Overwrite the file.")
@printing
async def export_(out: Printer, run: str, output: str | None, force: bool) -> int:
    """Write the evidence of RUN into an archive: journal, definition, pinned files, run directory, digests.

    It holds what scripts printed and what the context had: look before you pass it on.

    \b
    Example:  bailiwick runs export hello-default -o evidence.tar.gz
    """
    async with open_app() as app:
        row = await find_run(app.runtime.store, run)
        target = Path(output or f"{name_of(row)}.tar.gz")
        made = await export(app.runtime, row, target, force=force)
    if out.json:
        body: dict[str, Json] = {"run": name_of(row), "file": str(made.path), "files": made.files, "size": made.size}
        out.emit_json({**body, "skipped": list(made.skipped)})
        return 0
    out.line(f"{made.path}  {counted(made.files, 'file')}, {size(made.size)}")
    if made.skipped:
        out.line(Styled(f"  left out, no plain files: {', '.join(made.skipped[:5])}", "dim"))
    out.line(f"  check it: tar xf {made.path} && cd {name_of(row)} && sha256sum -c manifest.sha256")
    return 0


@click.command()
@click.argument("run", required=False)
@click.option("--all", "every", is_flag=True, help="Every run that no worker is running now.")
@printing
async def rebuild(out: Printer, run: str | None, every: bool) -> int:
    """Make RUN's directory again from the journal.

    \b
    Example:  bailiwick runs rebuild hello-default
    """
    if bool(run) == every:
        raise UsageError("name one run, or give --all", hint="bailiwick runs list", code="BW245")
    async with open_app() as app:
        store, now, me = app.runtime.store, app.runtime.clock.now(), current_owner("bailiwick")
        if run:
            rows = [await find_run(store, run)]
            refuse_if_held(rows[0], me, now)
        else:
            rows = [row for row in await store.runs() if not is_held(row, me, now)]
        made = [await _rebuild_one(app, row) for row in rows]
    if out.json:
        pairs = zip(rows, made, strict=True)
        out.emit_json({"rebuilt": [{"run": name_of(row), "directory": str(path)} for row, path in pairs]})
    else:
        for path in made:
            out.line(str(path))
        if not made:
            out.line("There is nothing to rebuild.")
    return 0


async def _rebuild_one(app: App, row: RunRow) -> Path:
    runtime, library = app.runtime, app.runtime.library
    root = runtime.run_dir(row)
    events = await library.history(row.id)
    facts = RunFacts(row.workflow, row.run_key, row.id)
    try:
        root.parent.mkdir(parents=True, exist_ok=True)
        rebuild_directory(root, events, library.definitions.graph, library.fetch, run=facts)
    except OSError as error:
        raise NotReady(
            f"the run directory can't be written: {error.strerror or error}",
            place=Place(str(root)),
            hint="free disk space or make it writable; the journal has everything",
            code="BW310",
        ) from error
    return root


@click.command(name="prune")
@click.option("--older-than", metavar="TIME", help="How long ago they ended, such as 30d; default: retention.runs.")
@click.option("--keep", metavar="N", type=click.IntRange(0), default=0, help="Keep the newest N of each workflow.")
@click.option("--dry-run", is_flag=True, help="Only say what would go.")
@click.option("--yes", is_flag=True, help="Don't ask.")
@printing
async def prune_(out: Printer, older_than: str | None, keep: int, dry_run: bool, yes: bool) -> int:
    """Remove ended runs with their directories and workspaces. What is not over, waits or is stopped stays.

    \b
    Example:  bailiwick runs prune --older-than 30d --dry-run
    """
    limit = seconds_of(older_than) if older_than is not None else None
    if older_than is not None and limit is None:
        raise UsageError(f"--older-than {older_than} is not a duration", hint="write 12h or 30d", code="BW202")
    async with open_app() as app:
        older = float(app.config.get("retention.runs")) if limit is None else limit
        doomed = await plan(app.runtime, older, keep)
        if not out.json:
            _print_plan(out, doomed, app.runtime.clock.now())
        if dry_run or not doomed or not (yes or _confirmed(out, doomed)):
            if out.json:
                out.emit_json({"would_go": [_doomed(item) for item in doomed], "gone": []})
            return 0
        done = await prune(app.runtime, doomed)
    _print_done(out, done)
    return 0


def _doomed(item: PruneItem) -> dict[str, Json]:
    return {"run": name_of(item.row), "uid": item.row.id, "runs": len(item.members), "bytes": item.size}


def _print_plan(out: Printer, doomed: list[PruneItem], now: float) -> None:
    if not doomed:
        out.line("No run is old enough to go.")
        return
    rows = []
    for item in doomed:
        when = f"ended {out.relative(ended_at(item.row), now)}"
        rows.append((name_of(item.row), item.row.status, when, counted(len(item.members), "run"), size(item.size)))
    out.table(rows, right={4})


def _confirmed(out: Printer, doomed: list[PruneItem]) -> bool:
    if not may_ask(out):
        hint = "add --yes, or look first with --dry-run"
        raise UsageError(f"{counted(len(doomed), 'run')} would be removed for good", hint=hint, code="BW246")
    return click.confirm(f"Remove {counted(len(doomed), 'run')} for good?", default=False)


def _print_done(out: Printer, done: Pruned) -> None:
    if out.json:
        kept = [{"run": name_of(row), "reason": why} for row, why in done.kept]
        gone = [name_of(row) for row in done.gone]
        out.emit_json({"gone": gone, "kept": kept, "pins": done.pins, "bytes": done.size})
        return
    out.line(f"{counted(len(done.gone), 'run')} removed, {counted(done.pins, 'pin')}, {size(done.size)} free")
    for row, why in done.kept:
        out.line(f"  {name_of(row)} stays: {why}")
