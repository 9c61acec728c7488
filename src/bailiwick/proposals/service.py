"""The verbs of proposals: propose, publish, discard, reject. None of them merges, and none rewrites others' commits."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field, replace

from bailiwick import crashpoints
from bailiwick.config.repository import remote_name
from bailiwick.errors import BailiwickError, UsageError
from bailiwick.gate.model import GateReport
from bailiwick.git.runner import GitFailed
from bailiwick.proposals.consent import Decision, decide, scope_of
from bailiwick.proposals.document import ASKED, SAID
from bailiwick.proposals.forges.local import next_commands
from bailiwick.proposals.forges.port import Forge, ForgeAccess, ForgeFailed, PullDraft, PushTarget
from bailiwick.proposals.message import TITLE, UNFINISHED, ChangeOrigin, commit_message, subject
from bailiwick.proposals.model import (
    ChangeCost,
    Proposal,
    ProposalKind,
    Round,
    began,
    make_round,
    parse_issue,
    proposal_id,
)
from bailiwick.proposals.neutral import one_line, plain
from bailiwick.proposals.repository import RepositoryProposals

NOT_GREEN = "BW460"
OTHER_TREE = "BW461"
DEGRADED = "BW464"
NO_CHANGE = "BW465"
OVER = "BW466"
NOT_SIGNED = "BW468"
REASON = 4_000


class NotProposable(BailiwickError):
    """Make the gate green for exactly this change, then propose it again; nothing was written."""

    exit_code = 1
    default_code = NOT_GREEN


@dataclass(frozen=True, slots=True)
class ProposeAsk:
    """A change that is to be proposed. `when`: the run's time, so that the same change makes the same commit.

    `title` (the issue's stem), `asked` and `said` (the agent's words) are untrusted. `proposal` names the one that a
    further round goes on with.
    """

    run: str
    branch: str
    base: str
    tree: str
    title: str
    kind: ProposalKind
    when: float
    asked: str = ""
    said: str = ""
    issue: str = ""
    models: tuple[str, ...] = ()
    cost: ChangeCost = field(default_factory=ChangeCost)
    degraded: tuple[str, ...] = ()
    proposal: str = ""
    onto: str = ""


@dataclass(frozen=True, slots=True)
class ProposalOutcome:
    """A proposal and where it stands. `ask`: a person's consent is needed before it leaves; `commands` come next."""

    proposal: Proposal
    decision: Decision
    why: str
    commands: tuple[str, ...]

    @property
    def published(self) -> bool:
        """Whether people can see it on a forge."""
        return self.proposal.status == "published"


async def propose(ask: ProposeAsk, report: GateReport, repo: RepositoryProposals) -> ProposalOutcome:
    """Commit a gated tree, put the branch into the operator's repository, and publish it where that is allowed.

    Doing it again after a crash, or for the same run, changes nothing that is done. Raises `NotProposable`,
    `GitFailed` or `ForgeFailed`: what is local stays, the rest can be done again.
    """
    await _check(ask, report, repo)
    name = ask.proposal or proposal_id(ask.run)
    async with repo.store.held(name):
        proposal = await _committed(ask, report, repo, await repo.store.get(name))
        crashpoints.reach("proposal.noted")
        await _branched(proposal, ask, repo)
        crashpoints.reach("proposal.branched")
        return await _offered(proposal, repo)


async def _check(ask: ProposeAsk, report: GateReport, repo: RepositoryProposals) -> None:
    """Refuse what the gate did not pass, or did not see."""
    if report.verdict != "green":
        red = ", ".join(check.name for check in report.failing) or report.verdict
        raise NotProposable(f"the gate is not green: {red}", hint="fix what it found; only a green gate is proposed")
    if (report.tree, report.base) != (ask.tree, ask.base):
        what = "the gate looked at another tree or base than the one that is to be proposed"
        raise NotProposable(what, hint="run the gate on exactly this tree", code=OTHER_TREE)
    if ask.degraded:
        listed = ", ".join(ask.degraded)
        raise NotProposable(
            f"this work is degraded: defaults stand in for what {listed} could not give",
            hint="run these nodes again, or say `accept_defaulted: true` on each of them",
            code=DEGRADED,
        )
    if ask.tree == await repo.git_store.tree_of(ask.base):
        what = "nothing changed: no file, or only ignored ones"
        raise NotProposable(what, hint="there is nothing to propose", code=NO_CHANGE)


