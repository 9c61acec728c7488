"""Starting a run: pins first, then the row with its first event, so that a crash between leaves nothing half."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from bailiwick import __version__
from bailiwick.engine.events import RunCreated
from bailiwick.errors import NotReady, UsageError
from bailiwick.ids import NAME, Json, params_key, run_uid
from bailiwick.journal.codec import encode
from bailiwick.journal.rows import NewRun, RunRow
from bailiwick.lang.load import Loaded
from bailiwick.lang.params import check_params, defaults
from bailiwick.runtime.assemble import Assembly
from bailiwick.runtime.owner import host_id
from bailiwick.runtime.pins import Pinned, pin_all


@dataclass(frozen=True, slots=True)
class Wish:
    """What a person asked for."""

    loaded: Loaded
    params: dict[str, Json] = field(default_factory=dict)
    key: str | None = None
    runs_dir: str = ""
    fresh: bool = False
    limits: dict[str, Json] = field(default_factory=dict)
    agents: dict[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Started:
    """The run, whether it is new, and what the person should know."""

    row: RunRow
    new: bool
    notices: tuple[str, ...] = ()


def key_of(wish: Wish) -> str:
    """The run id: the person's, else a digest of the params, else `default`."""
    return wish.key or (params_key(wish.params) if wish.params else "default")


async def start(assembly: Assembly, wish: Wish) -> Started:
    """The run of this name and id: the one there is, or a new one. Refuses params and sources that differ."""
    graph = wish.loaded.graph
    key = key_of(wish)
    if not NAME.fullmatch(key):
        raise UsageError(f"run id '{key}' is not a valid name", hint="letters, digits, '_', '.', '-'; at most 64")
    problem = check_params(graph, wish.params)
    if problem:
        raise UsageError(problem, hint="see `params:` in the workflow", code="BW205")
    found = await assembly.store.find(graph.name, key)
    digest, pinned = pin_all(wish.loaded)
    if found is not None and not wish.fresh:
        return await _known(assembly, wish, found, digest)
    if found is not None:
        await _set_aside(assembly, found)
    assembly.require_room()
    notices = await _others(assembly, graph.name, key)
    row = await _create(assembly, wish, key, pinned, digest, found.generation + 1 if found else 0)
    return Started(row, new=True, notices=tuple(notices))


async def _known(assembly: Assembly, wish: Wish, row: RunRow, digest: str) -> Started:
    source = str(wish.loaded.root)
    if row.source != source:
        raise UsageError(
            f"run '{row.workflow}-{row.run_key}' was started from {row.source}, not from {source}",
            hint="choose another --run-id, or --fresh to set the old run aside",
            code="BW206",
        )
    notices = []
    if wish.params:
        state = await assembly.library.state(row.id)
        if state.params != wish.params:
            raise UsageError(
                f"run '{row.workflow}-{row.run_key}' exists with other params",
                hint="leave --params out to resume it, choose another --run-id, or --fresh",
                code="BW207",
            )
    if row.definition != digest and row.status != "done":
        notices.append(
            f"the files differ from what this run is pinned to; it goes on with the pinned ones "
            f"(adopt: bailiwick runs reload {row.workflow}-{row.run_key}, start over: --fresh)"
        )
    return Started(row, new=False, notices=tuple(notices))


async def _set_aside(assembly: Assembly, row: RunRow) -> None:
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


async def _others(assembly: Assembly, workflow: str, key: str) -> list[str]:
    rows = await assembly.store.runs(workflow=workflow)
    names = [f"{r.workflow}-{r.run_key}" for r in rows if r.run_key != key and r.status != "done" and r.parent is None]
    return [f"unfinished run of the same workflow: {', '.join(names[:5])}"] if names else []


async def _create(
    assembly: Assembly, wish: Wish, key: str, pinned: list[Pinned], digest: str, generation: int
) -> RunRow:
    graph, now = wish.loaded.graph, assembly.clock.now()
    for item in pinned:
        assembly.pins.materialise(item)
        await assembly.store.define(item.digest, item.body)
    uid = run_uid(graph.name, key, generation, f"{host_id()}:{assembly.state_dir}:{now!r}")
    context = {**defaults(graph), **graph.vars, **wish.params}
    sources = {item.digest: str(item.root) for item in pinned}
    created = RunCreated(
        uid,
        uid,
        digest,
        context,
        wish.params,
        key,
        graph.name,
        assembly.workspace(uid),
        app=__version__,
        sources=sources,
        limits=wish.limits,
        agents=wish.agents,
    )
    first, blobs = encode(created, now)
    new = NewRun(
        id=uid, workflow=graph.name, run_key=key, definition=digest, root_id=uid, created_at=now,
        source=str(wish.loaded.root), runs_dir=wish.runs_dir, generation=generation, first=(first,), blobs=blobs,
        summary={"state": "running", "node": graph.start, "steps": 0},
    )  # fmt: skip
    Path(assembly.workspace(uid)).mkdir(parents=True, exist_ok=True, mode=0o700)
    return await assembly.store.create(new)
