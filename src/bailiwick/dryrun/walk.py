"""One pass: the real engine walks, stand-in answers take the place of every effect. Nothing is executed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field

from bailiwick.dryrun.answers import AnswerGenerator
from bailiwick.dryrun.plan import AnswerPlan, Edge, PathFinder
from bailiwick.dryrun.values import error_way, way_of
from bailiwick.engine import events as ev
from bailiwick.engine.commands import Command, OpenWait, StartChild, StartEffect
from bailiwick.engine.decide import decide
from bailiwick.engine.evolve import evolve
from bailiwick.engine.graph import Ask, Branch, Call, End, Map, Parallel, Wait, Work
from bailiwick.engine.rules import Rules
from bailiwick.engine.state import State, resolve_path
from bailiwick.ids import Json, child_uid, place

PATIENCE = 3
"""A node visited more often than this in one pass makes it look for an end."""


@dataclass(slots=True)
class Trail:
    """Where a pass went."""

    path: list[str] = field(default_factory=list)
    nodes: set[str] = field(default_factory=set)
    edges: set[Edge] = field(default_factory=set)
    replies: set[tuple[str, str]] = field(default_factory=set)
    outcome: str = "cut"
    node: str = ""
    reason: str = ""
    steps: int = 0


@dataclass(slots=True)
class DryRunWalk:
    """A pass in progress. `course` is followed until `goal` is met, then `home` is."""

    answers: AnswerGenerator
    rules: Rules
    context: dict[str, Json]
    course: AnswerPlan
    home: AnswerPlan
    goal: Edge | None
    fresh: Callable[[str], str | None]
    trail: Trail = field(default_factory=Trail)
    _seen: set[tuple[str, str, int]] = field(default_factory=set)
    _entries: dict[str, dict[str, int]] = field(default_factory=dict)
    _now: float = 0.0

    def run(self, most: int) -> Trail:
        """Walk to an end, or until `most` events have happened."""
        graph = self.answers.graph
        state = State(graphs=lambda _: graph)
        made = ev.RunCreated("dry", "dry", "", self.context, key="dry", workflow=graph.name, workspace="workspace")
        self._apply(state, made)
        while state.status == "running" and self.trail.steps < most:
            actions = decide(state, self.rules)
            if not actions:
                self.trail.reason = "nothing can go on"
                break
            for action in actions:
                self._act(state, action)
        if state.status != "running":
            ended = {"done": "done", "failed": "fail"}[state.status]
            self.trail.outcome = ended if state.ended else "failed"
            self.trail.reason = state.reason
        elif not self.trail.reason:
            self.trail.reason = f"stopped after {most} events"
        self.trail.node = self.trail.node or state.scopes[""].cursor
        return self.trail

    def _act(self, state: State, action: ev.Event | Command) -> None:
        match action:
            case ev.Event():
                self._apply(state, action)
            case StartEffect():
                self._effect(state, action)
            case OpenWait():
                self._wait(state, action)
            case StartChild():
                self._child(state, action)
            case _:
                return  # nothing is in flight, so there is nothing to cancel

    def _effect(self, state: State, do: StartEffect) -> None:
        started = ev.EffectStarted(
            do.scope, node=do.node, visit=do.visit, ordinal=do.ordinal, attempt=do.attempt, key=do.key, entry=do.entry
        )
        self._apply(state, started)
        node = state.graph.nodes[do.node]
        course = self._heading(do.visit)
        if do.node in course.failing:
            failure = ev.Failure(self.answers.failure_kind(course.wanted), "a made-up failure of the dry run")
            self._apply(state, ev.EffectFinished(do.scope, do.key, failure=asdict(failure)))
            return
        declared = node.outputs if isinstance(node, Work | Wait) else ()
        made = self.answers.outputs(do.node, declared, course.wanted)
        self._apply(state, ev.EffectFinished(do.scope, do.key, made))

    def _wait(self, state: State, do: OpenWait) -> None:
        self._now += do.seconds or 0.0
        self._apply(
            state,
            ev.WaitOpened(
                do.scope, node=do.node, visit=do.visit, id=do.id, kind=do.kind, ordinal=do.ordinal, body=do.body
            ),
        )
        node, course = state.graph.nodes[do.node], self._heading(do.visit)
        how, value = "due", None
        if isinstance(node, Ask) and do.kind == "ask":
            if do.node not in course.failing:
                how, value = "answered", self.answers.reply(node, course.wanted, self.fresh(do.node))
                self.trail.replies.add((do.node, str(value)))
        elif isinstance(node, Wait) and do.kind == "timer" and do.node in course.failing:
            how, value = "refused", "a made-up time of the dry run"
        self._apply(state, ev.WaitClosed(do.scope, id=do.id, how=how, value=value, by="dry run"))

    def _child(self, state: State, do: StartChild) -> None:
        name = child_uid(do.key)
        self._apply(
            state, ev.ChildStarted(do.scope, node=do.node, visit=do.visit, key=do.key, child=name, params=do.params)
        )
        node, course = state.graph.nodes[do.node], self._heading(do.visit)
        result: dict[str, Json] = {"status": "failed", "reason": "a made-up failure of the dry run"}
        if do.node not in course.failing and isinstance(node, Call):
            result = {"status": "done", "outputs": self.answers.child(node, course.wanted)}
        self._apply(state, ev.WaitClosed(do.scope, id=name, how="child", value=result, by="dry run"))

    def _heading(self, visit: int) -> AnswerPlan:
        """The course to follow now."""
        met = self.goal is not None and self.goal in self.trail.edges
        return self.home if met or visit > PATIENCE else self.course

    def _apply(self, state: State, event: ev.Event) -> None:
        self._note(state, event)
        self._now += 0.001
        self.trail.steps += 1
        evolve(state, event, self._now)

    def _note(self, state: State, event: ev.Event) -> None:
        """Keep which node was entered and which edge is taken, before the state changes."""
        match event:
            case ev.StepPassed():
                self._enter(event.scope, event.node, event.visit)
                self.trail.edges.add((event.node, self._passed(state, event)))
            case ev.EffectStarted() | ev.WaitOpened() | ev.ChildStarted():
                self._enter(event.scope, event.node, event.visit)
            case ev.ScopesForked():
                self._enter(event.scope, event.node, event.visit)
                self._forked(state, event)
            case ev.StepDone():
                self.trail.edges.add((event.node, self._left(state, event.node)))
            case ev.StepFailed():
                self._enter(event.scope, event.node, event.visit)
                if event.next is not None:
                    self.trail.edges.add((event.node, error_way(state.graph.nodes[event.node])))
            case ev.ScopeEnded() | ev.RunFinished():
                self._ended(state, event)
            case _:
                return

    def _enter(self, scope: str, node: str, visit: int) -> None:
        if (scope, node, visit) not in self._seen:
            self._seen.add((scope, node, visit))
            self.trail.nodes.add(node)
            self.trail.path.append(place(scope, node))

    def _passed(self, state: State, event: ev.StepPassed) -> int:
        node = state.graph.nodes[event.node]
        if not isinstance(node, Branch):
            return 0
        try:
            value = resolve_path(lambda name: state.lookup(event.scope, name), node.path)
        except KeyError:
            return len(node.cases) + len(node.conditions)
        return way_of(node, value)

    def _forked(self, state: State, event: ev.ScopesForked) -> None:
        node = state.graph.nodes[event.node]
        if isinstance(node, Parallel):
            self.trail.edges.update((node.id, number) for number in range(len(node.branches)))
        elif event.members:
            self.trail.edges.add((node.id, 0))

    def _left(self, state: State, name: str) -> int:
        node = state.graph.nodes[name]
        return len(node.branches) if isinstance(node, Parallel) else 1 if isinstance(node, Map) else 0

    def _ended(self, state: State, event: ev.ScopeEnded | ev.RunFinished) -> None:
        path = event.scope if isinstance(event, ev.ScopeEnded) else ""
        scope = state.scopes[path]
        joins = scope.parent is not None and scope.parent.fork is not None and self._joins(state, path)
        if isinstance(state.graph.nodes[scope.cursor], End) and not joins:
            self._enter(path, scope.cursor, scope.visits.get(scope.cursor, 0) + 1)
        if not path:
            self.trail.node = scope.cursor

    def _joins(self, state: State, path: str) -> bool:
        """Whether a member stands at its construct's join: that node is the parent's to enter."""
        scope = state.scopes[path]
        if scope.parent is None or scope.parent.fork is None:
            return False
        construct = state.graph.nodes[scope.parent.fork.node]
        return isinstance(construct, Parallel | Map) and construct.join == scope.cursor


def with_failing(course: AnswerPlan, compass: PathFinder, answers: AnswerGenerator) -> AnswerPlan:
    """A course on which a member of a parallel fails where a branch on its status is wanted to see that."""
    failing = set(course.failing)
    for (kind, giver), steers in answers.steers.items():
        if kind != "status":
            continue
        construct, _, member = giver.partition(".")
        inside = answers.sources.inside.get((construct, member), set())
        for steer in steers:
            values = answers.pool(steer.branch, {"enum": ["done", "failed"]}).get(
                course.wanted.get(steer.branch.id, -2), []
            )
            if "failed" in values and "done" not in values:
                failing |= compass.failing_in(construct, inside)
    return AnswerPlan(course.wanted, frozenset(failing))
