"""Where a value that a branch looks at comes from, and so whose answer makes it go a certain way. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from bailiwick.drawing.model import picture
from bailiwick.engine.graph import Ask, Call, Graph, Map, Output, Parallel, Set, Wait, Work

_LONE = re.compile(r"\s*\{\{\s*([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)\s*\}\}\s*")
DEEPEST = 8


@dataclass(frozen=True, slots=True)
class ValueSource:
    """A part of a value and who gives it: `kind` is output, ask, call, param, error, status, item or fixed."""

    kind: str
    giver: str
    path: tuple[str, ...]


@dataclass(slots=True)
class NameSources:
    """Who writes which name of the context."""

    graph: Graph
    free: frozenset[str]
    outputs: dict[str, list[tuple[str, Output]]] = field(default_factory=dict)
    copies: dict[str, list[str]] = field(default_factory=dict)
    computed: dict[str, list[str]] = field(default_factory=dict)
    items: dict[str, list[str]] = field(default_factory=dict)
    inside: dict[tuple[str, str], set[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for node in self.graph.nodes.values():
            if isinstance(node, Work | Wait):
                for output in node.outputs:
                    self.outputs.setdefault(output.key, []).append((node.id, output))
            elif isinstance(node, Set):
                for key, value in node.values.items():
                    lone = _LONE.fullmatch(value) if isinstance(value, str) else None
                    if lone:
                        self.copies.setdefault(key, []).append(lone[1])
                    else:
                        self.computed.setdefault(key, []).append(node.id)
            elif isinstance(node, Map):
                self.items.setdefault(node.as_, []).append(node.over)
        drawn = picture(self.graph)
        names = {area.number: (area.construct, area.member) for area in drawn.areas[1:]}
        for shape in drawn.shapes.values():
            if shape.area:
                self.inside.setdefault(names[shape.area], set()).add(shape.id)

    def of(self, path: str, depth: int = 0) -> list[ValueSource]:
        """Every origin of the value at a dot path that an answer can decide, and what fixes the rest."""
        head, *rest = path.split(".")
        found: list[ValueSource] = []
        if depth > DEEPEST:
            return found
        found += [ValueSource("output", node, (head, *rest)) for node, _ in self.outputs.get(head, ())]
        for source in self.copies.get(head, ()):
            found += self.of(".".join((source, *rest)), depth + 1)
        node = self.graph.nodes.get(head)
        if isinstance(node, Ask):
            found.append(ValueSource("ask", head, tuple(rest)))
        elif isinstance(node, Call):
            found.append(ValueSource("call", head, tuple(rest)))
        elif isinstance(node, Parallel):
            found += self._of_member(head, rest, depth)
        if head in self.items:
            found.append(ValueSource("item", head, tuple(rest)))
        if head == "error":
            found.append(ValueSource("error", "", tuple(rest)))
        if head in self.free:
            found.append(ValueSource("param", head, tuple(rest)))
        return found or [ValueSource("fixed", head, tuple(rest))]

    def _of_member(self, construct: str, rest: list[str], depth: int) -> list[ValueSource]:
        """`fan.a.status` is decided by a failure in the branch, `fan.a.outputs.x` by who writes `x` there."""
        if len(rest) < 2:
            return []
        member, what, *further = rest
        inside = self.inside.get((construct, member), set())
        if what == "status":
            return [ValueSource("status", f"{construct}.{member}", ())]
        if what == "outputs" and further:
            return [o for o in self.of(".".join(further), depth + 1) if o.giver in inside or o.kind == "fixed"]
        return []

    def fixed_by(self, name: str) -> str:
        """What decides a name that no answer decides, in words."""
        if name in self.computed:
            return f"'{name}' is computed by {', '.join(self.computed[name][:3])}"
        if name in self.graph.vars:
            return f"'{name}' is set in vars: give another value with --params"
        return f"nothing gives '{name}' a value that an answer could choose"
