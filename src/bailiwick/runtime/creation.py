"""Creating a run. Whichever way it begins (started, called, forked), this is where its first event and row are made."""

from __future__ import annotations

from dataclasses import dataclass, field

from bailiwick import __version__
from bailiwick.engine import events as ev
from bailiwick.engine.graph import Graph
from bailiwick.errors import UsageError
from bailiwick.ids import Json
from bailiwick.journal.codec import encode
from bailiwick.journal.rows import NewRun
from bailiwick.lang.params import check_params, check_values, first_context


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRunPlace:
    """Where a new run stands: everything about it that its definition and its params do not say."""

    id: str
    key: str
    root: str
    workspace: str
    definition: str
    source: str = ""
    runs_dir: str = ""
    parent: str | None = None
    depth: int = 0
    priority: int = 0
    generation: int = 0
    sources: dict[str, Json] = field(default_factory=dict)
    limits: dict[str, Json] = field(default_factory=dict)
    agents: dict[str, Json] = field(default_factory=dict)


def created_run(graph: Graph, params: dict[str, Json], place: NewRunPlace, now: float) -> NewRun:
    """A run of a definition with these params. Raises `UsageError` where the params do not fit the definition."""
    refuse(check_params(graph, params))
    first = ev.RunCreated(
        place.id,
        root=place.root,
        definition=place.definition,
        context=first_context(graph, params),
        params=params,
        key=place.key,
        workflow=graph.name,
        workspace=place.workspace,
        parent=place.parent,
        depth=place.depth,
        app=__version__,
        sources=place.sources,
        limits=place.limits,
        agents=place.agents,
    )
    return _row(graph.name, graph.start, first=first, place=place, now=now)


def forked_run(
    graph: Graph, values: dict[str, Json], origin: tuple[str, int, str], place: NewRunPlace, now: float
) -> NewRun:
    """A run that shares the journal of `origin` (its id, up to which event, before which node).

    `values` are set on top of the shared context. Raises `UsageError` where one does not fit the params it names.
    """
    refuse(check_values(graph, values))
    run, upto, node = origin
    first = ev.Forked(
        run, upto=upto, as_run=place.id, values=values, key=place.key, workspace=place.workspace, limits=place.limits
    )
    return _row(graph.name, node, first=first, place=place, now=now)


def refuse(problem: str) -> None:
    """Raise `UsageError` with the problem, if there is one."""
    if problem:
        raise UsageError(problem, hint="see `params:` in the workflow", code="BW205")


def _row(workflow: str, node: str, first: ev.Event, place: NewRunPlace, now: float) -> NewRun:
    event, blobs = encode(first, now)
    return NewRun(
        id=place.id,
        workflow=workflow,
        run_key=place.key,
        definition=place.definition,
        root_id=place.root,
        created_at=now,
        source=place.source,
        runs_dir=place.runs_dir,
        parent=place.parent,
        priority=place.priority,
        generation=place.generation,
        first=(event,),
        blobs=blobs,
        summary={"state": "running", "node": node, "steps": 0},
    )
