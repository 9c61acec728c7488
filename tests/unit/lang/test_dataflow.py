"""Names that are read and names that are provided, templates, schemas, exports."""

from __future__ import annotations

import pytest

from tests.unit.lang.flows import Flow, at, word_at


def test_a_variable_that_nothing_provides_is_a_warning_at_its_place(flow: Flow) -> None:
    """A prompt with a hole in it is a common and expensive mistake."""
    flow.write("prompts/p.md", "Hello\nfix {{ isue }} of {{ extra }} for {{ issue }}\n")
    flow.nodes(
        """
        - {id: a, type: agent, prompt: prompts/p.md, args: {extra: "{{ vra }}"}, next: b}
        - {id: b, type: agent, prompt_text: "{{ extra }} {{ mine }}", args: {mine: 1}, next: done}
        """,
        head="params: {issue: {type: string}}\nvars: {var: 1}\n",
    )
    found = flow.load().warnings
    assert [(problem.code, problem.place and problem.place.line) for problem in found] == [
        ("BW141", 5),
        ("BW141", 6),
        ("BW141", 2),
    ]
    assert [problem.hint for problem in found][0::2] == ["'var'", "'issue'"]
    assert found[2].place is not None
    assert found[2].place.file.endswith("prompts/p.md")
    assert at(found[2]) == (2, 8)


def test_everything_that_can_provide_a_name_counts(flow: Flow) -> None:
    """No false alarms: vars, params, outputs, sets, items, constructs, answers, called workflows, the engine's own."""
    flow.write("scripts/s.sh", "")
    flow.write(
        "child/workflow.yaml",
        "start: a\nreturns: [back]\nnodes: [{id: a, type: set, values: {back: 1}, next: b}, {id: b, type: terminal}]\n",
    )
    names = "v p out put it each fan ask_me kid back polled exp run.id node.visit workspace error"
    reads = " ".join("{{ " + name + " }}" for name in names.split())
    flow.nodes(
        f"""
        - {{id: a, type: script, script: scripts/s.sh, outputs: [{{key: out}}], next: b}}
        - {{id: b, type: set, values: {{put: 1}}, next: each}}
        - {{id: each, type: map, over: v, as: it, body: c, next: fan}}
        - {{id: c, type: terminal}}
        - {{id: fan, type: parallel, branches: {{x: d}}, export: [exp], join: ask_me}}
        - {{id: d, type: set, values: {{exp: 1}}, next: ask_me}}
        - {{id: ask_me, type: ask, question: "?", next: kid}}
        - {{id: kid, type: call, workflow: child, next: w}}
        - {{id: w, type: wait, poll: {{script: scripts/s.sh}}, outputs: [{{key: polled}}], next: z}}
        - {{id: z, type: set, values: {{q: "{reads}"}}, next: done}}
        """,
        head="vars: {v: 1}\nparams: {p: true}\n",
    )
    assert flow.load().warnings == []


@pytest.mark.parametrize(
    "reader",
    [
        "{id: r, type: branch, path: out.x, default: done}",
        "{id: r, type: map, over: out.list, body: m, next: done}\n- {id: m, type: terminal}",
        '{id: r, type: set, values: {k: ["{{ out }}"]}, next: done}',
        '{id: r, type: call, workflow: child, params: {k: "{{ out.x }}"}, next: done}',
        '{id: r, type: ask, question: "{{ out }}?", next: done}',
        '{id: r, type: wait, for: "{{ out }}", next: done}',
        '{id: r, type: wait, poll: {script: scripts/s.sh, args: ["{{ out }}"]}, next: done}',
        '{id: r, type: script, script: scripts/s.sh, env: {K: "{{ out }}"}, next: done}',
        '{id: r, type: script, script: scripts/s.sh, args: ["{% if out %}1{% endif %}"], next: done}',
        '{id: r, type: agent, prompt_text: x, args: {script: "{{ out }}"}, next: done}',
        "{id: r, type: agent, prompt: prompts/p.md, next: done}",
    ],
)
def test_an_output_that_some_node_reads_is_fine(flow: Flow, reader: str) -> None:
    """Every way to read a key counts, also through an included file."""
    flow.write("scripts/s.sh", "")
    flow.write("prompts/p.md", "{% include 'prompts/q.md' %}")
    flow.write("prompts/q.md", "{{ out }}")
    flow.write("child/workflow.yaml", "start: a\nnodes: [{id: a, type: terminal}]\n")
    flow.nodes(f"- {{id: a, type: script, script: scripts/s.sh, outputs: [{{key: out}}], next: r}}\n- {reader}")
    assert [problem for problem in flow.load().warnings if problem.code == "BW142"] == []


def test_an_output_that_no_node_reads_is_a_warning(flow: Flow) -> None:
    """Perhaps it is a typo elsewhere; `returns` counts as reading."""
    flow.write("scripts/s.sh", "")
    node = "- {id: a, type: script, script: scripts/s.sh, outputs: [{key: out}], next: done}"
    flow.nodes(node)
    problem = flow.warning("BW142")
    assert "'out'" in problem.what
    assert word_at(problem).startswith("out}")
    flow.nodes(node, head="returns: [out]\n")
    assert flow.load().warnings == []


def test_nothing_is_said_about_outputs_where_files_are_included_by_computed_names(flow: Flow) -> None:
    """Who could know what such a file reads."""
    flow.write("scripts/s.sh", "")
    flow.nodes(
        """
        - {id: a, type: script, script: scripts/s.sh, outputs: [{key: out}], next: b}
        - {id: b, type: agent, prompt_text: "{% include run.id ~ '.md' %}", next: done}
        """
    )
    assert flow.load().warnings == []


