"""The plain view: one line per thing that happened, and last words with the next command."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest

from bailiwick.cli.view.plain import PURE_LINES, PlainView
from bailiwick.engine import events as ev
from tests.unit.cli.view_stage import (
    NOON,
    Ask,
    Branch,
    Call,
    End,
    Map,
    Set,
    ViewSetup,
    Wait,
    graph,
    lines,
    printer,
    row_of,
    work,
)


def watched(stage: ViewSetup, **changes: object) -> tuple[PlainView, io.StringIO]:
    """A view of the stage's run, its head line already gone."""
    out = io.StringIO()
    view = PlainView(printer(out, **changes), stage.clock)
    view.begin(stage.row)
    out.truncate(0)
    out.seek(0)
    return view, out


def test_a_finished_step_is_one_line_with_its_time() -> None:
    """The log of a good run is as long as the run has steps."""
    stage = ViewSetup(graph(work("build", "end")))
    view, out = watched(stage)
    stage.own(view)
    stage.step(view, "build", "end", 3.2)
    assert lines(out) == ["12:00:03  ✓ build         3.2 s"]


@pytest.mark.parametrize(("good", "mark"), [(True, "✓"), (False, "✗")])
def test_a_step_that_found_something_says_what(good: bool, mark: str) -> None:
    """A gate does its work and is red: that is not a tick, and the failing test is named."""
    stage = ViewSetup(graph(work("gate", "end")))
    view, out = watched(stage)
    stage.happen(view, stage.started("gate"))
    said = {"told": "red: t.py::test_a fails: t.py:3: \x1b[2Jassert 1 == 2", "good": good}
    stage.happen(view, ev.EffectObserved("", stage.key("gate"), said))
    stage.happen(view, stage.finished("gate", 2), ev.StepDone("", "gate", 1, "end"), after=2)
    assert lines(out) == [f"12:00:02  {mark} gate          red: t.py::test_a fails: t.py:3: assert 1 == 2  2 s"]


def test_a_failed_attempt_says_why_and_when_it_is_tried_again() -> None:
    """A log that goes quiet between attempts looks hung."""
    stage = ViewSetup(graph(work("test", "end")))
    view, out = watched(stage)
    stage.happen(view, stage.started("test"))
    retry = ev.WaitOpened("", "test", 1, "w", "retry", 0, NOON + 3, {"after": 1, "failure": "exit 1: \x1b[2Jboom"})
    stage.happen(view, stage.finished("test", 1, failure="exit 1: boom"), retry, after=1)
    stage.happen(view, ev.WaitClosed("", "w", "due"), stage.started("test", attempt=2), after=2)
    failure = {"kind": "exit", "message": "exit 1: again"}
    stage.happen(view, stage.finished("test", 1, failure="x"), ev.StepFailed("", "test", 1, failure), after=1)
    assert lines(out) == [
        "12:00:01  ✗ test          exit 1: boom → retry in 2 s",
        "12:00:04  ✗ test          exit 1: again  2 s",
    ]


def test_a_question_comes_with_the_command_that_answers_it() -> None:
    """Off a terminal nobody can be asked; the log has to say how to answer."""
    stage = ViewSetup(graph(Ask(id="ask", question="q", next="end")))
    view, out = watched(stage)
    body = {"question": "Deploy\nit?", "choices": ["yes", "not yet"]}
    stage.happen(view, ev.WaitOpened("", "ask", 1, "w", "ask", 0, None, body))
    stage.happen(view, ev.WaitClosed("", "w", "answered", "yes", "anna"), after=61)
    stage.happen(view, ev.StepDone("", "ask", 1, "end", {"ask": "yes"}))
    assert lines(out) == [
        "12:00:00  ‖ ask           waiting for you: Deploy it?  (bailiwick runs answer hello-default yes | 'not yet')",
        '12:01:01  ✓ ask           answered "yes" by anna  1m1s',
    ]


