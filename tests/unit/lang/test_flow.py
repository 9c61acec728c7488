"""Where control can go, and what the check says where it can't."""

from __future__ import annotations

import pytest

from bailiwick.engine.graph import Parallel
from tests.unit.lang.flows import Flow, at, word_at

FAN = """
- {id: a, type: parallel, branches: {x: x1, y: y1}, join: j}
- {id: x1, type: set, values: {p: 1}, next: j}
- {id: y1, type: set, values: {q: 1}, next: %s}
- {id: j, type: set, values: {r: 1}, next: done}
"""


def test_an_unknown_target_gets_the_nearest_names_wherever_it_stands(flow: Flow) -> None:
    """A typo in any kind of edge is found, at the word itself."""
    flow.nodes(
        """
        - {id: a, type: set, values: {}, next: chekc}
        - {id: check, type: branch, path: x, cases: {k: doen}, default: b, conditions: [{op: <, value: x, next: dnoe}]}
        - {id: map, type: map, over: x, body: bodi, join: dome, on_error: fial}
        - {id: body, type: terminal}
        - {id: fail, type: fail}
        - {id: par, type: parallel, branches: {k: bdy}, join: done}
        """
    )
    found = {problem.what.split("'")[3]: problem for problem in flow.problems() if problem.code == "BW103"}
    assert set(found) == {"chekc", "doen", "dnoe", "b", "bodi", "dome", "fial", "bdy"}
    assert found["chekc"].hint == "'check'"
    assert found["dnoe"].hint == "'done'"
    assert "'body'" in found["bodi"].hint
    assert all(word_at(problem).startswith(name) for name, problem in found.items())


def test_an_unknown_start_is_an_error(flow: Flow) -> None:
    """The first edge is checked like the others."""
    flow.write("workflow.yaml", "start: frist\nnodes: [{id: first, type: terminal}]\n")
    problem = flow.problem("BW103")
    assert (problem.hint, at(problem)) == ("'first'", (1, 8))


def test_a_node_that_nothing_leads_to_is_a_warning(flow: Flow) -> None:
    """Left-overs are fine, and shown."""
    flow.nodes("- {id: a, type: set, values: {}, next: done}\n- {id: left, type: set, values: {}, next: done}")
    assert "'left'" in flow.warning("BW123").what


def test_a_node_from_which_no_end_can_be_reached_is_an_error(flow: Flow) -> None:
    """A run that can't end would burn its budget."""
    flow.write("scripts/s.sh", "")
    flow.nodes(
        """
        - {id: a, type: branch, path: x, cases: {k: b}, default: done}
        - {id: b, type: script, script: scripts/s.sh, next: c}
        - {id: c, type: script, script: scripts/s.sh, next: b}
        """
    )
    problem = flow.problem("BW124")
    assert "'b' or 'c'" in problem.what
    assert word_at(problem).startswith("b, type: script")


def test_a_loop_with_a_way_out_is_fine(flow: Flow) -> None:
    """Retrying until it works is what workflows are for."""
    flow.write("scripts/s.sh", "")
    flow.nodes(
        """
        - {id: a, type: script, script: scripts/s.sh, outputs: [{key: ok}], next: b}
        - {id: b, type: branch, path: ok, cases: {"true": done}, default: a}
        """
    )
    assert flow.load().warnings == []


def test_a_chain_that_lacks_a_next_is_not_reported_twice(flow: Flow) -> None:
    """One mistake, one message."""
    flow.nodes("- {id: a, type: set, values: {}, next: b}\n- {id: b, type: set, values: {}}")
    assert [problem.code for problem in flow.problems()] == ["BW122"]


def test_a_cycle_without_work_is_a_warning(flow: Flow) -> None:
    """Such a cycle may end by what it sets, or spin."""
    flow.nodes(
        """
        - {id: a, type: set, values: {n: "{{ n + 1 }}"}, next: b}
        - {id: b, type: branch, path: n, conditions: [{op: ">", value: 3, next: done}], default: a}
        """,
        head="vars: {n: 0}\n",
    )
    assert "a → b → a" in flow.warning("BW125").what


def test_a_branch_may_lead_to_itself_only_with_a_warning(flow: Flow) -> None:
    """The smallest cycle, and a long one is cut short."""
    flow.nodes("- {id: a, type: branch, path: x, cases: {k: a}, default: done}")
    assert "a → a" in flow.warning("BW125").what
    chain = "\n".join(f"- {{id: n{i}, type: set, values: {{}}, next: n{i + 1}}}" for i in range(9))
    flow.nodes(
        f"- {{id: a, type: set, values: {{}}, next: n0}}\n{chain}\n"
        "- {id: n9, type: branch, path: x, cases: {k: n0}, default: done}"
    )
    assert "n5 → …" in flow.warning("BW125").what


