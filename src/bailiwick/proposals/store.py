"""Proposals on disk: one file each in the state directory, replaced whole, changed by one process at a time."""

from __future__ import annotations

import json
import os
import re
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from bailiwick.config.paths import make_private
from bailiwick.durable import sync_folder
from bailiwick.errors import NotFound, NotReady, Place
from bailiwick.ids import Json
from bailiwick.locks import held
from bailiwick.proposals.model import Proposal, find, read_proposal

UNREADABLE = "BW462"
NO_PROPOSAL = "BW463"
_NEW = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
_ID = re.compile(r"[0-9a-f]{4,64}")


class ProposalStore:
    """The proposals of a state directory."""

    def __init__(self, state: Path) -> None:
        self.folder = state / "proposals"

    def get(self, proposal: str) -> Proposal | None:
        """The proposal with exactly this id; raises `NotReady` where its file can't be read."""
        path = self._file(proposal)
        try:
            return read_proposal(json.loads(path.read_bytes()))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise NotReady(
                f"a proposal can't be read: {error}",
                place=Place(str(path)),
                hint="restore the file from a backup, or remove it: the branch is not touched",
                code=UNREADABLE,
            ) from error

    def all(self) -> list[Proposal]:
        """Every proposal, newest first."""
        names = sorted(path.stem for path in self.folder.glob("*.json") if _ID.fullmatch(path.stem))
        found = [one for name in names if (one := self.get(name)) is not None]
        return sorted(found, key=lambda one: (-one.created, one.id))

    def named(self, text: str) -> Proposal:
        """The one that a person means by an id, its beginning, a run or a branch; raises `NotFound`."""
        found = find(self.all(), text)
        if len(found) == 1:
            return found[0]
        what = f"'{text}' means several proposals" if found else f"there is no proposal '{text}'"
        listed = ", ".join(one.id for one in found) or "`bailiwick proposals list --all` lists them"
        raise NotFound(what, hint=listed, code=NO_PROPOSAL)

    def save(self, proposal: Proposal) -> Proposal:
        """Replace a proposal's file, durably; the caller holds its lock."""
        replace_file(self._file(proposal.id), proposal.to_json())
        return proposal

    def held(self, proposal: str) -> AbstractAsyncContextManager[None]:
        """Hold a proposal against other processes; waits for whoever has it."""
        make_private(self.folder)
        return held(self._file(proposal).with_suffix(".lock"))

    def _file(self, proposal: str) -> Path:
        if not _ID.fullmatch(proposal):
            raise NotFound(f"'{proposal}' is not a proposal's id", hint="`bailiwick proposals list`", code=NO_PROPOSAL)
        return self.folder / f"{proposal}.json"


def replace_file(path: Path, data: Json) -> None:
    """Write a JSON file whole or not at all, and durably; the caller holds a lock, or two would share a name."""
    make_private(path.parent)
    text = json.dumps(data, indent=1, ensure_ascii=True) + "\n"
    temporary = path.with_name(f".{path.name}.new")
    try:
        with os.fdopen(os.open(temporary, _NEW, 0o600), "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        sync_folder(path.parent)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise NotReady(
            f"the file can't be written: {error.strerror or error}",
            place=Place(str(path)),
            hint="free disk space or make it writable, then do the same again",
            code=UNREADABLE,
        ) from error
