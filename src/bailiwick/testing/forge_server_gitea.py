"""The Gitea-shaped stub: REST v1 below `/api/v1`, as Gitea and Forgejo have it."""

from __future__ import annotations

from collections.abc import Iterable

from bailiwick.testing.forge_server_api import PULL, REPO, ForgeApi, Refusal, Routes
from bailiwick.testing.forge_server_state import (
    ForgeAccount,
    ForgeApiError,
    ForgeApiReply,
    ForgeApiRequest,
    ForgeIssue,
    Hosted,
    Json,
)


class GiteaApi(ForgeApi):
    """Drafts are titles, labels have ids, comments on lines belong to a review."""

    __slots__ = ()
    root = "/api/v1"
    absent = "The target couldn't be found."
    pull_path = "pulls"
    page_field = "limit"
    page_most = 50
    status_field = "status"
    line_field = "position"
    change_status = 201

    @property
    def routes(self) -> Routes:
        return [
            *super().routes,
            ("GET", rf"{REPO}/labels", self._labels),
            ("POST", rf"{REPO}/labels", self._make_label),
            ("GET", rf"{PULL}/reviews/(?P<review>\d+)/comments", self._review_lines),
        ]

    def user_of(self, account: ForgeAccount) -> Json:
        return {"id": account.id, "login": account.login, "username": account.login}

    def is_draft(self, ticket: ForgeIssue) -> bool:
        return ticket.title.lower().startswith(("wip:", "[wip]"))

    def refusal(self, why: Refusal, head: str, base: str) -> ForgeApiError:
        match why:
            case "head" | "base":
                return ForgeApiError(404, self.absent)
            case "exists":
                branch = head.rpartition(":")[2]
                return ForgeApiError(409, f"pull request already exists for these targets [head: {branch}]")
            case "same":
                return ForgeApiError(422, "there are no changes between the head and the base")

    def branch_rules(self, hosted: Hosted, account: ForgeAccount | None) -> dict[str, Json]:
        may = self.forgery.right(account, hosted.name) in ("write", "admin")
        push = may and not hosted.protected
        return {"required_approvals": hosted.approvals, "user_can_push": push, "user_can_merge": may}

    def label_names(self, hosted: Hosted, wanted: Iterable[Json]) -> list[str]:
        names = {number: name for name, number in hosted.labels.items()}
        if any(number not in names for number in wanted):
            raise ForgeApiError(404, self.absent)
        return [names[number] for number in wanted]

    def reviews(self, ask: ForgeApiRequest) -> ForgeApiReply:
        """Remarks on lines belong to a review there: the stub keeps them in one of its own, the last."""
        _, ticket = self.ticket(ask, pull=True)
        found = [{**self.note_of(note), "comments_count": 0} for note in ticket.reviews]
        if ticket.lines:
            first = ticket.lines[0]
            last = {"id": 1, "user": self.user_of(first.author), "body": "", "state": "COMMENT"}
            found.append({**last, "submitted_at": first.at, "comments_count": len(ticket.lines)})
        return ForgeApiReply(200, self.page(ask, found))

    def _review_lines(self, ask: ForgeApiRequest) -> ForgeApiReply:
        _, ticket = self.ticket(ask, pull=True)
        return self.notes(ask, ticket.lines if ask.names["review"] == "1" else [])

    def _labels(self, ask: ForgeApiRequest) -> ForgeApiReply:
        hosted = self.forgery.find(ask.account, ask.repository)
        rows = [{"id": number, "name": name} for name, number in hosted.labels.items()]
        return ForgeApiReply(200, self.page(ask, rows))

    def _make_label(self, ask: ForgeApiRequest) -> ForgeApiReply:
        hosted = self.forgery.find(ask.account, ask.repository, "write")
        name = str(ask.body["name"])
        hosted.labels[name] = 70 + len(hosted.labels)
        return ForgeApiReply(201, {"id": hosted.labels[name], "name": name, "color": ask.body.get("color")})
