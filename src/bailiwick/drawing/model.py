"""A workflow as something to draw: shapes, lines and areas, the same for every format. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum

from bailiwick.engine.graph import Ask, Branch, Call, Graph, Map, Node, Parallel, Set, Wait, Work, edges, kind_of

LABEL_LIMIT = 48
FORMATS = ("mermaid", "dot", "svg", "ascii")


class Stroke(Enum):
    """What a line stands for."""

    FLOW = "flow"
    ERROR = "error"
    ENTRY = "entry"
    JOIN = "join"


@dataclass(frozen=True, slots=True)
class DrawnNode:
    """One node: its kind decides the form, `detail` says in a few words what it does. `area` 0 is the run itself."""

    id: str
    kind: str
    detail: str
    area: int


@dataclass(frozen=True, slots=True)
class DrawnEdge:
    """One way from a node to another."""

    source: str
    target: str
    label: str
    stroke: Stroke


@dataclass(frozen=True, slots=True)
class Area:
    """The nodes of one scope of a parallel or map; `member` is the branch's name, or how often a map's body runs."""

    number: int
    construct: str
    member: str
    parent: int
    entry: str
    join: str

    @property
    def title(self) -> str:
        """What stands above it."""
        return visible(f"{self.construct} / {self.member}", 80)


@dataclass(slots=True)
class Drawing:
    """Everything there is to draw, in the order of the file; `areas[0]` is the run itself.

    `hidden` holds the lines from a construct to its join that lines of its members make superfluous on paper.
    """

    name: str
    start: str
    description: str
    shapes: dict[str, DrawnNode] = field(default_factory=dict)
    lines: list[DrawnEdge] = field(default_factory=list)
    areas: list[Area] = field(default_factory=list)
    hidden: set[int] = field(default_factory=set)

    def shown(self) -> list[DrawnEdge]:
        """The lines that are drawn by formats that lay nodes out freely."""
        return [line for number, line in enumerate(self.lines) if number not in self.hidden]

    def leaves(self, line: DrawnEdge) -> bool:
        """Whether a line ends a scope by reaching its construct's join."""
        area = self.areas[self.shapes[line.source].area]
        return area.number > 0 and area.join == line.target and line.source != area.construct

    def nested(self) -> Iterator[tuple[str, DrawnNode | Area | None]]:
        """The shapes and areas as they lie in each other, each with its indent; None ends an area.

        Without recursion: nesting may be as deep as the graph is long.
        """
        inside: dict[int, list[DrawnNode]] = {}
        for shape in self.shapes.values():
            inside.setdefault(shape.area, []).append(shape)
        below: dict[int, list[int]] = {}
        for area in self.areas[1:]:
            below.setdefault(area.parent, []).append(area.number)
        stack = [(0, 1)]
        while stack:
            number, depth = stack.pop()
            pad = "  " * min(depth, 20)
            if number < 0:
                yield pad, None
                continue
            if number:
                yield pad, self.areas[number]
                stack.append((-1, depth))
                pad += "  "
            yield from ((pad, shape) for shape in inside.get(number, ()))
            stack += [(child, depth + 1 if number else depth) for child in reversed(below.get(number, []))]


def picture(graph: Graph) -> Drawing:
    """The picture of a graph."""
    areas, owner = _areas(graph)
    made = Drawing(visible(graph.name, 80), graph.start, visible(graph.description, 200), areas=areas)
    for node in graph.nodes.values():
        made.shapes[node.id] = DrawnNode(node.id, kind_of(node), _detail(node), owner.get(node.id, 0))
        made.lines += _lines(node)
    reached = {(areas[owner.get(line.source, 0)].construct, line.target) for line in made.lines}
    made.hidden = {
        number
        for number, line in enumerate(made.lines)
        if line.stroke is Stroke.JOIN and (line.source, line.target) in reached
    }
    return made


def visible(text: str, limit: int = LABEL_LIMIT) -> str:
    """Text as one line of characters that can be seen, cut to a length; the rest is left to each format's escapes."""
    line = " ".join(text.split()) if not text.isprintable() else text
    shown = line if line.isprintable() else "".join(c if c.isprintable() else "\ufffd" for c in line)
    return shown if len(shown) <= limit else shown[: limit - 1].rstrip() + "…"


def _areas(graph: Graph) -> tuple[list[Area], dict[str, int]]:
    """The scopes and the one each node is in; the join belongs to the construct's own, so it is claimed first."""
    areas = [Area(0, construct="", member="", parent=0, entry=graph.start, join="")]
    owner: dict[str, int] = {graph.start: 0}
    stack = [graph.start]
    while stack:
        node = graph.nodes.get(stack.pop())
        if node is None:
            continue
        here = owner[node.id]
        inner = _entries(node)
        entries = {entry for _, entry in inner}
        for target in [target for _, target in edges(node) if target not in entries]:
            if target not in owner:
                owner[target] = here
                stack.append(target)
        for member, entry in inner:
            if entry not in owner:
                owner[entry] = len(areas)
                areas.append(
                    Area(len(areas), construct=node.id, member=member, parent=here, entry=entry, join=_join_of(node))
                )
                stack.append(entry)
    return areas, owner


def _entries(node: Node) -> list[tuple[str, str]]:
    match node:
        case Parallel():
            return [(name, entry) for name, entry in node.branches.items() if entry != node.join]
        case Map():
            return [(f"each {node.as_} of {node.over}", node.body)] if node.body != node.join else []
        case _:
            return []


def _join_of(node: Node) -> str:
    return node.join if isinstance(node, Parallel | Map) else ""


def _lines(node: Node) -> list[DrawnEdge]:
    ways = edges(node)
    found: list[DrawnEdge] = []
    for position, (label, target) in enumerate(ways):
        stroke = Stroke.FLOW
        if node.on_error and position == len(ways) - 1:
            stroke = Stroke.ERROR
        elif isinstance(node, Parallel | Map):
            last = len(ways) - (2 if node.on_error else 1)
            stroke = Stroke.JOIN if position == last else Stroke.ENTRY
        words = visible(label) or ('""' if isinstance(node, Branch) else "")
        found.append(DrawnEdge(node.id, target, words, stroke))
    return found


def _detail(node: Node) -> str:
    """A few words on what the node does, never more than a label holds."""
    match node:
        case Work():
            words = node.spec.get("script") or node.spec.get("prompt") or node.spec.get("skill") or ""
        case Branch():
            words = node.path
        case Set():
            words = ", ".join(node.values)
        case Call():
            words = node.workflow
        case Map():
            words = f"each {node.as_} of {node.over}"
        case Wait():
            words = node.poll.script if node.poll else node.until or f"for {node.seconds}"
        case Ask():
            words = node.question
        case _:
            words = ""
    return visible(str(words))
