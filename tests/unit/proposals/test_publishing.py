"""Proposals on a forge: real pushes to real repositories, one draft pull request, nothing of others' replaced."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bailiwick.audit.service import entries
from bailiwick.errors import UsageError
from bailiwick.proposals.document import LONGEST, is_ours
from bailiwick.proposals.forges.port import ForgeFailed
from bailiwick.proposals.nodes import spoken
from bailiwick.proposals.service import ProposalOutcome, discard, propose, publish
from bailiwick.testing.forge_server import ForgeServer, Trip
from bailiwick.testing.forge_server_state import ForgeIssue
from tests.unit.proposals.stage import BRANCH, NAME, ProposalSetup, forge_stage, git, make_site, run


@pytest.fixture(params=["github", pytest.param("gitea", marks=pytest.mark.nightly)])
def stage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ProposalSetup]:
    """A change that the gate passed, and a forge on which publishing is allowed."""
    with ForgeServer(tmp_path / "served", request.param) as forge:
        yield forge_stage(tmp_path, forge)


def _propose(stage: ProposalSetup, text: str = "fixed\n", **more: object) -> ProposalOutcome:
    tree = stage.tree(text)
    return run(propose(stage.ask(tree, **more), stage.report(tree), stage.repo))


def _only_pull(stage: ProposalSetup) -> ForgeIssue:
    _, hosted, _ = stage.the_forge()
    pulls = [one for one in hosted.tickets.values() if one.head]
    assert len(pulls) == 1
    return pulls[0]


def test_a_proposal_becomes_a_pushed_branch_and_one_draft_pull_request(stage: ProposalSetup) -> None:
    """The whole way: commit, branch here, push over HTTP with the token, a draft with the document, a label."""
    stage.settings(labels=("agent",))
    outcome = _propose(stage, issue="#7")
    _, hosted, agent = stage.the_forge()
    pull = _only_pull(stage)
    assert hosted.head(BRANCH) == outcome.proposal.commit == git(stage.repository, "rev-parse", BRANCH)
    assert (pull.author, pull.base, pull.labels, pull.state) == (agent, "main", ["agent"], "open")
    assert pull.draft or pull.title.startswith("WIP: ")
    assert pull.title.endswith("Agent: implement discount")
    assert is_ours(pull.body)
    assert "For #7." in pull.body
    assert (outcome.proposal.status, outcome.proposal.number) == ("published", pull.number)
    assert spoken(outcome).splitlines() == ["gate passed, proposing, NOT merging", outcome.proposal.url]


def test_publishing_again_changes_one_pull_request_and_pushes_nothing(stage: ProposalSetup) -> None:
    """A node that runs again after a crash makes no second pull request."""
    first = _propose(stage).proposal
    again = _propose(stage).proposal
    assert (again.commit, again.number, again.pushed) == (first.commit, first.number, (first.commit,))
    _only_pull(stage)


@pytest.mark.parametrize("cut", ["POST .*/pulls$", "GET .*/user$", "POST .*/labels$"])
def test_a_failure_half_way_is_made_good_by_doing_it_again(stage: ProposalSetup, cut: str) -> None:
    """What was done stays: the branch is pushed once, the pull request is one."""
    stage.settings(labels=("agent",))
    forge, hosted, _ = stage.the_forge()
    forge.faults.append(Trip(cut, 500, times=1))
    failed = []
    for _ in range(2):
        try:
            made = _propose(stage).proposal
        except ForgeFailed as error:
            failed.append((error.kind, error.transient))
    assert failed == [("unavailable", True)]
    assert hosted.head(BRANCH) == made.commit
    assert _only_pull(stage).labels == ["agent"]


def test_a_pushed_commit_of_somebody_else_is_never_replaced(stage: ProposalSetup) -> None:
    """The person is told, and told how to go on."""
    made = _propose(stage).proposal
    _, hosted, _ = stage.the_forge()
    theirs = hosted.git(
        "-c",
        "user.name=P",
        "-c",
        "user.email=p@x.org",
        "commit-tree",
        "-p",
        made.commit,
        "-m",
        "mine",
        f"{made.commit}^{{tree}}",
    )
    hosted.git("update-ref", f"refs/heads/{BRANCH}", theirs)
    with pytest.raises(ForgeFailed) as refused:
        _propose(stage, "another try\n")
    assert refused.value.kind == "conflict"
    assert f"proposals follow {made.id}" in refused.value.hint
    assert hosted.head(BRANCH) == theirs


def test_our_own_pushed_commit_may_be_replaced_by_a_better_one(stage: ProposalSetup) -> None:
    """A run that was rewound proposes again: same branch, same pull request, a new text."""
    first = _propose(stage).proposal
    second = _propose(stage, "better\n").proposal
    _, hosted, _ = stage.the_forge()
    assert hosted.head(BRANCH) == second.commit != first.commit
    assert second.commit in _only_pull(stage).body


def test_a_pull_request_that_a_person_opened_keeps_its_text(stage: ProposalSetup) -> None:
    """Somebody pushed the branch by hand and wrote a text: it is theirs."""
    _, hosted, _ = stage.the_forge()
    stage.settings(mode="never")
    made = _propose(stage).proposal
    git(stage.repository, "push", "-q", str(hosted.path), BRANCH)
    pull = hosted.new_pull("My title", "my words", stage.people["pat"])
    pull.head, pull.base = BRANCH, "main"
    hosted.open_pull(pull)
    stage.settings(mode="auto")
    outcome = run(publish(made.id, stage.repo, consent=False))
    assert (pull.title, pull.body) == ("My title", "my words")
    assert any("a person opened" in note for note in outcome.proposal.notes)


def test_a_repository_without_drafts_gets_a_title_that_says_so(tmp_path: Path) -> None:
    """GitHub answers 422 where a plan has no drafts; the person learns that it is open for review."""
    with ForgeServer(tmp_path / "served", "github") as forge:
        stage = forge_stage(tmp_path, forge)
        _, hosted, _ = stage.the_forge()
        hosted.drafts = False
        proposal = _propose(stage).proposal
        pull = _only_pull(stage)
        assert (pull.draft, pull.title) == (False, "WIP: Agent: implement discount")
        assert any("no drafts" in note for note in proposal.notes)
        assert _propose(stage).proposal.number == pull.number == _only_pull(stage).number


def test_without_consent_it_stays_here_and_says_which_command_gives_it(stage: ProposalSetup) -> None:
    """Nothing leaves because nobody said no: unattended, `ask` means not yet."""
    stage.settings(mode="ask")
    outcome = _propose(stage)
    forge, hosted, _ = stage.the_forge()
    assert (outcome.decision, outcome.proposal.status) == ("ask", "open")
    assert outcome.commands[-1] == f"bailiwick proposals publish {outcome.proposal.id} --yes"
    assert hosted.head(BRANCH) == ""
    assert forge.seen == []
    assert outcome.commands[-1] in spoken(outcome)


def test_consent_is_given_once_per_repository_and_ends(stage: ProposalSetup) -> None:
    """The first proposal asks; later ones go by that word until it expires after 90 days."""
    stage.settings(mode="ask")
    made = _propose(stage).proposal
    assert run(publish(made.id, stage.repo, consent=False)).decision == "ask"
    assert run(publish(made.id, stage.repo, consent=True)).published
    other = {"run": "run-9", "branch": "agent/other-9", "title": "other"}
    assert _propose(stage, "two\n", **other).published
    stage.clock.advance(90 * 86400)
    third = {"run": "run-10", "branch": "agent/third-10", "title": "third"}
    assert _propose(stage, "three\n", **third).decision == "ask"
    given = [one for one in entries(stage.repo.state) if one.kind == "consent.given"]
    assert [(one.actor, one.data["scope"]) for one in given] == [("pat", "draft pull requests")]


def test_never_means_never(stage: ProposalSetup) -> None:
    """Not even a person's --yes goes over the configuration."""
    stage.settings(mode="never")
    made = _propose(stage).proposal
    with pytest.raises(UsageError):
        run(publish(made.id, stage.repo, consent=True))
    assert stage.the_forge()[0].seen == []


