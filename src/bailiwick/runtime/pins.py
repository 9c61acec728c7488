"""Pins: the files a run was started with, materialised read-only once per digest. Scripts execute from there."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bailiwick import crashpoints
from bailiwick.engine.graph import Definition, Graph, from_json, to_json
from bailiwick.errors import StoreUnavailable
from bailiwick.ids import Json, canonical, digest
from bailiwick.journal.rows import PinnedFile

if TYPE_CHECKING:
    from bailiwick.lang.load import Loaded


DEFINITION = ".definition.json"


@dataclass(frozen=True, slots=True)
class Pinned:
    """A definition ready to be stored: its digest, stored form and the files it needs."""

    digest: str
    body: Json
    files: tuple[PinnedFile, ...]
    source: str = ""
    """The directory of the workflow, where it was read from one."""


def pin_all(loaded: Loaded) -> tuple[str, list[Pinned]]:
    """The definitions of a workflow and all that it calls; the first result is the digest of the workflow itself."""
    reached = _reach(loaded)
    files = {key: _files(item) for key, item in reached.items()}
    contents = {key: {one.name: digest(one.data) for one in some} for key, some in files.items()}
    graphs = {key: to_json(Definition(graph=item.graph, files=contents[key])) for key, item in reached.items()}
    bases = {key: digest(canonical([graphs[key], sorted(item.calls)])) for key, item in reached.items()}
    every = {key: sorted(bases[k] for k in _reach(item)) for key, item in reached.items()}
    digests = {key: digest(canonical([bases[key], every[key]])) for key in reached}
    out = []
    for key, item in reached.items():
        calls = {name: digests[str(child.root)] for name, child in item.calls.items()}
        out.append(Pinned(digests[key], {**graphs[key], "calls": calls}, files[key], str(item.root)))
    return digests[str(loaded.root)], out


def _reach(loaded: Loaded) -> dict[str, Loaded]:
    found: dict[str, Loaded] = {}
    stack = [loaded]
    while stack:
        item = stack.pop()
        if str(item.root) not in found:
            found[str(item.root)] = item
            stack.extend(item.calls.values())
    return found


def _files(loaded: Loaded) -> tuple[PinnedFile, ...]:
    """Its files, each read once: what is stored is what its digest says."""
    return tuple(
        PinnedFile(name, path.read_bytes(), os.access(path, os.X_OK)) for name, path in sorted(loaded.files.items())
    )


def pin_gone(pinned: Path, name: str, run: str) -> str:
    """What to say where a file of a pin is not there: the copy is gone, or the workflow never had the file."""
    if (pinned / DEFINITION).is_file():
        files = json.loads((pinned / DEFINITION).read_bytes()).get("files") or {}
        if name not in files:
            return f"'{name}' is not in the workflow directory"
    return (
        f"the pinned copy of '{name}', with which the run was started, is gone from {pinned}; "
        f"`bailiwick runs reload {run[:12]}` makes it again from the workflow directory"
    )


class Pins:
    """The pin directory of a state directory."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def path(self, name: str) -> Path:
        """Where a pin lies."""
        return self.root / name

    def is_whole(self, name: str, files: Iterable[str]) -> bool:
        """Whether a pin is there with all its files."""
        return all((self.path(name) / file).is_file() for file in (*files, DEFINITION))

    def read(self, name: str, files: Iterable[str]) -> tuple[PinnedFile, ...]:
        """The files of a pin that is there."""
        paths = [(file, self.path(name) / file) for file in files]
        return tuple(PinnedFile(file, path.read_bytes(), os.access(path, os.X_OK)) for file, path in paths)

    def materialise(self, pinned: Pinned) -> Path:
        """Write a pin unless it is there: beside its place, synced, then renamed. Safe against a second writer."""
        target = self.path(pinned.digest)
        if self.is_whole(pinned.digest, (file.name for file in pinned.files)):
            return target
        try:
            self._write(pinned, target)
        except OSError as error:
            raise StoreUnavailable(
                f"the workflow's files can't be kept in {self.root}: {error.strerror}",
                hint="free disk space or repair the mount, then run the same command again",
            ) from error
        crashpoints.reach("pin.written")
        return target

    def _write(self, pinned: Pinned, target: Path) -> None:
        self.root.mkdir(parents=True, exist_ok=True, mode=0o700)
        work = self.root / f".{pinned.digest}.{os.getpid()}"
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(mode=0o700)
        for file in pinned.files:
            path = work / file.name
            path.parent.mkdir(parents=True, exist_ok=True)
            _write(path, file.data)
            path.chmod(0o555 if file.executable else 0o444)
        _write(work / DEFINITION, json.dumps(pinned.body).encode())
        _sync_dir(work)
        try:
            if target.is_dir() and not self.is_whole(pinned.digest, (file.name for file in pinned.files)):
                target.rename(self.root / f".{pinned.digest}.{os.getpid()}.broken")
            work.rename(target)
        except OSError:
            shutil.rmtree(work, ignore_errors=True)
            if not target.is_dir():
                raise
        shutil.rmtree(self.root / f".{pinned.digest}.{os.getpid()}.broken", ignore_errors=True)
        _sync_dir(self.root)


def _write(target: Path, data: bytes) -> None:
    with target.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _sync_dir(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class Definitions:
    """Definitions read so far, by digest."""

    def __init__(self) -> None:
        self._known: dict[str, Definition] = {}

    def add(self, name: str, body: Json) -> Definition:
        """Keep a stored definition."""
        if name not in self._known:
            self._known[name] = from_json(body)
        return self._known[name]

    def has(self, name: str) -> bool:
        """Whether it was read already."""
        return name in self._known

    def get(self, name: str) -> Definition:
        """A definition that was added before."""
        return self._known[name]

    def graph(self, name: str) -> Graph:
        """Its graph."""
        return self._known[name].graph
