"""Each kind of node: what its fields compile to, and what it refuses."""

from __future__ import annotations

from importlib import metadata

import pytest

from bailiwick.engine.graph import (
    Ask,
    Branch,
    Budget,
    Call,
    Condition,
    Definition,
    End,
    Map,
    Output,
    Parallel,
    Poll,
    Retry,
    Set,
    Wait,
    Work,
    from_json,
    to_json,
)
from bailiwick.lang.fields import Field, Table, Text
from tests.unit.lang.flows import Flow, word_at

_AGENT_SPEC = {
    "prompt_text": "Do {{ thing }} for {{ who }}",
    "args": {"thing": "{{ x }}", "who": [1, "two"]},
    "models": ["small", "large"],
    "power": "low",
    "backend": "claude",
    "skill": "review",
    "cwd": "{{ workspace }}/repo",
    "max_usd": 1.5,
    "on_cap": "next_model",
}


def test_an_agent_node_keeps_its_fields_as_written(flow: Flow) -> None:
    """The engine gets what it decides by, the agent's own fields travel as plain JSON."""
    flow.nodes(
        """
        - id: a
          type: agent
          description: asks
          prompt_text: "Do {{ thing }} for {{ who }}"
          args: {thing: "{{ x }}", who: [1, two]}
          models: [small, large]
          power: low
          backend: claude
          skill: review
          cwd: "{{ workspace }}/repo"
          timeout: 10m
          max_usd: 1.5
          on_cap: next_model
          on_exhausted: ask
          on_unknown: fail
          accept_defaulted: true
          max_visits: 3
          on_error: done
          outputs:
            - {key: result, schema: {type: object}, default: null}
            - {key: note}
          next: done
        """,
        head="vars: {x: 1}\nreturns: [result, note]\n",
    )
    assert flow.graph().nodes["a"] == Work(
        id="a",
        next="done",
        type="agent",
        max_visits=3,
        on_error="done",
        timeout=600.0,
        on_unknown="fail",
        on_exhausted="ask",
        accept_defaulted=True,
        outputs=(Output("result", {"type": "object"}, None, declared=True), Output("note")),
        spec=_AGENT_SPEC,
    )


def test_a_script_node_takes_its_arguments_as_texts_in_order(flow: Flow) -> None:
    """Positional arguments are texts; a mapping is a way to name them in the file."""
    flow.write("scripts/s.sh", "true")
    flow.nodes(
        """
        - id: a
          type: script
          script: scripts/s.sh
          args: {zeta: 3, alpha: true, mid: "{{ x }}", rate: 0.5}
          env: {LEVEL: 2, NAME: "{{ x }}"}
          cwd: sub
          timeout: 90
          retry: {max: 2, backoff: 500ms}
          next: b
        - {id: b, type: script, script: ./scripts/s.sh, args: [1, x], retry: {max: 1}, next: c}
        - {id: c, type: script, script: scripts/s.sh, next: done}
        """,
        head="vars: {x: 1}\n",
    )
    nodes = flow.graph().nodes
    spec = {
        "script": "scripts/s.sh",
        "args": ["3", "true", "{{ x }}", "0.5"],
        "env": {"LEVEL": "2", "NAME": "{{ x }}"},
        "cwd": "sub",
    }
    assert nodes["a"] == Work(id="a", next="b", type="script", timeout=90.0, retry=Retry(2, 0.5), spec=spec)
    assert isinstance(nodes["b"], Work)
    assert (nodes["b"].spec["args"], nodes["b"].retry) == (["1", "x"], Retry(1, 1.0))
    assert isinstance(nodes["c"], Work)
    assert nodes["c"].spec == {"script": "scripts/s.sh", "args": []}


