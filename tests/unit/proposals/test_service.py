"""Proposing: what is refused, what is written, and that doing it again changes nothing."""

from __future__ import annotations

import ast
import json
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

import bailiwick
from bailiwick.audit.service import entries
from bailiwick.errors import NotReady, UsageError
from bailiwick.gate.model import GateReport
from bailiwick.git.runner import GitFailed
from bailiwick.proposals.message import UNFINISHED
from bailiwick.proposals.model import ChangeCost
from bailiwick.proposals.nodes import spoken
from bailiwick.proposals.service import NotProposable, discard, propose, publish, reject
from bailiwick.proposals.store import KIND
from tests.unit.proposals.stage import BRANCH, ProposalSetup, git, local_stage, run


@pytest.fixture
def stage(tmp_path: Path) -> ProposalSetup:
    """A change that the gate passed, and no forge."""
    return local_stage(tmp_path)


def test_a_green_change_becomes_a_branch_with_one_commit_on_its_base(stage: ProposalSetup) -> None:
    """The commit says what it is and where it comes from; the person's own branch, index and files stay as they are."""
    tree = stage.tree()
    report = stage.report(tree)
    ask = stage.ask(tree, models=("claude/opus",), cost=ChangeCost(1.5))
    outcome = run(propose(ask, report, stage.repo))
    assert git(stage.repository, "rev-parse", BRANCH) == outcome.proposal.commit
    assert git(stage.repository, "rev-parse", f"{BRANCH}^") == stage.base
    assert git(stage.repository, "rev-parse", f"{BRANCH}^{{tree}}") == tree
    assert git(stage.repository, "log", "-1", "--format=%s", BRANCH) == "Agent: implement discount"
    trailers = git(stage.repository, "log", "-1", "--format=%(trailers:only,unfold)", BRANCH).splitlines()
    assert trailers == ["Run: run-1", f"Gate-Report: {report.digest}", "Models: claude/opus", "Cost: $1.50"]
    assert git(stage.repository, "status", "--porcelain", "-b") == "## main"


def test_without_a_forge_nothing_leaves_and_the_exact_commands_are_said(stage: ProposalSetup) -> None:
    """A person copies these lines; they are the whole interface of a local proposal."""
    tree = stage.tree()
    outcome = run(propose(stage.ask(tree), stage.report(tree), stage.repo))
    assert spoken(outcome).splitlines() == [
        "gate passed, proposing, NOT merging",
        f"git show {BRANCH}",
        f"git diff {stage.base[:12]}..{BRANCH}",
    ]
    git(stage.repository, "remote", "add", "mine", "https://example.org/acme/shop.git")
    assert spoken(outcome).splitlines()[-1] == f"git push -u mine {BRANCH}"
    git(stage.repository, "remote", "add", "origin", "https://example.org/acme/shop.git")
    assert spoken(outcome).splitlines()[-1] == f"git push -u origin {BRANCH}"
    assert (outcome.decision, outcome.published) == ("keep", False)
    assert "+    return price * (100 - percent) / 100" in git(stage.repository, *outcome.commands[1].split()[1:])


def test_a_healed_build_has_its_own_subject(stage: ProposalSetup) -> None:
    """CI and people look for this line."""
    tree = stage.tree()
    outcome = run(propose(stage.ask(tree, kind="self-heal"), stage.report(tree), stage.repo))
    subject = git(stage.repository, "log", "-1", "--format=%s", outcome.proposal.commit)
    assert subject == "Agent: self-healing fix for failing CI"


@pytest.mark.parametrize("verdict", ["red", "environment", "needs_person"])
def test_only_a_green_report_is_proposed(stage: ProposalSetup, verdict: str) -> None:
    """Evidence, not claims."""
    tree = stage.tree()
    report = replace(stage.report(tree), verdict=verdict)  # type: ignore[arg-type]
    with pytest.raises(NotProposable) as refused:
        run(propose(stage.ask(tree), report, stage.repo))
    assert (refused.value.code, refused.value.exit_code) == ("BW460", 1)
    assert git(stage.repository, "branch", "--list", "agent/*") == ""


def _other_tree(stage: ProposalSetup, report: GateReport) -> GateReport:
    return replace(report, tree=stage.tree("other\n"))


