"""Starting a run: pins first, then the row with its first event, so that a crash between leaves nothing half."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from bailiwick.config.layers import LayerKind
from bailiwick.config.service import Config
from bailiwick.engine.graph import Budget
from bailiwick.engine.state import State
from bailiwick.errors import NotReady, UsageError
from bailiwick.ids import NAME, Json, params_key, run_uid
from bailiwick.journal.rows import RunFilter, RunRow
from bailiwick.lang.load import Loaded
from bailiwick.lang.params import check_params, unread_params
from bailiwick.processes.owner import host_id
from bailiwick.runs.edits import pin_notices
from bailiwick.runtime.assemble import Runtime
from bailiwick.runtime.creation import NewRunPlace, created_run, refuse
from bailiwick.runtime.pins import Pinned, pin_all

UNITS = ("usd", "tokens", "agent_calls", "wall")
"""What a run has ceilings for."""
OTHERS = 5
"""Unfinished runs of the same workflow that are named."""


@dataclass(frozen=True, slots=True)
class StartRequest:
    """What a person asked for."""

    loaded: Loaded
    params: dict[str, Json] = field(default_factory=dict)
    key: str | None = None
    runs_dir: str = ""
    fresh: bool = False
    limits: dict[str, Json] = field(default_factory=dict)
    agents: dict[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StartedRun:
    """The run, whether it is new, and what the person should know."""

    row: RunRow
    new: bool
    notices: tuple[str, ...] = ()


def chosen_agents(flags: dict[str, Json], simulate: Path | bool | None) -> dict[str, Json]:
    """What a command line says about agents: the run keeps it, so that whoever goes on with it uses the same."""
    out: dict[str, Json] = {name: flags[name] for name in ("backend", "model") if name in flags}
    if simulate is not None:
        out["backend"] = "simulate"
    if isinstance(simulate, Path):
        out["script"] = str(simulate.resolve())
    return out


def starting_limits(config: Config, budget: Budget) -> dict[str, Json]:
    """One ceiling per unit. A built-in default gives way to a workflow's own; a configured one only tightens it."""
    out: dict[str, Json] = {}
    for unit in UNITS:
        own: float | None = getattr(budget, unit)
        name = f"budget.run.{unit}"
        configured = config.get(name)
        if own is not None and (configured is None or config.origin(name).kind is LayerKind.BUILT_IN):
            out[unit] = own
        elif configured is not None:
            out[unit] = configured if own is None else min(own, configured)
    return out


def key_of(start_request: StartRequest) -> str:
    """The run id: the person's, else a digest of the params, else `default`."""
    return (
        start_request.key
        if start_request.key is not None
        else params_key(start_request.params)
        if start_request.params
        else "default"
    )


async def start(runtime: Runtime, start_request: StartRequest) -> StartedRun:
    """The run of this name and id: the one there is, or a new one. Refuses params and sources that differ."""
    graph = start_request.loaded.graph
    key = key_of(start_request)
    if not NAME.fullmatch(key):
        what = f"run id '{key}' is not a valid name" if key else "the run id is empty"
        raise UsageError(what, hint="letters, digits, '_', '.', '-'; at most 64")
    found = await runtime.store.find(graph.name, key)
    digest, pinned = pin_all(start_request.loaded)
    if found is not None and not start_request.fresh:
        return await _known(runtime, start_request, found)
    refuse(check_params(graph, start_request.params))
    if found is not None:
        await _set_aside(runtime, found)
    runtime.require_room()
    notices = unread_params(graph, start_request.loaded.reads, start_request.params)
    notices += await _others(runtime, graph.name, key)
    row = await _create(
        runtime, start_request, key=key, pinned=pinned, digest=digest, generation=found.generation + 1 if found else 0
    )
    return StartedRun(row, new=True, notices=tuple(notices))


async def _known(runtime: Runtime, start_request: StartRequest, row: RunRow) -> StartedRun:
    source = str(start_request.loaded.root)
    if row.source != source:
        raise UsageError(
            f"run '{row.workflow}-{row.run_key}' was started from {row.source}, not from {source}",
            hint="choose another --run-id, or --fresh to set the old run aside",
            code="BW206",
        )
    if start_request.params:
        refuse_other_params(row, await runtime.library.state(row.id), start_request.params)
    notices = await pin_notices(runtime.library, row, start_request.loaded)
    return StartedRun(row, new=False, notices=(*notices, *await kept_agent(runtime, row, start_request.agents)))


async def kept_agent(runtime: Runtime, row: RunRow, asked: dict[str, Json]) -> tuple[str, ...]:
    """What to say where a command names another agent than the run was started with: the run keeps its own."""
    if row.status == "done" or not asked:
        return ()
    kept = (await runtime.library.state(row.id)).agents
    if all(kept.get(name) == value for name, value in asked.items()):
        return ()
    named = ", ".join(f"{name} {value}" for name, value in asked.items())
    own = ", ".join(f"{name} {value}" for name, value in kept.items()) or "what the configuration says"
    again = "start over with --fresh, or name another --run-id"
    return (f"the run keeps the agent it was started with ({own}); {named} is not used: {again}",)


def refuse_other_params(row: RunRow, state: State, params: dict[str, Json]) -> None:
    """Raise `UsageError` where a run that exists was started with other params than these."""
    if state.params == params:
        return
    absent = object()
    known = state.params
    names = sorted(name for name in {*known, *params} if known.get(name, absent) != params.get(name, absent))
    raise UsageError(
        f"run '{row.workflow}-{row.run_key}' exists with other params: {', '.join(names)}",
        hint="leave the params out to go on with it, choose another --run-id, or --fresh",
        code="BW207",
    )


async def _set_aside(runtime: Runtime, row: RunRow) -> None:
    if row.status == "ready":
        raise NotReady(
            f"run '{row.workflow}-{row.run_key}' is not over",
            hint=f"bailiwick runs stop {row.workflow}-{row.run_key} --now, then --fresh again",
        )
    old = runtime.run_dir(row)
    await runtime.store.archive(row.id)
    if old.is_dir():
        target = old.with_name(f"{old.name}.{row.generation}")
        if not target.exists():
            old.rename(target)


async def _others(runtime: Runtime, workflow: str, key: str) -> list[str]:
    which = RunFilter(status=("ready", "stopped", "failed"), workflow=workflow, called=False)
    rows = await runtime.store.runs(which, limit=OTHERS + 1)
    names = [f"{r.workflow}-{r.run_key}" for r in rows if r.run_key != key]
    return [f"unfinished run of the same workflow: {', '.join(names[:OTHERS])}"] if names else []


async def _create(
    runtime: Runtime, start_request: StartRequest, key: str, pinned: list[Pinned], digest: str, generation: int
) -> RunRow:
    graph, now = start_request.loaded.graph, runtime.clock.now()
    for item in pinned:
        await runtime.pin(item)
    uid = run_uid(graph.name, key, generation, f"{host_id()}:{runtime.state_dir}:{now!r}")
    place = NewRunPlace(
        id=uid,
        key=key,
        root=uid,
        workspace=runtime.workspace(uid),
        definition=digest,
        source=str(start_request.loaded.root),
        runs_dir=start_request.runs_dir,
        generation=generation,
        sources={item.digest: item.source for item in pinned},
        limits=start_request.limits,
        agents=start_request.agents,
    )
    return await runtime.store.create(created_run(graph, start_request.params, place, now))
