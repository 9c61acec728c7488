"""The port of forges: what a proposal needs of the place where people review. There is no verb for merging."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, Protocol
from urllib.parse import quote, urlsplit

from bailiwick.clock import Clock
from bailiwick.errors import NotReady
from bailiwick.proposals.model import IssueRef

ForgeType = Literal["github", "gitea", "forgejo"]
Trouble = Literal[
    "auth", "permission", "rate_limit", "not_found", "conflict", "invalid", "moved", "unavailable", "unreachable",
    "timeout", "malformed", "too_large",
]  # fmt: skip
TRANSIENT: frozenset[Trouble] = frozenset({"rate_limit", "unavailable", "unreachable", "timeout", "malformed"})
"""Trying the same again later may help; the engine decides whether."""
_CODES: dict[Trouble, str] = {"auth": "BW471", "permission": "BW472", "not_found": "BW473", "rate_limit": "BW474"}


class ForgeFailed(NotReady):
    """Do what the hint says, or wait `retry_after` seconds; nothing was published."""

    default_code = "BW470"

    def __init__(
        self,
        kind: Trouble,
        what: str,
        *,
        hint: str = "",
        retry_after: float | None = None,
        status: int | None = None,
    ) -> None:
        super().__init__(what, hint=hint, code=_CODES.get(kind, ""))
        self.kind = kind
        self.retry_after = retry_after
        self.status = status

    @property
    def transient(self) -> bool:
        """Whether the same may work later."""
        return self.kind in TRANSIENT


@dataclass(frozen=True, slots=True)
class ForgeRepository:
    """A repository of a forge. `url` is the forge's own, without a slash at its end; `fork`: push to our own copy."""

    forge: str
    type: ForgeType
    url: str
    owner: str
    repository: str
    clock: Clock
    fork: bool = False

    @property
    def host(self) -> str:
        """The forge's host name, with a port where it has an unusual one."""
        return urlsplit(self.url).netloc

    @property
    def full_name(self) -> str:
        """`host/owner/name`, for people and for consents."""
        return f"{self.host}/{self.owner}/{self.repository}"

    def git_url(self, owner: str) -> str:
        """Where git finds somebody's copy of the repository."""
        return f"{self.url}/{quote(owner)}/{quote(self.repository)}.git"


@dataclass(frozen=True, slots=True)
class ForgeAccess:
    """Who we are there and what we may do; None is unknown. `can_merge`: alone, without another person's approval."""

    user: str
    can_push: bool | None
    can_merge: bool | None
    expires: float | None = None
    """When the token ends, in epoch seconds."""


@dataclass(frozen=True, slots=True)
class Issue:
    """An issue as it is now. All of its texts are untrusted."""

    ref: IssueRef
    title: str
    body: str
    url: str
    author: str
    updated: str
    comments: tuple[tuple[str, str], ...] = ()
    """Author and text of the first ones."""


@dataclass(frozen=True, slots=True)
class PullDraft:
    """The pull request that is wanted: there is at most one per branch."""

    branch: str
    base: str
    title: str
    body: str
    draft: bool = True
    labels: tuple[str, ...] = ()


PullState = Literal["open", "merged", "closed"]


@dataclass(frozen=True, slots=True)
class Pull:
    """A pull request as it is now. `ours`: we opened it. `notes` say what could not be done as asked."""

    number: int
    url: str
    state: PullState
    draft: bool
    head: str
    ours: bool = True
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FailedCheck:
    """A check of the forge that is red, in its own untrusted words."""

    name: str
    summary: str
    url: str = ""


@dataclass(frozen=True, slots=True)
class Remark:
    """What somebody wrote under a pull request: untrusted. `own`: by our account or with our mark; `bot`: by a bot."""

    id: str
    author: str
    text: str
    at: str
    path: str = ""
    line: int | None = None
    own: bool = False
    bot: bool = False


@dataclass(frozen=True, slots=True)
class PushTarget:
    """Where branches are pushed, and with what; `owner` is whose copy of the repository it is."""

    url: str
    owner: str
    user: str = "git"
    token: str | None = field(default=None, repr=False)


class Forge(Protocol):
    """Where people review proposals. Each verb is one try: it does what it says or raises `ForgeFailed`."""

    site: ForgeRepository

    async def check_access(self) -> ForgeAccess:
        """Who we are and what we may do, as far as the forge tells."""

    async def default_branch(self) -> str:
        """The name of the branch that work starts from."""

    async def fetch_issue(self, ref: IssueRef) -> Issue:
        """An issue, of this repository unless it names another."""

    async def push_target(self) -> PushTarget:
        """Where to push; a fork is made first where one is asked for and there is none."""

    async def find_pull(self, branch: str, number: int | None = None) -> Pull | None:
        """The pull request of a branch: the one with this number, else the open one; None where there is none."""

    async def open_or_update(self, pull: PullDraft) -> Pull:
        """Open the one pull request of a branch, or bring it up to date; one that a person opened keeps its text."""

    async def label(self, number: int, labels: tuple[str, ...]) -> tuple[str, ...]:
        """Put labels on; gives back what could not be done, in words."""

    async def failed_checks(self, commit: str) -> tuple[FailedCheck, ...]:
        """The red checks of a commit; those that are not done yet are not red."""

    async def remarks(self, number: int, since: float) -> tuple[Remark, ...]:
        """What was written under a pull request after a time, oldest first."""

    async def close(self) -> None:
        """Let go of connections."""
