"""What an agent can spend and write at most, through the installed command and its sandbox."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from bailiwick.testing.model_server.script import Say, ScriptedUsage
from bailiwick.testing.model_server.server import ModelServer
from tests.acceptance.command import Person, Result

pytestmark = pytest.mark.needs("sandbox")

FLOW = """\
version: 1
name: flow
start: edit
nodes:
  - id: edit
    type: agent
    model: sonnet
    max_usd: 0.2
    prompt_text: Do it.
    outputs:
      - key: said
        schema: {}
    next: done
  - {id: done, type: terminal}
"""
GREEDY = """\
#!/usr/bin/python3
import json, os, sys, threading, urllib.error, urllib.request
sys.stdin.read()
statuses = []
def ask(model):
    asked = {"model": model, "max_tokens": 1000, "messages": [{"role": "user", "content": "hi"}]}
    request = urllib.request.Request(
        os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages", json.dumps(asked).encode(),
        {"x-api-key": os.environ["ANTHROPIC_API_KEY"], "content-type": "application/json"},
    )
    try:
        statuses.append(urllib.request.urlopen(request, timeout=600).status)
    except urllib.error.HTTPError as error:
        statuses.append([error.code, json.loads(error.read())["error"]["message"]])
for model in ("claude-opus-4-5", "claude-haiku-4-5"):
    ask(model)
threads = [threading.Thread(target=ask, args=("claude-sonnet-4-5-20250929",)) for _ in range(int(MANY))]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
if any(status[0] == 400 for status in statuses if isinstance(status, list)):
    threading.Event().wait()  # it has no answer before it is ended: one that it gives in time would count
print(json.dumps({"type": "result", "is_error": False, "session_id": "s", "result": json.dumps({"said": statuses})}))
"""
BOMB = """\
import pathlib, time
for number in range(1000):
    pathlib.Path(f"bomb{number}").write_bytes(bytes(1 << 20))
    time.sleep(0.01)
"""


@pytest.fixture
def person(tmp_path: Path) -> Person:
    """Somebody with a key, and a program in the place of the agent."""
    for folder in ("work", "bin", "own"):
        (tmp_path / folder).mkdir()
    extra = {
        "PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin",
        "HOME": str(tmp_path / "own"),
        "ANTHROPIC_API_KEY": "made-up",
    }
    return Person(tmp_path / "home", tmp_path / "work", extra)


def attempts(person: Person) -> list[dict[str, Any]]:
    """What is kept of every attempt of the run."""
    (file,) = person.home.rglob("attempts.jsonl")
    return [json.loads(line) for line in file.read_text().splitlines()]


def greedy(person: Person, tokens: ScriptedUsage, many: int) -> tuple[Result, int]:
    """Run a program in the place of claude that asks other models, and many times at once; the answers it got."""
    program = person.cwd.parent / "bin" / "claude"
    program.write_text(GREEDY.replace("MANY", str(many)))
    program.chmod(0o755)
    folder = person.workflow("flow", FLOW)

    async def go() -> tuple[Result, int]:
        async with ModelServer({"dear": [Say("x", tokens=tokens)]}) as server:
            person.extra["ANTHROPIC_BASE_URL"] = server.url("dear")
            result = await asyncio.to_thread(person.runs, "run", folder, "--json")
            return result, server.count("dear")

    return asyncio.run(go())


def test_an_agent_asks_its_own_model_and_no_other(person: Person) -> None:
    """What it was given, and the small one beside it; the rest is refused with the list."""
    result, count = greedy(person, ScriptedUsage(input=100, output=10, cached=0), 2)
    assert result.code == 0, result.err
    (said,) = [value["said"] for value in _values(result.json()) if isinstance(value, dict) and "said" in value]
    other, *own = said
    assert other[0] == 403
    assert "may not ask the model 'claude-opus-4-5', only claude-*sonnet*, claude-*haiku*" in other[1]
    assert (own, count) == ([200, 200, 200], 3)


def test_many_requests_at_once_stay_within_the_turns_money(person: Person) -> None:
    """Each costs about a cent and a half: not forty of them are answered for twenty cents, and the run parks."""
    result, count = greedy(person, ScriptedUsage(input=100, output=1000, cached=0), 40)
    assert 5 <= count <= 14
    assert result.code == 3, result.err + result.out
    (attempt,) = attempts(person)
    assert attempt["class"] == "budget"
    assert 0.1 < attempt["cost"] <= 0.2


def test_an_agent_that_fills_the_disk_is_told_as_that_once_and_the_space_comes_back(person: Person) -> None:
    """Neither a timeout nor tried again on the full tree."""
    program = person.cwd / "bomb.py"
    program.write_text(BOMB)
    person.extra |= {"AGENT_CMD": f"{shutil.which('python3')} {program}", "BAILIWICK_SANDBOX_DISK": "20 MB"}
    result = person.runs("run", person.workflow("flow", FLOW.replace("model: sonnet", "backend: command")), "--json")
    assert result.code == 3, result.err + result.out
    (attempt,) = attempts(person)
    assert attempt["class"] == "disk"
    assert "20 MB" in attempt["evidence"]
    left = sum(path.stat().st_size for path in person.home.rglob("bomb*"))
    assert left <= 1 << 20


def _values(value: Any) -> list[Any]:
    """Everything within a document."""
    below = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [value, *(found for part in below for found in _values(part))]
