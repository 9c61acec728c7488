"""SVG pictures: valid, harmless and complete."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bailiwick.drawing.service import draw
from tests.unit.drawing import graphs

SVG = "{http://www.w3.org/2000/svg}"
ALLOWED = {"svg", "title", "style", "defs", "marker", "path", "text", "g", "rect", "polygon", "circle"}


def _read(text: str) -> ET.Element:
    return ET.fromstring(text)


def _texts(root: ET.Element) -> list[str]:
    return [element.text or "" for element in root.iter(f"{SVG}text")]


@pytest.mark.parametrize("value", graphs.HOSTILE)
def test_a_value_cannot_become_markup(value: str) -> None:
    """A picture is opened in a browser: a value must not bring elements, scripts or handlers."""
    root = _read(draw(graphs.hostile(value), "svg"))
    assert {element.tag.removeprefix(SVG) for element in root.iter()} <= ALLOWED
    names = {name for element in root.iter() for name in element.attrib}
    assert not any(name.startswith("on") or "href" in name for name in names)


@given(st.text(max_size=40))
def test_every_value_gives_valid_xml(value: str) -> None:
    """Some characters are not allowed in XML at all, not even escaped."""
    root = _read(draw(graphs.hostile(value), "svg"))
    assert root.tag == f"{SVG}svg"


def test_text_is_text_and_says_what_stands_in_the_file() -> None:
    """One can select, search and read aloud what is text."""
    texts = _texts(_read(draw(graphs.loop(), "svg")))
    assert {"fetch", "check", "done", "broken", "ok · >= 10", "again", "on_error"} <= set(texts)


def test_forms_follow_kinds() -> None:
    """A decision is a diamond, an end is round, an area is a box with its name."""
    root = _read(draw(graphs.scopes(), "svg"))
    classes = [element.get("class") for element in root.iter()]
    assert classes.count("area") == 3
    assert {"fan · lint", "fan · tests", "each · each case of cases"} <= set(_texts(root))
    kinds = _read(draw(graphs.every_kind(), "svg"))
    forms = {element.get("class"): element.tag.removeprefix(SVG) for element in kinds.iter() if element.get("class")}
    assert forms["box branch"] == forms["box agent"] == forms["box person"] == "polygon"
    assert forms["box terminal"] == forms["box fail"] == "rect"


def test_an_error_line_is_dashed_and_every_line_has_its_tip() -> None:
    """Style and arrow are found by name in the same file: nothing is loaded from elsewhere."""
    text = draw(graphs.loop(), "svg")
    root = _read(text)
    tips = {marker.get("id") for marker in root.iter(f"{SVG}marker")}
    used = {str(path.get("marker-end")) for path in root.iter(f"{SVG}path") if path.get("marker-end")}
    assert used == {"url(#tip-flow)", "url(#tip-error)"}
    assert {name.removeprefix("url(#").removesuffix(")") for name in used} <= tips
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "")


def test_a_long_chain_with_one_failure_node_stays_small() -> None:
    """Lines that pass many rows share a lane; a point in each row of each would grow with the square."""
    size = [len(draw(graphs.chain(length), "svg")) for length in (200, 400)]
    assert size[1] < 2.2 * size[0]
