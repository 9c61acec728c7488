"""What an environment is made of and what it is once made. Only data, and what follows from it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from bailiwick.egress.upstream_proxy import UpstreamProxy
from bailiwick.environments.registries import Registries
from bailiwick.sandbox.spec import INNER, Bind

if TYPE_CHECKING:
    from bailiwick.clock import Clock
    from bailiwick.git.store import GitStore
    from bailiwick.sandbox.service import Sandboxes

MISSING_COPY = "BW431"
VENVS = (".venv", "venv")
CARGO_HOME = ".cargo-home"


@dataclass(frozen=True, slots=True)
class Recipe:
    """How an environment is made: commands in order, and ignored files that are brought from the person's work tree."""

    prepare: tuple[tuple[str, ...], ...] = ()
    copy: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PreparedEnvironment:
    """A prepared environment. `binds` go into every cage; `names` are paths below the tree that are not the tree's.

    `copied` are generated files of `made`, a directory of the host, that `furnish` puts into each checkout.

    Without a sandbox nothing can be mounted: then `in_place` says what has to be done in each tree by itself.
    """

    digest: str
    binds: tuple[Bind, ...] = ()
    names: tuple[str, ...] = ()
    in_place: Recipe | None = None
    modules: frozenset[str] = frozenset()
    """Names of the Python modules in it."""
    made: Path | None = None
    copied: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    """What was resolved: each installed Python package with its version."""


@dataclass(frozen=True, slots=True)
class EnvironmentBuilder:
    """Where and with what environments are made. `person` is the work tree that ignored files are brought from."""

    git_store: GitStore
    sandboxes: Sandboxes
    cache: Path
    person: Path
    clock: Clock
    registries: Registries = field(default_factory=Registries)
    parent: UpstreamProxy = field(default_factory=UpstreamProxy)
    cancel: asyncio.Event = field(default_factory=asyncio.Event)
    show: Callable[[str], None] = lambda _: None


def bin_folders(binds: Iterable[Bind], tree: Path | None = None) -> tuple[Path, ...]:
    """Where the programs of an environment are, inside; `tree` is where it was made in place, without a sandbox."""
    if tree is not None:
        candidates = (*(tree / name / "bin" for name in VENVS), tree / "node_modules" / ".bin")
        return tuple(folder for folder in candidates if folder.is_dir())
    targets = [bind.target for bind in binds if not bind.write]
    venvs = tuple(target / "bin" for target in targets if target.parent == INNER and target.name in VENVS)
    return (*venvs, *(target / ".bin" for target in targets if target == INNER / "node_modules"))


def tool_variables(binds: Iterable[Bind]) -> dict[str, str]:
    """What tools have to be told so that they take what is there and ask no network."""
    known = {bind.target.name: str(bind.target) for bind in binds if bind.target.parent == INNER}
    said = {
        "UV_OFFLINE": "1",
        "UV_NO_SYNC": "1",
        "UV_FROZEN": "1",
        "UV_PYTHON_DOWNLOADS": "never",
        "PIP_NO_INDEX": "1",
        "PYTHONNOUSERSITE": "1",
        "NPM_CONFIG_UPDATE_NOTIFIER": "false",
        "NPM_CONFIG_OFFLINE": "true",
        "GOTOOLCHAIN": "local",
        "GOPROXY": "off",
        "GOFLAGS": "-mod=vendor" if "vendor" in known else "",
        "CARGO_NET_OFFLINE": "true",
        "CARGO_HOME": known.get(CARGO_HOME, ""),
        "VIRTUAL_ENV": next((known[name] for name in VENVS if name in known), ""),
    }
    return {name: value for name, value in said.items() if value}
