"""Field tables: one description, a checker and a JSON Schema."""

from __future__ import annotations

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bailiwick.errors import Problem
from bailiwick.ids import Json
from bailiwick.lang.durations import seconds_of
from bailiwick.lang.fields import (
    Anything,
    Choice,
    Duration,
    Field,
    Findings,
    Flag,
    ListOf,
    MapOf,
    Number,
    OneOf,
    Scalar,
    Shape,
    Table,
    Text,
)
from bailiwick.lang.source import parse_yaml
from bailiwick.lang.wording import nearest, quoted
from tests.unit.lang.flows import at, complete

POINT = Table("point", (Field("x", Number(), "across", required=True), Field("label", Text())))


def read(shape: Shape, text: str, *, strict: bool = True) -> tuple[Json, list[Problem]]:
    """Read the value of `v` by a shape."""
    found = Findings(strict=strict)
    data = shape.read(parse_yaml(f"v: {text}\n".encode(), "f.yaml").entries["v"], found)
    return data, [complete(problem) for problem in found.problems]


@pytest.mark.parametrize(
    ("shape", "text", "data"),
    [
        (Text(), "hi", "hi"),
        (Text(pattern="[a-z]+"), "hi", "hi"),
        (Scalar(), "3", "3"),
        (Scalar(), "true", "true"),
        (Scalar(), "1.5", "1.5"),
        (Number(low=0, high=2), "1.5", 1.5),
        (Number(whole=True), "3", 3),
        (Flag(), "true", True),
        (Duration(), "1h30m", 5400.0),
        (Duration(), "90", 90.0),
        (Choice(("a", "b")), "b", "b"),
        (Anything(), "{a: [1, null]}", {"a": [1, None]}),
        (Anything(), "null", None),
        (ListOf(Number()), "[1, 2]", [1, 2]),
        (MapOf(Text()), "{yes: no}", {"yes": "no"}),
        (OneOf((ListOf(Scalar()), MapOf(Scalar()))), "{a: 1}", {"a": "1"}),
        (OneOf((Number(), Text())), "x", "x"),
        (POINT, "{x: 1, label: a}", {"x": 1, "label": "a"}),
        (POINT, "{x: 1, label: null}", {"x": 1}),
    ],
)
def test_a_shape_reads_what_fits_and_its_schema_agrees(shape: Shape, text: str, data: Json) -> None:
    """An editor that knows the schema and the checker never disagree on a good file."""
    assert read(shape, text) == (data, [])
    plain = parse_yaml(f"v: {text}\n".encode(), "f.yaml").data["v"]
    assert jsonschema_rs.is_valid(shape.schema(), plain)


@pytest.mark.parametrize(
    ("shape", "text", "words"),
    [
        (Text(), "3", "expected a text, found the number 3"),
        (Text(), "[a]", "found a list"),
        (Text(pattern="[a-z]+", expects="a word"), "A1", "expected a word, found the text 'A1'"),
        (Text(empty=False), "' '", "not empty"),
        (Scalar(), "[1]", "expected a text, a number or a boolean"),
        (Number(low=1, high=5), "9", "a number from 1 to 5, found the number 9"),
        (Number(low=1), "0", "at least 1"),
        (Number(high=1), "2", "at most 1"),
        (Number(whole=True), "1.5", "a whole number"),
        (Number(), "true", "found the boolean true"),
        (Flag(), "yes", "expected true or false"),
        (Duration(), "soon", "expected a duration"),
        (Duration(low=1), "0.5", "at least 1 s"),
        (Duration(), "''", "expected a duration"),
        (Choice(("again", "ask")), "agan", "one of again, ask"),
        (ListOf(Text(), least=1), "[]", "not empty"),
        (ListOf(Text(), most=1), "[a, b]", "at most 1"),
        (ListOf(Text()), "{a: b}", "found a mapping"),
        (MapOf(Text(), least=1), "{}", "not empty"),
        (MapOf(Text()), "null", "found nothing"),
        (MapOf(Text(), key="[a-z]+"), "{A: x}", "can't be used as a key"),
        (OneOf((ListOf(Text()), MapOf(Text()))), "3", "a list or a mapping"),
        (OneOf((ListOf(Text()), Text())), "[3]", "expected a text, found the number 3"),
        (POINT, "[1]", "a mapping (point)"),
        (POINT, "{label: a}", "'x' is missing"),
    ],
)
def test_what_does_not_fit_is_named_with_what_was_found(shape: Shape, text: str, words: str) -> None:
    """The message is enough to fix the file; the schema refuses the same."""
    _, [problem] = read(shape, text)
    assert words in problem.what
    plain = parse_yaml(f"v: {text}\n".encode(), "f.yaml").data["v"]
    if text != "' '":
        assert not jsonschema_rs.is_valid(shape.schema(), plain)


