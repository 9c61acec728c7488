"""Environments from lock files: uv, poetry, pdm, pipenv. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bailiwick.gate.detection.project import Project
from bailiwick.gate.detection.reading import name_of, normal
from bailiwick.gate.detection.sources import DEV_NAMES, TEST_NAMES


@dataclass(frozen=True, slots=True)
class Locked:
    """The commands that install from a lock file; none where `tool`, which `file` needs, is not installed."""

    commands: tuple[tuple[str, ...], ...] = ()
    has_pytest: bool = False
    file: str = ""
    tool: str = ""


_LOCKS = (("uv.lock", "uv"), ("poetry.lock", "poetry"), ("pdm.lock", "pdm"), ("Pipfile.lock", "pipenv"))


def lock_commands(files: frozenset[str], project: Project, has_tool: Callable[[str], bool]) -> Locked:
    """How the first lock file of the project is installed, with its groups and extras for tests."""
    there = [(lock, tool) for lock, tool in _LOCKS if lock in files]
    for _lock, tool in there:
        if has_tool(tool):
            return _commands(tool, project)
    return Locked(file=there[0][0], tool=there[0][1]) if there else Locked()


def _commands(tool: str, project: Project) -> Locked:
    extras = _chosen(project.extras)
    groups = _chosen(project.groups)
    listed = [text for group in groups for text in project.groups[group]]
    listed += [text for extra in extras for text in project.extras[extra]]
    if tool in ("uv", "poetry") and "dev" in project.groups:
        listed += project.groups["dev"]
    known = any(name_of(text) == "pytest" for text in listed) or tool == "pipenv"
    words = {
        "uv": ("uv", "sync", "--frozen", "--inexact", *_pairs("--group", groups), *_pairs("--extra", extras)),
        "poetry": (
            "poetry",
            "install",
            "--no-interaction",
            *(("--with", ",".join(groups)) if groups else ()),
            *_pairs("--extras", extras),
        ),
        "pdm": ("pdm", "sync", "--dev", *_pairs("--group", extras)),
        "pipenv": ("pipenv", "sync", "--dev"),
    }
    return Locked((words[tool],), has_pytest=known)


def _chosen(names: object) -> tuple[str, ...]:
    """Of extras or groups those for tests; those for development where there are none."""
    listed = [str(name) for name in names] if isinstance(names, dict) else []
    tests = tuple(name for name in listed if normal(name) in TEST_NAMES)
    return tests or tuple(name for name in listed if normal(name) in DEV_NAMES)


def _pairs(option: str, values: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(word for value in values for word in (option, value))
