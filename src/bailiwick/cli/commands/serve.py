"""`serve`, `mcp` and `init`: the commands that let others connect."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from bailiwick.errors import UsageError
from bailiwick.service.tokens import ApiTokens, Scope

if TYPE_CHECKING:
    from bailiwick.app.service import App
    from bailiwick.service.asgi_app import Part
    from bailiwick.service.serving import ServeOptions
    from bailiwick.service.stdio import StdioTransport

T = TypeVar("T")
SCOPES = ("read", "run", "admin")


@click.group(invoke_without_command=True)
@click.option("--host", metavar="ADDRESS", help="Where to listen; service.host, 127.0.0.1 if not set.")
@click.option(
    "--port", type=click.IntRange(0, 65535), metavar="N", help="service.port, 3200 if not set; 0: a free one."
)
@click.option("--allow-anonymous-loopback", is_flag=True, help="Let anybody on this machine read without a token.")
@click.option("--no-worker", is_flag=True, help="Run no workflows here; `bailiwick worker` does.")
@click.option("--concurrency", default=4, show_default=True, type=click.IntRange(1, 1000), help="Runs at once.")
@click.option("--db", hidden=True, metavar="URL", help="Not in this version yet: refused by name.")
@click.pass_context
def serve(ctx: click.Context, /, **given: Any) -> int:
    """Serve MCP over HTTP, and run what is ready, until told to stop (SIGTERM, Ctrl-C).

    \b
    Examples:
      bailiwick serve
      bailiwick serve --port 0
      bailiwick serve token add ci --scope read
    """
    if ctx.invoked_subcommand is not None:
        return 0
    from bailiwick.service.asgi_app import require_extra

    require_extra()
    return asyncio.run(_serve(given))


@serve.group()
def token() -> None:
    """Tokens for clients: each has a name and a scope; only its digest is kept."""


@token.command("add")
@click.argument("name")
@click.option("--scope", type=click.Choice(SCOPES), default="read", show_default=True, help="How far it reaches.")
def token_add(name: str, scope: Scope) -> int:
    """Make a token called NAME and show it, once.

    \b
    Example:  bailiwick serve token add editor --scope run
    """
    click.echo(_with_tokens(lambda tokens: tokens.add(name, scope)))
    click.echo(f"'{name}' has scope {scope}; it is not shown again", err=True)
    return 0


@token.command("list")
def token_list() -> int:
    """List the names and scopes of tokens.

    \b
    Example:  bailiwick serve token list
    """
    for one in _with_tokens(lambda tokens: tokens.all()):
        click.echo(f"{one.name:24}  {one.scope}")
    return 0


@token.command("remove")
@click.argument("name")
def token_remove(name: str) -> int:
    """Revoke the token NAME; a running service notices at once.

    \b
    Example:  bailiwick serve token remove editor
    """
    _with_tokens(lambda tokens: tokens.remove(name))
    click.echo(f"removed {name}")
    return 0


def _with_tokens(do: Callable[[ApiTokens], Awaitable[T]]) -> T:
    from bailiwick.cli.stored import with_store
    from bailiwick.config.paths import find_paths

    state = find_paths().make_state()
    return with_store(state, lambda store: do(ApiTokens(store, state)))


async def _serve(given: dict[str, Any]) -> int:
    from bailiwick.app.service import open_app
    from bailiwick.cli.hosting import CODES, again
    from bailiwick.runtime.upgrade import execute_again
    from bailiwick.service.serving import UPGRADE

    flags = {f"service.{name}": given[name] for name in ("host", "port") if given[name] is not None}
    flags |= {"database": given["db"]} if given["db"] is not None else {}
    async with open_app(flags, _watch()) as app:
        why = await _served(app, _wanted(app, given))
    if why == UPGRADE:
        execute_again(again())
    return CODES.get(why, 0) if why == "SIGINT" else 0


def _wanted(app: App, given: dict[str, Any]) -> ServeOptions:
    from bailiwick.service.serving import ServeOptions

    get = app.config.get
    return ServeOptions(
        str(get("service.host")),
        int(get("service.port")),
        get("service.public_url"),
        anonymous=bool(given["allow_anonymous_loopback"]),
        concurrency=0 if given["no_worker"] else int(given["concurrency"]),
    )


async def _served(app: App, wanted: ServeOptions) -> str:
    from bailiwick.service.features import require_feature
    from bailiwick.service.ports import listen

    require_feature(app.config, "service")
    tokens = ApiTokens(app.store, app.config.paths.state)
    tokens.own()
    with listen(wanted.host, wanted.port) as listening:
        from bailiwick.service.serving import application, run_service, url_of

        served = application(app, tokens, wanted, _parts(app, wanted))
        url = url_of(wanted.host, listening)
        return await run_service(
            app, served, listening=listening, wanted=wanted, ready=lambda: _announce(tokens, wanted, url)
        )


def _parts(app: App, wanted: ServeOptions) -> tuple[Part, ...]:
    """What is served."""
    if not app.config.get("features.mcp"):
        return ()
    from bailiwick.service.mcp import http_part
    from bailiwick.service.offering import make_offer, skill_answerer

    roots = tuple(Path(one) for one in app.config.get("roots") or ())
    walk = (lambda _row: app.runtime.nudge()) if wanted.concurrency else _detach
    offer = make_offer(app, skill_answerer(app.skills, roots), walk)
    return (http_part(offer, most=wanted.limits.body),)


def _announce(tokens: ApiTokens, wanted: ServeOptions, url: str) -> None:
    """Say where we are and how to connect."""
    from bailiwick.service.hosts import is_loopback
    from bailiwick.service.serving import client_snippet

    click.echo(f"Serving at {url}   (Ctrl-C ends it)")
    click.echo(f"  MCP    {url}/mcp")
    click.echo(f"  token  {tokens.file}   (scope admin; others: bailiwick serve token add NAME --scope read)")
    click.echo(f"To connect:  export BW_TOKEN=$(cat {shlex.quote(str(tokens.file))})   and in .mcp.json:")
    click.echo(json.dumps(client_snippet(url), indent=2))
    if wanted.anonymous:
        click.echo("WARNING: --allow-anonymous-loopback: anybody on this machine can read without a token", err=True)
    if not is_loopback(wanted.host):
        what = (
            f"WARNING: {wanted.host} can be reached by others, and tokens travel unencrypted: put a TLS proxy in front"
        )
        click.echo(what, err=True)


@click.command()
@click.option("--project-root", metavar="DIR", help="The project; the current directory's repository if not given.")
def mcp(project_root: str | None) -> int:
    """Speak MCP on standard input and output, as an editor or an agent CLI starts it.

    \b
    Example:  bailiwick mcp          (`bailiwick init --mcp` writes it into .mcp.json)
    """
    from bailiwick.service.asgi_app import require_extra

    require_extra()
    if project_root is not None:
        try:
            os.chdir(project_root)
        except OSError as error:
            what = f"--project-root {project_root}: {error.strerror}"
            raise UsageError(what, hint="name the project's directory") from error
    from bailiwick.service.stdio import claimed

    with claimed() as (inlet, outlet):
        return asyncio.run(_pipe(inlet, outlet))


async def _pipe(inlet: int, outlet: int) -> int:
    """Greet the client before anything large is loaded, then serve it."""
    from bailiwick.config.service import load_config
    from bailiwick.service.features import require_feature
    from bailiwick.service.stdio import StdioTransport

    require_feature(load_config(Path.cwd(), {}), "mcp")
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, stop.set)
    wire = StdioTransport(inlet, outlet)
    await wire.greet(stop)
    if not stop.is_set():
        await _serve_pipe(wire, stop)
    await wire.finish()
    return 0


async def _serve_pipe(wire: StdioTransport, stop: asyncio.Event) -> None:
    from bailiwick.app.service import open_app
    from bailiwick.processes.proc import become_subreaper
    from bailiwick.service.mcp import build_server
    from bailiwick.service.offering import make_offer, skill_answerer
    from bailiwick.service.stdio import serve_pipe
    from bailiwick.skills.roots import current_root

    become_subreaper()
    async with open_app(None, _watch()) as app:
        roots = (await current_root(Path.cwd()),)
        offer = make_offer(app, skill_answerer(app.skills, roots), _detach)
        await serve_pipe(build_server(offer), wire, stop)


def _detach(row: Any) -> None:
    """Let a run go on in the background: it outlives the client that started it."""
    from bailiwick.processes.forked import start_background

    start_background([sys.executable, "-m", "bailiwick", "worker", "--until-idle", "--run", row.id])


def _watch() -> Any:
    """Trouble goes to standard error, with the run it is about."""
    from bailiwick.runtime.assemble import Watch
    from bailiwick.terminal.output import clean

    def trouble(run: str, text: str) -> None:
        click.echo(clean(f"{run}: {text}" if run else text), err=True)

    return Watch(trouble=trouble)
