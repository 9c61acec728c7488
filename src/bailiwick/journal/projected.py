"""Documents that people read as files: the store is the truth, the file is written after the commit and never read.

In earlier versions the files were the truth: they are taken into the store once.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from bailiwick import crashpoints
from bailiwick.errors import DocumentChanged
from bailiwick.ids import Json
from bailiwick.journal.documents import change_document
from bailiwick.journal.port import Store
from bailiwick.locks import held

IMPORTED = "imported"
"""The kind of the marks that say whose files were taken in, by kind."""
_NEW = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class ProjectedDocuments:
    """The documents of a kind and their files: a folder of that name where ids fit `names`, else one file.

    A file that is missing or differs is written again by the next read or write; one that can't be written stops
    nothing. `read_old` gives what a file of an earlier version holds, None where it is gone; what it raises is told,
    and nothing is taken in.
    """

    store: Store
    state: Path
    kind: str
    read_old: Callable[[Path], Json]
    names: re.Pattern[str] | None = None

    @property
    def folder(self) -> Path:
        """Where the files are."""
        return self.state if self.names is None else self.state / self.kind

    def file(self, name: str) -> Path:
        """Where people read a document."""
        return self.folder / f"{name}.json"

    async def get(self, name: str) -> Json:
        """One document; None where there is none, or it was removed."""
        await self._import()
        known = await self.store.document(self.kind, name)
        if known is None:
            return None
        await self._mend({name: known.body})
        return known.body

    async def all(self) -> dict[str, Json]:
        """Every document, by id."""
        await self._import()
        found = {one.id: one.body for one in await self.store.documents(self.kind)}
        await self._mend(found)
        return {name: body for name, body in found.items() if body is not None}

    async def change(self, name: str, change: Callable[[Json], Json]) -> Json:
        """Change a document whoever else does; `change` gets None where there is none, and gives None to remove it.

        It may be called again, and what it raises leaves all as it was. A document that was removed stays as an empty
        one: neither a late import nor a late writer brings it back.
        """
        await self._import()
        made = await change_document(self.store, self.kind, name, change)
        crashpoints.reach("document.committed")
        await self._project([name])
        return made

    async def _import(self) -> None:
        """Take in the files of an earlier version. The mark comes last: after a kill the rest of them follows."""
        if await self.store.document(IMPORTED, self.kind) is not None:
            return
        pattern = self.names or re.compile(re.escape(self.kind))
        files = [path for path in sorted(self.folder.glob("*.json")) if pattern.fullmatch(path.stem)]
        old = {path.stem: self.read_old(path) for path in files}
        bodies = {name: body for name, body in old.items() if body is not None}
        for name, body in bodies.items():
            with suppress(DocumentChanged):
                await self.store.put_document(self.kind, name, body)
        with suppress(DocumentChanged):
            await self.store.put_document(IMPORTED, self.kind, sorted(bodies))

    async def _mend(self, found: dict[str, Json]) -> None:
        stale = [name for name, body in found.items() if _content(self.file(name)) != _text(body)]
        if stale:
            await self._project(stale)

    async def _project(self, names: Iterable[str]) -> None:
        """Write files as the store has them now: under the lock nobody puts an older version in their place."""
        with suppress(OSError):
            async with held(self.state / f"{self.kind}.lock"):
                for name in names:
                    known = await self.store.document(self.kind, name)
                    _write(self.file(name), _text(known.body if known else None))


def _text(body: Json) -> str | None:
    return None if body is None else json.dumps(body, indent=1, ensure_ascii=True) + "\n"


def _content(path: Path) -> str | None:
    """What a file holds; None where there is none, nothing where it can't be read."""
    try:
        return path.read_text("utf-8")
    except FileNotFoundError:
        return None
    except (OSError, ValueError):
        return ""


def _write(path: Path, text: str | None) -> None:
    """Put a file in place whole, or remove it. It need not last over a power cut: the store does."""
    if text is None:
        path.unlink(missing_ok=True)
        return
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.new")
    try:
        with os.fdopen(os.open(draft, _NEW, 0o600), "w", encoding="utf-8") as file:
            file.write(text)
        draft.replace(path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise
