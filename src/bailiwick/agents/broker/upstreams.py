"""Where a credential is good: the vendor's host, or the gateway that the operator's own variables name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from bailiwick.agents.broker.grants import Upstream
from bailiwick.agents.credentials import Credential
from bailiwick.agents.profiles import Provider
from bailiwick.config.service import Config
from bailiwick.config.variables import Environment
from bailiwick.egress.upstream_proxy import network_of

VENDORS: Mapping[str, tuple[str, str]] = {
    "claude": ("ANTHROPIC_BASE_URL", "https://api.anthropic.com"),
    "codex": ("OPENAI_BASE_URL", "https://api.openai.com"),
    "openai": ("OPENAI_BASE_URL", "https://api.openai.com"),
    "copilot": ("COPILOT_PROVIDER_BASE_URL", ""),
}
"""Per backend the variable that names a gateway, and the vendor's own address."""


def upstream_for(
    credential: Credential, config: Config, base_url: str = "", environment: Environment | None = None
) -> Upstream | None:
    """Where the broker forwards a turn of this credential; None where the agent has to hold the credential itself.

    `base_url` is a configured endpoint's and wins.
    """
    variable, vendor = VENDORS.get(credential.backend, ("", ""))
    named = (environment or Environment()).text(variable) if variable else None
    base = base_url or named or vendor
    if credential.token is None or credential.exposed or not base:
        return None
    return _on_this_network(Upstream(base, credential.headers, credential.added), config)


def upstream_of(provider: Provider, config: Config) -> Upstream:
    """The provider of a codex profile as the one host of its turns."""
    return _on_this_network(Upstream(provider.base_url, provider.headers, exact=True), config)


def _on_this_network(upstream: Upstream, config: Config) -> Upstream:
    """With the certificates and the proxy of the configuration."""
    proxy, ca_file = network_of(config, upstream.host)
    return replace(upstream, proxy=proxy, ca_file=ca_file)
