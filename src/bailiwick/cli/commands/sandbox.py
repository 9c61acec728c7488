"""`bailiwick sandbox`: what protects here and what does not, and a shell in exactly that sandbox."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bailiwick.config.service import Config, load_config
from bailiwick.errors import NotReady
from bailiwick.ids import Json

if TYPE_CHECKING:
    from bailiwick.sandbox.selftest import EscapeProbe
    from bailiwick.sandbox.spec import SandboxStatus

NOT_READY = 8


@click.group()
def sandbox() -> None:
    """Look at the sandbox that agents and their code run in, or open a shell in it."""


@dataclass(frozen=True, slots=True)
class Looked:
    """What was found about one profile."""

    name: str
    chosen: bool
    standing: SandboxStatus
    probes: tuple[EscapeProbe, ...] = ()

    def to_json(self) -> dict[str, Json]:
        """As a document."""
        tried: list[Json] = [asdict(probe) for probe in self.probes]
        return {"name": self.name, "chosen": self.chosen, **asdict(self.standing), "self_test": tried}


@sandbox.command()
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
def check(*, as_json: bool) -> int:
    """Say which sandboxes work here, and try from inside what they must not allow.

    \b
    Example:  bailiwick sandbox check
    """
    import asyncio

    config = load_config(Path.cwd(), {})
    profile = str(config.get("sandbox.profile"))
    found = asyncio.run(_look(config, profile))
    usable = next((looked for looked in found if looked.chosen), None)
    held = usable is not None and (usable.name == "none" or all(probe.protected for probe in usable.probes))
    if as_json:
        rows: list[Json] = [looked.to_json() for looked in found]
        click.echo(json.dumps({"ok": held, "profile": profile, "sandboxes": rows}))
        return 0 if held else NOT_READY
    for looked in found:
        _show(looked)
    if usable is None:
        click.echo("\nNo sandbox can be used: nothing runs unattended here.")
    else:
        click.echo(f"\nsandbox.profile is {profile}: {usable.name} is used.")
    return 0 if held else NOT_READY


async def _look(config: Config, profile: str) -> list[Looked]:
    from bailiwick.sandbox.selftest import self_test
    from bailiwick.sandbox.service import PROFILES, Sandboxes, make_sandbox, own_scratch
    from bailiwick.sandbox.toolchains import Toolchains

    scratch = own_scratch(config.paths.cache)
    found: list[Looked] = []
    for name in PROFILES:
        box = make_sandbox(name, scratch)
        standing = await box.check()
        chosen = standing.ok and profile in ("auto", name) and not any(looked.chosen for looked in found)
        try:
            probes = tuple(await self_test(Sandboxes(box, Toolchains(), scratch))) if standing.ok else ()
        except NotReady as error:
            probes = _failed(error)
        found.append(Looked(name, chosen, standing, probes))
    return found


def _failed(error: NotReady) -> tuple[EscapeProbe, ...]:
    from bailiwick.sandbox.selftest import EscapeProbe

    return (EscapeProbe("self-test", protected=False, found=error.what),)


def _show(looked: Looked) -> None:
    standing = looked.standing
    click.echo(f"{'✓' if standing.ok else '✗'} {looked.name:<10} {standing.found}")
    if not standing.ok and standing.fix:
        click.echo(f"  fix: {standing.fix}")
    for probe in looked.probes:
        click.echo(f"    {'✓' if probe.protected else '✗'} {probe.name:<13} {probe.found}")
    for line in standing.unprotected if standing.ok else ():
        click.echo(f"    - not protected: {line}")


@sandbox.command(context_settings={"ignore_unknown_options": True})
@click.option(
    "--as", "role", type=click.Choice(("agent", "gate")), default="agent", show_default=True, help="Whose sandbox."
)
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
def shell(*, role: str, command: tuple[str, ...]) -> int:
    """Open a shell, or run COMMAND, in the sandbox of an agent or of the gate.

    It sees a fresh copy of this repository's files as they are now, never the files themselves; the copy is gone at the
    end.

    \b
    Examples:
      bailiwick sandbox shell
      bailiwick sandbox shell --as gate -- pytest -q
    """
    import asyncio
    import signal

    from bailiwick.cli.commands.sandbox_shell import open_shell

    config = load_config(Path.cwd(), {})
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for what runs inside
    try:
        return asyncio.run(open_shell(config, "gate" if role == "gate" else "agent", command, _say))
    finally:
        signal.signal(signal.SIGINT, before)


def _say(text: str) -> None:
    from bailiwick.processes.proc import plain_line

    if sys.stderr.isatty():
        click.echo(f"sandbox: {plain_line(text.encode())}", err=True)