def test_a_timer_says_when_it_resumes() -> None:
    """A run that sleeps for hours must not look dead."""
    stage = ViewSetup(graph(Wait(id="sleep", seconds="2h", next="end")))
    view, out = watched(stage)
    stage.happen(view, ev.WaitOpened("", "sleep", 1, "w", "timer", 0, NOON + 7200))
    assert lines(out) == ["12:00:00  … sleep         resumes at 14:00:00 +0000"]


def test_a_poll_is_told_once_however_often_it_looks() -> None:
    """A poll every ten seconds for a week would fill the disk."""
    stage = ViewSetup(graph(Wait(id="ready", next="end")))
    view, out = watched(stage)
    for ordinal in (1, 2, 3):
        wait = ev.WaitOpened("", "ready", 1, f"w{ordinal}", "poll", ordinal, stage.clock.now() + 10, {"failure": "no"})
        stage.happen(view, stage.started("ready"), stage.finished("ready", 0.1, failure="not yet"), wait)
        stage.happen(view, ev.WaitClosed("", f"w{ordinal}", "due"), after=10)
    stage.happen(view, stage.started("ready"), stage.finished("ready", 0.1), ev.StepDone("", "ready", 1, "end"))
    assert lines(out) == [
        "12:00:00  … ready         not yet → looks again in 10 s",
        "12:00:30  ✓ ready         30 s",
    ]


def test_a_branch_says_what_it_saw_and_where_it_went() -> None:
    """The way a run took is the first thing people ask for."""
    stage = ViewSetup(graph(Branch(id="check", path="result.status", cases={"ok": "prep"}), Set(id="prep", values={})))
    view, out = watched(stage)
    stage.happen(view, ev.StepPassed("", "check", 1, "prep", value="ok"))
    stage.happen(view, ev.StepPassed("", "prep", 1, "check", {"a": 1, "b": 2}, notes=["who"]))
    stage.happen(view, ev.StepPassed("", "check", 2, "prep", value=None))
    assert lines(out) == [
        "12:00:00  · check         result.status = ok → prep",
        "12:00:00  ! prep          'who' is not in the context and rendered empty",
        "12:00:00  · prep          sets a, b",
        "12:00:00  · check@2       result.status = no value → prep",
    ]


def test_a_long_row_of_pure_steps_is_counted_not_listed() -> None:
    """A loop passes ten thousand pure nodes a second."""
    stage = ViewSetup(graph(Set(id="turn", values={}, next="turn")))
    view, out = watched(stage)
    stage.happen(view, *[ev.StepPassed("", "turn", n, "turn", {"n": n}) for n in range(1, 501)])
    assert len(lines(out)) == PURE_LINES + 1
    assert lines(out)[-2:] == ["12:00:00  · turn@500      sets n", "12:00:00  · and 480 pure steps more"]


def test_members_are_named_by_their_path_and_counted_at_the_join() -> None:
    """Among a hundred items the failed one must be found."""
    flow = graph(Map(id="fan", over="items", body="step", join="end"), work("step", "end"))
    stage = ViewSetup(flow, context={"items": [1, 2]})
    view, out = watched(stage)
    stage.happen(view, ev.ScopesForked("", "fan", 1, ["0", "1"]), ev.ScopeStarted("fan[0]"), ev.ScopeStarted("fan[1]"))
    stage.happen(view, stage.started("step", "fan[0]"), stage.started("step", "fan[1]"))
    stage.happen(view, stage.finished("step", 2, "fan[1]"), ev.StepDone("fan[1]", "step", 1, "end"), after=2)
    stage.happen(view, ev.ScopeEnded("fan[1]", "done"))
    failure = {"kind": "exit", "message": "exit 3"}
    stage.happen(view, stage.finished("step", 3, "fan[0]", "exit 3"), after=1)
    stage.happen(view, ev.StepFailed("fan[0]", "step", 1, failure), ev.ScopeEnded("fan[0]", "failed", failure))
    stage.happen(view, ev.StepDone("", "fan", 1, "end"))
    assert lines(out) == [
        "12:00:02  ✓ fan[1]/step   2 s",
        "12:00:03  ✗ fan[0]/step   exit 3  3 s",
        "12:00:03  ✓ fan           2 members, 1 failed  3 s",
    ]


