"""Dry runs of whole workflows."""

from __future__ import annotations

import json
from pathlib import Path

from bailiwick.dryrun.model import DryRunReport
from bailiwick.dryrun.service import MOST_PASSES, dry_run
from bailiwick.ids import Json
from tests.unit.dryrun.writing import loaded


def _missed(found: DryRunReport) -> dict[str, str]:
    return {f"{way.node}:{way.label}": way.why for way in found.ways if not way.covered}


def _run(
    root: Path, text: str, params: dict[str, Json] | None = None, files: dict[str, str] | None = None
) -> DryRunReport:
    return dry_run(loaded(root, text, files or {}), params or {})


def test_every_case_condition_and_default_is_tried(tmp_path: Path) -> None:
    """The value a branch looks at is chosen for each of its edges, though no schema says what it may be."""
    found = _run(
        tmp_path,
        """
        start: a
        nodes:
          - {id: a, type: script, script: scripts/a.sh, outputs: [{key: r}], next: b}
          - id: b
            type: branch
            path: r.status
            cases: {ok: done, "true": done, again: a}
            conditions: [{op: ">=", value: "10", next: many}]
            default: bad
          - {id: many, type: terminal}
          - {id: done, type: terminal}
          - {id: bad, type: fail}
        """,
    )
    assert _missed(found) == {}
    assert all(found.nodes.values())
    assert found.exit_code == 0


def test_nothing_runs(tmp_path: Path) -> None:
    """A dry run of a deployment must not deploy."""
    found = _run(
        tmp_path,
        """
        start: a
        nodes:
          - {id: a, type: script, script: scripts/a.sh, next: p}
          - {id: p, type: wait, poll: {script: scripts/b.sh, every: 10m}, next: w}
          - {id: w, type: wait, until: "0 2 * * *", next: done}
          - {id: done, type: terminal}
        """,
    )
    assert found.passes[0].path == ("a", "p", "w", "done")
    assert not (tmp_path / "ran").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["scripts", "workflow.yaml"]


def test_failures_lead_to_on_error_after_all_retries(tmp_path: Path) -> None:
    """The way that is walked least in practice is the one to see here; the first pass succeeds."""
    found = _run(
        tmp_path,
        """
        start: a
        nodes:
          - {id: a, type: script, script: scripts/a.sh, retry: {max: 2}, on_error: tell, next: done}
          - {id: tell, type: script, script: scripts/b.sh, args: ["{{ error.kind }} {{ error.message }}"], next: sad}
          - {id: done, type: terminal}
          - {id: sad, type: fail}
        """,
    )
    assert [p.outcome for p in found.passes] == ["done", "fail"]
    assert found.warnings == ()
    assert _missed(found) == {}


def test_scopes_are_walked_and_their_items_take_every_way(tmp_path: Path) -> None:
    """Branches on an item are covered by giving the list an item for each way."""
    found = _run(
        tmp_path,
        """
        start: list
        nodes:
          - {id: list, type: script, script: scripts/a.sh, outputs: [{key: found}], next: each}
          - {id: each, type: map, over: found.items, as: it, body: kind, join: both}
          - {id: kind, type: branch, path: it.kind, cases: {a: one, b: two}, default: both}
          - {id: one, type: terminal}
          - {id: two, type: fail}
          - {id: both, type: parallel, branches: {l: left, r: right}, join: ok, fail_fast: true, on_error: bad}
          - {id: left, type: script, script: scripts/a.sh, next: ok}
          - {id: right, type: script, script: scripts/b.sh, next: ok}
          - {id: ok, type: terminal}
          - {id: bad, type: fail}
        """,
    )
    assert _missed(found) == {}
    assert "each[0]/kind" in found.passes[0].path


def test_a_branch_on_the_status_of_a_scope_sees_it_fail(tmp_path: Path) -> None:
    """A failed branch of a parallel is data; the way that handles it has to be walked too."""
    found = _run(
        tmp_path,
        """
        start: fan
        nodes:
          - {id: fan, type: parallel, branches: {l: left, r: right}, join: look}
          - {id: left, type: script, script: scripts/a.sh, next: look}
          - {id: right, type: script, script: scripts/b.sh, outputs: [{key: n}], next: look}
          - {id: look, type: branch, path: fan.l.status, cases: {done: deep}, default: bad}
          - {id: deep, type: branch, path: fan.r.outputs.n, cases: {"7": ok}, default: bad}
          - {id: ok, type: terminal}
          - {id: bad, type: fail}
        """,
    )
    assert _missed(found) == {}


def test_people_and_called_workflows_answer(tmp_path: Path) -> None:
    """Each choice is given once, each returned value is chosen for the branch that reads it."""
    child = """
        version: 1
        name: child
        returns: [grade]
        start: g
        nodes:
          - {id: g, type: script, script: scripts/g.sh, outputs: [{key: grade, schema: {enum: [good, bad]}}], next: e}
          - {id: e, type: terminal}
        """
    found = _run(
        tmp_path,
        """
        start: who
        nodes:
          - {id: who, type: ask, question: Who?, choices: [ann, bob, cid], next: c}
          - {id: c, type: call, workflow: child, params: {who: "{{ who }}"}, on_error: lost, next: b}
          - {id: b, type: branch, path: c.grade, cases: {good: done, bad: lost}, default: lost}
          - {id: done, type: terminal}
          - {id: lost, type: fail}
        """,
        files={"child/workflow.yaml": child, "child/scripts/g.sh": "true\n"},
    )
    assert {p.aim for p in found.passes if p.aim.startswith("answers")} <= {
        f"answers '{n}' at who" for n in ("bob", "cid")
    }
    assert {node for node, covered in found.nodes.items() if covered} == {"who", "c", "b", "done", "lost"}
    assert "b:good" not in _missed(found)


