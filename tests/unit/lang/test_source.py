"""YAML to values with places."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from bailiwick.errors import InputInvalid, Place, Problem
from bailiwick.lang import builder
from bailiwick.lang.source import MAX_BYTES, parse_yaml, read_yaml
from bailiwick.lang.values import Value
from tests.unit.lang.flows import at, complete


def refused(data: bytes | str) -> list[Problem]:
    raw = data.encode() if isinstance(data, str) else data
    with pytest.raises(InputInvalid) as caught:
        parse_yaml(raw, "f.yaml")
    return [complete(problem) for problem in caught.value.problems()]


def parsed(text: str) -> Any:
    return parse_yaml(text.encode(), "f.yaml").data


def test_every_part_knows_where_it_was_written() -> None:
    """Problems point at a line and a column, of keys as well as of values."""
    value = parse_yaml(b"a: 1\nb:\n  - x\n  - {c: y}\n", "f.yaml")
    assert value.entries["a"].place == Place("f.yaml", 1, 4)
    assert value.key_place("a") == Place("f.yaml", 1, 1)
    assert value.key_place("b") == Place("f.yaml", 2, 1)
    assert value.entries["b"].items[1].entries["c"].place == Place("f.yaml", 4, 9)
    assert value.at("b", 1, "nope") == Place("f.yaml", 4, 5)
    assert value.entries["a"].entries == {}
    assert value.entries["a"].items == []


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("true", True),
        ("False", False),
        ("null", None),
        ("~", None),
        ("", None),
        ("yes", "yes"),
        ("off", "off"),
        ("12", 12),
        ("-3", -3),
        ("+3", 3),
        ("0x1F", 31),
        ("0o17", 15),
        ("010", 10),
        ("1.5", 1.5),
        (".5", 0.5),
        ("1e3", 1000.0),
        ("1_000", "1_000"),
        ("12:30", "12:30"),
        ("2030-01-31", "2030-01-31"),
        ("'1'", "1"),
        ('"true"', "true"),
        ("!!str 1", "1"),
        ("! 1", "1"),
        ("!!int '7'", 7),
        ("!!float 1", 1),
        ("-", [None]),
        ("9223372036854775807", 2**63 - 1),
    ],
)
def test_scalars_follow_the_core_schema_of_yaml_1_2(text: str, data: object) -> None:
    """What a person writes means the same as in every YAML 1.2 file: no sexagesimals, dates or yes-booleans."""
    found = parsed(f"a:\n  {text}\n")["a"]
    assert found == data
    assert type(found) is type(data)


def test_keys_are_text_as_written() -> None:
    """`cases: {yes: x, 1: y}` has to compare with the texts "yes" and "1"."""
    assert list(parsed("yes: 1\nno: 2\n1: 3\n1.0: 4\ntrue: 5\nnull: 6\n~: 7\non: 8\n")) == [
        "yes",
        "no",
        "1",
        "1.0",
        "true",
        "null",
        "~",
        "on",
    ]


def test_aliases_share_a_value_and_show_their_own_place() -> None:
    """A value used twice is written once, and a problem in it points at the use."""
    value = parse_yaml(b"a: &x {k: [1]}\nb: *x\n", "f.yaml")
    assert value.data == {"a": {"k": [1]}, "b": {"k": [1]}}
    assert value.entries["b"].place == Place("f.yaml", 2, 4)


def test_merge_keys_fill_in_what_is_not_written() -> None:
    """Files that share fields by `<<` keep their meaning; a quoted "<<" is an ordinary key."""
    assert parsed("a: &a {x: 1, y: 2}\nb: {<<: *a, y: 3}\nc: {<<: [*a, {z: 4}]}\n'<<': 5\n") == {
        "a": {"x": 1, "y": 2},
        "b": {"y": 3, "x": 1},
        "c": {"x": 1, "y": 2, "z": 4},
        "<<": 5,
    }
    assert refused("a: {<<: 3}\n")[0].code == "BW110"


@pytest.mark.parametrize(
    ("data", "code", "place"),
    [
        ("a: [1\nb: 2\n", "BW104", (2, 2)),
        ("a:\n\tb: 1\n", "BW104", (2, 1)),
        ("a: *nope\n", "BW104", (1, 4)),
        ("a: 1\nb: 2\na: 3\n", "BW105", (3, 1)),
        ("a: !thing 3\n", "BW106", (1, 4)),
        ("a: !!python/name:os.system x\n", "BW106", (1, 4)),
        ("a: !!binary aGk=\n", "BW106", (1, 4)),
        ("a: !!int x\n", "BW106", (1, 4)),
        ("a: !!set {x: null}\n", "BW106", (1, 4)),
        ("!!int a: 1\n", "BW106", (1, 1)),
        ("a: .nan\n", "BW107", (1, 4)),
        ("a: -.inf\n", "BW107", (1, 4)),
        ("a: 1e999\n", "BW107", (1, 4)),
        ("a: 9223372036854775808\n", "BW107", (1, 4)),
        ("a: 0x8000000000000000\n", "BW107", (1, 4)),
        ("a: -" + "9" * 5000 + "\n", "BW107", (1, 4)),
        ("a: &a [*a]\n", "BW108", (1, 8)),
        ("a: " + "[" * 65 + "]" * 65, "BW108", (1, 67)),
        ("a: 1\n---\nb: 1\n", "BW109", (2, 1)),
        ("- 1\n", "BW109", (1, 1)),
        ("text\n", "BW109", (1, 1)),
        ("# nothing\n", "BW109", (1, 1)),
        ("", "BW109", (1, 1)),
        ("? [a]\n: 1\n", "BW110", (1, 3)),
        ("a: &a x\n*a : 1\n", "BW110", (2, 1)),
        ("a: 1\nb: \x07\n", "BW102", (2, 4)),
        ("a: \x00\n", "BW102", (1, 4)),
        ('a: "\\x1b[31m"\n', "BW102", (1, 4)),
        ('"\\0": 1\n', "BW102", (1, 1)),
        (b"a: 1\nb: \xff\n", "BW102", (2, 4)),
        (b"\xff\xfea\x00:\x00", "BW102", (1, 1)),
    ],
)
def test_what_a_file_may_not_hold_is_refused_at_its_place(data: bytes | str, code: str, place: tuple[int, int]) -> None:
    """Each refusal says what, where and how to go on."""
    [problem] = refused(data)
    assert (problem.code, at(problem)) == (code, place)


def test_the_byte_offset_of_what_is_not_utf_8_is_named() -> None:
    """An editor may not show the broken character, a byte offset finds it."""
    assert "offset 8" in refused(b"a: 1\nb: \xff\n")[0].what


def test_a_duplicate_key_names_both_places() -> None:
    """Either of the two may be the wrong one."""
    assert "first at 1:1" in refused("a: 1\nb: 2\na: 3\n")[0].what


def test_all_problems_are_found_in_one_go() -> None:
    """A person fixes a file once, not once per problem."""
    codes = [problem.code for problem in refused("a: .nan\nb: !x 1\na: 2\nc: 99999999999999999999\n")]
    assert codes == ["BW107", "BW106", "BW105", "BW107"]


def test_a_billion_laughs_are_refused_before_they_expand() -> None:
    """A few lines must not become gigabytes; neither may few aliases of one long text."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 10)]
    assert refused("\n".join(lines))[0].code == "BW108"
    assert refused(f"a: &a {'x' * 500_000}\nb: [{', '.join(['*a'] * 50)}]\n")[0].code == "BW108"


