"""Where runs stand, from their rows alone."""

from __future__ import annotations

from bailiwick.journal.rows import WaitRow
from bailiwick.runs.query import Overview, questions, standing, tree_state
from tests.unit.runs.tales import ME, NOW, OTHER, run_row


def test_a_parent_does_what_its_children_do() -> None:
    """A run that only waits for a call is not running itself."""
    parent = run_row("p", status="ready", summary={"state": "running"})
    child = run_row("c", status="ready", root_id="p", parent="p", wake_at=NOW + 60, summary={"state": "sleeping"})
    assert tree_state([parent, child]) == "sleeping"


def test_one_branch_that_runs_makes_a_tree_run() -> None:
    """A question beside work that goes on is no standstill."""
    one = run_row("a", status="ready", summary={"state": "waiting"})
    two = run_row("b", status="ready", root_id="a", parent="a", owner=OTHER, summary={"state": "running"})
    assert tree_state([one, two]) == "running"


def test_a_ready_run_without_a_live_owner_is_orphaned() -> None:
    """The worst surprise is a run that nobody walks and that looks as if somebody did."""
    row = run_row("a", status="ready", wake_at=NOW - 1, summary={"state": "running", "node": "build"})
    assert standing(row, [row], ME, NOW).orphaned
    held = run_row("a", status="ready", wake_at=NOW - 1, owner=OTHER, lease_until=NOW + 9, summary={"state": "running"})
    found = standing(held, [held], ME, NOW)
    assert not found.orphaned
    assert "bailiwick worker" in found.holder


def test_a_lease_that_ran_out_holds_nothing() -> None:
    """An owner of another host can't be asked whether it lives; its lease can."""
    row = run_row("a", status="ready", wake_at=NOW - 9, owner=OTHER, lease_until=NOW - 1, summary={"state": "running"})
    assert standing(row, [row], ME, NOW).orphaned


def test_a_sleeping_run_says_until_when() -> None:
    """The earliest of its members counts."""
    row = run_row("a", status="ready", wake_at=NOW + 50, summary={"state": "sleeping", "due_at": NOW + 50})
    found = standing(row, [row], ME, NOW)
    assert (found.state, found.due_at, found.orphaned) == ("sleeping", NOW + 50, False)


def _wait(name: str, choices: list[str], run_id: str = "a") -> WaitRow:
    return WaitRow(run_id, name, "", "ask", "ask", None, {"question": "Deploy?", "choices": choices})


def test_the_answer_command_can_be_typed_as_it_stands() -> None:
    """A choice with a blank or a quote is quoted for the shell."""
    row = run_row("a", status="ready", summary={"state": "waiting"})
    (asked,) = questions([row], [_wait("w1", ["yes", "not now; rm"])])
    assert asked.commands == ("bailiwick runs answer flow-a yes", "bailiwick runs answer flow-a 'not now; rm'")
    assert asked.command == "bailiwick runs answer flow-a yes | 'not now; rm'"


def test_several_questions_of_one_run_are_told_apart() -> None:
    """Answering the wrong one can't be taken back."""
    row = run_row("a", status="ready", summary={"state": "waiting"})
    found = questions([row], [_wait("w1", []), _wait("w2", [])])
    assert [asked.command for asked in found] == [
        "bailiwick runs answer flow-a --question w1 VALUE",
        "bailiwick runs answer flow-a --question w2 VALUE",
    ]


def test_a_stopped_run_asks_nothing() -> None:
    """It would refuse the answer."""
    assert questions([run_row("a", status="stopped")], [_wait("w1", [])]) == []


def test_an_empty_overview_says_what_to_do() -> None:
    """Nothing yet is where everybody starts."""
    assert Overview().next_commands() == ["bailiwick demo", "bailiwick new hello"]
    assert not Overview()
