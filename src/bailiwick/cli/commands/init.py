"""`init`: look at a repository, prove its gate on the base, show what would be written, ask."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bailiwick.cli.commands.gate import EXITS, work_tree_of
from bailiwick.config.service import Config, load_config
from bailiwick.errors import UsageError
from bailiwick.gate.spec import FILE
from bailiwick.terminal.output import Printer

if TYPE_CHECKING:
    from bailiwick.cli.gate_setup.plan_agent import Hire
    from bailiwick.cli.gate_setup.proving import Proven, Wanted
    from bailiwick.service.setup import FileEdit


@click.command()
@click.option("--mcp", "with_mcp", is_flag=True, help="Only the entry in .mcp.json, for editors and agent CLIs.")
@click.option("--gate", "with_gate", is_flag=True, help="The gate too, together with --mcp.")
@click.option("--no-run", is_flag=True, help="Don't try the gate.")
@click.option("--known-red", is_flag=True, help="Write the gate although the same tests are red twice.")
@click.option("--agent", is_flag=True, help="Where no plan is green: let an agent propose one, green twice.")
@click.option("--backend", metavar="NAME", help="Which agent, with --agent.")
@click.option("--model", metavar="NAME", help="Which model, with --agent.")
@click.option("--budget-usd", type=click.FloatRange(min=0), metavar="N", help="What each question may cost; 2 at most.")
@click.option(
    "--simulate",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="SCRIPT",
    help="A scripted agent, with --agent.",
)
@click.option("--yes", is_flag=True, help="Write without asking.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def init(**given: Any) -> int:
    """Set up this repository: plan its gate, prove it green on the base, show what would be written, ask.

    \b
    The plan comes from the project's own files: lock files, extras and groups for tests, requirements files, tox,
    nox, hatch and CI. Exits with 0 when it is written, 1 when it is red or not wanted, 8 when it could not be run.
    Examples:
      bailiwick init
      bailiwick init --yes
      bailiwick init --mcp
    """
    config = load_config(Path.cwd(), {})
    root = work_tree_of(config)
    quiet = bool(given["as_json"])
    changes: list[FileEdit] = []
    proven: Proven | None = None
    if given["with_gate"] or not given["with_mcp"]:
        proven, gate_changes = _gate(config, root, _wanted(given))
        changes += gate_changes
    if given["with_mcp"]:
        changes.append(_mcp(root, quiet=quiet))
    needed = [change for change in changes if change.needed]
    code = _unproven(proven) or _apply(root, needed, yes=bool(given["yes"]), quiet=quiet)
    if quiet:
        written = [str(change.path.relative_to(root)) for change in needed] if code == 0 else []
        told = {**(proven.to_json() if proven is not None else {}), "written": written}
        click.echo(json.dumps(told, indent=2))
    return code


def _mcp(root: Path, *, quiet: bool) -> FileEdit:
    """Our entry for clients; where it is a path of this machine, that is said."""
    from bailiwick.service.setup import NAME, mcp_change, own_entry

    entry = own_entry()
    change = mcp_change(root, entry)
    if entry["command"] != NAME and change.needed and not quiet:
        click.echo("`bailiwick` is not on PATH for programs started elsewhere, so its full path is written.")
        click.echo(
            "For a file that others share:  pipx install 'bailiwick[service]'   and again:  bailiwick init --mcp"
        )
    return change


def _wanted(given: dict[str, Any]) -> Wanted:
    from bailiwick.cli.gate_setup.proving import Wanted

    return Wanted(run=not given["no_run"], known_red=given["known_red"], quiet=given["as_json"], hire=_hire(given))


def _hire(given: dict[str, Any]) -> Hire | None:
    """The agent that may be asked; None where none is."""
    from bailiwick.cli.gate_setup.plan_agent import Hire

    if not given["agent"]:
        if given["backend"] or given["model"] or given["simulate"] or given["budget_usd"] is not None:
            raise UsageError("--backend, --model, --budget-usd and --simulate go with --agent", hint="add --agent")
        return None
    flags = {name: str(given[name]) for name in ("backend", "model") if given[name]}
    if given["budget_usd"] is not None:
        return Hire({**flags, "budget.run.usd": given["budget_usd"]}, _resolved(given["simulate"]))
    return Hire(dict(flags), _resolved(given["simulate"]))


def _resolved(path: Path | None) -> Path | None:
    return path.resolve() if path is not None else None


def _unproven(proven: Proven | None) -> int:
    """The exit code for a gate that was tried and is not worth writing; 0 for all else."""
    if proven is None or proven.writes or proven.report is None or proven.report.verdict == "green":
        return 0
    return EXITS[proven.report.verdict]


def _apply(root: Path, changes: list[FileEdit], *, yes: bool, quiet: bool) -> int:
    if not changes:
        if not quiet:
            click.echo("Nothing to do: it is set up already.")
        return 0
    for change in changes if not quiet else ():
        for line in change.diff(str(change.path.relative_to(root))):
            click.echo(line)
    if not yes and not _consents(len(changes)):
        click.echo("Nothing was written.  To write it:  bailiwick init … --yes", err=True)
        return 1
    for change in changes:
        change.write()
        if not quiet:
            click.echo(f"wrote {change.path.relative_to(root)}")
    return 0


def _consents(files: int) -> bool:
    if not sys.stdin.isatty():
        return False
    return click.confirm(f"Write {'this file' if files == 1 else f'these {files} files'}?", default=False)


def _gate(config: Config, root: Path, wanted: Wanted) -> tuple[Proven | None, list[FileEdit]]:
    """What the gate's file would be; it is proved first, on the base."""
    from bailiwick.cli.gate_setup.proving import prove_gate
    from bailiwick.service.setup import gate_change

    def say(line: str) -> None:
        if not wanted.quiet:
            Printer.on(sys.stdout).text(line)

    if (root / FILE).is_file():
        say(f"{FILE} is there; try it with:  bailiwick gate")
        return None, []
    proven = asyncio.run(prove_gate(config, root, wanted, say))
    return proven, [gate_change(root, proven.spec, FILE, proven.remarks)] if proven.writes else []