def test_a_few_hundred_aliases_are_fine() -> None:
    """The budget is for bombs, not for files that share a retry policy."""
    uses = "\n".join(f"k{i}: *r" for i in range(1000))
    assert len(parsed(f"r: &r {{max: 3, backoff: 2s}}\n{uses}\n")) == 1001


@pytest.mark.parametrize("text", ["a: [" + "x," * 300_000 + "]", "\n".join(f"k{i}:" for i in range(110_000))])
def test_a_file_of_tiny_values_is_refused_before_it_fills_memory(text: str) -> None:
    """A value costs a hundred times its text: one megabyte of commas would cost a hundred."""
    [problem] = refused(text)
    assert problem.code == "BW108"


def test_a_file_over_one_mebibyte_is_refused(tmp_path: Path) -> None:
    """Large data belongs into a file of its own."""
    path = tmp_path / "f.yaml"
    path.write_bytes(b"a: " + b"x" * MAX_BYTES)
    with pytest.raises(InputInvalid) as caught:
        read_yaml(path)
    assert caught.value.code == "BW101"
    assert refused(path.read_bytes())[0].code == "BW101"


def test_problems_stop_at_a_hundred() -> None:
    """A wrong file gives a readable answer, not a megabyte of it."""
    assert len(refused("a: [" + ".nan, " * 5000 + "]")) == 100


