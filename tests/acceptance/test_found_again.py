"""A run that is found again says so: what it does with edited files, that it was done before, or where it goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.acceptance.command import Person

FLOW = """version: 1
name: flow
returns: [answer, list, later]
start: a
nodes:
  - {id: a, type: script, script: scripts/a.sh, outputs: [{key: answer}, {key: list}], next: done}
  - {id: done, type: terminal}
"""
CALLER = """version: 1
name: caller
start: call
nodes:
  - {id: call, type: call, workflow: flow, next: fail}
  - {id: fail, type: script, script: scripts/b.sh, next: done}
  - {id: done, type: terminal}
"""
GOOD = """echo '{"answer": "forty-two", "list": [1, 2]}'\n"""


def _flow(person: Person, script: str = GOOD) -> Path:
    return person.workflow("flow", FLOW, a_sh=script)


def test_a_failed_run_that_goes_on_says_that_it_keeps_its_files(person: Person) -> None:
    """Whoever mends a script and resumes would else see the same failure and no reason."""
    flow = _flow(person, "exit 3\n")
    assert person.runs("run", flow).code == 1
    same = person.runs("resume", "flow")
    assert "goes on with the files it was started with" in same.out
    assert "reload" not in same.out
    (flow / "scripts" / "a.sh").write_text(GOOD)
    for again in (person.runs("resume", "flow"), person.runs("run", flow)):
        assert again.code == 1
        assert "edited since: scripts/a.sh" in again.out
        assert "bailiwick runs reload flow-default" in again.out
    assert person.runs("runs", "reload", "flow").code == 0
    mended = person.runs("resume", "flow")
    assert mended.code == 0, mended.out
    assert "goes on with the files it adopted last" in mended.out


def test_an_edit_of_a_called_workflow_is_named(person: Person) -> None:
    """What a run is pinned to includes what it calls."""
    flow = _flow(person)
    caller = person.workflow("caller", CALLER, b_sh="exit 3\n")
    assert person.runs("run", caller).code == 1
    (flow / "scripts" / "a.sh").write_text(GOOD + "# more\n")
    assert "edited since: flow/scripts/a.sh" in person.runs("resume", "caller").out


def test_a_run_whose_source_is_gone_still_goes_on(person: Person) -> None:
    """The pinned files are enough; that the others are gone is said."""
    flow = _flow(person, "exit 3\n")
    person.runs("run", flow)
    flow.rename(person.cwd / "elsewhere")
    assert "is not there any more" in person.runs("resume", "flow").out


def test_a_run_that_is_done_is_not_done_again_and_says_so(person: Person) -> None:
    """ "Done" would claim that something was just run."""
    flow = _flow(person)
    assert person.runs("run", flow).code == 0
    same = person.runs("run", flow)
    assert same.code == 0
    assert "Already done since" in same.out
    assert "its files are the same as then" in same.out
    (flow / "scripts" / "a.sh").write_text(GOOD + "# edited\n")
    edited = person.runs("run", flow)
    assert "its files were edited since: scripts/a.sh" in edited.out
    assert f"bailiwick run {flow} --fresh" in edited.out
    assert person.runs("run", flow, "--json").json()["already"] is True


@pytest.mark.parametrize("again", [False, True])
def test_a_detached_run_is_said_to_go_on(person: Person, again: bool) -> None:
    """It is not done and has no steps yet; a run that is done already is not detached."""
    flow = _flow(person)
    said = person.runs("run", flow, "--detach")
    assert said.code == 0
    assert "goes on in the background (pid " in said.out
    assert "Done" not in said.out
    assert person.runs("runs", "wait", "flow", timeout=600).code == 0
    if again:
        assert "Already done" in person.runs("run", flow, "--detach").out


def test_a_detached_run_is_running_for_programs(person: Person) -> None:
    """The document says what is so: it runs, and which process goes on with it."""
    told = person.runs("run", _flow(person), "--detach", "--json").json()
    assert (told["state"], told["meaning"]) == ("running", "goes on in the background")
    assert isinstance(told["worker"], int)
    assert person.runs("runs", "wait", "flow", timeout=600).code == 0


def test_what_a_workflow_returns_is_shown_when_it_ends_and_later(person: Person) -> None:
    """A declared result that is nowhere to be seen is no result."""
    flow = _flow(person)
    shown = person.runs("run", flow)
    assert "result  answer = forty-two" in shown.out
    assert "result  list = [1,2]" in shown.out
    assert "later" not in shown.out
    told = person.runs("run", flow, "--json").json()
    assert told["results"] == {"answer": "forty-two", "list": [1, 2]}
    assert "forty-two" in person.runs("runs", "show", "flow").out
    assert person.runs("runs", "show", "flow", "--json").json()["results"] == {"answer": "forty-two", "list": [1, 2]}
