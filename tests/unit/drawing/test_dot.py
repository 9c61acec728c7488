"""Graphviz text."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bailiwick.drawing.dot import label, quoted
from bailiwick.drawing.service import draw
from tests.unit.drawing import graphs

QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
BARE = {
    "digraph", "subgraph", "label", "labelloc", "t", "fontname", "sans", "node", "edge", "fontsize", "11", "10",
    "shape", "point", "width", "0.15", "style", "dashed", "bold", "rounded", "peripheries", "2", "box", "diamond",
    "octagon", "trapezium", "component", "oval", "parallelogram", "hexagon",
}  # fmt: skip


def _bare_words(text: str) -> set[str]:
    """What stands outside quotes."""
    words = re.findall(r"[\w.]+", QUOTED.sub(" ", text))
    return {word for word in words if not re.fullmatch(r"cluster_\d+", word)}


@pytest.mark.parametrize("value", graphs.HOSTILE)
def test_a_value_cannot_leave_its_quotes(value: str) -> None:
    """A value that ended its quotes could add nodes, or attributes that load files."""
    text = draw(graphs.hostile(value), "dot")
    assert _bare_words(text) <= BARE
    assert '"' not in QUOTED.sub("", text)
    assert all(line.isprintable() for line in text.split("\n"))


@given(st.text(max_size=40))
def test_no_value_can_leave_its_quotes(value: str) -> None:
    """The same for any text at all."""
    text = draw(graphs.hostile(value), "dot")
    assert _bare_words(text) <= BARE
    assert '"' not in QUOTED.sub("", text)
    assert all(line.isprintable() for line in text.split("\n"))


def test_entities_and_escapes_are_shown_as_written() -> None:
    """Graphviz reads `&lt;` and `\\N` in labels; a value that holds them has to come out as it is."""
    assert label("a &lt; b", "\\N") == '"a &amp;lt; b\\n\\\\N"'
    assert quoted('say "hi"\\') == '"say \\"hi\\"\\\\"'


def test_scopes_are_clusters_and_errors_are_dashed() -> None:
    """Graphviz draws a box only around subgraphs whose name begins with cluster."""
    text = draw(graphs.scopes(), "dot")
    assert text.count("subgraph cluster_") == 3
    assert '"fan" -> "broken" [label="on_error", style=dashed];' in text
    assert '"fan" -> "lint" [label="lint", style=bold];' in text


def test_the_begin_mark_cannot_be_a_node_of_the_workflow() -> None:
    """Its name has characters that no node id can have."""
    assert '"(begin)" -> "fetch";' in draw(graphs.loop(), "dot")