def test_after_a_crash_the_first_line_says_what_is_kept() -> None:
    """People who start a run again want to know that nothing is done twice."""
    stage = ViewSetup(graph(work("a", "b"), work("b", "c"), work("c", "end")))
    stage.step(None, "a", "b")
    stage.step(None, "b", "c")
    stage.happen(None, stage.started("c"))
    view, out = watched(stage)
    lost = ev.EffectLost("", stage.key("c"), "crash")
    stage.happen(view, ev.OwnerChanged(2, "us"), lost, stage.started("c", entry=2), after=100)
    stage.happen(view, stage.finished("c", 1), ev.StepDone("", "c", 1, "end"), after=1)
    assert lines(out) == ["12:01:42  · resumed: 2 steps kept, 1 re-entered", "12:01:43  ✓ c             1 s"]


def test_members_that_ended_before_a_crash_count_at_the_join() -> None:
    """A join that says less than happened hides a failure."""
    flow = graph(Map(id="fan", over="items", body="step", join="end"), work("step", "end"))
    stage = ViewSetup(flow, context={"items": [1, 2]})
    stage.happen(None, ev.ScopesForked("", "fan", 1, ["0", "1"]), ev.ScopeStarted("fan[0]"), ev.ScopeStarted("fan[1]"))
    stage.happen(None, ev.ScopeEnded("fan[0]", "failed", {"kind": "fail"}), stage.started("step", "fan[1]"))
    view, out = watched(stage)
    lost = ev.EffectLost("fan[1]", stage.key("step", "fan[1]"), "crash")
    stage.happen(view, ev.OwnerChanged(2, "us"), lost, stage.started("step", "fan[1]", entry=2))
    stage.happen(view, stage.finished("step", 1, "fan[1]"), ev.StepDone("fan[1]", "step", 1, "end"), after=1)
    stage.happen(view, ev.ScopeEnded("fan[1]", "done"), ev.StepDone("", "fan", 1, "end"))
    assert lines(out)[1:] == ["12:00:01  ✓ fan[1]/step   1 s", "12:00:01  ✓ fan           2 members, 1 failed"]


def test_a_run_that_wakes_in_the_same_process_is_not_called_resumed() -> None:
    """The process lets a sleeping run go and takes it again; nothing happened that a person needs to know."""
    stage = ViewSetup(graph(work("a", "nap"), Wait(id="nap", seconds="1h", next="end")))
    view, out = watched(stage)
    stage.own(view)
    stage.step(view, "a", "nap")
    stage.happen(view, ev.WaitOpened("", "nap", 1, "w", "timer", 0, NOON + 3601))
    stage.happen(view, ev.OwnerChanged(2, "us"), ev.WaitClosed("", "w", "due"), after=3600)
    stage.happen(view, ev.StepDone("", "nap", 1, "end"))
    assert [line for line in lines(out) if "resumed:" in line] == []
    assert lines(out)[-1] == "13:00:01  ✓ nap           1h"


def test_a_called_run_is_named_by_the_node_that_called_it() -> None:
    """The child's own name says nothing about where in the parent it is."""
    stage = ViewSetup(graph(Call(id="deploy", workflow="w", next="end")))
    child = ViewSetup(graph(work("copy", "end")), row=row_of("c1", "k", parent="u1"))
    view, out = watched(stage)
    stage.happen(view, ev.ChildStarted("", "deploy", 1, "k", "c1"))
    child.own(view)
    child.step(view, "copy", "end", 2)
    child.happen(view, ev.RunFinished("done", "end"))
    assert lines(out) == ["12:00:02  ✓ deploy › copy  2 s"]


def test_a_worker_names_every_run_and_says_when_it_is_over() -> None:
    """A worker walks many runs and no command speaks their last words."""
    stage = ViewSetup(graph(work("a", "end")))
    out = io.StringIO()
    view = PlainView(printer(out), stage.clock)
    stage.own(view)
    stage.step(view, "a", "end", 2)
    stage.happen(view, ev.RunFinished("failed", "end", "no luck"))
    assert lines(out) == ["12:00:02  ✓ hello-default › a  2 s", "12:00:02  ✗ hello-default › failed: no luck"]
    assert view._tracks == {}


def test_a_worker_forgets_a_run_that_sleeps() -> None:
    """A thousand parked runs must cost next to nothing."""
    stage = ViewSetup(graph(Wait(id="nap", seconds="1h", next="end")))
    out = io.StringIO()
    view = PlainView(printer(out), stage.clock)
    stage.happen(view, ev.OwnerChanged(1, "us"), ev.WaitOpened("", "nap", 1, "w", "timer", 0, NOON + 3600))
    assert (view._tracks, view._known.states) == ({}, {})


def test_what_is_done_to_a_run_is_told_with_who_did_it() -> None:
    """Whoever reads the log later wants to know whom to ask."""
    stage = ViewSetup(graph(work("a", "end")))
    view, out = watched(stage)
    stage.happen(view, stage.started("a"), ev.StopRequested(now=True, by="anna"))
    stage.happen(view, ev.EffectLost("", stage.key("a"), "stopped"), ev.RunStopped())
    stage.happen(view, ev.RunResumed("ben"), ev.BudgetRaised("wall", 60, "ben"))
    stage.happen(view, ev.SignalRejected("answer", "too late"), ev.BudgetReached("wall", 60))
    view.trouble("u1", "the disk is full")
    assert [line[10:] for line in lines(out)] == [
        "‖ stopping now (anna)",
        "✗ a             cut off (stopped); it is entered again",
        "‖ stopped",
        "· goes on (ben)",
        "· the budget for wall is now 1m (ben)",
        "! refused: answer: too late",
        "‖ the budget for wall (1m) is used up",
        "! the disk is full",
    ]


def test_a_log_for_ascii_has_only_ascii() -> None:
    """One line that can't be encoded would be the end of the log."""
    stage = ViewSetup(graph(Branch(id="check", path="a", default="end")))
    view, out = watched(stage, unicode=False)
    stage.happen(view, ev.StepPassed("", "check", 1, "end", value="Grüße"))
    view.end(stage.now_row(), 130)
    assert out.getvalue().isascii()


def finished(stage: ViewSetup, event: ev.RunFinished) -> None:
    """The run is over a minute after it began."""
    stage.happen(None, stage.started("a"))
    stage.happen(None, stage.finished("a", 60), ev.StepDone("", "a", 1, "end"), event, after=60)


@pytest.mark.parametrize(
    ("event", "code", "said"),
    [
        (ev.RunFinished("done", "end"), 0, ["✓ Done in 1m, 1 step.", "files   runs/hello-default"]),
        (
            ev.RunFinished("done", "end", degraded=["a", "b"]),
            4,
            [
                "! Done in 1m, 1 step, but degraded: 'a', 'b' used a default.",
                "why     bailiwick why hello-default",
                "files   runs/hello-default",
            ],
        ),
        (
            ev.RunFinished("failed", "end", "exit 1: \x1b[31mboom", ended=False),
            1,
            [
                "✗ Failed at 'end': exit 1: boom",
                "why     bailiwick why hello-default",
                "go on   bailiwick resume hello-default",
                "files   runs/hello-default",
            ],
        ),
        (
            ev.RunFinished("failed", "end", "gave up"),
            1,
            [
                "✗ Failed at 'end': gave up",
                "why     bailiwick why hello-default",
                "again   bailiwick run flows/hello --fresh",
                "files   runs/hello-default",
            ],
        ),
    ],
)
def test_the_last_words_say_how_it_ended_and_what_to_do(event: ev.RunFinished, code: int, said: list[str]) -> None:
    """The end of the output is what people read first."""
    stage = ViewSetup(graph(work("a", "end")))
    finished(stage, event)
    view, out = watched(stage)
    view.end(stage.now_row(), code, stage.state)
    assert lines(out)[1:] == said


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        (3, "‖ Stopped after 1 step; nothing is lost."),
        (130, "‖ Interrupted after 1 step; nothing is lost."),
        (143, "‖ Terminated after 1 step; nothing is lost."),
    ],
)
def test_a_run_that_was_cut_off_says_how_to_go_on(code: int, sentence: str) -> None:
    """Ctrl-C explains itself."""
    stage = ViewSetup(graph(work("a", "end")))
    stage.step(None, "a", "end")
    stage.happen(None, ev.RunStopped())
    view, out = watched(stage)
    view.end(stage.now_row(), code)
    assert lines(out)[1:3] == [sentence, "go on   bailiwick resume hello-default"]


