"""The GitHub-shaped stub: REST v3 below `/api/v3`, as GitHub Enterprise has it."""

from __future__ import annotations

from bailiwick.testing.forge_server_api import BRANCH, COMMIT, PULL, REPO, ForgeApi, Refusal, Routes
from bailiwick.testing.forge_server_state import (
    ForgeAccount,
    ForgeApiError,
    ForgeApiReply,
    ForgeApiRequest,
    ForgeCheckRun,
    ForgeIssue,
    Hosted,
    Json,
)

LIMIT = {"x-ratelimit-limit": "5000", "x-ratelimit-remaining": "4999"}
MAX_BODY = 65_536


class GitHubApi(ForgeApi):
    """Drafts are a field, branches have rules, checks are runs or statuses."""

    __slots__ = ()
    root = "/api/v3"
    pull_path = "pull"
    page_field = "per_page"
    page_most = 100
    status_field = "state"
    line_field = "line"
    has_check_runs = True

    @property
    def routes(self) -> Routes:
        return [
            *super().routes,
            ("GET", rf"{BRANCH}/protection", self._protection),
            ("GET", rf"{REPO}/rules/branches/(?P<branch>[^/]+)", self._rules),
            ("GET", rf"{PULL}/comments", lambda ask: self.notes(ask, self.ticket(ask)[1].lines)),
            ("GET", rf"{COMMIT}/check-runs", self._check_runs),
        ]

    def user_of(self, account: ForgeAccount) -> Json:
        return {"login": account.login, "id": account.id, "type": "Bot" if account.bot else "User"}

    def is_draft(self, ticket: ForgeIssue) -> bool:
        return ticket.draft

    def refusal(self, why: Refusal, head: str, base: str) -> ForgeApiError:
        match why:
            case "head" | "base":
                return _invalid(f"{why}: invalid")
            case "exists":
                return _invalid(f"A pull request already exists for {head}.")
            case "same":
                return _invalid(f"No commits between {base} and {head.rpartition(':')[2]}")

    def own_refusal(self, hosted: Hosted, body: Json) -> ForgeApiError | None:
        if body.get("draft") and not hosted.drafts:
            return ForgeApiError(422, "Draft pull requests are not supported in this repository.")
        too_long = len(str(body.get("body") or "")) > MAX_BODY
        return _invalid(f"body is too long (maximum is {MAX_BODY} characters)") if too_long else None

    def me(self, ask: ForgeApiRequest) -> ForgeApiReply:
        if ask.account is not None and ask.account.installation:
            raise ForgeApiError(403, "Resource not accessible by integration")
        reply = super().me(ask)
        expires = ask.account.expires if ask.account else ""
        token = {"github-authentication-token-expiration": expires} if expires else {}
        return ForgeApiReply(200, reply.data, {**LIMIT, **token})

    def fork(self, ask: ForgeApiRequest) -> ForgeApiReply:
        """One that is there already is given back."""
        there = self.forgery.repositories.get(f"{ask.account.login if ask.account else ''}/{ask.names['name']}")
        return super().fork(ask) if there is None else ForgeApiReply(202, self.repo_of(there, ask.account))

    def reviews(self, ask: ForgeApiRequest) -> ForgeApiReply:
        return self.notes(ask, self.ticket(ask)[1].reviews)

    def _protection(self, ask: ForgeApiRequest) -> ForgeApiReply:
        hosted = self.forgery.find(ask.account, ask.repository, "admin")
        if not hosted.protected:
            raise ForgeApiError(404, "Branch not protected")
        rule = {"required_approving_review_count": hosted.approvals}
        return ForgeApiReply(200, {"required_pull_request_reviews": rule})

    def _rules(self, ask: ForgeApiRequest) -> ForgeApiReply:
        hosted = self.forgery.find(ask.account, ask.repository)
        rule = {"type": "pull_request", "parameters": {"required_approving_review_count": hosted.approvals}}
        return ForgeApiReply(200, [rule] if hosted.protected else [])

    def _check_runs(self, ask: ForgeApiRequest) -> ForgeApiReply:
        checks = self.forgery.find(ask.account, ask.repository).checks.get(ask.names["sha"], [])
        runs = [_check_of(check) for check in checks if check.run]
        return ForgeApiReply(200, {"total_count": len(runs), "check_runs": self.page(ask, runs)})


def _invalid(message: str) -> ForgeApiError:
    detail = {"resource": "PullRequest", "code": "custom", "message": message}
    return ForgeApiError(422, "Validation Failed", errors=[detail])


def _check_of(check: ForgeCheckRun) -> Json:
    done = check.outcome not in ("queued", "in_progress")
    return {
        "name": check.name,
        "status": "completed" if done else check.outcome,
        "conclusion": check.outcome if done else None,
        "html_url": "",
        "output": {"title": "", "summary": check.summary},
    }
