"""`bailiwick proposals`: list, show, diff, checkout, publish, discard, reject, follow, consent. No command merges."""

from __future__ import annotations

import asyncio
import shlex
import sys
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path

import click

from bailiwick.audit.service import append
from bailiwick.cli.printing import JSON
from bailiwick.cli.stored import with_store
from bailiwick.clock import SystemClock, local
from bailiwick.config.person import person, require_person
from bailiwick.config.service import Config, load_config
from bailiwick.errors import NotFound, NotReady
from bailiwick.git.names import shown
from bailiwick.ids import Json
from bailiwick.journal.port import Store
from bailiwick.proposals.checkout import check_out
from bailiwick.proposals.consent import Consents, scope_of
from bailiwick.proposals.follow import ROUNDS, Look, look
from bailiwick.proposals.forges.local import next_commands
from bailiwick.proposals.model import Proposal, Round
from bailiwick.proposals.neutral import one_line, printable
from bailiwick.proposals.nodes import document_of, spoken
from bailiwick.proposals.repository import RepositoryProposals, open_repository
from bailiwick.proposals.service import discard as discard_now
from bailiwick.proposals.service import publish as publish_now
from bailiwick.proposals.service import reject as reject_now
from bailiwick.proposals.store import ProposalStore
from bailiwick.terminal.output import emit_json

WAITS = 3
EVERY = 60.0
"""Seconds between two looks of `follow`."""
_WORDS = {"open": "here only", "published": "published"}


@click.group(invoke_without_command=True)
@click.option("--all", "everything", is_flag=True, help="Also those that are over.")
@JSON
@click.pass_context
def proposals(ctx: click.Context, *, everything: bool, as_json: bool) -> int:
    """Changes that passed the gate and wait for people. Without a command: the list."""
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_, everything=everything, as_json=as_json)
    return 0


@proposals.command("list")
@click.option("--all", "everything", is_flag=True, help="Also those that are over.")
@JSON
def list_(everything: bool, as_json: bool) -> int:
    """List proposals, newest first.

    \b
    Example:  bailiwick proposals list --all
    """
    state = _state()
    there = with_store(state, lambda store: ProposalStore(store, state).all())
    found = [one for one in there if everything or one.live]
    if as_json:
        emit_json({"proposals": [one.to_json() for one in found]})
        return 0
    for one in found:
        where = one.url or _WORDS.get(one.status, one.status)
        _say(f"{one.id}  {one.status:9}  {local(one.created)}  {one.branch}  {one_line(one.title, 60)}  {where}")
    if not found:
        _say("No proposals wait.  Make one:  bailiwick issue-to-pr ISSUE")
    return 0


@proposals.command()
@click.argument("proposal", required=False)
@click.option("--diff", "with_diff", is_flag=True, help="Also the change itself.")
@JSON
def show(proposal: str | None, with_diff: bool, as_json: bool) -> int:
    """Show PROPOSAL (the newest one if left out): what was asked, the evidence, what was reverted, how to undo it.

    \b
    Example:  bailiwick proposals show 3f2a --diff
    """

    async def go(repo: RepositoryProposals, one: Proposal) -> int:
        text = await repo.document(one)
        change = await repo.git_store.diff(one.base, one.commit) if with_diff else ""
        if as_json:
            more = {"diff": change} if with_diff else {}
            emit_json({**one.to_json(), "document": text, "next_commands": list(next_commands(one)), **more})
            return 0
        _say(text)
        if with_diff:
            _say(change)
        for command in next_commands(one) if one.live else ():
            _say(command)
        return 0

    return _with_desk(proposal, go)


@proposals.command()
@click.argument("proposal", required=False)
@click.option("--stat", is_flag=True, help="Only the files, with lines added and removed.")
@JSON
def diff(proposal: str | None, stat: bool, as_json: bool) -> int:
    """Print the change of PROPOSAL (the newest one if left out), as it passed the gate.

    \b
    Example:  bailiwick proposals diff 3f2a --stat
    """

    async def go(repo: RepositoryProposals, one: Proposal) -> int:
        files = await repo.git_store.changes(one.base, one.commit)
        change = "" if stat else repo.redact(await repo.git_store.diff(one.base, one.commit))
        if as_json:
            rows = [{"path": f.path, "status": f.status, "added": f.added, "deleted": f.deleted} for f in files]
            emit_json({"id": one.id, "branch": one.branch, "base": one.base, "files": rows, "diff": change})
            return 0
        for f in files if stat else ():
            _say(f"{shown(f.path)}  +{f.added or 0} −{f.deleted or 0}")
        if change:
            _say(change.rstrip("\n"))
        return 0

    return _with_desk(proposal, go)


