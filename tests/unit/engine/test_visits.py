"""Visits as a journal tells them."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bailiwick.engine import events as ev
from bailiwick.engine.evolve import replay
from bailiwick.engine.graph import End, Graph
from bailiwick.engine.state import State
from bailiwick.engine.visits import Visit, Visits, visits
from tests.unit.engine.flows import workflows
from tests.unit.engine.test_crash_anywhere import driver_of
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
    told = [(visit.node, visit.number, visit.undone) for visit in visits(tale.entries)]
    assert told == [("build", 1, True), ("check", 1, True), ("build", 2, False)]


def test_members_are_told_by_their_scope() -> None:
    """Two branches may have a node of the same name."""
    tale = Tale().tell(ev.ScopesForked("", "fan", 1, ["a"]), ev.ScopeStarted("fan.a")).effect("left", scope="fan.a")
    assert [visit.place for visit in visits(tale.entries)] == ["fan", "fan.a/left"]


def test_the_node_that_ended_the_run_is_the_last_visit() -> None:
    """People look for the end at the end."""
    tale = Tale().done("build", "done").tell(ev.RunFinished("done", "done"))
    assert [(visit.node, visit.result) for visit in visits(tale.entries)] == [("build", "done"), ("done", "done")]


SLOW = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@st.composite
def journals(draw: st.DrawFn) -> tuple[Graph, list[ev.Entry]]:
    """A journal of a random workflow, cut anywhere; some went on after a crash, some after a rewind."""
    flow, seed = draw(workflows()), draw(st.integers(0, 1000))
    driver = driver_of(flow, seed)
    driver.create()
    driver.run(stop_after=draw(st.integers(1, 80)))
    if draw(st.booleans()):
        driver = driver.crash(len(driver.journal))
        driver.run(stop_after=len(driver.journal) + draw(st.integers(0, 20)))
    own = [visit for visit in visits(driver.journal) if not visit.scope and not _ends(flow, visit)]
    if own and not driver.state.flights() and draw(st.booleans()):
        back = draw(st.sampled_from(own))
        driver.journal.append((len(driver.journal) + 1, driver.now, ev.Rewound(back.seq - 1, back.node, back.number)))
        driver.state = replay(driver.journal, lambda _: flow)
        driver.run(stop_after=len(driver.journal) + draw(st.integers(0, 40)))
    return flow, driver.journal


def _ends(flow: Graph, visit: Visit) -> bool:
    return isinstance(flow.nodes[visit.node], End)


def _open(fold: Visits[Visit]) -> set[tuple[str, str, int]]:
    return {visit.name for visit in fold.under_way()}


def _entered(state: State) -> set[tuple[str, str, int]]:
    return {(scope.path, scope.cursor, scope.visit) for scope in state.live() if scope.visit}


@SLOW
@given(made=journals())
def test_the_visits_under_way_are_always_those_of_the_state(made: tuple[Graph, list[ev.Entry]]) -> None:
    """Two folds of the same events must not tell two stories."""
    flow, journal = made
    fold = Visits(Visit)
    for number, entry in enumerate(journal, 1):
        fold.apply(*entry)
        if number % 7 == 0 or number == len(journal):
            assert _open(fold) == _entered(replay(journal[:number], lambda _: flow))


@SLOW
@given(made=journals(), data=st.data())
def test_a_journal_folded_in_pieces_gives_the_visits_of_the_whole(
    made: tuple[Graph, list[ev.Entry]], data: st.DataObject
) -> None:
    """A follower that comes in the middle, with the state or with the first piece, sees what the others see."""
    flow, journal = made
    cut = data.draw(st.integers(1, len(journal)), label="cut")
    pieces, late, few = Visits(Visit), Visits(Visit), Visits(Visit, keep=1)
    late.seed(replay(journal[:cut], lambda _: flow))
    seeded = len(late.made)
    for piece in (journal[:cut], journal[cut:]):
        for entry in piece:
            pieces.apply(*entry)
            few.apply(*entry)
    for entry in journal[cut:]:
        late.apply(*entry)
    whole = visits(journal)
    assert pieces.made == whole
    assert _open(pieces) == _open(late) == _open(few)
    later = [visit.name for visit in whole if visit.seq > journal[cut - 1][0] and not _ends(flow, visit)]
    assert [visit.name for visit in late.made[seeded:] if not _ends(flow, visit)] == later


@SLOW
@given(made=journals())
def test_each_visit_of_work_is_closed_once(made: tuple[Graph, list[ev.Entry]]) -> None:
    """The run directory writes a visit when it hears that it is over: twice or never would be wrong."""
    _, journal = made
    closed: list[tuple[str, str, int]] = []
    fold = Visits(Visit, closed=lambda visit, _event: closed.append(visit.name))
    for entry in journal:
        fold.apply(*entry)
    assert len(closed) == len(set(closed))
    done = {(e.scope, e.node, e.visit) for _, _, e in journal if isinstance(e, ev.StepDone | ev.StepFailed)}
    assert done <= set(closed)
    assert not set(closed) & _open(fold)


def test_a_lane_lets_old_visits_go_and_counts_them() -> None:
    """A loop of a million turns must not fill the memory of whoever watches it."""
    fold = Visits(Visit, keep=3)
    for number in range(1, 101):
        fold.apply(number, float(number), ev.StepPassed("", "check", number, "check"))
        assert len(fold.root.visits) <= 6
    assert fold.root.earlier + len(fold.root.visits) == 100
    assert fold.made == []
