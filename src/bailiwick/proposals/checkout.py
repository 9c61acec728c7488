"""A proposal's branch in a work tree of its own, so that a person can try it beside their own files."""

from __future__ import annotations

from pathlib import Path

from bailiwick.errors import NotReady, Place, UsageError
from bailiwick.git.person import add_worktree
from bailiwick.git.repository import checked_out
from bailiwick.proposals.model import Proposal
from bailiwick.proposals.repository import RepositoryProposals

TAKEN = "BW478"
NO_BRANCH = "BW479"


async def check_out(proposal: Proposal, repo: RepositoryProposals, into: Path | None = None) -> Path:
    """Check the branch out into a directory that is empty or not there yet; gives the directory.

    Raises `NotReady` where the branch is gone or checked out already, `UsageError` where the directory is taken.
    """
    git_store = repo.git_store
    folder = (into or _beside(git_store.repository, proposal)).absolute()
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(
            "this directory is not empty",
            place=Place(str(folder)),
            hint="choose another one with --into DIR; nothing was changed",
            code=TAKEN,
        )
    if await git_store.branch_value(proposal.branch) is None:
        raise NotReady(
            f"the branch {proposal.branch} is not there any more",
            hint=f"its change is kept: bailiwick proposals diff {proposal.id}",
            code=NO_BRANCH,
        )
    if f"refs/heads/{proposal.branch}" in await checked_out(git_store.git, git_store.source):
        raise NotReady(
            f"the branch {proposal.branch} is checked out already", hint="git worktree list says where", code=NO_BRANCH
        )
    await add_worktree(git_store.git, git_store.source, proposal.branch, folder)
    return folder


def _beside(repository: Path, proposal: Proposal) -> Path:
    return repository.parent / f"{repository.name}-{proposal.id}"
