"""`bailiwick gate`: the gate for the work tree as a person sees it."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bailiwick.config.service import Config, load_config
from bailiwick.errors import NotReady
from bailiwick.gate.failure_lines import reason_of
from bailiwick.gate.headline import advice, evidence, headline
from bailiwick.gate.model import CheckResult, GateReport, Verdict
from bailiwick.gate.report import doubt_line, line_of
from bailiwick.gate.spec import GateSpec
from bailiwick.processes.proc import plain_line

if TYPE_CHECKING:
    from bailiwick.gate.port import Judge

EXITS: dict[Verdict, int] = {"green": 0, "red": 1, "needs_person": 1, "environment": 8}
NO_REPOSITORY = "BW446"
UNBORN = "the work tree itself, as there is no commit yet"
_MARKS = {"passed": "✓", "failed": "✗", "environment": "!", "red_on_base": "✗"}
_SHOWN = 20
_LINES = 40


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
    if config.repository is None or not config.repository.git:
        raise NotReady(
            "this directory is in no git work tree", hint="run it in a repository, or `git init`", code=NO_REPOSITORY
        )
    spec, report = asyncio.run(
        _run(config, config.repository.root, (base, allow, (*allow_red, *known_red)), quiet=as_json)
    )
    if as_json:
        told = {"digest": report.digest, "origin": spec.origin, "gate": spec.to_json(), **report.to_json()}
        click.echo(json.dumps(told, indent=2))
    else:
        for line in describe(report):
            click.echo(line)
    return EXITS[report.verdict]


async def _run(
    config: Config, root: Path, asked: tuple[str | None, tuple[str, ...], tuple[str, ...]], *, quiet: bool
) -> tuple[GateSpec, GateReport]:
    from bailiwick.clock import SystemClock
    from bailiwick.gate.opening import gate_for, look_at_tree, places_of
    from bailiwick.gate.service import GateRequest, run_gate
    from bailiwick.gate.tree import check_allowed
    from bailiwick.git.store import GitStore
    from bailiwick.sandbox.service import open_fence

    ref, allow, known_red = asked
    check_allowed(allow)
    fence = await open_fence(config, attended=sys.stdin.isatty())
    vault = await GitStore.open(config.paths.make_state(), root)
    stands = await look_at_tree(config, vault, root, ref)
    base, taken = stands.base, stands.taken
    spec = await gate_for(config, vault, base, fence)
    if not quiet:
        notes = (*introduce(spec, UNBORN if stands.unborn else base[:12], fence.sandbox.name),)
        for line in (*notes, *(f"left out: {note}" for note in taken.notes)):
            click.echo(plain_line(line.encode()))
    async with _judge(spec) as judge:
        report = await run_gate(
            GateRequest(base, taken.tree, allow, known_red),
            spec,
            vault,
            fence,
            replace(places_of(config), judge=judge),
            cancel=asyncio.Event(),
            show=shown_progress(quiet=quiet),
            clock=SystemClock(),
        )
    return spec, report


@asynccontextmanager
async def _judge(spec: GateSpec) -> AsyncIterator[Judge | None]:
    """Who asks a model for its opinion, where a check wants one. It is found by name: it stands above the gate."""
    if not any(check.kind == "judge" for check in spec.checks):
        yield None
        return
    async with import_module("bailiwick.cli.session").open_judge() as judge:
        yield judge


def shown_progress(*, quiet: bool) -> Callable[[str], None]:
    """Says what goes on, one plain line for each phase, on standard error; also where that is no terminal."""

    def show(text: str) -> None:
        if not quiet:
            click.echo(f"  … {plain_line(text.encode())}", err=True)

    return show


def introduce(spec: GateSpec, base: str, fence: str) -> Iterator[str]:
    """What is going to be checked, and who said so."""
    source = {
        "operator": spec.file,
        "base": f"{spec.file} of the base commit",
        "detected": "detected, as there is none",
    }
    yield f"gate     {source[spec.origin]}"
    yield f"base     {base}"
    yield f"sandbox  {fence}"
    if spec.prepare:
        yield f"prepare  {'; '.join(' '.join(command) for command in spec.prepare)}"
    for check in spec.checks:
        yield f"check    {check.name}: {' '.join(check.run) or check.kind}"
    for note in spec.notes:
        yield str(note).replace("\n  try:", "; try:")


def describe(report: GateReport) -> Iterator[str]:
    """A report for people: what was allowed or reverted first, then every check, the verdict and what to do."""
    for line in _describe(report):
        yield plain_line(line.encode("utf-8", "replace"), 400) if not line.startswith(" ") else _indented(line)


def _indented(line: str) -> str:
    bare = line.lstrip(" ")
    return " " * (len(line) - len(bare)) + plain_line(bare.encode("utf-8", "replace"), 400)


def _describe(report: GateReport) -> Iterator[str]:
    yield from _protected(report)
    for check in report.checks:
        yield from _about(check)
    if report.without:
        yield "without what was allowed:"
        for check in report.without:
            yield f"  {_MARKS[check.outcome]} {check.name}: {check.outcome.replace('_', ' ')}"
    for finding in (*report.findings, *report.weakening)[:_SHOWN]:
        yield f"{'✗' if finding.blocks else '!'} {line_of(finding)}"
    yield from _doubts(report)
    yield from _evidence(report)
    for line in report.unprotected:
        yield f"not protected  {line}"
    yield f"gate: {headline(report)}   (report {report.digest[:12]}, {report.seconds:.1f} s)"
    for line in advice(report):
        yield f"  {line}"


def _protected(report: GateReport) -> Iterator[str]:
    """The changes to protected paths, those first that a person approved."""
    for part in sorted(report.taken, key=lambda part: not part.allowed)[:_SHOWN]:
        yield f"! {'allowed' if part.allowed else 'reverted (protected)'}  {part.path} ({part.change}; {part.rule})"
    if len(report.taken) > _SHOWN:
        yield f"! and {len(report.taken) - _SHOWN} more changes to protected paths"


def _doubts(report: GateReport) -> Iterator[str]:
    """What a person has to look at, with the hunk, or what was approved beforehand."""
    for doubt in report.doubts[:_SHOWN]:
        yield f"! {'needs your approval' if report.verdict == 'needs_person' else 'look at'}  {doubt_line(doubt)}"
        for line in doubt.patch.splitlines()[:_LINES]:
            yield f"    {line}"


def _evidence(report: GateReport) -> Iterator[str]:
    """Which tests show the change, in the right words: new ones are called new, healed ones healed."""
    for number, line in enumerate(evidence(report)):
        yield f"{'' if number else 'evidence':<10} {line}"


def _about(check: CheckResult) -> Iterator[str]:
    counts = ", ".join(f"{number} {name}" for name, number in check.counts)
    facts = ", ".join(part for part in (check.level, counts, f"{check.seconds:.1f} s") if part)
    yield f"{_MARKS[check.outcome]} {check.name}: {check.outcome.replace('_', ' ')} ({facts})"
    for finding in check.findings[:_SHOWN]:
        yield f"    {line_of(finding)}"
    if check.outcome != "passed":
        for line in check.output.splitlines()[-_LINES:]:
            yield f"    {line}"
        for test in check.failing[:_SHOWN]:
            why = reason_of(check, test)
            yield f"    fails: {test}" + (f"  ({why})" if why else "")
    if check.hint:
        yield f"    try: {check.hint}"
