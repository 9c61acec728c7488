"""A skill on a real project by the real claude: behind the sandbox, with a brokered key, its work checked by tests."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from bailiwick.processes.children import find_children
from bailiwick.testing.model_server.script import Hang, Say, Scenario, Step, UseTool
from bailiwick.testing.model_server.server import ModelRequestSeen, ModelServer
from tests.acceptance.command import BAILIWICK, Person, Result, end
from tests.agents.conftest import need
from tests.agents.desk import AGENTS, claude_calls, tool_results

pytestmark = pytest.mark.slow

CLAUDE = "claude-sonnet-4-6"
TEST = "tests/test_add.py"
PROJECT = {
    "calc.py": "def add(a, b):\n    return a - b\n",
    TEST: "from calc import add\n\n\ndef test_add():\n    assert add(1, 2) == 3\n",
    "pytest.ini": "[pytest]\npythonpath = .\n",
}
SOLVED = {**PROJECT, "calc.py": "def add(a, b):\n    return a + b\n"}
GREEN = ("skill", "tdd_green", "--test-path", TEST, "--test-cmd", "pytest -q", "--json")
STATS = ("stats", "models", "--json")
DONE = (
    UseTool("structured", raw='{"status": "pass", "message": "It adds now.", "file_path": "calc.py"}'),
    Say("Done."),
)
KEY = "made-up-and-secret"


@pytest.fixture
def person(tmp_path: Path) -> Iterator[Person]:
    """Somebody with a project whose one test is red, and claude as the only model."""
    need("claude")
    for folder in ("work/tests", "own", "tmp", "home/config"):
        (tmp_path / folder).mkdir(parents=True)
    for name, text in PROJECT.items():
        (tmp_path / "work" / name).write_text(text)
    subprocess.run(["git", "init", "-q", str(tmp_path / "work")], check=True, timeout=600)
    (tmp_path / "home" / "config" / "models.yaml").write_text(f"default_chain: [{CLAUDE}]\n")
    extra = {
        "PATH": f"{BAILIWICK.parent}:{AGENTS / 'bin'}:{os.environ['PATH']}",
        "HOME": str(tmp_path / "own"),
        "TMPDIR": str(tmp_path / "tmp"),
        "ANTHROPIC_API_KEY": KEY,
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "AGENT_INVOKE_BACKOFF_BASE_S": "0.1",
    }
    yield Person(tmp_path / "home", tmp_path / "work", extra)
    assert find_children({"HOME": extra["HOME"]}) == []


def _edits(path: str, old: str, new: str) -> list[Step]:
    """What a model does to change a file: claude lets it edit only what it has read."""
    return [
        claude_calls("Read", file_path=path),
        claude_calls("Edit", file_path=path, old_string=old, new_string=new),
    ]


def _commands(person: Person, steps: Scenario, *commands: Sequence[str]) -> tuple[list[Result], list[ModelRequestSeen]]:
    """Run commands one after the other; the model behind claude plays `steps`."""

    async def history() -> tuple[list[Result], list[ModelRequestSeen]]:
        async with ModelServer({"scene": steps}) as server:
            person.extra["ANTHROPIC_BASE_URL"] = server.url("scene")
            return [await asyncio.to_thread(person.runs, *words) for words in commands], server.requests

    return asyncio.run(history())


def _copies(person: Person) -> list[Path]:
    """Where the project's file is found besides the project."""
    return [path for path in person.home.parent.rglob("calc.py") if path != person.cwd / "calc.py"]


def _files(person: Person) -> dict[str, str]:
    """The project as it is now."""
    every = [path for path in person.cwd.rglob("*") if path.is_file() and ".git" not in path.parts]
    return {str(path.relative_to(person.cwd)): path.read_text() for path in every}


def test_claude_makes_a_test_green_and_the_tests_say_so(person: Person) -> None:
    """All of it together: its edit is brought into the project because the tests ran, not because it said so."""
    (call, stats), requests = _commands(person, [*_edits("calc.py", "a - b", "a + b"), *DONE], GREEN, STATS)
    assert call.code == 0, call.out + call.err
    told = call.json()
    assert (told["status"], told["verified"], told["model_used"]) == ("pass", True, CLAUDE)
    assert told["file_path"] == str(person.cwd / "calc.py")
    assert "1 passed" in told["runner_output"]
    assert _files(person) == SOLVED
    (attempt,) = told["attempts"]
    assert (attempt["tier"], attempt["verdict"], attempt["verified"]) == ("subagent", "accept", True)
    assert min(attempt["tokens"].values()) > 0
    assert attempt["cost"] > 0
    (row,) = stats.json()["models"]
    assert (row["skill"], row["model"], row["calls"], row["accepted"]) == ("tdd", CLAUDE, 1, 1)
    assert row["cost"] == pytest.approx(attempt["cost"])
    assert (find_children({"BAILIWICK_ROOT": told["call"]}), _copies(person)) == ([], [])
    assert {seen.headers["x-api-key"] for seen in requests if seen.step is not None} == {KEY}


