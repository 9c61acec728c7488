"""What a command line of a pattern says, and how the person who typed it is spoken to."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path

import click

from bailiwick.cli.hosting import ForegroundOptions
from bailiwick.ids import Json
from bailiwick.pipelines.model import Pattern, PreflightLine
from bailiwick.terminal.output import Printer, clean


@dataclass(frozen=True, slots=True)
class PipelineCommand:
    """A command line of a pattern, read. `quiet`: standard output belongs to a program, people read standard error."""

    pattern: Pattern
    issue: str = ""
    base: str | None = None
    attempts: int | None = None
    allow: tuple[str, ...] = ()
    known_red: bool = False
    fresh: bool = False
    flags: dict[str, Json] = field(default_factory=dict)
    simulate: Path | bool | None = None
    options: ForegroundOptions = field(default_factory=ForegroundOptions)
    quiet: bool = False

    def say(self, text: str) -> None:
        """Tell the person something."""
        click.echo(clean(text, lines=True), err=self.quiet)

    def tell(self, line: PreflightLine) -> None:
        """Tell one of the first lines."""
        Printer.on(sys.stderr if self.quiet else sys.stdout).line(f"{line.label:<8}  {line.text}", indent=10)
