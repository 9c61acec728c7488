"""`issue-to-pr` and `self-heal`: the commands of the patterns."""

from __future__ import annotations

import asyncio
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from bailiwick.cli.hosting import ForegroundOptions
from bailiwick.cli.pipelines.service import PipelineCommand, carry_out
from bailiwick.cli.view.choose import choose_view
from bailiwick.cli.view.port import Leaving
from bailiwick.errors import UsageError
from bailiwick.ids import Json
from bailiwick.pipelines.issues import parse_reference, read_issue
from bailiwick.pipelines.model import ISSUE_TO_PR, SELF_HEAL, IssueText, Pattern
from bailiwick.pipelines.simulation import PLAYS, perform, staged
from bailiwick.terminal.output import Printer

_Command = TypeVar("_Command", bound=Callable[..., Any])
_PASSED_ON = {
    "attempts": "--attempts", "allow": "--allow", "budget_usd": "--budget-usd", "model": "--model",
}  # fmt: skip
_SWITCHES = {
    "verbose": "--verbose",
    "known_red": "--known-red",
    "wait": "--wait",
    "no_wait": "--no-wait",
    "no_input": "--no-input",
}


_OPTIONS = (
    click.option("--attempts", type=click.IntRange(0, 100), metavar="N", help="Fix calls; 3 by default, 0: one shot."),
    click.option("--allow", multiple=True, metavar="PATH", help="A protected path that may change; can be repeated."),
    click.option("--known-red", is_flag=True, help="What is red on the base may stay red: exactly that, nothing else."),
    click.option("--backend", "--cli", "backend", metavar="NAME", help="The agent backend."),
    click.option("--model", metavar="NAME", help="The model."),
    click.option("--budget-usd", type=click.FloatRange(min=0, min_open=True), metavar="N", help="Dollars for the run."),
    click.option(
        "--simulate", metavar="good|bad|stuck|cheat|SCRIPT", help="A simulated agent, elsewhere; your script: here."
    ),
    click.option("--temporary", is_flag=True, hidden=True, help="All of it is removed when the command ends."),
    click.option("--keep", metavar="DIR", help="Keep the temporary repository of --simulate in DIR."),
    click.option("--fresh", is_flag=True, help="Set the old run aside and start again."),
    click.option("--detach", is_flag=True, help="Go on in the background; the command returns at once."),
    click.option("--wait", is_flag=True, help="Stay while the run waits for a person."),
    click.option("--no-wait", is_flag=True, help="Exit with code 7 when the run only waits for time."),
    click.option("--no-input", is_flag=True, help="Never ask on the terminal."),
    click.option("-v", "--verbose", is_flag=True, help="Every step of the workflow, inner ones too."),
    click.option("--json", "as_json", is_flag=True, help="One JSON document at the end."),
    click.option("--events", is_flag=True, help="Every durable event as a line of JSON."),
)  # fmt: skip


def _shared(command: _Command) -> _Command:
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@click.command("issue-to-pr")
@click.argument("issue", required=False)
@click.option(
    "--base", metavar="REF", help="Where the work starts from; default: the forge's default branch, else HEAD."
)
@_shared
def issue_to_pr(**given: object) -> int:
    """Turn ISSUE into a proposal: a branch with a change that passes the gate. Nothing is merged.

    ISSUE is a Markdown file, `-` for standard input, 123, owner/repo#123 or a URL. The same command again shows the
    run, goes on with it, or prints its proposal.

    \b
    Examples:
      bailiwick issue-to-pr issues/round-to-cents.md
      bailiwick issue-to-pr 412 --attempts 5
      bailiwick issue-to-pr --simulate bad
    """
    if not given["issue"] and not _is_play(given):
        raise UsageError("no issue is named", hint="give a Markdown file, `-`, 123, owner/repo#123 or a URL")
    return _carry_out(ISSUE_TO_PR, given)


@click.command("self-heal")
@_shared
def self_heal(**given: object) -> int:
    """Run the gate on a copy of the work tree; where it is red, let an agent try to fix it, within bounds.

    \b
    Examples:
      bailiwick self-heal
      bailiwick self-heal --attempts 1
      bailiwick self-heal --simulate stuck
    """
    if given["known_red"]:
        raise UsageError("what is red is what self-heal is for: --known-red makes no sense here")
    return _carry_out(SELF_HEAL, given)


def _is_play(given: dict[str, object]) -> bool:
    return given["simulate"] in PLAYS


