"""Draws a picture as a Mermaid flowchart. Node names are numbered, so that no id can be a word of Mermaid's own."""

from __future__ import annotations

import re

from bailiwick.drawing.model import Drawing, DrawnEdge, DrawnNode, Stroke, visible

_PLAIN = re.compile(r"[A-Za-z0-9 ]|[^\W\d_]|(?<=[A-Za-z0-9])[-._/](?=[A-Za-z0-9])|_")
_FORMS = {
    "branch": ("{", "}"),
    "terminal": ("([", "])"),
    "fail": ("([", "])"),
    "parallel": ("[[", "]]"),
    "map": ("[[", "]]"),
    "call": ("[[", "]]"),
    "wait": ("(", ")"),
    "ask": ("[/", "/]"),
    "approval": ("[/", "/]"),
    "agent": ("{{", "}}"),
}


def draw_mermaid(drawn: Drawing) -> str:
    """The text of a flowchart, for Markdown pages that show Mermaid."""
    names = {name: f"n{number}" for number, name in enumerate(drawn.shapes)}
    out = ["flowchart TD", f"  %% {escape(drawn.name)}", "  begin(( )) --> " + names.get(drawn.start, "begin")]
    out += _areas(drawn, names)
    out += [f"  {_line(line, names)}" for line in drawn.shown() if line.target in names]
    failing = [names[shape.id] for shape in drawn.shapes.values() if shape.kind == "fail"]
    if failing:
        out += ["  classDef failing stroke-width:3px", f"  class {','.join(failing)} failing"]
    return "\n".join(out) + "\n"


def escape(text: str) -> str:
    """Text for a quoted label: all but letters, digits and inner punctuation as entity codes, which Mermaid shows."""
    found: list[str] = []
    for position, char in enumerate(text):
        found.append(char if _PLAIN.match(text, position) else f"#{ord(char)};")
    return "".join(found)


def _areas(drawn: Drawing, names: dict[str, str]) -> list[str]:
    """The shapes of an area and the areas in it, without recursion: nesting may be as deep as the graph is long."""
    inside, below = drawn.inside(), drawn.below()
    out: list[str] = []
    stack = [(0, 1)]
    while stack:
        number, depth = stack.pop()
        pad = "  " * min(depth, 20)
        if number < 0:
            out.append(f"{pad}end")
            continue
        if number:
            area = drawn.areas[number]
            out.append(f'{pad}subgraph g{number}["{escape(area.title)}"]')
            stack.append((-1, depth))
            pad += "  "
        out += [f"{pad}{names[shape.id]}{_shape(shape)}" for shape in inside.get(number, [])]
        stack += [(child, depth + 1 if number else depth) for child in reversed(below.get(number, []))]
    return out


def _shape(shape: DrawnNode) -> str:
    opening, closing = _FORMS.get(shape.kind, ("[", "]"))
    second = " ".join(part for part in (shape.kind, shape.detail) if part)
    return f'{opening}"{escape(visible(shape.id, 64))}<br/>{escape(second)}"{closing}'


def _line(line: DrawnEdge, names: dict[str, str]) -> str:
    arrow = {Stroke.ERROR: "-.->", Stroke.ENTRY: "==>"}.get(line.stroke, "-->")
    label = f'|"{escape(line.label)}"|' if line.label.strip() else ""
    return f"{names[line.source]} {arrow}{label} {names[line.target]}"
