"""Looking after published proposals: what people and their CI said, and the further round that it asks for.

Comments of our own accounts, and of bots, never start a round. Commits that people pushed are built upon.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from bailiwick.proposals.forges.port import FailedCheck, Forge, Pull, Remark
from bailiwick.proposals.forges.reading import moment
from bailiwick.proposals.model import Proposal, Round, Status, make_round
from bailiwick.proposals.neutral import one_line, printable
from bailiwick.proposals.repository import RepositoryProposals

ROUNDS = 3
"""Further rounds that a proposal gets by itself."""
EACH = 4_000
"""Characters of one remark or check that a round is given."""
TOGETHER = 20_000


@dataclass(frozen=True, slots=True)
class Look:
    """What one look at a proposal found; `round` is what it asks for, `lines` are for people."""

    proposal: Proposal
    lines: tuple[str, ...] = ()
    round: Round | None = None


async def look(name: str, repo: RepositoryProposals, forge: Forge, *, most: int = ROUNDS) -> Look:
    """Look at a published proposal once and note what became of it; starts nothing."""
    async with repo.store.held(name):
        proposal = await repo.store.named(name)
        if proposal.status != "published":
            return Look(proposal, (f"{proposal.status}: nothing to follow",))
        pull = await forge.find_pull(proposal.branch, proposal.number)
        if pull is None or pull.state != "open":
            return await _over(proposal, pull, repo)
        proposal, head = await _head(proposal, repo, forge)
        if head is None:
            return Look(proposal, ("the pushed branch is gone; the pull request is still open",))
        red = await forge.failed_checks(head)
        heard = await forge.remarks(pull.number, proposal.heard)
        return _weighed(proposal, head, red=red, heard=heard, most=most)


async def _over(proposal: Proposal, pull: Pull | None, repo: RepositoryProposals) -> Look:
    """A person merged or closed it: that is observed, never done here."""
    merged = pull is not None and pull.state == "merged"
    status: Status = "merged" if merged else "closed"
    over = await repo.store.change(proposal.id, lambda now: replace(now, status=status, updated=repo.clock.now()))
    return Look(over, ("merged by a person" if merged else "closed without a merge",))


async def _head(proposal: Proposal, repo: RepositoryProposals, forge: Forge) -> tuple[Proposal, str | None]:
    """Where the pushed branch stands, its commits brought here; what people pushed is noted."""
    remote = repo.remote(await forge.push_target())
    if await repo.git_store.remote_branch(remote, proposal.branch) is None:
        return proposal, None
    head = await repo.git_store.fetch_remote(remote, proposal.branch)
    if head in (*proposal.pushed, *proposal.people):
        return proposal, head

    def noted(now: Proposal) -> Proposal:
        return replace(now, people=tuple(dict.fromkeys((*now.people, head))), updated=repo.clock.now())

    return await repo.store.change(proposal.id, noted), head


def _weighed(proposal: Proposal, head: str, red: Sequence[FailedCheck], heard: Sequence[Remark], most: int) -> Look:
    """The round that red checks and people's remarks ask for, unless it was started or there were enough."""
    lines = []
    if proposal.people and head == proposal.people[-1]:
        lines.append(f"someone pushed {head[:12]}; the next round builds on it")
    asking = [one for one in heard if not one.own and not one.bot]
    if passed_over := len(heard) - len(asking):
        lines.append(f"{passed_over} of our own or of bots' remarks passed over")
    found = [("ci", _check_text(one)) for one in red] + [("review", _remark_text(one)) for one in asking]
    if not found:
        return Look(proposal, (*lines, "nothing to do: no red check, no new remark"))
    lines += [f"red: {one_line(one.name, 80)}" for one in red]
    lines += [f"{one_line(one.author, 40)}: {one_line(one.text, 100)}" for one in asking]
    until = max((moment(one.at) or 0.0 for one in asking), default=0.0)
    asked = make_round(proposal, head, _bounded(found), until)
    if asked.key in proposal.handled:
        return Look(proposal, (*lines, "a round for this was started already"))
    if proposal.rounds >= most:
        return Look(proposal, (*lines, f"{proposal.rounds} further rounds were made: this one is a person's"))
    return Look(proposal, tuple(lines), asked)


def _bounded(found: list[tuple[str, str]]) -> list[tuple[str, str]]:
    left = TOGETHER
    out = []
    for why, text in found:
        if left > 0:
            out.append((why, text[: min(EACH, left)]))
            left -= len(out[-1][1])
    return out


def _check_text(check: FailedCheck) -> str:
    return printable(f"The check {one_line(check.name, 100)} failed.\n{check.summary}").strip()


def _remark_text(remark: Remark) -> str:
    where = f" about {one_line(remark.path, 200)}" if remark.path else ""
    line = f", line {remark.line}" if remark.line else ""
    return printable(f"{one_line(remark.author, 60)} wrote{where}{line}:\n{remark.text}").strip()