def test_scopes_end_at_the_join_a_terminal_or_a_fail_of_their_own(flow: Flow) -> None:
    """All three ends of a branch, nested, with loops inside."""
    flow.nodes(
        """
        - {id: a, type: parallel, branches: {x: x1, y: y1, z: z1}, join: j}
        - {id: x1, type: branch, path: k, cases: {again: x1}, default: j}
        - {id: y1, type: map, over: list, body: m1, join: y2}
        - {id: m1, type: parallel, branches: {p: p1}, next: m2}
        - {id: p1, type: terminal}
        - {id: m2, type: set, values: {o: 1}, next: y2}
        - {id: y2, type: set, values: {p: 1}, next: y3}
        - {id: y3, type: terminal}
        - {id: z1, type: fail}
        - {id: j, type: set, values: {r: 1}, next: done}
        """,
        head="vars: {list: [], k: 1}\n",
    )
    loaded = flow.load()
    assert [problem.code for problem in loaded.warnings] == ["BW125"]
    assert isinstance(loaded.graph.nodes["a"], Parallel)


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("x1", "node 'x1' belongs to a.x, but 'y1' leads to it from a.y"),
        ("done", "node 'done' belongs to the run, but 'y1' leads to it from a.y"),
        ("a", "node 'a' belongs to the run, but 'y1' leads to it from a.y"),
    ],
)
def test_an_edge_out_of_a_scope_is_an_error(flow: Flow, target: str, words: str) -> None:
    """Siblings never see each other, and the run goes on only at the join."""
    flow.nodes(FAN % target)
    problem = flow.problem("BW126")
    assert problem.what == words
    assert word_at(problem) == f"{target}}}"


def test_an_edge_into_a_scope_is_an_error(flow: Flow) -> None:
    """Nodes of a scope are reachable only from its entry."""
    flow.nodes(
        """
        - {id: a, type: branch, path: k, cases: {x: b2}, default: b}
        - {id: b, type: map, over: list, body: b1, next: done}
        - {id: b1, type: set, values: {}, next: b2}
        - {id: b2, type: set, values: {}, next: done}
        """,
        head="vars: {list: [], k: 1}\n",
    )
    assert "'b2' belongs to the run, but 'b1' leads to it from b[]" in flow.problem("BW126").what


def test_a_scope_may_not_jump_over_the_join_of_the_one_around_it(flow: Flow) -> None:
    """An inner chain ends at the inner join only."""
    flow.nodes(
        """
        - {id: a, type: map, over: list, body: b, next: done}
        - {id: b, type: map, over: list, body: c, next: d}
        - {id: c, type: set, values: {}, next: done}
        - {id: d, type: set, values: {}, next: done}
        """,
        head="vars: {list: []}\n",
    )
    assert "from a[]/b[]" in flow.problem("BW126").what


def test_a_scope_without_an_end_is_an_error(flow: Flow) -> None:
    """A branch that never ends never joins."""
    flow.write("scripts/s.sh", "")
    flow.nodes(
        """
        - {id: a, type: map, over: list, body: b, next: done}
        - {id: b, type: script, script: scripts/s.sh, next: c}
        - {id: c, type: script, script: scripts/s.sh, next: b}
        """,
        head="vars: {list: []}\n",
    )
    assert "'b' or 'c'" in flow.problem("BW124").what


def test_an_empty_scope_is_an_error(flow: Flow) -> None:
    """A branch that begins at the join has nothing to do."""
    flow.nodes("- {id: a, type: parallel, branches: {x: done}, join: done}")
    assert "'a.x' begins at the join" in flow.problem("BW128").what


def test_an_error_edge_of_a_construct_stays_in_its_parent(flow: Flow) -> None:
    """`on_error` is taken by the parent when a member failed under `fail_fast`."""
    flow.nodes(
        """
        - {id: a, type: map, over: list, body: b, next: done, fail_fast: true, on_error: sorry}
        - {id: b, type: fail}
        - {id: sorry, type: fail, reason: "{{ error.message }}"}
        """,
        head="vars: {list: []}\n",
    )
    assert flow.load().warnings == []


def test_other_problems_do_not_hide_those_of_the_graph(flow: Flow) -> None:
    """All in one go: a bad field, an unknown target and a dead end."""
    flow.write("scripts/s.sh", "")
    flow.nodes(
        """
        - {id: a, type: branch, path: x, cases: {k: b, l: bad, m: nope}, default: done}
        - {id: b, type: script, script: scripts/s.sh, next: c}
        - {id: c, type: script, script: scripts/s.sh, next: b}
        - {id: bad, type: wait}
        """
    )
    assert {problem.code for problem in flow.problems()} == {"BW103", "BW111", "BW124"}
