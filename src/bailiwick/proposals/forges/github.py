"""GitHub and GitHub Enterprise by REST v3: drafts are a field, branches have rules, checks are runs and statuses."""

from __future__ import annotations

import re
from dataclasses import replace
from urllib.parse import quote

from bailiwick.ids import Json
from bailiwick.proposals.forges import reading as read
from bailiwick.proposals.forges.port import FailedCheck, ForgeFailed, ForgeRepository, PullDraft
from bailiwick.proposals.forges.rest import Network, Rest, RestAnswer
from bailiwick.proposals.forges.rest_forge import WIP, ForgeUser, RestForge

RED = frozenset({"failure", "timed_out", "startup_failure", "action_required"})
"""Conclusions of a check run that ask for work; `cancelled` and `stale` say nothing about the change."""
_NO_DRAFTS = re.compile(r"draft pull requests are not supported", re.IGNORECASE)


class GitHub(RestForge):
    """One repository on a GitHub."""

    __slots__ = ()
    draft_by_title = False
    status_field = "state"
    line_field = "line"
    changes_requested = "CHANGES_REQUESTED"

    @classmethod
    def open(cls, site: ForgeRepository, token: str | None, network: Network) -> GitHub:
        """A GitHub at an address; github.com has its API on a host of its own."""
        api = "https://api.github.com" if site.host == "github.com" else f"{site.url}/api/v3"
        headers = {"accept": "application/vnd.github+json", "x-github-api-version": "2022-11-28"}
        return cls(site, Rest(api, token, site.clock, network, headers=headers))

    async def failed_checks(self, commit: str) -> tuple[FailedCheck, ...]:
        runs = await self.rest.pages(f"{self._repo()}/commits/{commit}/check-runs", {"filter": "latest"})
        red = [
            FailedCheck(read.text(one, "name") or "check", _summary(one), read.text(one, "html_url"))
            for one in runs
            if read.text(one, "conclusion") in RED
        ]
        return (*red, *await super().failed_checks(commit))

    async def _written(self, number: int, since: str) -> list[Json]:
        reviews = await self.rest.pages(f"{self._repo()}/pulls/{number}/reviews")
        lines = await self.rest.pages(f"{self._repo()}/pulls/{number}/comments", {"since": since})
        return reviews + lines + await self.rest.pages(f"{self._repo()}/issues/{number}/comments", {"since": since})

    async def _git_user(self) -> str:
        return "x-access-token"

    async def _who(self) -> ForgeUser:
        """Our own account, asked each time: it tells when the token ends. A token of an installation may not ask."""
        self._user = None
        try:
            return await super()._who()
        except ForgeFailed as error:
            if error.kind != "permission":
                raise
            return ForgeUser()

    async def _can_merge(self, branch: str, push: bool | None, *, admin: bool) -> bool | None:
        """Asked of the branch, its rules (which everybody may read) and its protection (which few may)."""
        data = await self._branch(branch)
        approvals = await self._approvals(branch)
        protected = True if approvals else read.flag(data, "protected")
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

    async def _head(self, branch: str) -> str:
        return f"{(await self.push_target()).owner}:{branch}"

    async def _open_pulls(self, branch: str) -> list[Json]:
        found = (await self.rest.get(f"{self._repo()}/pulls", {"head": await self._head(branch), "state": "open"})).data
        return found if isinstance(found, list) else []

    async def _open(self, pull: PullDraft) -> tuple[RestAnswer, tuple[str, ...]]:
        try:
            return await super()._open(pull)
        except ForgeFailed as error:
            if error.status != 422 or not _NO_DRAFTS.search(error.what):
                raise
        answer, notes = await super()._open(replace(pull, draft=False, title=f"{WIP}{pull.title}"))
        return answer, (f"this repository takes no drafts, so the title begins with {WIP.strip()}", *notes)


def _needed(data: Json) -> int:
    """The approvals that rules or a protection ask for."""
    if isinstance(data, list):
        rules = [rule for rule in data if read.text(rule, "type") == "pull_request"]
        return max((read.number(r, "parameters", "required_approving_review_count") or 0 for r in rules), default=0)
    return read.number(data, "required_pull_request_reviews", "required_approving_review_count") or 0


def _summary(run: Json) -> str:
    parts = [read.text(run, "output", name) for name in ("title", "summary", "text")]
    return "\n".join(part for part in (read.text(run, "conclusion"), *parts) if part)
