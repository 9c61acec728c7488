"""Lays a flat graph out in rows. Every line runs downwards but those that go back or far: they take a lane at a side.

Items stand on odd rows. The even rows between them belong to labels and to lines that pass by, so that no text lies
on a line or on other text.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from itertools import pairwise
from math import inf

from bailiwick.drawing.order import order

GAP = 17.0
SPACE = 22.0
LANE = 11.0
FAR = 8
"""A line past more rows of items than this takes a lane instead."""
TALL = 80.0
"""In a row taller than this items stand at its top, else in its middle."""
SWEEPS = 12
MANY = 2000
"""With more items than this a good place is good enough."""


@dataclass(slots=True)
class LayoutBox:
    """Something with a size; its centre is set by `arrange`."""

    key: str
    width: float
    height: float
    x: float = 0.0
    y: float = 0.0
    row: int = 0


@dataclass(frozen=True, slots=True)
class Tie:
    """A line from one item to another; `label_width` 0 is no label."""

    source: str
    target: str
    label: str = ""
    label_width: float = 0.0
    style: str = ""


@dataclass(slots=True)
class EdgePath:
    """Where a tie runs: points from its source to its target, and the place of its label, where the line has a gap."""

    tie: Tie
    points: list[tuple[float, float]]
    label_at: tuple[float, float] | None = None
    lane: bool = False


@dataclass(slots=True)
class DrawingLayout:
    """A finished layout; all coordinates are ≥ 0."""

    width: float = 0.0
    height: float = 0.0
    items: dict[str, LayoutBox] = field(default_factory=dict)
    routes: list[EdgePath] = field(default_factory=list)


@dataclass(slots=True)
class _Lane:
    """The vertical part shared by all lines that go to one target on one side."""

    right: bool
    stub: str
    top: float = inf
    bottom: float = 0.0
    number: int = 0


def arrange(items: list[LayoutBox], ties: list[Tie]) -> DrawingLayout:
    """Give every item a place and every tie a route. The same input gives the same picture."""
    return _Arrangement(items, ties).plan()


class _Arrangement:
    def __init__(self, items: list[LayoutBox], ties: list[Tie]) -> None:
        self.items = {item.key: item for item in items}
        self.ties = ties
        self.chains: list[list[str]] = []
        self.lanes: dict[tuple[str, bool], _Lane] = {}
        self.on_lane: list[_Lane | None] = []
        self.rows: list[list[str]] = []
        self.loose: set[str] = set()
        self.up: dict[str, list[str]] = {}
        self.down: dict[str, list[str]] = {}
        self.tops: list[tuple[float, float]] = []
        self.left = self.right = 0.0

    def plan(self) -> DrawingLayout:
        """Rows, then the order in them, then coordinates, then routes."""
        real = list(self.items)
        self._rank()
        self._sort_rows()
        self._place()
        self._number_lanes()
        made = DrawingLayout(routes=[self._route(number) for number in range(len(self.ties))])
        made.items = {key: self.items[key] for key in real}
        _frame(made)
        return made

    def _rank(self) -> None:
        ways: dict[str, list[str]] = {}
        for tie in self.ties:
            ways.setdefault(tie.source, []).append(tie.target)
        found = order(self.items, ways)
        for name in found.forward:
            for target in ways.get(name, ()):
                if (name, target) not in found.back:
                    self.items[target].row = max(self.items[target].row, self.items[name].row + 1)
        self.rows = [[] for _ in range(2 * max((item.row for item in self.items.values()), default=0) + 3)]
        for name in found.forward:
            self.items[name].row = 2 * self.items[name].row + 1
            self.rows[self.items[name].row].append(name)
        for tie in self.ties:
            self._chain(tie, (tie.source, tie.target) in found.back)

    def _chain(self, tie: Tie, back: bool) -> None:
        """Put a point into each row that a line passes; the first one carries the label."""
        first, last = self.items[tie.source].row, self.items[tie.target].row
        if not back and last - first <= 2 * FAR:
            widths = [tie.label_width, *[0.0] * (last - first - 2)]
            points = [self._point(first + 1 + number, width) for number, width in enumerate(widths)]
            self.chains.append([tie.source, *points, tie.target])
            self.on_lane.append(None)
            self._link(self.chains[-1])
            return
        lane = self.lanes.get((tie.target, back))
        if lane is None:
            lane = self.lanes[tie.target, back] = _Lane(back, self._point(last - 1, 0.0))
            self.loose.add(lane.stub)
            self._link([lane.stub, tie.target])
        self.chains.append([tie.source, self._point(first + 1, tie.label_width)])
        self.on_lane.append(lane)
        self.loose.add(self.chains[-1][1])
        self._link(self.chains[-1])

    def _point(self, row: int, label_width: float) -> str:
        key = f"\0{len(self.items)}"
        self.items[key] = LayoutBox(key, max(label_width, 6.0), 16.0 if label_width else 0.0, row=row)
        self.rows[row].append(key)
        return key

    def _link(self, chain: list[str]) -> None:
        for above, below in pairwise(chain):
            self.down.setdefault(above, []).append(below)
            self.up.setdefault(below, []).append(above)

    def _sort_rows(self) -> None:
        """Order each row by the middle of its neighbours' positions, from the top and from the bottom in turn."""
        place = {key: float(number) for row in self.rows for number, key in enumerate(row)}
        for sweep in range(6):
            near = self.up if sweep % 2 == 0 else self.down
            for row in self.rows if sweep % 2 == 0 else reversed(self.rows):
                middles = {key: _mean([place[other] for other in near.get(key, ())], place[key]) for key in row}
                row.sort(key=middles.__getitem__)
                for number, key in enumerate(row):
                    place[key] = float(number)

    def _place(self) -> None:
        top = 0.0
        for row in self.rows:
            height = max((self.items[key].height for key in row), default=0.0)
            x = 0.0
            for key in row:
                item = self.items[key]
                item.x = x + item.width / 2
                item.y = top + (item.height if height > TALL and item.height else height) / 2
                x += item.width + SPACE
            self.tops.append((top, top + height))
            top += height + GAP
        for side in (0, 1, 2):
            self._sweep(side)
        self._sweep(0, 1)
        for row in self.rows[::2]:
            self._settle(row, 2)

    def _sweep(self, side: int, most: int = SWEEPS) -> None:
        """Move all rows until nothing moves any more, or for so many times."""
        for _ in range(most if len(self.items) < MANY else 2):
            rows = self.rows if side != 1 else self.rows[::-1]
            if max((self._settle(row, side) for row in rows if row), default=0.0) < 0.5:
                return

    def _settle(self, row: list[str], side: int) -> float:
        """Move a row's items to below (0), above (1) or between (2) their neighbours; how far the farthest went."""
        wants: list[float] = []
        for key in row:
            above = [(other, len(self.down[other])) for other in self.up.get(key, ())] if side != 1 else []
            below = [(other, len(self.up[other])) for other in self.down.get(key, ())] if side != 0 else []
            alone = key not in self.up and key not in self.down
            wants.append(wants[-1] if alone and wants else self._wanted(key, above + below))
        sizes = [self.items[key].width for key in row]
        spaces = [SPACE if size > 6.0 else SPACE / 2 for size in sizes]
        gaps = [(sizes[i] + sizes[i + 1]) / 2 + min(spaces[i], spaces[i + 1]) for i in range(len(row) - 1)]
        moved = 0.0
        for key, x in zip(row, nearest_fit(wants, gaps, [self._weight(key) for key in row]), strict=True):
            moved = max(moved, abs(self.items[key].x - x))
            self.items[key].x = x
        return moved

    def _wanted(self, key: str, near: list[tuple[str, int]]) -> float:
        """The mean of the neighbours, where one with a single line counts most and the end of a lane hardly at all."""
        total = weight = 0.0
        for other, lines in near:
            share = self._weight(other) / lines
            total, weight = total + self.items[other].x * share, weight + share
        return total / weight if weight else self.items[key].x

    def _weight(self, key: str) -> float:
        if key in self.loose:
            return 0.05
        return 3.0 if key[0] == "\0" else 1.0

    def _route(self, number: int) -> EdgePath:
        tie, chain, lane = self.ties[number], self.chains[number], self.on_lane[number]
        source, target = self.items[tie.source], self.items[tie.target]
        start = (source.x, source.y + source.height / 2)
        label_at = (self.items[chain[1]].x, self.items[chain[1]].y) if tie.label_width else None
        if lane is None:
            points = [start, label_at or (source.x, self.tops[source.row][1])]
            rest = chain[2:-1] if tie.label_width else chain[1:-1]
            points += [spot for key in rest for spot in self._pass(self.items[key])]
            return EdgePath(tie, [*points, (target.x, target.y - target.height / 2)], label_at)
        first, stub = self.items[chain[1]], self.items[lane.stub]
        shift = lane.number % 3 * 2.5
        leave, arrive = first.y + first.height / 2 + 2 + shift, stub.y - 4 - shift
        away = LANE * (lane.number + 1)
        side = self.right + away if lane.right else self.left - away
        points = [
            start,
            (first.x, first.y),
            (first.x, leave),
            (side, leave),
            (side, arrive),
            (stub.x, arrive),
            (stub.x, stub.y),
            (target.x, target.y - target.height / 2),
        ]
        return EdgePath(tie, points, label_at, lane=True)

    def _pass(self, item: LayoutBox) -> list[tuple[float, float]]:
        """Where a line passes a row: straight down between items or labels. An empty row leaves room for a curve."""
        top, bottom = self.tops[item.row]
        return [(item.x, top), (item.x, bottom)] if item.row % 2 or bottom > top else []

    def _number_lanes(self) -> None:
        """Give each lane a number, from the middle outwards; lanes whose spans don't meet share one."""
        for tie, chain, lane in zip(self.ties, self.chains, self.on_lane, strict=True):
            if lane is not None:
                ends = (self.items[chain[1]].y, self.items[lane.stub].y, self.items[tie.target].y)
                lane.top, lane.bottom = min(*ends, lane.top), max(*ends, lane.bottom)
        for right in (True, False):
            number_spans([lane for (_, side), lane in self.lanes.items() if side is right])
        spots = [(item.x - item.width / 2, item.x + item.width / 2) for item in self.items.values()]
        self.left = min((left for left, _ in spots), default=0.0)
        self.right = max((right for _, right in spots), default=0.0)


