"""GitHub and GitHub Enterprise by REST v3: push rights, issues, one draft pull request per branch, checks, reviews."""

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
from bailiwick.proposals.forges.rest import Network, Rest, RestAnswer
from bailiwick.proposals.forges.site import ForgeRepository
from bailiwick.proposals.model import IssueRef

RED = frozenset({"failure", "timed_out", "startup_failure", "action_required"})
"""Conclusions of a check run that ask for work; `cancelled` and `stale` say nothing about the change."""
COMMENTS = 20
_NO_DRAFTS = re.compile(r"draft pull requests are not supported", re.IGNORECASE)
_EXISTS = re.compile(r"pull request already exists", re.IGNORECASE)
_WIP = "WIP: "


@dataclass(slots=True)
class GitHub:
    """One repository on a GitHub."""

    site: ForgeRepository
    rest: Rest
    _me: tuple[str, int | None] | None = None
    name: str = "github"

    @classmethod
    def open(cls, site: ForgeRepository, token: str | None, network: Network) -> GitHub:
        """A GitHub at an address; github.com has its API on a host of its own."""
        api = "https://api.github.com" if site.host == "github.com" else f"{site.url}/api/v3"
        headers = {"accept": "application/vnd.github+json", "x-github-api-version": "2022-11-28"}
        return cls(site, Rest(api, token, site.clock, network, headers=headers))

    def describe(self) -> str:
        return f"{self.site.host}/{self.site.owner}/{self.site.repository}"

    async def check_access(self) -> ForgeAccess:
        user, mine, headers = await self._who()
        repository = (await self.rest.get(self._repo())).data
        push, admin = read.flag(repository, "permissions", "push"), read.flag(repository, "permissions", "admin")
        if read.flag(repository, "archived"):
            push = False
        branch = read.text(repository, "default_branch")
        merge = await self._can_merge(branch, push, admin=bool(admin)) if branch else None
        scopes = tuple(s.strip() for s in headers.get("x-oauth-scopes", "").split(",") if s.strip())
        expires = read.moment(headers.get("github-authentication-token-expiration", ""))
        if self.site.fork and push is False:
            push = True if user else None
        return ForgeAccess(user, user_id=mine, can_push=push, can_merge=merge, scopes=scopes, expires=expires)

    async def default_branch(self) -> str:
        return read.text((await self.rest.get(self._repo())).data, "default_branch") or "main"

    async def fetch_issue(self, ref: IssueRef) -> Issue:
        path = f"{self._repo(ref)}/issues/{ref.number}"
        data = (await self.rest.get(path)).data
        if not read.text(data, "title"):
            raise self.rest.malformed("an issue without a title")
        found = (await self.rest.get(f"{path}/comments", {"per_page": COMMENTS})).data
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
        owner = await self._fork() if self.site.fork else self.site.owner
        return PushTarget(self.site.git_url(owner), owner, "x-access-token", self.rest.token)

    async def find_pull(self, branch: str, number: int | None = None) -> Pull | None:
        if number is not None:
            return await self._pull((await self.rest.get(f"{self._repo()}/pulls/{number}")).data)
        found = (await self.rest.get(f"{self._repo()}/pulls", {"head": await self._head(branch), "state": "open"})).data
        return await self._pull(found[0]) if isinstance(found, list) and found else None

    async def open_or_update(self, pull: PullDraft) -> Pull:
        notes: tuple[str, ...] = ()
        try:
            answer = await self._open(pull)
        except ForgeFailed as error:
            if error.status == 422 and _NO_DRAFTS.search(error.what):
                notes = (f"this repository takes no drafts, so the title begins with {_WIP.strip()}",)
                answer = await self._open_plain(pull)
            elif error.status == 422 and _EXISTS.search(error.what):
                return await self._update(pull)
            else:
                raise
        opened = await self._pull(answer.data)
        return replace(opened, notes=(*notes, *await self.label(opened.number, pull.labels)))

    async def label(self, number: int, labels: tuple[str, ...]) -> tuple[str, ...]:
        if not labels:
            return ()
        try:
            await self.rest.send("POST", f"{self._repo()}/issues/{number}/labels", {"labels": list(labels)})
        except ForgeFailed as error:
            if error.transient or error.kind == "auth":
                raise
            return (f"labels could not be set: {error.what}",)
        return ()

    async def comment(self, number: int, text: str) -> None:
        await self.rest.send("POST", f"{self._repo()}/issues/{number}/comments", {"body": text})

    async def failed_checks(self, commit: str) -> tuple[FailedCheck, ...]:
        runs = await self.rest.pages(f"{self._repo()}/commits/{commit}/check-runs", {"filter": "latest"})
        red = [
            FailedCheck(read.text(one, "name") or "check", _summary(one), read.text(one, "html_url"))
            for one in runs
            if read.text(one, "conclusion") in RED
        ]
        combined = (await self.rest.get(f"{self._repo()}/commits/{commit}/status")).data
        return tuple(red + read.red_statuses(read.part(combined, "statuses") or [], "state"))

    async def remarks(self, number: int, since: float) -> tuple[Remark, ...]:
        _, mine, _ = await self._who()
        asked = {"since": read.stamp(since)}
        reviews = await self.rest.pages(f"{self._repo()}/pulls/{number}/reviews")
        lines = await self.rest.pages(f"{self._repo()}/pulls/{number}/comments", asked)
        talk = await self.rest.pages(f"{self._repo()}/issues/{number}/comments", asked)
        return read.later([_remark(one, mine) for one in (*reviews, *lines, *talk)], since)

    async def close(self) -> None:
        await self.rest.close()

    def _repo(self, ref: IssueRef | None = None) -> str:
        owner, name = (ref.owner, ref.name) if ref and ref.owner else (self.site.owner, self.site.repository)
        return f"/repos/{quote(owner)}/{quote(name)}"

    async def _who(self) -> tuple[str, int | None, dict[str, str]]:
        """Our login and id; a token of an installation may not ask who it is."""
        try:
            answer = await self.rest.get("/user")
        except ForgeFailed as error:
            if error.kind != "permission":
                raise
            return "", None, {}
        login, mine = read.text(answer.data, "login"), read.number(answer.data, "id")
        if not login:
            raise self.rest.malformed("a user without a name")
        self._me = (login, mine)
        return login, mine, dict(answer.headers)

    async def _branch(self, name: str) -> Json:
        """What is told of a branch; nothing where a repository is empty."""
        try:
            return (await self.rest.get(f"{self._repo()}/branches/{quote(name, safe='')}")).data
        except ForgeFailed as error:
            if error.kind != "not_found":
                raise
            return None

    async def _can_merge(self, branch: str, push: bool | None, *, admin: bool) -> bool | None:
        """Asked of the branch, its rules (which everybody may read) and its protection (which few may)."""
        data = await self._branch(branch)
        approvals = await self._approvals(branch)
        protected = read.flag(data, "protected")
        if approvals:
            protected = True
        return read.merge_alone(push, approvals, admin=admin, protected=protected)

    async def _approvals(self, branch: str) -> int | None:
        """How many approvals a merge into a branch needs; None where we may not know."""
        name = quote(branch, safe="")
        most: int | None = None
        for path in (f"{self._repo()}/rules/branches/{name}", f"{self._repo()}/branches/{name}/protection"):
            try:
                data = (await self.rest.get(path)).data
            except ForgeFailed as error:
                if error.kind not in ("not_found", "permission"):
                    raise
                continue
            most = max(most or 0, _needed(data))
        return most

    async def _fork(self) -> str:
        """Whose fork we push to: our own, made where it is missing."""
        login = (self._me or (await self._who())[:2])[0]
        if not login:
            raise ForgeFailed("permission", "this token has no user, so there is no fork", hint="push_to: origin")
        try:
            data = (await self.rest.get(f"/repos/{quote(login)}/{quote(self.site.repository)}")).data
        except ForgeFailed as error:
            if error.kind != "not_found":
                raise
            data = (await self.rest.send("POST", f"{self._repo()}/forks", {})).data
        if not read.flag(data, "fork"):
            what = f"{login}/{self.site.repository} is no fork of {self.site.owner}/{self.site.repository}"
            raise ForgeFailed("conflict", what, hint="rename it, or set publish.push_to to origin")
        return login

    async def _head(self, branch: str) -> str:
        owner = (await self.push_target()).owner
        return f"{owner}:{branch}"

    async def _open(self, pull: PullDraft) -> RestAnswer:
        body = {"title": pull.title, "head": await self._head(pull.branch), "base": pull.base, "body": pull.body}
        return await self.rest.send("POST", f"{self._repo()}/pulls", {**body, "draft": pull.draft})

    async def _open_plain(self, pull: PullDraft) -> RestAnswer:
        return await self._open(replace(pull, draft=False, title=f"{_WIP}{pull.title}"))

    async def _update(self, pull: PullDraft) -> Pull:
        there = await self.find_pull(pull.branch)
        if there is None:
            raise ForgeFailed("conflict", "a pull request of this branch exists, but can't be found", hint="look there")
        if not there.ours:
            return replace(there, notes=("a person opened this pull request; its text was left as it is",))
        body: dict[str, Json] = {"body": pull.body}
        if there.draft:
            body["title"] = pull.title
        answer = await self.rest.send("PATCH", f"{self._repo()}/pulls/{there.number}", body)
        return replace(await self._pull(answer.data), notes=await self.label(there.number, pull.labels))

    async def _pull(self, data: Json) -> Pull:
        number, url = read.number(data, "number"), read.text(data, "html_url")
        if number is None:
            raise self.rest.malformed("a pull request without a number")
        merged = bool(read.text(data, "merged_at"))
        state: PullState = "merged" if merged else "closed" if read.text(data, "state") == "closed" else "open"
        return Pull(
            number,
            url=url,
            state=state,
            draft=bool(read.flag(data, "draft")),
            head=read.text(data, "head", "sha"),
            ours=is_ours(read.text(data, "body")),
        )


