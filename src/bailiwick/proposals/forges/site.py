"""One repository on one forge: where it is and how a branch gets there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal
from urllib.parse import quote, urlsplit

from bailiwick.clock import Clock

ForgeType = Literal["github", "gitea", "forgejo"]


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
        """`host/owner/name`: what consents are given for."""
        return f"{self.host}/{self.owner}/{self.repository}"

    def git_url(self, owner: str) -> str:
        """Where git finds somebody's copy of the repository."""
        return f"{self.url}/{quote(owner)}/{quote(self.repository)}.git"
