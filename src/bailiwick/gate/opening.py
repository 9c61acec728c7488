"""What a gate needs of the configuration: which gate it is, where its things are kept, where packages come from."""

from __future__ import annotations

from dataclasses import replace

from bailiwick.config.environment import Environment
from bailiwick.config.policy import policy_digest
from bailiwick.config.service import Config
from bailiwick.fence.egress import Parent
from bailiwick.fence.egress_registries import configured_registries
from bailiwick.fence.service import Fence
from bailiwick.fence.toolchains import resolve_program
from bailiwick.fence.vault import Vault
from bailiwick.gate.service import GatePlaces
from bailiwick.gate.spec import GateSpec
from bailiwick.gate.whereabouts import Whereabouts, find_spec


def places_of(config: Config, environment: Environment | None = None) -> GatePlaces:
    """Where a gate keeps its things, and the registries that the operator's own tools use or that they list."""
    env = environment or Environment()
    paths = config.paths
    found = configured_registries(
        env.child_environment({}), env.home(), hidden=(paths.state, paths.config, paths.cache)
    )
    listed = tuple(dict.fromkeys((*found.hosts, *(config.get("sandbox.allow") or ()))))
    return GatePlaces(
        cache=paths.cache,
        state=paths.state,
        registries=replace(found, hosts=listed),
        policy=policy_digest(config),
        parent=Parent(config.get("network.proxy") or "", config.get("network.no_proxy") or ""),
    )


async def gate_for(config: Config, vault: Vault, base: str, fence: Fence) -> GateSpec:
    """The gate for changes on a base commit, with what the configuration protects besides."""
    where = Whereabouts(
        paths=config.paths,
        repository=vault.repository,
        protected=tuple(config.get("protected") or ()),
        has_tool=lambda name: resolve_program(name, fence.toolchains) is not None,
    )
    return await find_spec(vault, base, where)
