"""What a tier is told: the task, what was wrong with earlier outputs, the named files where a model has no tools."""

from __future__ import annotations

import codecs
import json
import os
import secrets
import stat
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from bailiwick.agents.prompts import ROOT as PROMPTS
from bailiwick.ids import Json
from bailiwick.lang.templates import Templates
from bailiwick.routing.model import Job, TierName
from bailiwick.routing.result import answer_schema

FILE_BYTES = 64 << 10
ALL_BYTES = 256 << 10
"""Bytes of one file, and of all files together, that go into a task."""
MOST_NAMED = 200
"""Files that a task may name; of more, the rest is only counted."""

Draw = Callable[[], str]


@dataclass(frozen=True, slots=True)
class Shown:
    """A named file as it goes into a task: its text, or, without one, why it is left out."""

    name: str
    text: str = ""
    note: str = ""
    left_out: bool = False


def draw() -> str:
    """A mark that nobody can guess."""
    return f"mark-{secrets.token_hex(16)}"


def boundary_for(texts: Iterable[str], drawn: Draw = draw) -> str:
    """A mark that stands in none of the texts."""
    given = list(texts)
    mark = drawn()
    while any(mark in text for text in given):
        mark = drawn()
    return mark


def words(name: str, **values: Json) -> str:
    """A text of `bundled/prompts` with its values; what is in a value is never read as a template."""
    return str(_templates().file(name, values.get).value)


def discipline_for(job: Job, tier: TierName) -> str:
    """What stands above the task: the discipline, and how to answer."""
    name = "result-contract.md" if tier == "local" else "result-contract-agent.md"
    schema = json.dumps(answer_schema(job), ensure_ascii=False)
    return job.discipline + words(name, schema=schema, writes=job.writes)


def task_for(job: Job, feedback: Sequence[str], shown: Sequence[Shown] = (), drawn: Draw = draw) -> str:
    """The task with the contents of files and the feedback so far; with neither it is the task as it was given."""
    if not feedback and not shown:
        return job.task
    mark = boundary_for([job.task, *(one.text for one in shown), *(one.name for one in shown)], drawn)
    return words(
        "task-files.md",
        task=job.task,
        boundary=mark,
        files=[_row(one) for one in shown if not one.left_out],
        left_out=[_row(one) for one in shown if one.left_out],
        feedback=list(feedback),
    )


def read_files(root: str, tree: Path | None, names: Sequence[str]) -> list[Shown]:
    """The named files of a project, within the bounds. `tree` is the copy in which the tier works, where there is one.

    A file that lies outside, also by a link, is never read.
    """
    if not root and tree is None:
        return []
    base = (tree or Path(root)).resolve()
    out: list[Shown] = []
    left = ALL_BYTES
    for name in list(dict.fromkeys(names))[:MOST_NAMED]:
        one = _read(base, _relative(name, root), left)
        left -= len(one.text.encode("utf-8"))
        out.append(one)
    if len(names) > MOST_NAMED:
        out.append(Shown(f"{len(names) - MOST_NAMED} more", note="too many files are named", left_out=True))
    return out


@cache
def _templates() -> Templates:
    return Templates(PROMPTS)


def _row(one: Shown) -> dict[str, Json]:
    return {"name": one.name, "text": one.text, "note": one.note}


def _relative(name: str, root: str) -> str:
    if root and Path(name).is_absolute():
        inside = os.path.relpath(os.path.normpath(name), os.path.normpath(root))
        return name if inside.startswith("..") else inside
    return name


def _read(base: Path, name: str, left: int) -> Shown:
    """One file: a symbolic link is followed as far as it stays inside, and what is no regular file is not opened."""
    plain = " ".join(name.split())[:300]
    try:
        path = (base / name).resolve()
        if not path.is_relative_to(base):
            return Shown(plain, note="it lies outside the project", left_out=True)
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        with os.fdopen(handle, "rb") as file:
            facts = os.fstat(handle)
            if not stat.S_ISREG(facts.st_mode):
                return Shown(plain, note="it is not a regular file", left_out=True)
            room = max(0, min(FILE_BYTES, left))
            data = file.read(min(FILE_BYTES, ALL_BYTES)) if room else b""
    except (OSError, ValueError, RuntimeError) as error:
        why = getattr(error, "strerror", None) or "it can't be read"
        return Shown(plain, note=why, left_out=True)
    return _shown(plain, data, facts.st_size, room)


def _shown(name: str, data: bytes, size: int, room: int) -> Shown:
    if not room and size:
        return Shown(name, note="no space is left in the task", left_out=True)
    if b"\0" in data:
        return Shown(name, note=f"binary, {size:,} bytes", left_out=True)
    kept = data[:room]
    note = f"cut: the first {len(kept):,} of {size:,} bytes" if size > len(kept) else ""
    try:
        text = codecs.getincrementaldecoder("utf-8")().decode(kept, final=not note)
    except UnicodeDecodeError:
        return Shown(name, note=f"binary, {size:,} bytes", left_out=True)
    return Shown(name, text.removesuffix("\n"), note)
