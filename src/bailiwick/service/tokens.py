"""Who may do what over HTTP: the operator's own token in a file, and further ones of which only a digest is kept."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hmac import compare_digest
from pathlib import Path
from typing import Final, Literal

from bailiwick.config.paths import make_private
from bailiwick.errors import NotFound, NotReady, Place, UsageError
from bailiwick.ids import NAME, Json, digest
from bailiwick.journal.port import Store
from bailiwick.journal.projected import ProjectedDocuments

Scope = Literal["read", "run", "admin"]
RANK: Final[Mapping[str, int]] = {"read": 0, "run": 1, "admin": 2}
KIND = "tokens"
UNREADABLE = "BW600"
NO_TOKEN = "BW601"  # noqa: S105  the code of an error
LONGEST = 512
"""Characters of a token that are looked at; a longer one is nobody's."""
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class TokenAccess:
    """Who asks, by the name of the token, and how far that reaches."""

    name: str
    scope: Scope

    def reaches(self, needed: Scope) -> bool:
        """Whether this is enough: admin may run, who may run may read."""
        return RANK[self.scope] >= RANK[needed]


ANONYMOUS = TokenAccess("anonymous", "read")


@dataclass(slots=True)
class ApiTokens:
    """The tokens of a state directory, read again when the store has news or the operator's own was changed.

    The operator's own is a file of this machine; the others are documents, whose files in `tokens` are for people.
    """

    store: Store
    state: Path
    _known: tuple[tuple[str, TokenAccess], ...] = ()
    _stamp: tuple[int, ...] = ()

    @property
    def file(self) -> Path:
        """The operator's own token."""
        return self.state / "token"

    @property
    def documents(self) -> ProjectedDocuments:
        """The other ones: name, scope and digest."""
        return ProjectedDocuments(self.store, self.state, KIND, _read_old, names=NAME)

    def own(self) -> str:
        """The operator's token, made the first time; only its owner can read the file."""
        make_private(self.state)
        try:
            _write(self.file, f"{_fresh()}\n")
        except FileExistsError:
            pass
        except OSError as error:
            raise _broken(self.file, f"the token can't be written: {error.strerror}") from error
        return self._read_own()

    async def find(self, text: str) -> TokenAccess | None:
        """Whose token this is. Takes as long for a wrong one as for a right one."""
        await self._refresh()
        given = digest(text) if 0 < len(text) <= LONGEST else ""
        found: TokenAccess | None = None
        for kept, access in self._known:
            if compare_digest(kept, given):
                found = access
        return found

    async def add(self, name: str, scope: Scope) -> str:
        """Make a token; it is shown now and never again."""
        if not NAME.fullmatch(name):
            raise UsageError(f"'{name}' is not a name for a token", hint="letters, digits, '_', '.', '-'; at most 64")
        text = _fresh()

        def made(known: Json) -> Json:
            if known is not None:
                hint = f"bailiwick serve token remove {name}, or choose another name"
                raise UsageError(f"there is a token '{name}' already", hint=hint)
            return {"name": name, "scope": scope, "digest": digest(text)}

        await self._change(name, made)
        return text

    async def remove(self, name: str) -> None:
        """Let a token count no more, from the next request on."""

        def gone(known: Json) -> Json:
            if known is None:
                raise NotFound(f"there is no token '{name}'", hint="bailiwick serve token list", code=NO_TOKEN)
            return None

        await self._change(name, gone)

    async def all(self) -> list[TokenAccess]:
        """Every token but the operator's own, by name."""
        return sorted((access for _, access in await self._others()), key=lambda one: one.name)

    async def _change(self, name: str, change: Callable[[Json], Json]) -> None:
        try:
            await self.documents.change(name, change)
        finally:
            self._stamp = ()

    def _read_own(self) -> str:
        try:
            if self.file.stat().st_mode & 0o077:
                self.file.chmod(0o600)
            text = self.file.read_text("ascii").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise _broken(self.file, f"the token can't be read: {error}") from error
        if not 16 <= len(text) <= LONGEST:
            raise _broken(self.file, "the token's file holds no token")
        return text

    async def _refresh(self) -> None:
        """Asked for every request: without news it is one look at the store's counter and one at a file."""
        stamp = (await self.store.wait_for_news(), *_changed(self.file))
        if stamp == self._stamp:
            return
        own = [(digest(self._read_own()), TokenAccess("operator", "admin"))] if self.file.exists() else []
        self._known = (*own, *await self._others())
        self._stamp = stamp

    async def _others(self) -> list[tuple[str, TokenAccess]]:
        documents = self.documents
        return [_token(body, documents.file(name)) for name, body in (await documents.all()).items()]


def _read_old(path: Path) -> Json:
    """The file of an earlier version."""
    try:
        data = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise _broken(path, f"a token can't be read: {error}") from error
    kept, access = _token(data, path)
    return {"name": access.name, "scope": access.scope, "digest": kept}


def _token(data: Json, path: Path) -> tuple[str, TokenAccess]:
    try:
        return str(data["digest"]), TokenAccess(str(data["name"]), _scope(data["scope"]))
    except (ValueError, KeyError, TypeError) as error:
        raise _broken(path, f"a token can't be read: {error}") from error


def _scope(text: object) -> Scope:
    match text:
        case "read" | "run" | "admin":
            return text
        case _:
            raise ValueError(f"{text!r} is not a scope")


def _fresh() -> str:
    return f"bw_{secrets.token_urlsafe(32)}"


def _write(path: Path, text: str) -> None:
    with os.fdopen(os.open(path, _NEW, 0o600), "w", encoding="ascii") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def _changed(path: Path) -> tuple[int, int]:
    try:
        there = path.stat()
    except OSError:
        return 0, 0
    return there.st_mtime_ns, there.st_ino


def _broken(path: Path, what: str) -> NotReady:
    return NotReady(what, place=Place(str(path)), hint="make it readable for you, or remove it", code=UNREADABLE)
