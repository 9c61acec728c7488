"""The live view: one picture within the terminal's bounds, and a terminal that is as it was when it is over."""

from __future__ import annotations

import asyncio
import io

from rich.console import Console

from bailiwick.cli.view.live import LiveView
from bailiwick.engine import events as ev
from bailiwick.ids import Json
from tests.unit.cli.view_stage import (
    NOON,
    Ask,
    Call,
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


class Screen:
    """A terminal in memory: what the live picture drew, and the plain lines that stay."""

    def __init__(self, stage: ViewSetup, width: int = 80, height: int = 24, **changes: Json) -> None:
        self.drawn = io.StringIO()
        self.stays = io.StringIO()
        self.made = 0
        self._size = (width, height)
        self.view = LiveView(printer(self.stays, width=width, **changes), stage.clock, self._console)

    def _console(self) -> Console:
        self.made += 1
        width, height = self._size
        return Console(file=self.drawn, force_terminal=True, width=width, height=height, color_system=None)

    def picture(self) -> list[str]:
        """The picture that is on the screen after a refresh, without control sequences."""
        self.view.refresh()
        last = self.drawn.getvalue().rpartition("\x1b[2K")[2].rpartition("\x1b[?25h")[2]
        return [line.rstrip() for line in last.splitlines()]


def fan_of(count: int) -> ViewSetup:
    """A map over `count` items."""
    flow = graph(Map(id="fan", over="items", body="step", join="end", max=count), work("step", "end"))
    return ViewSetup(flow, context={"items": list(range(count))})


def test_a_picture_has_the_run_its_steps_and_what_runs_now() -> None:
    """One look has to tell what was done, what happens, and for how long."""
    stage = ViewSetup(graph(work("build", "test"), work("test", "end")))
    screen = Screen(stage)
    screen.view.begin(stage.row)
    stage.own(screen.view)
    stage.step(screen.view, "build", "test", 3.2)
    stage.happen(screen.view, stage.started("test"))
    screen.view.line("u1", "test", "stdout", "1 of 9 \x1b[31mpassed")
    stage.clock.advance(5)
    assert screen.picture() == [
        "hello-default  running  8 s, 1 step",
        "✓ build          3.2 s",
        "▸ test             5 s  1 of 9 passed",
    ]


def test_times_count_up_without_any_event() -> None:
    """A picture that stands still looks hung."""
    stage = ViewSetup(graph(work("build", "end")))
    screen = Screen(stage)
    screen.view.begin(stage.row)
    stage.happen(screen.view, stage.started("build"))
    stage.clock.advance(61)
    assert screen.picture() == ["hello-default  running  1m1s, 0 steps", "▸ build           1m1s"]


def test_time_stands_still_while_a_person_is_waited_for() -> None:
    """The time a run took is not the time somebody was at lunch."""
    stage = ViewSetup(graph(Ask(id="ask", question="q", next="end")))
    screen = Screen(stage)
    screen.view.begin(stage.row)
    body = {"question": "Deploy\x1b[2J it?", "choices": []}
    stage.happen(screen.view, ev.WaitOpened("", "ask", 1, "w", "ask", body=body), after=2)
    stage.clock.advance(3600)
    assert screen.picture() == [
        "hello-default  waiting  2 s, 0 steps, 1 waiting for you",
        "‖ ask               1h  waiting for you: Deploy it?",
    ]


def test_a_long_run_fits_the_terminal_and_counts_what_is_left_out() -> None:
    """A picture higher than the terminal can't be drawn over and fills the scroll-back with copies."""
    stage = ViewSetup(graph(*[work(f"s{n}", f"s{n + 1}") for n in range(40)], work("s40", "end")))
    screen = Screen(stage, height=10)
    screen.view.begin(stage.row)
    for n in range(40):
        stage.step(screen.view, f"s{n}", f"s{n + 1}")
    stage.happen(screen.view, stage.started("s40"))
    picture = screen.picture()
    assert len(picture) == 8
    assert picture[:3] == ["hello-default  running  40 s, 40 steps", "… 35 earlier steps", "✓ s35              1 s"]
    assert picture[-1] == "▸ s40              0 s"


def test_a_terminal_of_five_lines_still_shows_what_runs() -> None:
    """The step that runs is what must never be left out."""
    stage = ViewSetup(graph(work("a", "b"), work("b", "c"), work("c", "end")))
    screen = Screen(stage, height=5)
    screen.view.begin(stage.row)
    stage.step(screen.view, "a", "b")
    stage.step(screen.view, "b", "c")
    stage.happen(screen.view, stage.started("c"))
    assert screen.picture() == ["hello-default  running  2 s, 2 steps", "… 2 earlier steps", "▸ c                0 s"]


def test_no_line_is_wider_than_the_terminal() -> None:
    """A line that wraps breaks the count of lines to draw over."""
    stage = ViewSetup(graph(work("build", "end")))
    screen = Screen(stage, width=30)
    screen.view.begin(stage.row)
    stage.happen(screen.view, stage.started("build"))
    screen.view.line("u1", "build", "stderr", "世界" * 40)
    assert screen.picture() == ["hello-default  running  0 s,…", "▸ build            0 s  世界…"]


def test_a_construct_shows_failed_and_running_members_and_counts_the_rest() -> None:
    """A hundred items are a number; the ones that failed or run are lines, a dozen at most."""
    stage = fan_of(100)
    screen = Screen(stage)
    screen.view.begin(stage.row)
    stage.happen(screen.view, ev.ScopesForked("", "fan", 1, [str(n) for n in range(100)]))
    for n in range(30):
        stage.happen(screen.view, ev.ScopeStarted(f"fan[{n}]"), stage.started("step", f"fan[{n}]"))
    for n in range(10):
        stage.happen(screen.view, stage.finished("step", 1, f"fan[{n}]"), ev.StepDone(f"fan[{n}]", "step", 1, "end"))
        stage.happen(screen.view, ev.ScopeEnded(f"fan[{n}]", "done"))
    failure = {"kind": "exit", "message": "exit 3"}
    stage.happen(
        screen.view, stage.finished("step", 1, "fan[20]", "exit 3"), ev.StepFailed("fan[20]", "step", 1, failure)
    )
    stage.happen(screen.view, ev.ScopeEnded("fan[20]", "failed", failure))
    picture = screen.picture()
    assert picture[1:4] == [
        "▸ fan              0 s  11 of 100 ended, 1 failed",
        "  ✗ fan[20]/step  exit 3",
        "  ▸ fan[10]/step     0 s",
    ]
    assert picture[-1] == "  … 9 more, 10 ended, 70 not begun"
    assert len(picture) == 2 + 12


def test_after_the_join_only_failed_members_stay() -> None:
    """What went well needs no room."""
    stage = fan_of(2)
    screen = Screen(stage)
    screen.view.begin(stage.row)
    stage.happen(screen.view, ev.ScopesForked("", "fan", 1, ["0", "1"]), ev.ScopeStarted("fan[0]"))
    stage.happen(screen.view, ev.ScopeEnded("fan[0]", "failed", {"kind": "fail", "message": "no good"}))
    stage.happen(screen.view, ev.ScopeStarted("fan[1]"), ev.ScopeEnded("fan[1]", "done"))
    stage.happen(screen.view, ev.StepDone("", "fan", 1, "end"), after=4)
    assert screen.picture()[1:] == ["✓ fan              4 s  2 members, 1 failed", "  ✗ fan[0]        no good"]


def test_the_steps_of_a_called_run_stand_below_the_call() -> None:
    """A call that takes an hour is not one step to a person who waits."""
    stage = ViewSetup(graph(Call(id="deploy", workflow="w", next="end")))
    child = ViewSetup(graph(work("copy", "end")), row=row_of("c1", "k", parent="u1"))
    screen = Screen(stage)
    screen.view.begin(stage.row)
    stage.happen(screen.view, ev.ChildStarted("", "deploy", 1, "k", "c1"))
    child.own(screen.view)
    child.happen(screen.view, child.started("copy"))
    assert screen.picture()[1:] == ["▸ deploy           0 s", "  ▸ copy             0 s"]
    child.happen(
        screen.view, child.finished("copy", 1), ev.StepDone("", "copy", 1, "end"), ev.RunFinished("done", "end")
    )
    assert screen.picture()[1:] == ["▸ deploy           0 s"]


def test_a_run_that_goes_on_shows_what_is_under_way_and_counts_what_was_done() -> None:
    """The picture of a new process has to be true without the old one's memory."""
    stage = fan_of(3)
    stage.happen(None, ev.ScopesForked("", "fan", 1, ["0", "1", "2"]), ev.ScopeStarted("fan[0]"))
    stage.happen(None, ev.ScopeEnded("fan[0]", "done"), ev.ScopeStarted("fan[1]"), stage.started("step", "fan[1]"))
    screen = Screen(stage)
    screen.view.begin(stage.row)
    lost = ev.EffectLost("fan[1]", stage.key("step", "fan[1]"), "crash")
    stage.happen(screen.view, ev.OwnerChanged(2, "us"), lost, stage.started("step", "fan[1]", entry=2))
    assert lines(screen.stays) == ["12:00:00  · resumed: 0 steps kept, 1 re-entered"]
    assert screen.picture()[1:] == [
        "▸ fan                   1 of 3 ended",
        "  ▸ fan[1]/step      0 s",
        "  … 1 ended, 1 not begun",
    ]


def test_a_loop_of_pure_steps_costs_a_few_lines() -> None:
    """A batch has five hundred of them, twenty batches a second."""
    stage = ViewSetup(graph(Set(id="turn", values={}, next="turn")))
    screen = Screen(stage, height=6)
    screen.view.begin(stage.row)
    stage.happen(screen.view, *[ev.StepPassed("", "turn", n, "turn", {"n": n}) for n in range(1, 501)])
    assert screen.picture()[1:] == [
        "… 498 earlier steps",
        "· turn@499              sets n",
        "· turn@500              sets n",
    ]


def test_trouble_is_shown_until_something_is_durable_again() -> None:
    """A full disk stops the walk; the picture has to say so while it lasts."""
    stage = ViewSetup(graph(work("a", "end")))
    screen = Screen(stage)
    screen.view.begin(stage.row)
    stage.happen(screen.view, stage.started("a"))
    screen.view.trouble("u1", "the disk is full")
    assert screen.picture()[-1] == "! the disk is full"
    stage.happen(screen.view, stage.finished("a", 1), ev.StepDone("", "a", 1, "end"))
    assert screen.picture()[-1] == "✓ a                1 s"


def test_the_end_leaves_a_summary_and_a_sane_cursor() -> None:
    """What happened must still be there after the command, and the prompt where it belongs."""
    stage = ViewSetup(graph(work("a", "end")))
    screen = Screen(stage)
    screen.view.begin(stage.row)
    stage.happen(screen.view, stage.started("a"))
    screen.picture()
    stage.happen(
        screen.view, stage.finished("a", 2), ev.StepDone("", "a", 1, "end"), ev.RunFinished("done", "end"), after=2
    )
    screen.view.end(stage.now_row(), 0)
    assert lines(screen.stays) == ["✓ a                2 s", "", "✓ Done in 2 s, 1 step.", "files   runs/hello-default"]
    drawn = screen.drawn.getvalue()
    assert drawn.rfind("\x1b[?25h") > drawn.rfind("\x1b[?25l")
    assert drawn.endswith("\x1b[1A\x1b[2K")


def test_the_cursor_is_never_hidden_between_two_pictures() -> None:
    """A process that is killed can't bring it back."""
    stage = ViewSetup(graph(work("a", "end")))
    screen = Screen(stage)
    screen.view.begin(stage.row)
    stage.happen(screen.view, stage.started("a"))
    screen.picture()
    drawn = screen.drawn.getvalue()
    assert "\x1b[?25h" in drawn
    assert drawn.rfind("\x1b[?25h") > drawn.rfind("\x1b[?25l")


def test_closing_twice_or_before_anything_was_drawn_is_fine() -> None:
    """A command closes its view on every way out."""
    stage = ViewSetup(graph(work("a", "end")))
    screen = Screen(stage)
    screen.view.close()
    screen.view.begin(stage.row)
    screen.view.close()
    screen.view.close()
    screen.view.refresh()
    assert (screen.made, screen.drawn.getvalue()) == (0, "")


def test_a_prompt_gets_a_quiet_terminal_and_the_steps_so_far() -> None:
    """A picture that redraws over what a person types makes answering impossible."""
    stage = ViewSetup(graph(work("a", "ask"), Ask(id="ask", question="q", next="b"), work("b", "end")))
    screen = Screen(stage)
    screen.view.begin(stage.row)
    stage.step(screen.view, "a", "ask")
    stage.happen(screen.view, ev.WaitOpened("", "ask", 1, "w", "ask", body={"question": "Go?", "choices": []}))
    screen.picture()
    screen.view.pause()
    before = screen.drawn.getvalue()
    screen.view.refresh()
    assert screen.drawn.getvalue() == before
    assert lines(screen.stays) == ["✓ a                1 s", "‖ ask              0 s  waiting for you: Go?"]
    screen.view.resume()
    stage.happen(screen.view, ev.WaitClosed("", "w", "answered", "yes"), ev.StepDone("", "ask", 1, "b"))
    stage.happen(screen.view, stage.started("b"))
    assert screen.picture()[1:] == [
        "… 1 earlier step",
        '✓ ask              0 s  answered "yes"',
        "▸ b                0 s",
    ]


def test_two_prompts_at_once_both_have_to_end_before_the_picture_returns() -> None:
    """Ctrl-C offers a choice while a question may be open; the first answer must not draw over the second prompt."""
    stage = ViewSetup(graph(work("a", "end")))
    screen = Screen(stage)
    screen.view.begin(stage.row)
    stage.happen(screen.view, stage.started("a"))
    screen.view.pause()
    screen.view.pause()
    screen.view.resume()
    screen.view.refresh()
    assert screen.drawn.getvalue() == ""
    screen.view.resume()
    assert screen.picture()[1:] == ["▸ a                0 s"]


def test_until_a_run_is_begun_there_are_lines() -> None:
    """A worker has no run of its own to draw."""
    stage = ViewSetup(graph(work("a", "end")))
    screen = Screen(stage)
    stage.own(screen.view)
    stage.step(screen.view, "a", "end", 2)
    screen.view.trouble("u1", "slow disk")
    assert lines(screen.stays) == ["12:00:02  ✓ hello-default › a  2 s", "12:00:02  ! slow disk"]


def test_a_run_that_is_over_at_once_draws_nothing() -> None:
    """Drawing costs an import of a tenth of a second; a hello workflow must not pay it."""
    stage = ViewSetup(graph(work("a", "end")))
    screen = Screen(stage)

    async def walk() -> None:
        screen.view.begin(stage.row)
        stage.step(screen.view, "a", "end")
        stage.happen(screen.view, ev.RunFinished("done", "end"))
        await asyncio.sleep(0)
        screen.view.end(stage.now_row(), 0)

    asyncio.run(walk())
    assert screen.made == 0
    assert "✓ Done in 1 s, 1 step." in lines(screen.stays)


def test_events_between_two_pictures_are_drawn_together() -> None:
    """Eight pictures a second are enough for eyes and cheap for the walk."""
    stage = ViewSetup(graph(work("a", "end")))
    screen = Screen(stage)

    async def walk() -> int:
        screen.view.begin(stage.row)
        stage.happen(screen.view, stage.started("a"))
        screen.view.refresh()
        size = len(screen.drawn.getvalue())
        for n in range(100):
            screen.view.line("u1", "a", "stdout", f"line {n}")
            await asyncio.sleep(0)
        screen.view.close()
        return size

    size = asyncio.run(walk())
    assert "line 98" not in screen.drawn.getvalue()[size:]


def test_a_terminal_that_is_gone_does_not_disturb_the_walk() -> None:
    """The terminal was closed; the run goes on."""
    stage = ViewSetup(graph(work("a", "nap"), Wait(id="nap", next="end")))
    screen = Screen(stage)
    screen.view.begin(stage.row)
    stage.happen(screen.view, stage.started("a"))
    screen.picture()
    screen.drawn.close()
    screen.view.refresh()
    stage.happen(screen.view, stage.finished("a", 1), ev.StepDone("", "a", 1, "nap"))
    stage.happen(screen.view, ev.WaitOpened("", "nap", 1, "w", "timer", 0, NOON + 60))
    screen.view.end(stage.now_row(), 7)
    assert screen.view._printer.gone
