"""What clients can read by address: disciplines, the files of runs, the logs of sessions. Bounded, never outside."""

from __future__ import annotations

import base64
import json
import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import quote, unquote

from bailiwick.clock import SystemClock, iso
from bailiwick.errors import NotFound, UsageError
from bailiwick.ids import Json
from bailiwick.journal.port import Store
from bailiwick.journal.rows import RunFilter, RunRow
from bailiwick.processes.owner import current_owner
from bailiwick.runs.find import name_of, runs_named
from bailiwick.runs.query import state_alone
from bailiwick.skills.model import Skill

SCHEME: Final = "bailiwick://"
SHOWN: Final = 50
"""Runs and sessions in the list, the newest ones."""
MOST_FILES: Final = 1000
LARGEST: Final = 1_000_000
DEEPEST: Final = 16
_RUN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,140}")
_SESSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}")
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_TYPES = {".json": "application/json", ".md": "text/markdown", ".yaml": "application/yaml", ".yml": "application/yaml"}


@dataclass(frozen=True, slots=True)
class Resources:
    """Everything with an address. `folder` says where a run's files are, `log` reads a session's entries."""

    store: Store
    sessions: Path
    folder: Callable[[RunRow], Path]
    log: Callable[[Path, str], Sequence[Mapping[str, Json]]]

    async def entries(self, skills: Mapping[str, Skill]) -> list[Json]:
        """Every discipline, then the newest sessions and runs."""
        rows = await self.store.runs(RunFilter(called=False), limit=SHOWN)
        return [
            *(_entry(f"skills/{one.name}", one.name, one.description, "text/markdown") for one in skills.values()),
            *(_entry(f"sessions/{name}", name, "The calls of a session.") for name in self._logged()),
            *(_entry(f"runs/{row.id}", name_of(row), f"{_state(row)}, started {iso(row.created_at)}") for row in rows),
        ]

    def templates(self) -> list[Json]:
        """How addresses are made."""
        made = (
            ("skills/{name}", "discipline", "The discipline of a skill.", "text/markdown"),
            ("sessions/{session_id}", "session log", "The calls of a session, oldest first.", "application/json"),
            ("runs/{run_id}", "run", "The files of a run.", "application/json"),
            ("runs/{run_id}/{+path}", "run file", "One file of a run.", ""),
        )
        return [
            {"uriTemplate": SCHEME + end, "name": name, "description": doc} | ({"mimeType": kind} if kind else {})
            for end, name, doc, kind in made
        ]

    async def read(self, address: str, skills: Mapping[str, Skill]) -> dict[str, Json]:
        """What is at an address. Raises `NotFound`, or `UsageError` for what is too large."""
        if not address.startswith(SCHEME) or len(address) > 4096:
            raise NotFound(
                "there is no such resource", hint=f"addresses start with {SCHEME}; resources/list shows them"
            )
        kind, _, rest = address.removeprefix(SCHEME).partition("/")
        match kind:
            case "skills" if rest in skills:
                return {"uri": address, "mimeType": "text/markdown", "text": skills[rest].body}
            case "sessions" if _SESSION.fullmatch(rest):
                return self._session(address, rest)
            case "runs":
                return await self._run(address, rest)
            case _:
                raise NotFound("there is no such resource", hint="resources/list shows them")

    def _logged(self) -> list[str]:
        try:
            found = [(one.stat().st_mtime, one.stem) for one in self.sessions.glob("*.jsonl") if one.is_file()]
        except OSError:
            return []
        return [name for _, name in sorted(found, reverse=True) if _SESSION.fullmatch(name)][:SHOWN]

    def _session(self, address: str, name: str) -> dict[str, Json]:
        if not (self.sessions / f"{name}.jsonl").is_file():
            raise NotFound(f"there is no log of a session '{name}'", hint="resources/list shows the newest ones")
        text = json.dumps([dict(one) for one in self.log(self.sessions, name)], ensure_ascii=False, indent=1)
        return {"uri": address, "mimeType": "application/json", "text": _bounded(text, name)}

    async def _run(self, address: str, rest: str) -> dict[str, Json]:
        name, _, path = rest.partition("/")
        row = await exact_run(self.store, unquote(name), "resources/list shows the newest ones")
        top = self.folder(row)
        if not path:
            listed = [f"{SCHEME}runs/{row.id}/{quote(file)}" for file in files_below(top)]
            body = {"run": name_of(row), "status": _state(row), "files": listed}
            return {"uri": address, "mimeType": "application/json", "text": json.dumps(body, indent=1)}
        return {"uri": address, **_contents(unquote(path), read_below(top, unquote(path)))}


