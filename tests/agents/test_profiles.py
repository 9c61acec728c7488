"""The real codex with the operator's profiles, through the installed command: where its prompts go, and where not."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from bailiwick.testing.model_server.script import Say
from bailiwick.testing.model_server.server import ModelServer
from tests.acceptance.command import Person, Result
from tests.agents.conftest import need
from tests.agents.desk import AGENTS

FLOW = """\
version: 1
name: private
start: say
nodes:
  - {id: say, type: agent, prompt_text: The lighthouse is in the garden., outputs: [{key: n}], next: done}
  - {id: done, type: terminal}
"""
ANSWER = Say('{"n": 1}')


@pytest.fixture
def person(tmp_path: Path) -> Person:
    """Somebody with codex on the PATH, and no codex home yet."""
    need("codex")
    for folder in ("work", "own", "tmp"):
        (tmp_path / folder).mkdir()
    extra = {
        "PATH": f"{AGENTS / 'bin'}:{os.environ['PATH']}",
        "HOME": str(tmp_path / "own"),
        "TMPDIR": str(tmp_path / "tmp"),
        "AGENT_CLI": "codex",
        "BAILIWICK_BUDGET_UNKNOWN_COST": "allow",
    }
    person = Person(tmp_path / "home", tmp_path / "work", extra)
    person.workflow("private", FLOW)
    return person


def _profile(person: Person, url: str) -> None:
    folder = Path(person.extra["HOME"]) / ".codex"
    folder.mkdir(exist_ok=True)
    provider = f'[model_providers.house]\nname = "house"\nbase_url = "{url}/v1"\nenv_key = "HOUSE_KEY"\n'
    (folder / "local.config.toml").write_text(f'model_provider = "house"\nmodel = "house-model"\n{provider}')


def _asked(person: Person, more: Mapping[str, str], model: str) -> tuple[Result, ModelServer, ModelServer]:
    """Run it with a house and a vendor that both would answer."""

    async def go() -> tuple[Result, ModelServer, ModelServer]:
        async with ModelServer({"scene": [ANSWER]}) as house, ModelServer({"scene": [ANSWER]}) as vendor:
            _profile(person, house.url("scene"))
            person.extra |= {"OPENAI_BASE_URL": vendor.url("scene") + "/v1", **more}
            run = ("run", person.cwd / "private", "--model", model, "--json")
            return await asyncio.to_thread(person.runs, *run, timeout=600), house, vendor

    return asyncio.run(go())


@pytest.mark.parametrize(
    "more", [{}, {"OPENAI_API_KEY": "sk-vendor", "CODEX_API_KEY": "sk-other"}], ids=["alone", "beside"]
)
def test_the_prompt_of_a_profile_reaches_its_provider_and_nobody_else(person: Person, more: Mapping[str, str]) -> None:
    """With the profile's own key; no variable for another provider changes that."""
    result, house, vendor = _asked(person, {"HOUSE_KEY": "key-of-the-house", **more}, "local")
    assert result.code == 0, result.out + result.err
    assert vendor.requests == []
    (seen,) = [each for each in house.requests if each.method == "POST"]
    assert seen.headers["authorization"] == "Bearer key-of-the-house"
    assert seen.body["model"] == "house-model"
    assert "lighthouse" in str(seen.body)


def test_without_the_key_of_the_profile_nothing_is_sent(person: Person) -> None:
    """It is told before the run starts."""
    result, house, vendor = _asked(person, {"OPENAI_API_KEY": "sk-vendor"}, "local")
    assert result.code == 8, result.out + result.err
    assert "HOUSE_KEY" in result.err
    assert (house.requests, vendor.requests) == ([], [])


def test_an_unknown_profile_ends_the_command_at_once(person: Person) -> None:
    """Codex itself would pass it over."""
    result, house, vendor = _asked(person, {"OPENAI_API_KEY": "sk-vendor"}, "nosuch@x")
    assert result.code == 2, result.out + result.err
    assert "known: local" in result.err
    assert (house.requests, vendor.requests) == ([], [])
    assert "private" not in person.runs("runs", "list").out


def test_codex_starts_where_nobody_ever_ran_it(person: Person) -> None:
    """Its home is made for it."""

    async def go() -> tuple[Result, ModelServer]:
        async with ModelServer({"scene": [ANSWER]}) as vendor:
            person.extra |= {"OPENAI_BASE_URL": vendor.url("scene") + "/v1", "OPENAI_API_KEY": "sk-vendor"}
            run = ("run", person.cwd / "private", "--model", "@gpt-5", "--json")
            return await asyncio.to_thread(person.runs, *run, timeout=600), vendor

    result, vendor = asyncio.run(go())
    assert result.code == 0, result.out + result.err
    assert [each.headers["authorization"] for each in vendor.requests if each.method == "POST"] == ["Bearer sk-vendor"]
