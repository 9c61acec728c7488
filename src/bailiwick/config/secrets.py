"""What a reference `${secret:…}` stands for. Resolved late, by whoever needs it; no error ever repeats a secret.

`${secret:env:NAME}` and `${secret:file:PATH}` say themselves where to look. What else may stand there is up to
`secrets.provider`: with `environment` the name of a variable, with `file` a path and a key. There
`${secret:agents/claude#token}` is the key `token` below `agents`, `claude` in `secrets.file`, and
`${secret:/some/file.yaml#token}` the key `token` in that file.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from bailiwick.config.service import Config
from bailiwick.config.shapes import REFERENCE
from bailiwick.config.variables import Environment
from bailiwick.errors import BailiwickError, InputInvalid, NotReady, Place, UsageError
from bailiwick.ids import Json

BAD_REFERENCE = "BW262"
NO_SECRET = "BW263"  # noqa: S105  the code of an error
OPEN_SECRET = "BW264"  # noqa: S105  the code of an error
BAD_SECRETS_FILE = "BW268"
MAX_SECRET = 64 << 10
MAX_SECRETS_FILE = 1 << 20
_VARIABLE = r"[A-Za-z_][A-Za-z0-9_]*"


@dataclass(frozen=True, slots=True)
class Secrets:
    """Resolves references with the provider that the configuration names; files are read again each time."""

    provider: str = "environment"
    file: str | None = None
    environment: Environment = field(default_factory=Environment)

    @classmethod
    def of(cls, config: Config, environment: Environment | None = None) -> Secrets:
        """The secrets of a configuration."""
        return cls(str(config.get("secrets.provider")), config.get("secrets.file"), environment or Environment())

    def text(self, reference: str) -> str:
        """The secret as it is kept, without a line end behind it; it may have several lines.

        Raises `UsageError` for a reference that means nothing here, `NotReady` where the secret is not there.
        """
        return self._found(reference)[0]

    def token(self, reference: str) -> str:
        """The secret as one word, such as a header can carry."""
        return checked_token(*self._found(reference))

    def filled(self, text: str, learn: Callable[[str], None] | None = None) -> str:
        """A text with each reference in it replaced by its secret, which `learn` is told too."""

        def secret(found: re.Match[str]) -> str:
            value = self.text(found[0])
            if learn is not None:
                learn(value)
            return value

        return re.sub(REFERENCE, secret, text)

    def _found(self, reference: str) -> tuple[str, str]:
        """The secret, and what it was found in, for messages."""
        if not re.fullmatch(REFERENCE, reference):
            self._refuse()
        name = reference[len("${secret:") : -1]
        kind, _, rest = name.partition(":")
        if kind == "env" and rest:
            return self._variable(rest)
        if kind == "file" and rest:
            return self._whole_file(rest)
        if self.provider == "file":
            return self._from_file(name)
        if not re.fullmatch(_VARIABLE, name):
            self._refuse()
        return self._variable(name)

    def _refuse(self) -> NoReturn:
        ways = {"file": "${secret:PATH#KEY}, ", "environment": "${secret:NAME}, "}
        raise UsageError(
            "a reference to a secret can't be resolved here",
            hint=f"write {ways.get(self.provider, '')}${{secret:env:NAME}}, or ${{secret:file:PATH}} "
            "for a file that only you can read",
            code=BAD_REFERENCE,
        )

    def _variable(self, name: str) -> tuple[str, str]:
        value = self.environment.text(name)
        if value is None:
            raise NotReady(
                f"the variable {name} is not set, and a secret refers to it",
                hint=f"export {name}, or refer to a file: ${{secret:file:PATH}}",
                code=NO_SECRET,
            )
        return value, name

    def _whole_file(self, name: str) -> tuple[str, str]:
        path = self._path(name)
        return _text(_read_private(path, MAX_SECRET), path), str(path)

    def _from_file(self, name: str) -> tuple[str, str]:
        """`path#key`: below the path in `secrets.file`, or in the file that an absolute path names."""
        path, mark, key = name.partition("#")
        if mark and not key:
            self._refuse()
        if self.file is not None and not path.startswith(("/", "~/")):
            steps = [step for step in path.split("/") if step]
            return _picked(Path(self.file), [*steps, *([key] if key else [])]), f"{self.file} ({name})"
        if not key:
            return self._whole_file(path)
        return _picked(self._path(path), [key]), f"{path} ({key})"

    def _path(self, name: str) -> Path:
        path = self.environment.home() / name[2:] if name.startswith("~/") else Path(name)
        if not path.is_absolute():
            raise UsageError(
                f"the secret's file '{name}' is named by a relative path",
                hint="write the whole path, or ~/PATH; for a path inside of one file set secrets.file",
                code=BAD_REFERENCE,
            )
        return path


def resolve_secret(reference: str, environment: Environment | None = None, config: Config | None = None) -> str:
    """The token that a reference stands for; without a configuration plain names are those of variables."""
    env = environment or Environment()
    return (Secrets(environment=env) if config is None else Secrets.of(config, env)).token(reference)


def checked_token(value: str, source: str) -> str:
    """A token without the blanks around it; raises `NotReady` where it can't be one."""
    token = value.strip()
    if token and token.isascii() and token.isprintable() and " " not in token:
        return token
    raise NotReady(
        f"what {source} holds is not a token: it is empty, or has a blank or another character that no token has",
        hint="write the token alone, on one line",
        code=NO_SECRET,
    )


