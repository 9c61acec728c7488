"""`bailiwick mcp` as an editor starts it: on a pipe, as the person, until the pipe is closed."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
from typing import Any

import pytest

from bailiwick.testing.polling import until
from tests.acceptance.command import BAILIWICK, Person, end
from tests.acceptance.test_serve import prepare

HELLO = {
    "jsonrpc": "2.0", "id": 0, "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "ed", "version": "1"}},
}  # fmt: skip


class Editor:
    """A client that writes lines and reads lines, and trusts nothing else."""

    def __init__(self, person: Person) -> None:
        self.process = subprocess.Popen(
            [BAILIWICK, "mcp"],
            cwd=person.cwd,
            env=person.env(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._asked = 0
        self.ask(HELLO["method"], HELLO["params"])

    def ask(self, method: Any, params: Any) -> Any:
        """One request and its answer; every line that comes is a message."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._asked += 1
        body = {"jsonrpc": "2.0", "id": self._asked, "method": method, "params": params}
        self.process.stdin.write(json.dumps(body) + "\n")
        self.process.stdin.flush()
        while True:
            line = self.process.stdout.readline()
            assert line, self.process.stderr.read() if self.process.stderr else ""
            message = json.loads(line)
            if message.get("id") == self._asked:
                return message["result"]

    def call(self, tool: str, **arguments: Any) -> Any:
        """What a tool gives."""
        return self.ask("tools/call", {"name": tool, "arguments": arguments})

    def leave(self) -> tuple[int, str]:
        """Close the pipe; gives the exit code and what was still said on standard output."""
        out, _ = self.process.communicate(timeout=600)
        return self.process.returncode, out


@pytest.mark.needs("sandbox")
def test_an_editor_starts_a_run_and_leaves(person: Person) -> None:
    """The run outlives the editor; the server does not."""
    prepare(person)
    editor = Editor(person)
    try:
        names = {tool["name"] for tool in editor.ask("tools/list", {})["tools"]}
        assert {"review", "tdd_red", "run_start"} <= names
        refused = editor.call("run_start", workflow="../quick")
        assert refused["isError"]
        begun = editor.call("run_start", workflow="quick")["structuredContent"]
        assert begun["started_by"] == "mcp:ed"
        assert editor.leave() == (0, "")
    finally:
        end(editor.process)

    def over() -> bool:
        return bool(person.runs("runs", "show", begun["run"], "--json").json()["state"] == "done")

    until(over, what="the run's end")


@pytest.mark.nightly
def test_a_signal_ends_it_while_a_client_is_connected(person: Person) -> None:
    """An editor that kills its servers must not leave one that hangs in a read."""
    editor = Editor(person)
    try:
        editor.process.send_signal(signal.SIGTERM)
        assert editor.process.wait(timeout=600) == 0
    finally:
        end(editor.process)


@pytest.mark.nightly
def test_the_newest_protocol_is_spoken_too(person: Person) -> None:
    """The official client asks without a handshake first."""
    from mcp import Client, StdioServerParameters

    async def go() -> Any:
        server = StdioServerParameters(command=str(BAILIWICK), args=["mcp"], env=person.env(), cwd=person.cwd)
        async with Client(server, mode="2026-07-28") as one:
            return (await one.call_tool("approvals_list", {})).structured_content

    assert asyncio.run(go()) == {"approvals": []}