def _other_base(stage: ProposalSetup, report: GateReport) -> GateReport:
    return replace(report, base="0" * 40)


@pytest.mark.parametrize("change", [_other_tree, _other_base])
def test_a_report_about_something_else_is_refused(stage: ProposalSetup, change: object) -> None:
    """What is tested is what is proposed."""
    tree = stage.tree()
    report = change(stage, stage.report(tree))  # type: ignore[operator]
    with pytest.raises(NotProposable) as refused:
        run(propose(stage.ask(tree), report, stage.repo))
    assert refused.value.code == "BW461"


def test_degraded_work_is_refused_with_the_nodes_that_defaulted(stage: ProposalSetup) -> None:
    """A default may carry a run on, but never into a proposal."""
    tree = stage.tree()
    with pytest.raises(NotProposable, match="plan, review") as refused:
        run(propose(stage.ask(tree, degraded=("plan", "review")), stage.report(tree), stage.repo))
    assert refused.value.code == "BW464"


def test_no_change_is_no_proposal(stage: ProposalSetup) -> None:
    """An agent that did nothing has nothing to offer."""
    tree = run(stage.repo.git_store.tree_of(stage.base))
    with pytest.raises(NotProposable) as refused:
        run(propose(stage.ask(tree), stage.report(tree), stage.repo))
    assert refused.value.code == "BW465"


def test_proposing_twice_is_proposing_once(stage: ProposalSetup) -> None:
    """After a crash the node runs again: same id, same commit, same branch."""
    tree = stage.tree()
    report = stage.report(tree)
    first = run(propose(stage.ask(tree), report, stage.repo))
    stage.clock.advance(600)
    second = run(propose(stage.ask(tree), report, stage.repo))
    assert second.proposal == first.proposal
    assert len(run(stage.repo.store.all())) == 1


@pytest.mark.parametrize("lost", ["record", "branch", "both"])
def test_a_crash_between_two_steps_is_made_good_by_doing_it_again(stage: ProposalSetup, lost: str) -> None:
    """The commit's time is the run's, so that even without a record the same commit is made."""
    tree = stage.tree()
    report = stage.report(tree)
    first = run(propose(stage.ask(tree), report, stage.repo)).proposal
    if lost in ("record", "both"):
        run(stage.repo.journal.drop_document(KIND, first.id, 1))
    if lost in ("branch", "both"):
        git(stage.repository, "branch", "-q", "-D", BRANCH)
    second = run(propose(stage.ask(tree), report, stage.repo)).proposal
    assert (second.id, second.commit) == (first.id, first.commit)
    assert git(stage.repository, "rev-parse", BRANCH) == first.commit


def test_a_branch_that_somebody_moved_is_never_moved_back(stage: ProposalSetup) -> None:
    """Others' commits are not ours to lose."""
    tree = stage.tree()
    git(stage.repository, "branch", BRANCH, stage.base)
    theirs = git(stage.repository, "commit-tree", "-p", stage.base, "-m", "mine", f"{stage.base}^{{tree}}")
    git(stage.repository, "update-ref", f"refs/heads/{BRANCH}", theirs)
    with pytest.raises(GitFailed) as refused:
        run(propose(stage.ask(tree), stage.report(tree), stage.repo))
    assert refused.value.kind == "rejected"
    assert git(stage.repository, "rev-parse", BRANCH) == theirs


def test_only_branches_of_agents_are_written(stage: ProposalSetup) -> None:
    """No workflow can make this code write to main."""
    tree = stage.tree()
    with pytest.raises(GitFailed, match="not a branch of ours"):
        run(propose(stage.ask(tree, branch="main"), stage.report(tree), stage.repo))
    assert git(stage.repository, "rev-parse", "main") == stage.base


def test_a_further_round_builds_upon_the_branch(stage: ProposalSetup) -> None:
    """One proposal, two commits, both rounds' models and costs."""
    tree = stage.tree()
    first = run(propose(stage.ask(tree, cost=ChangeCost(1.0)), stage.report(tree), stage.repo)).proposal
    better = stage.tree("def discount(price, percent):\n    return round(price * (1 - percent / 100), 2)\n")
    report = stage.report(better, base=first.commit)
    ask = stage.ask(better, run="run-2", base=first.commit, proposal=first.id, models=("b",), cost=ChangeCost(None))
    second = run(propose(ask, report, stage.repo)).proposal
    assert (second.id, second.base, second.commits) == (first.id, stage.base, (first.commit, second.commit))
    assert git(stage.repository, "rev-parse", f"{BRANCH}~1") == first.commit
    assert str(second.cost) == "at least $1.00; the rest is unknown"


