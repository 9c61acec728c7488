"""A run's evidence as one archive: journal, definition, pinned files, run directory. Same run, same bytes."""

from __future__ import annotations

import gzip
import io
import json
import os
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from bailiwick import __version__
from bailiwick.errors import Place, UsageError
from bailiwick.ids import Json, digest
from bailiwick.journal.blobs import REFERENCE
from bailiwick.journal.rows import RunFilter, RunRow, StoredEvent
from bailiwick.processes.owner import host_id
from bailiwick.runs.disk import directories
from bailiwick.runs.find import name_of
from bailiwick.runs.query import children_of
from bailiwick.runtime.assemble import Runtime

FORMAT = 1
MANIFEST = "manifest.sha256"


@dataclass(frozen=True, slots=True)
class Exported:
    """An archive that was written, and what could not be put into it."""

    path: Path
    files: int
    size: int
    skipped: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ArchiveFile:
    """One file of the archive."""

    name: str
    data: bytes
    at: float = 0.0
    executable: bool = False


@dataclass(slots=True)
class RunArchive:
    """Collects a run's files; `skipped` are entries that are no plain files or are gone."""

    runtime: Runtime
    skipped: list[str] = field(default_factory=list)

    async def items(self, row: RunRow, rows: list[RunRow]) -> list[tuple[str, ArchiveFile | Path]]:
        """Every file below the archive's top: made here, or a path to read."""
        out: list[tuple[str, ArchiveFile | Path]] = []
        await self._collect(row, rows, "", out)
        return sorted(out, key=lambda pair: pair[0])

    async def _collect(
        self, row: RunRow, rows: list[RunRow], base: str, out: list[tuple[str, ArchiveFile | Path]]
    ) -> None:
        events = await self._events(row.id)
        last = events[-1][1].at if events else 0.0
        lines = "".join(_line(run, seq, event) for seq, (run, event) in _numbered(events))
        made = [ArchiveFile(f"{base}journal.ndjson", lines.encode(), last)]
        digests = list(dict.fromkeys(reversed(_definitions(events))))
        for name in digests:
            body = json.dumps(await self.runtime.store.definition(name), indent=1, sort_keys=True)
            file = "definition.json" if name == digests[0] else f"definitions/{name}.json"
            made.append(ArchiveFile(f"{base}{file}", f"{body}\n".encode()))
        blobs = sorted({found for _, event in events for found in REFERENCE.findall(event.body)})
        made += [ArchiveFile(f"{base}blobs/{blob}", self.runtime.store.blob(blob)) for blob in blobs]
        made.append(ArchiveFile(f"{base}meta.json", _meta(row, len(events))))
        out += [(item.name, item) for item in made]
        for name in digests:
            out += self._files(self.runtime.pins.path(name), f"{base}pinned/{name}")
        for directory in directories(self.runtime, row)[:1]:
            out += self._files(directory, f"{base}run")
        for child in children_of(row, rows):
            await self._collect(child, rows, f"{base}children/{name_of(child)}/", out)

    async def _events(self, run_id: str, upto: int | None = None) -> list[tuple[str, StoredEvent]]:
        """Stored events with the run they belong to; a fork's inherited ones first."""
        own = [(run_id, event) for event in await self.runtime.store.read(run_id, upto=upto)]
        if own and own[0][1].type == "Forked":
            body = json.loads(own[0][1].body)
            return [*await self._events(str(body["run"]), int(body["upto"])), *own]
        return own

    def _files(self, root: Path, base: str) -> Iterator[tuple[str, ArchiveFile | Path]]:
        for folder, folders, names in os.walk(root):
            folders.sort()
            for name in sorted(names):
                path = Path(folder) / name
                shown = f"{base}/{path.relative_to(root).as_posix()}"
                if path.is_symlink() or not path.is_file():
                    self.skipped.append(shown)
                else:
                    yield shown, path


def _numbered(events: list[tuple[str, StoredEvent]]) -> Iterator[tuple[int, tuple[str, StoredEvent]]]:
    """Inherited events count up to 0, a run's own from 1."""
    own = events[-1][0] if events else ""
    first = next((i for i, (run, _) in enumerate(events) if run == own), 0)
    yield from enumerate(events, 1 - first)


def _line(run: str, seq: int, event: StoredEvent) -> str:
    body = {"seq": seq, "run": run, "at": event.at, "type": event.type, "version": event.version}
    return json.dumps({**body, "body": json.loads(event.body)}, ensure_ascii=True) + "\n"


def _definitions(events: list[tuple[str, StoredEvent]]) -> list[str]:
    types = ("RunCreated", "DefinitionAdopted")
    return [str(json.loads(event.body)["definition"]) for _, event in events if event.type in types]


def _meta(row: RunRow, events: int) -> bytes:
    body: dict[str, Json] = {
        "format": FORMAT,
        "versions": {"bailiwick": __version__},
        "host": host_id(),
        "run": name_of(row),
        "uid": row.id,
        "workflow": row.workflow,
        "run_id": row.run_key,
        "parent": row.parent,
        "status": row.status,
        "seq": row.seq,
        "events": events,
        "created_at": row.created_at,
        "definition": row.definition,
        "source": row.source,
    }
    return (json.dumps(body, indent=1) + "\n").encode()


async def export(runtime: Runtime, row: RunRow, target: Path, *, force: bool = False) -> Exported:
    """Write the archive whole or not at all. Refuses to overwrite a file unless `force`."""
    if target.exists() and not force:
        hint = "choose another with -o, or --force"
        raise UsageError("the file exists", place=Place(str(target)), hint=hint, code="BW240")
    evidence = RunArchive(runtime)
    rows = await runtime.store.runs(RunFilter(root_id=row.root_id, archived=True))
    items = await evidence.items(row, rows)
    passing = target.with_name(f".{target.name}.{os.getpid()}.new")
    try:
        count = _write(passing, name_of(row), items, evidence.skipped)
        passing.replace(target)
    except OSError as error:
        raise UsageError(
            f"the archive can't be written: {error.strerror or error}", place=Place(str(target)), code="BW241"
        ) from error
    finally:
        passing.unlink(missing_ok=True)
    return Exported(target, count, target.stat().st_size, tuple(evidence.skipped))


def _write(path: Path, top: str, items: list[tuple[str, ArchiveFile | Path]], skipped: list[str]) -> int:
    sums: list[str] = []
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with (
        open(handle, "wb") as raw,  # noqa: PTH123  a handle, opened with its mode
        gzip.GzipFile("", "wb", 6, raw, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for name, source in items:
            item = source if isinstance(source, ArchiveFile) else _read(name, source, skipped)
            if item is not None:
                sums.append(f"{digest(item.data)}  {name}\n")
                _add(archive, f"{top}/{name}", item)
        _add(archive, f"{top}/{MANIFEST}", ArchiveFile(MANIFEST, "".join(sums).encode()))
    return len(sums) + 1


def _read(name: str, path: Path, skipped: list[str]) -> ArchiveFile | None:
    """A file of a live directory; one that is gone meanwhile is noted, not fatal."""
    try:
        return ArchiveFile(name, path.read_bytes(), executable=os.access(path, os.X_OK))
    except OSError:
        skipped.append(name)
        return None


def _add(archive: tarfile.TarFile, name: str, item: ArchiveFile) -> None:
    info = tarfile.TarInfo(name)
    info.size, info.mtime, info.mode = len(item.data), int(item.at), 0o755 if item.executable else 0o644
    archive.addfile(info, io.BytesIO(item.data))