def test_reading_names_the_file_as_it_is_shown(tmp_path: Path) -> None:
    """People see the path they typed."""
    path = tmp_path / "f.yaml"
    path.write_bytes(b"\xef\xbb\xbfa: 1\n")
    assert read_yaml(path, "shown.yaml").entries["a"].place == Place("shown.yaml", 1, 4)
    assert read_yaml(path).place.file == str(path)


def test_what_is_no_regular_file_is_refused_without_waiting(tmp_path: Path) -> None:
    """Opening a pipe would hang; a directory or nothing at all gets its own words."""
    os.mkfifo(tmp_path / "pipe")
    for name, code in (("pipe", "BW132"), (".", "BW132"), ("none", "BW101"), ("a\0b", "BW101")):
        with pytest.raises(InputInvalid) as caught:
            read_yaml(tmp_path / name, "f.yaml")
        assert complete(caught.value.problems()[0]).code == code


def test_the_python_parser_reads_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without libyaml the same file means the same."""
    text = b"a: &x [1, yes, {b: 'c'}]\nd: *x\n"
    fast = parse_yaml(text, "f.yaml")
    monkeypatch.setattr(yaml, "__with_libyaml__", False)
    slow = parse_yaml(text, "f.yaml")
    assert fast.data == slow.data
    assert fast.at("a", 2, "b") == slow.at("a", 2, "b")


def test_an_escape_beyond_unicode_is_a_problem_with_either_parser(monkeypatch: pytest.MonkeyPatch) -> None:
    """The Python parser raises its own kind of error there."""
    assert refused('a: "\\UFFFFFFFF"\n')[0].code == "BW104"
    monkeypatch.setattr(yaml, "__with_libyaml__", False)
    assert refused('a: "\\UFFFFFFFF"\n')[0].code == "BW104"


PIECES = st.sampled_from(
    ["a", "b", ": ", "- ", "\n", "  ", "[", "]", "{", "}", ",", "&x ", "*x", "!!int ", "!t ", "<<", "? ", "|", ">", "'",
     '"', "\\", "#", "---", "...", "%", "1", ".inf", "\t", "\r", "é", "\u2028", "\x00", "@", "`", "\ufeff"]
)  # fmt: skip


@given(st.binary(max_size=200) | st.lists(PIECES, max_size=40).map(lambda parts: "".join(parts).encode()))
@example(b"%YAML 3.0\n---\na: 1")
@example(b"a: !<> x")
@example(b'"\\ud800": 1')
def test_any_bytes_give_a_value_or_problems(data: bytes) -> None:
    """A parser of foreign input never ends in an exception of another kind."""
    _parse_safely(data)


@given(st.lists(PIECES, max_size=30).map(lambda parts: "".join(parts).encode()))
def test_any_text_is_safe_without_libyaml_too(data: bytes) -> None:
    """The fall-back parser has its own exceptions."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(yaml, "__with_libyaml__", False)
        _parse_safely(data)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"], exclude_characters="\ufffe\uffff\ufeff")),
    lambda inner: st.lists(inner, max_size=4)
    | st.dictionaries(st.text("abc", min_size=1, max_size=3), inner, max_size=4),
    max_leaves=10,
)  # fmt: skip


@given(st.dictionaries(st.text("abcxyz", min_size=1, max_size=5), JSON, max_size=5))
def test_json_is_read_as_it_is(data: dict[str, Any]) -> None:
    """JSON is YAML: machine-written workflows mean what they say."""
    import json

    if data:
        assert parsed(json.dumps(data, ensure_ascii=False)) == data


def _parse_safely(data: bytes) -> None:
    problems: list[Problem] = []
    try:
        _same(parse_yaml(data, "f.yaml"))
    except InputInvalid as error:
        problems = error.problems()
    assert all(problem.hint and problem.place for problem in problems)


def _same(value: Value) -> None:
    """The data of a value is made of the data of its parts."""
    if isinstance(value.data, dict):
        assert {key: part.data for key, part in value.entries.items()} == value.data
        assert value.marks.keys() == value.entries.keys()
    for part in [*value.entries.values(), *value.items]:
        _same(part)
    assert len(value.items) == (len(value.data) if isinstance(value.data, list) else 0)


def test_limits_are_what_the_language_promises() -> None:
    """The documented figures."""
    assert (MAX_BYTES, builder.MAX_DEPTH, builder.MAX_EXPANSION) == (1 << 20, 64, 10_000)
