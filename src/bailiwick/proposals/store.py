"""Proposals: a document each in the store, with a file that people read; pushed by one process at a time."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from bailiwick.config.paths import make_private
from bailiwick.errors import NotFound, NotReady, Place
from bailiwick.ids import Json
from bailiwick.journal.port import Store
from bailiwick.journal.projected import ProjectedDocuments
from bailiwick.locks import held
from bailiwick.proposals.model import Proposal, find, read_proposal

KIND = "proposals"
UNREADABLE = "BW462"
NO_PROPOSAL = "BW463"
_ID = re.compile(r"[0-9a-f]{4,64}")


class ProposalStore:
    """The proposals of a state directory."""

    def __init__(self, store: Store, state: Path) -> None:
        self.documents = ProjectedDocuments(store, state, KIND, _read_old, names=_ID)

    async def get(self, proposal: str) -> Proposal | None:
        """The proposal with exactly this id; raises `NotReady` where it can't be read."""
        return self._read(proposal, await self.documents.get(_checked(proposal)))

    async def all(self) -> list[Proposal]:
        """Every proposal, newest first."""
        read = [self._read(name, body) for name, body in (await self.documents.all()).items()]
        return sorted((one for one in read if one is not None), key=lambda one: (-one.created, one.id))

    async def named(self, text: str) -> Proposal:
        """The one that a person means by an id, its beginning, a run or a branch; raises `NotFound`."""
        found = find(await self.all(), text)
        if len(found) == 1:
            return found[0]
        what = f"'{text}' means several proposals" if found else f"there is no proposal '{text}'"
        listed = ", ".join(one.id for one in found) or "`bailiwick proposals list --all` lists them"
        raise NotFound(what, hint=listed, code=NO_PROPOSAL)

    async def change(
        self, proposal: str, change: Callable[[Proposal], Proposal], new: Proposal | None = None
    ) -> Proposal:
        """Change a proposal as it is by then, whoever else does; `new` is kept where there is none.

        `change` may be called again: it says what is different, and leaves alone what others may have changed.
        Raises `NotFound` where there is neither.
        """

        def changed(known: Json) -> Json:
            there = self._read(proposal, known)
            made = new if there is None else change(there)
            if made is None:
                raise _unknown(proposal)
            return made.to_json()

        return read_proposal(await self.documents.change(_checked(proposal), changed))

    def held(self, proposal: str) -> AbstractAsyncContextManager[None]:
        """Hold a proposal against other processes of this machine; waits for whoever has it.

        Changes need no lock. What is done with git and a forge does: a branch must not be pushed twice at once. It is
        a lock of this machine for as long as all workers of a state directory are on one.
        """
        file = self.documents.file(_checked(proposal))
        make_private(file.parent)
        return held(file.with_suffix(".lock"))

    def _read(self, name: str, body: Json) -> Proposal | None:
        if body is None:
            return None
        try:
            return read_proposal(body)
        except (KeyError, TypeError, ValueError) as error:
            hint = "upgrade Bailiwick: a newer version has written it; the branch is not touched"
            raise _unreadable(self.documents.file(name), error, hint) from error


def _read_old(path: Path) -> Json:
    """The file of an earlier version. One that can't be read is not taken for none: a second one would be made."""
    try:
        body = json.loads(path.read_bytes())
        read_proposal(body)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        hint = "restore the file from a backup, or remove it: the branch is not touched"
        raise _unreadable(path, error, hint) from error
    return body


def _checked(proposal: str) -> str:
    """An id that can be the name of a file."""
    if not _ID.fullmatch(proposal):
        raise _unknown(proposal)
    return proposal


def _unknown(proposal: str) -> NotFound:
    return NotFound(f"'{proposal}' is not a proposal's id", hint="`bailiwick proposals list`", code=NO_PROPOSAL)


def _unreadable(path: Path, error: Exception, hint: str) -> NotReady:
    return NotReady(f"a proposal can't be read: {error}", place=Place(str(path)), hint=hint, code=UNREADABLE)
