"""Points that people name."""

from __future__ import annotations

import pytest

from bailiwick.engine import events as ev
from bailiwick.errors import UsageError
from bailiwick.runs.control import find_point, read_point, standing_point
from tests.unit.runs.tales import Tale


@pytest.mark.parametrize(("text", "point"), [("build", ("build", None)), ("build@2", ("build", 2))])
def test_a_point_is_a_node_with_or_without_a_visit(text: str, point: tuple[str, int | None]) -> None:
    """The last visit is what people mean when they give none."""
    assert read_point(text) == point


@pytest.mark.parametrize("text", ["", "@2", "build@", "build@0", "build@-1", "build@x", "build@²", "build@99999999999"])
def test_a_point_that_names_no_visit_is_refused(text: str) -> None:
    """A typing error must not go back to somewhere else."""
    with pytest.raises(UsageError) as caught:
        read_point(text)
    assert caught.value.hint


def test_a_point_lies_before_the_first_event_of_the_visit() -> None:
    """Going back means: as if the visit had not begun; what ended well after it is listed."""
    tale = Tale().done("build", "check").tell(ev.StepPassed("", "check", 1, "build")).done("build", "check", visit=2)
    point = find_point(tale.entries, "build", 1, "flow-default")
    assert (point.upto, point.effects) == (1, ("build", "build"))
    assert find_point(tale.entries, "build", None, "flow-default").visit == 2


def test_a_node_inside_a_construct_points_to_the_construct() -> None:
    """Half a parallel can't be gone back to; the hint names what can."""
    tale = Tale().tell(ev.ScopesForked("", "fan", 1, ["a"]), ev.ScopeStarted("fan.a")).effect("left", scope="fan.a")
    with pytest.raises(UsageError) as caught:
        find_point(tale.entries, "left", None, "flow-default")
    assert "fan" in caught.value.hint


def test_a_visit_that_was_not_is_refused_with_those_that_were() -> None:
    """The numbers are not to be guessed."""
    tale = Tale().done("build", "check")
    with pytest.raises(UsageError) as caught:
        find_point(tale.entries, "build", 7, "flow-default")
    assert caught.value.hint == "visits: 1"


def test_a_failed_run_stands_before_the_visit_that_failed() -> None:
    """A fork of a failed run tries the failed node again."""
    tale = Tale().effect("build", failure="no").tell(ev.StepFailed("", "build", 1, {"kind": "exit", "message": "no"}))
    tale.tell(ev.RunFinished("failed", "build", "no", ended=False))
    point = standing_point(tale.entries, tale.state(), "flow-default")
    assert (point.node, point.visit, point.upto) == ("build", 1, 1)


def test_a_run_between_two_nodes_stands_at_its_last_event() -> None:
    """Nothing has to be left out when the next node has not begun."""
    tale = Tale().done("build", "ask").tell(ev.StopRequested(), ev.RunStopped())
    point = standing_point(tale.entries, tale.state(), "flow-default")
    assert (point.node, point.visit, point.upto) == ("ask", 1, len(tale.entries))


def test_an_ended_run_needs_a_point() -> None:
    """Where a finished run should be taken up again is the person's to say."""
    tale = Tale().done("build", "done").tell(ev.RunFinished("done", "done"))
    with pytest.raises(UsageError) as caught:
        standing_point(tale.entries, tale.state(), "flow-default")
    assert "--at" in caught.value.hint
