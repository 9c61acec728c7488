"""`bailiwick agents`, `login` and `limits`: what can be asked, how it is paid, how much of it is left."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bailiwick.agents.credentials import (
    LOGINS,
    SECRET_VARIABLES,
    Credential,
    login_environment,
    login_home,
    resolve_credential,
)
from bailiwick.clock import SystemClock, local
from bailiwick.config.paths import make_private
from bailiwick.config.service import Config, load_config
from bailiwick.config.variables import Environment
from bailiwick.errors import BailiwickError, NotReady, UsageError

if TYPE_CHECKING:
    from bailiwick.agents.port import Backend
    from bailiwick.agents.settings import AgentSettings

CHECK_SECONDS = 20.0
NO_LOGIN = "BW265"
NO_TERMINAL = "BW266"
LOGIN_FAILED = "BW267"
_KINDS = {
    "api_key": "API key",
    "oauth": "long-lived token",
    "login": "own login",
    "bedrock": "Bedrock",
    "vertex": "Vertex",
    "none": "none",
}


@dataclass(frozen=True, slots=True)
class BackendStatus:
    """What is known of a backend without spending anything. `credential` and `access` are words, never a token."""

    name: str
    ok: bool
    said: str
    chosen: bool
    model: str | None = None
    credential: str = "none"
    kind: str = "none"
    billing: str = ""
    access: str = "none"


@click.command()
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
def agents(*, as_json: bool) -> None:
    """List the ways to reach an agent: found or not, version, model, credential. Spends nothing.

    \b
    Example:  bailiwick agents
    """
    import asyncio

    from bailiwick.agents import registry
    from bailiwick.agents.settings import read_settings

    config = load_config(Path.cwd(), {})
    settings = read_settings(config)
    environment = Environment()

    async def look() -> list[BackendStatus]:
        names = registry.names()
        return list(await asyncio.gather(*(_examine(name, config, settings, environment) for name in names)))

    found = asyncio.run(look())
    if as_json:
        click.echo(json.dumps({"backends": [asdict(each) for each in found]}, indent=2))
        return
    wide = max(len(each.name) for each in found)
    for each in found:
        mark, star = ("✓" if each.ok else "✗"), ("*" if each.chosen else " ")
        click.echo(f"{mark}{star}{each.name:<{wide}}  {_clean(each.said)} · {_paid(each)}")
    click.echo("\n* is used where a node names none; change it with: bailiwick config set backend NAME")


async def _examine(name: str, config: Config, settings: AgentSettings, environment: Environment) -> BackendStatus:
    import asyncio

    from bailiwick.agents import registry
    from bailiwick.agents.launch import Launcher
    from bailiwick.agents.ready import credential_problem
    from bailiwick.agents.settings import TurnTimeouts

    chosen = name == settings.backend
    try:
        backend = registry.find(name, settings)
        credential = resolve_credential(name, config, environment)
    except BailiwickError as error:
        return BackendStatus(name, ok=False, said=f"{error.what}; {error.hint}", chosen=chosen)
    except (ImportError, AttributeError) as error:
        return BackendStatus(name, ok=False, said=f"it can't be loaded: {error}", chosen=chosen)
    env = environment.child_environment({}, SECRET_VARIABLES)
    try:
        async with asyncio.timeout(CHECK_SECONDS):
            with Launcher(TurnTimeouts(CHECK_SECONDS, CHECK_SECONDS), asyncio.Event()) as launcher:
                ok, said = await backend.check(env, launcher)
    except TimeoutError:
        ok, said = False, f"no answer within {CHECK_SECONDS:.0f} s"
    lacks = credential_problem(name, credential, config, environment)
    found = BackendStatus(name, ok and not lacks, f"{said}; {lacks}" if ok and lacks else said, chosen)
    return _described(backend, credential, found)


def _described(backend: Backend, credential: Credential, found: BackendStatus) -> BackendStatus:
    can = backend.capabilities
    if credential.kind == "none":
        return replace(found, model=can.default_model)
    return replace(
        found,
        model=can.default_model,
        credential=credential.name,
        kind=credential.kind,
        billing=credential.billing,
        access="exposed" if credential.exposed else can.credential,
    )


def _paid(found: BackendStatus) -> str:
    model = f"model {_clean(found.model)}" if found.model else "its own default model"
    if found.kind == "none":
        return f"{model} · no credential"
    return f"{model} · {_KINDS[found.kind]} ({_clean(found.credential)}), {found.billing}, {found.access}"


@click.command()
@click.argument("backend")
def login(backend: str) -> None:
    """Log BACKEND's program in, in a home of its own. Your own login stays as it is.

    \b
    Example:  bailiwick login claude
    """
    import subprocess

    if backend not in LOGINS:
        raise UsageError(
            f"the backend '{backend}' has no login of its own",
            hint=f"those that have one: {', '.join(LOGINS)}; the others take a key: bailiwick agents",
            code=NO_LOGIN,
        )
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError(
            "a login needs a person at a terminal",
            hint="run it in a terminal; without one, set a key or a long-lived token (claude setup-token)",
            code=NO_TERMINAL,
        )
    config = load_config(Path.cwd(), {})
    argv, env = login_command(backend, config, Environment())
    click.echo(f"{backend} keeps this login in {login_home(config.paths, backend)}; agents of yours will hold it")
    try:
        status = subprocess.run(argv, env=env, check=False).returncode
    except OSError as error:
        raise NotReady(
            f"'{argv[0]}' could not be started: {error.strerror}", hint="see: bailiwick agents", code=LOGIN_FAILED
        ) from error
    if status != 0 or resolve_login(config, backend) is None:
        raise NotReady(
            f"{backend} is not logged in: its login ended with code {status}",
            hint=f"run it again: bailiwick login {backend}",
            code=LOGIN_FAILED,
        )
    click.echo(f"{backend} is logged in; check it with: bailiwick agents")


def login_command(backend: str, config: Config, environment: Environment) -> tuple[list[str], Mapping[str, str]]:
    """The program's own login and its environment: its home is ours, and no key of the person's gets in its way."""
    from importlib import import_module

    program = import_module(f"bailiwick.agents.backends.{backend}").PROGRAM
    config.paths.make_state()
    make_private(login_home(config.paths, backend).parent)
    home = make_private(login_home(config.paths, backend))
    folders = login_environment(config.paths, backend)
    for folder in folders.values():
        make_private(Path(folder))
    kept = environment.child_environment({}, {*SECRET_VARIABLES, "XDG_CONFIG_HOME", "XDG_STATE_HOME"})
    return [program.path(kept), *LOGINS[backend].arguments], {**kept, **folders, "HOME": str(home)}


def resolve_login(config: Config, backend: str) -> Path | None:
    """The file in which a login is kept, if there is one."""
    file = login_home(config.paths, backend) / LOGINS[backend].kept
    return file if file.is_file() else None


@click.command()
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
def limits(*, as_json: bool) -> None:
    """Show the limits that vendors told of: how much of each window is used, and when it begins again.

    \b
    Example:  bailiwick limits
    """
    from bailiwick.agents.broker.windows import VendorLimits
    from bailiwick.cli.stored import with_store

    state = load_config(Path.cwd(), {}).paths.make_state()
    seen = with_store(state, lambda store: VendorLimits(store, state).all())
    now = SystemClock().now()
    if as_json:
        click.echo(json.dumps({"now": now, "limits": [asdict(window) for window in seen]}, indent=2))
        return
    if not seen:
        click.echo("no limits were seen yet: they are noted when an agent is asked, where its vendor tells them")
        return
    rows = [
        (
            _clean(window.credential),
            _clean(window.window.replace("_", " ")),
            _share(window.used, over=window.resets_at is not None and window.resets_at <= now, hit=window.hit),
            "" if window.resets_at is None else f"resets {local(window.resets_at)}",
            f"seen {local(window.seen_at)}",
        )
        for window in seen
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(5)]
    for row in rows:
        click.echo("  ".join(f"{cell:<{wide}}" for cell, wide in zip(row, widths, strict=True)).rstrip())


def _share(used: float | None, *, over: bool, hit: bool) -> str:
    """How much is used; of a window that has begun again since, nothing is known."""
    if over:
        return "began again"
    said = "unknown" if used is None else f"{used:.0%} used"
    return f"{said}, stops us" if hit else said


def _clean(text: str | None) -> str:
    """A text of others as one line that is safe to show."""
    from bailiwick.processes.proc import plain_line

    return plain_line((text or "").replace("\n", " ").encode("utf-8", "replace"))
