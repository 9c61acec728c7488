"""Values by digest: up to 1 MiB rows, bigger ones files that are durable before the row that names them."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from bailiwick.crashpoints import reach
from bailiwick.durable import sync_folder
from bailiwick.errors import JournalCorrupt
from bailiwick.ids import Json
from bailiwick.ids import digest as digest_of
from bailiwick.journal.columns import encode
from bailiwick.journal.rows import PinnedFile
from bailiwick.journal.transaction import Transaction

IN_DATABASE = 1024 * 1024
"""The most bytes of a blob that is a row."""

REFERENCE = re.compile(r'"\$blob":\s*"([0-9a-f]{64})"')


def keep_blobs(tx: Transaction, run_id: str, blobs: Mapping[str, bytes]) -> None:
    """Store what is not there yet and note that the run uses all of it."""
    for digest, data in blobs.items():
        _keep(tx, digest, data)
        tx.do("blob.use", {"run_id": run_id, "digest": digest})


def keep_definition(tx: Transaction, digest: str, body: Json, files: Iterable[PinnedFile]) -> None:
    """Store a definition with the files it was pinned with, each content once."""
    tx.do("definition.keep", (digest, encode(body)))
    for file in files:
        content = digest_of(file.data)
        _keep(tx, content, file.data)
        tx.do("definition.keep_file", (digest, file.name, content, int(file.executable)))


def _keep(tx: Transaction, digest: str, data: bytes) -> None:
    if tx.one("blob.known", (digest,)) is None:
        small = len(data) <= IN_DATABASE
        if not small:
            write_file(tx.directory, digest, data)
        tx.do("blob.insert", (digest, data if small else None))


def note_uses(tx: Transaction, run_id: str, texts: Iterable[str]) -> None:
    """Note the blobs that stored texts refer to, so that deleting the run that brought them does not take them away."""
    for text in texts:
        if '"$blob"' in text:
            for digest in REFERENCE.findall(text):
                tx.do("blob.use", {"run_id": run_id, "digest": digest})


def checked(digest: str, data: bytes) -> bytes:
    """The data, if it is what the digest says; else `JournalCorrupt`."""
    if digest_of(data) != digest:
        raise JournalCorrupt(
            f"blob {digest} does not have the bytes its digest says",
            hint="keep the state directory as it is and restore it from a backup",
        )
    return data


def file_of(directory: Path, digest: str) -> Path:
    """Where a big blob lies, given the database's directory."""
    return directory / "blobs" / digest[:2] / digest


def read_file(directory: Path, digest: str) -> bytes:
    """The bytes of a big blob; `JournalCorrupt` when the file is gone."""
    try:
        return file_of(directory, digest).read_bytes()
    except FileNotFoundError as gone:
        raise missing(digest) from gone


def missing(digest: str) -> JournalCorrupt:
    """The error for a blob that is not there."""
    return JournalCorrupt(f"blob {digest} is gone", hint="restore the state directory from a backup")


def write_file(directory: Path, digest: str, data: bytes) -> None:
    """Make a big blob durable under its name; whole or not there, however often it is tried."""
    final = file_of(directory, digest)
    for folder in (final.parent.parent, final.parent):
        if not folder.is_dir():
            folder.mkdir(mode=0o700, exist_ok=True)
            sync_folder(folder.parent)
    passing = final.with_name(f"{digest}.{os.getpid()}.new")
    try:
        handle = os.open(passing, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with open(handle, "wb") as file:  # noqa: PTH123 - a handle, opened with its mode
            file.write(data)
            file.flush()
            os.fsync(handle)
        passing.replace(final)
    except OSError:
        with contextlib.suppress(OSError):
            passing.unlink()
        raise
    sync_folder(final.parent)
    reach("blob.written")


def remove_file(directory: Path, digest: str) -> None:
    """Remove the file of a big blob; fine when it is gone already."""
    file_of(directory, digest).unlink(missing_ok=True)
