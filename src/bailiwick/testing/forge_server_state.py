"""What a stub of a forge knows: accounts, and repositories whose heads are git's own."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from bailiwick.testing.git_server import run_git

Right = Literal["none", "read", "write", "admin"]
Json = Any
_RANKS = ("none", "read", "write", "admin")
START = 1_767_225_600
"""The stub's time begins here; each thing that is made comes a second later."""


class ForgeApiError(Exception):
    """An answer that is no success."""

    def __init__(self, status: int, message: str, **more: Json) -> None:
        super().__init__(message)
        self.status = status
        self.body: dict[str, Json] = {"message": message, **more}


@dataclass(slots=True)
class ForgeAccount:
    """Somebody with a token; rights are per repository. An installation has no user of its own."""

    login: str
    id: int
    token: str
    expires: str = ""
    bot: bool = False
    installation: bool = False
    rights: dict[str, Right] = field(default_factory=dict)


@dataclass(slots=True)
class ForgeComment:
    """A comment or a review; `path` and `line` make it one about a line, `state` a review."""

    id: int
    author: ForgeAccount
    body: str
    at: str
    path: str = ""
    line: int | None = None
    state: str = ""


@dataclass(slots=True)
class ForgeIssue:
    """An issue or a pull request; `head` is the branch of one."""

    number: int
    title: str
    body: str
    author: ForgeAccount
    at: str
    state: str = "open"
    labels: list[str] = field(default_factory=list)
    comments: list[ForgeComment] = field(default_factory=list)
    head: str = ""
    head_repo: str = ""
    base: str = ""
    draft: bool = False
    merged_at: str = ""
    reviews: list[ForgeComment] = field(default_factory=list)
    lines: list[ForgeComment] = field(default_factory=list)


@dataclass(slots=True)
class ForgeCheckRun:
    """A check run or a commit status."""

    name: str
    outcome: str
    summary: str = ""
    run: bool = True


@dataclass(slots=True)
class Hosted:
    """A repository on the stub; `path` is the bare repository that git serves."""

    name: str
    path: Path
    clock: Iterator[int]
    fork_of: str = ""
    default_branch: str = "main"
    archived: bool = False
    drafts: bool = True
    approvals: int = 0
    protected: bool = False
    tickets: dict[int, ForgeIssue] = field(default_factory=dict)
    labels: dict[str, int] = field(default_factory=dict)
    checks: dict[str, list[ForgeCheckRun]] = field(default_factory=dict)

    @property
    def owner(self) -> str:
        """Whose it is."""
        return self.name.partition("/")[0]

    def now(self) -> str:
        """The stub's time, a second later each time it is asked."""
        return datetime.fromtimestamp(next(self.clock), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    def open_issue(self, title: str, body: str, author: ForgeAccount) -> ForgeIssue:
        """Somebody writes an issue."""
        return self.open_pull(self.new_pull(title, body, author))

    def open_pull(self, ticket: ForgeIssue) -> ForgeIssue:
        """Somebody opens a pull request."""
        self.tickets[ticket.number] = ticket
        return ticket

    def new_pull(self, title: str, body: str, author: ForgeAccount) -> ForgeIssue:
        """A pull request that is not opened yet."""
        number = max(self.tickets, default=0) + 1
        return ForgeIssue(number, title=title, body=body, author=author, at=self.now())

    def say(self, number: int, author: ForgeAccount, body: str) -> ForgeComment:
        """Somebody comments."""
        note = ForgeComment(next(self.clock), author, body, self.now())
        self.tickets[number].comments.append(note)
        return note

    def review(self, number: int, author: ForgeAccount, body: str, state: str = "COMMENTED") -> ForgeComment:
        """Somebody reviews."""
        note = ForgeComment(next(self.clock), author, body, self.now(), state=state)
        self.tickets[number].reviews.append(note)
        return note

    def remark(self, number: int, author: ForgeAccount, body: str, path: str, line: int) -> ForgeComment:
        """Somebody comments on a line."""
        note = ForgeComment(next(self.clock), author=author, body=body, at=self.now(), path=path, line=line)
        self.tickets[number].lines.append(note)
        return note

    def head(self, branch: str) -> str:
        """Where a branch stands, "" where there is none."""
        return self.git("rev-parse", "--verify", "-q", f"refs/heads/{branch}")

    def merge_as_person(self, number: int) -> None:
        """A person merges it: the base moves to its head."""
        ticket = self.tickets[number]
        self.git("update-ref", f"refs/heads/{ticket.base}", self.head(ticket.head))
        ticket.state, ticket.merged_at = "closed", self.now()

    def git(self, *args: str) -> str:
        """What git says about the repository; "" where it says no."""
        done = run_git(["-C", str(self.path), *args])
        return done.stdout.decode().strip() if done.returncode == 0 else ""


@dataclass(slots=True)
class Forgery:
    """All that a stub knows. `url` is set when it is served."""

    accounts: dict[str, ForgeAccount] = field(default_factory=dict)
    repositories: dict[str, Hosted] = field(default_factory=dict)
    url: str = ""
    clock: Iterator[int] = field(default_factory=lambda: itertools.count(START))

    def account(self, login: str, token: str, **more: Json) -> ForgeAccount:
        """Make an account."""
        made = ForgeAccount(login, 1000 + len(self.accounts), token, **more)
        self.accounts[token] = made
        return made

    def right(self, account: ForgeAccount | None, name: str) -> Right:
        """What an account may do with a repository; its owner may do all."""
        if account is None:
            return "none"
        return "admin" if name.partition("/")[0] == account.login else account.rights.get(name, "none")

    def find(self, account: ForgeAccount | None, name: str, least: Right = "read") -> Hosted:
        """A repository that an account may see; what it may not see does not exist, what it may not do is forbidden."""
        hosted = self.repositories.get(name)
        right = self.right(account, name)
        if hosted is None or right == "none":
            raise ForgeApiError(404, "Not Found")
        if _RANKS.index(right) < _RANKS.index(least):
            raise ForgeApiError(403, "Resource not accessible by personal access token")
        return hosted


@dataclass(frozen=True, slots=True)
class ForgeApiRequest:
    """One request to the API; `names` are what its route captured."""

    names: Mapping[str, str]
    query: Mapping[str, str]
    body: Mapping[str, Json]
    account: ForgeAccount | None

    @property
    def repository(self) -> str:
        """`owner/name`."""
        return f"{self.names['owner']}/{self.names['name']}"


@dataclass(frozen=True, slots=True)
class ForgeApiReply:
    """An answer."""

    status: int
    data: Json
    headers: Mapping[str, str] = field(default_factory=dict)
