"""Gitea and Forgejo by REST v1: push rights, issues, one pull request per branch (a draft by its title), reviews."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from urllib.parse import quote

from bailiwick.ids import Json
from bailiwick.proposals.document import is_ours
from bailiwick.proposals.forges import reading as read
from bailiwick.proposals.forges.port import (
    FailedCheck,
    ForgeAccess,
    ForgeFailed,
    Issue,
    Pull,
    PullDraft,
    PullState,
    PushTarget,
    Remark,
)
from bailiwick.proposals.forges.rest import Network, Rest
from bailiwick.proposals.forges.site import ForgeRepository
from bailiwick.proposals.model import IssueRef

WIP = "WIP: "
"""How a title begins that makes a pull request a draft there."""
COLOUR = "#6e7781"
COMMENTS = 20
REVIEWS = 50
"""Reviews whose single comments are read, the newest."""
_EXISTS = re.compile(r"already exists", re.IGNORECASE)
_DRAFT = re.compile(r"\s*(?:\[wip\]|wip:)", re.IGNORECASE)


@dataclass(slots=True)
class Gitea:
    """One repository on a Gitea or Forgejo."""

    site: ForgeRepository
    rest: Rest
    name: str = "gitea"
    _me: tuple[str, int | None] | None = None

    @classmethod
    def open(cls, site: ForgeRepository, token: str | None, network: Network) -> Gitea:
        """A Gitea at an address."""
        rest = Rest(f"{site.url}/api/v1", token, site.clock, network, scheme="token", page="limit", size=50)
        return cls(site, rest, site.type)

    def describe(self) -> str:
        return f"{self.site.host}/{self.site.owner}/{self.site.repository}"

    async def check_access(self) -> ForgeAccess:
        user, mine = await self._who()
        repository = (await self.rest.get(self._repo())).data
        push, admin = read.flag(repository, "permissions", "push"), read.flag(repository, "permissions", "admin")
        if read.flag(repository, "archived"):
            push = False
        branch = read.text(repository, "default_branch")
        merge = await self._can_merge(branch, push, admin=bool(admin)) if branch else None
        if self.site.fork and push is False:
            push = True
        return ForgeAccess(user, mine, push, merge)

    async def default_branch(self) -> str:
        return read.text((await self.rest.get(self._repo())).data, "default_branch") or "main"

    async def fetch_issue(self, ref: IssueRef) -> Issue:
        path = f"{self._repo(ref)}/issues/{ref.number}"
        data = (await self.rest.get(path)).data
        if not read.text(data, "title"):
            raise self.rest.malformed("an issue without a title")
        found = (await self.rest.get(f"{path}/comments", {"limit": COMMENTS})).data
        comments = [(read.text(c, "user", "login"), read.text(c, "body")) for c in found or [] if isinstance(c, dict)]
        return Issue(
            ref,
            title=read.text(data, "title"),
            body=read.text(data, "body"),
            url=read.text(data, "html_url"),
            author=read.text(data, "user", "login"),
            updated=read.text(data, "updated_at"),
            comments=tuple(comments[:COMMENTS]),
            is_open=read.text(data, "state") != "closed",
        )

    async def push_target(self) -> PushTarget:
        user, _ = await self._who()
        owner = await self._fork(user) if self.site.fork else self.site.owner
        return PushTarget(self.site.git_url(owner), owner, user, self.rest.token)

    async def find_pull(self, branch: str, number: int | None = None) -> Pull | None:
        if number is not None:
            return self._pull((await self.rest.get(f"{self._repo()}/pulls/{number}")).data)
        owner = (await self.push_target()).owner
        for one in await self.rest.pages(f"{self._repo()}/pulls", {"state": "open"}):
            theirs = read.text(one, "head", "repo", "owner", "login") or self.site.owner
            if read.text(one, "head", "ref") == branch and theirs.lower() == owner.lower():
                return self._pull(one)
        return None

    async def open_or_update(self, pull: PullDraft) -> Pull:
        title = f"{WIP}{pull.title}" if pull.draft else pull.title
        owner = (await self.push_target()).owner
        head = pull.branch if owner == self.site.owner else f"{owner}:{pull.branch}"
        body = {"title": title, "head": head, "base": pull.base, "body": pull.body}
        try:
            answer = await self.rest.send("POST", f"{self._repo()}/pulls", body)
        except ForgeFailed as error:
            if error.status in (409, 422) and _EXISTS.search(error.what):
                return await self._update(pull)
            raise
        opened = self._pull(answer.data)
        return replace(opened, notes=await self.label(opened.number, pull.labels))

    async def label(self, number: int, labels: tuple[str, ...]) -> tuple[str, ...]:
        """Labels have ids there; one that is missing is made where we may."""
        if not labels:
            return ()
        try:
            known = {read.text(one, "name"): read.number(one, "id") for one in await self._labels()}
            ids = [known.get(name) or await self._make_label(name) for name in labels]
            await self.rest.send("POST", f"{self._repo()}/issues/{number}/labels", {"labels": ids})
        except ForgeFailed as error:
            if error.transient or error.kind == "auth":
                raise
            return (f"labels could not be set: {error.what}",)
        return ()

    async def comment(self, number: int, text: str) -> None:
        await self.rest.send("POST", f"{self._repo()}/issues/{number}/comments", {"body": text})

    async def failed_checks(self, commit: str) -> tuple[FailedCheck, ...]:
        combined = (await self.rest.get(f"{self._repo()}/commits/{commit}/status")).data
        return tuple(read.red_statuses(read.part(combined, "statuses") or [], "status"))

    async def remarks(self, number: int, since: float) -> tuple[Remark, ...]:
        _, mine = await self._who()
        pull = f"{self._repo()}/pulls/{number}"
        reviews = await self.rest.pages(f"{pull}/reviews")
        lines: list[Json] = []
        for one in reviews[-REVIEWS:]:
            review = read.number(one, "id")
            if review is not None and read.number(one, "comments_count") != 0:
                lines += await self.rest.pages(f"{pull}/reviews/{review}/comments")
        talk = await self.rest.pages(f"{self._repo()}/issues/{number}/comments", {"since": read.stamp(since)})
        return read.later([_remark(one, mine) for one in (*reviews, *lines, *talk)], since)

    async def close(self) -> None:
        await self.rest.close()

    def _repo(self, ref: IssueRef | None = None) -> str:
        owner, name = (ref.owner, ref.name) if ref and ref.owner else (self.site.owner, self.site.repository)
        return f"/repos/{quote(owner)}/{quote(name)}"

    async def _who(self) -> tuple[str, int | None]:
        if self._me is None:
            data = (await self.rest.get("/user")).data
            login = read.text(data, "login")
            if not login:
                raise self.rest.malformed("a user without a name")
            self._me = (login, read.number(data, "id"))
        return self._me

    async def _branch(self, name: str) -> Json:
        """What is told of a branch; nothing where a repository is empty."""
        try:
            return (await self.rest.get(f"{self._repo()}/branches/{quote(name, safe='')}")).data
        except ForgeFailed as error:
            if error.kind != "not_found":
                raise
            return None

    async def _can_merge(self, branch: str, push: bool | None, *, admin: bool) -> bool | None:
        """The branch itself says whether we may merge into it and how many have to approve."""
        data = await self._branch(branch)
        if read.flag(data, "user_can_merge") is False:
            return False
        approvals = read.number(data, "required_approvals")
        return read.merge_alone(push, approvals, admin=admin, protected=read.flag(data, "protected"))

    async def _fork(self, user: str) -> str:
        path = f"/repos/{quote(user)}/{quote(self.site.repository)}"
        try:
            data = (await self.rest.get(path)).data
        except ForgeFailed as error:
            if error.kind != "not_found":
                raise
            data = (await self.rest.send("POST", f"{self._repo()}/forks", {})).data
        if not read.flag(data, "fork"):
            what = f"{user}/{self.site.repository} is no fork of {self.site.owner}/{self.site.repository}"
            raise ForgeFailed("conflict", what, hint="rename it, or set publish.push_to to origin")
        return user

    async def _labels(self) -> list[Json]:
        return await self.rest.pages(f"{self._repo()}/labels")

    async def _make_label(self, name: str) -> int:
        made = await self.rest.send("POST", f"{self._repo()}/labels", {"name": name, "color": COLOUR})
        found = read.number(made.data, "id")
        if found is None:
            raise self.rest.malformed("a label without an id")
        return found

    async def _update(self, pull: PullDraft) -> Pull:
        there = await self.find_pull(pull.branch)
        if there is None:
            raise ForgeFailed("conflict", "a pull request of this branch exists, but can't be found", hint="look there")
        if not there.ours:
            return replace(there, notes=("a person opened this pull request; its text was left as it is",))
        body: dict[str, Json] = {"body": pull.body}
        if there.draft:
            body["title"] = f"{WIP}{pull.title}"
        answer = await self.rest.send("PATCH", f"{self._repo()}/pulls/{there.number}", body)
        return replace(self._pull(answer.data), notes=await self.label(there.number, pull.labels))

    def _pull(self, data: Json) -> Pull:
        number = read.number(data, "number")
        if number is None:
            raise self.rest.malformed("a pull request without a number")
        state: PullState = "closed" if read.text(data, "state") == "closed" else "open"
        draft = bool(read.flag(data, "draft")) or bool(_DRAFT.match(read.text(data, "title")))
        return Pull(
            number,
            url=read.text(data, "html_url"),
            state="merged" if read.flag(data, "merged") else state,
            draft=draft,
            head=read.text(data, "head", "sha"),
            ours=is_ours(read.text(data, "body")),
        )


def _remark(data: Json, mine: int | None) -> Remark:
    words = read.text(data, "body")
    author = read.number(data, "user", "id")
    if read.text(data, "state") == "REQUEST_CHANGES" and not words.strip():
        words = "Changes were requested."
    return Remark(
        f"{read.number(data, 'id')}",
        author=read.text(data, "user", "login"),
        text=words,
        at=read.text(data, "submitted_at") or read.text(data, "updated_at") or read.text(data, "created_at"),
        path=read.text(data, "path"),
        line=read.number(data, "position"),
        own=is_ours(words) or (mine is not None and author == mine),
    )
