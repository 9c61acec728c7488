"""`bailiwick gate`: the gate for the work tree as a person sees it."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bailiwick.cli.gate_report import UNBORN, describe, introduce, shown_progress
from bailiwick.config.service import Config, load_config
from bailiwick.errors import NotReady
from bailiwick.gate.model import GateReport, Verdict
from bailiwick.gate.spec import GateSpec
from bailiwick.processes.proc import plain_line
from bailiwick.terminal.output import Printer

if TYPE_CHECKING:
    from bailiwick.gate.port import Judge

EXITS: dict[Verdict, int] = {"green": 0, "red": 1, "needs_person": 1, "environment": 8}
NO_REPOSITORY = "BW446"


@click.command()
@click.option("--base", metavar="REF", help="What the work tree is compared with; HEAD if not given.")
@click.option("--allow", multiple=True, metavar="PATH", help="Let changes to a protected path through (repeatable).")
@click.option("--allow-red", multiple=True, metavar="ID", help="A test that may stay red (repeatable).")
@click.option("--known-red", multiple=True, metavar="ID", hidden=True, help="The former name of --allow-red.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def gate(
    *, base: str | None, allow: tuple[str, ...], allow_red: tuple[str, ...], known_red: tuple[str, ...], as_json: bool
) -> int:
    """Run the gate on the work tree as it is, uncommitted and untracked files included.

    \b
    Exits with 0 when it is green, 1 when it is red, 8 when it could not be run.
    Examples:
      bailiwick gate
      bailiwick gate --base main --allow tests/test_prices.py
    """
    config = load_config(Path.cwd(), {})
    root = work_tree_of(config)
    spec, report = asyncio.run(_run(config, root, (base, allow, (*allow_red, *known_red)), quiet=as_json))
    if as_json:
        told = {"digest": report.digest, "origin": spec.origin, "gate": spec.to_json(), **report.to_json()}
        click.echo(json.dumps(told, indent=2))
    else:
        for line in describe(report):
            Printer.on(sys.stdout).line(line)
    return EXITS[report.verdict]


def work_tree_of(config: Config) -> Path:
    """The root of the git work tree that the person is in; raises `NotReady` where there is none."""
    if config.repository is None or not config.repository.git:
        hint = "run it in a repository, or `git init`"
        raise NotReady("this directory is in no git work tree", hint=hint, code=NO_REPOSITORY)
    return config.repository.root


async def _run(
    config: Config, root: Path, asked: tuple[str | None, tuple[str, ...], tuple[str, ...]], *, quiet: bool
) -> tuple[GateSpec, GateReport]:
    from bailiwick.clock import SystemClock
    from bailiwick.gate.from_config import gate_for, look_at_tree, places_of
    from bailiwick.gate.service import GateRequest, run_gate
    from bailiwick.gate.tree import check_allowed
    from bailiwick.git.store import GitStore
    from bailiwick.sandbox.service import open_sandboxes

    ref, allow, known_red = asked
    check_allowed(allow)
    sandboxes = await open_sandboxes(config, attended=sys.stdin.isatty())
    git_store = await GitStore.open(config.paths.make_state(), root)
    stands = await look_at_tree(config, git_store, root, ref)
    base, taken = stands.base, stands.taken
    spec = await gate_for(config, git_store, base, sandboxes)
    if not quiet:
        notes = (*introduce(spec, UNBORN if stands.unborn else base[:12], sandboxes.sandbox.name),)
        for line in (*notes, *(f"left out: {note}" for note in taken.notes)):
            Printer.on(sys.stdout).line(plain_line(line.encode()), indent=9)
    async with _judge(spec) as judge:
        report = await run_gate(
            GateRequest(base, taken.tree, allow, known_red),
            spec,
            git_store=git_store,
            sandboxes=sandboxes,
            places=replace(places_of(config), judge=judge),
            cancel=asyncio.Event(),
            show=shown_progress(quiet=quiet),
            clock=SystemClock(),
        )
    return spec, report


@asynccontextmanager
async def _judge(spec: GateSpec) -> AsyncIterator[Judge | None]:
    """Who asks a model for its opinion, where a check wants one."""
    if not any(check.kind == "judge" for check in spec.checks):
        yield None
        return
    from bailiwick.app.service import open_judge

    async with open_judge() as judge:
        yield judge
