"""An issue of a forge becomes a draft pull request there, where a person has said so; else it stays here."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from bailiwick.lang.source import read_yaml
from bailiwick.pipelines.simulation import write_repository
from bailiwick.testing.forge_server import ForgeServer
from bailiwick.testing.forge_server_state import Hosted
from bailiwick.workflows.service import BUNDLED
from tests.acceptance.command import Person, Result
from tests.acceptance.toolbox import python_with_pytest

__all__ = ["python_with_pytest"]
pytestmark = pytest.mark.slow
NAME = "acme/shop"
TOKEN = "t0ken-of-the-agent"
LONG = 280.0
SCRIPT = BUNDLED / "issue-to-pr" / "simulate" / "good.yaml"


@dataclass
class ForgeClone:
    """A person in a clone whose forge has one more commit, and an issue."""

    person: Person
    hosted: Hosted
    newest: str

    def asks(self, issue: str, mode: str) -> Result:
        """Give the command, with `publish.mode` set."""
        self.person.extra["BAILIWICK_PUBLISH_MODE"] = mode
        return self.person.runs("issue-to-pr", issue, "--simulate", SCRIPT, timeout=LONG)


def _git(root: Path, *words: str) -> str:
    who = ("-c", "user.name=Pat", "-c", "user.email=pat@example.org")
    return subprocess.run(["git", *who, *words], cwd=root, capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture
def repo(person: Person, tmp_path: Path) -> Iterator[ForgeClone]:
    """No network but the forge on loopback, and a token in a variable."""
    project = read_yaml(BUNDLED / "issue-to-pr" / "simulate" / "project.yaml").data
    assert isinstance(project, dict)
    files = {**project["files"], ".bailiwick/gate.yaml": project["gate"]["pytest"]}
    person.cwd = root = write_repository(tmp_path / "work" / "shop", files)
    with ForgeServer(tmp_path / "served", "gitea") as forge:
        account = forge.forgery.account("agent", TOKEN)
        hosted = forge.add(NAME, (account, "write"))
        _git(root, "commit", "-q", "--allow-empty", "-m", "newer")
        newest = _git(root, "rev-parse", "HEAD")
        _git(root, "push", "-q", str(hosted.path), "HEAD:main")
        _git(root, "reset", "-q", "--hard", "HEAD~1")
        _git(root, "remote", "add", "origin", f"{forge.url}/{NAME}.git")
        hosted.open_issue("Round to cents", "discount(19.99, 10) should be 17.99. @everyone", account)
        (person.home / "config").mkdir(parents=True)
        entry = f'{{type: forgejo, url: "{forge.url}", token: "${{secret:env:FORGE_TOKEN}}"}}'
        (person.home / "config" / "config.yaml").write_text(f"forges: {{ours: {entry}}}\n")
        person.extra |= {"FORGE_TOKEN": TOKEN, "BAILIWICK_RETENTION_MIN_FREE": "100MB"}
        yield ForgeClone(person, hosted, newest)


def test_an_issue_of_a_forge_becomes_one_draft_pull_request(repo: ForgeClone) -> None:
    """From the forge's branch as it is now, not from the person's older HEAD; the same issue twice is one run."""
    result = repo.asks("1", "auto")
    assert result.code == 0, result.out + result.err
    assert f"base      main at {repo.newest[:12]}" in result.out
    (pull,) = [ticket for ticket in repo.hosted.tickets.values() if ticket.number != 1]
    assert pull.title.startswith("WIP: Agent: implement issue 1")
    assert _git(repo.person.cwd, "rev-parse", f"{pull.head}~1") == repo.newest
    again = repo.asks("#1", "auto")
    assert (again.code, len(repo.hosted.tickets)) == (0, 2)


@pytest.mark.nightly
def test_without_consent_the_proposal_stays_here_and_says_how_to_send_it(repo: ForgeClone) -> None:
    """Exit code 3, the branch only on this machine; one command later the same command is content."""
    result = repo.asks(f"{NAME}#1", "ask")
    assert result.code == 3, result.out + result.err
    assert "gate passed, proposing, NOT merging" in result.out
    assert len(repo.hosted.tickets) == 1
    command = next(line for line in result.out.splitlines() if "--yes" in line).partition("bailiwick ")[2]
    assert repo.person.runs(*command.split(), timeout=LONG).code == 0
    assert len(repo.hosted.tickets) == 2
    assert repo.asks("1", "ask").code == 0


def test_a_token_that_can_not_publish_is_found_before_anything_is_spent(repo: ForgeClone) -> None:
    """Exit code 8 in the preflight: no run was started."""
    repo.person.extra["FORGE_TOKEN"] = "wrong"
    result = repo.asks("1", "auto")
    assert result.code == 8, result.out + result.err
    assert "BW471" in result.err
    (repo.person.cwd / "issue.md").write_text("# Round to cents\n")
    local = repo.asks("issue.md", "auto")
    assert local.code == 8, local.out + local.err
    assert not list((repo.person.home / "state" / "runs").glob("*"))
