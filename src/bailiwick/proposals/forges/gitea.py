"""Gitea and Forgejo by REST v1: a title makes a draft, labels have ids, comments on lines belong to reviews."""

from __future__ import annotations

from bailiwick.ids import Json
from bailiwick.proposals.forges import reading as read
from bailiwick.proposals.forges.port import ForgeRepository
from bailiwick.proposals.forges.rest import Network, Rest
from bailiwick.proposals.forges.rest_forge import RestForge

COLOUR = "#6e7781"
REVIEWS = 50
"""Reviews whose single comments are read, the newest."""


class Gitea(RestForge):
    """One repository on a Gitea or Forgejo."""

    __slots__ = ()
    draft_by_title = True
    status_field = "status"
    line_field = "position"
    changes_requested = "REQUEST_CHANGES"

    @classmethod
    def open(cls, site: ForgeRepository, token: str | None, network: Network) -> Gitea:
        """A Gitea at an address."""
        return cls(site, Rest(f"{site.url}/api/v1", token, site.clock, network, scheme="token", page="limit", size=50))

    async def _written(self, number: int, since: str) -> list[Json]:
        pull = f"{self._repo()}/pulls/{number}"
        reviews = await self.rest.pages(f"{pull}/reviews")
        lines: list[Json] = []
        for one in reviews[-REVIEWS:]:
            review = read.number(one, "id")
            if review is not None and read.number(one, "comments_count") != 0:
                lines += await self.rest.pages(f"{pull}/reviews/{review}/comments")
        return reviews + lines + await self.rest.pages(f"{self._repo()}/issues/{number}/comments", {"since": since})

    async def _can_merge(self, branch: str, push: bool | None, *, admin: bool) -> bool | None:
        """The branch itself says whether we may merge into it and how many have to approve."""
        data = await self._branch(branch)
        if read.flag(data, "user_can_merge") is False:
            return False
        approvals = read.number(data, "required_approvals")
        return read.merge_alone(push, approvals, admin=admin, protected=read.flag(data, "protected"))

    async def _head(self, branch: str) -> str:
        owner = (await self.push_target()).owner
        return branch if owner == self.site.owner else f"{owner}:{branch}"

    async def _open_pulls(self, branch: str) -> list[Json]:
        owner = (await self.push_target()).owner.lower()
        return [
            one
            for one in await self.rest.pages(f"{self._repo()}/pulls", {"state": "open"})
            if read.text(one, "head", "ref") == branch
            and (read.text(one, "head", "repo", "owner", "login") or self.site.owner).lower() == owner
        ]

    async def _label_values(self, labels: tuple[str, ...]) -> list[Json]:
        """The ids of labels; one that is missing is made where we may."""
        found = await self.rest.pages(f"{self._repo()}/labels")
        known = {read.text(one, "name"): read.number(one, "id") for one in found}
        return [known.get(name) or await self._make_label(name) for name in labels]

    async def _make_label(self, name: str) -> int:
        made = await self.rest.send("POST", f"{self._repo()}/labels", {"name": name, "color": COLOUR})
        found = read.number(made.data, "id")
        if found is None:
            raise self.rest.malformed("a label without an id")
        return found
