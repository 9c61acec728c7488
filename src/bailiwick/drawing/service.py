"""Draws a workflow in the format somebody asks for."""

from __future__ import annotations

from bailiwick.drawing.model import FORMATS, picture
from bailiwick.engine.graph import Graph
from bailiwick.errors import UsageError


def draw(graph: Graph, format: str, *, plain: bool = False, width: int = 80) -> str:  # noqa: A002  the option's name
    """The picture of a graph as text. `plain` and `width` matter to `ascii` only. Same graph, same text."""
    drawn = picture(graph)
    match format:
        case "mermaid":
            from bailiwick.drawing.mermaid import draw_mermaid

            return draw_mermaid(drawn)
        case "dot":
            from bailiwick.drawing.dot import draw_dot

            return draw_dot(drawn)
        case "svg":
            from bailiwick.drawing.svg import draw_svg

            return draw_svg(drawn)
        case "ascii":
            from bailiwick.drawing.tree import draw_tree

            return draw_tree(drawn, plain, width)
        case _:
            raise UsageError(f"there is no format {format!r}", hint=", ".join(FORMATS))
