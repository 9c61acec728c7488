"""What deciding needs besides the state, and the few shapes that all decisions share. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass

from bailiwick.engine import events as ev
from bailiwick.engine.commands import Command
from bailiwick.engine.graph import Node, Work
from bailiwick.engine.render import Lookup, Rendered, Renderer
from bailiwick.engine.retry_agent import RetryPolicy
from bailiwick.engine.state import Scope, State
from bailiwick.ids import Json

MESSAGE = 2000
"""The most characters of a failure's sentence."""
Action = ev.Event | Command


def plain_policy(_node: Work) -> RetryPolicy:
    """The knobs as they are built in."""
    return RetryPolicy()


@dataclass(frozen=True, slots=True)
class Rules:
    """Templates, how a request is made, which kinds count as agent calls and climb the ladder, and with which knobs."""

    renderer: Renderer
    prepare: Callable[[Node, Lookup], Rendered]
    counted: frozenset[str] = frozenset({"agent"})
    policy: Callable[[Work], RetryPolicy] = plain_policy

    def climbs(self, node: Node) -> bool:
        """Whether failed attempts of this node climb the agent's ladder."""
        return isinstance(node, Work) and node.type in self.counted

    def knobs(self, scope: Scope, node: Work) -> RetryPolicy:
        """The knobs of a visit: those it began with; before it has begun, those of now."""
        fixed = scope.asked.policy if scope.asked is not None and scope.cursor == node.id else {}
        return RetryPolicy.from_json(fixed) if fixed else self.policy(node)

    def units(self, scope: Scope, node: Node) -> tuple[tuple[str, float], ...]:
        """What an attempt of this node sets aside of each budget: a call, money; tokens are only counted."""
        if not isinstance(node, Work) or not self.climbs(node):
            return ()
        return (("agent_calls", 1.0), ("usd", self.knobs(scope, node).reserve_usd), ("tokens", 0.0))


def held_back(state: State, units: tuple[tuple[str, float], ...]) -> bool:
    """Whether a ceiling that was met keeps such an effect from starting."""
    names = (f"{kind}{unit}" for unit, _ in units for kind in ("", "day.", "credential."))
    return "wall" in state.reached or any(name in state.reached for name in names)


def at_visit(state: State, scope: Scope, node: Node, visit: int) -> Lookup:
    """The context as a visit of the node sees it."""

    def lookup(name: str) -> Json:
        if name == "node":
            return {"id": node.id, "visit": visit, "scope": scope.path}
        return state.lookup(scope.path, name)

    return lookup


def fail(scope: Scope, node: Node, visit: int, kind: str, message: str) -> ev.StepFailed:
    """A failure goes the node's `on_error` way, but never past the visit limit or a pure loop."""
    target = None if kind in ("max_visits", "PureLoop") else node.on_error
    return ev.StepFailed(
        scope.path, node=node.id, visit=visit, failure=asdict(ev.Failure(kind, message[:MESSAGE])), next=target
    )
