"""Setting up a repository: our entry beside those of others, a gate that reads back as it was detected."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from bailiwick.errors import InputInvalid
from bailiwick.gate.detection import detect
from bailiwick.gate.spec import FILE, read_gate
from bailiwick.ids import Json
from bailiwick.service.setup import flow, gate_change, gate_text, mcp_change, mcp_entry, own_entry

ENTRY: dict[str, Json] = {"command": "bailiwick", "args": ["mcp"]}
OTHERS = """{
    "mcpServers": {
        "files": {"command": "files", "args": ["-x"], "env": {"ü": "1"}}
    },
    "more": [1, 2]
}
"""


def test_a_fresh_file_has_our_entry_alone(tmp_path: Path) -> None:
    """What the client starts is the command that a person would type."""
    change = mcp_change(tmp_path, ENTRY)
    change.write()
    assert json.loads((tmp_path / ".mcp.json").read_text()) == {
        "mcpServers": {"bailiwick": {"command": "bailiwick", "args": ["mcp"]}}
    }
    assert (tmp_path / ".mcp.json").stat().st_mode & 0o777 == 0o644


def test_other_servers_and_the_indent_stay(tmp_path: Path) -> None:
    """The file belongs to the team; a diff of every line would hide ours."""
    (tmp_path / ".mcp.json").write_text(OTHERS)
    change = mcp_change(tmp_path, ENTRY)
    after = json.loads(change.after)
    assert after["mcpServers"]["files"] == json.loads(OTHERS)["mcpServers"]["files"]
    assert after["mcpServers"]["bailiwick"] == ENTRY
    assert after["more"] == [1, 2]
    assert '\n    "mcpServers"' in change.after
    assert "ü" in change.after
    assert any(line.startswith('+        "bailiwick"') for line in change.diff(".mcp.json"))


def test_nothing_changes_the_second_time(tmp_path: Path) -> None:
    """Setting up twice is how people make sure."""
    mcp_change(tmp_path, ENTRY).write()
    assert not mcp_change(tmp_path, ENTRY).needed


def test_an_entry_that_somebody_changed_is_shown_before_it_is_replaced(tmp_path: Path) -> None:
    """The diff is where the person sees what they would lose."""
    (tmp_path / ".mcp.json").write_text('{"mcpServers": {"bailiwick": {"command": "old"}}}')
    change = mcp_change(tmp_path, ENTRY)
    assert change.needed
    assert any("old" in line for line in change.diff(".mcp.json") if line.startswith("-"))


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ('{"mcpServers": {\n  oops\n}}', ":2:3", "not valid JSON"),
        ("[1]", ":1:1", "not a JSON object"),
        ('{"mcpServers": []}', ".mcp.json", "is not an object"),
        ('{"a": 1, "a": 2}', ".mcp.json", "is there twice"),
    ],
)
def test_a_file_that_is_not_understood_is_left_alone(tmp_path: Path, text: str, place: str, words: str) -> None:
    """To write over what somebody mistyped would lose it."""
    (tmp_path / ".mcp.json").write_text(text)
    with pytest.raises(InputInvalid) as caught:
        mcp_change(tmp_path, ENTRY)
    problem = caught.value.problems()[0]
    assert words in problem.what
    assert str(problem.place).endswith(place)
    assert (tmp_path / ".mcp.json").read_text() == text


def test_the_gate_s_file_says_exactly_what_was_detected() -> None:
    """A draft that checks other things than it showed would surprise the first proposal."""
    files = ("pyproject.toml", "requirements.txt", "tests/test_a.py", "Cargo.toml", "Cargo.lock", "package.json")
    texts = {"package.json": b'{"scripts": {"test": "jest", "lint": "eslint"}}', "requirements.txt": b"pytest\n"}
    found = detect(files, texts, lambda _tool: True)
    read = read_gate(gate_text(found, ("tried\u2028twice",)).encode(), FILE, "base")
    assert [check.to_json() for check in read.checks] == [check.to_json() for check in found.checks]
    assert read.prepare == found.prepare
    assert set(read.protected) >= set(found.protected)


def test_commands_are_written_as_a_person_would() -> None:
    """The file is read by people: quotes only where YAML would read something else."""
    words = ("python3.12", "-m", "pip", "install", "-e", ".[test]", "-n", "0", "no", "a>=1", "X=1.2")
    assert flow(words) == '[python3.12, -m, pip, install, -e, ".[test]", -n, "0", "no", "a>=1", X=1.2]'


def test_a_gate_that_is_there_is_not_touched(tmp_path: Path) -> None:
    """People have put their reasons into it."""
    (tmp_path / ".bailiwick").mkdir()
    (tmp_path / FILE).write_text("version: 1\nchecks: [{name: a, run: [b]}]\n")
    assert not gate_change(tmp_path, detect((), {}, lambda _tool: False), FILE).needed


@pytest.mark.parametrize(
    "old", [b'{"a": 1}', b'{\n  "a": 1\n}', b'\xef\xbb\xbf{\r\n  "a": 1\r\n}\r\n', b'{\n\t"a": 1\n}\n']
)
def test_a_file_that_is_there_keeps_how_it_is_written(tmp_path: Path, old: bytes) -> None:
    """Byte order mark, line endings, whether the last line is ended."""
    file = tmp_path / ".mcp.json"
    file.write_bytes(old)
    mcp_change(tmp_path, ENTRY).write()
    new = file.read_bytes()
    assert json.loads(new.decode("utf-8-sig")) == {"a": 1, "mcpServers": {"bailiwick": ENTRY}}
    assert new.startswith(b"\xef\xbb\xbf") == old.startswith(b"\xef\xbb\xbf")
    if b"\n" in old:
        assert (new.count(b"\r\n") == new.count(b"\n"), new.endswith(b"\n")) == (b"\r\n" in old, old.endswith(b"\n"))
    assert not mcp_change(tmp_path, ENTRY).needed


def _program(folder: Path, name: str = "bailiwick") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / name
    file.write_text("#!/bin/sh\n")
    file.chmod(0o755)
    return file


@pytest.mark.parametrize(
    ("installed", "path", "in_venv", "command"),
    [
        ("venv/bin", "usr/bin", True, ["{top}/venv/bin/bailiwick", "mcp"]),
        ("venv/bin", "venv/bin", True, ["{top}/venv/bin/bailiwick", "mcp"]),
        ("usr/bin", "usr/bin", True, ["bailiwick", "mcp"]),
        ("venv/bin", "venv/bin", False, ["bailiwick", "mcp"]),
        ("", "usr/bin", True, ["{top}/venv/bin/python", "-m", "bailiwick", "mcp"]),
    ],
)
def test_the_command_for_clients_can_be_found(
    tmp_path: Path, installed: str, path: str, in_venv: bool, command: list[str]
) -> None:
    """Also by an editor that was started where no environment is active: by name only where that is certain."""
    if installed:
        _program(tmp_path / installed)
    entry = mcp_entry(str(tmp_path / path), tmp_path / "venv/bin/python", in_venv=in_venv)
    assert [entry["command"], *entry["args"]] == [word.format(top=tmp_path) for word in command]


def test_the_command_of_this_installation_runs() -> None:
    """Whatever PATH a client has, as long as it can start a program."""
    entry = own_entry()
    command = [shutil.which(str(entry["command"])) or "", *entry["args"], "--help"]
    done = subprocess.run(command, env={"PATH": "/nowhere"}, capture_output=True, text=True, timeout=600, check=True)
    assert "Speak MCP" in done.stdout
