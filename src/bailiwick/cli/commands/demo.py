"""`bailiwick demo`."""

from __future__ import annotations

import json
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

import click

from bailiwick import __version__
from bailiwick.clock import SystemClock
from bailiwick.demo.service import Act, DemoRecord, Say, perform_act, play
from bailiwick.terminal.output import Printer


@click.command()
@click.option("--keep", metavar="DIR", help="Keep everything in DIR instead of a temporary directory.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
def demo(*, keep: str | None, as_json: bool) -> int:
    """See it work: a worker is killed and nothing is done twice, an issue becomes a proposal, a cheat is found out.

    \b
    Example:  bailiwick demo
    """
    clock = SystemClock()
    began = clock.monotonic()

    def say(label: str, text: str) -> None:
        if not as_json:
            Printer.on(sys.stdout).line(f"   {label:<11} {text}", indent=15)

    if not as_json:
        where = f"in {keep}" if keep else "in a temporary directory, removed at the end"
        _write(f"bailiwick {__version__} · simulated agent, no key, no network · {where}\n")
        _write('A workflow of scripts, decisions, a fan-out, a wait and an agent   "count the words, then report"')
    if keep:
        Path(keep).mkdir(parents=True, exist_ok=True)
        tale, acts = _shown(Path(keep).resolve(), say, quiet=as_json)
    else:
        with tempfile.TemporaryDirectory(prefix="bailiwick-demo-", ignore_cleanup_errors=True) as home:
            tale, acts = _shown(Path(home).resolve(), say, quiet=as_json)
    seconds = clock.monotonic() - began
    good = tale.code == 0 and not tale.repeated and tale.reentered == 1 and _as_promised(*acts)
    if as_json:
        click.echo(
            json.dumps(_document(tale, seconds, good=good) | {"issue": asdict(acts[0]), "cheat": asdict(acts[1])})
        )
    else:
        _closing(seconds, good=good)
    return 0 if good else 70


def _shown(home: Path, say: Say, *, quiet: bool) -> tuple[DemoRecord, tuple[Act, Act]]:
    """All three acts, each with its heading."""
    tale = play(home, say)
    if not quiet:
        _kept(tale)
        _write('An issue becomes a proposal   "round discounted prices to cents"')
    issue = perform_act(home / "issue", "bad", (), say)
    if not quiet:
        _write("\nAn agent that would rather look green than be right")
    cheat = perform_act(home / "cheat", "cheat", ("--attempts", "0"), say)
    if cheat.reason:
        say("found out", cheat.reason)
    return tale, (issue, cheat)


def _as_promised(issue: Act, cheat: Act) -> bool:
    """Red, then green and proposed; a cheat that is rejected. What can't be shown on this machine breaks nothing."""
    proposed = bool(issue.skipped) or (issue.code == 0 and issue.verdicts == ["red", "green"] and bool(issue.branch))
    caught = bool(cheat.skipped) or (cheat.code == 1 and "conftest.py" in cheat.reason and not cheat.branch)
    return proposed and caught


def _document(tale: DemoRecord, seconds: float, *, good: bool) -> dict[str, object]:
    return {
        "ok": good,
        "kept": tale.kept,
        "reentered": tale.reentered,
        "repeated": tale.repeated,
        "report": tale.report,
        "effects": dict(tale.effects),
        "code": tale.code,
        "seconds": round(seconds, 1),
    }


def _kept(tale: DemoRecord) -> None:
    _write(f"   result      {tale.report}\n")
    events = max((int(e.get("seq", 0)) for e in tale.second if e["type"] != "End"), default=0)
    done_twice = ", ".join(tale.repeated) if tale.repeated else "nothing done twice"
    _write(
        f"Kept: {tale.kept} steps. Entered again: {tale.reentered} ('report', same effect key). "
        f"{done_twice.capitalize()}. Journal: {events} events.\n"
    )


def _write(text: str) -> None:
    Printer.on(sys.stdout).text(text)


def _closing(seconds: float, *, good: bool) -> None:
    _write(f"\n{seconds:.0f} s · $0 · nothing was merged")
    if not good:
        _write("This is not what should happen: please report it with the output above.")
    _write("Next:  bailiwick new hello   then   bailiwick run hello   ·   bailiwick issue-to-pr ISSUE")
