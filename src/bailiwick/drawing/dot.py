"""Draws a picture in Graphviz's language."""

from __future__ import annotations

from bailiwick.drawing.model import Area, Drawing, DrawnEdge, DrawnNode, Stroke, visible

_FORMS = {
    "branch": "diamond",
    "terminal": "box, style=rounded, peripheries=2",
    "fail": "octagon",
    "parallel": "trapezium",
    "map": "trapezium",
    "call": "component",
    "wait": "oval",
    "ask": "parallelogram",
    "approval": "parallelogram",
    "agent": "hexagon",
}


def draw_dot(drawn: Drawing) -> str:
    """A `digraph` with one cluster per scope."""
    out = [
        f"digraph {quoted(drawn.name)} {{",
        f"  label={label(drawn.name)}; labelloc=t; fontname=sans;",
        "  node [fontname=sans, fontsize=11, shape=box]; edge [fontname=sans, fontsize=10];",
        '  "(begin)" [shape=point, width=0.15];',
        f'  "(begin)" -> {quoted(drawn.start)};',
        *(f"{pad}{_part(part)}" for pad, part in drawn.nested()),
        *(_line(line) for line in drawn.shown()),
        "}",
    ]
    return "\n".join(out) + "\n"


def quoted(text: str) -> str:
    """Text as a quoted name: nothing in it can end the quotes."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def label(*lines: str) -> str:
    """Lines as a quoted label; entities and escapes in them are shown, not read."""
    return '"' + "\\n".join(quoted(line.replace("&", "&amp;"))[1:-1] for line in lines) + '"'


def _part(part: DrawnNode | Area | None) -> str:
    match part:
        case None:
            return "}"
        case Area():
            return f"subgraph cluster_{part.number} {{ style=dashed; label={label(part.title)};"
        case DrawnNode():
            return _shape(part)


def _shape(shape: DrawnNode) -> str:
    second = " ".join(part for part in (shape.kind, shape.detail) if part)
    return f"{quoted(shape.id)} [label={label(visible(shape.id, 64), second)}, shape={_FORMS.get(shape.kind, 'box')}];"


def _line(line: DrawnEdge) -> str:
    style = {Stroke.ERROR: "style=dashed", Stroke.ENTRY: "style=bold"}.get(line.stroke, "")
    words = f"label={label(line.label)}" if line.label.strip() else ""
    options = ", ".join(part for part in (words, style) if part)
    return f"  {quoted(line.source)} -> {quoted(line.target)}" + (f" [{options}];" if options else ";")
