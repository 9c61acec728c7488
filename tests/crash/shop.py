"""A small shop whose issues and red builds are worked on while processes die: a repository, a forge, a scripted agent.

Its gate is one quick command. The agent is wrong first and right when the gate has said so.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from bailiwick.clock import SystemClock
from bailiwick.journal.opening import opened_store
from bailiwick.pipelines.simulation import write_repository
from bailiwick.proposals.model import Proposal
from bailiwick.proposals.store import ProposalStore
from bailiwick.sandbox.cgroups import find_ground, is_made_by_living
from bailiwick.testing.forge_server import ForgeServer
from bailiwick.testing.forge_server_state import ForgeAccount, Hosted
from tests.acceptance.command import Person

NAME = "acme/shop"
TOKEN = "t0ken-of-the-agent"
GATE = """checks:
  - {name: word, run: [sh, -c, "! grep broken word.txt"]}
protected: [".bailiwick/**"]
"""
ISSUE = "# A better word\n\nThe word has to be better.\n"
DONE = "answer: {outcome: done, summary: said, wants: []}"
WORDS = ("broken at first", "better")
"""What the agent writes, in this order."""
IN_A_ROW = (
    "pin.written", "worktree.filled", "worktree.made", "effect.finished_before_commit:2", "gate.checked",
    "gate.recorded:2", "proposal.committed", "document.committed", "proposal.noted", "proposal.branched",
    "proposal.pushed", "proposal.opened", "worktree.put_away",
)  # fmt: skip
"""All on the way of one run, in this order."""
GIVING_UP = ("work.kept", "worktree.put_away")
"""On the way of a run that makes no proposal."""


def script_of(pattern: str, words: tuple[str, ...] = WORDS) -> str:
    """A simulated agent that writes one word after the other."""
    turns = [f"- edit: {{word.txt: {word!r}}}\n        {DONE}" for word in words]
    first = f"  implement:\n    - {turns.pop(0)}\n" if pattern == "issue-to-pr" else ""
    return f"nodes:\n{first}  fix:\n" + "".join(f"    - {turn}\n" for turn in turns)


def git(where: Path, *words: str, check: bool = True) -> str:
    """What a person's git says."""
    who = ("-c", "user.name=Pat", "-c", "user.email=pat@example.org", "-c", "protocol.file.allow=always")
    done = subprocess.run(["git", *who, *words], cwd=where, capture_output=True, text=True, check=check)
    return done.stdout.strip()


@dataclass
class Shop:
    """A person in the repository of the shop, and the forge it is on."""

    person: Person
    root: Path
    forge: ForgeServer
    hosted: Hosted
    agent: ForgeAccount

    @property
    def state(self) -> Path:
        """The state directory."""
        return self.person.home / "state"

    @property
    def branches(self) -> list[str]:
        """Our branches in the person's repository."""
        return git(self.root, "for-each-ref", "--format=%(refname:lstrip=2)", "refs/heads/agent").split()

    @property
    def pushed(self) -> list[str]:
        """Our branches on the forge."""
        return self.hosted.git("for-each-ref", "--format=%(refname:lstrip=2)", "refs/heads/agent").split()

    @property
    def pulls(self) -> list[str]:
        """The branches that pull requests were opened for, one for each request."""
        return [ticket.head for ticket in self.hosted.tickets.values() if ticket.head]

    @property
    def proposals(self) -> list[Proposal]:
        """All proposals there are."""

        async def read() -> list[Proposal]:
            async with opened_store(self.state, SystemClock()) as store:
                return await ProposalStore(store, self.state).all()

        return asyncio.run(read())

    @property
    def shown(self) -> list[str]:
        """How proposals stand by the files that people read."""
        return [json.loads(file.read_text())["status"] for file in (self.state / "proposals").glob("*.json")]

    def command(self, pattern: str) -> tuple[str | Path, ...]:
        """The command line of a pattern."""
        issue = ("issue.md",) if pattern == "issue-to-pr" else ()
        return (pattern, *issue, "--simulate", self.person.home.parent / f"{pattern}.yaml")

    def leftovers(self) -> list[str]:
        """What should not be there when a command has ended."""
        places = [
            *(self.state / "worktrees").glob("[!.]*"),
            *(self.state / "worktrees").glob(".[!l]*"),
            *(self.person.home / "cache" / "scratch").glob("*"),
            *(self.person.home / "cache" / "gates").glob(".*"),
            *(self.person.home / "cache" / "environments").glob(".new-*"),
            *(self.state / "git").glob("new-*"),
            *(self.state / "proposals").glob(".*"),
            *self.state.glob("git/*/fetch*.tmp"),
        ]
        return [str(place.relative_to(self.person.home)) for place in places]

    def processes(self) -> list[str]:
        """Processes of the shop that are alive, inside and outside of sandboxes."""
        return self._processes("cmdline", "environ", "mountinfo")

    def inside(self) -> list[str]:
        """Processes that see a directory of the shop in the view of a sandbox."""
        return self._processes("mountinfo")

    def _processes(self, *files: str) -> list[str]:
        top = os.fsencode(self.person.home.parent)
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if any(top in (folder / name).read_bytes() for name in files):
                    found.append(f"{folder.name}: {(folder / 'cmdline').read_bytes()[:200]!r}")
        return found

    def picture(self) -> dict[str, bytes]:
        """The person's own: every file of the work tree, and where git says they are."""
        kept = [
            path for path in self.root.rglob("*") if path.is_file() and ".git" not in path.relative_to(self.root).parts
        ]
        kept += [self.root / ".git" / name for name in ("HEAD", "index", "config")]
        return {str(path): path.read_bytes() for path in kept} | {"HEAD": git(self.root, "rev-parse", "HEAD").encode()}


def groups(pids: list[int]) -> list[str]:
    """The control groups that these processes made, which are gone, and that are still there."""
    folders = set((find_ground().folders or {}).values())
    found = [path for folder in folders for pid in pids for path in folder.glob(f"bailiwick-{pid}-*")]
    return [str(path) for path in found if not is_made_by_living(path)]


@contextmanager
def open_shop(tmp_path: Path, pattern: str, **more: str) -> Iterator[Shop]:
    """A shop: its gate is green for issues and red for healing. `more` are further files, `gate` is another gate."""
    tmp_path.mkdir(parents=True, exist_ok=True)
    word = "good\n" if pattern == "issue-to-pr" else "broken\n"
    files = {"word.txt": word, ".bailiwick/gate.yaml": more.pop("gate", GATE), "issue.md": ISSUE, **more}
    root = write_repository(tmp_path / "work" / "shop", files)
    person = Person(tmp_path / "home", root, {"FORGE_TOKEN": TOKEN, "BAILIWICK_RETENTION_MIN_FREE": "10MB"})
    (tmp_path / f"{pattern}.yaml").write_text(script_of(pattern))
    with ForgeServer(tmp_path / "served", "gitea") as forge:
        agent = forge.forgery.account("agent", TOKEN)
        hosted = forge.add(NAME, (agent, "write"))
        git(root, "push", "-q", str(hosted.path), "HEAD:main")
        git(root, "remote", "add", "origin", f"{forge.url}/{NAME}.git")
        token = "${secret:env:FORGE_TOKEN}"
        (person.home / "config").mkdir(parents=True)
        (person.home / "config" / "config.yaml").write_text(
            f'publish: {{mode: auto}}\nforges: {{ours: {{type: forgejo, url: "{forge.url}", token: "{token}"}}}}\n'
        )
        yield Shop(person, root, forge, hosted, agent)