def number_spans(lanes: list[_Lane]) -> None:
    """Number lanes so that no two with one number overlap; short ones come first where they can."""
    taken: list[tuple[float, int]] = []
    free: list[int] = []
    count = 0
    for lane in sorted(lanes, key=lambda lane: (lane.top, lane.bottom)):
        while taken and taken[0][0] < lane.top - 2 * GAP:
            heapq.heappush(free, heapq.heappop(taken)[1])
        if free:
            lane.number = heapq.heappop(free)
        else:
            lane.number, count = count, count + 1
        heapq.heappush(taken, (lane.bottom, lane.number))


def nearest_fit(wants: list[float], gaps: list[float], weights: list[float]) -> list[float]:
    """The positions nearest to those wanted (least squares) that keep the order and the gaps between neighbours."""
    shift = 0.0
    pools: list[tuple[float, float, int]] = []
    shifts: list[float] = []
    for number, want in enumerate(wants):
        shift += gaps[number - 1] if number else 0.0
        shifts.append(shift)
        total, weight, count = (want - shift) * weights[number], weights[number], 1
        while pools and pools[-1][0] / pools[-1][1] >= total / weight:
            before, heavy, many = pools.pop()
            total, weight, count = total + before, weight + heavy, count + many
        pools.append((total, weight, count))
    level = [total / weight for total, weight, count in pools for _ in range(count)]
    return [low + shift for low, shift in zip(level, shifts, strict=True)]


def _mean(values: list[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise


def _frame(made: DrawingLayout) -> None:
    """Move everything so that the left and the top are at 0, and measure the whole."""
    xs = [x for item in made.items.values() for x in (item.x - item.width / 2, item.x + item.width / 2)]
    ys = [y for item in made.items.values() for y in (item.y - item.height / 2, item.y + item.height / 2)]
    xs += [x for route in made.routes for x, _ in route.points]
    ys += [y for route in made.routes for _, y in route.points]
    for route in made.routes:
        if route.label_at is not None:
            xs += [route.label_at[0] - route.tie.label_width / 2, route.label_at[0] + route.tie.label_width / 2]
    left, top = min(xs, default=0.0), min(ys, default=0.0)
    for item in made.items.values():
        item.x, item.y = item.x - left, item.y - top
    for route in made.routes:
        route.points = [(x - left, y - top) for x, y in route.points]
        if route.label_at is not None:
            route.label_at = (route.label_at[0] - left, route.label_at[1] - top)
    made.width, made.height = max(xs, default=0.0) - left, max(ys, default=0.0) - top
