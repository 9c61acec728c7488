"""`runs reask`: one recorded turn, asked once more elsewhere."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from bailiwick.app.reask import ReaskResult
from bailiwick.app.reask import reask as ask_again
from bailiwick.app.service import open_app
from bailiwick.cli.printing import printing
from bailiwick.errors import UsageError
from bailiwick.runs.find import find_run, name_of
from bailiwick.terminal.output import Printer, Styled


@click.command()
@click.argument("run")
@click.argument("node")
@click.option("--model", metavar="M", help="Another model; the recorded one if left out.")
@click.option("--prompt", "file", metavar="FILE", help="Another prompt; the recorded one if left out.")
@printing
async def reask(out: Printer, run: str, node: str, model: str | None, file: str | None) -> int:
    """Ask the last turn of NODE once more and show both answers. RUN stays as it is; the new answer is paid for.

    \b
    Example:  bailiwick runs reask review-default judge --model sonnet
    """
    prompt = _prompt(file)
    async with open_app(attended=True) as app:
        row = await find_run(app.runtime.store, run)
        asked = await ask_again(app, row, node=node, model=model, prompt=prompt)
    if out.json:
        out.emit_json({"run": name_of(row), **asdict(asked)})
    else:
        _print(out, name_of(row), asked)
    return 0 if asked.ok else 1


def _prompt(file: str | None) -> str | None:
    if file is None:
        return None
    try:
        return Path(file).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        hint = "give a text file in UTF-8"
        raise UsageError(f"--prompt {file} can't be read: {error}", hint=hint, code="BW202") from error


def _print(out: Printer, name: str, asked: ReaskResult) -> None:
    before = asked.recorded
    out.line(Styled(f"{name}  {before.node}", "strong"), "  as recorded, ", _who(before.backend, before.model))
    out.text(before.answer)
    cost = "cost unknown" if asked.usd is None else f"${asked.usd:.4f}"
    out.line(Styled("asked again", "strong"), "  ", _who(asked.backend, asked.model), Styled(f", {cost}", "dim"))
    out.text(asked.answer)


def _who(backend: str, model: str | None) -> str:
    return f"{backend}, {model}" if model else backend