async def _committed(
    ask: ProposeAsk, report: GateReport, repo: RepositoryProposals, there: Proposal | None
) -> Proposal:
    """The proposal with its commit, durably noted; the commit there is if it is of the same gated tree."""
    if there is not None and not there.live:
        raise NotProposable(f"proposal {there.id} is {there.status}", hint="start a new run with --fresh", code=OVER)
    if there is None and ask.proposal:
        raise UsageError(f"there is no proposal '{ask.proposal}' to go on with", code="BW463")
    if there is not None and (there.tree, there.report) == (ask.tree, report.digest):
        return there
    settings = repo.settings
    origin = ChangeOrigin(
        ask.run,
        report=report.digest,
        models=ask.models,
        cost=ask.cost,
        signed_off_by=settings.author if settings.signoff else "",
    )
    message = repo.redact(commit_message(ask.kind, ask.title, origin))
    commit = await _commit(ask, message, repo)
    await repo.git_store.keep(ask.run, commit)
    crashpoints.reach("proposal.committed")

    def further(now: Proposal) -> Proposal:
        return _further(now, ask, report=report, repo=repo, commit=commit)

    made = _made(ask, report, repo, commit) if there is None else further(there)
    repo.audit(
        "proposal.made",
        {
            "proposal": made.id,
            "run": ask.run,
            "branch": made.branch,
            "commit": commit,
            "tree": made.tree,
            "base": ask.base,
            "report": made.report,
        },
    )
    return await repo.store.change(made.id, further, new=made)


def _made(ask: ProposeAsk, report: GateReport, repo: RepositoryProposals, commit: str) -> Proposal:
    now = repo.clock.now()
    issue = parse_issue(ask.issue)
    return Proposal(
        id=proposal_id(ask.run),
        run=ask.run,
        repository=str(repo.git_store.repository),
        branch=ask.branch,
        base=ask.base,
        commit=commit,
        tree=ask.tree,
        title=one_line(ask.title),
        kind=ask.kind,
        report=report.digest,
        created=now,
        updated=now,
        models=ask.models,
        cost=ask.cost,
        commits=(commit,),
        runs=(ask.run,),
        issue=str(issue) if issue else "",
        asked=repo.redact(ask.asked)[: 2 * ASKED],
        said=repo.redact(ask.said)[:SAID],
        onto=ask.onto,
    )


def _further(there: Proposal, ask: ProposeAsk, report: GateReport, repo: RepositoryProposals, commit: str) -> Proposal:
    """The same proposal one commit further: its base stays where the branch began."""
    if ask.branch != there.branch:
        raise UsageError(f"proposal {there.id} is on {there.branch}, not on {ask.branch}", code=OTHER_TREE)
    people = () if ask.base in (there.base, *there.commits, *there.people) else (ask.base,)
    return replace(
        there,
        commit=commit,
        tree=ask.tree,
        report=report.digest,
        updated=repo.clock.now(),
        said=repo.redact(ask.said)[:SAID] or there.said,
        models=tuple(dict.fromkeys((*there.models, *ask.models))),
        cost=_added(there, ask),
        commits=(*there.commits, *(() if commit in there.commits else (commit,))),
        people=(*there.people, *people),
        runs=tuple(dict.fromkeys((*there.runs, ask.run))),
    )


def _added(there: Proposal, ask: ProposeAsk) -> ChangeCost:
    """What all rounds cost together; one run counted twice would cost double."""
    if ask.run in there.runs:
        return ask.cost
    one, other = there.cost, ask.cost
    if one.usd is None and other.usd is None:
        return ChangeCost()
    partly = one.partly or other.partly or one.usd is None or other.usd is None
    return ChangeCost((one.usd or 0.0) + (other.usd or 0.0), partly, one.subscription or other.subscription)


async def _commit(ask: ProposeAsk, message: str, repo: RepositoryProposals) -> str:
    """Make the commit; one that should be signed and can't be is none."""
    settings = repo.settings
    try:
        return await repo.git_store.commit(
            ask.tree, (ask.base,), message, settings.author, when=ask.when, sign=settings.sign
        )
    except GitFailed as error:
        if not settings.sign:
            raise
        raise GitFailed(
            "git",
            f"the commit could not be signed: {error.what}",
            "check git's user.signingKey and gpg.format, or set commit.sign to false",
            code=NOT_SIGNED,
        ) from error


async def _branched(proposal: Proposal, ask: ProposeAsk, repo: RepositoryProposals) -> None:
    """Put the branch on the commit; where it stands elsewhere than we or a round's base left it, nothing is moved."""
    there = await repo.git_store.branch_value(proposal.branch)
    ours = (ask.base, *proposal.commits, *proposal.people)
    known = there in ours or (there is not None and await _is_unfinished(there, ours, repo))
    await repo.git_store.branch(proposal.branch, proposal.commit, expect=there if known else None)


