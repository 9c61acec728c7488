"""Where a pass wants to go: for every branch the way nearest to a goal, and which nodes have to fail. Pure."""

from __future__ import annotations

import heapq
from collections import deque
from dataclasses import dataclass, field

from bailiwick.drawing.model import picture
from bailiwick.dryrun.values import NONE
from bailiwick.engine.graph import Branch, Call, End, Graph, Map, Node, Parallel, Work, edges

Edge = tuple[str, int]
"""A node and the position of one of its ways in `edges(node)`."""
FAR = 1 << 30
TROUBLE = 20_000
"""How much a failure counts, in steps."""
DETOUR = 1_000_000
"""How much farther a `fail` node counts than a `terminal`."""


@dataclass(frozen=True, slots=True)
class AnswerPlan:
    """What answers should bring about."""

    wanted: dict[str, int]
    failing: frozenset[str]


@dataclass(slots=True)
class PathFinder:
    """Finds courses through one graph."""

    graph: Graph
    ways: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    into: dict[str, list[tuple[str, int]]] = field(default_factory=dict)
    members: dict[str, list[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for node in self.graph.nodes.values():
            self.ways[node.id] = edges(node)
            for way, (_, target) in enumerate(self.ways[node.id]):
                self.into.setdefault(target, []).append((node.id, self._cost(node, way)))
        drawn = picture(self.graph)
        for shape in drawn.shapes.values():
            if shape.area:
                self.members.setdefault(drawn.areas[shape.area].construct, []).append(shape.id)

    def all_edges(self) -> list[Edge]:
        """Every edge, in the order of a walk from the start, so that nearer ones are aimed at first."""
        seen = {self.graph.start}
        ahead = deque([self.graph.start])
        names: list[str] = []
        while ahead:
            names.append(ahead.popleft())
            for _, target in self.ways[names[-1]]:
                if target not in seen:
                    seen.add(target)
                    ahead.append(target)
        names += [name for name in self.graph.nodes if name not in seen]
        return [(name, way) for name in names for way in range(len(self.ways[name]))]

    def to_an_end(self) -> AnswerPlan:
        """The course to the nearest end, `terminal` before `fail`."""
        ends = {n.id: DETOUR if n.failed else 0 for n in self.graph.nodes.values() if isinstance(n, End)}
        return self._course(self._distances(ends, inwards=False), None)

    def to(self, edge: Edge) -> AnswerPlan:
        """The course to an edge and through it."""
        return self._course(self._distances({edge[0]: 0}, inwards=True), edge)

    def _distances(self, goals: dict[str, int], *, inwards: bool) -> dict[str, int]:
        """Steps to the nearest goal; unless `inwards`, the end of a scope is no end for its construct."""
        found = dict(goals)
        ahead = [(distance, name) for name, distance in goals.items()]
        heapq.heapify(ahead)
        while ahead:
            distance, name = heapq.heappop(ahead)
            if distance > found[name]:
                continue
            for source, cost in self.into.get(name, ()):
                if not inwards and self._enters(source, name):
                    continue
                if found.get(source, FAR) > distance + cost:
                    found[source] = distance + cost
                    heapq.heappush(ahead, (distance + cost, source))
        return found

    def _is_branch(self, name: str) -> bool:
        return isinstance(self.graph.nodes[name], Branch)

    def _cost(self, node: Node, way: int) -> int:
        """1 for an ordinary way; more for `on_error`, so that nothing fails where success leads there as well."""
        return TROUBLE if node.on_error and way == len(self.ways[node.id]) - 1 else 1

    def _enters(self, source: str, target: str) -> bool:
        node = self.graph.nodes[source]
        return isinstance(node, Parallel | Map) and target not in (node.join, node.on_error)

    def _course(self, distances: dict[str, int], through: Edge | None) -> AnswerPlan:
        wanted: dict[str, int] = {through[0]: NONE} if through and self._is_branch(through[0]) else {}
        failing: set[str] = set()
        for node in self.graph.nodes.values():
            ways = self.ways[node.id]
            if not ways:
                continue
            if through is not None and node.id == through[0]:
                best = through[1]
            elif node.id in distances:
                costs = [distances.get(target, FAR) + self._cost(node, way) for way, (_, target) in enumerate(ways)]
                best = costs.index(min(costs))
            else:
                continue
            fails = self._cost(node, best) > 1
            if isinstance(node, Branch):
                wanted[node.id] = NONE if fails else best
            elif fails:
                failing.update(self._culprits(node))
        return AnswerPlan(wanted, frozenset(failing))

    def _culprits(self, node: Node) -> list[str]:
        """Who has to fail so that a node does."""
        if not isinstance(node, Parallel | Map):
            return [node.id]
        inside = [self.graph.nodes[name] for name in self.members.get(node.id, ())]
        return [n.id for n in inside if isinstance(n, Work | Call) and not n.on_error]

    def failing_in(self, construct: str, inside: set[str]) -> frozenset[str]:
        """Who has to fail so that a branch of a parallel does."""
        return frozenset(name for name in self._culprits(self.graph.nodes[construct]) if name in inside)
