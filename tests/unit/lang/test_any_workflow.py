"""Whatever stands in a workflow file: it loads, or its problems are told."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from bailiwick.engine.graph import Definition, edges, from_json, to_json
from bailiwick.errors import InputInvalid
from bailiwick.lang.kinds import KINDS
from bailiwick.lang.load import load

IDS = ["a", "b", "c", "d"]
WORDS = st.sampled_from(
    [
        *IDS,
        "",
        "x.y",
        "{{ a }}",
        "{{ b.c | upper }}",
        "{% include 'p.md' %}",
        "{{ broken",
        "p.md",
        "../p",
        "1h",
        "yes",
        "again",
    ]
)
SIMPLE = st.none() | st.booleans() | st.integers(-2, 3) | WORDS
VALUES = st.recursive(
    SIMPLE, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3), max_leaves=6
)
FIELDS = sorted({field.name for kind in KINDS.values() for field in kind.table.fields} - {"id", "type"})
TARGETS = {"next": "b", "join": "c", "body": "d", "default": "c", "branches": {"x": "d"}, "cases": {"k": "b"}}


@st.composite
def nodes(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Nodes that are wrong in some ways and right in others."""
    out: list[dict[str, Any]] = []
    for name in IDS[: draw(st.integers(1, 4))]:
        node: dict[str, Any] = {"id": name, "type": draw(st.sampled_from([*KINDS, "nope"]))}
        kind = KINDS.get(node["type"])
        for field in draw(st.lists(st.sampled_from(FIELDS), max_size=4)):
            node[field] = draw(VALUES)
        for field in (field.name for field in kind.table.fields) if kind and draw(st.booleans()) else ():
            if field in TARGETS:
                node.setdefault(field, TARGETS[field])
        out.append(node)
    return out


@given(
    nodes(),
    st.dictionaries(st.sampled_from(["vars", "params", "budget", "returns", "version", "x"]), VALUES, max_size=2),
)
def test_any_nodes_load_or_have_problems(listed: list[dict[str, Any]], head: dict[str, Any]) -> None:
    """No combination of fields ends in another exception, and what loads has no loose ends and can be stored."""
    with tempfile.TemporaryDirectory() as directory:
        Path(directory, "p.md").write_text("{{ a }}")
        text = json.dumps({"name": "any", "start": "a", **head, "nodes": listed})
        Path(directory, "workflow.yaml").write_text(text)
        try:
            graph = load(Path(directory)).graph
        except InputInvalid as error:
            found = error.problems()
        else:
            found = []
            assert all(target in graph.nodes for node in graph.nodes.values() for _, target in edges(node))
            assert from_json(json.loads(json.dumps(to_json(Definition(graph=graph))))).graph == graph
    assert all(problem.code and problem.what and problem.place and problem.hint for problem in found)