def test_a_returned_key_that_nothing_provides_is_a_warning(flow: Flow) -> None:
    """The caller would get nothing."""
    flow.nodes("- {id: a, type: set, values: {result: 1}, next: done}", head="returns: [resutl]\n")
    problem = flow.warning("BW141")
    assert (problem.hint, at(problem)) == ("'result'", (2, 11))


def test_template_faults_are_found_in_files_and_in_the_workflow(flow: Flow) -> None:
    """A template that can't be rendered would fail a run hours later."""
    flow.write("prompts/p.md", "ok\n{% include 'prompts/q.md' %}\n")
    flow.write("prompts/q.md", "one\ntwo {{ x | nope }}\n")
    flow.nodes(
        """
        - {id: a, type: agent, prompt: prompts/p.md, args: {k: "{{ a b }}"}, next: b}
        - id: b
          type: set
          values:
            t: |
              fine
              {% endfor %}
          next: done
        """,
        head="vars: {x: 1}\n",
    )
    first, second, third = [problem for problem in flow.problems() if problem.code == "BW140"]
    assert word_at(first).startswith('"{{ a b }}"')
    assert word_at(second) == "|"
    assert at(third) == (2, 1)
    assert "line 2 of the text" in second.what
    assert third.place is not None
    assert third.place.file.endswith("prompts/q.md")


def test_an_included_file_that_is_missing_is_an_error_unless_it_may_be(flow: Flow) -> None:
    """Includes are checked like prompts; of alternatives one is enough."""
    flow.write(
        "prompts/p.md",
        "\n{% include 'prompts/gone.md' %}{% include 'x' ignore missing %}{% include ['no', 'prompts/q.md'] %}",
    )
    flow.write("prompts/q.md", "")
    flow.nodes("- {id: a, type: agent, prompt: prompts/p.md, next: done}")
    problem = flow.problem("BW130")
    assert "'prompts/gone.md'" in problem.what
    assert at(problem) == (2, 13)


@pytest.mark.parametrize(
    "schema", ["{type: objct}", "{pattern: (}", "{$ref: 'https://example.org/s.json'}", "{$ref: '#/no'}"]
)
def test_schemas_are_checked_and_nothing_is_fetched_for_them(flow: Flow, schema: str) -> None:
    """A schema that can't be used would refuse every answer."""
    flow.write("scripts/s.sh", "")
    flow.nodes(
        f"- {{id: a, type: script, script: scripts/s.sh, outputs: [{{key: k, schema: {schema}}}], next: done}}",
        head=f"params: {{p: {schema}}}\nreturns: [k]\n",
    )
    params, output = flow.problems()
    assert (params.code, output.code) == ("BW143", "BW143")
    assert at(params) == (2, 13)


def test_two_branches_that_export_one_key_are_an_error(flow: Flow) -> None:
    """Which of the two would win is nobody's guess."""
    flow.nodes(
        """
        - {id: a, type: parallel, branches: {x: x1, y: y1}, export: [k, x_only, nope], join: done}
        - {id: x1, type: set, values: {k: 1, x_only: 1}, next: done}
        - {id: y1, type: set, values: {k: 2, y_only: 1}, next: done}
        """
    )
    both, none = [problem for problem in flow.problems() if problem.code == "BW127"]
    assert "'x' and 'y'" in both.what
    assert word_at(both).startswith("k, x_only")
    assert "no branch of 'a' writes the exported key 'nope'" in none.what


def test_what_a_nested_scope_exports_can_be_exported_further(flow: Flow) -> None:
    """Keys climb one level at a time; what stays inside a nested branch does not count."""
    flow.nodes(
        """
        - {id: a, type: parallel, branches: {x: b}, export: [k, b, deep], join: done}
        - {id: b, type: parallel, branches: {y: y1}, export: [k], join: done2}
        - {id: y1, type: set, values: {k: 1, deep: 2}, next: done2}
        - {id: done2, type: terminal}
        """
    )
    assert "'deep'" in flow.problem("BW127").what


def test_a_place_in_a_prompt_is_where_the_template_reads_the_name(flow: Flow) -> None:
    """Not where the same word happens to stand in the prose."""
    flow.write("prompts/p.md", "the cat and the hat\n{% if x.hat %}{{ concat }}{{ hat | upper }}{% endif %}\n")
    flow.nodes("- {id: a, type: agent, prompt: prompts/p.md, args: {x: 1, concat: 2}, next: done}")
    assert word_at(flow.warning("BW141")).startswith("hat")
    flow.write("prompts/p.md", "no\n{{ cat }}")
    flow.nodes("- {id: a, type: agent, prompt: ./prompts/p.md, next: done}")
    assert at(flow.warning("BW141")) == (2, 4)


def test_includes_of_inline_templates_are_followed(flow: Flow) -> None:
    """An inline prompt may be mostly includes; the first alternative that exists counts."""
    flow.write("scripts/s.sh", "")
    flow.write("parts/b.md", "{{ out }}")
    flow.nodes(
        """
        - {id: a, type: script, script: scripts/s.sh, outputs: [{key: out}], next: b}
        - {id: b, type: agent, prompt_text: "{% include ['parts/a.md', 'parts/b.md'] %}", next: done}
        """
    )
    loaded = flow.load()
    assert loaded.warnings == []
    assert "parts/b.md" in loaded.files
    flow.nodes("- {id: a, type: agent, prompt_text: \"{% include 'parts/a.md' %}\", next: done}")
    assert "'parts/a.md'" in flow.problem("BW130").what
