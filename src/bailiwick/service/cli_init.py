"""`init`: look at a repository, prove its gate on the base, show what would be written, ask."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bailiwick.config.service import Config, load_config
from bailiwick.errors import NotReady
from bailiwick.gate.cli import EXITS, NO_REPOSITORY
from bailiwick.gate.spec import FILE

if TYPE_CHECKING:
    from bailiwick.service.proving import Proven, Wanted
    from bailiwick.service.setup import Change


@click.command()
@click.option("--mcp", "with_mcp", is_flag=True, help="Only the entry in .mcp.json, for editors and agent CLIs.")
@click.option("--gate", "with_gate", is_flag=True, help="The gate too, together with --mcp.")
@click.option("--no-run", is_flag=True, help="Don't try the gate.")
@click.option("--known-red", is_flag=True, help="Write the gate although the same tests are red twice.")
@click.option("--yes", is_flag=True, help="Write without asking.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def init(*, with_mcp: bool, with_gate: bool, no_run: bool, known_red: bool, yes: bool, as_json: bool) -> int:
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
    if config.repository is None or not config.repository.git:
        hint = "run it in a repository, or `git init`"
        raise NotReady("this directory is in no git work tree", hint=hint, code=NO_REPOSITORY)
    root = config.repository.root
    changes: list[Change] = []
    proven: Proven | None = None
    if with_gate or not with_mcp:
        proven, gate_changes = _gate(config, root, _wanted(run=not no_run, known_red=known_red, quiet=as_json))
        changes += gate_changes
    if with_mcp:
        from bailiwick.service.setup import mcp_change

        changes.append(mcp_change(root))
    needed = [change for change in changes if change.needed]
    code = _unproven(proven) or _apply(root, needed, yes=yes, quiet=as_json)
    if as_json:
        written = [str(change.path.relative_to(root)) for change in needed] if code == 0 else []
        told = {**(proven.to_json() if proven is not None else {}), "written": written}
        click.echo(json.dumps(told, indent=2))
    return code


def _wanted(*, run: bool, known_red: bool, quiet: bool) -> Wanted:
    from bailiwick.service.proving import Wanted

    return Wanted(run=run, known_red=known_red, quiet=quiet)


def _unproven(proven: Proven | None) -> int:
    """The exit code for a gate that was tried and is not worth writing; 0 for all else."""
    if proven is None or proven.writes or proven.report is None or proven.report.verdict == "green":
        return 0
    return EXITS[proven.report.verdict]


def _apply(root: Path, changes: list[Change], *, yes: bool, quiet: bool) -> int:
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


def _gate(config: Config, root: Path, wanted: Wanted) -> tuple[Proven | None, list[Change]]:
    """What the gate's file would be; it is proved first, on the base."""
    from bailiwick.service.proving import prove_gate
    from bailiwick.service.setup import gate_change

    def say(line: str) -> None:
        if not wanted.quiet:
            click.echo(line)

    if (root / FILE).is_file():
        say(f"{FILE} is there; try it with:  bailiwick gate")
        return None, []
    proven = asyncio.run(prove_gate(config, root, wanted, say))
    return proven, [gate_change(root, proven.spec, FILE, proven.remarks)] if proven.writes else []
