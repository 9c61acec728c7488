"""Looking after published proposals: what starts a further round, what never does, and what people did."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bailiwick.proposals.document import marker
from bailiwick.proposals.follow import Look, look
from bailiwick.proposals.model import Proposal
from bailiwick.proposals.service import begin_round, propose, reject
from bailiwick.testing.forge_server import ForgeServer
from bailiwick.testing.forge_server_state import ForgeCheckRun, Hosted
from tests.unit.proposals.stage import BRANCH, ProposalSetup, forge_stage, run


@pytest.fixture(params=["github", pytest.param("gitea", marks=pytest.mark.nightly)])
def stage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ProposalSetup]:
    """A forge on which publishing is allowed."""
    with ForgeServer(tmp_path / "served", request.param) as forge:
        yield forge_stage(tmp_path, forge)


def _published(stage: ProposalSetup) -> tuple[Proposal, Hosted]:
    tree = stage.tree()
    _, hosted, _ = stage.the_forge()
    return run(propose(stage.ask(tree), stage.report(tree), stage.repo)).proposal, hosted


def _look(stage: ProposalSetup, name: str, most: int = 3) -> Look:
    async def go() -> Look:
        forge = stage.repo.settings.open_forge()
        try:
            return await look(name, stage.repo, forge, most=most)
        finally:
            await forge.close()

    return run(go())


def _commit_of_a_person(hosted: Hosted, parent: str) -> str:
    who = ("-c", "user.name=Pat", "-c", "user.email=pat@example.org")
    made = hosted.git(*who, "commit-tree", "-p", parent, "-m", "by hand", f"{parent}^{{tree}}")
    hosted.git("update-ref", f"refs/heads/{BRANCH}", made)
    return made


def test_nothing_new_asks_for_nothing(stage: ProposalSetup) -> None:
    """A quiet pull request costs no agent call."""
    made, _ = _published(stage)
    seen = _look(stage, made.id)
    assert (seen.round, seen.lines) == (None, ("nothing to do: no red check, no new remark",))


def test_red_ci_asks_for_a_round_on_the_same_branch(stage: ProposalSetup) -> None:
    """The round gets the check's name and words, and starts where the branch ends."""
    made, hosted = _published(stage)
    hosted.checks[made.commit] = [ForgeCheckRun("build", "failure", "assert 1 == 2", run=_is_github(stage))]
    asked = _look(stage, made.id).round
    assert asked is not None
    assert (asked.base, asked.branch, asked.why, asked.number) == (made.commit, BRANCH, ("ci",), 1)
    assert "build" in asked.texts[0]
    assert "assert 1 == 2" in asked.texts[0]


def _is_github(stage: ProposalSetup) -> bool:
    return stage.the_forge()[0].flavour == "github"


def test_peoples_remarks_ask_for_a_round_with_place_and_words(stage: ProposalSetup) -> None:
    """A comment, a review and a remark on a line all count."""
    made, hosted = _published(stage)
    number, pat = made.number or 0, stage.people["pat"]
    hosted.say(number, pat, "Please round to cents.")
    hosted.review(number, pat, "Not yet.", "CHANGES_REQUESTED" if _is_github(stage) else "REQUEST_CHANGES")
    hosted.remark(number, pat, "Name this better.", "shop.py", 2)
    asked = _look(stage, made.id).round
    assert asked is not None
    assert asked.texts == (
        "pat wrote:\nPlease round to cents.",
        "pat wrote:\nNot yet.",
        "pat wrote about shop.py, line 2:\nName this better.",
    )


def test_our_own_words_never_start_a_round(stage: ProposalSetup) -> None:
    """By the account that wrote them, and by their mark: two agents would talk forever."""
    made, hosted = _published(stage)
    _, _, agent = stage.the_forge()
    other = stage.the_forge()[0].forgery.account("agent-two", "t2")
    hosted.say(made.number or 0, agent, "I have opened this.")
    hosted.say(made.number or 0, other, f"{marker(made.id)}\nA status of another account of ours.")
    seen = _look(stage, made.id)
    assert seen.round is None
    assert "2 of our own or of bots' remarks passed over" in seen.lines