def test_all_problems_of_a_table_are_found_at_their_places() -> None:
    """One run of the check shows everything."""
    _, found = read(Table("line", (Field("a", POINT), Field("b", POINT))), "{a: {x: t}, b: {y: 1}, c: 2}")
    assert [(problem.code, at(problem)) for problem in found] == [
        ("BW110", (1, 12)),
        ("BW112", (1, 20)),
        ("BW111", (1, 19)),
        ("BW112", (1, 27)),
    ]


@pytest.mark.parametrize("strict", [True, False])
def test_an_unknown_key_is_an_error_or_a_warning_with_the_nearest_name(strict: bool) -> None:
    """Configuration refuses typos, workflows written for another tool still run."""
    data, [problem] = read(POINT, "{x: 1, lable: a}", strict=strict)
    assert data == {"x": 1}
    assert problem.warning is not strict
    assert problem.hint == "'label'"


def test_a_closed_schema_refuses_unknown_keys_and_an_open_one_does_not() -> None:
    """Editors mark typos in configuration."""
    assert not jsonschema_rs.is_valid(POINT.schema(), {"x": 1, "y": 2})
    assert jsonschema_rs.is_valid(POINT.schema(closed=False), {"x": 1, "y": 2})
    assert POINT.schema()["properties"]["x"]["description"] == "across"


def test_an_optional_field_may_be_empty_in_every_shape() -> None:
    """`model:` with nothing behind it is how people switch a line off."""
    shapes: tuple[Shape, ...] = (Text(), Scalar(), Number(), Flag(), Duration(), Choice(("a",)), ListOf(Text()), POINT)
    for shape in shapes:
        table = Table("t", (Field("v", shape),))
        found = Findings()
        assert table.read(parse_yaml(b"v:\nw: 1\n", "f"), found) == {}
        assert [problem.code for problem in found.problems] == ["BW112"]
        assert jsonschema_rs.is_valid(table.schema(), {"v": None})


def test_a_required_field_may_not_be_empty() -> None:
    """`start:` with nothing behind it is a missing start."""
    assert read(POINT, "{x: null}")[1][0].code == "BW111"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("10s", 10.0),
        ("2h", 7200.0),
        ("1h30m", 5400.0),
        ("500ms", 0.5),
        ("2d", 172800.0),
        ("1d2h3m4s5ms", 93784.005),
        ("1.5s", 1.5),
        ("90", 90.0),
        (" 5m ", 300.0),
        (0, 0.0),
        (2.5, 2.5),
        ("0s", 0.0),
        ("", None),
        ("s", None),
        ("1x", None),
        ("-1s", None),
        (-1, None),
        ("1s1h", None),
        ("1 h", None),
        (True, None),
        (None, None),
        ([], None),
        ("٣s", None),
        ("1e3", None),
        ("9" * 400 + "s", None),
    ],
)
def test_durations_are_read_as_people_write_them(text: Json, seconds: float | None) -> None:
    """The same words mean the same in workflows, configuration and on the command line."""
    found = seconds_of(text)
    assert found == (pytest.approx(seconds) if seconds is not None else None)


@given(st.integers(0, 10**6), st.sampled_from([("ms", 0.001), ("s", 1), ("m", 60), ("h", 3600), ("d", 86400)]))
def test_a_number_with_a_unit_is_always_that_many(number: int, unit: tuple[str, float]) -> None:
    """`5m` is minutes and never milliseconds."""
    assert seconds_of(f"{number}{unit[0]}") == pytest.approx(number * unit[1])


def test_nearest_names_stay_quick_among_very_many() -> None:
    """A typo in a workflow of ten thousand nodes still gets its hint."""
    names = [f"node_{number}" for number in range(10_000)]
    assert nearest("nodo_4321", names)[0] == "node_4321"
    assert nearest("zzz", names) == []
    assert quoted([]) == ""
    assert quoted(["a"]) == "'a'"
    assert quoted(["a", "b", "c"]) == "'a', 'b' or 'c'"


def test_suggestions_are_looked_for_in_the_first_problems_only() -> None:
    """Ten thousand typos must not take minutes to explain."""
    found = Findings()
    hints = [found.suggest("labell", ["label"], "none") for _ in range(40)]
    assert hints[0] == "'label'"
    assert hints[-1] == "none"
