"""The tools about runs: start what the operator listed, look at it, cancel it. Nothing here decides an approval."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from bailiwick.config.variables import Environment
from bailiwick.engine.state import State
from bailiwick.errors import NotFound, NotReady, UsageError
from bailiwick.ids import NAME, Json
from bailiwick.journal.rows import RunFilter, RunRow, WaitFilter
from bailiwick.lang.load import Loaded, load
from bailiwick.processes.owner import current_owner
from bailiwick.runs import documents as doc
from bailiwick.runs.control import Control
from bailiwick.runs.find import name_of
from bailiwick.runs.query import overview, standing, state_alone
from bailiwick.runs.start import StartRequest, start, starting_limits
from bailiwick.runtime.supervise import Supervisor
from bailiwick.service.mcp_resources import SCHEME, exact_run
from bailiwick.service.mcp_tools import ToolRequest
from bailiwick.workflows.service import finder, named, own_shelves

if TYPE_CHECKING:
    from bailiwick.app.service import App

NOT_LISTED = "BW603"
NO_SANDBOX = "BW604"
INSIDE_A_RUN = "BW605"
NOT_OURS = "BW606"
STARTED_BY: Final = "started_by"
MARK: Final = "mcp:"
LARGEST: Final = 200_000
"""Characters of a run's values that are given; more stay in its files."""
_NUDGE = 0.05


@dataclass(frozen=True, slots=True)
class RunPermissions:
    """What clients may start: workflows that the operator listed by name, each for so many dollars at most."""

    workflows: tuple[str, ...] = ()
    usd: float | None = None