def test_several_open_questions_are_each_named_by_their_wait() -> None:
    """An answer that could mean two questions is refused, so the command has to say which."""
    asks = graph(Map(id="fan", over="items", body="ask", join="end"), Ask(id="ask", question="q", next="end"))
    stage = ViewSetup(asks, context={"items": [1, 2]})
    view, out = watched(stage)
    stage.happen(view, ev.ScopesForked("", "fan", 1, ["0", "1"]), ev.ScopeStarted("fan[0]"), ev.ScopeStarted("fan[1]"))
    body = {"question": "Which?", "choices": []}
    waits = [ev.WaitOpened(f"fan[{n}]", "ask", 1, f"w{n}", "ask", body=body) for n in (0, 1)]
    stage.happen(view, *waits)
    view.end(stage.now_row(), 3)
    assert lines(out)[-4:] == [
        "‖ Waiting for you: Which?",
        "answer  bailiwick runs answer hello-default --question w0 VALUE",
        "answer  bailiwick runs answer hello-default --question w1 VALUE",
        "files   runs/hello-default",
    ]


def test_a_run_that_sleeps_or_met_its_budget_says_until_when_or_what_to_raise() -> None:
    """Codes 5 and 7 are about what is missing: money or time."""
    stage = ViewSetup(graph(Wait(id="nap", seconds="1h", next="end")))
    stage.happen(None, ev.WaitOpened("", "nap", 1, "w", "timer", 0, NOON + 3600))
    view, out = watched(stage)
    view.end(stage.now_row(), 7)
    assert lines(out)[1:3] == ["… Sleeps until 13:00:00 +0000.", "go on   bailiwick resume hello-default"]
    body = {"question": "used up. Raise it?", "choices": ["raise", "stop"], "unit": "wall", "limit": 60}
    stage.happen(None, ev.WaitOpened("", "", 0, "b", "budget", body=body))
    view, out = watched(stage)
    view.end(stage.now_row(), 5, stage.state)
    assert lines(out)[1:3] == [
        "‖ Budget reached: used up. Raise it?",
        "answer  bailiwick runs answer hello-default raise | stop",
    ]


def test_a_run_that_nobody_walked_here_is_told_from_its_row() -> None:
    """`run` on a run that waits or is done starts nothing, and still has to say how it stands."""
    stage = ViewSetup(graph(Ask(id="ask", question="q", next="end"), End(id="bad", failed=True)))
    stage.happen(None, ev.WaitOpened("", "ask", 1, "w", "ask", body={"question": "Deploy it?", "choices": ["yes"]}))
    view, out = watched(stage)
    view.end(stage.now_row(), 3)
    assert lines(out)[1:3] == ["‖ Waiting for you: Deploy it?", "answer  bailiwick runs answer hello-default VALUE"]
    done = replace(stage.row, status="done", runs_dir="", summary={"state": "done", "steps": 2, "ended_at": NOON + 9})
    view, out = watched(stage)
    view.end(done, 0)
    assert lines(out)[1:] == ["✓ Done in 9 s, 2 steps."]


def test_notices_stand_before_everything_else() -> None:
    """What the person should know is no footnote."""
    stage = ViewSetup(graph(work("a", "end")))
    out = io.StringIO()
    PlainView(printer(out), stage.clock).begin(stage.row, ["the files differ", "warning[BW210]: old key\n  try: new"])
    assert lines(out) == [
        "hello-default  flows/hello",
        "note: the files differ",
        "warning[BW210]: old key",
        "  try: new",
    ]
