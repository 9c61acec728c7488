"""Commands that print for people or, with `--json`, one document for programs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any

import click

from bailiwick.terminal.output import Printer

JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")


def printing(command: Callable[..., Coroutine[Any, Any, int]]) -> Callable[..., int]:
    """Make an async function a command with `--json`; its first argument is the printer that fits."""

    @wraps(command)
    def run(as_json: bool, **given: Any) -> int:
        return asyncio.run(command(Printer.for_stdout(json=as_json), **given))

    return JSON(run)
