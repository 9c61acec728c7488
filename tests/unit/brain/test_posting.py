"""Notes that are also posted: `INGEST_BASE_URL`, and servers that do not take them."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import pytest

from bailiwick.brain.model import Note
from tests.unit.brain.place import open_brain

if TYPE_CHECKING:
    from pathlib import Path

    from bailiwick.brain.service import Saved
    from bailiwick.ids import Json


def _filed(home: Path, status: int) -> tuple[Saved, list[tuple[str, Json]]]:
    """File a note beside a server that answers with this status; what came of it, and what the server got."""
    got: list[tuple[str, Json]] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        length = next(int(line[15:]) for line in head.lower().splitlines() if line.startswith("content-length:"))
        got.append((head.splitlines()[0], json.loads(await reader.readexactly(length))))
        writer.write(f"HTTP/1.1 {status} X\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".encode())
        await writer.drain()
        writer.close()

    async def go() -> Saved:
        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            brain = open_brain(home, INGEST_BASE_URL=f"http://127.0.0.1:{port}/in")
            saved = await brain.file(Note("", "Prices", "Rounded.", "lesson", ("money",), "global", "run 7", "pending"))
            assert len(await brain.query("rounded")) == 1
            brain.close()
            return saved

    return asyncio.run(go()), got


def test_a_new_note_is_posted_too(tmp_path: Path) -> None:
    """Once, whole, with its status: whoever takes it in can tell what a person has read."""
    saved, got = _filed(tmp_path / "home", 202)
    assert saved.unposted == ""
    [(line, body)] = got
    assert line == "POST /in HTTP/1.1"
    note = saved.notes[0]
    assert body == {
        "id": note.id,
        "title": "Prices",
        "text": "Rounded.",
        "type": "lesson",
        "tags": ["money"],
        "scope": "global",
        "source": "run 7",
        "status": "pending",
        "created": body["created"],
    }


@pytest.mark.parametrize("status", [404, 500])
def test_a_note_that_is_not_taken_is_kept_and_told(tmp_path: Path, status: int) -> None:
    """The folder is the truth; the other place is told of."""
    saved, _ = _filed(tmp_path / "home", status)
    assert str(status) in saved.unposted


def test_a_server_that_is_not_there_costs_a_word(tmp_path: Path) -> None:
    """Nobody listens: the note is written all the same."""
    brain = open_brain(tmp_path / "home", INGEST_BASE_URL="http://127.0.0.1:9")
    saved = asyncio.run(brain.file(Note("", "Prices", "Rounded.")))
    assert "127.0.0.1:9" in saved.unposted
    assert saved.commit
    brain.close()
