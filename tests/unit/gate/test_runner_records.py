"""Lines that runners send: sealed by their writer, numbered, put together, and refused where they are not."""

from __future__ import annotations

import hashlib
import hmac
import json

import pytest

from bailiwick.gate.runner_records import SealedLines, TokenLines
from bailiwick.ids import Json

KEY = b"k" * 32
CHILD = b"c" * 32


def _line(body: str, key: bytes = KEY) -> bytes:
    return f"{hmac.new(key, body.encode(), hashlib.sha256).hexdigest()} {body}\n".encode()


def _record(number: int, record: dict[str, Json], who: str = "m", key: bytes = KEY) -> bytes:
    return _line(f"{who} {number} 1 {json.dumps(record)}", key)


def test_records_are_read_whatever_pieces_they_come_in() -> None:
    """A pipe gives bytes as it likes, and a long record comes in several lines."""
    lines = SealedLines(KEY)
    text = json.dumps({"t": "test", "names": ["a"]})
    data = _line(f"m 0 0 {text[:9]}") + _line(f"m 1 1 {text[9:]}") + _record(2, {"t": "end"})
    for index in range(len(data)):
        lines.feed(data[index : index + 1])
    lines.close()
    assert lines.fault is None
    assert [record["t"] for record in lines.all] == ["test", "end"]


def test_a_child_has_a_key_of_its_own_once_it_is_announced() -> None:
    """Only the process of the runner can announce one."""
    lines = SealedLines(KEY)
    lines.feed(_record(0, {"t": "child", "id": "c1", "key": CHILD.hex()}) + _record(0, {"t": "hello"}, "c1", CHILD))
    assert lines.fault is None
    assert lines.all[-1] == {"t": "hello", "who": "c1"}
    lines.feed(_record(1, {"t": "child", "id": "c2", "key": CHILD.hex()}, "c1", CHILD))
    lines.feed(_record(0, {"t": "bye"}, "c2", CHILD))
    assert lines.fault is not None


@pytest.mark.parametrize(
    "data",
    [
        b"{}\n",
        _record(0, {"t": "end"}, key=CHILD),
        _record(1, {"t": "end"}),
        _record(0, {"t": "end"}) * 2,
        _record(0, {"t": "hello"}, "c1", CHILD),
        _line("m 0 1 [1]"),
        _line("m 0 1 {"),
        b"x" * 70_000,
        _record(0, {"t": "end"})[:-1],
    ],
    ids=["plain", "other key", "left out", "twice", "unknown child", "no object", "no JSON", "endless", "cut off"],
)
def test_what_is_not_of_this_run_is_a_fault(data: bytes) -> None:
    """Whoever else writes into the pipe ends the hearing."""
    lines = SealedLines(KEY)
    lines.feed(data)
    lines.close()
    assert lines.fault is not None
    assert lines.fault.code == "forged-record"
    lines.feed(_record(0, {"t": "late"}))
    assert "late" not in [record["t"] for record in lines.all]


def test_lines_of_a_script_have_its_token() -> None:
    """A line without it was written by somebody else."""
    lines = TokenLines("secret")
    lines.feed(b"secret begin /deps/a-1\nsecret end 0\n")
    assert lines.all == [{"t": "begin", "said": "/deps/a-1"}, {"t": "end", "said": "0"}]
    lines.feed(b"end 0\n")
    assert lines.fault is not None