@dataclass(frozen=True, slots=True)
class RunTools:
    """Answers the tools about runs. `walk` sees to it that a started run is walked, here or in the background."""

    app: App
    licence: RunPermissions
    walk: Callable[[RunRow], None]
    environment: Environment

    async def __call__(self, asked: ToolRequest) -> dict[str, Json]:
        """The document of one call. Raises `BailiwickError` with what to change."""
        verbs: dict[str, Callable[[ToolRequest], Awaitable[dict[str, Json]]]] = {
            "run_start": self.start,
            "run_status": self.status,
            "run_result": self.result,
            "run_cancel": self.cancel,
            "approvals_list": self.approvals,
            "proposals_list": self.proposals,
        }
        return await verbs[asked.tool.name](asked)

    async def start(self, asked: ToolRequest) -> dict[str, Json]:
        """Start a listed workflow, unattended, in the sandbox, within the budget for clients; gives its id at once."""
        if self.environment.inside_run():
            what = "a run starts no other runs over MCP"
            raise UsageError(what, hint="use a `call` node in its workflow", code=INSIDE_A_RUN)
        app = self.app
        loaded = self._listed(str(asked.arguments["workflow"]))
        await self._require_sandbox()
        _check_agents(app, loaded)
        limits = within(starting_limits(app.config, loaded.graph.budget), self.licence.usd)
        key = f"mcp-{secrets.token_hex(4)}"
        start_request = StartRequest(
            loaded,
            dict(asked.arguments.get("params") or {}),
            key,
            str(app.config.runs_dir),
            limits=limits,
            agents={STARTED_BY: asked.by},
        )
        self._note(asked.by, start_request)
        started = await start(app.runtime, start_request)
        self.walk(started.row)
        return {
            "run_id": started.row.id,
            "run": name_of(started.row),
            "status": "running",
            STARTED_BY: asked.by,
            "limits": limits,
            "notices": list(started.notices),
            "files": f"{SCHEME}runs/{started.row.id}",
        }

    async def status(self, asked: ToolRequest) -> dict[str, Json]:
        """Where a run is, what it waits for, what it has spent."""
        row, state = await self._found(asked)
        runtime = self.app.runtime
        tree = await runtime.store.runs(RunFilter(root_id=row.root_id))
        found = standing(row, tree, current_owner("bailiwick"), runtime.clock.now())
        waits = [doc.wait_document(wait) for wait in await runtime.store.waits(WaitFilter(run_id=row.id))]
        about = doc.standing_document(found)
        return {
            **self._head(row, state, found.state),
            **about,
            "run_id": row.id,
            "waits": waits,
            **await self._spent(row),
        }

    async def result(self, asked: ToolRequest) -> dict[str, Json]:
        """What a run came to; `over` says whether that is the end of it."""
        row, state = await self._found(asked)
        values = doc.plain(state.context())
        size = len(json.dumps(values, ensure_ascii=False))
        told = values if size <= LARGEST else None
        note = {} if told is not None else {"left_out": f"the values are {size:,} characters long; read context.json"}
        word = state_alone(row, current_owner("bailiwick"), self.app.runtime.clock.now())
        over = row.status in ("done", "failed")
        reason = str((row.summary or {}).get("reason") or "") if isinstance(row.summary, dict) else ""
        return {**self._head(row, state, word), "over": over, "reason": reason, "context": told, **note}

    async def cancel(self, asked: ToolRequest) -> dict[str, Json]:
        """Stop a run that a client started; what runs now is ended. A person can let it go on."""
        row, state = await self._found(asked)
        if not started_by(state).startswith(MARK):
            what = f"run '{name_of(row)}' was not started over MCP"
            raise UsageError(what, hint="a person can stop it: bailiwick runs stop", code=NOT_OURS)
        if row.status != "ready":
            return {**self._head(row, state, row.status), "note": "it was over or stopped already"}
        runtime = self.app.runtime
        beside = Supervisor(lambda _name, _error: None)
        beside.start(_nudge_forever(runtime.nudge), "nudges")
        try:
            outcome = await Control(runtime, asked.by).stop(row, now=True)
        finally:
            await beside.close()
        note = outcome.refused or ("" if outcome.taken else "its worker has not answered yet; the request is recorded")
        return {
            **self._head(outcome.row, state, "stopping" if outcome.row.status == "ready" else outcome.row.status),
            "note": note,
        }

    async def approvals(self, _asked: ToolRequest) -> dict[str, Json]:
        """What waits for a person."""
        runtime = self.app.runtime
        found = await overview(runtime.store, current_owner("bailiwick"), runtime.clock.now())
        return {"approvals": [doc.question_document(one) for one in found.questions]}

    async def proposals(self, _asked: ToolRequest) -> dict[str, Json]:
        """Changes that wait for people."""
        from bailiwick.proposals.store import ProposalStore

        found = await ProposalStore(self.app.store, self.app.config.paths.state).all()
        return {"proposals": [one.to_json() for one in found if one.live]}

    def _listed(self, name: str) -> Loaded:
        """A workflow by the operator's word: never one of a repository, which an agent could have written."""
        allowed = self.licence.workflows
        if name not in allowed or not NAME.fullmatch(name):
            listed = ", ".join(allowed) or "none"
            hint = f"listed are: {listed}; the operator can add one: bailiwick config set mcp.workflows"
            raise NotFound(f"'{name[:64]}' is not a workflow that clients may start", hint=hint, code=NOT_LISTED)
        places = own_shelves(self.app.config.paths.config)
        known = named(places)
        if name not in known:
            hint = f"put it into {places[0].path}: workflows of repositories are not started over MCP"
            raise NotFound(f"there is no workflow '{name}'", hint=hint, code=NOT_LISTED)
        return load(known[name][1], finder(places))

    async def _require_sandbox(self) -> None:
        sandboxes = await self.app.sandboxes()
        if sandboxes.sandbox.name == "none":
            hint = "set sandbox.profile to auto, with bubblewrap or a container engine installed"
            raise NotReady("runs are started over MCP only with a sandbox", hint=hint, code=NO_SANDBOX)

    def _note(self, by: str, start_request: StartRequest) -> None:
        from bailiwick.audit.service import append

        data = {
            "workflow": start_request.loaded.graph.name,
            "run_id": start_request.key,
            "params": sorted(start_request.params),
            "limits": start_request.limits,
        }
        append(self.app.config.paths.state, "run.started", data, actor=by, clock=self.app.runtime.clock)

    async def _found(self, asked: ToolRequest) -> tuple[RunRow, State]:
        hint = "give the run_id that run_start gave"
        row = await exact_run(self.app.runtime.store, str(asked.arguments["run_id"]), hint)
        return row, await self.app.runtime.library.state(row.id)

    def _head(self, row: RunRow, state: State, status: str) -> dict[str, Json]:
        head = {"run_id": row.id, "run": name_of(row), "status": status, STARTED_BY: started_by(state) or None}
        return {**head, "files": f"{SCHEME}runs/{row.id}"}

    async def _spent(self, row: RunRow) -> dict[str, Json]:
        spent: dict[str, float] = {}
        for one in await self.app.runtime.store.spend(f"run:{row.root_id}"):
            spent[one.unit] = spent.get(one.unit, 0.0) + (one.reserved if one.settled is None else one.settled)
        return {"spent": spent}


def within(limits: dict[str, Json], most: float | None) -> dict[str, Json]:
    """The limits with dollars never above what clients may spend."""
    own = limits.get("usd")
    return limits if most is None else {**limits, "usd": most if own is None else min(own, most)}


def started_by(state: State) -> str:
    """Who started a run, where that was recorded."""
    return str(state.agents.get(STARTED_BY) or "")


def _check_agents(app: App, loaded: Loaded) -> None:
    """Refuse a workflow whose agents can't be used, before anything starts."""
    from bailiwick.engine.graph import Work

    agents = [node for node in loaded.graph.nodes.values() if isinstance(node, Work) and node.type == "agent"]
    if not agents:
        return
    from bailiwick.agents.ready import require_agents

    settings = app.agents.settings()
    require_agents(agents, settings, lambda node: app.agents.backends(node, {}, settings))


async def _nudge_forever(nudge: Callable[[], None]) -> None:
    """A worker of this very process hears of a message only when it is told."""
    while True:
        nudge()
        await asyncio.sleep(_NUDGE)
