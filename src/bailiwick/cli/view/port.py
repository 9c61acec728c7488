"""The port of views: what a command tells them, and what they hear of a walk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bailiwick.engine.events import Entry
from bailiwick.engine.state import State
from bailiwick.journal.rows import RunRow
from bailiwick.runs.find import name_of

if TYPE_CHECKING:
    from bailiwick.runtime.assemble import Watch


@dataclass(frozen=True, slots=True)
class Leaving:
    """How a command leaves a run, besides its exit code.

    `already`: the run was over before the command looked at it. `worker`: the process that goes on with it in the
    background. `again`: the command that starts it over, if that is not `run`. `gone`: everything is removed when the
    command ends, so that no further command can work on it. `usd`: what the tree has spent, where that is known.
    `results`: what the workflow returns is shown to people.
    """

    already: bool = False
    worker: int | None = None
    again: str = ""
    usd: float | None = None
    gone: bool = False
    results: bool = True


class RunView:
    """Shows a walk; this one shows nothing. A reader that goes away silences a view; it never disturbs the walk."""

    def watch(self) -> Watch:
        """What the walk has to call."""
        from bailiwick.runtime.assemble import Watch

        return Watch(self.durable, self.line, self.trouble)

    def durable(self, row: RunRow, state: State, entries: list[Entry]) -> None:
        """Events of a run became durable; `state` is the one after them."""

    def line(self, run: str, where: str, stream: str, text: str) -> None:
        """A running process said something."""

    def trouble(self, run: str, text: str) -> None:
        """Something is wrong that the walk waits out."""

    def begin(self, row: RunRow, notices: Sequence[str] = ()) -> None:
        """This run is the one that is shown; whatever else is heard of belongs to its tree."""

    def end(self, row: RunRow, code: int, state: State | None = None, leaving: Leaving | None = None) -> None:
        """The command leaves with this code; `state` tells what a run came to that was not walked here."""

    def close(self) -> None:
        """Leave the terminal as it was; any number of times."""

    def pause(self) -> None:
        """Somebody else is about to write to the terminal."""

    def resume(self) -> None:
        """The terminal is the view's again."""


def run_dir(row: RunRow) -> str:
    """Where the run's files are; empty where only the state directory knows."""
    return str(Path(row.runs_dir) / name_of(row)) if row.runs_dir else ""


def told(row: RunRow, name: str) -> object:
    """A fact of a run's summary; None where it has none."""
    return row.summary.get(name) if isinstance(row.summary, dict) else None
