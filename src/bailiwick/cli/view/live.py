"""On a terminal: one picture that is drawn again as things happen, and a plain summary that stays when it is over."""

from __future__ import annotations

import asyncio
import atexit
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from bailiwick.cli.view.display import Displays
from bailiwick.cli.view.ending import SeenRuns, ending
from bailiwick.cli.view.plain import FIRST_OWN, PlainView
from bailiwick.cli.view.port import Leaving, RunView
from bailiwick.cli.view.tree import Run, RunTreeView
from bailiwick.cli.view.visits import ViewedVisit
from bailiwick.clock import Clock
from bailiwick.engine import events as ev
from bailiwick.engine.state import State
from bailiwick.journal.rows import RunRow
from bailiwick.runs.find import name_of
from bailiwick.runtime.record import shown_state
from bailiwick.terminal.output import NARROW, Line, Printer

if TYPE_CHECKING:
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

FIRST = 0.2
"""Seconds before the first picture: a run that is over by then costs no drawing."""
SHORTEST = 0.125
"""Seconds between two pictures, at least."""
LONGEST = 1.0
"""Seconds between two pictures, at most: times count up."""
PURE_KEPT = 50
"""Pure steps of one batch that are looked at; earlier ones are only counted."""
LOW = 24
_COLOURS = {"good": "green", "bad": "red", "wait": "yellow", "dim": "dim", "strong": "bold", "": ""}


class LiveView(RunView):
    """Draws the run that was begun; until then it writes lines. Everything happens on the loop's own thread."""

    def __init__(
        self,
        printer: Printer,
        clock: Clock,
        console: Callable[[], Console] | None = None,
        displays: Displays | None = None,
    ) -> None:
        self._printer = printer
        self._displays = displays or Displays()
        self._clock = clock
        self._console = console or self._terminal
        self._lines = PlainView(printer, clock, self._displays)
        self._runs: dict[str, Run] = {}
        self._known = SeenRuns()
        self._picture: RunTreeView | None = None
        self._live: Live | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._drawn = 0.0
        self._trouble = ""
        self._paused = 0
        self._closed = False

    def begin(self, row: RunRow, notices: Sequence[str] = ()) -> None:
        self._lines.notices(notices)
        self._lines.shown = row.id
        self._picture = RunTreeView(self._printer, name_of(row), self._runs, row.id)
        self._arm(FIRST)

    def durable(self, row: RunRow, state: State, entries: list[ev.Entry]) -> None:
        if self._picture is None:
            self._lines.durable(row, state, entries)
            return
        self._known.learn(row, state)
        run = self._runs.get(row.id)
        if run is None:
            run = self._runs[row.id] = Run()
            if self._live is None:
                self._lines.meet(row, state, entries)
            if entries and entries[0][0] > FIRST_OWN:
                run.track.seed(state)
                entries = []
                for visit in run.track.under_way():
                    self._displays.dress(visit, state)
        for visit in _fold(run, entries):
            self._displays.dress(visit, state)
        run.learn(state, shown_state(state))
        if run.over and row.parent is not None:
            self._runs.pop(row.id, None)
        self._trouble = ""
        self._soon()

    def line(self, run: str, where: str, stream: str, text: str) -> None:
        known = self._runs.get(run)
        visit = known.track.at(where) if known is not None else None
        if visit is not None:
            visit.said = text
            self._soon()

    def trouble(self, run: str, text: str) -> None:
        if self._picture is None:
            self._lines.trouble(run, text)
            return
        self._trouble = text
        self._soon()

    def refresh(self) -> None:
        """Draw the picture as it is now."""
        if self._picture is None or self._quiet():
            return
        try:
            live = self._live or self._start()
            size = live.console.size
            lines = self._picture.lines(size.width, max(3, size.height - 2), self._clock.now(), self._trouble)
            live.update(_rich(lines), refresh=True)
        except (OSError, ValueError):
            self._printer.gone = True  # the terminal is gone; the walk is not
        self._drawn = self._clock.monotonic()

    def pause(self) -> None:
        self._paused += 1
        self._stop()
        self._leave_summary()
        for run in self._runs.values():
            run.track.root.forget_finished()

    def resume(self) -> None:
        self._paused = max(0, self._paused - 1)
        self._arm(SHORTEST)

    def end(self, row: RunRow, code: int, state: State | None = None, leaving: Leaving | None = None) -> None:
        self.close()
        if state is not None:
            self._known.learn(row, state)
        self._leave_summary()
        ending(row, code, known=self._known, printer=self._printer, now=self._clock.now(), leaving=leaving).show(
            self._printer
        )

    def close(self) -> None:
        self._closed = True
        self._stop()

    def _leave_summary(self) -> None:
        """Write the tree as plain lines that stay on the screen."""
        if self._picture is None:
            return
        width, height = self._size()
        for line in self._picture.body(width, max(3, height - 6), self._clock.now()):
            self._printer.line(*line)

    def _size(self) -> tuple[int, int]:
        with suppress(OSError, ValueError, AttributeError):
            size = os.get_terminal_size(self._printer.stream.fileno())
            return size.columns or NARROW, size.lines or LOW
        return self._printer.width or NARROW, LOW

    def _terminal(self) -> Console:
        from rich.console import Console

        return Console(
            file=self._printer.stream,
            force_terminal=True,
            no_color=not self._printer.colour,
            highlight=False,
            markup=False,
            emoji=False,
            legacy_windows=False,
        )

    def _start(self) -> Live:
        from rich.live import Live

        live = Live(
            console=self._console(),
            auto_refresh=False,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
            vertical_overflow="crop",
        )
        self._live = live
        atexit.register(self.close)
        live.start()
        live.console.show_cursor(True)  # a killed process can't bring it back
        return live

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        live, self._live = self._live, None
        if live is None:
            return
        atexit.unregister(self.close)
        with suppress(OSError, ValueError):
            live.stop()

    def _quiet(self) -> bool:
        """Whether the terminal is not ours to draw on; pauses nest."""
        return self._closed or self._paused > 0 or self._printer.gone

    def _soon(self) -> None:
        """Draw when enough time has passed since the last picture."""
        if self._live is not None:
            self._arm(max(0.0, SHORTEST - (self._clock.monotonic() - self._drawn)))

    def _arm(self, delay: float) -> None:
        """See to it that a picture is drawn within `delay` seconds; without a loop nothing draws by itself."""
        if self._quiet():
            return
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return
        if self._timer is not None:
            if self._timer.when() <= loop.time() + delay:
                return
            self._timer.cancel()
        self._timer = loop.call_later(delay, self._tick)

    def _tick(self) -> None:
        self._timer = None
        self.refresh()
        self._arm(LONGEST)


def _fold(run: Run, entries: list[ev.Entry]) -> Iterator[ViewedVisit]:
    """Take events in, of a long row of pure steps only the last ones; gives the visits that they are about."""
    spare = sum(1 for _, _, event in entries if isinstance(event, ev.StepPassed)) - PURE_KEPT
    for seq, at, event in entries:
        if spare > 0 and isinstance(event, ev.StepPassed):
            spare -= 1
            run.track.skip(event)
        elif visit := run.track.apply(seq, at, event):
            yield visit


def _rich(lines: list[Line]) -> Text:
    from rich.text import Text

    text = Text(no_wrap=True, overflow="crop")
    for number, line in enumerate(lines):
        text.append("\n" if number else "")
        for part, style in line:
            text.append(part, _COLOURS[style])
    return text