def _needed(data: Json) -> int:
    """The approvals that rules or a protection ask for."""
    if isinstance(data, list):
        rules = [rule for rule in data if read.text(rule, "type") == "pull_request"]
        return max((read.number(r, "parameters", "required_approving_review_count") or 0 for r in rules), default=0)
    return read.number(data, "required_pull_request_reviews", "required_approving_review_count") or 0


def _summary(run: Json) -> str:
    parts = [read.text(run, "output", name) for name in ("title", "summary", "text")]
    return "\n".join(part for part in (read.text(run, "conclusion"), *parts) if part)


def _remark(data: Json, mine: int | None) -> Remark:
    words = read.text(data, "body")
    author = read.number(data, "user", "id")
    if read.text(data, "state") == "CHANGES_REQUESTED" and not words.strip():
        words = "Changes were requested."
    return Remark(
        f"{read.text(data, 'node_id') or read.number(data, 'id')}",
        author=read.text(data, "user", "login"),
        text=words,
        at=read.text(data, "submitted_at") or read.text(data, "updated_at") or read.text(data, "created_at"),
        path=read.text(data, "path"),
        line=read.number(data, "line"),
        own=is_ours(words) or (mine is not None and author == mine),
        bot=read.text(data, "user", "type") == "Bot",
    )
