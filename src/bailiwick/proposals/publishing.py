"""A proposal goes to its forge: pushed if the branch is ours, then one draft pull request. Never merged, never forced.

Each step may be done again after a crash: a commit that is there is not pushed, a pull request that is there is
updated.
"""

from __future__ import annotations

from dataclasses import replace

from bailiwick import crashpoints
from bailiwick.proposals.desk import RepositoryProposals
from bailiwick.proposals.forges.port import Forge, ForgeAccess, ForgeFailed, PullDraft, PushTarget
from bailiwick.proposals.message import TITLE, subject
from bailiwick.proposals.model import Proposal
from bailiwick.proposals.neutral import plain


async def publish(proposal: Proposal, desk: RepositoryProposals, forge: Forge) -> Proposal:
    """Push a proposal and open or update its pull request; the caller holds its lock and has somebody's consent."""
    access = await forge.check_access()
    if access.can_push is False:
        raise ForgeFailed(
            "permission",
            f"{access.user or 'this token'} may not push to {forge.site.full_name}",
            hint="give it write access, or set publish.push_to to fork",
        )
    desk.audit(
        "proposal.publish",
        {
            "proposal": proposal.id,
            "to": forge.site.full_name,
            "branch": proposal.branch,
            "commit": proposal.commit,
            "as": access.user,
        },
    )
    proposal = await _pushed(proposal, desk, await forge.push_target(), forge.site.full_name)
    return await _opened(proposal, desk, forge, access)


async def _pushed(proposal: Proposal, desk: RepositoryProposals, target: PushTarget, where: str) -> Proposal:
    """Push the commit, unless it is there; what is noted first is what may have happened."""
    login = desk.login(target)
    there = await desk.vault.remote_branch(target.url, proposal.branch, **login)
    if there is not None and there not in (proposal.commit, *proposal.pushed, *proposal.people):
        raise ForgeFailed(
            "conflict",
            f"somebody pushed to {proposal.branch} at {where}; nothing was replaced",
            hint=f"build upon it: bailiwick proposals follow {proposal.id}",
        )
    noted = desk.store.save(replace(proposal, pushed=_with(proposal.pushed, proposal.commit)))
    if there != proposal.commit:
        await desk.vault.push(target.url, proposal.commit, proposal.branch, expect=there, **login)
        crashpoints.reach("proposal.pushed")
    return noted


async def _opened(proposal: Proposal, desk: RepositoryProposals, forge: Forge, access: ForgeAccess) -> Proposal:
    settings = desk.settings
    onto = proposal.onto or settings.base.removeprefix("origin/") or await forge.default_branch()
    title = plain(subject(proposal.kind, proposal.title), TITLE)
    body = await desk.document(proposal, access)
    wanted = PullDraft(
        proposal.branch, base=onto, title=desk.redact(title), body=body, draft=settings.draft, labels=settings.labels
    )
    pull = await forge.open_or_update(wanted)
    crashpoints.reach("proposal.opened")
    notes = tuple(dict.fromkeys((*proposal.notes, *pull.notes)))
    return desk.store.save(
        replace(
            proposal,
            status="published",
            forge=forge.site.forge,
            url=pull.url,
            number=pull.number,
            onto=onto,
            notes=notes,
            updated=desk.clock.now(),
        )
    )


def _with(items: tuple[str, ...], item: str) -> tuple[str, ...]:
    return items if item in items else (*items, item)
