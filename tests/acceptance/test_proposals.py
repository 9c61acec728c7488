"""Proposals from the command line: a workflow proposes, a person looks, publishes to a forge, follows, discards."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from bailiwick.gate.model import CheckResult, GateReport
from bailiwick.gate.report import store_report
from bailiwick.git.store import GitStore
from bailiwick.testing.forge_server import ForgeServer
from tests.acceptance.command import Person
from tests.unit.proposals.stage import BRANCH, NAME, TOKEN, git, make_repository

FLOW = """version: 1
name: offer
params: {report: {type: string}, base: {type: string}, repository: {type: string}}
start: propose
nodes:
  - id: propose
    type: propose
    repository: "{{ repository }}"
    report: "{{ report }}"
    base: "{{ base }}"
    branch: agent/discount-1a2b
    title: discount
    issue: {ref: "#7", stem: discount, text: "It must be 180."}
    outputs: [{key: proposal}]
    next: done
  - {id: done, type: terminal}
"""


@dataclass
class GatedRepository:
    """A person in a repository whose change the gate passed, with a forge that is configured."""

    person: Person
    forge: ForgeServer
    params: dict[str, str]

    def propose(self) -> str:
        """Let the workflow propose; the proposal's id."""
        flow = self.person.workflow("offer", FLOW)
        result = self.person.runs("run", flow, "--params", json.dumps(self.params), "--json")
        assert result.code == 0, result.err
        made: str = result.json()["context"]["proposal"]["id"]
        return made


@pytest.fixture
def repo(person: Person, tmp_path: Path) -> Iterator[GatedRepository]:
    """No network but the forge on loopback, and a token in a variable."""
    repository = make_repository(tmp_path / "shop")
    state = person.home / "state"
    state.mkdir(parents=True, mode=0o700)

    async def change() -> tuple[str, str]:
        git_store = await GitStore.open(state, repository)
        base = await git_store.resolve("HEAD")
        return base, await git_store.write(base, {"shop.py": b"fixed\n"})

    base, tree = asyncio.run(change())
    checks = (CheckResult("tests", "pytest", "tests", "passed", ("pytest", "-q"), 0),)
    digest = store_report(state, GateReport("green", tree, base, tree, "p", "e", "bwrap", checks))
    with ForgeServer(tmp_path / "served", "gitea") as forge:
        hosted = forge.add(NAME, (forge.forgery.account("agent", TOKEN), "write"))
        git(repository, "push", "-q", str(hosted.path), "main")
        git(repository, "remote", "add", "origin", f"{forge.url}/{NAME}.git")
        (person.home / "config").mkdir()
        token = "${secret:env:FORGE_TOKEN}"
        (person.home / "config" / "config.yaml").write_text(
            f'forges: {{ours: {{type: forgejo, url: "{forge.url}", token: "{token}"}}}}\n'
        )
        person.extra["FORGE_TOKEN"] = TOKEN
        yield GatedRepository(person, forge, {"report": digest, "base": base, "repository": str(repository)})


def test_a_proposal_stays_here_until_a_person_consents_and_then_is_one_draft(repo: GatedRepository) -> None:
    """Unattended without consent nothing leaves; one `--yes` later it is on the forge, and never merged."""
    made, hosted = repo.propose(), repo.forge.forgery.repositories[NAME]
    assert hosted.head(BRANCH) == ""
    waits = repo.person.runs("proposals", "publish", made)
    assert waits.code == 3
    assert f"bailiwick proposals publish {made} --yes" in waits.out
    done = repo.person.runs("proposals", "publish", made, "--yes")
    assert done.code == 0, done.err
    assert done.out.splitlines()[0] == "gate passed, proposing, NOT merging"
    (pull,) = hosted.tickets.values()
    assert (pull.title, pull.state, pull.base) == ("WIP: Agent: implement discount", "open", "main")
    assert hosted.head(BRANCH) == repo.person.runs("proposals", "show", made, "--json").json()["commit"]
    assert [seen.path for seen in repo.forge.seen if seen.path.endswith("/merge")] == []


def test_a_revoked_consent_publishes_nothing_more(repo: GatedRepository) -> None:
    """Given, listed, revoked: the next proposal waits again, the audit tells it, and it can't be revoked twice."""
    made, hosted = repo.propose(), repo.forge.forgery.repositories[NAME]
    assert repo.person.runs("proposals", "publish", made, "--yes").code == 0
    (given,) = repo.person.runs("proposals", "consent", "list", "--json").json()["consents"]
    assert given["repository"] in repo.person.runs("proposals", "consent", "list").out
    gone = repo.person.runs("proposals", "consent", "revoke", given["repository"], "--json")
    assert (gone.code, gone.json()) == (0, {"revoked": [given]})
    requests = len(repo.forge.seen)
    assert repo.person.runs("proposals", "publish", made).code == 3
    assert (len(repo.forge.seen), len(hosted.tickets)) == (requests, 1)
    again = repo.person.runs("proposals", "consent", "revoke", given["repository"])
    assert again.code == 2
    assert f"no consent for '{given['repository']}'" in again.err
    assert "No consents." in repo.person.runs("proposals", "consent", "list").out
    kinds = [entry["kind"] for entry in repo.person.runs("audit", "show", "--json").json()["entries"]]
    assert [kind for kind in kinds if kind.startswith("consent.")] == ["consent.given", "consent.withdrawn"]


def test_the_same_run_again_prints_the_same_proposal(repo: GatedRepository) -> None:
    """One proposal per run, however often the command is given."""
    made = repo.propose()
    again = repo.person.runs("run", repo.person.cwd / "offer", "--params", json.dumps(repo.params), "--json")
    assert again.json()["context"]["proposal"]["id"] == made
    assert len(repo.person.runs("proposals", "list", "--json").json()["proposals"]) == 1


def test_a_wrong_token_is_an_error_that_says_what_to_do(repo: GatedRepository) -> None:
    """Exit 8, the code, the hint; never the token."""
    made = repo.propose()
    repo.person.extra["FORGE_TOKEN"] = "wrong-token-value"
    result = repo.person.runs("proposals", "publish", made, "--yes")
    assert result.code == 8
    assert "error[BW471]" in result.err
    assert "wrong-token-value" not in result.out + result.err


@pytest.mark.nightly
def test_a_review_is_told_and_a_discard_leaves_the_forge_alone(repo: GatedRepository) -> None:
    """`follow --json` names the round that is asked for; closing a pull request is a person's."""
    made, hosted = repo.propose(), repo.forge.forgery.repositories[NAME]
    assert repo.person.runs("proposals", "publish", made, "--yes").code == 0
    hosted.review(1, repo.forge.forgery.account("pat", "p"), "Round it.", "REQUEST_CHANGES")
    (row,) = repo.person.runs("proposals", "follow", "--json").json()["proposals"]
    assert row["round"]["texts"] == ["pat wrote:\nRound it."]
    gone = repo.person.runs("proposals", "discard", made)
    assert gone.code == 0
    assert "still open" in gone.out
    assert hosted.tickets[1].state == "open"
    assert repo.person.runs("proposals").out.startswith("No proposals wait.")


def test_the_list_of_an_empty_home_is_no_error(person: Person) -> None:
    """The first thing that somebody tries."""
    result = person.runs("proposals", "--help")
    assert result.code == 0
    assert person.runs("proposals", "list", "--json").json() == {"proposals": []}
    assert person.runs("proposals", "show", "nothing").code == 2