@pytest.mark.nightly
def test_a_test_that_claude_changed_is_refused_and_the_project_stays_as_it_was(person: Person) -> None:
    """Green by a changed test is no green, whatever claude answers; the command says why and exits 6."""
    steps = [*_edits(TEST, "add(1, 2) == 3", "add(1, 2) == -1"), *DONE]
    (call, stats), _ = _commands(person, steps, GREEN, STATS)
    assert call.code == 6, call.out + call.err
    told = call.json()
    assert (told["status"], told["verified"]) == ("fail", False)
    why = f"{TEST} is a test and was changed: the tests have to stay as they are"
    assert [(one["verdict"], one["feedback"]) for one in told["attempts"]] == [("escalate", why)]
    assert why in told["error"]
    assert _files(person) == PROJECT
    (row,) = stats.json()["models"]
    assert (row["accepted"], row["escalated"]) == (0, 1)
    assert row["cost"] > 0


@pytest.mark.nightly
def test_a_wrong_edit_is_refused_by_what_the_tests_say(person: Person) -> None:
    """Claude's own word for it counts for nothing."""
    (call,), _ = _commands(person, [*_edits("calc.py", "a - b", "a * b"), *DONE], GREEN)
    assert call.code == 6, call.out + call.err
    told = call.json()
    assert (told["status"], told["verified"]) == ("fail", False)
    assert "1 failed" in told["runner_output"]
    assert _files(person) == PROJECT


@pytest.mark.nightly
def test_behind_the_fence_claude_reaches_neither_the_key_nor_the_project(person: Person) -> None:
    """It works on a copy with a key that is good for nothing else; what it writes at the project's place is nowhere."""
    reach = f"env; cat {person.cwd}/calc.py; mkdir -p {person.cwd}; echo spoilt > {person.cwd}/calc.py"
    (call,), requests = _commands(person, [UseTool("shell", reach), *_edits("calc.py", "a - b", "a + b"), *DONE], GREEN)
    assert call.code == 0, call.out + call.err
    assert _files(person) == SOLVED
    asked = [seen for seen in requests if seen.step is not None]
    said = json.dumps(tool_results(asked[1]))
    assert "ANTHROPIC_API_KEY=bw-turn-" in said
    assert KEY not in json.dumps([seen.body for seen in asked])
    assert f"cat: {person.cwd}/calc.py: No such file or directory" in said


@pytest.mark.nightly
def test_interrupted_it_leaves_no_process_and_no_change(person: Person) -> None:
    """Ctrl-C while the model is silent: claude, its tools and its copy are gone, and the call is on record."""
    steps: Scenario = [UseTool("shell", "echo root=$BAILIWICK_ROOT=; echo spoilt > calc.py"), Hang()]

    async def history() -> tuple[str, int, str]:
        async with ModelServer({"scene": steps}) as server:
            person.extra["ANTHROPIC_BASE_URL"] = server.url("scene")
            process = person.starts(*GREEN)
            try:
                while server.count("scene") < len(steps):
                    server.asked.clear()
                    await server.asked.wait()
                found = re.search(r"root=(c-[0-9a-f]+)=", json.dumps(tool_results(server.requests[-1])))
                assert found is not None
                assert find_children({"BAILIWICK_ROOT": found[1]}) != []
                assert _copies(person) != []
                process.send_signal(signal.SIGINT)
                out, _ = await asyncio.to_thread(process.communicate, timeout=600)
            finally:
                await asyncio.to_thread(end, process)
            return found[1], process.returncode, out

    call, code, out = asyncio.run(history())
    assert code == 130, out
    assert (find_children({"BAILIWICK_ROOT": call}), _copies(person)) == ([], [])
    assert _files(person) == PROJECT
    told = json.loads(out)
    assert (told["call"], told["status"]) == (call, "error")
    assert "cancelled" in told["error"]
    assert told["attempts"][0]["cost"] > 0
