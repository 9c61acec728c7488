"""A workflow with an agent node on the real claude, through the installed command, as a person runs it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from bailiwick.processes.children import ChildProcess, find_children
from bailiwick.testing.model_server.script import Hang, Say, Scenario, UseTool
from bailiwick.testing.model_server.server import ModelServer
from tests.acceptance.command import Person, Result, end
from tests.agents.conftest import need
from tests.agents.desk import AGENTS

FLOW = """\
version: 1
name: real
start: edit
nodes:
  - id: edit
    type: agent
    prompt_text: Write the poem of {{ who }}, then say how many lines it has.
    args: {who: the lighthouse}
    model: sonnet
    outputs:
      - key: poem
        schema: {type: object, required: [lines], properties: {lines: {type: integer}}}
    next: done
  - {id: done, type: terminal}
"""
EDIT = UseTool("write", path="poem.txt", content="One light,\nall night.\n")
ANSWER = UseTool("structured", raw='{"poem": {"lines": 2}}')

Kill = Callable[[Person, "subprocess.Popen[str]"], None]


@pytest.fixture
def person(tmp_path: Path) -> Person:
    """Somebody who lets claude edit files, and whose claude talks to whatever the test says."""
    need("claude")
    for folder in ("work", "own/.claude", "tmp"):
        (tmp_path / folder).mkdir(parents=True)
    settings = {"permissions": {"allow": ["Bash", "Write"]}}
    (tmp_path / "own" / ".claude" / "settings.json").write_text(json.dumps(settings))
    extra = {
        "PATH": f"{AGENTS / 'bin'}:{os.environ['PATH']}",
        "HOME": str(tmp_path / "own"),
        "TMPDIR": str(tmp_path / "tmp"),
        "ANTHROPIC_API_KEY": "made-up",
        "AGENT_INVOKE_BACKOFF_BASE_S": "0.1",
    }
    return Person(tmp_path / "home", tmp_path / "work", extra)


def _run(person: Person, server: ModelServer, scenario: str) -> Result:
    person.extra["ANTHROPIC_BASE_URL"] = server.url(scenario)
    return person.runs("run", person.cwd / "real", "--json")


def _poem(person: Person) -> str:
    (found,) = (person.home / "state" / "workspaces").glob("*/poem.txt")
    return found.read_text()


def test_a_workflow_has_claude_edit_a_file_and_give_json(person: Person) -> None:
    """All of it together: prompt, tool, structured answer, context, cost; nothing of the CLI is left running."""
    person.workflow("real", FLOW)

    async def go() -> tuple[Result, ModelServer]:
        async with ModelServer({"scene": [EDIT, ANSWER, Say("Done.")]}) as server:
            return await asyncio.to_thread(_run, person, server, "scene"), server

    result, server = asyncio.run(go())
    assert result.code == 0, result.err
    assert _poem(person) == "One light,\nall night.\n"
    assert _left(person) == []
    assert result.json()["context"] == {"poem": {"lines": 2}}
    assert "Write the poem of the lighthouse" in json.dumps(server.requests[0].body["messages"])


def _left(person: Person) -> list[ChildProcess]:
    """The processes that were started with this person's home, the agent's among them."""
    return find_children({"HOME": person.extra["HOME"]})


def _kill_the_run(_person: Person, process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGKILL)


def _kill_everything(person: Person, process: subprocess.Popen[str]) -> None:
    """As a machine that loses its power: the agent has no moment to write anything down."""
    process.send_signal(signal.SIGKILL)
    for child in find_children({"HOME": person.extra["HOME"]}):
        os.kill(child.pid, signal.SIGKILL)


async def _cut_off(person: Person, server: ModelServer, requests: int, kill: Kill) -> None:
    """Start the run and kill it when the model has been asked so often."""
    person.extra["ANTHROPIC_BASE_URL"] = server.url("first")
    process = person.starts("run", person.cwd / "real", "--json")
    try:
        while server.count("first") < requests:
            server.asked.clear()
            await server.asked.wait()
        kill(person, process)
    finally:
        await asyncio.to_thread(end, process)


@pytest.mark.nightly
@pytest.mark.parametrize("kill", [_kill_the_run, _kill_everything])
@pytest.mark.parametrize("first", [[EDIT, Hang()], [Hang()]], ids=["second request", "first request"])
def test_a_run_that_is_killed_goes_on_by_itself(person: Person, first: Scenario, kill: Kill) -> None:
    """The agent ends with its run, whatever it kept of its session by then; nothing is left and no person is asked."""
    person.workflow("real", FLOW)

    async def go() -> tuple[Result, ModelServer]:
        async with ModelServer({"first": first, "then": [ANSWER, Say("Done.")]}) as server:
            await _cut_off(person, server, len(first), kill)
            return await asyncio.to_thread(_run, person, server, "then"), server

    result, server = asyncio.run(go())
    assert result.code == 0, result.out + result.err
    assert result.json()["reentered"] == 1
    assert _left(person) == []
    sent = next(json.dumps(seen.body["messages"]) for seen in server.requests if seen.scenario == "then")
    assert "Write the poem of the lighthouse" in sent
