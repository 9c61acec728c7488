"""Asking the person at the terminal, without blocking the walk."""

from __future__ import annotations

import asyncio
import sys

import click

from bailiwick.journal.rows import WaitRow
from bailiwick.terminal.output import clean


async def read_line(prompt: str) -> str:
    """A line from the terminal; nothing blocks meanwhile, and the wait can be given up. Raises `EOFError`."""
    loop = asyncio.get_running_loop()
    line: asyncio.Future[str] = loop.create_future()

    def take() -> None:
        if not line.done():
            line.set_result(sys.stdin.readline())

    click.echo(prompt, nl=False)
    loop.add_reader(sys.stdin.fileno(), take)
    try:
        text = await line
    finally:
        loop.remove_reader(sys.stdin.fileno())
    if not text:
        raise EOFError
    return text


async def ask_person(wait: WaitRow) -> str | None:
    """The answer to an open question; None when the person leaves it (empty line, end of input, Ctrl-C)."""
    click.echo(clean(str(wait.body["question"])))
    choices = [str(c) for c in wait.body.get("choices") or []]
    for number, choice in enumerate(choices, 1):
        click.echo(f"  {number}  {clean(choice)}")
    while True:
        try:
            text = (await read_line("> ")).strip()
        except EOFError:
            return None
        if not text:
            return None
        if not choices or text in choices:
            return text
        if text.isdigit() and 1 <= int(text) <= len(choices):
            return choices[int(text) - 1]
        click.echo(f"one of: {', '.join(choices)}")


async def ask_interrupt() -> str:
    """What Ctrl-C is to mean: node, now, detach, or empty to go on."""
    click.echo("\n[s]top after this node   stop [n]ow   [d]etach: go on in the background   anything else: go on")
    try:
        text = (await read_line("> ")).strip().lower()
    except EOFError:
        return "now"
    return {"s": "node", "n": "now", "d": "detach"}.get(text[:1], "")
