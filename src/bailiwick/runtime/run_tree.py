"""Parents and children: creating a called workflow's run, telling a parent of an end, and the budgets of a tree."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bailiwick.engine.commands import StartChild
from bailiwick.engine.graph import Definition, Node
from bailiwick.engine.state import State
from bailiwick.engine.worktime import told_spans
from bailiwick.errors import UsageError
from bailiwick.ids import Json, child_uid
from bailiwick.journal.rows import Message, NewRun, RunRow
from bailiwick.runtime import ceilings
from bailiwick.runtime.creation import NewRunPlace, created_run
from bailiwick.runtime.history import RunReader

Purse = Callable[[Node, dict[str, Json]], tuple[str, dict[str, float | None]]]
"""The credential that a node's turns use in a run with this choice of agents, and its ceilings per day; "" for none."""


def no_purse(_node: Node, _chosen: dict[str, Json]) -> tuple[str, dict[str, float | None]]:
    """Where no credential has a ceiling."""
    return "", {}


@dataclass(frozen=True, slots=True)
class ChildRun:
    """A child run to create, or why there is none."""

    id: str
    run: NewRun | None = None
    problem: str = ""


@dataclass(slots=True)
class RunTree:
    """One run's place in its tree. `roots` are the ceilings of the root run, `daily` the daily budget."""

    row: RunRow
    definition: Definition
    library: RunReader
    workspaces: Callable[[str], str]
    roots: dict[str, float | None]
    daily: dict[str, float | None]
    purse: Purse

    async def child(self, call: StartChild, state: State, now: float) -> ChildRun:
        """The child run of a call, with the same id each time; its params are checked first."""
        uid = child_uid(call.key)
        digest = self.definition.calls[call.workflow]
        await self.library.define(digest)
        graph = self.library.definitions.graph(digest)
        place = NewRunPlace(
            id=uid,
            key=f"{self.row.run_key[:48]}-{uid[:8]}",
            root=self.row.root_id,
            workspace=self.workspaces(uid),
            definition=digest,
            source=str(state.sources.get(digest, "")),
            runs_dir=self.row.runs_dir,
            parent=self.row.id,
            depth=state.depth + 1,
            priority=self.row.priority,
            sources=state.sources,
            agents=state.agents,
        )
        try:
            return ChildRun(uid, created_run(graph, call.params, place, now))
        except UsageError as error:
            return ChildRun(uid, problem=error.what)

    def ended(self, state: State, cost: dict[str, Json], now: float) -> list[Message]:
        """What the parent hears when this run is over: its result, when it worked and what that cost."""
        if self.row.parent is None:
            return []
        outputs: dict[str, Json] = {}
        if state.status == "done":
            names = set(state.names(""))
            outputs = {key: state.lookup("", key) for key in state.graph.returns if key in names}
        result = {"status": state.status, "outputs": outputs, "reason": state.reason, "degraded": state.degraded}
        dedupe = f"child:{self.row.id}:{state.ended_at}"
        body = {"child": self.row.id, "result": result, "worked": told_spans(state.worked), "cost": cost}
        return [Message(self.row.parent, kind="child_ended", dedupe=dedupe, body=body, at=now)]

    def stop(self, child: str, now: float) -> Message:
        """Tell a child to stop now."""
        return Message(
            child,
            kind="stop",
            dedupe=f"parent-stop:{self.row.epoch}:{now}",
            body={"now": True, "by": "its parent"},
            at=now,
        )

    def resume(self, child: str, now: float) -> Message:
        """Tell a child to go on."""
        return Message(
            child, kind="resume", dedupe=f"parent-resume:{self.row.epoch}:{now}", body={"by": "its parent"}, at=now
        )

    def scopes(self, today: str) -> list[str]:
        """The ledger scopes an effect of this run counts against: its tree, itself, the day."""
        return [f"run:{scope}" for scope in dict.fromkeys((self.row.root_id, self.row.id))] + [f"day:{today}"]

    def time(self, state: State) -> float | None:
        """The most seconds this run may work; a called one never more than its root had left when it was taken."""
        own = ceilings.limit(state, "wall")
        left = None if self.row.parent is None or "wall" in state.limits else self.roots.get("wall")
        return min((most for most in (own, left) if most is not None), default=None)

    def limits(self, unit: str, node: Node, state: State, today: str) -> list[tuple[str, float | None]]:
        """Each scope with its ceiling: the root's, this run's own besides, the daily budget, the credential's."""
        own = ceilings.limit(state, unit)
        ranks = {f"run:{self.row.root_id}": self.roots.get(unit), f"run:{self.row.id}": own}
        ranks[f"day:{today}"] = state.limits.get(f"day.{unit}", self.daily.get(unit))
        name, theirs = self.purse(node, state.agents)
        if name:
            ranks[f"credential:{name}:{today}"] = state.limits.get(f"credential.{unit}", theirs.get(unit))
        return list(ranks.items())
