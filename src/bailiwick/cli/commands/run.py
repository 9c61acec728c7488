"""`run`, `resume` and `worker`: commands that walk runs in this process."""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

import click

from bailiwick.app.service import App, open_app
from bailiwick.cli.hosting import ForegroundOptions, host, serve
from bailiwick.cli.view.choose import choose_view
from bailiwick.cli.view.port import RunView
from bailiwick.config.layers import LayerKind
from bailiwick.config.variables import Environment
from bailiwick.errors import UsageError
from bailiwick.ids import Json
from bailiwick.journal.rows import RunFilter, RunRow
from bailiwick.lang.load import Loaded
from bailiwick.lang.params import check_params, unread_params
from bailiwick.runs.edits import source_notices
from bailiwick.runs.find import find_run
from bailiwick.runs.params import read_params, with_pairs
from bailiwick.runs.start import (
    StartRequest,
    chosen_agents,
    kept_agent,
    key_of,
    refuse_other_params,
    start,
    starting_limits,
)
from bailiwick.runtime.creation import refuse
from bailiwick.terminal.output import Printer, Styled

WORKFLOW_FILE = "workflow.yaml"
VERBOSE = click.option("-v", "--verbose", is_flag=True, help="Every step, also those a workflow hides.")


@dataclass(frozen=True, slots=True)
class RunArguments:
    """The command line of `run`, read."""

    workflow: str | None
    key: str | None
    params: dict[str, Json]
    pairs: tuple[str, ...]
    flags: dict[str, Json]
    fresh: bool
    strict: bool
    options: ForegroundOptions
    simulate: Path | bool | None


def _flags(given: dict[str, object]) -> dict[str, Json]:
    """What the command line says about configuration."""
    flags: dict[str, Json] = {name: str(given[name]) for name in ("runs_dir", "backend", "model") if given.get(name)}
    return flags | ({"budget.run.usd": given["budget_usd"]} if given.get("budget_usd") else {})


def told_apart(workflow: str | None, simulate: object) -> tuple[str | None, Path | bool | None]:
    """The workflow and the simulated agent of a command line: the flag alone is True, with a script it is the script.

    `run --simulate WORKFLOW` means the flag alone: what is a workflow is never taken for a script.
    """
    if simulate is None or simulate == "":
        return workflow, None if simulate is None else True
    text = str(simulate)
    if Path(text).is_file() and Path(text).name != WORKFLOW_FILE:
        return workflow, Path(text)
    if workflow is None:
        return text, True
    if Path(workflow).is_file() and Path(workflow).name != WORKFLOW_FILE:
        return text, Path(workflow)
    raise UsageError(
        f"--simulate takes the file of a script, and there is none at '{text}'",
        hint=f"bailiwick run {workflow} --simulate alone makes answers up from the declared outputs",
    )


@click.command()
@click.argument("workflow", required=False)
@click.option("--workflow", "workflow_file", metavar="FILE", help="The workflow.yaml itself.")
@click.option("--run-id", metavar="ID", help="The run's id; default: 'default', or a digest of the params.")
@click.option("--params", metavar="JSON", help="Values for the context, as a JSON object; win over --params-file.")
@click.option("--params-file", metavar="FILE", help="The same from a file.")
@click.option("-p", "--param", "pairs", multiple=True, metavar="KEY=VALUE", help="One value; wins over --params.")
@click.option("--runs-dir", metavar="DIR", help="Where run directories are written.")
@click.option("--backend", "--cli", "backend", metavar="NAME", help="The agent backend; a node's own comes first.")
@click.option("--model", metavar="NAME", help="The model; a node's own comes first.")
@click.option(
    "--simulate", is_flag=False, flag_value="", metavar="SCRIPT", help="A simulated agent: no key, no network."
)
@click.option(
    "--budget-usd", type=click.FloatRange(min=0, min_open=True), metavar="N", help="Dollars for the run tree."
)
@click.option("--resume-run", metavar="RUN", help="Go on with this run: its directory or its name.")
@click.option("--resume-latest", is_flag=True, help="Go on with the newest run that is not over.")
@click.option("--fresh", is_flag=True, help="Set the old run of this name aside and start again.")
@click.option("--dry-run", is_flag=True, help="Go through the graph with stand-in answers; run nothing.")
@click.option("--strict", is_flag=True, help="Warnings about unknown keys are errors.")
@click.option("--detach", is_flag=True, help="Go on in the background; the command returns at once.")
@click.option("--wait", is_flag=True, help="Stay while the run waits for a person.")
@click.option("--no-wait", is_flag=True, help="Exit with code 7 when the run only waits for time.")
@click.option("--no-input", is_flag=True, help="Never ask on the terminal.")
@VERBOSE
@click.option("--json", "as_json", is_flag=True, help="One JSON document at the end.")
@click.option("--events", is_flag=True, help="Every durable event as a line of JSON.")
def run(**given: object) -> int:
    """Run WORKFLOW (a directory, a workflow.yaml or a name), or go on with it where it was.

    \b
    Examples:
      bailiwick run my-workflow/
      bailiwick run my-workflow/ --params '{"issue": "412"}'
      bailiwick run my-workflow/ --dry-run
    """
    if given["wait"] and given["no_wait"]:
        raise UsageError("--wait and --no-wait exclude each other")
    workflow, simulate = told_apart(_text(given["workflow_file"] or given["workflow"]), given["simulate"])
    workflow = workflow or Environment().workflow_dir()
    options = ForegroundOptions(
        wait=bool(given["wait"]),
        no_wait=bool(given["no_wait"]),
        ask=not given["no_input"]
        and not given["as_json"]
        and not given["events"]
        and sys.stdin.isatty()
        and sys.stdout.isatty(),
        detach=bool(given["detach"]),
    )
    view = choose_view(json=bool(given["as_json"]), events=bool(given["events"]), verbose=bool(given["verbose"]))
    request = RunArguments(
        workflow=workflow,
        key=None if given["run_id"] is None else str(given["run_id"]),
        params=read_params(_text(given["params"]), _text(given["params_file"])),
        pairs=tuple(map(str, _listed(given["pairs"]))),
        flags=_flags(given),
        fresh=bool(given["fresh"]),
        strict=bool(given["strict"]),
        options=options,
        simulate=simulate,
    )
    if given["resume_run"] or given["resume_latest"]:
        reference = str(given["resume_run"]) if given["resume_run"] else None
        return asyncio.run(_resume(reference, request, view))
    if workflow is None:
        return _list(as_json=bool(given["as_json"]))
    if given["dry_run"]:
        return _dry_run(request, workflow, as_json=bool(given["as_json"]))
    return asyncio.run(_run(request, workflow, view))