def test_what_no_answer_can_reach_is_named_with_the_reason(tmp_path: Path) -> None:
    """A way that cannot be taken is a finding, and the reason tells which kind of finding."""
    found = _run(
        tmp_path,
        """
        vars: {mode: fast}
        start: a
        nodes:
          - id: a
            type: script
            script: scripts/a.sh
            outputs: [{key: grade, schema: {enum: [good, bad]}}]
            next: b
          - {id: b, type: branch, path: grade, cases: {good: m, bad: m, ugly: m}, default: m}
          - {id: m, type: branch, path: mode, cases: {fast: n, slow: n}, default: n}
          - id: n
            type: branch
            path: grade
            conditions: [{op: "!=", value: x, next: s}, {op: "==", value: x, next: s}]
            default: s
          - {id: s, type: set, values: {k: 1}, next: done}
          - {id: done, type: terminal}
        """,
    )
    why = _missed(found)
    assert "schema" in why["b:ugly"]
    assert "schema" in why["b:default"]
    assert "--params" in why["m:slow"]
    assert why["n:default"].startswith("no value takes this way")
    assert found.exit_code == 0


def test_params_are_taken_or_made_up_from_their_schema(tmp_path: Path) -> None:
    """A param that is given is not varied; one that is not is chosen to cover the branch that reads it."""
    text = """
        params: {level: {type: integer, minimum: 0}}
        start: b
        nodes:
          - {id: b, type: branch, path: level, conditions: [{op: ">", value: "3", next: high}], default: low}
          - {id: high, type: terminal}
          - {id: low, type: terminal}
        """
    assert _missed(_run(tmp_path, text)) == {}
    assert list(_missed(_run(tmp_path, text, {"level": 9}))) == ["b:default"]


def test_loops_with_counters_end_by_themselves_and_endless_ones_are_cut(tmp_path: Path) -> None:
    """The counter is computed by the real engine; a loop that an answer can leave is left."""
    counted = _run(
        tmp_path / "counted",
        """
        vars: {n: 0}
        start: a
        nodes:
          - {id: a, type: script, script: scripts/a.sh, next: add}
          - {id: add, type: set, values: {n: "{{ n + 1 }}"}, next: b}
          - {id: b, type: branch, path: n, conditions: [{op: "<", value: "4", next: a}], default: done}
          - {id: done, type: terminal}
        """,
    )
    assert len(counted.passes[0].path) == 13
    endless = _run(
        tmp_path / "endless",
        """
        vars: {go: "yes"}
        start: a
        nodes:
          - {id: a, type: script, script: scripts/a.sh, next: b}
          - {id: b, type: branch, path: go, cases: {"no": done}, default: a}
          - {id: done, type: terminal}
        """,
    )
    assert endless.exit_code == 1
    assert endless.passes[0].outcome == "failed"
    assert "visited" in endless.passes[0].reason


def test_a_missing_name_is_a_warning_with_its_node(tmp_path: Path) -> None:
    """It renders empty in a real run; here it is told before anything is spent."""
    found = _run(
        tmp_path,
        """
        start: c
        nodes:
          - {id: c, type: set, values: {x: "{{ later }}"}, next: a}
          - {id: a, type: script, script: scripts/a.sh, args: ["{{ x }}"], outputs: [{key: later}], next: done}
          - {id: done, type: terminal}
        """,
    )
    assert found.warnings == ("'c' reads 'later', which had no value",)


def test_a_prompt_file_is_rendered_with_its_args(tmp_path: Path) -> None:
    """An agent's prompt sees the node's args by name, so they are no missing names."""
    files = {"prompts/p.md": "{{ goal }}: {% for f in found.files %}{{ f.path }}{% endfor %}\n"}
    found = _run(
        tmp_path,
        """
        start: a
        nodes:
          - {id: a, type: script, script: scripts/a.sh, outputs: [{key: found}], next: p}
          - {id: p, type: agent, prompt: prompts/p.md, args: {goal: "do it"}, next: done}
          - {id: done, type: terminal}
        """,
        files=files,
    )
    assert found.warnings == ()
    assert found.exit_code == 0


def test_passes_are_bounded(tmp_path: Path) -> None:
    """A branch with very many cases is covered in part, and the report says that it stopped."""
    cases = ", ".join(f"c{n}: e{n}" for n in range(MOST_PASSES + 20))
    ends = "".join(f"  - {{id: e{n}, type: terminal}}\n" for n in range(MOST_PASSES + 20))
    text = "start: a\nnodes:\n  - {id: a, type: script, script: scripts/a.sh, outputs: [{key: r}], next: b}\n"
    found = _run(tmp_path, text + f"  - {{id: b, type: branch, path: r, cases: {{{cases}}}}}\n" + ends)
    assert len(found.passes) == MOST_PASSES
    assert found.limits
    assert len(_missed(found)) == 20


def test_the_report_is_text_and_json(tmp_path: Path) -> None:
    """People read one, programs the other; both say the same."""
    work = loaded(
        tmp_path,
        """
        start: a
        nodes:
          - {id: a, type: script, script: scripts/a.sh, on_error: bad, next: done}
          - {id: done, type: terminal}
          - {id: bad, type: fail, reason: no luck}
        """,
    )
    found = dry_run(work, {})
    data = json.loads(json.dumps(found.to_json()))
    assert (data["nodes"], data["edges"]["covered"]) == ({"total": 3, "covered": 3, "missed": []}, 2)
    assert data["passes"][1]["path"] == ["a", "bad"]
    text = found.text(60)
    assert max(map(len, text.splitlines())) <= 60
    assert "nodes  3 of 3 covered" in text
    assert "no luck" in text
    assert found.exit_code == 0