async def exact_run(store: Store, name: str, hint: str) -> RunRow:
    """The run with this id or this very name. Raises `NotFound` with a hint."""
    if _RUN.fullmatch(name):
        row = await store.run(name) or next(iter(await runs_named(store, name)), None)
        if row is not None:
            return row
    raise NotFound(f"there is no run '{name[:80]}'", hint=hint)


def _entry(end: str, name: str, doc: str, kind: str = "application/json") -> dict[str, Json]:
    return {"uri": SCHEME + quote(end), "name": name, "description": doc, "mimeType": kind}


def _bounded(text: str, name: str) -> str:
    if len(text) > LARGEST:
        raise UsageError(f"{name} is {len(text):,} characters long; {LARGEST:,} are given at most")
    return text


def _contents(path: str, data: bytes) -> dict[str, Json]:
    kind = _TYPES.get(Path(path).suffix, "text/plain")
    try:
        return {"mimeType": kind, "text": data.decode("utf-8")}
    except UnicodeDecodeError:
        return {"mimeType": "application/octet-stream", "blob": base64.b64encode(data).decode("ascii")}


def files_below(top: Path) -> list[str]:
    """The plain files below a directory, sorted, links not followed; at most a thousand."""
    return sorted(_walk(top, ""))


def _walk(top: Path, below: str) -> Iterator[str]:
    found = 0
    stack = [below]
    while stack:
        here = stack.pop()
        try:
            entries = sorted(os.scandir(top / here), key=lambda one: one.name)
        except OSError:
            continue
        for one in entries:
            path = f"{here}/{one.name}" if here else one.name
            if one.is_dir(follow_symlinks=False) and path.count("/") < DEEPEST:
                stack.append(path)
            elif one.is_file(follow_symlinks=False) and not one.name.startswith("."):
                found += 1
                if found > MOST_FILES:
                    return
                yield path


def read_below(top: Path, path: str) -> bytes:
    """The bytes of a file below a directory; no part of the way may be a link or lead up."""
    parts = path.split("/")
    missing = NotFound(f"there is no file '{path[:200]}' in this run", hint="read the run's own address for its files")
    if len(parts) > DEEPEST + 1 or any(part in ("", ".", "..") or "\0" in part for part in parts):
        raise missing
    with ExitStack() as stack:
        try:
            here = _held(stack, os.open(top, _FOLDER))
            for part in parts[:-1]:
                here = _held(stack, os.open(part, _FOLDER, dir_fd=here))
            last = _held(stack, os.open(parts[-1], _FILE, dir_fd=here))
            there = os.fstat(last)
            if not stat.S_ISREG(there.st_mode):
                raise missing
            if there.st_size > LARGEST:
                raise UsageError(f"{path} has {there.st_size:,} bytes; {LARGEST:,} are given at most")
            with os.fdopen(os.dup(last), "rb") as file:
                return file.read(LARGEST)
        except (OSError, UnicodeError):
            raise missing from None


def _held(stack: ExitStack, handle: int) -> int:
    stack.callback(os.close, handle)
    return handle


def _state(row: RunRow) -> str:
    """The one word for a run; only what a live process holds is running."""
    return state_alone(row, current_owner("bailiwick"), SystemClock().now())
