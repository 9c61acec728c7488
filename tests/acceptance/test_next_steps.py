"""Every message that a command prints as its next step is a command that works."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from bailiwick.testing.polling import until
from tests.acceptance.command import Person, end
from tests.acceptance.next_steps import steps_in, unworkable

FLOW = """version: 1
name: flow
start: a
nodes:
  - {id: a, type: script, script: scripts/a.sh, next: NEXT}
  - {id: done, type: terminal}
  - {id: bad, type: fail, reason: no good}
  - {id: q, type: ask, question: "Go on?", choices: ["yes", "no"], next: done}
  - {id: nap, type: wait, for: 2h, next: done}
"""
TYPED = """version: 1
name: typed
params: {who: {type: string}}
start: bad
nodes: [{id: bad, type: fail, reason: "not {{ who }}"}]
"""


def _flow(person: Person, leads: str, script: str = "true\n") -> Path:
    kept = [line for line in FLOW.splitlines() if "{id: " not in line or f"id: {leads}," in line or "id: a," in line]
    end_of = [] if leads in ("bad", "done") else ["  - {id: done, type: terminal}"]
    return person.workflow("flow", "\n".join([*kept, *end_of]).replace("NEXT", leads) + "\n", a_sh=script)


def _fails(person: Person) -> str:
    return person.runs("run", _flow(person, "done", "exit 3\n")).out


def _fails_after_an_edit(person: Person) -> str:
    flow = _flow(person, "done", "exit 3\n")
    person.runs("run", flow)
    (flow / "scripts" / "a.sh").write_text("exit 4\n")
    return person.runs("resume", "flow").out


def _does_not_load_after_an_edit(person: Person) -> str:
    flow = _flow(person, "done", "exit 3\n")
    person.runs("run", flow)
    said = person.runs("resume", "flow").out
    assert "validate" not in said
    text = (flow / "workflow.yaml").read_text()
    (flow / "workflow.yaml").write_text(text.replace("next: done", "next: dnoe"))
    said = person.runs("resume", "flow").out
    assert f"bailiwick validate {flow}" in said
    (flow / "workflow.yaml").write_text(text)
    return said


def _ended_by_fail(person: Person) -> str:
    return person.runs("run", _flow(person, "bad")).out


def _ended_by_fail_with_params(person: Person) -> str:
    flow = person.workflow("typed", TYPED)
    return person.runs("run", flow, "--params", '{"who": "it\'s me"}', "--run-id", "x").out


def _done_twice(person: Person) -> str:
    flow = _flow(person, "done")
    person.runs("run", flow)
    return person.runs("run", flow).out


def _asks(person: Person) -> str:
    said = person.runs("run", _flow(person, "q")).out
    return said + person.runs("status").out + person.runs("runs", "show", "flow").out


def _answered(person: Person) -> str:
    person.runs("run", _flow(person, "q"))
    return person.runs("runs", "answer", "flow", "yes").out


def _sleeps(person: Person) -> str:
    return person.runs("run", _flow(person, "nap"), "--no-wait").out + person.runs("why", "flow").out


def _stopped(person: Person) -> str:
    person.runs("run", _flow(person, "q"))
    return person.runs("stop", "flow").out + person.runs("status").out + person.runs("why", "flow").out


def _forked(person: Person) -> str:
    person.runs("run", _flow(person, "done"))
    return person.runs("runs", "fork", "flow", "--at", "a").out


def _rewound(person: Person) -> str:
    person.runs("run", _flow(person, "q"))
    return person.runs("runs", "rewind", "flow", "a", "--yes").out


def _reloaded(person: Person) -> str:
    flow = _flow(person, "done", "exit 3\n")
    person.runs("run", flow)
    (flow / "scripts" / "a.sh").write_text("true\n")
    return person.runs("runs", "reload", "flow").out


def _detached(person: Person) -> str:
    said = person.runs("run", _flow(person, "done"), "--detach").out
    person.runs("runs", "wait", "flow", timeout=600)
    return said


def _killed(person: Person) -> str:
    hold = 'touch "$BAILIWICK_WORKSPACE/began"; while [ ! -e "$BAILIWICK_WORKSPACE/go" ]; do sleep 0.02; done\n'
    process = person.starts("run", _flow(person, "done", hold))
    try:
        until(lambda: bool(list((person.home / "state" / "workspaces").glob("*/began"))))
    finally:
        end(process)
    return person.runs("why", "flow").out + person.runs("status").out + person.runs("runs", "show", "flow").out


def _made(person: Person) -> str:
    return person.runs("new", "hello").out


def _nothing_yet(person: Person) -> str:
    return person.runs("status").out + person.runs("proposals").out + person.runs("runs").out


SCENES: dict[str, Callable[[Person], str]] = {
    scene.__name__.strip("_"): scene
    for scene in (
        _fails, _fails_after_an_edit, _does_not_load_after_an_edit, _ended_by_fail, _ended_by_fail_with_params,
        _done_twice, _asks, _answered, _sleeps, _stopped, _forked, _rewound, _reloaded, _detached, _killed, _made,
        _nothing_yet,
    )
}  # fmt: skip


@pytest.mark.parametrize("scene", SCENES)
@pytest.mark.slow
def test_every_next_step_works(person: Person, scene: str) -> None:
    """A person copies these lines: each parses, and what it names is there."""
    said = SCENES[scene](person)
    assert steps_in(said), said
    assert unworkable(person, said) == []


def test_a_step_that_does_not_work_is_noticed(person: Person) -> None:
    """The harness itself can fail: an unknown run, option, command, workflow or issue is found."""
    for step in (
        "bailiwick why nobody",
        "bailiwick run --nope",
        "bailiwick frobnicate",
        "bailiwick run ./nowhere --fresh",
        "bailiwick issue-to-pr nothing.md",
        "bailiwick proposals show zzzz",
        "git push -u origin x",
    ):
        assert unworkable(person, f"next  {step}"), step


def test_starting_over_does_the_same_again(person: Person) -> None:
    """The command that starts a run over has its params in it, whatever quotes they hold."""
    said = _ended_by_fail_with_params(person)
    [command] = [step for step in steps_in(said) if "--fresh" in step]
    import shlex

    again = person.runs(*shlex.split(command)[1:], "--json")
    assert (again.code, again.json()["reason"]) == (1, "not it's me")