@proposals.command()
@click.argument("proposal")
@click.option("--into", metavar="DIR", help="Where to; default: a new directory beside the repository.")
@JSON
def checkout(proposal: str, into: str | None, as_json: bool) -> int:
    """Check the branch of PROPOSAL out into a work tree of its own; your own files stay as they are.

    \b
    Example:  bailiwick proposals checkout 3f2a --into ../try-it
    """

    async def go(repo: RepositoryProposals, one: Proposal) -> int:
        folder = await check_out(one, repo, Path(into) if into else None)
        command = f"git worktree remove {shlex.quote(str(folder))}"
        if as_json:
            emit_json({"id": one.id, "branch": one.branch, "directory": str(folder), "undo": command})
            return 0
        _say(f"{one.branch} is checked out in {folder}")
        _say(f"  look at it:  cd {shlex.quote(str(folder))}")
        _say(f"  remove it:   {command}")
        return 0

    return _with_desk(proposal, go)


@proposals.command()
@click.argument("proposal")
@click.option("--yes", is_flag=True, help="You consent, for later proposals of this repository too (90 days).")
@JSON
def publish(proposal: str, yes: bool, as_json: bool) -> int:
    """Push PROPOSAL and open its draft pull request. The first time you are asked for your consent.

    \b
    Example:  bailiwick proposals publish 3f2a --yes
    """
    require_person()

    async def go(repo: RepositoryProposals, one: Proposal) -> int:
        consent = yes or await _asked(repo)
        outcome = await publish_now(one.id, repo, consent=consent)
        if as_json:
            emit_json(document_of(outcome))
        else:
            _say(spoken(outcome))
            for note in outcome.proposal.notes:
                _say(f"note: {note}")
        return WAITS if outcome.decision == "ask" else 0

    return _with_desk(proposal, go)


@proposals.command()
@click.argument("proposal")
@JSON
def discard(proposal: str, as_json: bool) -> int:
    """Give PROPOSAL up: its branch goes if it is still ours. Nothing is done on a forge.

    \b
    Example:  bailiwick proposals discard 3f2a
    """

    async def go(repo: RepositoryProposals, one: Proposal) -> int:
        over = await discard_now(one.id, repo)
        if as_json:
            emit_json({**over.proposal.to_json(), "lines": list(over.lines)})
        for line in () if as_json else over.lines:
            _say(line)
        return 0

    return _with_desk(proposal, go)


@proposals.command()
@click.argument("proposal")
@click.option("--because", required=True, metavar="TEXT", help="What is wrong with it.")
@click.option("--rework", is_flag=True, help="The agent tries once more on the same branch, with your words.")
@JSON
def reject(proposal: str, because: str, rework: bool, as_json: bool) -> int:
    """Say that PROPOSAL is not wanted, and why.

    \b
    Example:  bailiwick proposals reject 3f2a --because "breaks the API" --rework
    """
    require_person()

    async def go(repo: RepositoryProposals, one: Proposal) -> int:
        over, asked = await reject_now(one.id, because, repo, rework=rework)
        if as_json:
            emit_json({**over.to_json(), "round": asked.to_json() if asked else None})
        elif asked is None:
            _say(f"{over.id} rejected; its branch is still there: bailiwick proposals discard {over.id}")
        return await _start(asked, one) if asked else 0

    return _with_desk(proposal, go)


@proposals.command()
@click.argument("proposal", required=False)
@click.option("--once", is_flag=True, help="Look once instead of every minute.")
@click.option("--rounds", type=click.IntRange(0, 20), default=ROUNDS, help="Further rounds that one proposal gets.")
@JSON
def follow(proposal: str | None, once: bool, rounds: int, as_json: bool) -> int:
    """Look after published proposals: failing CI or review comments start a bounded new round on the same branch.

    \b
    Example:  bailiwick proposals follow --once
    """
    go = partial(_follow, proposal, once=once or as_json, most=rounds, as_json=as_json)
    return with_store(_state(), go)


@proposals.group()
def consent() -> None:
    """Who allowed proposals to be published, where and until when. `publish --yes` gives consent."""