def test_a_sign_off_and_an_author_are_the_operators(stage: ProposalSetup) -> None:
    """The identity of commits is configuration, never the agent's choice."""
    stage.settings(author="Robo <robo@example.org>", signoff=True)
    tree = stage.tree()
    commit = run(propose(stage.ask(tree), stage.report(tree), stage.repo)).proposal.commit
    assert git(stage.repository, "log", "-1", "--format=%an <%ae>|%cn", commit) == "Robo <robo@example.org>|Robo"
    assert git(stage.repository, "log", "-1", "--format=%b", commit).endswith("Signed-off-by: Robo <robo@example.org>")


def test_a_commit_that_should_be_signed_is_signed_or_not_made(stage: ProposalSetup) -> None:
    """An unsigned commit where signing is configured would look like somebody else's."""
    stage.settings(sign=True)
    tree = stage.tree()
    with pytest.raises(GitFailed, match="could not be signed") as refused:
        run(propose(stage.ask(tree), stage.report(tree), stage.repo))
    assert (refused.value.code, run(stage.repo.store.all())) == ("BW468", [])


def test_a_signed_commit_is_signed_by_the_operators_own_key(stage: ProposalSetup, tmp_path: Path) -> None:
    """Their key, their program, as their repository's configuration names them; the same commit again is the same."""
    key = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    git(stage.repository, "config", "gpg.format", "ssh")
    git(stage.repository, "config", "user.signingKey", str(key))
    stage.settings(sign=True)
    tree = stage.tree()
    made = run(propose(stage.ask(tree), stage.report(tree), stage.repo)).proposal
    assert "\ngpgsig -----BEGIN SSH SIGNATURE-----" in git(stage.repository, "cat-file", "commit", BRANCH)
    assert run(propose(stage.ask(tree), stage.report(tree), stage.repo)).proposal == made


def test_what_a_round_left_when_it_gave_up_is_replaced(stage: ProposalSetup) -> None:
    """Unfinished work of ours on the branch is no person's commit."""
    tree = stage.tree()
    made = run(propose(stage.ask(tree), stage.report(tree), stage.repo)).proposal
    message = f"{UNFINISHED}\n\nRun: run-2\n"
    half = run(
        stage.repo.git_store.commit(stage.tree("half\n"), (made.commit,), message, stage.repo.settings.author, when=1.0)
    )
    run(stage.repo.git_store.branch(BRANCH, half, expect=made.commit))
    better = stage.tree("better\n")
    ask = stage.ask(better, run="run-3", base=made.commit, proposal=made.id)
    second = run(propose(ask, stage.report(better, base=made.commit), stage.repo)).proposal
    assert git(stage.repository, "rev-parse", BRANCH, f"{BRANCH}~1").split() == [second.commit, made.commit]


def test_secrets_are_covered_in_the_commit(stage: ProposalSetup) -> None:
    """An issue's title is somebody's text; a token in it must not become history."""
    stage.repo.redact = lambda text: text.replace("hunter22", "[redacted]")
    tree = stage.tree()
    commit = run(propose(stage.ask(tree, title="use hunter22"), stage.report(tree), stage.repo)).proposal.commit
    assert "hunter22" not in git(stage.repository, "log", "-1", "--format=%B", commit)


def test_every_proposal_is_in_the_audit_before_it_is_there(stage: ProposalSetup) -> None:
    """If it can't be recorded, it doesn't happen."""
    tree = stage.tree()
    report = stage.report(tree)
    made = run(propose(stage.ask(tree), report, stage.repo)).proposal
    kinds = [(one.kind, one.data["commit"]) for one in entries(stage.repo.state)]
    assert kinds == [("proposal.made", made.commit)]


