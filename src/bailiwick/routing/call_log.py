"""The call log of a session: one line of JSON per call, in a file that other programs read too.

Several processes add to one file at once: each under the file's lock, with one write that is synced before it counts. A
crash can leave half a line at the end. Nobody was told that it was written, so the next writer takes it off.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from bailiwick.clock import iso
from bailiwick.config.service import Config
from bailiwick.durable import sync_folder
from bailiwick.errors import NotReady, Place, UsageError
from bailiwick.ids import Json
from bailiwick.routing.model import Job, Outcome

BAD_SESSION = "BW276"
UNAVAILABLE = "BW277"
LONGEST_TEXT = 64 * 1024
"""Characters that are kept of a text in an entry: of a runner's output its end, of any other its beginning."""
_SESSION = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}", re.ASCII)
_STEP = 64 * 1024


def sessions_folder(config: Config) -> Path:
    """Where call logs are: the configured folder, else `sessions/` of the state directory."""
    chosen = config.get("sessions_dir")
    return Path(chosen) if chosen else config.paths.state / "sessions"


def check_session(session_id: str) -> str:
    """The id itself, if it can be the name of a file and nothing more; else `UsageError`."""
    if not _SESSION.fullmatch(session_id):
        raise UsageError(
            f"session_id {session_id[:140]!r} can't name a session",
            hint="use 1 to 128 letters, digits, '.', '_' and '-', no '.' at the beginning",
            code=BAD_SESSION,
        )
    return session_id


def entry_of(job: Job, outcome: Outcome, when: float, *, duration_ms: int) -> dict[str, Json]:
    """The line of a call that ended at `when`, after `duration_ms` in all; failed ones have one too."""
    result = outcome.result
    return {
        "session_id": job.session_id or "",
        "timestamp": iso(when),
        "skill": job.skill,
        "phase": job.phase,
        "project_root": job.root,
        "attempts": [_bounded(one.to_json()) for one in result.attempts],
        "final_status": result.status,
        "file_path": result.file_path,
        "model_used": result.model_used,
        "duration_ms": duration_ms,
        "message": result.message[:LONGEST_TEXT],
    }


def append_call(folder: Path, entry: Mapping[str, Json]) -> None:
    """Add an entry to its session's file, durably, or raise `NotReady` and leave the file as it was. Blocks."""
    path = _file(folder, str(entry["session_id"]))
    line = json.dumps(dict(entry), ensure_ascii=True, separators=(",", ":")).encode("ascii") + b"\n"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _locked(path, write=True) as handle:
            _repair(handle)
            size = os.fstat(handle).st_size
            if os.write(handle, line) != len(line):
                os.ftruncate(handle, size)
                raise OSError("the disk is full")
            os.fsync(handle)
            if not size:
                sync_folder(folder)
    except OSError as error:
        raise _unusable(path, error) from error


def read_calls(folder: Path, session_id: str) -> list[dict[str, Json]]:
    """Every entry of a session, oldest first; none where there is no file. What is no entry is left out. Blocks."""
    path = _file(folder, session_id)
    try:
        with _locked(path, write=False) as handle:
            data = _all(handle)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise _unusable(path, error) from error
    return [entry for line in data.split(b"\n") if (entry := _entry(line)) is not None]


def _file(folder: Path, session_id: str) -> Path:
    return folder / f"{check_session(session_id)}.jsonl"


def _bounded(attempt: dict[str, Json]) -> dict[str, Json]:
    """An attempt whose texts are no longer than a line can bear."""
    for name in ("feedback", "output_summary"):
        attempt[name] = attempt[name][:LONGEST_TEXT]
    attempt["runner_output"] = attempt["runner_output"][-LONGEST_TEXT:]
    return attempt


@contextmanager
def _locked(path: Path, *, write: bool) -> Iterator[int]:
    """The file of a session, alone (made if it isn't there) or beside other readers."""
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND if write else os.O_RDONLY
    handle = os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError("it is not a regular file")
        fcntl.flock(handle, fcntl.LOCK_EX if write else fcntl.LOCK_SH)
        yield handle
    finally:
        os.close(handle)


def _repair(handle: int) -> None:
    """Take off half a line at the end; a whole one that only lacks its end gets it."""
    size = os.fstat(handle).st_size
    if not size or os.pread(handle, 1, size - 1) == b"\n":
        return
    tail, start = b"", size
    while start and b"\n" not in tail:
        step = min(_STEP, start)
        start -= step
        tail = os.pread(handle, step, start) + tail
    torn = tail.rpartition(b"\n")[2]
    if _entry(torn) is not None:
        os.write(handle, b"\n")
    else:
        os.ftruncate(handle, size - len(torn))


def _entry(line: bytes) -> dict[str, Json] | None:
    """The entry of a line, None for what is none."""
    with suppress(ValueError, RecursionError):
        found = json.loads(line)
        return found if isinstance(found, dict) else None
    return None


def _all(handle: int) -> bytes:
    parts = []
    while part := os.read(handle, 1 << 20):
        parts.append(part)
    return b"".join(parts)


def _unusable(path: Path, error: OSError) -> NotReady:
    return NotReady(
        f"the call log can't be used: {error.strerror or error}",
        place=Place(str(path)),
        hint="free disk space, or put what is in its way elsewhere; sessions_dir names another folder",
        code=UNAVAILABLE,
    )
