"""The real claude with our MCP server, as `init --mcp` sets it up: it finds the tools, calls them, reads what they say."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from bailiwick.runtime.children import find_children
from bailiwick.testing.model_places import ModelPlaces, Stub
from bailiwick.testing.model_server import Hang, Say, Scenario, Seen
from bailiwick.testing.polling import until
from tests.acceptance.command import BAILIWICK, Person, Result, end
from tests.agents.conftest import need
from tests.agents.desk import AGENTS, claude_calls, tool_results

PREFIX = "mcp__bailiwick__"
TOOLS = {
    "tdd_red", "tdd_green", "tdd_refactor", "review", "debug", "spec", "retrospective", "trainer",
    "brain_query", "brain_write", "brain_answer", "tier", "session_log",
    "run_start", "run_status", "run_result", "run_cancel", "approvals_list", "proposals_list", "stats_models",
}  # fmt: skip
CLAUDE = (
    "claude", "-p", "Use the tools.", "--model", "sonnet", "--output-format", "json", "--setting-sources", "user",
    "--mcp-config", ".mcp.json", "--strict-mcp-config", "--allowedTools", "mcp__bailiwick",
)  # fmt: skip
FINDING = {
    "file": "price.py", "line": 2, "severity": "blocker", "title": "it subtracts", "detail": "1 and 2 give -1",
    "suggestion": "use +",
}  # fmt: skip
REVIEW = Say(json.dumps({"status": "pass", "message": "one finding", "findings": [FINDING]}))
ACCEPT = Say('{"accept": true, "feedback": ""}')
DONE = Say("Done.")

During = Callable[["subprocess.Popen[str]", ModelPlaces], None]


@pytest.fixture
def person(tmp_path: Path) -> Iterator[Person]:
    """Somebody with a fresh repository, set up for MCP; claude shows its tools in each request instead of a search."""
    need("claude")
    for folder in ("work", "own", "tmp", "home/config"):
        (tmp_path / folder).mkdir(parents=True)
    subprocess.run(["git", "init", "-q", str(tmp_path / "work")], check=True, timeout=30)
    extra = {
        "PATH": f"{BAILIWICK.parent}:{AGENTS / 'bin'}:{os.environ['PATH']}", "HOME": str(tmp_path / "own"),
        "TMPDIR": str(tmp_path / "tmp"), "ANTHROPIC_API_KEY": "made-up", "DISABLE_AUTOUPDATER": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "CLAUDE_CODE_MAX_RETRIES": "0",
        "ENABLE_TOOL_SEARCH": "false", "MCP_CONNECTION_NONBLOCKING": "false", "MCP_TIMEOUT": "60000",
    }  # fmt: skip
    somebody = Person(tmp_path / "home", tmp_path / "work", extra)
    written = somebody.runs("init", "--mcp", "--yes")
    assert written.code == 0, written.err
    yield somebody
    until(lambda: find_children({"HOME": extra["HOME"]}) == [], 10, "the end of claude and of its MCP server")


def _asks(person: Person, steps: Scenario, during: During = lambda _process, _places: None,
          stubs: Mapping[str, Stub] | None = None) -> tuple[Result, ModelPlaces]:  # fmt: skip
    """Have claude work, its model playing `steps`; `during` is what happens meanwhile, `stubs` are local models."""

    async def story() -> tuple[Result, ModelPlaces]:
        async with ModelPlaces({"scene": Stub(says=steps), **(stubs or {})}) as places:
            _configure(person, places, stubs or {})
            person.extra["ANTHROPIC_BASE_URL"] = places.url("scene")
            return await asyncio.to_thread(_claude, person, places, during), places

    return asyncio.run(story())


def _configure(person: Person, places: ModelPlaces, stubs: Mapping[str, Stub]) -> None:
    urls = "".join(f"  {name}: {{url: {places.url(name)}}}\n" for name in stubs)
    config = person.home / "config"
    (config / "config.yaml").write_text("version: 1\n" + (f"endpoints:\n{urls}" if urls else ""))
    (config / "models.yaml").write_text("verifier: judge/v\ndefault_chain: [small/a, claude-sonnet-4-6]\n")


def _claude(person: Person, places: ModelPlaces, during: During) -> Result:
    process = subprocess.Popen(
        CLAUDE, cwd=person.cwd, env=person.env(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        during(process, places)
        out, err = process.communicate(timeout=60)
    finally:
        end(process)
    return Result(process.returncode, out, err)


def _asked(places: ModelPlaces) -> list[Seen]:
    """The questions that claude put to its model."""
    return [seen for seen in places.requests if seen.scenario == "scene" and seen.step is not None]


def _offered(seen: Seen) -> dict[str, Any]:
    """Our tools among those that the model may call, by the name that we gave them."""
    tools = {tool["name"]: tool for tool in seen.body["tools"]}
    return {name.removeprefix(PREFIX): tool for name, tool in tools.items() if name.startswith(PREFIX)}


def _told(places: ModelPlaces) -> list[tuple[str, bool]]:
    """What the model was told that our tools said, and whether as an error."""
    found = tool_results(_asked(places)[-1])
    return [(_text(one["content"]), bool(one.get("is_error"))) for one in found]


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


def test_claude_is_offered_every_tool_and_is_told_what_they_give(person: Person) -> None:
    """One command sets a repository up: no name is lost on the way, and a real result reaches the model."""
    result, places = _asks(person, [
        claude_calls(f"{PREFIX}brain_write", note="The lighthouse closes at dusk.", title="Opening hours"),
        claude_calls(f"{PREFIX}brain_query", query="lighthouse"),
        claude_calls(f"{PREFIX}session_log", session_id="s1"),
        DONE,
    ])  # fmt: skip
    assert result.code == 0, result.out + result.err
    assert result.json()["result"] == "Done."
    first = _asked(places)[0]
    assert _offered(first).keys() == TOOLS
    assert _offered(first)["session_log"]["input_schema"]["required"] == ["session_id"]
    (written, _), (found, _), (log, _) = told = _told(places)
    assert [failed for _, failed in told] == [False, False, False]
    note = json.loads(written)["note"]
    assert note["status"] == "pending"
    assert [one["id"] for one in json.loads(found)["notes"]] == [note["id"]]
    assert json.loads(log) == {"session_id": "s1", "entries": []}
    assert list((person.home).rglob(f"*{note['id']}*.md"))
