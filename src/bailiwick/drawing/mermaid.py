"""Draws a picture as a Mermaid flowchart. Node names are numbered, so that no id can be a word of Mermaid's own."""

from __future__ import annotations

import re

from bailiwick.drawing.model import Area, Drawing, DrawnEdge, DrawnNode, Stroke, visible

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
    out += [f"{pad}{_part(part, names)}" for pad, part in drawn.nested()]
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


def _part(part: DrawnNode | Area | None, names: dict[str, str]) -> str:
    match part:
        case None:
            return "end"
        case Area():
            return f'subgraph g{part.number}["{escape(part.title)}"]'
        case DrawnNode():
            return f"{names[part.id]}{_shape(part)}"


def _shape(shape: DrawnNode) -> str:
    opening, closing = _FORMS.get(shape.kind, ("[", "]"))
    second = " ".join(part for part in (shape.kind, shape.detail) if part)
    return f'{opening}"{escape(visible(shape.id, 64))}<br/>{escape(second)}"{closing}'


def _line(line: DrawnEdge, names: dict[str, str]) -> str:
    arrow = {Stroke.ERROR: "-.->", Stroke.ENTRY: "==>"}.get(line.stroke, "-->")
    label = f'|"{escape(line.label)}"|' if line.label.strip() else ""
    return f"{names[line.source]} {arrow}{label} {names[line.target]}"
