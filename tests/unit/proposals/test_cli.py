"""`bailiwick proposals` as a person uses it: what is printed, what is asked, and with which exit code it ends."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from bailiwick.cli.commands.proposals import proposals
from bailiwick.config.paths import find_paths
from bailiwick.errors import BailiwickError, NotFound, NotReady, UsageError
from bailiwick.proposals.model import Proposal
from bailiwick.proposals.service import propose
from bailiwick.testing.forge_server import ForgeServer, Trip
from tests.unit.proposals.stage import BRANCH, NAME, TOKEN, ProposalSetup, forge_stage, git, run


@dataclass
class ProposalOwner:
    """Somebody with a proposal that is on this machine only, and a forge that is configured."""

    stage: ProposalSetup
    proposal: Proposal

    def runs(self, *args: str) -> tuple[int, str]:
        """Give a command; errors of ours are raised."""
        runner = CliRunner()
        with runner.isolation() as (out, _, _):
            code = proposals.main(list(args), standalone_mode=False) or 0
            return code, out.getvalue().decode()

    def change(self, **fields: Any) -> None:
        """Something happens to the proposal."""
        run(self.stage.repo.store.change(self.proposal.id, lambda now: replace(now, **fields)))


@pytest.fixture
def person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ProposalOwner]:
    """A person in their repository."""
    monkeypatch.setenv("BAILIWICK_HOME", str(tmp_path))
    monkeypatch.setenv("FORGE", TOKEN)
    with ForgeServer(tmp_path / "served", "github") as forge:
        stage = forge_stage(tmp_path, forge, mode="ask")
        git(stage.repository, "remote", "add", "origin", f"{forge.url}/{NAME}.git")
        (tmp_path / "config").mkdir()
        (tmp_path / "config" / "config.yaml").write_text(
            f'forges: {{there: {{type: github, url: "{forge.url}", token: "${{secret:env:FORGE}}"}}}}\n'
        )
        tree = stage.tree()
        made = run(propose(stage.ask(tree, asked="please @pat"), stage.report(tree), stage.repo)).proposal
        assert find_paths().state == stage.repo.state
        monkeypatch.chdir(stage.repository)
        yield ProposalOwner(stage, made)


def _json(printed: str) -> Any:
    return json.loads(printed)


def test_the_list_shows_what_waits_for_people(person: ProposalOwner) -> None:
    """Bare and by name, for people and for programs; what is over only on request."""
    for args in ((), ("list",)):
        code, printed = person.runs(*args)
        assert code == 0
        assert f"{person.proposal.id}  open" in printed
        assert BRANCH in printed
    person.change(status="merged")
    assert "No proposals wait" in person.runs("list")[1]
    listed = _json(person.runs("list", "--all", "--json")[1])["proposals"]
    assert [(one["id"], one["status"]) for one in listed] == [(person.proposal.id, "merged")]


def test_show_prints_the_document_the_change_and_the_next_commands(person: ProposalOwner) -> None:
    """The id may be cut short; a branch names it too."""
    code, printed = person.runs("show", person.proposal.id[:5], "--diff")
    assert code == 0
    for part in (
        "## Evidence",
        "**No test shows this fix.**",
        "+    return price * (100",
        f"git diff {person.proposal.base[:12]}..{BRANCH}",
    ):
        assert part in printed
    data = _json(person.runs("show", BRANCH, "--json")[1])
    assert (data["id"], data["commit"]) == (person.proposal.id, person.proposal.commit)
    assert "## How to undo" in data["document"]


def test_the_change_is_printed_alone(person: ProposalOwner) -> None:
    """As a patch, as a table, as a document; the newest proposal where none is named."""
    code, patch = person.runs("diff", person.proposal.id)
    assert (code, patch.startswith("diff --git")) == (0, True)
    assert "+    return price * (100" in patch
    assert person.runs("diff")[1] == patch
    assert person.runs("diff", "--stat")[1] == "shop.py  +1 −1\n"
    told = _json(person.runs("diff", "--json")[1])
    assert told["files"] == [{"path": "shop.py", "status": "M", "added": 1, "deleted": 1}]


def test_a_checkout_leaves_the_persons_files_alone_and_starts_nothing(person: ProposalOwner, tmp_path: Path) -> None:
    """The branch lies in a directory of its own; hooks and filters of the repository are not started for it."""
    repository = person.stage.repository
    ran = tmp_path / "ran"
    hook = repository / ".git" / "hooks" / "post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {ran}\n")
    hook.chmod(0o755)
    git(repository, "config", "filter.evil.smudge", f"touch {ran}; cat")
    (repository / ".git" / "info").mkdir(exist_ok=True)
    (repository / ".git" / "info" / "attributes").write_text("*.py filter=evil\n")
    (repository / "mine.txt").write_text("not committed\n")
    code, printed = person.runs("checkout", person.proposal.id, "--into", str(tmp_path / "there"))
    assert code == 0, printed
    assert "100 - percent" in (tmp_path / "there" / "shop.py").read_text()
    assert git(tmp_path / "there", "rev-parse", "--abbrev-ref", "HEAD") == BRANCH
    assert (ran.exists(), (repository / "mine.txt").read_text()) == (False, "not committed\n")
    assert git(repository, "rev-parse", "--abbrev-ref", "HEAD") == "main"
    with pytest.raises(NotReady):
        person.runs("checkout", person.proposal.id, "--into", str(tmp_path / "again"))
    assert f"git worktree remove {tmp_path / 'there'}" in printed
    git(repository, "worktree", "remove", str(tmp_path / "there"))


def test_a_checkout_never_writes_over_something(person: ProposalOwner, tmp_path: Path) -> None:
    """A directory that holds files is refused as it is."""
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").write_text("mine")
    with pytest.raises(UsageError):
        person.runs("checkout", person.proposal.id, "--into", str(tmp_path / "full"))
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["x"]
    code, printed = person.runs("checkout", person.proposal.id, "--json")
    folder = Path(_json(printed)["directory"])
    assert (code, folder.parent) == (0, person.stage.repository.parent)


def test_an_unknown_proposal_is_an_error_with_a_hint(person: ProposalOwner) -> None:
    """Nothing is done to something else instead."""
    for name in ("zzzz", "", "../x", person.proposal.id[:2]):
        with pytest.raises(NotFound) as refused:
            person.runs("discard", name)
        assert refused.value.exit_code == 2


def test_publish_without_consent_waits_for_a_person(person: ProposalOwner) -> None:
    """There is no terminal to ask at: exit 3, and the command that gives the consent."""
    code, printed = person.runs("publish", person.proposal.id)
    assert code == 3
    assert f"bailiwick proposals publish {person.proposal.id} --yes" in printed
    assert person.stage.the_forge()[1].tickets == {}


def test_publish_with_consent_opens_the_draft(person: ProposalOwner) -> None:
    """One word from a person, then exit 0 and the address."""
    code, printed = person.runs("publish", person.proposal.id, "--yes", "--json")
    data = _json(printed)
    assert (code, data["published"], data["needs_consent"]) == (0, True, False)
    assert data["url"].endswith(f"/{NAME}/pull/1")
    assert person.stage.the_forge()[1].head(BRANCH) == person.proposal.commit


def test_a_person_decides_and_never_a_process_of_a_run(person: ProposalOwner, monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent that finds our command can't give the consent, revoke it, or reject."""
    monkeypatch.setenv("BAILIWICK_RUN", "run-1")
    name = person.proposal.id
    for args in (("publish", name, "--yes"), ("reject", name, "--because", "x"), ("consent", "revoke", "a/b/c")):
        with pytest.raises(UsageError) as refused:
            person.runs(*args)
        assert refused.value.code == "BW477"
    assert person.stage.the_forge()[0].seen == []


