"""Files without `version:` are read as workhorse 0.1.0 read them: PyYAML's safe loader is the oracle."""

from __future__ import annotations

import datetime as dt
import math

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bailiwick.errors import InputInvalid, Problem
from bailiwick.ids import Json
from bailiwick.lang.source import parse_yaml
from tests.unit.lang.flows import Flow

SCALARS = st.one_of(
    st.sampled_from(["yes", "No", "ON", "off", "y", "n", "~", "null", "true", "TRUE", "=", "<<", ".inf", "-.5", "1e3"]),
    st.from_regex(r"\A[-+]?[0-9][0-9_:.xobe+-]{0,7}\Z"),
    st.from_regex(r"\A(19|20)[0-9]{2}-[0-9]{1,2}-[0-9]{1,2}([Tt ][0-9]{2}:[0-9]{2}:[0-9]{2}(Z| ?[+-][0-9]{1,2})?)?\Z"),
    st.from_regex(r"\A[A-Za-z][A-Za-z0-9 _.]{0,6}[A-Za-z]\Z"),
)


def _oracle(text: str) -> Json:
    """What workhorse had in its context, as a template showed a date."""
    value = yaml.safe_load(text)["vars"]["x"]
    return str(value) if isinstance(value, dt.date) else value


@settings(max_examples=400, deadline=None)
@given(scalar=SCALARS, block=st.booleans())
@example(scalar="010", block=False)
@example(scalar="1:30", block=True)
@example(scalar="0b", block=True)
def test_a_scalar_is_what_workhorse_read(scalar: str, block: bool) -> None:
    """The same value, or a refusal where there was none or JSON has none; a warning iff `version: 1` differs."""
    text = f"vars:\n  x: {scalar}\n" if block else f"vars: {{x: {scalar}}}\n"
    try:
        wanted = _oracle(text)
    except (yaml.YAMLError, ValueError, KeyError, TypeError, IndexError, AttributeError):
        return
    warnings: list[Problem] = []
    try:
        found = parse_yaml(text.encode(), "w.yaml", warnings).data["vars"]["x"]
    except InputInvalid:
        odd = isinstance(wanted, float) and not math.isfinite(wanted)
        assert odd or (isinstance(wanted, int | float) and abs(wanted) >= 2**63)
        return
    assert (type(found), found) == (type(wanted), wanted)
    try:
        modern = parse_yaml(f"version: 1\n{text}".encode(), "w.yaml", []).data["vars"]["x"]
        differs = (type(modern), modern) != (type(found), found)
    except InputInvalid:
        differs = True
    assert bool(warnings) == differs


@pytest.mark.parametrize(
    ("text", "value", "hint"),
    [
        ("yes", True, "the text 'yes'"),
        ("off", False, "the text 'off'"),
        ("010", 8, "the number 10"),
        ("1:30", 90, "the text '1:30'"),
        ("1_000", 1000, "the text '1_000'"),
        ("2024-05-01", "2024-05-01", ""),
        ("1e3", "1e3", "the number 1000.0"),
    ],
)
def test_each_such_place_has_a_warning(text: str, value: Json, hint: str) -> None:
    """It says what it is now and what `version: 1` would make of it, and where."""
    warnings: list[Problem] = []
    root = parse_yaml(f"vars:\n  x: {text}\n".encode(), "w.yaml", warnings)
    assert root.data["vars"]["x"] == value
    assert [(w.place.line, w.place.column) for w in warnings if w.place] == ([(2, 6)] if hint else [])
    assert all(w.warning and hint in w.hint for w in warnings)
    assert parse_yaml(b"version: 1\nvars: {x: yes}\n", "w.yaml", []).data["vars"]["x"] == "yes"


def test_quoted_scalars_are_text_in_both() -> None:
    """Quotes say that text is meant."""
    warnings: list[Problem] = []
    assert parse_yaml(b"vars: {a: 'yes', b: \"010\"}\n", "w.yaml", warnings).data["vars"] == {"a": "yes", "b": "010"}
    assert not warnings


def test_a_branch_on_a_workhorse_boolean_takes_its_case(flow: Flow) -> None:
    """`enabled: yes` is true, and `cases` compare it as the text `True`."""
    nodes = (
        '  - {id: pick, type: branch, path: enabled, cases: {"True": good}, default: bad}\n'
        "  - {id: good, type: terminal}\n  - {id: bad, type: fail}\n"
    )
    flow.write("workflow.yaml", f"vars: {{enabled: yes}}\nstart: pick\nnodes:\n{nodes}")
    loaded = flow.load()
    assert loaded.graph.vars == {"enabled": True}
    assert [w.code for w in loaded.warnings] == ["BW114"]
