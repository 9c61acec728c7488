"""The organisation's policy and the limits that hold here, as one digest: what was decided under it can be compared.

The digest is over the bytes of the policy file and over every limit as all layers together make it, so it changes
whenever a limit does, whoever changed it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from bailiwick.config.keys import find_key
from bailiwick.config.layers import Origin
from bailiwick.config.paths import Paths
from bailiwick.errors import InputInvalid, Place, Problem
from bailiwick.ids import Json, canonical, digest

OPEN_POLICY = "BW224"


class Decided(Protocol):
    """A configuration, as far as a policy needs it."""

    @property
    def paths(self) -> Paths:
        """Where its files are."""

    def items(self) -> Iterable[tuple[str, Json]]:
        """Every key with its value."""

    def origins(self, name: str) -> tuple[Origin, ...]:
        """Where the value of a key was set."""


@dataclass(frozen=True, slots=True)
class PolicyLimit:
    """One limit as it holds here; None is a lifted one."""

    key: str
    value: Json
    rule: str
    origins: tuple[str, ...]

    def to_json(self) -> dict[str, Json]:
        """As a document."""
        return {"key": self.key, "value": self.value, "rule": self.rule, "origins": list(self.origins)}


@dataclass(frozen=True, slots=True)
class Policy:
    """The limits that hold here. `file` is the organisation's file, None where there is none; `digest` names it all."""

    file: Path | None
    digest: str
    limits: tuple[PolicyLimit, ...]

    def to_json(self) -> dict[str, Json]:
        """As a document."""
        return {
            "file": str(self.file) if self.file else None,
            "digest": self.digest,
            "limits": [limit.to_json() for limit in self.limits],
        }


def policy_digest(config: Decided) -> str:
    """The digest of the policy that holds here. Raises `InputInvalid` where its file can't be read or trusted."""
    return describe_policy(config).digest


def describe_policy(config: Decided) -> Policy:
    """The policy that holds here, each limit with where it comes from. Raises `InputInvalid` as `policy_digest`."""
    file = config.paths.policy_file
    data = _policy_bytes(file)
    limits = tuple(_limits(config))
    values = {limit.key: limit.value for limit in limits}
    made = digest(canonical({"file": None if data is None else digest(data), "limits": values}))
    return Policy(None if data is None else file, made, limits)


def _limits(config: Decided) -> Iterable[PolicyLimit]:
    for name, value in config.items():
        key = find_key(name)
        if key is not None and key.rule is not None:
            yield PolicyLimit(name, value, key.rule.words, tuple(str(origin) for origin in config.origins(name)))


def _policy_bytes(file: Path) -> bytes | None:
    from bailiwick.lang.source import MAX_BYTES, read_bytes

    if not os.path.lexists(file):
        return None
    found = policy_problems(file)
    if found:
        raise InputInvalid(found)
    return read_bytes(file, Place(str(file)), MAX_BYTES)


def policy_problems(file: Path) -> list[Problem]:
    """Why a policy file, or its directory, can't be trusted: somebody else could write it. Empty where it can."""
    return [*_writers(file, "the policy"), *_writers(file.parent, "the policy's directory")]


def _writers(path: Path, called: str) -> list[Problem]:
    place = Place(str(path))
    try:
        found = path.stat()
    except OSError as error:
        return [Problem(OPEN_POLICY, f"{called} can't be looked at: {error.strerror}", place, "check its permissions")]
    problems = []
    sticky = stat.S_ISDIR(found.st_mode) and found.st_mode & stat.S_ISVTX  # others can't replace what is in there
    if found.st_mode & stat.S_IWOTH and not sticky:
        problems.append(Problem(OPEN_POLICY, f"everybody can change {called}", place, f"chmod o-w {path}"))
    if found.st_uid not in (0, os.geteuid()):
        problems.append(Problem(OPEN_POLICY, f"{called} belongs to another user", place, f"chown root {path}"))
    return problems