def test_what_can_not_be_audited_is_not_proposed(stage: ProposalSetup) -> None:
    """The audit comes first."""
    (stage.repo.state / "audit").write_text("in the way")
    tree = stage.tree()
    with pytest.raises(NotReady):
        run(propose(stage.ask(tree), stage.report(tree), stage.repo))
    assert git(stage.repository, "branch", "--list", "agent/*") == ""


def test_discarding_takes_the_branch_away_and_is_final(stage: ProposalSetup) -> None:
    """A run that proposes again after that is told so."""
    tree = stage.tree()
    report = stage.report(tree)
    made = run(propose(stage.ask(tree), report, stage.repo)).proposal
    over = run(discard(made.id, stage.repo))
    assert (over.proposal.status, git(stage.repository, "branch", "--list", "agent/*")) == ("discarded", "")
    assert made.commit[:12] in over.lines[0]
    with pytest.raises(NotProposable, match="discarded"):
        run(propose(stage.ask(tree), report, stage.repo))


def test_discarding_keeps_a_branch_with_a_persons_commit(stage: ProposalSetup) -> None:
    """What a person wrote on top is not ours to delete."""
    tree = stage.tree()
    made = run(propose(stage.ask(tree), stage.report(tree), stage.repo)).proposal
    theirs = git(stage.repository, "commit-tree", "-p", made.commit, "-m", "mine", f"{made.commit}^{{tree}}")
    git(stage.repository, "update-ref", f"refs/heads/{BRANCH}", theirs)
    over = run(discard(made.id, stage.repo))
    assert "kept" in over.lines[0]
    assert git(stage.repository, "rev-parse", BRANCH) == theirs


def test_a_rejection_keeps_its_reason_and_a_rework_asks_for_a_round(stage: ProposalSetup) -> None:
    """The person's words are what the next round gets; the branch is what it builds upon."""
    tree = stage.tree()
    made = run(propose(stage.ask(tree), stage.report(tree), stage.repo)).proposal
    again, asked = run(reject(made.id, "  rounding is wrong ", stage.repo, rework=True))
    assert asked is not None
    assert (again.status, again.reasons) == ("open", ("rounding is wrong",))
    assert (asked.base, asked.branch, asked.texts, asked.number) == (made.commit, BRANCH, ("rounding is wrong",), 1)
    over, none = run(reject(made.id, "no", stage.repo, rework=False))
    assert (over.status, none) == ("rejected", None)
    with pytest.raises(UsageError):
        run(reject(made.id, "again", stage.repo, rework=False))


def test_a_rejection_needs_words(stage: ProposalSetup) -> None:
    """A bare no teaches nobody."""
    tree = stage.tree()
    made = run(propose(stage.ask(tree), stage.report(tree), stage.repo)).proposal
    with pytest.raises(UsageError):
        run(reject(made.id, "   ", stage.repo, rework=False))


def test_publishing_without_a_forge_says_what_is_missing(stage: ProposalSetup) -> None:
    """The hint names the keys."""
    tree = stage.tree()
    made = run(propose(stage.ask(tree), stage.report(tree), stage.repo)).proposal
    with pytest.raises(NotReady, match="no remote") as refused:
        run(publish(made.id, stage.repo, consent=True))
    assert "forges.NAME.token" in refused.value.hint


def test_a_report_counts_only_as_the_gate_stored_it(stage: ProposalSetup) -> None:
    """A file that was changed afterwards has another digest."""
    report = stage.report(stage.tree())
    assert stage.repo.report(report.digest) == report
    path = stage.repo.state / "gates" / f"{report.digest}.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "proof": ["made up"]}))
    for name in (report.digest, "", "../../etc/passwd", report.digest[:12]):
        with pytest.raises(NotReady, match="no gate report"):
            stage.repo.report(name)


def test_there_is_no_merge_call_in_the_code_base() -> None:
    """The agent never merges, and no code path does it for the agent: not one text names such an endpoint."""
    package = Path(bailiwick.__file__).parent
    merging = re.compile(r"/merges?\b|merge_upstream|enablePullRequestAutoMerge|/merge-upstream", re.IGNORECASE)
    found = [
        f"{path.name}:{node.lineno}"
        for path in package.rglob("*.py")
        if "testing" not in path.parts
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and merging.search(node.value)
    ]
    assert found == []