@consent.command("list")
@JSON
def list_consents(as_json: bool) -> int:
    """List the consents that were given and not revoked.

    \b
    Example:  bailiwick proposals consent list
    """
    state = _state()
    found = with_store(state, lambda store: Consents(store, state, SystemClock()).all())
    if as_json:
        emit_json({"consents": [asdict(one) for one in found]})
        return 0
    now = SystemClock().now()
    for one in found:
        ends = "until" if now < one.expires else "expired"
        _say(f"{one.repository}  {one.scope}  by {one.by}, {local(one.at)}, {ends} {local(one.expires)}")
    if not found:
        _say("No consents.  Give one:  bailiwick proposals publish PROPOSAL --yes")
    return 0


@consent.command()
@click.argument("repository")
@JSON
def revoke(repository: str, as_json: bool) -> int:
    """Revoke the consent for REPOSITORY (host/owner/name). What is published already stays as it is.

    \b
    Example:  bailiwick proposals consent revoke github.com/acme/shop
    """
    require_person()
    state, clock = _state(), SystemClock()
    audit = partial(append, state, actor=person(), clock=clock)
    gone = with_store(state, lambda store: Consents(store, state, clock).revoke(repository, audit))
    if as_json:
        emit_json({"revoked": [asdict(one) for one in gone]})
    for one in () if as_json else gone:
        _say(f"revoked: {one.scope} at {one.repository}; proposals stay here until somebody consents again")
    return 0


async def _follow(name: str | None, journal: Store, *, once: bool, most: int, as_json: bool) -> int:
    store = ProposalStore(journal, _state())
    while True:
        chosen = [await store.named(name)] if name else [one for one in await store.all() if one.status == "published"]
        looks = [await _look(one, journal, most, alone=name is not None and once) for one in chosen]
        code = max((code for _, code in looks), default=0)
        if as_json:
            emit_json({"proposals": [_row(seen) for seen, _ in looks]})
            return code
        for seen, _ in looks:
            for line in seen.lines:
                _say(f"{seen.proposal.id}  {line}")
            code = (await _start(seen.round, seen.proposal) if seen.round else 0) or code
        if once or not any(seen.proposal.status == "published" for seen, _ in looks):
            return code
        await asyncio.sleep(EVERY)


def _row(seen: Look) -> Json:
    asked = seen.round.to_json() if seen.round else None
    return {**seen.proposal.to_json(), "lines": list(seen.lines), "round": asked}


async def _look(one: Proposal, journal: Store, most: int, *, alone: bool) -> tuple[Look, int]:
    """One look and its exit code; among several a proposal that can't be looked at doesn't keep us from the others."""
    try:
        repo = await _desk(one, journal)
        forge = repo.settings.open_forge()
        try:
            return await look(one.id, repo, forge, most=most), 0
        finally:
            await forge.close()
    except NotReady as error:
        if alone:
            raise
        return Look(one, (f"{error.what}; {error.hint}" if error.hint else error.what,)), error.exit_code


async def _start(asked: Round, one: Proposal) -> int:
    """Start a further round of a proposal."""
    from bailiwick.cli.pipelines.rounds import start_round

    return await start_round(asked, _config(Path(one.repository)))


def _with_desk(name: str | None, go: Callable[[RepositoryProposals, Proposal], Awaitable[int]]) -> int:
    """Find a proposal and do something at the desk of its repository."""

    async def run(journal: Store) -> int:
        store = ProposalStore(journal, _state())
        one = await store.named(name) if name is not None else next(iter(await store.all()), None)
        if one is None:
            raise NotFound("there is no proposal yet", hint="bailiwick issue-to-pr ISSUE makes one")
        return await go(await _desk(one, journal), one)

    return with_store(_state(), run)


async def _desk(one: Proposal, journal: Store) -> RepositoryProposals:
    repository = Path(one.repository)
    return await open_repository(_config(repository), repository, journal, SystemClock(), by=person())


def _config(where: Path) -> Config:
    return load_config(where, {})


def _state() -> Path:
    return _config(Path.cwd()).paths.make_state()


async def _asked(repo: RepositoryProposals) -> bool:
    """Ask the person at the terminal, once per repository; nobody there is a no."""
    site = repo.settings.site
    needed = site is not None and repo.settings.mode == "ask" and await repo.consent() is None
    if not needed or site is None or not (sys.stdin.isatty() and sys.stdout.isatty()):
        return False
    what = scope_of(draft=repo.settings.draft)
    return click.confirm(f"May {what} be opened at {site.full_name}, for the next 90 days?", default=False)


def _say(text: str) -> None:
    click.echo(printable(text))
