"""Where skills may work: a project's directory has to lie in a directory that a person named."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from bailiwick.config.service import Config
from bailiwick.errors import NotReady, UsageError

NOT_ALLOWED = "BW290"
NO_PROJECT = "BW291"


def check_root(given: str, roots: Iterable[Path], private: Iterable[Path] = ()) -> Path:
    """The real directory that a caller means, links followed; raises `UsageError` where it is none or lies outside.

    A relative path counts from the first of the roots. What lies outside is refused in the same words whether it is
    there or not. Nor may a project hold what is `private`, or lie in it: there is what decides over skills.
    """
    allowed = tuple(dict.fromkeys(real for root in roots if (real := _real(root)) is not None))
    if not given.strip() or "\0" in given:
        raise UsageError("project_root is empty", hint="name the project's directory", code=NO_PROJECT)
    asked = Path(given)
    if not asked.is_absolute():
        if not allowed:
            raise _outside(given, allowed)
        asked = allowed[0] / asked
    real = _real(asked)
    if real is None or not any(real.is_relative_to(root) for root in allowed):
        raise _outside(given, allowed)
    if not real.is_dir():
        what = "is not there" if not real.exists() else "is not a directory"
        raise UsageError(f"project_root {real} {what}", hint="name the project's directory", code=NO_PROJECT)
    for place in (found for one in private if (found := _real(one)) is not None):
        if place.is_relative_to(real) or real.is_relative_to(place):
            raise UsageError(
                f"project_root {real} holds Bailiwick's own files, or lies among them ({place})",
                hint="name the directory of one project",
                code=NOT_ALLOWED,
            )
    return real


def private_places(config: Config) -> tuple[Path, ...]:
    """Where our own files are: settings, runs, skills, call logs, notes."""
    paths = config.paths
    chosen = (config.get(key) for key in ("skills_dir", "sessions_dir", "brain_dir", "runs_dir"))
    return (paths.config, paths.state, paths.cache, paths.run, *(Path(one) for one in chosen if one))


async def current_root(directory: Path) -> Path:
    """The top of the repository that a directory is in, or the directory itself where there is none."""
    import os

    from bailiwick.config.variables import Environment
    from bailiwick.git.repository import find_source
    from bailiwick.git.runner import Git

    environment = Environment()
    try:
        source = await find_source(Git(environment.text("PATH") or os.defpath), directory, environment)
    except NotReady:
        return directory.resolve()
    return source.root


def _real(path: Path) -> Path | None:
    """The path with every link followed; None for a circle of links."""
    try:
        return path.expanduser().resolve()
    except (OSError, RuntimeError):
        return None


def _outside(given: str, allowed: tuple[Path, ...]) -> UsageError:
    """What a caller hears, who may be a model: where it may work, and whose decision that is, but no way around it."""
    listed = ", ".join(map(str, allowed)) or "none"
    return UsageError(
        f"project_root {given} is not in a directory that skills may work in (roots: {listed})",
        hint="name a project inside them; only the person who started the server decides over other directories",
        code=NOT_ALLOWED,
    )
