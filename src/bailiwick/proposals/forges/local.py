"""No forge: nothing leaves this machine; a person is told how to look and how to push."""

from __future__ import annotations

import shlex

from bailiwick.proposals.model import Proposal

PASSED = "gate passed, proposing, NOT merging"


def next_commands(proposal: Proposal) -> tuple[str, ...]:
    """How a person looks at a proposal and takes it on."""
    branch = shlex.quote(proposal.branch)
    return (
        f"git show {branch}",
        f"git diff {proposal.base[:12]}..{branch}",
        f"git push -u origin {branch}",
    )


def announcement(proposal: Proposal) -> str:
    """What is printed when a proposal stays here."""
    return "\n".join((PASSED, *next_commands(proposal)))