async def _is_unfinished(commit: str, parents: tuple[str, ...], repo: RepositoryProposals) -> bool:
    """Whether a commit is what an earlier round of ours left when it gave up."""
    git_store = repo.git_store
    await git_store.resolve(commit)
    raw = await git_store.git.out("cat-file", "commit", commit, call=git_store.call())
    head, _, message = raw.decode("utf-8", "replace").partition("\n\n")
    below = [line.partition(" ")[2] for line in head.split("\n") if line.startswith("parent ")]
    by_us = f"\ncommitter {repo.settings.author} " in head
    return by_us and message.startswith(f"{UNFINISHED}\n") and len(below) == 1 and below[0] in parents


async def _offered(proposal: Proposal, repo: RepositoryProposals) -> ProposalOutcome:
    """Publish, or say why it stays here and what to do."""
    settings = repo.settings
    if settings.site is None:
        return _stays(proposal, "keep", settings.why_local)
    decision = decide(settings.mode, await repo.consent())
    if decision == "keep":
        return _stays(proposal, decision, "publish.mode is never")
    if decision == "ask":
        what = f"nobody has approved yet that {scope_of(draft=settings.draft)} are opened at {settings.site.full_name}"
        return _stays(proposal, decision, what)
    return await _sent(proposal, repo)


async def _sent(proposal: Proposal, repo: RepositoryProposals) -> ProposalOutcome:
    forge = repo.settings.open_forge()
    try:
        sent = await _published(proposal, repo, forge)
    finally:
        await forge.close()
    return ProposalOutcome(sent, "publish", f"open at {sent.url}", (f"bailiwick proposals follow {sent.id}",))


async def _published(proposal: Proposal, repo: RepositoryProposals, forge: Forge) -> Proposal:
    """Pushes a proposal if the branch is ours, then opens the pull request or updates it; never merges or forces.

    The caller holds its lock and has somebody's consent. Each step may be done again after a crash: a commit that is
    there is not pushed, a pull request that is there is updated.
    """
    access = await forge.check_access()
    if access.can_push is False:
        raise ForgeFailed(
            "permission",
            f"{access.user or 'this token'} may not push to {forge.site.full_name}",
            hint="give it write access, or set publish.push_to to fork",
        )
    repo.audit(
        "proposal.publish",
        {
            "proposal": proposal.id,
            "to": forge.site.full_name,
            "branch": proposal.branch,
            "commit": proposal.commit,
            "as": access.user,
        },
    )
    proposal = await _pushed(proposal, repo, await forge.push_target(), forge.site.full_name)
    return await _opened(proposal, repo, forge, access)


async def _pushed(proposal: Proposal, repo: RepositoryProposals, target: PushTarget, where: str) -> Proposal:
    """Push the commit, unless it is there; what is noted first is what may have happened."""
    remote = repo.remote(target)
    there = await repo.git_store.remote_branch(remote, proposal.branch)
    if there is not None and there not in (proposal.commit, *proposal.pushed, *proposal.people):
        raise ForgeFailed(
            "conflict",
            f"somebody pushed to {proposal.branch} at {where}; nothing was replaced",
            hint=f"build upon it: bailiwick proposals follow {proposal.id}",
        )
    commit = proposal.commit
    noted = await repo.store.change(
        proposal.id, lambda now: replace(now, pushed=tuple(dict.fromkeys((*now.pushed, commit))))
    )
    if there != commit:
        await repo.git_store.push(remote, commit, proposal.branch, expect=there)
        crashpoints.reach("proposal.pushed")
    return noted


async def _opened(proposal: Proposal, repo: RepositoryProposals, forge: Forge, access: ForgeAccess) -> Proposal:
    settings = repo.settings
    onto = proposal.onto or settings.base.removeprefix("origin/") or await forge.default_branch()
    title = plain(subject(proposal.kind, proposal.title), TITLE)
    body = await repo.document(proposal, access)
    wanted = PullDraft(
        proposal.branch, base=onto, title=repo.redact(title), body=body, draft=settings.draft, labels=settings.labels
    )
    pull = await forge.open_or_update(wanted)
    crashpoints.reach("proposal.opened")

    def opened(now: Proposal) -> Proposal:
        return replace(
            now,
            status="published",
            forge=forge.site.forge,
            url=pull.url,
            number=pull.number,
            onto=onto,
            notes=tuple(dict.fromkeys((*now.notes, *pull.notes))),
            updated=repo.clock.now(),
        )

    return await repo.store.change(proposal.id, opened)


def _stays(proposal: Proposal, decision: Decision, why: str) -> ProposalOutcome:
    """Where it stays here: how to look, how to push by hand, and what gives the consent."""
    more = (f"bailiwick proposals publish {proposal.id} --yes",) if decision == "ask" else ()
    return ProposalOutcome(proposal, decision, why, (*next_commands(proposal), *more))


