"""Which view a command gets: by its flags, and by whether a person looks at a terminal that can be drawn on."""

from __future__ import annotations

import sys

from bailiwick.cli.view.port import RunView
from bailiwick.clock import SystemClock
from bailiwick.config.variables import Environment
from bailiwick.errors import UsageError
from bailiwick.terminal import output
from bailiwick.terminal.output import Printer


def choose_view(
    *,
    json: bool = False,
    events: bool = False,
    verbose: bool = False,
    is_terminal: bool | None = None,
) -> RunView:
    """The view for these flags; `is_terminal` None looks at standard output. Both flags at once are a `UsageError`."""
    if json and events:
        raise UsageError("--json and --events exclude each other", hint="the last line of --events has the exit code")
    printer, clock = Printer.for_stdout(json=json), SystemClock()
    printer.forgive = True
    if json:
        from bailiwick.cli.view.document import DocumentView

        return DocumentView(printer, clock)
    if events:
        from bailiwick.cli.view.events import EventsView

        return EventsView(printer)
    from bailiwick.cli.view.display import Displays

    displays = Displays(verbose=verbose)
    if _drawable() if is_terminal is None else is_terminal:
        from bailiwick.cli.view.live import LiveView

        return LiveView(printer, clock, displays=displays)
    from bailiwick.cli.view.plain import PlainView

    return PlainView(printer, clock, displays)


def _drawable() -> bool:
    return output.is_terminal(sys.stdout) and Environment().text("TERM") not in (None, "dumb", "unknown")