def test_the_steering_kinds_compile_to_their_nodes(flow: Flow) -> None:
    """One file with every steering kind, and what the engine gets."""
    flow.write("scripts/p.sh", "true")
    flow.write("child/workflow.yaml", "start: a\nnodes:\n- {id: a, type: terminal}\n")
    flow.nodes(
        """
        - {id: a, type: set, values: {list: [1], n: "{{ list }}"}, next: b}
        - id: b
          type: branch
          path: n.x
          cases: {yes: c, no: d, 1: e}
          conditions: [{op: ">=", value: 10, next: c}, {op: "==", value: true, next: d}]
          default: f
        - {id: c, type: wait, for: 1h30m, next: d}
        - {id: d, type: wait, until: "0 8 * * 1-5", next: e}
        - {id: e, type: wait, poll: {script: scripts/p.sh, every: 5s, timeout: 1h, args: [1]}, on_error: f, next: g}
        - {id: f, type: fail, reason: "no {{ n }}"}
        - {id: g, type: ask, question: "ok {{ n }}?", choices: ["yes", 2], timeout: 1d, default: "2", next: h}
        - {id: h, type: parallel, branches: {one: h1, two: h2}, export: [k], max: 2, fail_fast: true, join: i}
        - {id: h1, type: set, values: {k: 1}, next: i}
        - {id: h2, type: terminal}
        - {id: i, type: map, over: list, as: it, body: i1, next: j, on_error: f}
        - {id: i1, type: call, workflow: child, params: {p: "{{ it }}"}, next: j}
        - {id: j, type: wait, for: "{{ n }}s", next: done}
        """
    )
    nodes = flow.graph().nodes
    assert nodes["a"] == Set(id="a", next="b", values={"list": [1], "n": "{{ list }}"})
    assert nodes["b"] == Branch(
        id="b",
        path="n.x",
        cases={"yes": "c", "no": "d", "1": "e"},
        default="f",
        conditions=(Condition(">=", "10", "c"), Condition("==", "true", "d")),
    )
    assert nodes["c"] == Wait(id="c", next="d", seconds="5400")
    assert nodes["d"] == Wait(id="d", next="e", until="0 8 * * 1-5")
    poll = Poll(script="scripts/p.sh", every=5.0, timeout=3600.0, args=("1",))
    assert nodes["e"] == Wait(id="e", next="g", poll=poll, on_error="f")
    assert nodes["f"] == End(id="f", failed=True, reason="no {{ n }}")
    assert nodes["g"] == Ask(
        id="g", next="h", question="ok {{ n }}?", choices=("yes", "2"), timeout=86400.0, default="2", declared=True
    )
    assert nodes["h"] == Parallel(
        id="h", branches={"one": "h1", "two": "h2"}, export=("k",), max=2, fail_fast=True, join="i"
    )
    assert nodes["i"] == Map(id="i", over="list", as_="it", body="i1", join="j", on_error="f")
    assert nodes["i1"] == Call(id="i1", next="j", workflow="child", params={"p": "{{ it }}"})
    assert nodes["j"] == Wait(id="j", next="done", seconds="{{ n }}s")
    assert nodes["done"] == End(id="done")


def test_the_header_compiles_and_the_whole_survives_storage(flow: Flow) -> None:
    """Resuming needs no YAML: the stored definition is the same one."""
    flow.write("scripts/s.sh", "true")
    flow.nodes(
        "- {id: a, type: script, script: scripts/s.sh, retry: {max: 1}, outputs: [{key: k, schema: true}], next: done}",
        head="""\
        version: 1
        name: my.flow-1
        description: does it
        vars: {v: {deep: [1]}}
        params: {issue: {type: string}, any: true}
        budget: {usd: 5, tokens: 100, agent_calls: 7, wall: 48h}
        strict: true
        returns: [k]
        """,
    )
    graph = flow.graph()
    assert (graph.version, graph.name, graph.description, graph.strict) == (1, "my.flow-1", "does it", True)
    assert graph.vars == {"v": {"deep": [1]}}
    assert graph.params == {"issue": {"type": "string"}, "any": True}
    assert graph.budget == Budget(usd=5, tokens=100, agent_calls=7, wall=172800.0)
    assert graph.returns == ("k",)
    assert from_json(to_json(Definition(graph=graph))).graph == graph


