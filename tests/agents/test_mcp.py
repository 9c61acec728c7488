"""The real claude with our MCP server, as `init --mcp` sets it up: it finds the tools and hears what they give."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from bailiwick.processes.children import find_children
from bailiwick.testing.model_server.script import Hang, Say, Scenario, UseTool
from bailiwick.testing.model_server.server import ModelRequestSeen
from bailiwick.testing.polling import until
from tests.acceptance.command import BAILIWICK, Person, Result, end
from tests.agents.conftest import need
from tests.agents.desk import AGENTS, claude_calls, tool_results
from tests.model_places import ModelPlaces, Stub

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
    subprocess.run(["git", "init", "-q", str(tmp_path / "work")], check=True, timeout=600)
    extra = {
        "PATH": f"{BAILIWICK.parent}:{AGENTS / 'bin'}:{os.environ['PATH']}",
        "HOME": str(tmp_path / "own"),
        "TMPDIR": str(tmp_path / "tmp"),
        "ANTHROPIC_API_KEY": "made-up",
        "DISABLE_AUTOUPDATER": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_MAX_RETRIES": "0",
        "ENABLE_TOOL_SEARCH": "false",
        "MCP_CONNECTION_NONBLOCKING": "false",
        "MCP_TIMEOUT": "60000",
        "XDG_CACHE_HOME": str(AGENTS / "copilot" / ".cache"),  # where copilot unpacked itself: 235 MB
    }
    somebody = Person(tmp_path / "home", tmp_path / "work", extra)
    written = somebody.runs("init", "--mcp", "--yes")
    assert written.code == 0, written.err
    yield somebody
    until(lambda: find_children({"HOME": extra["HOME"]}) == [], what="the end of claude and of its MCP server")


def _asks(
    person: Person,
    steps: Scenario,
    *,
    stubs: Mapping[str, Stub] = MappingProxyType({}),
    during: During = lambda _process, _places: None,
) -> tuple[Result, ModelPlaces]:
    """Have claude work, its model playing `steps`; `during` is what happens meanwhile, `stubs` are local models."""

    async def history() -> tuple[Result, ModelPlaces]:
        async with ModelPlaces({"scene": Stub(says=steps), **stubs}) as places:
            _configure(person, places, stubs)
            person.extra["ANTHROPIC_BASE_URL"] = places.url("scene")
            return await asyncio.to_thread(_claude, person, places, during), places

    return asyncio.run(history())


def _configure(person: Person, places: ModelPlaces, stubs: Mapping[str, Stub]) -> None:
    urls = "".join(f"  {name}: {{url: {places.url(name)}}}\n" for name in stubs)
    config = person.home / "config"
    (config / "config.yaml").write_text("version: 1\n" + (f"endpoints:\n{urls}" if urls else ""))
    (config / "models.yaml").write_text("verifier: judge/v\ndefault_chain: [small/a, claude-sonnet-4-6]\n")


def _claude(person: Person, places: ModelPlaces, during: During) -> Result:
    process = subprocess.Popen(
        CLAUDE,
        cwd=person.cwd,
        env=person.env(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        during(process, places)
        out, err = process.communicate(timeout=600)
    finally:
        end(process)
    return Result(process.returncode, out, err)


def _asked(places: ModelPlaces) -> list[ModelRequestSeen]:
    """The questions that claude put to its model."""
    return [seen for seen in places.requests if seen.scenario == "scene" and seen.step is not None]


def _offered(seen: ModelRequestSeen) -> dict[str, Any]:
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
    result, places = _asks(
        person,
        [
            claude_calls(f"{PREFIX}brain_write", note="The lighthouse closes at dusk.", title="Opening hours"),
            claude_calls(f"{PREFIX}brain_query", query="lighthouse"),
            claude_calls(f"{PREFIX}session_log", session_id="s1"),
            DONE,
        ],
    )
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


def _local(person: Person, small: Scenario) -> dict[str, Stub]:
    """A project with a mistake in it, a cheap model in the house, and a judge."""
    (person.cwd / "price.py").write_text("def total(a, b):\n    return a - b\n")
    return {"small": Stub(says=small), "judge": Stub(says=(ACCEPT,))}


@pytest.mark.nightly
def test_a_review_that_claude_asks_for_is_made_by_the_cheap_model(person: Person) -> None:
    """What claude hands over costs claude nothing; the session that it names tells it afterwards what was done."""
    root = str(person.cwd)
    steps: Scenario = [
        claude_calls(f"{PREFIX}review", project_root=root, files=["price.py"], session_id="s1"),
        claude_calls(f"{PREFIX}session_log", session_id="s1"),
        claude_calls(f"{PREFIX}stats_models"),
        DONE,
    ]
    result, places = _asks(person, steps, stubs=_local(person, (REVIEW,)))
    assert result.code == 0, result.out + result.err
    (review, _), (log, _), (stats, _) = told = _told(places)
    assert [failed for _, failed in told] == [False, False, False], told
    made = json.loads(review)
    assert (made["status"], made["model_used"], made["verified"]) == ("pass", "small/a", True)
    assert made["findings"] == [FINDING]
    (entry,) = json.loads(log)["entries"]
    assert (entry["skill"], entry["final_status"], entry["project_root"]) == ("review", "pass", root)
    assert [(one["skill"], one["model"], one["cost"]) for one in json.loads(stats)["models"]] == [
        ("review", "small/a", 0.0)
    ]
    assert len(_asked(places)) == len(steps)


@pytest.mark.nightly
def test_a_review_that_claude_asks_for_can_be_made_by_another_claude(person: Person) -> None:
    """One claude in another: the inner one is fenced, has a key for one turn, and is not offered our tools again."""
    review = {"project_root": str(person.cwd), "files": ["price.py"], "model": "claude-sonnet-4-6"}
    look = UseTool("shell", "tr '\\0' '\\n' < /proc/$CLAUDE_PID/environ")
    answer = UseTool("structured", raw=REVIEW.text)
    steps: Scenario = [claude_calls(f"{PREFIX}review", **review), look, answer, DONE]
    result, places = _asks(person, steps, stubs=_local(person, (REVIEW,)))
    assert result.code == 0, result.out + result.err
    assert [len(_offered(seen)) for seen in _asked(places)] == [len(TOOLS), 0, 0, len(TOOLS)]
    ((review_text, failed),) = _told(places)
    made = json.loads(review_text)
    assert (failed, made["status"], made["model_used"], made["verified"]) == (False, "pass", "claude-sonnet-4-6", True)
    assert made["attempts"][0]["cost"] > 0
    inside = json.dumps(tool_results(_asked(places)[2]))
    assert "ANTHROPIC_API_KEY=bw-turn-" in inside
    assert "made-up" not in inside
    assert "CLAUDE_CODE_MESSAGING_TOKEN" not in inside


@pytest.mark.nightly
def test_what_is_wrong_with_a_call_is_told_to_the_model(person: Person) -> None:
    """A model mends its call only if it reads what to change; nobody was asked anything on its behalf."""
    steps: Scenario = [
        claude_calls(f"{PREFIX}review", project_root=str(person.cwd)),
        claude_calls(f"{PREFIX}review", project_root=str(person.cwd), files=["price.py"], depth=3),
        claude_calls(f"{PREFIX}review", project_root="/", files=["etc/passwd"]),
        claude_calls(f"{PREFIX}run_start", workflow="../quick"),
        DONE,
    ]
    result, places = _asks(person, steps, stubs=_local(person, (REVIEW,)))
    assert result.code == 0, result.out + result.err
    told = _told(places)
    assert [failed for _, failed in told] == [True] * 4, told
    words = [text for text, _ in told]
    for text, wanted in zip(words, ("'files'", "'depth'", "roots", "mcp.workflows"), strict=True):
        assert wanted in text
    assert places.count("small") == 0


@pytest.mark.nightly
def test_the_tiers_are_told_without_asking_any_model(person: Person) -> None:
    """A look at what can be reached spends nothing."""
    stubs = {"small": Stub(models=("a",), says=(REVIEW,)), "judge": Stub(models=("v",), says=(ACCEPT,))}
    result, places = _asks(person, [claude_calls(f"{PREFIX}tier"), DONE], stubs=stubs)
    assert result.code == 0, result.out + result.err
    ((text, failed),) = _told(places)
    assert not failed
    found = {one["name"]: (one["reachable"], one["models"]) for one in json.loads(text)["tiers"]}
    assert (found["small"], found["judge"]) == ((True, ["small/a"]), (True, ["judge/v"]))
    assert found["claude"] == (True, ["claude-sonnet-4-6"])
    assert (places.count("small"), places.count("judge"), len(_asked(places))) == (0, 0, 2)


@pytest.mark.nightly
def test_when_claude_is_interrupted_the_call_ends_and_is_on_record(person: Person) -> None:
    """The local model is hung up on, the server goes with its client, and the session still tells of the call."""

    def interrupt(process: subprocess.Popen[str], places: ModelPlaces) -> None:
        until(lambda: places.count("small") == 1, what="the call of the local model")
        assert len(find_children({"HOME": person.extra["HOME"]})) >= 2
        process.send_signal(signal.SIGINT)

    review = claude_calls(f"{PREFIX}review", project_root=str(person.cwd), files=["price.py"], session_id="s1")
    result, places = _asks(person, [review, DONE], stubs=_local(person, (Hang(),)), during=interrupt)
    assert (len(_asked(places)), places.count("judge")) == (1, 0), result.out
    until(lambda: find_children({"HOME": person.extra["HOME"]}) == [], what="the end of the MCP server")
    (entry,) = person.runs("skill", "session_log", "--session-id", "s1", "--json").json()["entries"]
    assert (entry["skill"], entry["final_status"]) == ("review", "error")
    assert "cancelled" in entry["message"]
