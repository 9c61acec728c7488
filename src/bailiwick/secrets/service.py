"""Which secrets the configuration refers to, whether they are there, and what has to be covered in every output."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from bailiwick.agents.credentials import LOGINS, SECRET_VARIABLES, login_home
from bailiwick.config.keys import find_key
from bailiwick.config.secrets import Secrets, problem_of
from bailiwick.config.service import Config
from bailiwick.config.shapes import SecretText
from bailiwick.config.variables import Environment
from bailiwick.errors import BailiwickError
from bailiwick.ids import Json
from bailiwick.redaction.redact import Redactor

__all__ = ["KnownSecrets", "SecretStatus", "check_secrets", "known_secrets"]

_USERS = {
    "credentials": "the credential '{}', by agents",
    "forges": "the forge '{}', by proposals",
    "endpoints": "the endpoint '{}', by agents",
}
_NAMES = (
    r"(?:token|secret|password|passwd|passphrase|credentials?|(?:^|[_-])pat"
    r"|(?:api|access|secret|private|signing|encryption|master|auth|deploy|account)[_-]?key(?:[_-]?id)?)$"
)
_USERINFO = r"[A-Za-z][A-Za-z0-9+.-]*://[^/\s:@]*:([^/\s@]{6,})@"
_PLAIN_WORDS = frozenset({"true", "false", "enabled", "disabled", "required", "optional", "default", "unlimited"})


@dataclass(frozen=True, slots=True)
class SecretStatus:
    """One reference of the configuration and whether it can be resolved; never what it stands for."""

    key: str
    reference: str
    user: str
    origin: str
    ok: bool
    code: str = ""
    what: str = ""
    hint: str = ""


def check_secrets(config: Config, environment: Environment | None = None) -> list[SecretStatus]:
    """Every reference in the configuration, resolved once to see whether it can be."""
    secrets = Secrets.of(config, environment)
    return [_checked(config, secrets, name, reference) for name, reference in references(config)]


def references(config: Config) -> Iterator[tuple[str, str]]:
    """The keys that refer to secrets, with their references."""
    for name, value in config.items():
        key = find_key(name)
        if key is not None and isinstance(key.shape, SecretText) and isinstance(value, str):
            yield name, value


def _checked(config: Config, secrets: Secrets, name: str, reference: str) -> SecretStatus:
    section, owner, *_ = name.split(".")
    user = _USERS.get(section, "'{}'").format(owner)
    origin = str(config.origin(name))
    error = problem_of(secrets, reference)
    if error is None:
        return SecretStatus(name, reference, user, origin, ok=True)
    what = f"{error.place}: {error.what}" if error.place else error.what
    return SecretStatus(name, reference, user, origin, ok=False, code=error.code, what=what, hint=error.hint)


def known_secrets(config: Config, environment: Environment | None = None) -> tuple[str, ...]:
    """Every value that must not be shown: what references stand for, credentials, logins, variables that look secret.

    A reference that can't be resolved is passed over: what isn't there can't get out.
    """
    env = environment or Environment()
    found = dict.fromkeys(
        [*_resolved(config, env), *_in_variables(env), *_in_addresses(config), *_in_logins(config), *_own(env)]
    )
    return tuple(value for value in found if value.strip())


def _resolved(config: Config, env: Environment) -> Iterator[str]:
    secrets = Secrets.of(config, env)
    for _, reference in references(config):
        try:
            yield secrets.text(reference)
        except BailiwickError:
            continue


def _own(env: Environment) -> Iterator[str]:
    passphrase = env.key_passphrase()
    if passphrase:
        yield passphrase


def _in_variables(env: Environment) -> Iterator[str]:
    for name, value in env.child_environment({}).items():
        if name in SECRET_VARIABLES or (_looks_secret(name) and _may_be_secret(value)):
            yield value
        yield from re.findall(_USERINFO, value)


def _looks_secret(name: str) -> bool:
    """Whether a name is one that people give to secrets: GITHUB_TOKEN, api-key, refreshToken."""
    return re.search(_NAMES, re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()) is not None


def _may_be_secret(value: str) -> bool:
    """Whether a value could be one: no path, no number, no word such as `enabled`."""
    return not value.startswith(("/", "~", "./")) and value.lower() not in _PLAIN_WORDS and not value.isdigit()


def _in_addresses(config: Config) -> Iterator[str]:
    for value in dict(config.items()).values():
        if isinstance(value, str):
            yield from re.findall(_USERINFO, value)


def _in_logins(config: Config) -> Iterator[str]:
    """The tokens that agents' programs keep in the login homes that we made."""
    for backend, login in LOGINS.items():
        try:
            kept = json.loads((login_home(config.paths, backend) / login.kept).read_bytes())
        except (OSError, ValueError, RecursionError):
            continue
        yield from _tokens(kept)


def _tokens(value: Json, name: str = "") -> Iterator[str]:
    match value:
        case str() if _looks_secret(name):
            yield value
        case dict():
            for key, part in value.items():
                yield from _tokens(part, str(key))
        case list():
            for part in value:
                yield from _tokens(part, name)
        case _:
            return


@dataclass(slots=True)
class KnownSecrets:
    """The secrets that this process knows: those of the configuration, and each one that it resolved for a node.

    `text` fits wherever a redacting function is asked for; a secret that is learnt later is covered from then on.
    """

    secrets: Secrets
    _values: dict[str, None] = field(default_factory=dict)
    _made: tuple[int, Redactor] = field(default_factory=lambda: (0, Redactor(())))

    @classmethod
    def of(cls, config: Config, environment: Environment | None = None) -> KnownSecrets:
        """What is known at the start."""
        return cls(Secrets.of(config, environment), dict.fromkeys(known_secrets(config, environment)))

    def filled(self, text: str) -> str:
        """A text with its references replaced by their secrets, which are covered from now on."""
        return self.secrets.filled(text, self.learn)

    def learn(self, secret: str) -> None:
        """Cover one more secret."""
        self._values[secret] = None

    @property
    def redactor(self) -> Redactor:
        """The redactor for everything that is known by now. May be asked for from any thread."""
        known = len(self._values)
        if self._made[0] != known:
            self._made = known, Redactor(tuple(self._values))
        return self._made[1]

    def text(self, text: str) -> str:
        """A text with every known secret covered."""
        return self.redactor.text(text)
