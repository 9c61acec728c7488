"""Visits as a journal tells them."""

from __future__ import annotations

from bailiwick.engine import events as ev
from bailiwick.runs.visits import standing_entries, visits
from tests.unit.runs.tales import Tale


def test_attempts_and_re_entries_are_counted_apart() -> None:
    """A retry is the workflow's, a re-entry is a crash: mixing them hides both."""
    tale = Tale().effect("build", failure="no")
    tale.tell(ev.WaitOpened("", "build", 1, "w", "retry", due_at=1.0), ev.WaitClosed("", "w", "due"))
    tale.tell(ev.EffectStarted("", "build", 1, 1, 2, "key-build-1"), ev.EffectLost("", "key-build-1", "crash"))
    tale.tell(ev.EffectStarted("", "build", 1, 1, 2, "key-build-1", 2))
    tale.tell(ev.EffectFinished("", "key-build-1", seconds=2.0), ev.StepDone("", "build", 1, "check"))
    (visit,) = visits(tale.entries)
    assert (visit.result, visit.next, visit.attempts, visit.reentries) == ("done", "check", 2, 1)
    assert visit.seconds == 2.5
    assert visit.detail == ""


def test_a_wait_takes_the_time_from_opening_to_leaving() -> None:
    """A node without attempts still took time: a person's."""
    tale = Tale().tell(ev.WaitOpened("", "ask", 1, "w", "ask"))
    assert visits(tale.entries)[0].seconds is None
    tale.tell(ev.WaitClosed("", "w", "answered", "yes"), ev.StepDone("", "ask", 1, "done"))
    assert visits(tale.entries)[0].seconds == 2.0


def test_a_rewind_marks_what_it_took_back() -> None:
    """The table must not show a step as done that the run will do again."""
    tale = Tale().done("build", "check").tell(ev.StepPassed("", "check", 1, "done"))
    tale.tell(ev.Rewound(1, "build", 1)).done("build", "check", visit=2)
    told = [(visit.node, visit.visit, visit.undone) for visit in visits(tale.entries)]
    assert told == [("build", 1, True), ("check", 1, True), ("build", 2, False)]


def test_events_that_a_rewind_took_back_no_longer_stand() -> None:
    """A branch before the rewind does not explain where the run is now."""
    tale = Tale().tell(ev.StepPassed("", "check", 1, "done")).tell(ev.Rewound(1, "build", 1))
    assert [type(event).__name__ for _, _, event in standing_entries(tale.entries)] == ["RunCreated", "Rewound"]


def test_members_are_told_by_their_scope() -> None:
    """Two branches may have a node of the same name."""
    tale = Tale().tell(ev.ScopesForked("", "fan", 1, ["a"]), ev.ScopeStarted("fan.a")).effect("left", scope="fan.a")
    assert [visit.place for visit in visits(tale.entries)] == ["fan", "fan.a/left"]


def test_the_node_that_ended_the_run_is_the_last_visit() -> None:
    """People look for the end at the end."""
    tale = Tale().done("build", "done").tell(ev.RunFinished("done", "done"))
    assert [(visit.node, visit.result) for visit in visits(tale.entries)] == [("build", "done"), ("done", "done")]
