"""Further rounds: what people or their CI said of a proposal becomes the issue of a new run on the same branch."""

from __future__ import annotations

from contextlib import chdir
from pathlib import Path

from bailiwick.cli.session import open_session
from bailiwick.cli.view import choose_view
from bailiwick.config.service import Config
from bailiwick.patterns.issues import harmless
from bailiwick.patterns.model import ISSUE_TO_PR, Ground, Issue, Order, run_key, title_of
from bailiwick.patterns.service import Errand, Request
from bailiwick.proposals.desk import open_desk
from bailiwick.proposals.model import Round
from bailiwick.proposals.service import begin_round

LIMIT = 64 * 1024
"""Characters of what people said that a round is given."""


async def start_round(asked: Round, config: Config) -> int:
    """Start a round once, and walk it; gives its exit code, 0 where it was started before."""
    view = choose_view()
    with chdir(asked.repository):
        async with open_session({}, view.watch()) as session:
            desk = await open_desk(session.config, Path(asked.repository), session.assembly.clock, by=session.by)
            proposal = desk.store.named(asked.proposal)
            if not await begin_round(asked, desk):
                return 0
            text = harmless("\n\n".join(asked.texts))[:LIMIT] or ", ".join(asked.why)
            title = title_of(f"Round {asked.number}: {proposal.title}", proposal.title)
            issue = Issue(proposal.issue, proposal.title, title, text)
            order = Order(
                ISSUE_TO_PR, asked.repository, issue, attempts=int(session.config.get("attempts")),
                branch=asked.branch, continues=asked.proposal,
            )  # fmt: skip
            ground = Ground(
                asked.base,
                await desk.vault.tree_of(asked.base),
                asked.branch,
                f"round {asked.number}, {', '.join(asked.why)}",
            )
            key = run_key(asked.repository, f"round-{asked.number}", asked.key)
            return await Errand(Request(ISSUE_TO_PR), session, view, desk).begin(order, ground, key)
