"""Draws a picture as SVG: no scripts, no foreign parts, text that can be selected, colours for light and dark pages."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass, field
from itertools import pairwise

from bailiwick.drawing.layers import DrawingLayout, EdgePath, LayoutBox, Tie, arrange
from bailiwick.drawing.model import Area, Drawing, DrawnEdge, DrawnNode, Stroke, visible

PAD = 14.0
TITLE = 20.0
LABEL = 32
RADIUS = 7.0
Point = tuple[float, float]
_STYLE = """
text { font-family: ui-sans-serif, system-ui, 'Segoe UI', 'DejaVu Sans', Arial, sans-serif; fill: #1f2933; }
.id { font-size: 13px; font-weight: 600; text-anchor: middle; }
.kind { font-size: 11px; fill: #52606d; text-anchor: middle; }
.label, .title { font-size: 11px; fill: #727c87; }
.label { text-anchor: middle; }
.box { stroke: #7b8794; stroke-width: 1.2; fill: #f5f7fa; }
.agent { fill: #e6f0fd; stroke: #5b8def; }
.branch { fill: #fff6d9; stroke: #c9a227; }
.terminal { fill: #e3f6e8; stroke: #4a9d63; }
.fail { fill: #fde8e8; stroke: #d0544f; }
.person { fill: #f1e8fd; stroke: #9065c9; }
.fan { fill: #e4f4f4; stroke: #3f9a9a; }
.area { fill: #8a94a0; fill-opacity: 0.09; stroke: #8a94a0; stroke-dasharray: 5 4; }
.line { fill: none; stroke: #7b8794; stroke-width: 1.3; }
.error { stroke: #d0544f; stroke-dasharray: 5 4; }
.entry { stroke: #3f9a9a; stroke-width: 1.8; }
.dot { fill: #7b8794; }
"""
_CLASSES = {
    "agent": "agent", "branch": "branch", "terminal": "terminal", "fail": "fail", "ask": "person",
    "approval": "person", "parallel": "fan", "map": "fan", "call": "fan",
}  # fmt: skip


def draw_svg(drawn: Drawing) -> str:
    """One complete SVG document."""
    parts = _Parts(drawn)
    plans = parts.plans()
    whole = plans[0]
    width, height = whole.width + 2 * PAD, whole.height + 2 * PAD + TITLE
    size = f'width="{_number(width)}" height="{_number(height)}" viewBox="0 0 {_number(width)} {_number(height)}"'
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">',
        f"<title>{escape(visible(drawn.name, 80))}</title>",
        f"<style>{_STYLE}</style>",
        "<defs>",
        *(_arrow(name, colour) for name, colour in (("flow", "#7b8794"), ("error", "#d0544f"), ("entry", "#3f9a9a"))),
        "</defs>",
        f'<text class="title" x="{_number(PAD)}" y="{_number(PAD + 4)}">{escape(visible(drawn.name, 80))}</text>',
        *parts.paint(plans, PAD, PAD + TITLE),
        "</svg>",
    ]
    return "\n".join(out) + "\n"


def escape(text: str) -> str:
    """Text for XML, in an element or in a quoted attribute."""
    for char, code in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;"), ("'", "&#39;")):
        text = text.replace(char, code)
    return text


def text_width(text: str, size: float) -> float:
    """About how wide a text is; rather too wide than too narrow."""
    wide = sum(unicodedata.east_asian_width(char) in "WF" for char in text)
    upper = sum(char.isupper() for char in text)
    return (0.58 * len(text) + 0.47 * wide + 0.06 * upper) * size + 2


@dataclass(slots=True)
class _Level:
    """What has to be laid out together: the shapes of one area, and the areas in it as boxes."""

    items: list[LayoutBox] = field(default_factory=list)
    ties: dict[tuple[str, str, str], list[str]] = field(default_factory=dict)


class _Parts:
    """Lays areas out from the inside to the outside and paints them from the outside in."""

    def __init__(self, drawn: Drawing) -> None:
        self.drawn = drawn
        self.levels = [_Level() for _ in drawn.areas]
        self.depths = [0] * len(drawn.areas)
        for area in drawn.areas[1:]:
            self.depths[area.number] = self.depths[area.parent] + 1

    def plans(self) -> list[DrawingLayout]:
        """A layout per area. An area's number is higher than that of the one around it."""
        self._fill()
        made = [DrawingLayout() for _ in self.levels]
        for area in reversed(self.drawn.areas):
            level = self.levels[area.number]
            ties = [_tie(key, labels) for key, labels in level.ties.items()]
            made[area.number] = arrange(level.items, ties)
            if area.number:
                title = text_width(_title(area), 11) + 2 * PAD
                wide = max(made[area.number].width + 2 * PAD, title)
                tall = made[area.number].height + 2 * PAD + TITLE
                self.levels[area.parent].items.append(LayoutBox(f"a:{area.number}", wide, tall))
        return made

    def _fill(self) -> None:
        start = self.drawn.shapes.get(self.drawn.start)
        if start is not None and start.area == 0:
            self.levels[0].items.append(LayoutBox("b:", 12.0, 12.0))
            self.levels[0].ties["b:", f"n:{start.id}", "flow"] = []
        first = [start] if start is not None else []
        for shape in [*first, *(s for s in self.drawn.shapes.values() if s is not start)]:
            self.levels[shape.area].items.append(LayoutBox(f"n:{shape.id}", *_size(shape)))
        ends: set[int] = set()
        boxed = {area.construct for area in self.drawn.areas[1:]}
        for line in self.drawn.lines:
            if line.target in self.drawn.shapes and not (line.stroke is Stroke.JOIN and line.source in boxed):
                self._connect(line, ends)
        for area in self.drawn.areas[1:]:
            if area.join in self.drawn.shapes:
                inner, outer = f"a:{area.number}", self.drawn.shapes[area.join].area
                self._tie(*self._common(inner, area.parent, f"n:{area.join}", outer), "flow", "")

    def _connect(self, line: DrawnEdge, ends: set[int]) -> None:
        source, target = self.drawn.shapes[line.source], self.drawn.shapes[line.target]
        style = {Stroke.ERROR: "error", Stroke.ENTRY: "entry"}.get(line.stroke, "flow")
        if self.drawn.leaves(line):
            if source.area not in ends:
                ends.add(source.area)
                self.levels[source.area].items.append(LayoutBox(f"e:{source.area}", 10.0, 10.0))
            self._tie(source.area, f"n:{source.id}", other=f"e:{source.area}", style=style, label=line.label)
            return
        label = "" if line.stroke is Stroke.ENTRY and target.area != source.area else line.label
        found = self._common(f"n:{source.id}", source.area, f"n:{target.id}", target.area)
        self._tie(*found, style, label)

    def _common(self, one: str, at: int, other: str, there: int) -> tuple[int, str, str]:
        """The innermost area around both ends, and what stands in it for each of them."""
        while at != there:
            if self.depths[at] >= self.depths[there]:
                one, at = f"a:{at}", self.drawn.areas[at].parent
            else:
                other, there = f"a:{there}", self.drawn.areas[there].parent
        return at, one, other

    def _tie(self, area: int, one: str, other: str, style: str, label: str) -> None:
        labels = self.levels[area].ties.setdefault((one, other, style), [])
        if label.strip():
            labels.append(label)

    def paint(self, plans: list[DrawingLayout], left: float, top: float) -> list[str]:
        """The elements of every area, each after the one around it."""
        out: list[str] = []
        waiting = [(0, left, top)]
        while waiting:
            area, x, y = waiting.pop()
            out += [text for route in plans[area].routes for text in _paint_route(route, x, y)]
            for item in plans[area].items.values():
                kind, _, name = item.key.partition(":")
                if kind == "n":
                    out += _paint_shape(self.drawn.shapes[name], item, x, y)
                elif kind == "a":
                    corner = (x + item.x - item.width / 2, y + item.y - item.height / 2)
                    out += _paint_area(self.drawn.areas[int(name)], item, corner)
                    inset = (item.width - plans[int(name)].width) / 2
                    waiting.append((int(name), corner[0] + inset, corner[1] + PAD + TITLE))
                else:
                    spot = f'cx="{_number(x + item.x)}" cy="{_number(y + item.y)}"'
                    out.append(f'<circle class="dot" {spot} r="{_number(item.width / 2)}"/>')
        return out


def _tie(key: tuple[str, str, str], labels: list[str]) -> Tie:
    source, target, style = key
    label = visible(" · ".join(labels), LABEL)
    return Tie(source, target=target, label=label, label_width=text_width(label, 11) + 6 if label else 0.0, style=style)


def _title(area: Area) -> str:
    return visible(f"{area.construct} · {area.member}", 40)


def _words(shape: DrawnNode) -> tuple[str, str]:
    second = shape.detail if shape.kind == "branch" else f"{shape.kind} {shape.detail}".rstrip()
    return visible(shape.id, 30), visible(second, LABEL)


def _size(shape: DrawnNode) -> tuple[float, float]:
    name, second = _words(shape)
    wide = max(text_width(name, 13.5), text_width(second, 11))
    if shape.kind == "branch":
        return max(wide / 0.56, 96.0), 74.0
    return max(wide + 28.0, 84.0), 44.0


def _paint_shape(shape: DrawnNode, item: LayoutBox, left: float, top: float) -> list[str]:
    x, y = left + item.x, top + item.y
    name, second = _words(shape)
    about = f"{shape.id}: {shape.kind} {shape.detail}".rstrip()
    form = _outline(shape.kind, x, y=y, width=item.width, height=item.height)
    return [
        f"<g><title>{escape(visible(about, 160))}</title>",
        form.replace("/>", f' class="box {_CLASSES.get(shape.kind, "")}"/>').replace(' "/>', '"/>'),
        f'<text class="id" x="{_number(x)}" y="{_number(y - 2)}">{escape(name)}</text>',
        f'<text class="kind" x="{_number(x)}" y="{_number(y + 13)}">{escape(second)}</text></g>',
    ]


def _paint_area(area: Area, item: LayoutBox, corner: tuple[float, float]) -> list[str]:
    x, y = corner
    size = f'width="{_number(item.width)}" height="{_number(item.height)}"'
    return [
        f'<rect class="area" x="{_number(x)}" y="{_number(y)}" {size} rx="10"/>',
        f'<text class="title" x="{_number(x + PAD)}" y="{_number(y + 18)}">{escape(_title(area))}</text>',
    ]


def _paint_route(route: EdgePath, left: float, top: float) -> list[str]:
    points = [(left + x, top + y) for x, y in route.points]
    style, tip = route.tie.style, f' marker-end="url(#tip-{route.tie.style})"'
    draw = _rounded if route.lane else _curve
    if route.label_at is None:
        return [f'<path class="line {style}" d="{draw(points)}"{tip}/>']
    x, y = left + route.label_at[0], top + route.label_at[1]
    before, after = [points[0], (x, y - 9)], [(x, y + 7), *points[2:]]
    return [
        f'<path class="line {style}" d="{_curve(before)}"/>',
        f'<text class="label" x="{_number(x)}" y="{_number(y + 4)}">{escape(route.tie.label)}</text>',
        f'<path class="line {style}" d="{draw(after)}"{tip}/>',
    ]


def _arrow(name: str, colour: str) -> str:
    return (
        f'<marker id="tip-{name}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
        f'markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0.5 L8 4 L0 7.5 z" fill="{colour}"/></marker>'
    )


def _number(value: float) -> str:
    """A coordinate with at most one decimal."""
    return f"{value:.1f}".removesuffix(".0")


def _outline(kind: str, x: float, y: float, width: float, height: float) -> str:
    """The outline of a kind of node around its centre, as an element without a class."""
    w, h = width / 2, height / 2
    match kind:
        case "branch":
            return _polygon([(x, y - h), (x + w, y), (x, y + h), (x - w, y)])
        case "agent":
            flat = w - 10
            return _polygon(
                [(x - flat, y - h), (x + flat, y - h), (x + w, y), (x + flat, y + h), (x - flat, y + h), (x - w, y)]
            )
        case "ask" | "approval":
            return _polygon([(x - w + 8, y - h), (x + w, y - h), (x + w - 8, y + h), (x - w, y + h)])
        case "terminal" | "fail":
            return _box(x, y, width=width, height=height, radius=h)
        case "wait":
            return _box(x, y, width=width, height=height, radius=14.0)
        case _:
            return _box(x, y, width=width, height=height, radius=4.0)


def _curve(points: list[Point]) -> str:
    """A smooth way through points, upright at each of them."""
    parts = [f"M{_number(points[0][0])} {_number(points[0][1])}"]
    for (x, y), (to_x, to_y) in pairwise(points):
        middle = (y + to_y) / 2
        if abs(x - to_x) < 0.5:
            parts.append(f"L{_number(to_x)} {_number(to_y)}")
        else:
            parts.append("C" + " ".join(map(_number, (x, middle, to_x, middle, to_x, to_y))))
    return " ".join(parts)


def _rounded(points: list[Point]) -> str:
    """Straight pieces through points, with rounded corners."""
    parts = [f"M{_number(points[0][0])} {_number(points[0][1])}"]
    for before, corner, after in zip(points, points[1:], points[2:], strict=False):
        near, far = _towards(corner, before), _towards(corner, after)
        parts.append(f"L{_number(near[0])} {_number(near[1])}")
        parts.append(f"Q{_number(corner[0])} {_number(corner[1])} {_number(far[0])} {_number(far[1])}")
    parts.append(f"L{_number(points[-1][0])} {_number(points[-1][1])}")
    return " ".join(parts)


def _towards(corner: Point, other: Point) -> Point:
    """The point at the radius from a corner towards another one, but never past the middle."""
    dx, dy = other[0] - corner[0], other[1] - corner[1]
    length = (dx * dx + dy * dy) ** 0.5
    share = min(RADIUS / length, 0.5) if length else 0.0
    return corner[0] + dx * share, corner[1] + dy * share


def _polygon(points: list[Point]) -> str:
    return '<polygon points="' + " ".join(f"{_number(x)},{_number(y)}" for x, y in points) + '"/>'


def _box(x: float, y: float, width: float, height: float, radius: float) -> str:
    place = f'x="{_number(x - width / 2)}" y="{_number(y - height / 2)}"'
    return f'<rect {place} width="{_number(width)}" height="{_number(height)}" rx="{_number(radius)}"/>'
