"""Reads configuration files into layers. A missing file costs one look; YAML is imported for the first that exists."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from bailiwick.config.layers import Layer, LayerKind, read_layer
from bailiwick.config.paths import Paths
from bailiwick.config.repository import CONFIG, Repository, committed, find_remote
from bailiwick.config.variables import Environment
from bailiwick.errors import InputInvalid, Place, Problem
from bailiwick.lang.fields import Findings

NOT_COMMITTED = "BW221"
NOT_YOURS = "BW223"
OPEN_POLICY = "BW224"


def read_file(kind: LayerKind, path: Path, found: Findings) -> Layer | None:
    """The layer in a file, or None where there is no such file."""
    if not os.path.lexists(path):
        return None
    if kind is LayerKind.POLICY:
        found.problems += policy_problems(path)
    from bailiwick.lang.source import MAX_BYTES, read_bytes

    try:
        data = read_bytes(path, Place(str(path)), MAX_BYTES)
    except InputInvalid as error:
        found.problems += error.problems()
        return None
    return parse_layer(kind, data, path, found)


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


def parse_layer(kind: LayerKind, data: bytes, path: Path, found: Findings) -> Layer | None:
    """The layer in the bytes of a file; one that holds nothing but comments sets nothing."""
    from bailiwick.lang.source import parse_yaml

    if not any(line.strip() and not line.lstrip().startswith(b"#") for line in data.splitlines()):
        return Layer(kind)
    try:
        root = parse_yaml(data, str(path))
    except InputInvalid as error:
        found.problems += error.problems()
        return None
    return read_layer(kind, root, path.parent, found)


def read_operator_files(paths: Paths, found: Findings) -> list[Layer]:
    """Policy, machine and person, as far as they are there."""
    files = (
        (LayerKind.POLICY, paths.policy_file),
        (LayerKind.MACHINE, paths.machine_file),
        (LayerKind.PERSON, paths.person_file),
    )
    layers = (read_file(kind, path, found) for kind, path in files)
    return [layer for layer in layers if layer is not None]


def read_person_repository(paths: Paths, repository: Repository, found: Findings) -> Layer | None:
    """The person's word on this repository, found by its remote."""
    if not repository.git or not (paths.config / "repos").is_dir():
        return None
    remote = find_remote(repository.root)
    if remote is None:
        return None
    return read_file(LayerKind.PERSON_REPOSITORY, paths.repository_file(remote.host, remote.owner, remote.name), found)


def read_repository(repository: Repository, environment: Environment, found: Findings) -> Layer | None:
    """The repository's layer as of its base commit; what is in the work tree only is a warning and not used."""
    if not repository.has_folder:
        return None
    path = repository.root / CONFIG
    if not repository.git:
        return _read_unversioned(path, found)
    data = committed(repository.root, CONFIG, environment)
    here = _bytes_of(path)
    if _lines(here) != _lines(data):
        hint = "commit it to use it" if here is not None else "the committed one counts"
        found.warn(
            NOT_COMMITTED, "the file differs from its last commit; the change is not used", Place(str(path)), hint
        )
    return None if data is None else parse_layer(LayerKind.REPOSITORY, data, path, found)


def _read_unversioned(path: Path, found: Findings) -> Layer | None:
    """Outside git the file itself counts, unless another user could have put it there."""
    try:
        owner = path.stat().st_uid
    except OSError:
        return None
    if owner not in (0, os.geteuid()):
        found.warn(
            NOT_YOURS, "the file belongs to another user and is not used", Place(str(path)), "copy it, or take it over"
        )
        return None
    return read_file(LayerKind.REPOSITORY, path, found)


def _bytes_of(path: Path) -> bytes | None:
    try:
        return path.read_bytes() if path.is_file() else None
    except OSError:
        return None


def _lines(data: bytes | None) -> list[bytes] | None:
    """Line endings may differ between a work tree and its commit."""
    return None if data is None else data.splitlines()
