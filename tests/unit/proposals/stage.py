"""A repository with a change that the gate passed, a desk to propose it at, and a forge to send it to."""

from __future__ import annotations

import asyncio
import atexit
import os
import subprocess
from collections.abc import Coroutine
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from bailiwick.clock import ManualClock
from bailiwick.gate.model import CheckResult, GateReport
from bailiwick.gate.report import store_report
from bailiwick.git.store import GitStore
from bailiwick.journal.opening import open_store
from bailiwick.journal.port import Store
from bailiwick.proposals.forges.port import ForgeRepository
from bailiwick.proposals.forges.rest import Network
from bailiwick.proposals.repository import RepositoryProposals
from bailiwick.proposals.service import ProposeAsk
from bailiwick.proposals.settings import ProposalSettings
from bailiwick.testing.forge_server import ForgeServer
from bailiwick.testing.forge_server_state import ForgeAccount, Hosted

NAME = "acme/shop"
BRANCH = "agent/discount-1a2b"
TOKEN = "t0ken-of-the-agent"
T = TypeVar("T")
_opened: list[Store] = []


@cache
def _runner() -> asyncio.Runner:
    """One loop for all steps of all tests: a vault belongs to the loop that it was first used in."""
    runner = asyncio.Runner()
    atexit.register(runner.close)
    return runner


def run(work: Coroutine[Any, Any, T]) -> T:
    """Do one thing to its end."""
    return _runner().run(work)


def close_stores() -> None:
    """Close what the stages of a test opened."""
    while _opened:
        run(_opened.pop().close())


def git(where: Path, *args: str) -> str:
    """What a person's git says."""
    env = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1"}
    who = ("-c", "user.name=Pat", "-c", "user.email=pat@example.org", "-c", "protocol.file.allow=always")
    done = subprocess.run(["git", *who, *args], cwd=where, env=env, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def make_repository(where: Path) -> Path:
    """A repository with one commit."""
    where.mkdir(parents=True)
    git(where, "init", "-q", "-b", "main")
    (where / "shop.py").write_text("def discount(price, percent):\n    return price - percent\n")
    git(where, "add", ".")
    git(where, "commit", "-q", "-m", "first")
    return where


@dataclass
class ProposalSetup:
    """A desk with a change on it."""

    repository: Path
    repo: RepositoryProposals
    base: str
    clock: ManualClock
    forge: ForgeServer | None = None
    hosted: Hosted | None = None
    agent: ForgeAccount | None = None
    people: dict[str, ForgeAccount] = field(default_factory=dict)

    def tree(self, text: str = "def discount(price, percent):\n    return price * (100 - percent) / 100\n") -> str:
        """A tree in which the file has another text."""
        return run(self.repo.git_store.write(self.base, {"shop.py": text.encode()}))

    def report(self, tree: str, base: str = "", **more: Any) -> GateReport:
        """A green report, stored as the gate does."""
        checks = (CheckResult("tests", "pytest", "tests", "passed", ("pytest", "-q"), 0, 1.5, (("passed", 3),)),)
        made = GateReport("green", tree, base or self.base, tree, "policy", "environment", "bwrap", checks, **more)
        store_report(self.repo.state, made)
        return made

    def ask(self, tree: str, **more: Any) -> ProposeAsk:
        """A change to propose."""
        wanted = ProposeAsk(
            run="run-1",
            branch=BRANCH,
            base=self.base,
            tree=tree,
            title="discount",
            kind="issue-to-pr",
            when=1_700_000_000.0,
        )
        return replace(wanted, **more)

    def settings(self, **more: Any) -> None:
        """Change what the operator configured."""
        self.repo.settings = replace(self.repo.settings, **more)

    def the_forge(self) -> tuple[ForgeServer, Hosted, ForgeAccount]:
        """The forge, its repository and the agent's account."""
        assert self.forge is not None
        assert self.hosted is not None
        assert self.agent is not None
        return self.forge, self.hosted, self.agent


def local_stage(tmp_path: Path, **settings: Any) -> ProposalSetup:
    """No forge."""
    repository = make_repository(tmp_path / "work" / "shop")
    clock = ManualClock()
    state = tmp_path / "state"
    state.mkdir(mode=0o700)
    git_store = run(GitStore.open(state, repository))
    base = run(git_store.resolve("HEAD"))
    repo = RepositoryProposals(
        state,
        journal=run(open_store(state, clock)),
        clock=clock,
        settings=ProposalSettings(**{"why_local": "it has no remote on a forge", **settings}),
        git_store=git_store,
        by="pat",
    )
    _opened.append(repo.journal)
    return ProposalSetup(repository, repo, base, clock)


def forge_stage(tmp_path: Path, forge: ForgeServer, **settings: Any) -> ProposalSetup:
    """A forge with the same repository, on which the agent may push; publishing is allowed unless said otherwise."""
    stage = local_stage(tmp_path)
    agent, pat = forge.forgery.account("agent", TOKEN), forge.forgery.account("pat", "pats-own")
    hosted = forge.add(NAME, (agent, "write"), (pat, "admin"))
    git(stage.repository, "push", "-q", str(hosted.path), "main")
    stage.forge, stage.hosted, stage.agent, stage.people = forge, hosted, agent, {"pat": pat}
    site = make_site(forge, stage.clock)
    stage.repo.settings = ProposalSettings(
        **{"mode": "auto", "site": site, "token": lambda: TOKEN, "network": Network(total=5.0), **settings}
    )
    return stage


def make_site(forge: ForgeServer, clock: ManualClock, *, fork: bool = False) -> ForgeRepository:
    """The repository on the forge."""
    owner, name = NAME.split("/")
    return ForgeRepository("there", forge.flavour, forge.url, owner, name, clock, fork)
