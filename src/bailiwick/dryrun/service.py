"""Dry runs: as many passes as it takes to go through every edge that stand-in answers can reach."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bailiwick.dryrun.answers import AnswerGenerator
from bailiwick.dryrun.model import DryRunPass, DryRunReport, Way
from bailiwick.dryrun.origins import NameSources
from bailiwick.dryrun.plan import AnswerPlan, Edge, PathFinder
from bailiwick.dryrun.usage import uses_of
from bailiwick.dryrun.values import NONE
from bailiwick.dryrun.walk import DryRunWalk, Trail, with_failing
from bailiwick.engine.graph import Ask, Branch, Graph, Map, Node, Parallel, Set, Wait, Work
from bailiwick.engine.render import Lookup, Rendered, RenderFailed
from bailiwick.engine.rules import Rules
from bailiwick.ids import Json
from bailiwick.lang.params import first_context
from bailiwick.lang.paths import SHARED

if TYPE_CHECKING:
    from bailiwick.lang.load import Loaded
    from bailiwick.lang.templates import Templates

MOST_PASSES = 200
MOST_EVENTS = 50_000
"""The events of one pass; all passes together may have twice as many."""
_TEXT_LIMIT = 1 << 20
_AS_WRITTEN = frozenset({"prompt", "script", "args"})


def dry_run(loaded: Loaded, params: dict[str, Json]) -> DryRunReport:
    """Walk a workflow on stand-in answers and report what was covered. Starts no process and writes nothing."""
    from bailiwick.lang.templates import Templates

    graph = loaded.graph
    templates = Templates(loaded.root, graph.strict, shared=True)
    texts = [templates.source(name) for name, path in loaded.files.items() if _is_text(name, path.stat().st_size)]
    children = {name: child.graph for name, child in loaded.calls.items()}
    free = frozenset(name for name in graph.params or {} if name not in params and name not in graph.vars)
    sources = NameSources(graph, free)
    answers = AnswerGenerator(graph, sources, uses_of(graph, texts), children)
    return _DryRun(graph, params=params, notes=_NotingTemplates(templates), answers=answers, sources=sources).report()


def _is_text(name: str, size: int) -> bool:
    return name.startswith(("prompts/", SHARED)) and size <= _TEXT_LIMIT


@dataclass(slots=True)
class _Found:
    """What the passes so far came to."""

    passes: list[DryRunPass] = field(default_factory=list)
    nodes: set[str] = field(default_factory=set)
    edges: set[Edge] = field(default_factory=set)
    replies: set[tuple[str, str]] = field(default_factory=set)
    aimed: set[Edge] = field(default_factory=set)
    events: int = 0

    @property
    def full(self) -> bool:
        return len(self.passes) >= MOST_PASSES or self.events >= 2 * MOST_EVENTS


class _DryRun:
    """The passes over one workflow."""

    def __init__(
        self,
        graph: Graph,
        params: dict[str, Json],
        notes: _NotingTemplates,
        answers: AnswerGenerator,
        sources: NameSources,
    ) -> None:
        self.graph, self.params, self.notes, self.answers, self.sources = graph, params, notes, answers, sources
        self.compass = PathFinder(graph)
        self.home = self._complete(self.compass.to_an_end())
        self.rules = Rules(notes, notes.prepare)
        self.found = _Found()

    def report(self) -> DryRunReport:
        """Walk to the nearest end, then at each edge not taken yet, then with each choice nobody gave yet."""
        every = self.compass.all_edges()
        self._walk("", self.home, None)
        for edge in every:
            if not self.found.full and edge not in self.found.edges and not self._obstacle(edge):
                self.found.aimed.add(edge)
                self._walk(f"aims at {self._name(edge)}", self._complete(self.compass.to(edge)), edge)
        for node in self.graph.nodes.values():
            if isinstance(node, Ask) and node.id in self.found.nodes:
                self._ask_again(node)
        ways = tuple(self._way(edge) for edge in self._in_file_order(every))
        nodes = {name: name in self.found.nodes for name in self.graph.nodes}
        warnings = [f"'{node}' reads '{name}', which had no value" for node, name in self.notes.missed]
        spent = f"stopped after {len(self.found.passes)} passes with {self.found.events:,} events"
        limits = [spent] if self.found.full else []
        return DryRunReport(
            self.graph.name,
            nodes=nodes,
            ways=ways,
            passes=tuple(self.found.passes),
            warnings=(*warnings, *self.answers.misfits),
            limits=tuple(limits),
        )

    def _ask_again(self, node: Ask) -> None:
        """Give every choice that no pass has given yet, one pass each."""
        for choice in node.choices:
            if (node.id, choice) not in self.found.replies and not self.found.full:
                course = self._complete(self.compass.to((node.id, 0)))
                self._walk(f"answers '{choice}' at {node.id}", course, None, (node.id, choice))

    def _complete(self, course: AnswerPlan) -> AnswerPlan:
        return with_failing(course, self.compass, self.answers)

    def _walk(self, aim: str, course: AnswerPlan, goal: Edge | None, reply: tuple[str, str] | None = None) -> None:
        def fresh(asked: str) -> str | None:
            if reply is not None and reply[0] == asked:
                return reply[1]
            node = self.graph.nodes[asked]
            choices = node.choices if isinstance(node, Ask) else ()
            return next((c for c in choices if (asked, c) not in self.found.replies), None)

        walk = DryRunWalk(
            self.answers,
            rules=self.rules,
            context=self._context(course),
            course=course,
            home=self.home,
            goal=goal,
            fresh=fresh,
        )
        trail = walk.run(MOST_EVENTS)
        self._keep(aim, trail)

    def _keep(self, aim: str, trail: Trail) -> None:
        found = self.found
        found.nodes |= trail.nodes
        found.edges |= trail.edges
        found.replies |= trail.replies
        found.events += trail.steps
        found.passes.append(
            DryRunPass(
                aim,
                outcome=trail.outcome,
                node=trail.node,
                reason=trail.reason,
                path=tuple(trail.path),
                steps=len(trail.path),
            )
        )

    def _context(self, course: AnswerPlan) -> dict[str, Json]:
        """The vars, the params given, and a stand-in for each declared param that is neither."""
        declared = self.graph.params or {}
        made = {name: self.answers.param(name, declared[name], course.wanted) for name in sorted(self.sources.free)}
        return first_context(self.graph, {**made, **self.params})

    def _name(self, edge: Edge) -> str:
        label, target = self.compass.ways[edge[0]][edge[1]]
        return f"{edge[0]} ─ {label} → {target}" if label else f"{edge[0]} → {target}"

    def _in_file_order(self, every: list[Edge]) -> list[Edge]:
        place = {name: number for number, name in enumerate(self.graph.nodes)}
        return sorted(every, key=lambda edge: (place[edge[0]], edge[1]))

    def _way(self, edge: Edge) -> Way:
        label, target = self.compass.ways[edge[0]][edge[1]]
        if edge in self.found.edges:
            return Way(edge[0], label, target)
        return Way(edge[0], label, target, covered=False, why=self._why(edge))

    def _why(self, edge: Edge) -> str:
        if obstacle := self._obstacle(edge):
            return obstacle
        if edge[0] not in self.found.nodes:
            return f"'{edge[0]}' was not reached"
        if edge not in self.found.aimed:
            return "not tried: the limit of passes or events was met"
        return "no stand-in answer that was tried leads here"

    def _obstacle(self, edge: Edge) -> str:
        """Why no answer can bring a walk through an edge, in words; empty where one may."""
        node = self.graph.nodes[edge[0]]
        fails = bool(node.on_error) and edge[1] == len(self.compass.ways[node.id]) - 1
        if isinstance(node, Branch):
            return self._branch_obstacle(node, NONE if fails else edge[1])
        if fails and isinstance(node, Set):
            return "taken only when a template fails"
        if fails and isinstance(node, Ask) and node.declared:
            return "never taken: without an answer the default counts"
        if fails and isinstance(node, Parallel | Map) and not node.fail_fast:
            return "taken only when it cannot start: without fail_fast a failed member is data"
        return ""

    def _branch_obstacle(self, node: Branch, way: int) -> str:
        if not self.answers.pool(node, None).get(way):
            return "no value takes this way: those before it take them all"
        origins = self.sources.of(node.path)
        if all(origin.kind == "fixed" for origin in origins):
            return self.sources.fixed_by(origins[0].giver)
        if not any(self.answers.possible(node, way, origin) for origin in origins if origin.kind != "fixed"):
            return "no answer that the choices or the schema allow takes this way"
        return ""


@dataclass(slots=True)
class _NotingTemplates:
    """The workflow's own templates; what they miss is kept by node, for the report."""

    templates: Templates
    missed: dict[tuple[str, str], None] = field(default_factory=dict)

    def text(self, template: str, lookup: Lookup) -> Rendered:
        return self._noted(self.templates.text(template, lookup), lookup)

    def file(self, name: str, lookup: Lookup) -> Rendered:
        return self._noted(self.templates.file(name, lookup), lookup)

    def value(self, template: Json, lookup: Lookup) -> Rendered:
        return self._noted(self.templates.value(template, lookup), lookup)

    def prepare(self, node: Node, lookup: Lookup) -> Rendered:
        """Render everything an attempt of the node would: arguments first, then the prompt, which sees them by name."""
        if isinstance(node, Wait):
            return self.value(list(node.poll.args) if node.poll else [], lookup)
        if not isinstance(node, Work):
            raise RenderFailed(f"'{node.id}' has nothing to prepare")
        args = self.value(node.spec.get("args") or [], lookup).value
        given: dict[str, Json] = args if isinstance(args, dict) else {}

        def inner(name: str) -> Json:
            return given[name] if name in given else lookup(name)

        rest = {key: value for key, value in node.spec.items() if key not in _AS_WRITTEN}
        self.value(rest, inner)
        prompt = node.spec.get("prompt")
        if isinstance(prompt, str) and node.type == "agent":
            self.file(prompt, inner)
        return Rendered(None)

    def _noted(self, made: Rendered, lookup: Lookup) -> Rendered:
        if made.missing:
            here = str(lookup("node")["id"])
            self.missed.update({(here, name): None for name in made.missing})
        return made
