"""Mermaid text: what a reader on a Markdown page gets."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bailiwick.drawing.mermaid import escape
from bailiwick.drawing.service import draw
from tests.unit.drawing import graphs

LABEL = r'"(?:[^"<>&`\n]|<br/>)*"'
LINES = [
    r"flowchart TD",
    r"%% [^\n]*",
    r"begin\(\( \)\) --> n\d+",
    rf"n\d+[\[\](){{}}/]+{LABEL}[\[\](){{}}/]+",
    rf"subgraph g\d+\[{LABEL}\]",
    r"end",
    rf"n\d+ (?:-->|-\.->|==>)(?:\|{LABEL}\|)? n\d+",
    r"classDef failing stroke-width:3px",
    r"class [n0-9,]+ failing",
]


def _unknown_lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if not any(re.fullmatch(known, line.strip()) for known in LINES)]


@pytest.mark.parametrize("value", graphs.HOSTILE)
def test_a_value_cannot_leave_its_label(value: str) -> None:
    """A case value comes from whoever wrote the file; it must not add nodes, styles or markup to the picture."""
    assert _unknown_lines(draw(graphs.hostile(value), "mermaid")) == []


@given(st.text(max_size=40))
def test_no_value_can_leave_its_label(value: str) -> None:
    """The same for any text at all."""
    assert _unknown_lines(draw(graphs.hostile(value), "mermaid")) == []


def test_escapes_are_entity_codes_that_mermaid_shows_as_written() -> None:
    """What is escaped must still be readable in the picture."""
    decoded = re.sub(r"#(\d+);", lambda code: chr(int(code[1])), escape('a "b" <c> & #1; 1. x_y-z'))
    assert decoded == 'a "b" <c> & #1; 1. x_y-z'
    assert '"' not in escape('"')


def test_forms_follow_kinds_and_errors_are_dashed() -> None:
    """A reader sees decisions, ends and failures by their form."""
    text = draw(graphs.loop(), "mermaid")
    assert 'n1{"check<br/>branch result.status"}' in text
    assert 'n2(["done<br/>terminal"])' in text
    assert 'n0 -.->|"on_error"| n3' in text
    assert 'n1 -->|"#62;#61; 10"| n2' in text


def test_scopes_are_nested_subgraphs() -> None:
    """The box of a map in a branch lies in the branch's box."""
    text = draw(graphs.scopes(), "mermaid")
    inner, outer = text.index("each #47; each case of cases"), text.index("fan #47; tests")
    assert outer < inner
    assert text.count("subgraph") == sum(line.strip() == "end" for line in text.splitlines()) == 3
