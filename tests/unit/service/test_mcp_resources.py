"""Files by address: those of a run and no others, whole or not at all."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from bailiwick.errors import NotFound, UsageError
from bailiwick.ids import Json
from bailiwick.journal.rows import RunFilter, RunRow
from bailiwick.service.mcp_resources import LARGEST, Resources, files_below, read_below

RUN = RunRow(
    "0123456789abcdef0123", "flow", "default", "done", 3, 1, None, 0.0, None, 0, "0123456789abcdef0123", None, "d", 1,
    "", "", None, 0, 1_700_000_000.0, archived=False, summary={"state": "done"},
)  # fmt: skip


class OneRun:
    """A store with one run."""

    async def runs(self, which: RunFilter, *, limit: int | None = None) -> list[RunRow]:
        fits = which.workflow in (None, RUN.workflow) and which.run_key in (None, RUN.run_key)
        return [RUN][:limit] if fits else []

    async def run(self, run_id: str) -> RunRow | None:
        return RUN if run_id == RUN.id else None


def entries_of(_folder: Path, session: str) -> list[dict[str, Json]]:
    return [{"session_id": session, "skill": "review"}]


def resources(tmp_path: Path) -> Resources:
    (tmp_path / "run" / "build" / "1").mkdir(parents=True)
    (tmp_path / "run" / "context.json").write_text('{"a": 1}')
    (tmp_path / "run" / "build" / "1" / "out put.log").write_text("fine\n")
    (tmp_path / "run" / ".projected").write_text("{}")
    (tmp_path / "secret").write_text("do not read")
    (tmp_path / "run" / "link").symlink_to(tmp_path / "secret")
    (tmp_path / "run" / "up").symlink_to(tmp_path)
    (tmp_path / "sessions").mkdir()
    (tmp_path / "sessions" / "s1.jsonl").write_text("{}\n")
    store: Any = OneRun()
    return Resources(store, tmp_path / "sessions", lambda _row: tmp_path / "run", entries_of)


def read(found: Resources, address: str) -> dict[str, Json]:
    return asyncio.run(found.read(address, {}))


def test_a_run_lists_its_files_with_addresses_that_can_be_read(tmp_path: Path) -> None:
    """A client reads what it was shown, as it was shown it."""
    found = resources(tmp_path)
    listed = json.loads(read(found, f"bailiwick://runs/{RUN.id}")["text"])
    assert listed["files"] == [
        f"bailiwick://runs/{RUN.id}/build/1/out%20put.log",
        f"bailiwick://runs/{RUN.id}/context.json",
    ]
    assert read(found, listed["files"][0])["text"] == "fine\n"
    assert read(found, listed["files"][1])["mimeType"] == "application/json"
    assert read(found, "bailiwick://runs/flow-default/context.json")["text"] == '{"a": 1}'


@pytest.mark.parametrize(
    "path",
    [
        "../secret",
        "..%2fsecret",
        "link",
        "up/secret",
        "/etc/passwd",
        "build",
        "",
        "a//b",
        "./context.json",
        "%00",
        "nope",
    ],
)
def test_nothing_outside_of_a_run_is_read(tmp_path: Path, path: str) -> None:
    """An address is what a client makes up; a link is what an agent may have left."""
    found = resources(tmp_path)
    if path:
        with pytest.raises(NotFound):
            read(found, f"bailiwick://runs/{RUN.id}/{path}")
    else:
        with pytest.raises(NotFound):
            read_below(tmp_path / "run", path)


def test_a_pipe_in_a_run_does_not_hold_us_up(tmp_path: Path) -> None:
    """To open a pipe waits for its other end, for ever."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(NotFound):
        read_below(tmp_path, "pipe")


def test_what_is_too_large_is_refused_with_its_size(tmp_path: Path) -> None:
    """A part of a file that looks whole misleads whoever reads it."""
    (tmp_path / "big").write_bytes(b"x" * (LARGEST + 1))
    with pytest.raises(UsageError, match="1,000,001 bytes"):
        read_below(tmp_path, "big")


def test_what_is_no_text_is_given_as_bytes(tmp_path: Path) -> None:
    """A picture is an artifact too."""
    found = resources(tmp_path)
    (tmp_path / "run" / "plot.png").write_bytes(b"\x89PNG")
    assert read(found, f"bailiwick://runs/{RUN.id}/plot.png")["blob"] == "iVBORw=="


def test_sessions_are_read_by_id_alone(tmp_path: Path) -> None:
    """An id with a path in it would reach other files."""
    found = resources(tmp_path)
    assert json.loads(read(found, "bailiwick://sessions/s1")["text"]) == [{"session_id": "s1", "skill": "review"}]
    for address in ("sessions/s2", "sessions/..%2fsecret", "sessions/../secret", "nothing/x", "skills/x"):
        with pytest.raises(NotFound):
            read(found, f"bailiwick://{address}")
    with pytest.raises(NotFound):
        read(found, "file:///etc/passwd")


def test_the_list_names_sessions_and_runs(tmp_path: Path) -> None:
    """What can't be found can't be read."""
    listed = [entry["uri"] for entry in asyncio.run(resources(tmp_path).entries({}))]
    assert listed == ["bailiwick://sessions/s1", f"bailiwick://runs/{RUN.id}"]


def test_a_directory_that_is_not_there_has_no_files(tmp_path: Path) -> None:
    """A run that was just started has written nothing yet."""
    assert files_below(tmp_path / "none") == []
