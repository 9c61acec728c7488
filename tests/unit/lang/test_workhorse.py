"""Files written for workhorse 0.1.0 mean the same here: every field of its schema, by what it compiles to."""

from __future__ import annotations

from bailiwick.engine.graph import Branch, Condition, End, Output, Work
from bailiwick.lang.templates import Templates
from tests.unit.lang.flows import Flow

REVIEW = """
name: nightly-review
start: list_changes
vars:
  repo: /srv/repo
  limit: 20
  opts: {deep: true}
nodes:
  - id: list_changes
    type: script
    script: scripts/changes.py
    args: ["{{ repo }}", "--limit", "{{ limit }}"]
    outputs:
      - key: changes
      - key: total
        default: 0
    next: enough
  - id: enough
    type: branch
    path: total
    cases: {"0": nothing}
    conditions:
      - {op: ">", value: "100", next: too_many}
      - {op: "!=", value: "", next: review}
    default: nothing
  - id: review
    type: agent
    prompt: prompts/review.md
    model: opus
    args:
      subject: "{{ changes }}"
      depth: "{{ opts.deep }}"
    outputs:
      - key: verdict
        default: {status: unknown}
    next: route
  - id: route
    type: branch
    path: verdict.status
    cases:
      ok: nothing
      True: nothing
    default: too_many
  - {id: nothing, type: terminal}
  - {id: too_many, type: fail}
"""


def test_a_file_with_every_field_compiles_to_its_meaning(flow: Flow) -> None:
    """The schema here is a superset of that one."""
    flow.write("workflow.yaml", REVIEW)
    flow.write("scripts/changes.py", "print('{}')\n")
    flow.write("prompts/review.md", "Review {{ subject }} at depth {{ depth }} in {{ repo }}.\n")
    loaded = flow.load()
    graph = loaded.graph
    assert loaded.warnings == []
    assert (graph.version, graph.name, graph.start) == (0, "nightly-review", "list_changes")
    assert graph.vars == {"repo": "/srv/repo", "limit": 20, "opts": {"deep": True}}
    assert graph.nodes["list_changes"] == Work(
        id="list_changes",
        type="script",
        next="enough",
        spec={"script": "scripts/changes.py", "args": ["{{ repo }}", "--limit", "{{ limit }}"]},
        outputs=(Output("changes"), Output("total", default=0, declared=True)),
    )
    assert graph.nodes["enough"] == Branch(
        id="enough",
        path="total",
        cases={"0": "nothing"},
        default="nothing",
        conditions=(Condition(">", "100", "too_many"), Condition("!=", "", "review")),
    )
    assert graph.nodes["review"] == Work(
        id="review",
        type="agent",
        next="route",
        spec={
            "prompt": "prompts/review.md",
            "model": "opus",
            "args": {"subject": "{{ changes }}", "depth": "{{ opts.deep }}"},
        },
        outputs=(Output("verdict", default={"status": "unknown"}, declared=True),),
    )
    assert isinstance(graph.nodes["route"], Branch)
    assert graph.nodes["route"].cases == {"ok": "nothing", "True": "nothing"}
    assert graph.nodes["nothing"] == End(id="nothing")
    assert graph.nodes["too_many"] == End(id="too_many", failed=True)


def test_a_file_without_a_name_is_named_by_its_directory(flow: Flow) -> None:
    """Two workflows never share the name of their common file name."""
    flow.write("workflow.yaml", "start: a\nnodes: [{id: a, type: terminal}]\n")
    assert flow.graph().name == "flow"


def test_vars_may_be_left_empty(flow: Flow) -> None:
    """`vars:` with nothing behind it is allowed there."""
    flow.write("workflow.yaml", "start: a\nvars:\nname:\nnodes: [{id: a, type: terminal}]\n")
    assert flow.graph().vars == {}


def test_an_agent_may_have_no_model_args_or_outputs(flow: Flow) -> None:
    """The smallest agent node."""
    flow.write("prompts/p.md", "Do it.\n")
    flow.nodes("- {id: a, type: agent, prompt: prompts/p.md, model: null, next: done}")
    assert flow.graph().nodes["a"] == Work(id="a", type="agent", next="done", spec={"prompt": "prompts/p.md"})


def test_prompts_and_scripts_may_lie_anywhere_in_the_directory(flow: Flow) -> None:
    """That tool takes any path relative to the workflow; such files are pinned too."""
    flow.write("step.md", "{% include 'shared/tone.md' %} {{ x }}\n")
    flow.write("shared/tone.md", "Be brief.\n")
    flow.write("run.sh", "true\n")
    flow.nodes(
        """
        - {id: a, type: agent, prompt: step.md, next: b}
        - {id: b, type: script, script: run.sh, next: done}
        """,
        head="vars: {x: 1}\n",
    )
    loaded = flow.load()
    assert set(loaded.files) == {"workflow.yaml", "step.md", "shared/tone.md", "run.sh"}
    assert Templates(flow.root).file("step.md", {"x": 1}.__getitem__).value == "Be brief.\n 1\n"


def test_unknown_keys_are_warnings_unless_strict(flow: Flow) -> None:
    """That tool ignored them; here they are shown with the nearest name."""
    flow.nodes("- {id: a, type: set, values: {}, nxet: done, next: done}", head="comment: x\n")
    assert [(problem.code, problem.warning) for problem in flow.load().warnings] == [("BW112", True)] * 2
    assert flow.load().warnings[1].hint == "'next'"


def test_inline_templates_lose_one_newline_and_files_keep_it() -> None:
    """Arguments written as a block and prompts written as a file give the bytes they gave there."""
    templates = Templates()
    assert templates.text("{{ a }}\n", {"a": 1}.__getitem__).value == "1"
    assert templates.text("plain\n", {"a": 1}.__getitem__).value == "plain"
    assert templates.text("{{ a | upper }}\n\n", {"a": "x"}.__getitem__).value == "X\n"


def test_an_attribute_of_a_text_renders_empty() -> None:
    """An agent that answers a bare text where an object was expected does not stop the run."""
    rendered = Templates().text("[{{ qa.notes }}]", {"qa": "fine"}.__getitem__)
    assert (rendered.value, rendered.missing) == ("[]", ("qa.notes",))
