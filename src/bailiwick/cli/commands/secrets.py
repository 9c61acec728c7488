"""`bailiwick secrets`: whether every secret that the configuration refers to is there."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click

from bailiwick.config.service import load_config

NOT_READY = 8


@click.group(name="secrets")
def secrets() -> None:
    """Check the secrets that the configuration refers to."""


@secrets.command()
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
def check(*, as_json: bool) -> int:
    """Say of every reference whether it resolves and who uses it. No secret is ever shown.

    \b
    Example:  bailiwick secrets check
    """
    from bailiwick.processes.proc import plain_line
    from bailiwick.secrets.service import check_secrets

    found = check_secrets(load_config(Path.cwd(), {}))
    good = all(each.ok for each in found)
    if as_json:
        click.echo(json.dumps({"ok": good, "secrets": [asdict(each) for each in found]}, indent=2))
        return 0 if good else NOT_READY
    if not found:
        click.echo("the configuration refers to no secret")
    for each in found:
        lines = [f"{'✓' if each.ok else '✗'} {each.key}  {each.reference}  {each.user}  ({each.origin})"]
        if not each.ok:
            lines += [f"    {each.code}: {each.what}", f"    fix: {each.hint}"]
        for line in lines:
            click.echo(plain_line(line.encode("utf-8", "replace")))
    return 0 if good else NOT_READY
