"""A skill by the real command: cheap model first, its mistakes found, everything on record."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Sequence

from bailiwick.testing.model_server.script import Say
from tests.acceptance.command import Person, Result
from tests.model_places import ModelPlaces, Stub

FINDING = {
    "file": "price.py", "line": 2, "severity": "blocker", "title": "it subtracts", "detail": "1 and 2 give -1",
    "suggestion": "use +",
}  # fmt: skip
ACCEPT = Say('{"accept": true, "feedback": ""}')


def _review(line: int) -> Say:
    return Say(json.dumps({"status": "pass", "message": "one finding", "findings": [{**FINDING, "line": line}]}))


def _commands(person: Person, stubs: dict[str, Stub], models: str, *commands: Sequence[str]) -> list[Result]:
    """Run commands in a small project, one after the other, with these places for local models."""
    subprocess.run(["git", "init", "-q", str(person.cwd)], check=True)
    (person.cwd / "price.py").write_text("def total(a, b):\n    return a - b\n")
    config = person.home / "config"
    config.mkdir(parents=True)

    async def history() -> list[Result]:
        async with ModelPlaces(stubs) as places:
            urls = "".join(f"  {name}: {{url: {places.url(name)}}}\n" for name in stubs)
            (config / "config.yaml").write_text(f"version: 1\nendpoints:\n{urls}")
            (config / "models.yaml").write_text(models)
            return [await asyncio.to_thread(person.runs, *words) for words in commands]

    return asyncio.run(history())


def test_a_finding_that_points_nowhere_is_refused_and_the_next_model_asked(person: Person) -> None:
    """The check comes before the verifier; the call, its attempts and why it went so are on record afterwards."""
    stubs = {"small": Stub(says=(_review(99),)), "big": Stub(says=(_review(2),)), "judge": Stub(says=(ACCEPT,))}
    call, why, log = _commands(
        person,
        stubs,
        "verifier: judge/v\ndefault_chain: [small/a, big/b]\n",
        ("skill", "review", "--files", "price.py", "--session-id", "s1", "--json"),
        ("stats", "sessions", "--json"),
        ("skill", "session_log", "--session-id", "s1", "--json"),
    )
    told = call.json()
    assert (call.code, told["status"], told["model_used"], told["verified"]) == (0, "pass", "big/b", True)
    assert [(one["verdict"], one["model"]) for one in told["attempts"]] == [
        ("escalate", "small/a"),
        ("accept", "big/b"),
    ]
    assert told["attempts"][0]["feedback"] == "finding 1: price.py has 2 lines, so there is no line 99"
    assert why.json()["sessions"][0]["session_id"] == "s1"
    (entry,) = log.json()["entries"]
    assert (entry["skill"], entry["final_status"], len(entry["attempts"])) == ("review", "pass", 2)
    explained = person.runs("why", told["call"])
    assert explained.code == 0
    assert "default_chain of models.yaml:2" in explained.out


def test_local_only_reaches_nobody_outside(person: Person) -> None:
    """A chain that would leave the house is refused before anything is asked, with what to change."""
    (call,) = _commands(
        person,
        {"small": Stub(says=(_review(2),))},
        "local_only: true\ndefault_chain: [claude-opus-4-6]\n",
        ("skill", "review", "--files", "price.py"),
    )
    assert call.code == 2
    assert "local_only" in call.err
