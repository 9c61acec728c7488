"""`bailiwick brain`: ask, write, look at notes, and say which of them hold."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import click

from bailiwick.brain.model import GLOBAL, LIVE, MAX_BYTES, STATUSES, FoundNote, Note, Status, one_line, printable
from bailiwick.brain.service import Brain, Saved, scope_of
from bailiwick.cli.printing import JSON
from bailiwick.clock import SystemClock, local
from bailiwick.config.person import person, require_person
from bailiwick.config.service import Config, load_config
from bailiwick.config.variables import Environment
from bailiwick.errors import NotFound, UsageError
from bailiwick.secrets.service import KnownSecrets
from bailiwick.terminal.output import counted, emit_json

NO_SCOPE = "BW577"
_SHOWN = 8
SCOPE = click.option(
    "--scope", metavar="S", help="`global` or a project's; this project's and global ones if not given."
)
ALL_SCOPES = click.option("--all-scopes", is_flag=True, help="The notes of every project.")
IDS = click.argument("ids", nargs=-1, required=True, metavar="ID…")


@click.group(invoke_without_command=True)
@click.pass_context
def brain(ctx: click.Context) -> int:
    """What was learned, as notes with their origin. Approved ones go into briefs. Without a command: the list."""
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_, status=(), scope=None, all_scopes=False, limit=50, as_json=False)
    return 0


@brain.command()
@click.argument("text", nargs=-1, required=True)
@SCOPE
@ALL_SCOPES
@click.option("--limit", type=click.IntRange(1, 100), default=_SHOWN, help="How many at most.")
@JSON
def query(text: tuple[str, ...], scope: str | None, all_scopes: bool, limit: int, as_json: bool) -> int:
    """Find notes by words, the best first; pending ones are said to be.

    \b
    Example:  bailiwick brain query rounding of prices
    """

    async def go(one: Brain, config: Config) -> int:
        chosen = None if all_scopes else await _scope(one, config, scope)
        found = await one.query(" ".join(text), chosen, limit)
        if as_json:
            emit_json({"notes": [note.to_json() for note in found]})
            return 0
        for note in found:
            _say(_headline(note))
            _say(f"    {one_line(note.note.text, 160)}")
        if not found:
            _say("No note has these words.")
        return 0

    return _with_brain(go)


@brain.command()
@click.argument("text", nargs=-1)
@click.option("--title", default="", help="Its title; the first line if not given.")
@click.option("--type", "kind", default="note", help="A word such as lesson or decision.")
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="A word to find it by (repeatable).")
@click.option("--scope", metavar="S", help="`global` or a project's; this project's if not given.")
@click.option("--approve", "approved", is_flag=True, help="You have read it: it may go into briefs.")
@JSON
def write(text: tuple[str, ...], title: str, kind: str, tags: tuple[str, ...], scope: str | None, **flags: bool) -> int:
    """File a note: TEXT, or standard input for `-`. What you type at a terminal is approved, anything else waits.

    \b
    Examples:
      bailiwick brain write --tag money "Prices are rounded half to even."
      bailiwick brain write --title "How releases work" - < notes.md
    """
    run = Environment().inside_run()
    if flags["approved"]:
        require_person()
    mine = run is None and (flags["approved"] or (sys.stdin.isatty() and sys.stdout.isatty()))
    said = _read() if text in ((), ("-",)) else " ".join(text)

    async def go(one: Brain, config: Config) -> int:
        chosen = await _scope(one, config, scope)
        status: Status = "approved" if mine else "pending"
        source = f"run {run}" if run else f"by {person()}"
        saved = await one.file(
            Note("", title=title, text=said, type=kind, tags=tags, scope=chosen, source=source, status=status)
        )
        return _tell(saved, as_json=flags["as_json"])

    return _with_brain(go)


@brain.command("list")
@click.option("--status", type=click.Choice(STATUSES), multiple=True, help="Only these (repeatable).")
@SCOPE
@ALL_SCOPES
@click.option("--limit", type=click.IntRange(1), default=50, help="How many at most.")
@JSON
def list_(status: tuple[Status, ...], scope: str | None, all_scopes: bool, limit: int, as_json: bool) -> int:
    """List notes, the newest first: approved and pending ones, unless --status says otherwise.

    \b
    Example:  bailiwick brain list --status pending --all-scopes
    """

    async def go(one: Brain, config: Config) -> int:
        chosen = None if all_scopes else await _scope(one, config, scope)
        found = await one.list(chosen, status or LIVE, limit)
        if as_json:
            emit_json({"notes": [note.to_json() for note in found]})
            return 0
        for note in found:
            _say(_headline(note))
        if not found:
            _say('No notes.  Write one:  bailiwick brain write "…"')
        return 0

    return _with_brain(go)


@brain.command()
@click.argument("name", metavar="ID")
@JSON
def show(name: str, as_json: bool) -> int:
    """Show one note whole, with where it comes from.

    \b
    Example:  bailiwick brain show n-3f2a9c1d
    """

    async def go(one: Brain, config: Config) -> int:
        found = await one.get(name)
        if as_json:
            emit_json(found.to_json())
            return 0
        note = found.note
        facts = {
            "id": note.id,
            "status": note.status,
            "type": note.type,
            "scope": note.scope or "(unreadable)",
            "tags": ", ".join(note.tags),
            "source": note.source,
            "created": local(note.created),
            "updated": local(note.updated),
            "superseded by": note.superseded_by,
            "file": str(one.folder.root / note.path),
            "commit": found.commit or "not committed",
        }
        _say(one_line(note.title))
        for label, value in facts.items():
            if value:
                _say(f"  {label:13}  {one_line(value, 4096)}")
        _say(f"\n{note.text}")
        return 0

    return _with_brain(go)


@brain.command()
@IDS
@JSON
def approve(ids: tuple[str, ...], as_json: bool) -> int:
    """Approve notes: from now on they may go into briefs. Read them first: brain show ID.

    \b
    Example:  bailiwick brain approve n-3f2a9c1d
    """
    return _set(ids, "approved", as_json=as_json)


@brain.command()
@IDS
@JSON
def reject(ids: tuple[str, ...], as_json: bool) -> int:
    """Reject notes; the same as `stale`.

    \b
    Example:  bailiwick brain reject n-3f2a9c1d
    """
    return _set(ids, "stale", as_json=as_json)


@brain.command()
@IDS
@JSON
def stale(ids: tuple[str, ...], as_json: bool) -> int:
    """Mark notes as out of date: no query finds them unless it asks for them.

    \b
    Example:  bailiwick brain stale n-3f2a9c1d
    """
    return _set(ids, "stale", as_json=as_json)


@brain.command()
@click.argument("old")
@click.argument("new")
@JSON
def supersede(old: str, new: str, as_json: bool) -> int:
    """Replace the note OLD by the note NEW.

    \b
    Example:  bailiwick brain supersede n-3f2a9c1d n-77e01b2c
    """
    require_person()

    async def go(one: Brain, config: Config) -> int:
        return _tell(await one.supersede(old, new, person()), as_json=as_json)

    return _with_brain(go)


@brain.command()
@JSON
def reindex(as_json: bool) -> int:
    """Throw the index away and make it again from the files. That is never necessary, and never wrong.

    \b
    Example:  bailiwick brain reindex
    """

    async def go(one: Brain, config: Config) -> int:
        number = await one.reindex()
        if as_json:
            emit_json({"notes": number, "index": str(one.index.file)})
        else:
            _say(f"{counted(number, 'note')} in {one.folder.root}")
        return 0

    return _with_brain(go)


@brain.command()
def path() -> int:
    """Print the folder of the notes: a git repository that you may edit, push and pull.

    \b
    Example:  cd "$(bailiwick brain path)"
    """

    async def go(one: Brain, config: Config) -> int:
        click.echo(one.folder.root)
        return 0

    return _with_brain(go)


def _set(ids: tuple[str, ...], status: Status, *, as_json: bool) -> int:
    require_person()

    async def go(one: Brain, config: Config) -> int:
        saved = await one.set_status(ids, status, person())
        if not saved.notes and not as_json:
            _say(f"They are {status} already.")
        return _tell(saved, as_json=as_json)

    return _with_brain(go)


def _tell(saved: Saved, *, as_json: bool) -> int:
    if as_json:
        told = {"commit": saved.commit, "owed": saved.owed, "unposted": saved.unposted}
        emit_json({"notes": [note.to_json() for note in saved.notes], **told})
        return 0
    for note in saved.notes:
        after = f"  approve it:  bailiwick brain approve {note.id}" if note.status == "pending" else ""
        _say(f"{note.id}  {note.status}  {one_line(note.title, 60)}{after}")
    if saved.owed:
        _say(f"note: it is written, and will be committed with the next change: {saved.owed}")
    if saved.unposted:
        _say(f"note: it is written, but brain.ingest_url did not take it: {saved.unposted}")
    return 0


def _headline(found: FoundNote) -> str:
    note = found.note
    source = f"  {one_line(note.source, 40)}" if note.source else ""
    commit = f"  {found.commit[:10]}" if found.commit else ""
    when = local(note.updated)[:10]
    return f"{note.id}  {note.status:10}  {when}  {note.scope}  {one_line(note.title, 60)}{source}{commit}"


async def _scope(one: Brain, config: Config, given: str | None) -> str:
    """The scope that is meant: this project's if none is named; a name may be cut short."""
    here = scope_of(config.repository.root if config.repository else None)
    if given in (None, "here"):
        return here
    known = dict.fromkeys((GLOBAL, here, *await one.scopes()))
    found = [scope for scope in known if scope == given] or [scope for scope in known if scope.startswith(str(given))]
    if len(found) == 1:
        return found[0]
    raise NotFound(
        f"there is no scope '{one_line(str(given), 64)}'",
        hint=", ".join([scope for scope in known if scope][:8]),
        code=NO_SCOPE,
    )


def _with_brain(go: Callable[[Brain, Config], Awaitable[int]]) -> int:
    async def run() -> int:
        config = load_config(Path.cwd(), {})
        one = Brain.open(config, SystemClock())
        one.redact = KnownSecrets.of(config).text
        try:
            return await go(one, config)
        finally:
            one.close()

    return asyncio.run(run())


def _read() -> str:
    raw = sys.stdin.buffer.read(4 * MAX_BYTES)
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(
            f"standard input is not UTF-8 at byte {error.start}", hint="convert it", code="BW570"
        ) from error


def _say(text: str) -> None:
    click.echo(printable(text))
