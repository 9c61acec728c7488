"""`bailiwick runs`: one line per command; each is imported only when it is called."""

from __future__ import annotations

import click

from bailiwick.cli.root import LazyGroup, load
from bailiwick.cli.table import CommandEntry

COMMANDS: dict[str, CommandEntry] = {
    "list": CommandEntry("bailiwick.runs.cli_show", "list_", "List runs, newest first."),
    "show": CommandEntry("bailiwick.runs.cli_show", "show", "Facts, open waits and visits of a run."),
    "tree": CommandEntry("bailiwick.runs.cli_show", "tree", "A run with its branches, items and the runs it called."),
    "logs": CommandEntry("bailiwick.runs.cli_query", "logs", "What a run did, line by line."),
    "wait": CommandEntry("bailiwick.runs.cli_query", "wait", "Wait until a run is over or parks."),
    "stop": CommandEntry("bailiwick.runs.cli_control", "stop", "Stop a run at the next node, or now."),
    "resume": CommandEntry("bailiwick.runs.cli_run", "resume", "Go on with a run that stopped or failed."),
    "answer": CommandEntry("bailiwick.runs.cli_answer", "answer", "Answer a question, or raise a budget."),
    "rewind": CommandEntry("bailiwick.runs.cli_control", "rewind", "Go back to before a visit of a node."),
    "fork": CommandEntry("bailiwick.runs.cli_control", "fork", "A new run that shares the journal up to a visit."),
    "reload": CommandEntry("bailiwick.runs.cli_control", "reload", "Adopt the workflow's files as they are now."),
    "reask": CommandEntry("bailiwick.runs.cli_reask", "reask", "Ask one recorded turn once more, elsewhere."),
    "export": CommandEntry("bailiwick.runs.cli_keep", "export_", "Write the evidence of a run into an archive."),
    "rebuild": CommandEntry("bailiwick.runs.cli_keep", "rebuild", "Make run directories anew from the journal."),
    "prune": CommandEntry("bailiwick.runs.cli_keep", "prune_", "Remove ended runs that are old enough."),
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
