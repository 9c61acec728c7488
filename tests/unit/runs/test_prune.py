"""Which runs may go."""

from __future__ import annotations

from bailiwick.journal.rows import RunRow, Status
from bailiwick.runs.prune import select
from tests.unit.runs.tales import NOW, run_row

DAY = 86400.0


def _ended(name: str, days: float, status: Status = "done", **more: object) -> RunRow:
    at = NOW - days * DAY
    return run_row(name, status=status, created_at=at, summary={"ended_at": at}, **more)


def _names(rows: list[RunRow], older_than: float = 30 * DAY, keep: int = 0) -> list[str]:
    return [row.id for row, _ in select(rows, NOW, older_than, keep)]


def test_only_ended_runs_that_are_old_enough_go() -> None:
    """What is ready, waits or is stopped is work, however old."""
    rows = [_ended("old", 31), _ended("failed", 40, "failed"), _ended("new", 29)]
    rows += [_ended("ready", 99, "ready"), _ended("stopped", 99, "stopped")]
    assert _names(rows) == ["old", "failed"]


def test_a_tree_goes_whole_or_not_at_all() -> None:
    """A stopped child holds its parent's tree."""
    whole = [_ended("p", 40), _ended("c", 40, root_id="p", parent="p")]
    assert [len(members) for _, members in select(whole, NOW, DAY)] == [2]
    assert _names([_ended("p", 40), _ended("c", 40, "stopped", root_id="p", parent="p")]) == []


def test_the_newest_of_each_workflow_can_be_kept() -> None:
    """The last results of a rarely used workflow are worth keeping."""
    rows = [_ended("a1", 40), _ended("a2", 50), _ended("b1", 60, workflow="other")]
    assert _names(rows, keep=1) == ["a2"]


def test_newer_runs_come_first() -> None:
    """A fork reads the journal of the run it was made from, so it has to go before it."""
    assert _names([_ended("older", 50), _ended("newer", 40)]) == ["newer", "older"]


def test_archived_runs_go_like_others() -> None:
    """Setting aside is no reason to keep for ever."""
    assert _names([_ended("a", 40, archived=True)]) == ["a"]
