"""The geometry of SVG: outlines of shapes, curves and rounded corners. Pure."""

from __future__ import annotations

from itertools import pairwise

Point = tuple[float, float]
RADIUS = 7.0


def number(value: float) -> str:
    """A coordinate with at most one decimal."""
    return f"{value:.1f}".removesuffix(".0")


def outline(kind: str, x: float, y: float, width: float, height: float) -> str:
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


def curve(points: list[Point]) -> str:
    """A smooth way through points, upright at each of them."""
    parts = [f"M{number(points[0][0])} {number(points[0][1])}"]
    for (x, y), (to_x, to_y) in pairwise(points):
        middle = (y + to_y) / 2
        if abs(x - to_x) < 0.5:
            parts.append(f"L{number(to_x)} {number(to_y)}")
        else:
            parts.append(f"C{number(x)} {number(middle)} {number(to_x)} {number(middle)} {number(to_x)} {number(to_y)}")
    return " ".join(parts)


def rounded(points: list[Point]) -> str:
    """Straight pieces through points, with rounded corners."""
    parts = [f"M{number(points[0][0])} {number(points[0][1])}"]
    for before, corner, after in zip(points, points[1:], points[2:], strict=False):
        near, far = _towards(corner, before), _towards(corner, after)
        parts.append(f"L{number(near[0])} {number(near[1])}")
        parts.append(f"Q{number(corner[0])} {number(corner[1])} {number(far[0])} {number(far[1])}")
    parts.append(f"L{number(points[-1][0])} {number(points[-1][1])}")
    return " ".join(parts)


def _towards(corner: Point, other: Point) -> Point:
    """The point at the radius from a corner towards another one, but never past the middle."""
    dx, dy = other[0] - corner[0], other[1] - corner[1]
    length = (dx * dx + dy * dy) ** 0.5
    share = min(RADIUS / length, 0.5) if length else 0.0
    return corner[0] + dx * share, corner[1] + dy * share


def _polygon(points: list[Point]) -> str:
    return '<polygon points="' + " ".join(f"{number(x)},{number(y)}" for x, y in points) + '"/>'


def _box(x: float, y: float, width: float, height: float, radius: float) -> str:
    place = f'x="{number(x - width / 2)}" y="{number(y - height / 2)}"'
    return f'<rect {place} width="{number(width)}" height="{number(height)}" rx="{number(radius)}"/>'
