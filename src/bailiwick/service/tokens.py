"""Who may do what over HTTP: the operator's own token in a file, and further ones of which only a digest is kept."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from hmac import compare_digest
from pathlib import Path
from typing import Final, Literal

from bailiwick.config.paths import make_private
from bailiwick.errors import NotFound, NotReady, Place, UsageError
from bailiwick.ids import NAME, digest

Scope = Literal["read", "run", "admin"]
RANK: Final[Mapping[str, int]] = {"read": 0, "run": 1, "admin": 2}
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
    """The tokens of a state directory, read again when one was added or removed."""

    state: Path
    _known: tuple[tuple[str, TokenAccess], ...] = ()
    _stamp: tuple[int, ...] = field(default=(-1,))

    @property
    def file(self) -> Path:
        """The operator's own token."""
        return self.state / "token"

    @property
    def folder(self) -> Path:
        """The other ones: a file each, with name, scope and digest."""
        return self.state / "tokens"

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

    def find(self, text: str) -> TokenAccess | None:
        """Whose token this is. Takes as long for a wrong one as for a right one."""
        self._refresh()
        given = digest(text) if 0 < len(text) <= LONGEST else ""
        found: TokenAccess | None = None
        for kept, access in self._known:
            if compare_digest(kept, given):
                found = access
        return found

    def add(self, name: str, scope: Scope) -> str:
        """Make a token; it is shown now and never again."""
        if not NAME.fullmatch(name):
            raise UsageError(f"'{name}' is not a name for a token", hint="letters, digits, '_', '.', '-'; at most 64")
        make_private(self.state)
        make_private(self.folder)
        text = _fresh()
        body = json.dumps({"name": name, "scope": scope, "digest": digest(text)}) + "\n"
        try:
            _write(self.folder / f"{name}.json", body)
        except FileExistsError:
            hint = f"bailiwick serve token remove {name}, or choose another name"
            raise UsageError(f"there is a token '{name}' already", hint=hint) from None
        except OSError as error:
            raise _broken(self.folder / f"{name}.json", f"the token can't be written: {error.strerror}") from error
        return text

    def remove(self, name: str) -> None:
        """Let a token count no more, from the next request on."""
        file = self.folder / f"{name}.json"
        if not NAME.fullmatch(name) or not file.is_file():
            raise NotFound(f"there is no token '{name}'", hint="bailiwick serve token list", code=NO_TOKEN)
        file.unlink()

    def all(self) -> list[TokenAccess]:
        """Every token but the operator's own, by name."""
        return sorted((access for _, access in self._others()), key=lambda one: one.name)

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

    def _refresh(self) -> None:
        stamp = (*_changed(self.file), *_changed(self.folder))
        if stamp == self._stamp:
            return
        own = [(digest(self._read_own()), TokenAccess("operator", "admin"))] if self.file.exists() else []
        self._known = (*own, *self._others())
        self._stamp = stamp

    def _others(self) -> list[tuple[str, TokenAccess]]:
        found = []
        for file in sorted(self.folder.glob("*.json")):
            try:
                data = json.loads(file.read_bytes())
                found.append((str(data["digest"]), TokenAccess(str(data["name"]), _scope(data["scope"]))))
            except (OSError, ValueError, KeyError, TypeError) as error:
                raise _broken(file, f"a token can't be read: {error}") from error
        return found


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
