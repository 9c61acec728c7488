"""What a gate needs of the configuration: which gate it is, where its things are kept, where packages come from."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from bailiwick.config.policy import policy_digest
from bailiwick.config.service import Config
from bailiwick.config.variables import Environment
from bailiwick.egress.upstream_proxy import UpstreamProxy
from bailiwick.environments.registries import configured_registries
from bailiwick.gate.service import GatePlaces
from bailiwick.gate.spec import GateSpec
from bailiwick.gate.spec_lookup import SpecLookup, find_spec
from bailiwick.git.snapshot import Snapshot
from bailiwick.git.store import GitStore
from bailiwick.sandbox.service import Sandboxes
from bailiwick.sandbox.toolchains import resolve_program
from bailiwick.secrets.service import known_secrets

AUTHOR = "bailiwick <bailiwick@localhost>"


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
        parent=UpstreamProxy(config.get("network.proxy") or "", config.get("network.no_proxy") or ""),
        secrets=known_secrets(config, environment),
    )


async def gate_for(config: Config, git_store: GitStore, base: str, sandboxes: Sandboxes) -> GateSpec:
    """The gate for changes on a base commit, with what the configuration protects besides."""
    return await find_spec(git_store, base, whereabouts(config, git_store, sandboxes))


def whereabouts(config: Config, git_store: GitStore, sandboxes: Sandboxes) -> SpecLookup:
    """Where a gate may be said for this repository, and which tools the sandbox has."""
    return SpecLookup(
        paths=config.paths,
        repository=git_store.repository,
        protected=tuple(config.get("protected") or ()),
        has_tool=lambda name: resolve_program(name, sandboxes.toolchains) is not None,
    )


@dataclass(frozen=True, slots=True)
class Standing:
    """A work tree as it is, and the commit that it is compared with.

    Where the repository has no commit yet, `unborn` is set and the base is the work tree itself.
    """

    base: str
    taken: Snapshot
    unborn: bool = False


async def look_at_tree(config: Config, git_store: GitStore, root: Path, ref: str | None = None) -> Standing:
    """The work tree and its base; a repository without any commit is its own base, as its files are now."""
    asked = ref or config.get("base")
    if asked or not await git_store.is_unborn():
        base = await git_store.resolve(str(asked or "HEAD"))
        return Standing(base, await git_store.survey(root))
    taken = await git_store.survey(root)
    base = await git_store.commit(taken.tree, (), "the work tree before its first commit", AUTHOR, when=0.0)
    return Standing(base, taken, unborn=True)