def _listed(value: object) -> tuple[object, ...]:
    return value if isinstance(value, tuple) else ()


def _text(value: object) -> str | None:
    return str(value) if value else None


def _list(*, as_json: bool) -> int:
    """`run` with nothing: the workflows there are, with what they are for."""
    from bailiwick.config.paths import find_paths
    from bailiwick.workflows.service import listed

    out = Printer.for_stdout(json=as_json)
    found = listed(Path.cwd(), find_paths().config)
    if out.json:
        out.emit_json({"workflows": [one.to_json() for one in found]})
        return 0
    rows = [(one.name, Styled(one.label, "dim"), one.description or str(one.path)) for one in found]
    out.table(rows, ("workflow", "where", "what it is for"))
    out.line()
    out.line(Styled("Run one", "dim"), f"  bailiwick run {found[0].name}" if found else "")
    out.line(Styled("Make one", "dim"), "  bailiwick new --list")
    return 0


def _load(workflow: str, *, strict: bool) -> Loaded:
    from bailiwick.config.paths import find_paths
    from bailiwick.workflows.service import load_workflow

    loaded = load_workflow(workflow, Path.cwd(), find_paths().config, strict=strict)
    for warning in loaded.warnings:
        Printer.on(sys.stderr).problem(warning)
    return loaded


def _dry_run(request: RunArguments, workflow: str, *, as_json: bool) -> int:
    """Dry-run a workflow, print the report, and give the exit code: 0 if some pass came to an end, else 1."""
    from bailiwick.dryrun.service import dry_run

    loaded = _load(workflow, strict=request.strict)
    params = with_pairs(request.params, request.pairs, loaded.graph)
    refuse(check_params(loaded.graph, params, complete=False))
    for text in unread_params(loaded.graph, loaded.reads, params):
        click.echo(f"warning: {text}", err=True)
    found = dry_run(loaded, params)
    if as_json:
        click.echo(json.dumps(found.to_json(), ensure_ascii=False))
    else:
        click.echo(found.text(shutil.get_terminal_size().columns), nl=False)
    return found.exit_code


async def _run(request: RunArguments, workflow: str, view: RunView) -> int:
    loaded = _load(workflow, strict=request.strict)
    async with open_app(request.flags, view.watch(), request.simulate, attended=request.options.attended) as app:
        runs_dir = str(app.config.runs_dir)
        limits = starting_limits(app.config, loaded.graph.budget)
        chosen = chosen_agents(request.flags, request.simulate)
        params = with_pairs(request.params, request.pairs, loaded.graph)
        start_request = StartRequest(
            loaded, params=params, key=request.key, runs_dir=runs_dir, fresh=request.fresh, limits=limits, agents=chosen
        )
        costs = await _check_agents(app, start_request, request.simulate)
        started = await start(app.runtime, start_request)
        return await host(
            app,
            started.row,
            view=view,
            options=request.options,
            notices=(*_notices(app), *costs, *started.notices),
        )


def _notices(app: App) -> list[str]:
    return [str(problem) for problem in app.config.notices]


