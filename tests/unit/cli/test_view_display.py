"""How a workflow wants its steps to be seen: hidden, quiet, titled; what went wrong is always shown."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bailiwick.cli.view.display import Displays, is_left_out
from bailiwick.cli.view.plain import PlainView
from bailiwick.cli.view.tree import Run, RunTreeView
from bailiwick.cli.view.visits import ViewedVisit
from bailiwick.engine import events as ev
from bailiwick.engine.graph import Display
from bailiwick.engine.visits import NodeStatement, VisitStatus
from bailiwick.terminal.output import cells, wrapped
from tests.unit.cli.view_stage import Branch, Set, ViewSetup, graph, lines, printer, work


def _watched(stage: ViewSetup, *, verbose: bool = False) -> tuple[PlainView, io.StringIO]:
    out = io.StringIO()
    view = PlainView(printer(out), stage.clock, Displays(verbose=verbose))
    view.begin(stage.row)
    out.truncate(0)
    out.seek(0)
    return view, out


def _flow(**displays: Display) -> ViewSetup:
    """build → choose → count → end."""
    nodes = (
        work("build", "choose"),
        Branch(id="choose", path="n", cases={"1": "count"}, default="end"),
        Set(id="count", values={"n": "2"}, next="end"),
    )
    shown = [replace(node, display=displays.get(node.id)) for node in nodes]
    return ViewSetup(graph(*shown), context={"n": 1, "who": "Ada"})


def _walk(stage: ViewSetup, view: PlainView) -> None:
    stage.happen(view, stage.started("build"))
    stage.happen(
        view,
        stage.finished("build", 1),
        ev.StepDone("", "build", 1, "choose"),
        ev.StepPassed("", "choose", 1, "count", value=1),
        ev.StepPassed("", "count", 1, "end", {"n": 2}),
        after=1,
    )


def test_hidden_and_quiet_steps_are_left_out_and_titles_are_rendered() -> None:
    """The story without its inner steps: what was done, under the name that the author gave it."""
    hidden = Display("hidden")
    stage = _flow(build=Display(title="build {{ node.visit }} for {{ who }}"), choose=hidden, count=Display("quiet"))
    view, out = _watched(stage)
    _walk(stage, view)
    assert lines(out) == ["12:00:01  ✓ build 1 for Ada  1 s"]


def test_with_verbose_every_step_is_shown() -> None:
    """Whoever debugs a workflow sees what it does, titles or not."""
    stage = _flow(build=Display(title="make"), choose=Display("hidden"), count=Display("quiet"))
    view, out = _watched(stage, verbose=True)
    _walk(stage, view)
    assert [line.split()[2] for line in lines(out)] == ["make", "choose", "count"]


def test_a_text_stands_for_what_a_pure_step_did_and_may_say_nothing() -> None:
    """An author says in words what follows; a text that renders empty is no line."""
    text = "{{ 'goes on with ' ~ who if n == 2 }}"
    stage = _flow(count=Display(title="next", text=text), choose=Display(text="{{ '' }}"))
    view, out = _watched(stage)
    _walk(stage, view)
    assert lines(out)[1:] == ["12:00:01  · next          goes on with Ada"]


def test_a_hidden_step_that_fails_is_shown() -> None:
    """Nothing that went wrong is hidden."""
    stage = _flow(build=Display("hidden"))
    view, out = _watched(stage)
    stage.happen(view, stage.started("build"))
    failed = ev.StepFailed("", "build", 1, {"kind": "exit", "message": "exited with 3"})
    stage.happen(view, stage.finished("build", 1, failure="exited with 3"), failed, after=1)
    assert lines(out) == ["12:00:01  ✗ build         exited with 3  1 s"]


@given(
    stand=st.sampled_from(list(VisitStatus)),
    mode=st.sampled_from(["", "shown", "quiet", "hidden"]),
    bad=st.booleans(),
    defaulted=st.booleans(),
    text=st.sampled_from([None, "", "said"]),
)
def test_what_went_wrong_or_waits_for_a_person_is_never_left_out(
    stand: VisitStatus, mode: str, bad: bool, defaulted: bool, text: str | None
) -> None:
    """Whatever an author hides, a failure, a bad finding, a default and a question are seen."""
    found = [NodeStatement(1, 0.0, "found", good=not bad, lines=())]
    visit = ViewedVisit("", "a", 1, status=stand, statements=found, defaulted=defaulted, mode=mode, text=text)
    if bad or defaulted or stand in (VisitStatus.FAILED, VisitStatus.WAITS, VisitStatus.CUT):
        assert not is_left_out(visit)
    if mode in ("", "shown") and text is None:
        assert not is_left_out(visit)


def test_a_template_that_can_not_be_rendered_leaves_the_name() -> None:
    """A display never breaks a view."""
    stage = _flow(build=Display(title="{{ who.x.y.z }}"))
    view, out = _watched(stage)
    _walk(stage, view)
    assert lines(out)[0] == "12:00:01  ✓ build         1 s"


def test_turns_tell_what_they_cost_and_a_session_is_counted_once() -> None:
    """A backend that counts over a session gives totals; each visit shows its own share."""
    stage = ViewSetup(graph(work("a", "b"), work("b", "end")))
    view, out = _watched(stage)
    for node, then, total in (("a", "b", 0.25), ("b", "end", 0.3)):
        log = {"usage": {"usd": total, "cumulative": True}, "session": "s"}
        stage.happen(view, stage.started(node))
        done = ev.EffectFinished("", stage.key(node), {}, None, log, 1.0)
        stage.happen(view, done, ev.StepDone("", node, 1, then), after=1)
    assert [line.split()[3] for line in lines(out)] == ["$0.25", "$0.05"]


def test_a_failed_step_is_broken_between_words_instead_of_cut() -> None:
    """The failing test and its line are the point of the line: they are there on a narrow terminal too."""
    stage = ViewSetup(graph(work("gate", "end")))
    run = Run()
    run.graph = stage.graph
    told = "red: tests/test_prices.py::test_ten_percent fails: tests/test_prices.py:8: assert 190 == 180"
    found = [NodeStatement(2, 2.0, told, good=False, lines=())]
    visit = ViewedVisit("", "gate", 1, seq=1, began=1.0, status=VisitStatus.DONE, statements=found)
    visit.ended, visit.attempt, visit.worked = 3.0, 1, 2.0
    run.track.root.visits.append(visit)
    picture = RunTreeView(printer(io.StringIO()), "flow", {"r": run}, "r")
    text = ["".join(part.text for part in line) for line in picture.body(60, 20, 4.0)]
    assert all(cells(line) <= 60 for line in text)
    assert " ".join(" ".join(text).split()).endswith(told)


@given(st.lists(st.text("ab—é", min_size=1, max_size=12), max_size=30), st.integers(10, 60))
def test_lines_are_broken_between_words_and_never_inside(words: list[str], width: int) -> None:
    """No word is lost or cut; a line is longer than the width only where a single word is."""
    broken = wrapped(" ".join(words), width)
    assert " ".join(broken).split() == words
    for line in broken:
        assert cells(line) <= width or len(line.split()) == 1


@pytest.mark.parametrize("width", [0, 500])
def test_what_fits_is_left_as_it_is(width: int) -> None:
    """Piped output is not broken at all."""
    assert wrapped("a  b   c", width) == ["a  b   c"]
