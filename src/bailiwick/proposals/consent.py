"""Whether proposals may leave this machine: a person's word, with what it covers, who gave it and until when."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from bailiwick.clock import Clock, iso
from bailiwick.config.paths import make_private
from bailiwick.errors import NotFound, NotReady, Place
from bailiwick.ids import Json
from bailiwick.locks import held
from bailiwick.proposals.store import UNREADABLE, replace_file

Mode = Literal["ask", "auto", "never"]
Decision = Literal["publish", "ask", "keep"]
"""`ask`: a person has to say so first, until then it stays here. `keep`: it stays here by configuration."""
DRAFTS = "draft pull requests"
READY = "pull requests"
EXPIRES = 90 * 86400.0
Audit = Callable[[str, dict[str, Json]], object]
"""Enters an action in the audit, before it is done; raises where that can't be."""


@dataclass(frozen=True, slots=True)
class Consent:
    """A person's word that proposals of a repository (`host/owner/name`) may go to a forge. Times in epoch seconds."""

    repository: str
    forge: str
    scope: str
    by: str
    at: float
    expires: float

    def covers(self, repository: str, forge: str, scope: str, now: float) -> bool:
        """Whether it holds now for this; who allowed plain pull requests allowed drafts too."""
        fits = (self.repository, self.forge) == (repository, forge) and self.scope in (scope, READY)
        return fits and self.at <= now < self.expires


def scope_of(*, draft: bool) -> str:
    """What has to be consented to."""
    return DRAFTS if draft else READY


def decide(mode: Mode, consent: Consent | None) -> Decision:
    """What the configuration and a consent that holds come to."""
    match mode:
        case "never":
            return "keep"
        case "auto":
            return "publish"
        case "ask":
            return "publish" if consent is not None else "ask"


class Consents:
    """The consents of a state directory."""

    def __init__(self, state: Path, clock: Clock) -> None:
        self.file = state / "consents.json"
        self.clock = clock

    def all(self) -> list[Consent]:
        """Every consent that was given and not revoked, expired ones included."""
        try:
            return [Consent(**item) for item in json.loads(self.file.read_bytes())["consents"]]
        except FileNotFoundError:
            return []
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise NotReady(
                f"the consents can't be read: {error}",
                place=Place(str(self.file)),
                hint="restore the file, or remove it: you will be asked again",
                code=UNREADABLE,
            ) from error

    def find(self, repository: str, forge: str, scope: str) -> Consent | None:
        """A consent that holds now, or None."""
        now = self.clock.now()
        return next((one for one in self.all() if one.covers(repository, forge, scope, now)), None)

    async def give(self, repository: str, forge: str, scope: str, by: str, audit: Audit) -> Consent:
        """Record a person's word; it is in the audit first."""
        now = self.clock.now()
        given = Consent(repository, forge=forge, scope=scope, by=by, at=now, expires=now + EXPIRES)
        async with self._held():
            audit("consent.given", {**asdict(given), "until": iso(given.expires)})
            others = [one for one in self.all() if (one.repository, one.forge) != (repository, forge)]
            self._write([*others, given])
        return given

    async def revoke(self, repository: str, audit: Audit) -> list[Consent]:
        """Forget the consents of a repository, which are in the audit first; raises `NotFound` where there are none."""
        async with self._held():
            gone = [one for one in self.all() if one.repository == repository]
            if not gone:
                hint = "bailiwick proposals consent list shows those there are"
                raise NotFound(f"no consent for '{repository}': none was given, or it was revoked before", hint=hint)
            for one in gone:
                audit("consent.withdrawn", asdict(one))
            self._write([one for one in self.all() if one not in gone])
        return gone

    def _held(self) -> AbstractAsyncContextManager[None]:
        make_private(self.file.parent)
        return held(self.file.with_suffix(".lock"))

    def _write(self, consents: list[Consent]) -> None:
        replace_file(self.file, {"version": 1, "consents": [asdict(one) for one in consents]})