async def _check_agents(app: App, start_request: StartRequest, simulate: Path | bool | None) -> tuple[str, ...]:
    """Refuse a backend that can't be used before anything starts; a known run keeps the agent it was started with.

    Gives what the person should know of their costs.
    """
    from bailiwick.engine.graph import Work

    if not any(isinstance(node, Work) and node.type == "agent" for node in start_request.loaded.graph.nodes.values()):
        return ()
    from bailiwick.agents.ready import agents_of, cost_words, require_agents
    from bailiwick.agents.registry import SERVERS
    from bailiwick.agents.settings import read_settings

    runtime = app.runtime
    known = (
        None
        if start_request.fresh
        else await runtime.store.find(start_request.loaded.graph.name, key_of(start_request))
    )
    if known is not None and known.status == "done":
        return ()
    chosen = (await runtime.library.state(known.id)).agents if known else start_request.agents
    settings = read_settings(app.config, simulate).for_run(chosen)
    names = require_agents(
        agents_of(start_request.loaded.graph), settings, lambda node: app.agents.backends(node, chosen, settings)
    )
    if names - SERVERS:
        await app.sandboxes()
    return cost_words(names, settings)


async def _resume(reference: str | None, request: RunArguments, view: RunView) -> int:
    options = request.options
    async with open_app(request.flags, view.watch(), request.simulate, attended=options.attended) as app:
        row = await find_run(app.runtime.store, reference) if reference else await _latest(app, request)
        if request.params or request.pairs:
            state = await app.runtime.library.state(row.id)
            refuse_other_params(row, state, with_pairs(request.params, request.pairs, state.graph))
        said = await source_notices(app.runtime.library, row, app.config.paths.config)
        kept = await kept_agent(app.runtime, row, chosen_agents(request.flags, request.simulate))
        return await host(app, row, view=view, options=options, notices=(*_notices(app), *said, *kept))


async def _latest(app: App, request: RunArguments) -> RunRow:
    """The newest unfinished run; where the command names a runs directory or a workflow, of those only."""
    rows = await app.runtime.store.runs(RunFilter(status=("ready", "stopped", "failed"), called=False))
    where = ""
    if app.config.origin("runs_dir").kind is not LayerKind.BUILT_IN:
        wanted = Path(app.config.runs_dir).resolve()
        rows = [r for r in rows if app.runtime.run_dir(r).parent.resolve() == wanted]
        where = f" in {app.config.runs_dir}"
    if request.workflow is not None:
        loaded = _load(request.workflow, strict=request.strict)
        rows = [r for r in rows if r.source == str(loaded.root)]
        where += f" of {request.workflow}"
    if not rows:
        raise UsageError(f"no run{where} is unfinished", hint="bailiwick runs list")
    return rows[0]


@click.command()
@click.argument("reference", metavar="RUN")
@click.option("--wait", is_flag=True, help="Stay while the run waits for a person.")
@click.option("--no-wait", is_flag=True, help="Exit with code 7 when the run only waits for time.")
@click.option("--detach", is_flag=True, help="Go on in the background.")
@VERBOSE
@click.option("--json", "as_json", is_flag=True, help="One JSON document at the end.")
@click.option("--events", is_flag=True, help="Every durable event as a line of JSON.")
def resume(*, reference: str, wait: bool, no_wait: bool, detach: bool, **shown: bool) -> int:
    """Go on with RUN where it was.

    \b
    Example:  bailiwick resume hello-default
    """
    options = ForegroundOptions(
        wait=wait, no_wait=no_wait, ask=sys.stdin.isatty() and sys.stdout.isatty(), detach=detach
    )
    view = choose_view(json=shown["as_json"], events=shown["events"], verbose=shown["verbose"])
    request = RunArguments(
        None, key=None, params={}, pairs=(), flags={}, fresh=False, strict=False, options=options, simulate=None
    )
    return asyncio.run(_resume(reference, request, view))


@click.command()
@click.option("--concurrency", default=4, show_default=True, type=click.IntRange(1, 1000), help="Runs at once.")
@click.option("--until-idle", is_flag=True, help="Leave when no run can go on now.")
@click.option("--run", "reference", metavar="RUN", help="Only this run and its children.")
@click.option("--events", is_flag=True, help="Every durable event as a line of JSON.")
def worker(*, concurrency: int, until_idle: bool, reference: str | None, events: bool) -> int:
    """Run every run that is ready, until told to stop (SIGTERM, Ctrl-C).

    \b
    Example:  bailiwick worker --concurrency 2 --until-idle
    """
    return asyncio.run(_worker(concurrency, reference, choose_view(json=False, events=events), until_idle=until_idle))


async def _worker(concurrency: int, reference: str | None, view: RunView, *, until_idle: bool) -> int:
    async with open_app(None, view.watch()) as app:
        root = (await find_run(app.runtime.store, reference)).root_id if reference else None
        return await serve(app, concurrency, root, until_idle=until_idle)
