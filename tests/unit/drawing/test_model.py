"""The picture that every format draws."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bailiwick.drawing.model import Stroke, picture, visible
from bailiwick.drawing.service import draw
from bailiwick.engine.graph import Branch, End, Graph, Map, edges
from bailiwick.errors import UsageError
from tests.unit.drawing import graphs


def test_every_node_and_edge_is_in_the_picture() -> None:
    """A picture that leaves something out misleads whoever trusts it."""
    made = graphs.loop()
    drawn = picture(made)
    assert list(drawn.shapes) == list(made.nodes)
    expected = [(node.id, target) for node in made.nodes.values() for _, target in edges(node)]
    assert [(line.source, line.target) for line in drawn.lines] == expected


def test_nodes_belong_to_the_innermost_scope_and_joins_to_the_parent() -> None:
    """A node drawn in the wrong box says that its writes are seen where they are not."""
    drawn = picture(graphs.scopes())
    place = {name: drawn.areas[shape.area].construct for name, shape in drawn.shapes.items()}
    assert place == {
        "fan": "",
        "lint": "fan",
        "each": "fan",
        "one": "each",
        "sum": "fan",
        "report": "",
        "done": "",
        "broken": "",
    }
    assert drawn.shapes["lint"].area != drawn.shapes["each"].area
    assert drawn.areas[drawn.shapes["one"].area].parent == drawn.shapes["each"].area


def test_an_error_edge_is_told_from_a_case_that_is_called_on_error() -> None:
    """The label alone cannot tell them apart: a branch may have a case of that name."""
    made = graphs.graph(
        Branch(id="b", path="x", cases={"on_error": "done"}, default="w"),
        graphs.script("w", "done", on_error="done"),
        End(id="done"),
    )
    strokes = {(line.source, line.label): line.stroke for line in picture(made).lines}
    assert strokes["b", "on_error"] is Stroke.FLOW
    assert strokes["w", "on_error"] is Stroke.ERROR


def test_the_line_to_a_join_is_hidden_only_where_a_member_leads_there() -> None:
    """Two lines for one way are noise; no line at all would hide where the run goes on."""
    assert [line.target for line in picture(graphs.scopes()).shown() if line.stroke is Stroke.JOIN] == []
    ends_inside = graphs.graph(
        Map(id="m", over="x", body="w", join="after"),
        graphs.script("w", "stop"),
        End(id="stop"),
        End(id="after"),
    )
    assert [line.target for line in picture(ends_inside).shown() if line.stroke is Stroke.JOIN] == ["after"]


@given(st.text())
def test_a_label_is_one_line_of_characters_that_can_be_seen(text: str) -> None:
    """Escapes, direction marks and newlines in a value must not reach a terminal or a page."""
    shown = visible(text, 20)
    assert shown.isprintable()
    assert len(shown) <= 20


def test_an_unknown_format_is_refused_with_those_there_are() -> None:
    """A caller that isn't the command line gets the same help."""
    with pytest.raises(UsageError) as refused:
        draw(graphs.loop(), "png")
    assert "svg" in refused.value.hint


@pytest.mark.parametrize("wanted", ["mermaid", "dot", "svg", "ascii"])
@pytest.mark.parametrize("made", [graphs.loop(), graphs.scopes(), graphs.every_kind()], ids=["loop", "scopes", "kinds"])
def test_the_same_graph_gives_the_same_text_with_every_node(wanted: str, made: Graph) -> None:
    """Pictures are committed and compared; each node has to be found in each of them."""
    text = draw(made, wanted)
    assert text == draw(made, wanted)
    assert all(name in text for name in made.nodes)


@pytest.mark.parametrize("wanted", ["mermaid", "dot", "ascii"])
@pytest.mark.parametrize("made", [graphs.chain(10_000), graphs.nest(3_000)], ids=["long", "deep"])
def test_very_long_and_very_deep_graphs_are_drawn(wanted: str, made: Graph) -> None:
    """The largest workflow allowed has to be drawable without running out of stack."""
    assert len(draw(made, wanted).splitlines()) > len(made.nodes) // 2