@pytest.mark.parametrize(
    ("node", "code", "words"),
    [
        ("{id: a, type: agent, next: done}", "BW111", "`prompt` or `prompt_text` is missing"),
        ("{id: a, type: agent, prompt: p, prompt_text: t, next: done}", "BW110", "only one of `prompt`"),
        ("{id: a, type: agent, prompt_text: t, model: m, models: [n], next: done}", "BW110", "only one of `model`"),
        ("{id: a, type: agent, prompt_text: t, power: huge, next: done}", "BW110", "high, medium, low"),
        ("{id: a, type: agent, prompt_text: t}", "BW122", "has no `next`"),
        ("{id: a, type: agent, prompt_text: t, without_json: {x: 1}, next: done}", "BW110", "every declared output"),
        (
            "{id: a, type: agent, prompt_text: t, outputs: [{key: x}, {key: y}], without_json: {x: 1}, next: done}",
            "BW110",
            "every declared output",
        ),
        ("{id: a, type: script, next: done}", "BW111", "'script' is missing"),
        ("{id: a, type: script, script: s, args: [[1]], next: done}", "BW110", "found a list"),
        ("{id: a, type: script, script: s, env: {A-B: 1}, next: done}", "BW120", "'A-B'"),
        ("{id: a, type: branch, path: x}", "BW122", "no way out"),
        ("{id: a, type: branch, path: '{{ x }}', default: done}", "BW110", "a dot path"),
        ("{id: a, type: branch, path: x, conditions: [{op: '=', value: 1, next: done}]}", "BW110", "one of =="),
        ("{id: a, type: wait, next: done}", "BW111", "`for` or `until` or `poll` is missing"),
        ("{id: a, type: wait, for: 1s, until: x, next: done}", "BW110", "only one of `for`"),
        ("{id: a, type: wait, for: soon, next: done}", "BW110", "'soon' is not a duration"),
        ("{id: a, type: wait, until: tomorrow, next: done}", "BW110", "neither a time nor a cron expression"),
        ("{id: a, type: wait, for: 1s, outputs: [{key: k}], next: done}", "BW110", "only a `poll` gives outputs"),
        ("{id: a, type: ask, question: q, choices: [a], default: b, next: done}", "BW110", "'b' is not a choice"),
        ("{id: a, type: parallel, branches: {}, join: done}", "BW110", "not empty"),
        ("{id: a, type: parallel, branches: {1: done}, join: done}", "BW120", "'1'"),
        ("{id: a, type: parallel, branches: {x: done}}", "BW122", "where to go on"),
        ("{id: a, type: parallel, branches: {x: a}, join: done, next: a}", "BW128", "but `next` is 'a'"),
        ("{id: a, type: map, over: x, body: b}", "BW122", "where to go on"),
        ("{id: a, type: map, over: x, as: a-b, body: b, next: done}", "BW110", "the name of a variable"),
        ("{id: a, type: scrpt, next: done}", "BW113", "'scrpt' is not known"),
        ("{id: a, type: [x], next: done}", "BW110", "the name of a node type"),
        ("{id: a}", "BW111", "'type' is missing"),
        ("{type: terminal}", "BW111", "'id' is missing"),
        ("{id: 1a, type: terminal}", "BW110", "an id"),
        ("text", "BW110", "a mapping (a node)"),
        ("{id: a, type: terminal, max_visits: 0}", "BW110", "from 1"),
    ],
)
def test_a_node_that_makes_no_sense_is_refused(flow: Flow, node: str, code: str, words: str) -> None:
    """Each mistake has its own words, a place and a way out."""
    flow.nodes(f"- {node}")
    assert words in flow.problem(code).what


def test_an_unknown_type_gets_the_nearest_names(flow: Flow) -> None:
    """Typos in `type` are the most common ones."""
    flow.nodes("- {id: a, type: scrpt, next: done}")
    problem = flow.problem("BW113")
    assert "'script'" in problem.hint
    assert word_at(problem).startswith("scrpt")


def test_both_of_join_and_next_may_be_given_if_they_agree(flow: Flow) -> None:
    """Either names the node after the join."""
    flow.nodes("- {id: a, type: map, over: run.id, body: b, join: done, next: done}\n- {id: b, type: terminal}")
    node = flow.graph().nodes["a"]
    assert isinstance(node, Map)
    assert (node.join, node.next) == ("done", None)


class Pinger:
    """What a package offers: fields of its own."""

    fields = Table("ping", (Field("host", Text(), required=True), Field("deep", Text())))


class Plain:
    """A package may give a bare tuple of fields."""

    fields = (Field("host", Text()),)


@pytest.fixture
def packages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand-ins for installed packages that add kinds."""
    here = [
        metadata.EntryPoint("ping", f"{__name__}:Pinger", "bailiwick.nodes"),
        metadata.EntryPoint("plain", f"{__name__}:Plain", "bailiwick.nodes"),
        metadata.EntryPoint("broken", "no.such.module:thing", "bailiwick.nodes"),
    ]

    def entry_points(*, group: str, name: str = "") -> list[metadata.EntryPoint]:
        return [entry for entry in here if entry.group == group and name in ("", entry.name)]

    monkeypatch.setattr(metadata, "entry_points", entry_points)


@pytest.mark.usefixtures("packages")
def test_a_package_can_add_a_kind(flow: Flow) -> None:
    """Work is an open set: the fields of a package's kind are checked like ours and land in its spec."""
    flow.nodes(
        """
        - {id: a, type: ping, host: "{{ h }}", timeout: 5s, retry: {max: 2}, outputs: [{key: up}], next: b}
        - {id: b, type: plain, host: "{{ up }}", next: done}
        """,
        head="vars: {h: x}\n",
    )
    assert flow.graph().nodes["a"] == Work(
        id="a", next="b", type="ping", spec={"host": "{{ h }}"}, timeout=5.0, retry=Retry(2), outputs=(Output("up"),)
    )
    flow.nodes("- {id: a, type: ping, hots: x, next: done}")
    assert {problem.code for problem in flow.problems()} == {"BW111", "BW112"}


@pytest.mark.usefixtures("packages")
def test_a_package_that_cannot_be_loaded_is_named(flow: Flow) -> None:
    """The person learns which package to repair."""
    flow.nodes("- {id: a, type: broken, next: done}\n- {id: b, type: pong, next: done}")
    broken, unknown = [problem for problem in flow.problems() if problem.code == "BW113"]
    assert "no.such.module" in broken.what
    assert "'ping'" in unknown.hint
