"""`bailiwick runs`: one line per command; each is imported only when it is called."""

from __future__ import annotations

import click

from bailiwick.cli.root import LazyGroup, load
from bailiwick.cli.table import CommandEntry

COMMANDS: dict[str, CommandEntry] = {
    "list": CommandEntry("bailiwick.cli.commands.show", "list_", "List runs, newest first."),
    "show": CommandEntry("bailiwick.cli.commands.show", "show", "Facts, open waits and visits of a run."),
    "tree": CommandEntry(
        "bailiwick.cli.commands.show", "tree", "A run with its branches, items and the runs it called."
    ),
    "logs": CommandEntry("bailiwick.cli.commands.query", "logs", "What a run did, line by line."),
    "wait": CommandEntry("bailiwick.cli.commands.query", "wait", "Wait until a run is over or parks."),
    "stop": CommandEntry("bailiwick.cli.commands.control", "stop", "Stop a run at the next node, or now."),
    "resume": CommandEntry("bailiwick.cli.commands.run", "resume", "Go on with a run that stopped or failed."),
    "answer": CommandEntry("bailiwick.cli.commands.answer", "answer", "Answer a question, or raise a budget."),
    "rewind": CommandEntry("bailiwick.cli.commands.control", "rewind", "Go back to before a visit of a node."),
    "fork": CommandEntry("bailiwick.cli.commands.control", "fork", "A new run that shares the journal up to a visit."),
    "reload": CommandEntry("bailiwick.cli.commands.control", "reload", "Adopt the workflow's files as they are now."),
    "reask": CommandEntry("bailiwick.cli.commands.reask", "reask", "Ask one recorded turn once more, elsewhere."),
    "export": CommandEntry("bailiwick.cli.commands.keep", "export_", "Write the evidence of a run into an archive."),
    "rebuild": CommandEntry("bailiwick.cli.commands.keep", "rebuild", "Make run directories again from the journal."),
    "prune": CommandEntry("bailiwick.cli.commands.keep", "prune_", "Remove ended runs that are old enough."),
}

SECTIONS: dict[str, list[str]] = {
    "Look": ["list", "show", "tree", "logs", "wait"],
    "Steer": ["stop", "resume", "answer", "rewind", "fork", "reload", "reask"],
    "Keep": ["export", "rebuild", "prune"],
}


@click.group(cls=LazyGroup, table=COMMANDS, sections=SECTIONS, invoke_without_command=True)
@click.pass_context
def runs(ctx: click.Context) -> None:
    """List, show, steer and keep runs. Without a command: the list."""
    if ctx.invoked_subcommand is None:
        ctx.invoke(load(COMMANDS["list"]))
