"""What GitHub and Gitea have in common by REST: push rights, issues, one pull request per branch, labels, checks."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar
from urllib.parse import quote

from bailiwick.agents.streams import at
from bailiwick.ids import Json
from bailiwick.proposals.document import is_ours
from bailiwick.proposals.forges import reading as read
from bailiwick.proposals.forges.port import (
    FailedCheck,
    ForgeAccess,
    ForgeFailed,
    ForgeRepository,
    Issue,
    Pull,
    PullDraft,
    PullState,
    PushTarget,
    Remark,
)
from bailiwick.proposals.forges.rest import Rest, RestAnswer
from bailiwick.proposals.model import IssueRef

COMMENTS = 20
WIP = "WIP: "
"""How the title of a draft begins where drafts are no field of their own."""
_EXISTS = re.compile(r"already exists", re.IGNORECASE)
_DRAFT = re.compile(r"\s*(?:\[wip\]|wip:)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ForgeUser:
    """Whose token it is, without a login where that is not told, and when it ends, in epoch seconds."""

    login: str = ""
    id: int | None = None
    token_expires: float | None = None


@dataclass(slots=True)
class RestForge(ABC):
    """One repository on a forge; what differs between forges are the class variables and the abstract methods."""

    site: ForgeRepository
    rest: Rest
    _user: ForgeUser | None = None
    draft_by_title: ClassVar[bool]
    """Whether a title makes a pull request a draft, instead of a field."""
    status_field: ClassVar[str]
    """Where a commit status says how it ended."""
    line_field: ClassVar[str]
    """Where a comment says its line."""
    changes_requested: ClassVar[str]
    """The state of a review that asks for changes."""

    @abstractmethod
    async def _can_merge(self, branch: str, push: bool | None, *, admin: bool) -> bool | None:
        """Whether we could merge into a branch without another person; None where that is not told."""

    @abstractmethod
    async def _open_pulls(self, branch: str) -> list[Json]:
        """The open pull requests of a branch of ours."""

    @abstractmethod
    async def _head(self, branch: str) -> str:
        """A branch of ours as the head of a pull request."""

    @abstractmethod
    async def _written(self, number: int, since: str) -> list[Json]:
        """The reviews and comments of a pull request; older ones may be among them."""

    async def check_access(self) -> ForgeAccess:
        user = await self._who()
        repository = (await self.rest.get(self._repo())).data
        push, admin = read.flag(repository, "permissions", "push"), read.flag(repository, "permissions", "admin")
        if read.flag(repository, "archived"):
            push = False
        branch = read.text(repository, "default_branch")
        merge = await self._can_merge(branch, push, admin=bool(admin)) if branch else None
        if self.site.fork and push is False:
            push = True if user.login else None
        return ForgeAccess(user.login, can_push=push, can_merge=merge, expires=user.token_expires)

    async def default_branch(self) -> str:
        return read.text((await self.rest.get(self._repo())).data, "default_branch") or "main"

    async def fetch_issue(self, ref: IssueRef) -> Issue:
        path = f"{self._repo(ref)}/issues/{ref.number}"
        data = (await self.rest.get(path)).data
        if not read.text(data, "title"):
            raise self.rest.malformed("an issue without a title")
        found = (await self.rest.get(f"{path}/comments", {self.rest.page: COMMENTS})).data
        comments = [(read.text(c, "user", "login"), read.text(c, "body")) for c in found or [] if isinstance(c, dict)]
        return Issue(
            ref,
            title=read.text(data, "title"),
            body=read.text(data, "body"),
            url=read.text(data, "html_url"),
            author=read.text(data, "user", "login"),
            updated=read.text(data, "updated_at"),
            comments=tuple(comments[:COMMENTS]),
        )

    async def push_target(self) -> PushTarget:
        user = await self._git_user()
        owner = await self._fork() if self.site.fork else self.site.owner
        return PushTarget(self.site.git_url(owner), owner, user, self.rest.token)

    async def find_pull(self, branch: str, number: int | None = None) -> Pull | None:
        if number is not None:
            return self._pull((await self.rest.get(f"{self._repo()}/pulls/{number}")).data)
        found = await self._open_pulls(branch)
        return self._pull(found[0]) if found else None

    async def open_or_update(self, pull: PullDraft) -> Pull:
        try:
            answer, notes = await self._open(pull)
        except ForgeFailed as error:
            if error.status in (409, 422) and _EXISTS.search(error.what):
                return await self._update(pull)
            raise
        opened = self._pull(answer.data)
        return replace(opened, notes=(*notes, *await self.label(opened.number, pull.labels)))

    async def label(self, number: int, labels: tuple[str, ...]) -> tuple[str, ...]:
        if not labels:
            return ()
        try:
            values = await self._label_values(labels)
            await self.rest.send("POST", f"{self._repo()}/issues/{number}/labels", {"labels": values})
        except ForgeFailed as error:
            if error.transient or error.kind == "auth":
                raise
            return (f"labels could not be set: {error.what}",)
        return ()

    async def failed_checks(self, commit: str) -> tuple[FailedCheck, ...]:
        combined = (await self.rest.get(f"{self._repo()}/commits/{commit}/status")).data
        return tuple(read.red_statuses(at(combined, "statuses") or [], self.status_field))

    async def remarks(self, number: int, since: float) -> tuple[Remark, ...]:
        mine = (await self._who()).id
        found = await self._written(number, read.stamp(since))
        return read.later([self._remark(one, mine) for one in found], since)

    async def close(self) -> None:
        await self.rest.close()

    def _repo(self, ref: IssueRef | None = None) -> str:
        owner, name = (ref.owner, ref.name) if ref and ref.owner else (self.site.owner, self.site.repository)
        return f"/repos/{quote(owner)}/{quote(name)}"

    async def _who(self) -> ForgeUser:
        """Our own account, asked once."""
        if self._user is None:
            answer = await self.rest.get("/user")
            login = read.text(answer.data, "login")
            if not login:
                raise self.rest.malformed("a user without a name")
            expires = read.moment(answer.headers.get("github-authentication-token-expiration", ""))
            self._user = ForgeUser(login, read.number(answer.data, "id"), expires)
        return self._user

    async def _git_user(self) -> str:
        """The name that git logs in with."""
        return (await self._who()).login

    async def _label_values(self, labels: tuple[str, ...]) -> list[Json]:
        """Labels as the forge wants them."""
        return list(labels)

    async def _branch(self, name: str) -> Json:
        """What is told of a branch; nothing where a repository is empty."""
        try:
            return (await self.rest.get(f"{self._repo()}/branches/{quote(name, safe='')}")).data
        except ForgeFailed as error:
            if error.kind != "not_found":
                raise
            return None

    async def _fork(self) -> str:
        """Whose fork we push to: our own, made where it is missing."""
        login = (self._user or await self._who()).login
        if not login:
            raise ForgeFailed("permission", "this token has no user, so there is no fork", hint="push_to: origin")
        try:
            data = (await self.rest.get(f"/repos/{quote(login)}/{quote(self.site.repository)}")).data
        except ForgeFailed as error:
            if error.kind != "not_found":
                raise
            data = (await self.rest.send("POST", f"{self._repo()}/forks", {})).data
        if not read.flag(data, "fork"):
            what = f"{login}/{self.site.repository} is not a fork of {self.site.owner}/{self.site.repository}"
            raise ForgeFailed("conflict", what, hint="rename it, or set publish.push_to to origin")
        return login

    async def _open(self, pull: PullDraft) -> tuple[RestAnswer, tuple[str, ...]]:
        """Open a pull request; gives back what could not be done as asked, too."""
        title = f"{WIP}{pull.title}" if pull.draft and self.draft_by_title else pull.title
        body = {"title": title, "head": await self._head(pull.branch), "base": pull.base, "body": pull.body}
        field = {} if self.draft_by_title else {"draft": pull.draft}
        return await self.rest.send("POST", f"{self._repo()}/pulls", {**body, **field}), ()

    async def _update(self, pull: PullDraft) -> Pull:
        there = await self.find_pull(pull.branch)
        if there is None:
            raise ForgeFailed("conflict", "a pull request of this branch exists, but can't be found", hint="look there")
        if not there.ours:
            return replace(there, notes=("a person opened this pull request; its text was left as it is",))
        body: dict[str, Json] = {"body": pull.body}
        if there.draft:
            body["title"] = f"{WIP}{pull.title}" if self.draft_by_title else pull.title
        answer = await self.rest.send("PATCH", f"{self._repo()}/pulls/{there.number}", body)
        return replace(self._pull(answer.data), notes=await self.label(there.number, pull.labels))

    def _pull(self, data: Json) -> Pull:
        number = read.number(data, "number")
        if number is None:
            raise self.rest.malformed("a pull request without a number")
        state: PullState = "closed" if read.text(data, "state") == "closed" else "open"
        by_title = self.draft_by_title and _DRAFT.match(read.text(data, "title")) is not None
        return Pull(
            number,
            url=read.text(data, "html_url"),
            state="merged" if read.flag(data, "merged") or read.text(data, "merged_at") else state,
            draft=bool(read.flag(data, "draft")) or by_title,
            head=read.text(data, "head", "sha"),
            ours=is_ours(read.text(data, "body")),
        )

    def _remark(self, data: Json, mine: int | None) -> Remark:
        words = read.text(data, "body")
        author = read.number(data, "user", "id")
        if read.text(data, "state") == self.changes_requested and not words.strip():
            words = "Changes were requested."
        return Remark(
            f"{read.text(data, 'node_id') or read.number(data, 'id')}",
            author=read.text(data, "user", "login"),
            text=words,
            at=read.text(data, "submitted_at") or read.text(data, "updated_at") or read.text(data, "created_at"),
            path=read.text(data, "path"),
            line=read.number(data, self.line_field),
            own=is_ours(words) or (mine is not None and author == mine),
            bot=read.text(data, "user", "type") == "Bot",
        )