def test_an_identity_that_may_not_push_is_told_before_anything_is_pushed(stage: ProposalSetup) -> None:
    """The token is good and its rights are not: nothing is half done."""
    _, hosted, agent = stage.the_forge()
    agent.rights[NAME] = "read"
    with pytest.raises(ForgeFailed) as refused:
        _propose(stage)
    assert (refused.value.kind, hosted.head(BRANCH)) == ("permission", "")
    assert "fork" in refused.value.hint


def test_a_fork_is_made_and_pushed_to_where_that_is_configured(stage: ProposalSetup) -> None:
    """An identity without write access can't merge; the proposal says no."""
    forge, hosted, agent = stage.the_forge()
    agent.rights[NAME] = "read"
    stage.settings(site=make_site(forge, stage.clock, fork=True))
    proposal = _propose(stage).proposal
    fork = forge.forgery.repositories["agent/shop"]
    assert (fork.head(BRANCH), hosted.head(BRANCH)) == (proposal.commit, "")
    pull = _only_pull(stage)
    assert pull.head_repo == "agent/shop"
    assert "merge it alone: **no**" in pull.body
    again = _propose(stage).proposal
    assert again.number == proposal.number


@pytest.mark.parametrize(
    ("right", "protected", "approvals", "said"),
    [
        ("write", False, 0, "yes"),
        ("write", True, 1, "no"),
        ("write", True, 0, "yes"),
        ("admin", True, 1, "yes"),
    ],
)
def test_whether_this_identity_could_merge_is_established_and_said(
    stage: ProposalSetup, right: str, protected: bool, approvals: int, said: str
) -> None:
    """A reader has to know whether the agent's own account is the only thing between it and main."""
    _, hosted, agent = stage.the_forge()
    agent.rights[NAME] = right  # type: ignore[assignment]
    hosted.protected, hosted.approvals = protected, approvals
    _propose(stage)
    assert f"merge it alone: **{said}**" in _only_pull(stage).body


