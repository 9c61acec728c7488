"""The REST API of the stub, as far as GitHub and Gitea have the same one; what differs is in their own files."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from bailiwick.testing.forge_server_state import (
    ForgeAccount,
    ForgeApiError,
    ForgeApiReply,
    ForgeApiRequest,
    ForgeComment,
    ForgeIssue,
    Forgery,
    Hosted,
    Json,
)

Routes = list[tuple[str, str, Callable[[ForgeApiRequest], ForgeApiReply]]]
"""Method, pattern below the API's root and what answers."""
Refusal = Literal["head", "base", "exists", "same"]
"""Why a pull request can't be opened: a branch is missing, there is one already, there is no change."""
REPO = r"/repos/(?P<owner>[^/]+)/(?P<name>[^/]+)"
BRANCH = rf"{REPO}/branches/(?P<branch>[^/]+)"
ISSUE = rf"{REPO}/issues/(?P<number>\d+)"
PULL = rf"{REPO}/pulls/(?P<number>\d+)"
COMMIT = rf"{REPO}/commits/(?P<sha>[0-9a-f]+)"


@dataclass(slots=True)
class ForgeApi(ABC):
    """Answers requests from what the stub knows."""

    forgery: Forgery
    root: ClassVar[str]
    absent: ClassVar[str] = "Not Found"
    pull_path: ClassVar[str]
    page_field: ClassVar[str]
    page_most: ClassVar[int]
    status_field: ClassVar[str]
    line_field: ClassVar[str]
    change_status: ClassVar[int] = 200
    has_check_runs: ClassVar[bool] = False

    @property
    def routes(self) -> Routes:
        """All that can be asked."""
        return [
            ("GET", r"/user", self.me),
            ("GET", REPO, self._repository),
            ("GET", BRANCH, self._branch),
            ("POST", rf"{REPO}/forks", self.fork),
            ("GET", ISSUE, self._issue),
            ("GET", rf"{ISSUE}/comments", lambda ask: self.notes(ask, self.ticket(ask)[1].comments)),
            ("POST", rf"{ISSUE}/comments", self._comment),
            ("POST", rf"{ISSUE}/labels", self._label),
            ("GET", rf"{REPO}/pulls", self._pulls),
            ("POST", rf"{REPO}/pulls", self._open),
            ("GET", PULL, self._pull),
            ("PATCH", PULL, self._change),
            ("PUT", rf"{PULL}/merge", self._merge),
            ("POST", rf"{PULL}/merge", self._merge),
            ("GET", rf"{PULL}/reviews", self.reviews),
            ("GET", rf"{COMMIT}/status", self._status),
        ]

    @abstractmethod
    def user_of(self, account: ForgeAccount) -> Json:
        """How an account is shown."""

    @abstractmethod
    def is_draft(self, ticket: ForgeIssue) -> bool:
        """Whether a pull request is a draft."""

    @abstractmethod
    def refusal(self, why: Refusal, head: str, base: str) -> ForgeApiError:
        """The answer to a pull request that can't be opened."""

    @abstractmethod
    def reviews(self, ask: ForgeApiRequest) -> ForgeApiReply:
        """The reviews of a pull request."""

    def branch_rules(self, hosted: Hosted, account: ForgeAccount | None) -> dict[str, Json]:
        """What a branch tells of its protection, besides that there is one."""
        return {}

    def own_refusal(self, hosted: Hosted, body: Json) -> ForgeApiError | None:
        """The answer to a new pull request that only this forge refuses."""
        return None

    def label_names(self, hosted: Hosted, wanted: Iterable[Json]) -> list[str]:
        """The names of labels that were asked for."""
        return list(wanted)

    def me(self, ask: ForgeApiRequest) -> ForgeApiReply:
        """Whose token it is."""
        if ask.account is None:
            raise ForgeApiError(401, "Requires authentication")
        return ForgeApiReply(200, self.user_of(ask.account))

    def repo_of(self, hosted: Hosted, account: ForgeAccount | None) -> Json:
        """How a repository is shown to an account."""
        right = self.forgery.right(account, hosted.name)
        return {
            "id": 1,
            "name": hosted.name.partition("/")[2],
            "full_name": hosted.name,
            "private": True,
            "owner": {"login": hosted.owner},
            "default_branch": hosted.default_branch,
            "archived": hosted.archived,
            "permissions": {"admin": right == "admin", "push": right in ("admin", "write"), "pull": True},
            "fork": bool(hosted.fork_of),
            "html_url": f"{self.forgery.url}/{hosted.name}",
            **({"parent": {"full_name": hosted.fork_of}} if hosted.fork_of else {}),
        }

    def fork(self, ask: ForgeApiRequest) -> ForgeApiReply:
        """Make an account's own copy of a repository."""
        hosted = self.forgery.find(ask.account, ask.repository)
        if ask.account is None or ask.account.installation:
            raise ForgeApiError(403, "Resource not accessible by integration")
        name = f"{ask.account.login}/{ask.names['name']}"
        if name in self.forgery.repositories:
            raise ForgeApiError(409, "The repository with the same name already exists.")
        path = hosted.path.parent.parent / f"{name}.git"
        path.parent.mkdir(parents=True, exist_ok=True)
        hosted.git("clone", "-q", "--bare", str(hosted.path), str(path))
        made = Hosted(name, path, self.forgery.clock, hosted.name)
        made.git("config", "http.receivepack", "true")
        self.forgery.repositories[name] = made
        return ForgeApiReply(202, self.repo_of(made, ask.account))

    def ticket(self, ask: ForgeApiRequest, *, pull: bool = False) -> tuple[Hosted, ForgeIssue]:
        """The issue or pull request that a path names."""
        hosted = self.forgery.find(ask.account, ask.repository)
        ticket = hosted.tickets.get(int(ask.names["number"]))
        if ticket is None or (pull and not ticket.head):
            raise ForgeApiError(404, self.absent)
        return hosted, ticket

    def note_of(self, note: ForgeComment) -> dict[str, Json]:
        """How a comment or a review is shown."""
        out: dict[str, Json] = {"id": note.id, "user": self.user_of(note.author), "body": note.body}
        if note.state:
            return {**out, "state": note.state, "submitted_at": note.at}
        where = {"path": note.path or None, self.line_field: note.line}
        return {**out, "created_at": note.at, "updated_at": note.at, **where}

    def notes(self, ask: ForgeApiRequest, found: Iterable[ForgeComment]) -> ForgeApiReply:
        """Comments or reviews, those since a time where one is asked for."""
        since = ask.query.get("since", "")
        return ForgeApiReply(200, self.page(ask, [self.note_of(note) for note in found if note.at >= since]))

    def page(self, ask: ForgeApiRequest, items: Sequence[Json]) -> list[Json]:
        """The part of a list that was asked for."""
        size, page = min(int(ask.query.get(self.page_field, 30)), self.page_most), int(ask.query.get("page", 1))
        return list(items[(page - 1) * size : page * size])

    def _repository(self, ask: ForgeApiRequest) -> ForgeApiReply:
        return ForgeApiReply(200, self.repo_of(self.forgery.find(ask.account, ask.repository), ask.account))

    def _branch(self, ask: ForgeApiRequest) -> ForgeApiReply:
        hosted = self.forgery.find(ask.account, ask.repository)
        head = hosted.head(ask.names["branch"])
        if not head:
            raise ForgeApiError(404, self.absent)
        shown = {"name": ask.names["branch"], "commit": {"id": head, "sha": head}, "protected": hosted.protected}
        return ForgeApiReply(200, {**shown, **self.branch_rules(hosted, ask.account)})

    def _issue_of(self, hosted: Hosted, ticket: ForgeIssue) -> dict[str, Json]:
        return {
            "id": 5000 + ticket.number,
            "number": ticket.number,
            "title": ticket.title,
            "body": ticket.body,
            "state": ticket.state,
            "user": self.user_of(ticket.author),
            "created_at": ticket.at,
            "updated_at": ticket.at,
            "labels": [{"name": name} for name in ticket.labels],
            "comments": len(ticket.comments),
            "html_url": f"{self.forgery.url}/{hosted.name}/issues/{ticket.number}",
        }

    def _issue(self, ask: ForgeApiRequest) -> ForgeApiReply:
        return ForgeApiReply(200, self._issue_of(*self.ticket(ask)))

    def _pull_of(self, hosted: Hosted, ticket: ForgeIssue) -> Json:
        source = self.forgery.repositories.get(ticket.head_repo, hosted)
        repo = {"full_name": source.name, "owner": {"login": source.owner}}
        return {
            **self._issue_of(hosted, ticket),
            "draft": self.is_draft(ticket),
            "merged_at": ticket.merged_at or None,
            "merged": bool(ticket.merged_at),
            "html_url": f"{self.forgery.url}/{hosted.name}/{self.pull_path}/{ticket.number}",
            "head": {"ref": ticket.head, "sha": source.head(ticket.head), "repo": repo},
            "base": {"ref": ticket.base, "sha": hosted.head(ticket.base)},
        }

    def _pulls(self, ask: ForgeApiRequest) -> ForgeApiReply:
        hosted = self.forgery.find(ask.account, ask.repository)
        owner, _, branch = ask.query.get("head", "").rpartition(":")
        state = ask.query.get("state", "open")
        found = [
            self._pull_of(hosted, one)
            for one in hosted.tickets.values()
            if one.head
            and state in ("all", one.state)
            and branch in ("", one.head)
            and owner in ("", (one.head_repo or hosted.name).partition("/")[0])
        ]
        return ForgeApiReply(200, self.page(ask, found))

    def _open(self, ask: ForgeApiRequest) -> ForgeApiReply:
        hosted = self.forgery.find(ask.account, ask.repository)
        owner, _, branch = str(ask.body.get("head", "")).rpartition(":")
        base, head = str(ask.body.get("base")), f"{owner or hosted.owner}:{branch}"
        source = self.forgery.repositories.get(f"{owner or hosted.owner}/{ask.names['name']}")
        if source is None or not source.head(branch):
            raise self.refusal("head", head, base)
        if source is hosted:
            self.forgery.find(ask.account, ask.repository, "write")
        if not hosted.head(base):
            raise self.refusal("base", head, base)
        if refused := self.own_refusal(hosted, ask.body):
            raise refused
        if any(one.head == branch and one.state == "open" for one in hosted.tickets.values()):
            raise self.refusal("exists", head, base)
        if hosted.head(base) == source.head(branch):
            raise self.refusal("same", head, base)
        assert ask.account is not None  # noqa: S101 - who may see the repository has an account
        made = hosted.new_pull(str(ask.body["title"]), str(ask.body.get("body") or ""), ask.account)
        made.head, made.head_repo, made.base = branch, source.name, base
        made.draft = bool(ask.body.get("draft"))
        return ForgeApiReply(201, self._pull_of(hosted, hosted.open_pull(made)))

    def _change(self, ask: ForgeApiRequest) -> ForgeApiReply:
        hosted, ticket = self.ticket(ask, pull=True)
        self.forgery.find(ask.account, ask.repository, "write" if ticket.author is not ask.account else "read")
        ticket.title = str(ask.body.get("title", ticket.title))
        ticket.body = str(ask.body.get("body", ticket.body))
        return ForgeApiReply(self.change_status, self._pull_of(hosted, ticket))

    def _pull(self, ask: ForgeApiRequest) -> ForgeApiReply:
        return ForgeApiReply(200, self._pull_of(*self.ticket(ask, pull=True)))

    def _merge(self, ask: ForgeApiRequest) -> ForgeApiReply:
        raise ForgeApiError(403, "Resource not accessible by personal access token")

    def _label(self, ask: ForgeApiRequest) -> ForgeApiReply:
        hosted = self.forgery.find(ask.account, ask.repository, "write")
        _, ticket = self.ticket(ask)
        wanted = self.label_names(hosted, ask.body.get("labels", []))
        ticket.labels += [name for name in wanted if name not in ticket.labels]
        return ForgeApiReply(200, [{"name": name} for name in ticket.labels])

    def _comment(self, ask: ForgeApiRequest) -> ForgeApiReply:
        hosted, ticket = self.ticket(ask)
        assert ask.account is not None  # noqa: S101 - who may see the repository has an account
        return ForgeApiReply(201, self.note_of(hosted.say(ticket.number, ask.account, str(ask.body["body"]))))

    def _status(self, ask: ForgeApiRequest) -> ForgeApiReply:
        checks = self.forgery.find(ask.account, ask.repository).checks.get(ask.names["sha"], [])
        rows = [
            {"context": one.name, self.status_field: one.outcome, "description": one.summary, "target_url": ""}
            for one in checks
            if not (one.run and self.has_check_runs)
        ]
        return ForgeApiReply(200, {"state": "pending", "statuses": rows, "total_count": len(rows)})
