"""Environments: what `prepare` makes of the base's lock files, once; afterwards it is only mounted, read-only.

An environment is made in a fresh checkout of the base, in a sandbox that reaches package registries and nothing else.
What is new at the end (`.venv`, `node_modules`, generated files) is the environment. It lies at the same path inside
every sandbox, so that what was written into it fits wherever it is mounted. It is known by the digest of lock files,
commands and tools.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bailiwick.config.paths import make_private
from bailiwick.environments.generated import copy_into
from bailiwick.environments.preparing import (
    NONE,
    EnvironmentContents,
    bring,
    identify,
    make,
    read_made,
    run_all,
)
from bailiwick.environments.recipes import (
    VENVS,
    EnvironmentBuilder,
    PreparedEnvironment,
    Recipe,
    bin_folders,
    tool_variables,
)
from bailiwick.locks import held
from bailiwick.removal import sweep
from bailiwick.sandbox.failures import EnvironmentFailed
from bailiwick.sandbox.spec import INNER, Bind

__all__ = [
    "EnvironmentBuilder",
    "EnvironmentFailed",
    "PreparedEnvironment",
    "Recipe",
    "bin_folders",
    "binds_of",
    "furnish",
    "last_used",
    "prepare_environment",
    "sweep_environments",
    "tool_variables",
]

FOLDER = "environments"
MOST_BINDS = 200
"""Generated files that are mounted one by one where they can't be copied."""
_KEY = re.compile(r"[0-9a-f]{40}")
_NEW = re.compile(r"\.new-([0-9a-f]{40})-[0-9a-f]+")


async def prepare_environment(recipe: Recipe, base: str, builder: EnvironmentBuilder) -> PreparedEnvironment:
    """The environment for trees on `base`, made if it is not there yet; raises `EnvironmentFailed`.

    Without a sandbox only a note of it is kept: what it says is done in each tree.
    """
    brought = bring(recipe, builder.person)
    key = await identify(recipe, base, brought, builder)
    in_place = builder.sandboxes.sandbox.name == NONE
    ready = make_private(make_private(builder.cache) / FOLDER) / key
    async with held(_lock_of(ready)):
        if read_made(ready) is None:
            for left in (ready, *ready.parent.glob(f".new-{key}-*")):
                sweep(left)
            await make(
                Recipe() if in_place else recipe,
                base,
                brought={} if in_place else brought,
                builder=builder,
                ready=ready,
            )
        (ready / "last_used").write_text(f"{builder.clock.now():.0f}\n", "utf-8")
    if in_place:
        names = (*VENVS, "node_modules", *recipe.copy) if recipe.prepare else recipe.copy
        return PreparedEnvironment(key, names=names, in_place=recipe if recipe.prepare or recipe.copy else None)
    held_by = _complete(builder.cache, key)
    made = ready / "made"
    return PreparedEnvironment(
        key,
        tuple(Bind(made / name, INNER / name) for name in held_by.names),
        (*held_by.names, *held_by.copied),
        modules=await asyncio.to_thread(_modules, made),
        made=made,
        copied=held_by.copied,
        packages=held_by.packages,
    )


def binds_of(cache: Path, key: str) -> tuple[Bind, ...]:
    """What has to be bound for an environment that was prepared; raises `EnvironmentFailed` where it is gone.

    Generated files are among them: this is for trees that nothing is copied into.
    """
    held_by = _complete(cache, key)
    made = cache / FOLDER / key / "made"
    return tuple(Bind(made / name, INNER / name) for name in (*held_by.names, *held_by.copied[:MOST_BINDS]))


def _complete(cache: Path, key: str) -> EnvironmentContents:
    found = read_made(cache / FOLDER / key) if _KEY.fullmatch(key) else None
    if found is None:
        raise EnvironmentFailed(f"the prepared environment {key[:12]} is gone", hint="run it again: it is made again")
    return found


async def furnish(environment: PreparedEnvironment, tree: Path, builder: EnvironmentBuilder) -> None:
    """Put the generated files of an environment into a checkout.

    Without a sandbox the environment is made in the tree itself, with the network as it is.
    """
    if environment.made is not None and environment.copied:
        await asyncio.to_thread(copy_into, environment.made, environment.copied, tree)
    recipe = environment.in_place
    if recipe is None:
        return
    for path, data in bring(recipe, builder.person).items():
        target = tree / path
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.parent.resolve().is_relative_to(tree.resolve()) and not target.is_symlink():
            target.write_bytes(data)
    if recipe.prepare:
        builder.show("the environment is made in the tree itself: without a sandbox nothing can be mounted")
        await run_all(recipe, tree, builder)


def sweep_environments(cache: Path, older_than: float, now: float) -> list[str]:
    """Remove environments that nobody used for so many seconds, and what a crash left; gives their names."""
    gone = []
    for path in sorted((cache / FOLDER).glob("*")):
        left = _NEW.fullmatch(path.name)
        if not path.is_dir() or not (left or now - last_used(path) > older_than):
            continue
        with _unlocked(path.with_name(left[1]) if left else path) as free:
            if free:
                sweep(path)
                gone.append(path.name)
    return gone


def _lock_of(ready: Path) -> Path:
    return ready.with_name(f"{ready.name}.lock")


def last_used(path: Path) -> float:
    """When an environment was used last; 0 where nobody knows."""
    try:
        return float((path / "last_used").read_text("utf-8"))
    except (OSError, ValueError):
        return 0.0


@contextmanager
def _unlocked(ready: Path) -> Iterator[bool]:
    """Whether nobody makes or opens an environment right now; nobody can until the end."""
    handle = os.open(_lock_of(ready), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        free = True
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            free = False
        yield free
    finally:
        os.close(handle)


def _modules(made: Path) -> frozenset[str]:
    """The names under which Python finds modules in the virtual environments."""
    found = set()
    for name in VENVS:
        for entry in (made / name).glob("lib/python*/site-packages/*"):
            stem = entry.name.partition(".")[0]
            if stem.isidentifier() and not entry.name.endswith((".pth", ".dist-info", ".egg-info")):
                found.add(stem)
    return frozenset(found)
