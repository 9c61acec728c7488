"""Starting a run: pins first, then the row with its first event, so that a crash between leaves nothing half."""

from __future__ import annotations

from dataclasses import dataclass, field

from bailiwick.engine.state import State
from bailiwick.errors import NotReady, UsageError
from bailiwick.ids import NAME, Json, params_key, run_uid
from bailiwick.journal.rows import RunRow
from bailiwick.lang.load import Loaded
from bailiwick.lang.params import check_params, unread_params
from bailiwick.processes.owner import host_id
from bailiwick.runs.edits import pin_notices
from bailiwick.runtime.assemble import Runtime
from bailiwick.runtime.creation import NewRunPlace, created_run, refuse
from bailiwick.runtime.pins import Pinned, pin_all


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


def key_of(wish: StartRequest) -> str:
    """The run id: the person's, else a digest of the params, else `default`."""
    return wish.key if wish.key is not None else params_key(wish.params) if wish.params else "default"


async def start(assembly: Runtime, wish: StartRequest) -> StartedRun:
    """The run of this name and id: the one there is, or a new one. Refuses params and sources that differ."""
    graph = wish.loaded.graph
    key = key_of(wish)
    if not NAME.fullmatch(key):
        what = f"run id '{key}' is not a valid name" if key else "the run id is empty"
        raise UsageError(what, hint="letters, digits, '_', '.', '-'; at most 64")
    found = await assembly.store.find(graph.name, key)
    digest, pinned = pin_all(wish.loaded)
    if found is not None and not wish.fresh:
        return await _known(assembly, wish, found)
    refuse(check_params(graph, wish.params))
    if found is not None:
        await _set_aside(assembly, found)
    assembly.require_room()
    notices = unread_params(graph, wish.loaded.reads, wish.params)
    notices += await _others(assembly, graph.name, key)
    row = await _create(
        assembly, wish, key=key, pinned=pinned, digest=digest, generation=found.generation + 1 if found else 0
    )
    return StartedRun(row, new=True, notices=tuple(notices))


async def _known(assembly: Runtime, wish: StartRequest, row: RunRow) -> StartedRun:
    source = str(wish.loaded.root)
    if row.source != source:
        raise UsageError(
            f"run '{row.workflow}-{row.run_key}' was started from {row.source}, not from {source}",
            hint="choose another --run-id, or --fresh to set the old run aside",
            code="BW206",
        )
    if wish.params:
        refuse_other_params(row, await assembly.library.state(row.id), wish.params)
    notices = await pin_notices(assembly.library, row, wish.loaded)
    return StartedRun(row, new=False, notices=(*notices, *await kept_agent(assembly, row, wish.agents)))


async def kept_agent(assembly: Runtime, row: RunRow, asked: dict[str, Json]) -> tuple[str, ...]:
    """What to say where a command names another agent than the run was started with: the run keeps its own."""
    if row.status == "done" or not asked:
        return ()
    kept = (await assembly.library.state(row.id)).agents
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


async def _set_aside(assembly: Runtime, row: RunRow) -> None:
    if row.status == "ready":
        raise NotReady(
            f"run '{row.workflow}-{row.run_key}' is not over",
            hint=f"bailiwick runs stop {row.workflow}-{row.run_key} --now, then --fresh again",
        )
    old = assembly.run_dir(row)
    await assembly.store.archive(row.id)
    if old.is_dir():
        target = old.with_name(f"{old.name}.{row.generation}")
        if not target.exists():
            old.rename(target)


async def _others(assembly: Runtime, workflow: str, key: str) -> list[str]:
    rows = await assembly.store.runs(workflow=workflow)
    names = [f"{r.workflow}-{r.run_key}" for r in rows if r.run_key != key and r.status != "done" and r.parent is None]
    return [f"unfinished run of the same workflow: {', '.join(names[:5])}"] if names else []


async def _create(
    assembly: Runtime, wish: StartRequest, key: str, pinned: list[Pinned], digest: str, generation: int
) -> RunRow:
    graph, now = wish.loaded.graph, assembly.clock.now()
    for item in pinned:
        assembly.pins.materialise(item)
        await assembly.store.define(item.digest, item.body)
    uid = run_uid(graph.name, key, generation, f"{host_id()}:{assembly.state_dir}:{now!r}")
    place = NewRunPlace(
        id=uid,
        key=key,
        root=uid,
        workspace=assembly.workspace(uid),
        definition=digest,
        source=str(wish.loaded.root),
        runs_dir=wish.runs_dir,
        generation=generation,
        sources={item.digest: str(item.root) for item in pinned},
        limits=wish.limits,
        agents=wish.agents,
    )
    return await assembly.store.create(created_run(graph, wish.params, place, now))
