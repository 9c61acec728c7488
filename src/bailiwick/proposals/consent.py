"""Whether proposals may leave this machine: a person's word, with what it covers, who gave it and until when."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from bailiwick.clock import Clock, iso
from bailiwick.errors import NotFound, NotReady, Place
from bailiwick.ids import Json
from bailiwick.journal.port import Store
from bailiwick.journal.projected import ProjectedDocuments
from bailiwick.proposals.store import UNREADABLE

Mode = Literal["ask", "auto", "never"]
Decision = Literal["publish", "ask", "keep"]
"""`ask`: a person has to say so first, until then it stays here. `keep`: it stays here by configuration."""
DRAFTS = "draft pull requests"
READY = "pull requests"
EXPIRES = 90 * 86400.0
KIND = "consents"
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
    """The consents of a state directory: one document, whose file `consents.json` is for people."""

    def __init__(self, store: Store, state: Path, clock: Clock) -> None:
        self.documents = ProjectedDocuments(store, state, KIND, _read_old)
        self.clock = clock

    async def all(self) -> list[Consent]:
        """Every consent that was given and not revoked, expired ones included."""
        return self._read(await self.documents.get(KIND))

    async def find(self, repository: str, forge: str, scope: str) -> Consent | None:
        """A consent that holds now, or None."""
        now = self.clock.now()
        return next((one for one in await self.all() if one.covers(repository, forge, scope, now)), None)

    async def give(self, repository: str, forge: str, scope: str, by: str, audit: Audit) -> Consent:
        """Record a person's word; it is in the audit first."""
        now = self.clock.now()
        given = Consent(repository, forge=forge, scope=scope, by=by, at=now, expires=now + EXPIRES)

        def added(known: Json) -> Json:
            others = [one for one in self._read(known) if (one.repository, one.forge) != (repository, forge)]
            return _document([*others, given])

        audit("consent.given", {**asdict(given), "until": iso(given.expires)})
        await self.documents.change(KIND, added)
        return given

    async def revoke(self, repository: str, audit: Audit) -> list[Consent]:
        """Forget the consents of a repository, which are in the audit first; raises `NotFound` where there are none."""
        gone: list[Consent] = []
        audited: list[Consent] = []

        def kept(known: Json) -> Json:
            there = self._read(known)
            gone[:] = [one for one in there if one.repository == repository]
            if not gone:
                hint = "bailiwick proposals consent list shows those there are"
                raise NotFound(f"no consent for '{repository}': none was given, or it was revoked before", hint=hint)
            for one in gone:
                if one not in audited:
                    audit("consent.withdrawn", asdict(one))
                    audited.append(one)
            return _document([one for one in there if one not in gone])

        await self.documents.change(KIND, kept)
        return gone

    def _read(self, known: Json) -> list[Consent]:
        return [] if known is None else _consents(known, self.documents.file(KIND))


def _read_old(path: Path) -> Json:
    """The file of an earlier version; one that can't be read is an error, not a yes and not a no."""
    try:
        known = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from error
    return _document(_consents(known, path))


def _consents(known: Json, path: Path) -> list[Consent]:
    try:
        return [Consent(**item) for item in known["consents"]]
    except (KeyError, TypeError) as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: Exception) -> NotReady:
    return NotReady(
        f"the consents can't be read: {error}",
        place=Place(str(path)),
        hint="restore the file, or remove it: you will be asked again",
        code=UNREADABLE,
    )


def _document(consents: list[Consent]) -> Json:
    return {"version": 1, "consents": [asdict(one) for one in consents]}
