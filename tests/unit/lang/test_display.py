"""The field `display` of a node: what it may say, what is checked, and that it changes no file without it."""

from __future__ import annotations

from pathlib import Path

import pytest

from bailiwick.engine.graph import Definition, Display, from_json, to_json
from bailiwick.errors import InputInvalid
from bailiwick.lang.load import Loaded, load
from bailiwick.lang.schema import workflow_schema

FLOW = """version: 1
name: flow
vars: {{who: Ada}}
start: a
nodes:
  - {{id: a, type: set, values: {{n: 1}}, next: done{display}}}
  - {{id: done, type: terminal}}
returns: [n]
"""


def _load(tmp_path: Path, display: str) -> Loaded:
    (tmp_path / "workflow.yaml").write_text(FLOW.format(display=f", display: {display}" if display else ""))
    return load(tmp_path)


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("hidden", Display("hidden")),
        ("quiet", Display("quiet")),
        ('"round {{ node.visit }}"', Display(title="round {{ node.visit }}")),
        ('{title: next, text: "for {{ who }}"}', Display(title="next", text="for {{ who }}")),
        ("", None),
    ],
)
def test_a_display_is_a_mode_a_title_or_both_texts(tmp_path: Path, given: str, meant: Display | None) -> None:
    """It is kept with the run, and read back as it was."""
    loaded = _load(tmp_path, given)
    assert loaded.graph.nodes["a"].display == meant
    stored = to_json(Definition(graph=loaded.graph))
    assert from_json(stored).graph == loaded.graph
    assert ("display" in stored["graph"]["nodes"]["a"]) is (meant is not None)


def test_a_broken_template_is_an_error_with_its_place(tmp_path: Path) -> None:
    """A title that can't be rendered is found before the run."""
    with pytest.raises(InputInvalid) as refused:
        _load(tmp_path, '"{{ who"')
    assert str(refused.value.problems()[0].place).endswith("workflow.yaml:6:61")


@pytest.mark.parametrize(("given", "words"), [('"{{ whom }}"', "whom"), ("hiden", "write `hidden`")])
def test_a_name_that_nothing_provides_and_a_misspelt_mode_are_warnings(tmp_path: Path, given: str, words: str) -> None:
    """Both work, and neither is what was meant."""
    warnings = _load(tmp_path, given).warnings
    assert any(words in str(warning) for warning in warnings), warnings


@pytest.mark.parametrize("given", ["7", "[hidden]", "{titel: x}", '""'])
def test_anything_else_is_refused_or_warned_of(tmp_path: Path, given: str) -> None:
    """A display that does nothing would be a setting that does nothing."""
    try:
        warnings = _load(tmp_path, given).warnings
    except InputInvalid:
        return
    assert warnings


def test_editors_know_it() -> None:
    """Every kind of node has the field in the schema."""
    rules = workflow_schema()["properties"]["nodes"]["items"]["allOf"]
    assert all("display" in rule["then"]["properties"] for rule in rules)