@pytest.mark.nightly
def test_a_huge_issue_and_a_thousand_files_fit_the_forge(stage: ProposalSetup) -> None:
    """Forges refuse longer texts: then there would be no pull request at all."""
    files = {f"src/{'d' * 80}/{number}.py": b"x = 1\n" for number in range(1000)}
    tree = run(stage.repo.git_store.write(stage.base, dict(files)))
    ask = stage.ask(tree, asked="@everyone fixes #1 " * 20_000, said="`" * 9_000)
    run(propose(ask, stage.report(tree, proof=tuple(f"tests/{'t' * 180}::{n}" for n in range(900))), stage.repo))
    body = _only_pull(stage).body
    assert len(body) <= LONGEST
    assert "@everyone" not in body


def test_discarding_a_published_one_changes_nothing_there_and_says_how(stage: ProposalSetup) -> None:
    """Closing a pull request is a person's."""
    made = _propose(stage).proposal
    over = run(discard(made.id, stage.repo))
    _, hosted, _ = stage.the_forge()
    assert hosted.head(BRANCH) == made.commit
    assert _only_pull(stage).state == "open"
    assert any(made.url in line for line in over.lines)


def test_the_token_is_nowhere_but_in_headers(stage: ProposalSetup, tmp_path: Path) -> None:
    """Not in the proposal's file, the audit, or the document."""
    _propose(stage)
    token = stage.repo.settings.token
    assert token is not None
    kept = [path for path in (tmp_path / "state").rglob("*") if path.is_file()]
    assert kept
    assert [path for path in kept if token().encode() in path.read_bytes()] == []


def test_a_proposal_reads_back_as_it_was(stage: ProposalSetup) -> None:
    """The file is the only memory between two commands."""
    made = _propose(stage).proposal
    assert run(stage.repo.store.get(made.id)) == made
