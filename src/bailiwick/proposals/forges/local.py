"""No forge: nothing leaves this machine; a person is told how to look and how to push."""

from __future__ import annotations

import shlex
from pathlib import Path

from bailiwick.config.repository import remote_name
from bailiwick.proposals.model import Proposal

PASSED = "gate passed, proposing, NOT merging"
"""What is printed first of every proposal."""


def next_commands(proposal: Proposal) -> tuple[str, ...]:
    """How a person looks at a proposal and takes it on; a push only where there is a remote to push to."""
    branch = shlex.quote(proposal.branch)
    remote = remote_name(Path(proposal.repository))
    push = (f"git push -u {shlex.quote(remote)} {branch}",) if remote else ()
    return (f"git show {branch}", f"git diff {proposal.base[:12]}..{branch}", *push)