def test_a_forge_that_is_down_is_told_and_nothing_is_lost(person: ProposalOwner) -> None:
    """Exit 8: nothing was spent, and the proposal is still here."""
    person.stage.the_forge()[0].faults.append(Trip("", 503))
    with pytest.raises(BailiwickError) as refused:
        person.runs("publish", person.proposal.id, "--yes")
    assert refused.value.exit_code == 8
    kept = run(person.stage.repo.store.get(person.proposal.id))
    assert kept is not None
    assert kept.status == "open"


def test_discard_says_what_it_did(person: ProposalOwner) -> None:
    """The branch goes; the commit's id is said so that it can be found again."""
    code, printed = person.runs("discard", person.proposal.id)
    assert code == 0
    assert f"deleted (it was at {person.proposal.commit[:12]})" in printed
    assert git(person.stage.repository, "branch", "--list", "agent/*") == ""


def test_reject_keeps_the_branch_and_says_how_to_discard_it(person: ProposalOwner) -> None:
    """A rejection is a word, not a deletion."""
    code, printed = person.runs("reject", person.proposal.id, "--because", "wrong")
    assert code == 0
    assert f"bailiwick proposals discard {person.proposal.id}" in printed
    assert git(person.stage.repository, "rev-parse", BRANCH) == person.proposal.commit


def test_follow_looks_once_and_tells_each_round(person: ProposalOwner) -> None:
    """For programs it starts nothing: whoever reads it decides."""
    person.runs("publish", person.proposal.id, "--yes")
    _, hosted, _ = person.stage.the_forge()
    assert "nothing to do" in person.runs("follow", "--once")[1]
    hosted.say(1, person.stage.people["pat"], "Please round.")
    (row,) = _json(person.runs("follow", "--json")[1])["proposals"]
    assert (row["round"]["texts"], row["round"]["base"]) == (["pat wrote:\nPlease round."], person.proposal.commit)
    hosted.merge_as_person(1)
    code, printed = person.runs("follow")
    assert (code, "merged by a person" in printed) == (0, True)


def test_what_is_printed_never_acts_on_the_terminal(person: ProposalOwner) -> None:
    """Titles and branches are other people's texts."""
    person.change(title="\x1b]0;owned\x07\x1b[2Jhi")
    assert "\x1b" not in person.runs("list")[1]


def test_one_forge_that_is_down_does_not_keep_follow_from_the_others(person: ProposalOwner) -> None:
    """A night's watch goes on; by name the error is the answer."""
    person.runs("publish", person.proposal.id, "--yes")
    gone = replace(person.proposal, id="0" * 10, status="published", repository="/nowhere")
    run(person.stage.repo.store.change(gone.id, lambda now: now, new=gone))
    code, printed = person.runs("follow", "--once")
    assert code == 8
    assert f"{person.proposal.id}  nothing to do" in printed
    assert f"{'0' * 10}  " in printed
    with pytest.raises(BailiwickError):
        person.runs("follow", "0" * 10, "--once")