async def publish(name: str, repo: RepositoryProposals, *, consent: bool) -> ProposalOutcome:
    """Publish a proposal; with `consent` the person's word is recorded first and holds for later ones too."""
    settings = repo.settings
    async with repo.store.held(name):
        proposal = await _live(repo, name)
        if settings.mode == "never":
            raise UsageError("publish.mode is never", hint="`bailiwick config show publish.mode --origin`", code=OVER)
        if consent and settings.site is not None and settings.mode == "ask":
            scope = scope_of(draft=settings.draft)
            await repo.consents.give(
                settings.site.full_name, settings.site.forge, scope=scope, by=repo.by, audit=repo.audit
            )
        if settings.site is None:
            settings.open_forge()
        return await _offered(proposal, repo)


@dataclass(frozen=True, slots=True)
class Discarded:
    """A proposal that was given up, and what is left for a person to do."""

    proposal: Proposal
    lines: tuple[str, ...]


async def discard(name: str, repo: RepositoryProposals) -> Discarded:
    """Give a proposal up: its branch goes if it is still ours, its worktrees go, nothing happens on a forge."""
    async with repo.store.held(name):
        proposal = await _live(repo, name, also=("rejected", "closed"))
        repo.audit("proposal.discard", {"proposal": proposal.id, "branch": proposal.branch})
        lines = [await _dropped(proposal, repo)]
        for run in proposal.runs or (proposal.run,):
            await _remove_worktree(repo, run)
            await repo.git_store.release(run)
        if proposal.status == "published":
            lines.append(f"the pull request is still open: close it at {proposal.url}")
            where = remote_name(repo.git_store.repository)
            how = f": git push {shlex.quote(where)} --delete {shlex.quote(proposal.branch)}" if where else ""
            lines.append(f"the pushed branch is still there{how}")
        over = await repo.store.change(
            proposal.id, lambda now: replace(now, status="discarded", updated=repo.clock.now())
        )
    return Discarded(over, tuple(lines))


async def _dropped(proposal: Proposal, repo: RepositoryProposals) -> str:
    there = await repo.git_store.branch_value(proposal.branch)
    if there is None:
        return f"branch {proposal.branch} was gone already"
    if there not in proposal.commits:
        return f"branch {proposal.branch} has commits that are not ours; it was kept"
    await repo.git_store.delete_branch(proposal.branch, expect=there)
    return f"branch {proposal.branch} deleted (it was at {there[:12]})"


async def _remove_worktree(repo: RepositoryProposals, run: str) -> None:
    from bailiwick.git.worktrees import Worktrees

    worktrees = Worktrees(repo.state, repo.clock)
    found = await worktrees.find(run)
    if found is not None:
        await worktrees.remove(found)


async def reject(name: str, because: str, repo: RepositoryProposals, *, rework: bool) -> tuple[Proposal, Round | None]:
    """Record why a person does not want it; with `rework` the proposal stays and asks for a further round."""
    words = because.strip()[:REASON]
    if not words:
        raise UsageError("a rejection needs its reason", hint='--because "what is wrong with it"', code="BW469")
    async with repo.store.held(name):
        proposal = await _live(repo, name)
        repo.audit("proposal.reject", {"proposal": proposal.id, "because": repo.redact(words), "rework": rework})

        def rejected(now: Proposal) -> Proposal:
            said = replace(now, reasons=(*now.reasons, repo.redact(words)), updated=repo.clock.now())
            return said if rework else replace(said, status="rejected")

        if not rework:
            return await repo.store.change(proposal.id, rejected), None
        head = await repo.git_store.branch_value(proposal.branch)
        base = await repo.git_store.resolve(head) if head else proposal.commit
        said = await repo.store.change(proposal.id, rejected)
        return said, make_round(said, base, [("rejected", words)])


async def begin_round(one: Round, repo: RepositoryProposals) -> bool:
    """Note that a round starts; False where it was started before, or its proposal is over: then don't."""
    async with repo.store.held(one.proposal):
        if await repo.store.get(one.proposal) is None:
            return False
        first = False

        def begun(now: Proposal) -> Proposal:
            nonlocal first
            first = now.live and one.key not in now.handled
            if not first:
                return now
            people = () if one.base in (now.base, *now.commits, *now.people) else (one.base,)
            return replace(began(now, one, repo.clock.now()), people=(*now.people, *people))

        await repo.store.change(one.proposal, begun)
    return first


async def _live(repo: RepositoryProposals, name: str, also: tuple[str, ...] = ()) -> Proposal:
    proposal = await repo.store.named(name)
    if not proposal.live and proposal.status not in also:
        raise UsageError(f"proposal {proposal.id} is {proposal.status}", hint="`bailiwick proposals list`", code=OVER)
    return proposal
