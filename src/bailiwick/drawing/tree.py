"""Draws a picture as indented text: what follows stands below, alternatives are indented, loops point back."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass

from bailiwick.drawing.model import Drawing, DrawnEdge, Stroke, visible
from bailiwick.drawing.order import NodeOrder, dominators, order

DEEPEST = 10
"""Alternatives nested deeper than this are drawn further below, from the left margin on."""


@dataclass(frozen=True, slots=True)
class Pen:
    """The characters a tree is drawn with."""

    tee: str
    corner: str
    bar: str
    flow: str
    entry: str
    error: str
    to: str
    back: str
    cut: str
    marks: dict[str, str]
    mark: str


BOXES = Pen(
    "├", "└", "│", "─", "═", "┄", "→", "↩", "…",
    {"branch": "◆", "terminal": "■", "fail": "✗", "parallel": "≡", "map": "≡", "wait": "◷", "ask": "?", "set": "="},
    "●",
)  # fmt: skip
PLAIN = Pen(
    "|", "`", "|", "-", "=", ".", "->", "<-", "...",
    {"branch": "+", "terminal": "#", "fail": "!", "parallel": "=", "map": "=", "wait": "~", "ask": "?", "set": ":"},
    "*",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Item:
    """Something still to be written: a node with what follows it, or a line of text."""

    head: str
    rest: str
    depth: int
    node: str = ""


def draw_tree(drawn: Drawing, plain: bool = False, width: int = 80) -> str:
    """The text; with `plain` nothing but ASCII, so that every terminal and log can show it."""
    pen = PLAIN if plain else BOXES
    title = drawn.name + (f"  {drawn.description}" if drawn.description else "")
    return "\n".join([_fit(title, pen, width), "", *_Tree(drawn, pen, width).text()]) + "\n"


class _Tree:
    """Writes nodes in an order in which everything stands below what leads to it."""

    def __init__(self, drawn: Drawing, pen: Pen, width: int) -> None:
        self.drawn, self.pen, self.width = drawn, pen, max(width, 40)
        self.lines: dict[str, list[DrawnEdge]] = {name: [] for name in drawn.shapes}
        ways: dict[str, list[str]] = {name: [] for name in drawn.shapes}
        self.leading: dict[str, int] = {}
        for line in drawn.lines:
            if line.target not in drawn.shapes:
                continue
            self.lines[line.source].append(line)
            if not drawn.leaves(line):
                ways[line.source].append(line.target)
        names = sorted(drawn.shapes, key=lambda name: name != drawn.start)
        self.order: NodeOrder = order(names, ways)
        for source, targets in ways.items():
            for target in targets:
                if (source, target) not in self.order.back:
                    self.leading[target] = self.leading.get(target, 0) + 1
        self.parents = dominators(self.order, ways)
        self.children: dict[str, list[str]] = {}
        for name in self.order.forward:
            if name in self.parents:
                self.children.setdefault(self.parents[name], []).append(name)
        self.later: list[str] = []

    def text(self) -> list[str]:
        """All lines, part after part."""
        out: list[str] = []
        loose = [name for name in self.order.forward if name not in self.parents]
        for number, name in enumerate(loose):
            if number and name in self.order.roots:
                out += ["", f"not reached from '{visible(self.drawn.start, 64)}':"]
            out += self._part(name)
            while self.later:
                out += ["", *self._part(self.later.pop(0))]
        return out

    def _part(self, root: str) -> list[str]:
        out: list[str] = []
        stack = [_Item("", "", 0, root)]
        while stack:
            item = stack.pop()
            if not item.node:
                out.append(_fit(item.head, self.pen, self.width))
                continue
            out.append(_fit(item.head + self._words(item.node), self.pen, self.width))
            stack += reversed(self._following(item))
        return out

    def _following(self, item: _Item) -> list[_Item]:
        """What stands below a node: its alternatives, then what all of them lead to, at the node's own indent."""
        found: list[_Item] = []
        nested: set[str] = set()
        below = self.children.get(item.node, [])
        fans = [line for line in self.lines[item.node] if self._is_fan(line)]
        for number, line in enumerate(fans):
            last = number == len(fans) - 1
            inside = self.parents.get(line.target) == item.node and self.leading[line.target] == 1
            if inside:
                nested.add(line.target)
            found.append(self._fan(item, line, last, inside))
        after = [name for name in below if name not in nested]
        others = (line for line in self.lines[item.node] if not self._is_fan(line) and line.target not in after)
        found += [_Item(item.rest + self._pointer(line), "", item.depth) for line in others]
        return found + [_Item(item.rest, item.rest, item.depth, name) for name in after]

    def _is_fan(self, line: DrawnEdge) -> bool:
        return bool(line.label) and line.stroke is not Stroke.JOIN

    def _fan(self, item: _Item, line: DrawnEdge, last: bool, inside: bool) -> _Item:
        dash = {Stroke.ERROR: self.pen.error, Stroke.ENTRY: self.pen.entry}.get(line.stroke, self.pen.flow)
        head = f"{item.rest}{self.pen.corner if last else self.pen.tee}{dash} {visible(line.label, 28)} "
        rest = item.rest + ("   " if last else f"{self.pen.bar}  ")
        if inside and item.depth < DEEPEST:
            return _Item(f"{head}{self.pen.to} ", rest, item.depth + 1, line.target)
        if inside:
            self.later.append(line.target)
        return _Item(head + self._pointer(line) + (" (below)" if inside else ""), rest, item.depth)

    def _pointer(self, line: DrawnEdge) -> str:
        arrow = self.pen.back if (line.source, line.target) in self.order.back else self.pen.to
        return f"{arrow} {visible(line.target, 64)}"

    def _words(self, name: str) -> str:
        shape = self.drawn.shapes[name]
        mark = self.pen.marks.get(shape.kind, self.pen.mark)
        return f"{mark} {visible(name, 64)}  {shape.kind}" + (f" {shape.detail}" if shape.detail else "")


def _fit(text: str, pen: Pen, width: int) -> str:
    """A line cut to the width of the terminal; with a plain pen other characters become question marks."""
    if pen is PLAIN:
        text = text.replace("…", pen.cut).encode("ascii", "replace").decode()
    text = text.rstrip()
    if text.isascii():
        return text if len(text) <= width else text[: width - len(pen.cut)].rstrip() + pen.cut
    columns, kept = 0, 0
    sizes = [_columns(char) for char in text]
    if sum(sizes) <= width:
        return text
    while columns + sizes[kept] <= width - len(pen.cut):
        columns += sizes[kept]
        kept += 1
    return text[:kept].rstrip() + pen.cut


def _columns(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1
