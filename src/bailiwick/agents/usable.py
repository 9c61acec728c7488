"""Whether a backend may be asked with the credential that was found: one answer for turns, lists and first looks."""

from __future__ import annotations

from collections.abc import Mapping

from bailiwick.agents.broker.upstreams import VENDORS
from bailiwick.agents.clouds import CLOUDS
from bailiwick.agents.credentials import LOGINS, Credential
from bailiwick.config.service import Config
from bailiwick.config.variables import Environment
from bailiwick.errors import NotReady

ALLOW = "bailiwick config set agents.allow_exposed_credentials true"


def require_credential(backend: str, credential: Credential, config: Config, env: Mapping[str, str]) -> None:
    """Raises `NotReady` with what to do where a turn of this backend would be refused.

    The person's own login is never used by the way: without a credential of ours it takes the person's word.
    """
    allowed = bool(config.get("agents.allow_exposed_credentials"))
    if credential.exposed and not allowed:
        raise NotReady(
            f"the {credential.kind} of backend '{backend}' can't be kept out of the agent's reach",
            hint=f"use an API key or a token, or: {ALLOW}",
            code="BW253",
        )
    if credential.kind in CLOUDS:
        CLOUDS[credential.kind].check(env)
    elsewhere = bool(env.get(VENDORS.get(backend, ("", ""))[0]))
    if credential.kind != "none" or backend not in LOGINS or elsewhere or allowed:
        return
    raise NotReady(
        f"no credential is set for backend '{backend}'",
        hint=f"set an API key or a token, or run: bailiwick login {backend}; your own login is only used where "
        f"there is no sandbox, after: {ALLOW}",
        code="BW254",
    )


def credential_problem(
    backend: str, credential: Credential, config: Config, environment: Environment | None = None
) -> str:
    """Why a turn of this backend would be refused for its credential, in one sentence; empty where it would not be."""
    env = (environment or Environment()).child_environment({})
    if backend == "codex" and credential.kind == "none" and _has_provider(env):
        return ""
    try:
        require_credential(backend, credential, config, env)
    except NotReady as error:
        return error.sentence
    return ""


def _has_provider(env: Mapping[str, str]) -> bool:
    """Whether a codex profile brings a provider of its own: it needs no other credential."""
    from bailiwick.agents.profiles import read_profiles

    profiles = read_profiles(env)
    return any(table.get("model_provider") for table in (profiles.base, *profiles.named.values()))