def _read_private(path: Path, limit: int) -> bytes:
    """The bytes of a file that nobody but its owner can read."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from error
    try:
        mode = os.fstat(handle).st_mode
        if not stat.S_ISREG(mode) or stat.S_IMODE(mode) & 0o077:
            raise NotReady(
                "the secret's file is open to others" if stat.S_ISREG(mode) else "the secret's file is none",
                place=Place(str(path)),
                hint=f"chmod 600 {path}" if stat.S_ISREG(mode) else "refer to a plain file",
                code=OPEN_SECRET,
            )
        with os.fdopen(handle, "rb", closefd=False) as stream:
            data = stream.read(limit + 1)
    except OSError as error:
        raise _unreadable(path, error) from error
    finally:
        os.close(handle)
    if len(data) > limit:
        raise NotReady(
            f"the secret's file has more than {limit:,} bytes",
            place=Place(str(path)),
            hint="refer to the right file",
            code=NO_SECRET,
        )
    return data


def _unreadable(path: Path, error: OSError | ValueError) -> NotReady:
    reason = error.strerror if isinstance(error, OSError) else "no file has such a name"
    return NotReady(
        f"the secret's file can't be read: {reason}",
        place=Place(str(path)),
        hint="make it, readable for you alone (chmod 600)",
        code=NO_SECRET,
    )


def _text(data: bytes, path: Path) -> str:
    try:
        text = data.decode("utf-8").removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:
        text = "\0"
    if text.strip() and "\0" not in text:
        return text
    raise NotReady(
        "the secret's file is empty, or holds bytes that are not text",
        place=Place(str(path)),
        hint="write the secret alone",
        code=NO_SECRET,
    )


def _picked(path: Path, steps: list[str]) -> str:
    """The text at a path of keys in a YAML or JSON file; what is in the file is never repeated."""
    from bailiwick.lang.source import parse_yaml

    data = _read_private(path, MAX_SECRETS_FILE)
    try:
        here: Json = parse_yaml(data, str(path)).data
    except InputInvalid as error:
        raise NotReady(
            "the file of secrets is not a YAML or JSON mapping",
            place=error.place,
            hint="write `name: {key: 'secret'}`",
            code=BAD_SECRETS_FILE,
        ) from None
    shown = "/".join(steps)
    for step in steps:
        if not isinstance(here, dict) or step not in here:
            raise NotReady(
                f"the file of secrets has no '{shown}'", place=Place(str(path)), hint="add it there", code=NO_SECRET
            )
        here = here[step]
    if not isinstance(here, str) or not here.strip() or "\0" in here:
        raise NotReady(
            f"'{shown}' in the file of secrets is not a text",
            place=Place(str(path)),
            hint="put a number or a word such as true in quotes; name a key of a mapping behind `#`",
            code=BAD_SECRETS_FILE,
        )
    return here


def problem_of(secrets: Secrets, reference: str) -> BailiwickError | None:
    """Why a reference can't be resolved; None where it can."""
    try:
        secrets.text(reference)
    except BailiwickError as error:
        return error
    return None
