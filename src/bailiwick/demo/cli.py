"""`bailiwick demo`."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import click

from bailiwick import __version__
from bailiwick.clock import SystemClock
from bailiwick.demo.service import Tale, play


@click.command()
@click.option("--keep", metavar="DIR", help="Keep everything in DIR instead of a temporary directory.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
def demo(*, keep: str | None, as_json: bool) -> int:
    """See it work: a workflow runs, its worker is killed with kill -9, the same command goes on. No key, no network."""
    clock = SystemClock()
    began = clock.monotonic()

    def say(label: str, text: str) -> None:
        if not as_json:
            click.echo(f"   {label:<11} {text}")

    if not as_json:
        where = f"in {keep}" if keep else "in a temporary directory, removed at the end"
        click.echo(f"bailiwick {__version__} · simulated agent, no key, no network · {where}\n")
        click.echo('A workflow of scripts, decisions, a fan-out, a wait and an agent   "count the words, then report"')
    if keep:
        Path(keep).mkdir(parents=True, exist_ok=True)
        tale = play(Path(keep).resolve(), say)
    else:
        with tempfile.TemporaryDirectory(prefix="bailiwick-demo-") as home:
            tale = play(Path(home), say)
    seconds = clock.monotonic() - began
    good = tale.code == 0 and not tale.repeated and tale.reentered == 1
    if as_json:
        click.echo(json.dumps(_document(tale, seconds, good=good)))
    else:
        _closing(tale, seconds, good=good)
    return 0 if good else 70


def _document(tale: Tale, seconds: float, *, good: bool) -> dict[str, object]:
    return {
        "ok": good, "kept": tale.kept, "reentered": tale.reentered, "repeated": tale.repeated, "report": tale.report,
        "effects": dict(tale.effects), "code": tale.code, "seconds": round(seconds, 1),
    }  # fmt: skip


def _closing(tale: Tale, seconds: float, *, good: bool) -> None:
    click.echo(f"   result      {tale.report}\n")
    events = max((int(e.get("seq", 0)) for e in tale.second if e["type"] != "End"), default=0)
    done_twice = ", ".join(tale.repeated) if tale.repeated else "nothing done twice"
    click.echo(
        f"Kept: {tale.kept} steps. Entered again: {tale.reentered} ('report', same effect key). "
        f"{done_twice.capitalize()}."
    )
    click.echo(f"{seconds:.0f} s · $0 · journal: {events} events")
    if not good:
        click.echo("This is not what should happen: please report it with the output above.")
    click.echo("Next:  bailiwick new hello   then   bailiwick run hello")
