"""`init`: look at a repository, try its gate, show what would be written, ask."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bailiwick.config.service import Config, load_config
from bailiwick.errors import NotReady
from bailiwick.gate.cli import NO_REPOSITORY, describe, introduce
from bailiwick.gate.spec import FILE

if TYPE_CHECKING:
    from bailiwick.service.setup import Change


@click.command()
@click.option("--mcp", "with_mcp", is_flag=True, help="Only the entry in .mcp.json, for editors and agent CLIs.")
@click.option("--gate", "with_gate", is_flag=True, help="The gate too, together with --mcp.")
@click.option("--no-run", is_flag=True, help="Don't try the gate.")
@click.option("--yes", is_flag=True, help="Write without asking.")
def init(*, with_mcp: bool, with_gate: bool, no_run: bool, yes: bool) -> int:
    """Set up this repository: detect its gate, run it once, show what would be written, ask.

    \b
    Examples:
      bailiwick init
      bailiwick init --mcp
    """
    config = load_config(Path.cwd(), {})
    if config.repository is None or not config.repository.git:
        hint = "run it in a repository, or `git init`"
        raise NotReady("this directory is in no git work tree", hint=hint, code=NO_REPOSITORY)
    root = config.repository.root
    changes: list[Change] = []
    if with_gate or not with_mcp:
        changes += asyncio.run(_gate(config, root, run=not no_run))
    if with_mcp:
        from bailiwick.service.setup import mcp_change

        changes.append(mcp_change(root))
    return _apply(root, [change for change in changes if change.needed], yes=yes)


def _apply(root: Path, changes: list[Change], *, yes: bool) -> int:
    if not changes:
        click.echo("Nothing to do: it is set up already.")
        return 0
    for change in changes:
        for line in change.diff(str(change.path.relative_to(root))):
            click.echo(line)
    if not yes and not _consents(len(changes)):
        click.echo("Nothing was written.  To write it:  bailiwick init … --yes", err=True)
        return 1
    for change in changes:
        change.write()
        click.echo(f"wrote {change.path.relative_to(root)}")
    return 0


def _consents(files: int) -> bool:
    if not sys.stdin.isatty():
        return False
    return click.confirm(f"Write {'this file' if files == 1 else f'these {files} files'}?", default=False)


async def _gate(config: Config, root: Path, *, run: bool) -> list[Change]:
    """What the gate's file would be; it is tried first, on the work tree as it is."""
    from bailiwick.service.setup import gate_change

    if (root / FILE).is_file():
        click.echo(f"{FILE} is there; try it with:  bailiwick gate")
        return []
    from bailiwick.clock import SystemClock
    from bailiwick.fence.service import open_fence
    from bailiwick.fence.vault import Vault
    from bailiwick.gate.opening import gate_for, places_of
    from bailiwick.gate.service import Ask, run_gate

    fence = await open_fence(config, attended=sys.stdin.isatty())
    vault = await Vault.open(config.paths.make_state(), root)
    base = await vault.resolve(str(config.get("base") or "HEAD"))
    spec = await gate_for(config, vault, base, fence)
    for line in introduce(spec, base, fence.sandbox.name):
        click.echo(line)
    if run:
        taken = await vault.survey(root)
        ask = Ask(base, taken.tree, (), ())
        places, cancel, clock = places_of(config), asyncio.Event(), SystemClock()
        report = await run_gate(ask, spec, vault, fence, places, cancel=cancel, show=lambda _line: None, clock=clock)
        for line in describe(report):
            click.echo(line)
    return [gate_change(root, spec, FILE)] if spec.origin == "detected" else []