def test_a_bots_words_never_start_a_round(tmp_path: Path) -> None:
    """A coverage bot comments on every push."""
    with ForgeServer(tmp_path / "served", "github") as forge:
        stage = forge_stage(tmp_path, forge)
        made, hosted = _published(stage)
        hosted.say(made.number or 0, forge.forgery.account("cov", "c", bot=True), "coverage 81%")
        assert _look(stage, made.id).round is None


def test_a_round_is_started_once_and_old_remarks_are_not_heard_again(stage: ProposalSetup) -> None:
    """The same findings are the same round; a later remark is a new one."""
    made, hosted = _published(stage)
    hosted.say(made.number or 0, stage.people["pat"], "Please round.")
    first, again = _look(stage, made.id).round, _look(stage, made.id).round
    assert first is not None
    assert first == again
    assert run(begin_round(first, stage.repo))
    assert not run(begin_round(first, stage.repo))
    assert _look(stage, made.id).round is None
    hosted.say(made.number or 0, stage.people["pat"], "And the name?")
    second = _look(stage, made.id).round
    assert second is not None
    assert (second.number, second.texts) == (2, ("pat wrote:\nAnd the name?",))


def test_rounds_are_bounded(stage: ProposalSetup) -> None:
    """A reviewer who is never content gets a person."""
    made, hosted = _published(stage)
    for number in range(2):
        hosted.say(made.number or 0, stage.people["pat"], f"again {number}")
        asked = _look(stage, made.id, most=2).round
        assert asked is not None
        assert run(begin_round(asked, stage.repo))
    hosted.say(made.number or 0, stage.people["pat"], "and again")
    seen = _look(stage, made.id, most=2)
    assert seen.round is None
    assert "2 further rounds were made: this one is a person's" in seen.lines


def test_what_people_pushed_is_built_upon_and_never_rewritten(stage: ProposalSetup) -> None:
    """Their commit is the base of the next round; the result lies on top of it, here and there."""
    made, hosted = _published(stage)
    theirs = _commit_of_a_person(hosted, made.commit)
    hosted.say(made.number or 0, stage.people["pat"], "I have started; go on from there.")
    asked = _look(stage, made.id).round
    assert asked is not None
    assert asked.base == theirs
    assert run(begin_round(asked, stage.repo))
    better = stage.tree("better\n")
    ask = stage.ask(better, run="run-2", base=asked.base, proposal=made.id)
    second = run(propose(ask, stage.report(better, base=asked.base), stage.repo)).proposal
    assert hosted.head(BRANCH) == second.commit
    assert hosted.git("rev-parse", f"{second.commit}^") == theirs
    assert (second.id, second.people, second.rounds) == (made.id, (theirs,), 1)


@pytest.mark.parametrize("how", ["merged", "closed"])
def test_what_people_did_with_it_is_observed(stage: ProposalSetup, how: str) -> None:
    """Merging is theirs; we only take note of it."""
    made, hosted = _published(stage)
    if how == "merged":
        hosted.merge_as_person(made.number or 0)
    else:
        hosted.tickets[made.number or 0].state = "closed"
    assert _look(stage, made.id).proposal.status == how
    assert _look(stage, made.id).lines == (f"{how}: nothing to follow",)


def test_hostile_words_reach_a_round_as_bounded_plain_text(stage: ProposalSetup) -> None:
    """A comment is data for the agent, and never a terminal sequence or a megabyte."""
    made, hosted = _published(stage)
    for _ in range(10):
        hosted.say(made.number or 0, stage.people["pat"], "\x1b]0;title\x07" + "z" * 50_000)
    asked = _look(stage, made.id).round
    assert asked is not None
    assert sum(map(len, asked.texts)) <= 20_000
    assert "\x1b" not in "".join(asked.texts)


def test_a_rejection_with_rework_is_a_round_like_any_other(stage: ProposalSetup) -> None:
    """It can be begun once and counts."""
    made, _ = _published(stage)
    _, asked = run(reject(made.id, "no rounding", stage.repo, rework=True))
    assert asked is not None
    assert run(begin_round(asked, stage.repo))
    kept = run(stage.repo.store.get(made.id))
    assert kept is not None
    assert (kept.rounds, kept.status) == (1, "published")
