"""Draws a picture in Graphviz's language."""

from __future__ import annotations

from bailiwick.drawing.model import Drawing, DrawnEdge, DrawnNode, Stroke, visible

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
        *_areas(drawn),
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


def _areas(drawn: Drawing) -> list[str]:
    inside, below = drawn.inside(), drawn.below()
    out: list[str] = []
    stack = [(0, 1)]
    while stack:
        number, depth = stack.pop()
        pad = "  " * min(depth, 20)
        if number < 0:
            out.append(pad + "}")
            continue
        if number:
            area = drawn.areas[number]
            title = label(area.title)
            out.append(f"{pad}subgraph cluster_{number} {{ style=dashed; label={title};")
            stack.append((-1, depth))
            pad += "  "
        out += [f"{pad}{_shape(shape)}" for shape in inside.get(number, [])]
        stack += [(child, depth + 1 if number else depth) for child in reversed(below.get(number, []))]
    return out


def _shape(shape: DrawnNode) -> str:
    second = " ".join(part for part in (shape.kind, shape.detail) if part)
    return f"{quoted(shape.id)} [label={label(visible(shape.id, 64), second)}, shape={_FORMS.get(shape.kind, 'box')}];"


def _line(line: DrawnEdge) -> str:
    style = {Stroke.ERROR: "style=dashed", Stroke.ENTRY: "style=bold"}.get(line.stroke, "")
    words = f"label={label(line.label)}" if line.label.strip() else ""
    options = ", ".join(part for part in (words, style) if part)
    return f"  {quoted(line.source)} -> {quoted(line.target)}" + (f" [{options}];" if options else ";")