def _carry_out(pattern: Pattern, given: dict[str, object]) -> int:
    if given["wait"] and given["no_wait"]:
        raise UsageError("--wait and --no-wait exclude each other")
    if given["as_json"] and given["events"]:
        raise UsageError("--json and --events exclude each other", hint="the last line of --events has the exit code")
    if _is_play(given):
        return _play(pattern, given)
    if given["keep"]:
        raise UsageError("--keep goes with --simulate good, bad, stuck or cheat")
    request = _request(pattern, given)
    view = choose_view(json=bool(given["as_json"]), events=bool(given["events"]), verbose=bool(given["verbose"]))
    return asyncio.run(carry_out(request, view))


def _request(pattern: Pattern, given: dict[str, object]) -> PipelineCommand:
    quiet = bool(given["as_json"] or given["events"])
    person = sys.stdin.isatty() and sys.stdout.isatty() and given.get("issue") != "-"
    flags: dict[str, Json] = {name: str(given[name]) for name in ("backend", "model") if given[name]}
    if given["budget_usd"]:
        flags["budget.run.usd"] = given["budget_usd"]
    allow = given["allow"]
    attempts = given["attempts"]
    return PipelineCommand(
        pattern=pattern,
        issue=str(given.get("issue") or ""),
        base=str(given["base"]) if given.get("base") else None,
        attempts=attempts if isinstance(attempts, int) else None,
        allow=allow if isinstance(allow, tuple) else (),
        known_red=bool(given["known_red"]),
        fresh=bool(given["fresh"]),
        flags=flags,
        simulate=_script(given["simulate"]),
        options=ForegroundOptions(
            wait=bool(given["wait"]),
            no_wait=bool(given["no_wait"]),
            detach=bool(given["detach"]),
            ask=person and not quiet and not given["no_input"],
            leaving=_leaving(pattern, given),
        ),
        quiet=quiet,
    )


def _leaving(pattern: Pattern, given: dict[str, object]) -> Leaving:
    """How the command leaves its run: what a pattern returns is for programs, people get its closing words."""
    issue = str(given.get("issue") or "")
    named = [] if pattern == SELF_HEAL else [shlex.quote(issue)]
    again = " ".join(["bailiwick", pattern, *named, "--fresh"]) if issue != "-" else ""
    return Leaving(again=again, gone=bool(given["temporary"]), results=False)


def _script(value: object) -> Path | None:
    if not value:
        return None
    path = Path(str(value))
    if not path.is_file():
        raise UsageError(
            f"there is no play and no script {str(value)!r}",
            hint=f"one of {', '.join(PLAYS)}, or the file of a script: docs/how-to/simulate.md",
        )
    return path.resolve()


def _play(pattern: Pattern, given: dict[str, object]) -> int:
    """The command in a temporary repository of its own."""
    refused = [f"--{name}" for name in ("detach", "backend", "base", "fresh") if given.get(name)]
    if refused:
        raise UsageError(
            f"a simulation in a temporary repository takes no {refused[0]}",
            hint=f"leave it out, or give a script of your own instead of '{given['simulate']}'",
        )
    issue = _issue(str(given["issue"])) if given.get("issue") else None
    play = next(name for name in PLAYS if name == given["simulate"])
    keep = Path(str(given["keep"])) if given["keep"] else None
    quiet = bool(given["as_json"] or given["events"])
    say = Printer.on(sys.stderr if quiet else sys.stdout).line

    with staged(pattern, play, keep, issue) as stage:
        say(f"simulated agent ({play}), no key, no network · temporary repository {stage.repository}")
        if stage.level != "tests":
            say("the Python here has no pytest: the gate runs unittest and has only its exit code, no single outcomes")
        code = perform(stage, pattern, _passed_on(given))
        if stage.kept:
            home, there = shlex.quote(str(stage.home)), shlex.quote(str(stage.repository))
            say(f"kept in {stage.repository.parent}; the commands above work after:")
            say(f"  export BAILIWICK_HOME={home}; cd {there}", whole=True)
        else:
            say("the temporary repository is removed; --keep DIR keeps it")
    return code


def _issue(text: str) -> IssueText:
    """The issue that a play is given for: it is read here, since nothing of it lies in the temporary repository."""
    reference = parse_reference(text, Path.cwd())
    if reference.kind == "forge":
        raise UsageError(
            f"a simulation asks no forge, and {text!r} is an issue of one",
            hint="give the issue as a Markdown file or `-`, or leave it out",
        )
    return read_issue(reference)


def _passed_on(given: dict[str, object]) -> list[str]:
    flags: list[str] = []
    for name, flag in _PASSED_ON.items():
        value = given[name]
        for each in value if isinstance(value, tuple) else (value,) if value is not None else ():
            flags += [flag, str(each)]
    flags += [flag for name, flag in _SWITCHES.items() if given[name]]
    return [*flags, *(["--json"] if given["as_json"] else []), *(["--events"] if given["events"] else [])]
