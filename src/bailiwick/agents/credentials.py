"""What opens a backend: a key, a long-lived token, a cloud account or a login of our own. Found here, shown nowhere.

The configuration comes first, then the environment, then a login home made by `bailiwick login`. The person's own
interactive login is never looked at.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from bailiwick.agents.clouds import cloud_of
from bailiwick.config.paths import Paths
from bailiwick.config.secrets import checked_token, resolve_secret
from bailiwick.config.service import Config
from bailiwick.config.variables import Environment
from bailiwick.ids import Json

CredentialKind = Literal["api_key", "oauth", "login", "bedrock", "vertex", "none"]
Billing = Literal["metered", "subscription"]

OAUTH_BETA = "oauth-2025-04-20"
"""What Anthropic's API wants to see beside a long-lived token."""

_OAUTH = "sk-ant-oat"
_VARIABLES: Mapping[str, tuple[tuple[str, CredentialKind], ...]] = {
    "claude": (
        ("ANTHROPIC_API_KEY", "api_key"),
        ("ANTHROPIC_AUTH_TOKEN", "oauth"),
        ("CLAUDE_CODE_OAUTH_TOKEN", "oauth"),
    ),
    "codex": (("CODEX_API_KEY", "api_key"), ("OPENAI_API_KEY", "api_key")),
    "copilot": (("COPILOT_PROVIDER_API_KEY", "api_key"), ("COPILOT_GITHUB_TOKEN", "login")),
    "openai": (("OPENAI_API_KEY", "api_key"),),
}
_SUBSCRIBED = frozenset({"CLAUDE_CODE_OAUTH_TOKEN", "COPILOT_GITHUB_TOKEN"})

SECRET_VARIABLES = frozenset({"LITELLM_API_KEY", *(name for names in _VARIABLES.values() for name, _ in names)})
"""Variables that hold a credential: an agent whose credential is brokered gets none of them."""


@dataclass(frozen=True, slots=True)
class CliLogin:
    """How a program logs in, where it keeps that below its home, and the variables that point it there."""

    arguments: tuple[str, ...]
    kept: str
    folders: Mapping[str, str]


LOGINS: Mapping[str, CliLogin] = {
    "claude": CliLogin(("auth", "login"), ".claude/.credentials.json", {"CLAUDE_CONFIG_DIR": ".claude"}),
    "codex": CliLogin(("login",), ".codex/auth.json", {"CODEX_HOME": ".codex"}),
    "copilot": CliLogin(("login",), ".copilot/config.json", {"COPILOT_HOME": ".copilot"}),
}
"""The backends whose programs have a login of their own."""


@dataclass(frozen=True, slots=True)
class Credential:
    """What a backend uses; `name` is the unit of rate limits. `exposed`: the agent's own process has to hold it."""

    name: str
    backend: str
    kind: CredentialKind
    billing: Billing = "metered"
    token: str | None = field(default=None, repr=False)
    exposed: bool = False

    @property
    def headers(self) -> dict[str, str]:
        """What opens the vendor's API, for the broker alone."""
        if self.token is None:
            return {}
        if self.backend == "claude" and self.kind == "api_key":
            return {"x-api-key": self.token}
        return {"authorization": f"Bearer {self.token}"}

    @property
    def added(self) -> dict[str, str]:
        """What has to stand beside it."""
        return {"anthropic-beta": OAUTH_BETA} if self.token and self.token.startswith(_OAUTH) else {}


def resolve_credential(backend: str, config: Config, environment: Environment | None = None) -> Credential:
    """The credential of a backend; of kind `none` where there is none. Raises `NotReady` where one can't be read."""
    env = environment or Environment()
    return (
        _configured(backend, config, env)
        or _from_environment(backend, env)
        or _logged_in(backend, config.paths)
        or Credential(backend, backend, "none")
    )


def _configured(backend: str, config: Config, env: Environment) -> Credential | None:
    """The first configured credential of a backend, by name; one without a token says how another is paid."""
    entries: dict[str, Json] = config.get("credentials")
    for name, entry in sorted(entries.items()):
        if entry.get("backend") != backend:
            continue
        billing: Billing | None = entry.get("billing")
        if entry.get("token"):
            token = resolve_secret(str(entry["token"]), env, config)
            kind: CredentialKind = "oauth" if token.startswith(_OAUTH) else "api_key"
            usual: Billing = "subscription" if kind == "oauth" else "metered"
            return Credential(name, backend=backend, kind=kind, billing=billing or usual, token=token)
        found = _from_environment(backend, env) or _logged_in(backend, config.paths)
        if found is not None:
            return replace(found, name=name, billing=billing or found.billing)
    return None


def _from_environment(backend: str, env: Environment) -> Credential | None:
    cloud = cloud_of(env.text) if backend == "claude" else None
    if cloud is not None:
        return Credential(cloud.name, backend, cloud.name, exposed=True)
    for name, kind in _VARIABLES.get(backend, ()):
        token = env.text(name)
        if token:
            billing: Billing = "subscription" if name in _SUBSCRIBED else "metered"
            return Credential(
                name,
                backend=backend,
                kind=kind,
                billing=billing,
                token=checked_token(token, name),
                exposed=kind == "login",
            )
    return None


def _logged_in(backend: str, paths: Paths) -> Credential | None:
    login = LOGINS.get(backend)
    if login is None or not (login_home(paths, backend) / login.kept).is_file():
        return None
    return Credential(f"login-{backend}", backend, "login", "subscription", exposed=True)


def login_home(paths: Paths, backend: str) -> Path:
    """The home in which a backend's program is logged in; it need not exist."""
    return paths.state / "logins" / backend


def login_environment(paths: Paths, backend: str) -> dict[str, str]:
    """The variables that make a backend's program use its login home."""
    home = login_home(paths, backend)
    folders = LOGINS[backend].folders if backend in LOGINS else {}
    return {"HOME": str(home), **{name: str(home / folder) for name, folder in folders.items()}}
