"""Where runs stand, from their rows alone."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from bailiwick.journal.rows import Owner, RunRow, WaitRow
from bailiwick.processes.owner import current_owner
from bailiwick.runs.query import Overview, is_held, questions, run_tree, standing, tree_state
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


HERE = current_owner("bailiwick run")
DEAD = replace(HERE, pid=HERE.pid, start=HERE.start + 1)
OWNERS = st.sampled_from([None, HERE, DEAD, replace(HERE, host="elsewhere"), replace(HERE, boot="earlier")])
LEASES = st.sampled_from([NOW - 1, NOW, NOW + 9])
STATES = st.sampled_from(["running", "waiting", "sleeping"])


@st.composite
def trees(draw: st.DrawFn) -> list[RunRow]:
    """A run, the runs it called and the runs those called, each with an owner of some kind."""
    rows: list[RunRow] = []
    for number in range(draw(st.integers(1, 5))):
        owner: Owner | None = draw(OWNERS)
        parent = draw(st.sampled_from(rows)).id if rows else None
        rows.append(
            run_row(
                f"r{number}",
                status=draw(st.sampled_from(["ready", "ready", "done", "failed", "stopped"])),
                owner=owner,
                epoch=draw(st.integers(1, 3)) if owner else draw(st.integers(0, 2)),
                lease_until=draw(LEASES) if owner else 0.0,
                wake_at=draw(st.sampled_from([None, NOW - 1, NOW + 60])),
                root_id="r0",
                parent=parent,
                summary={"state": draw(STATES)},
            )
        )
    return rows


@given(rows=trees())
def test_only_what_a_live_process_holds_is_ever_running(rows: list[RunRow]) -> None:
    """Whoever reads `running` waits for it; with nobody there, that is for ever."""
    for row in rows:
        found = standing(row, rows, HERE, NOW)
        held = any(is_held(one, HERE, NOW) for one in run_tree(row, rows) if one.status == "ready")
        assert found.state != "running" or held
        assert found.state != "interrupted" or (row.status == "ready" and not held)
        assert bool(found.holder) == held or row.status != "ready"


@given(rows=trees())
def test_a_run_is_queued_only_before_anybody_took_it(rows: list[RunRow]) -> None:
    """What was begun and is held by nobody was interrupted, and doing it again may matter."""
    for row in rows:
        if standing(row, rows, HERE, NOW).state == "queued":
            assert not any(one.epoch for one in run_tree(row, rows))


@given(rows=trees())
def test_a_row_read_earlier_tells_nothing_that_is_over(rows: list[RunRow]) -> None:
    """Whoever waits for a run asks with the row it found first; what the store says now counts."""
    for row in rows:
        earlier = replace(row, status="ready", owner=HERE, lease_until=NOW + 9)
        assert run_tree(earlier, rows) == run_tree(row, rows)
        assert standing(earlier, rows, HERE, NOW) == standing(row, rows, HERE, NOW)
