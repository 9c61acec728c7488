"""Further rounds: what people or their CI said of a proposal becomes the issue of a new run on the same branch."""

from __future__ import annotations

from contextlib import chdir
from pathlib import Path

from bailiwick.app.service import open_app
from bailiwick.cli.hosting import ForegroundOptions
from bailiwick.cli.pipelines.service import PipelineCommand, PipelineRunner
from bailiwick.cli.view.choose import choose_view
from bailiwick.cli.view.port import Leaving
from bailiwick.config.service import Config
from bailiwick.pipelines.issues import harmless
from bailiwick.pipelines.model import ISSUE_TO_PR, BaseCommit, IssueText, PipelineRequest, run_key, title_of
from bailiwick.proposals.model import Proposal, Round
from bailiwick.proposals.repository import open_repository
from bailiwick.proposals.service import begin_round

LIMIT = 64 * 1024
"""Characters of what people said that a round is given."""


async def start_round(asked: Round, config: Config) -> int:
    """Start a round once and walk it, or go on with it; gives its exit code, 0 where the proposal is over.

    The run is there before the round is noted: a crash in between starts the same run again, not another one.
    """
    view = choose_view()
    with chdir(asked.repository):
        async with open_app({}, view.watch()) as app:
            repo = await open_repository(app.config, Path(asked.repository), app.store, app.clock, by=app.by)
            options = ForegroundOptions(leaving=Leaving(results=False))
            errand = PipelineRunner(PipelineCommand(ISSUE_TO_PR, options=options), app, view, repo)
            proposal = await repo.store.named(asked.proposal)
            key = run_key(asked.repository, f"round-{asked.number}", asked.key)
            known = await app.runtime.store.find(ISSUE_TO_PR, key)
            if known is not None:
                return await errand.walk(known)
            if not proposal.live or asked.key in proposal.handled:
                return 0
            order = _order(asked, proposal, int(app.config.get("attempts")))
            note = f"round {asked.number}, {', '.join(asked.why)}"
            ground = BaseCommit(asked.base, await repo.git_store.tree_of(asked.base), asked.branch, note)
            return await errand.begin(order, ground, key, lambda: begin_round(asked, repo))


def _order(asked: Round, proposal: Proposal, attempts: int) -> PipelineRequest:
    """What was said of a proposal, as an issue: the words of strangers, made harmless to show."""
    text = harmless("\n\n".join(asked.texts))[:LIMIT] or ", ".join(asked.why)
    title = title_of(f"Round {asked.number}: {proposal.title}", proposal.title)
    issue = IssueText(proposal.issue, proposal.title, title, text)
    return PipelineRequest(
        ISSUE_TO_PR, asked.repository, issue, attempts=attempts, branch=asked.branch, continues=asked.proposal
    )
