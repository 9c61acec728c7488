"""Which tiers can be reached, found out without asking any model."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from bailiwick.agents.settings import read_settings
from bailiwick.clock import ManualClock
from bailiwick.journal.rows import AttemptRow
from bailiwick.routing.cooldown import Cooldowns
from bailiwick.routing.models_file import Models
from bailiwick.routing.tiers import TierState, TierSurvey, tiers
from tests.model_places import FAULTS, ModelPlaces, Stub, faulty, refused
from tests.unit.config.places import ConfigLayers
from tests.unit.routing.test_cooldown import Memory

MODELS = Models(default_chain=("ollama/phi4", "ollama/gone", "claude-sonnet-4-6"), verifier="claude-opus-4-6")


def program(folder: Path, name: str, says: str) -> None:
    """Put a program on the PATH that answers to --version, and to nothing else."""
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f'#!/bin/sh\n[ "$*" = --version ] && echo "{says}" && exit 0\necho spent > "$0.spent"\n', "utf-8")
    path.chmod(0o755)


class MachineWithPrograms:
    """A person's machine with programs in `bin` and nothing else on the PATH."""

    def __init__(self, tmp_path: Path, variables: Mapping[str, str] | None = None) -> None:
        self.bin = tmp_path / "bin"
        self.bin.mkdir()
        self.world = ConfigLayers(tmp_path, dict(variables or {}))
        self.memory, self.clock = Memory(), ManualClock()

    def survey(self, models: Models = MODELS, seconds: float = 5.0, *, programs: bool = False) -> TierSurvey:
        """What would be looked at now; without `programs` only the local tiers."""
        config = self.world.load()
        self.world.variables["PATH"] = str(self.bin)
        settings = read_settings(config)
        settings = settings if programs else replace(settings, allowed=())
        return TierSurvey(
            config, settings, models, Cooldowns(self.memory, self.clock), self.world.environment(), seconds
        )

    def look(self, models: Models = MODELS, *, programs: bool = False) -> dict[str, TierState]:
        """Every tier by its name."""
        return {state.name: state for state in asyncio.run(tiers(self.survey(models, programs=programs)))}

    def look_at(self, stub: Stub, variable: str = "OLLAMA_HOST", seconds: float = 5.0) -> tuple[TierState, list[str]]:
        """The one local tier, served by a stub, and what that was asked."""

        async def go() -> tuple[TierState, list[str]]:
            async with ModelPlaces({"stub": stub}) as places:
                self.world.variables[variable] = places.url("stub")
                [found] = await tiers(self.survey(seconds=seconds))
                return found, sorted(f"{seen.method} {seen.path}" for seen in places.requests)

        return asyncio.run(go())


@pytest.fixture
def stage(tmp_path: Path) -> MachineWithPrograms:
    """A machine without any agent."""
    return MachineWithPrograms(tmp_path)


def test_ollama_is_asked_for_its_lists_and_no_model_for_anything(stage: MachineWithPrograms) -> None:
    """What is there, what is loaded, and what a chain names in vain, for nothing."""
    state, asked = stage.look_at(Stub(models=("phi4:latest", "other"), loaded=("phi4:latest",)))
    assert asked == ["GET /api/ps", "GET /api/tags"]
    assert (state.name, state.tier, state.reachable, state.cloud) == ("ollama", "local", True, False)
    assert state.probed.startswith("GET http://127.0.0.1:")
    assert state.probed.endswith("/stub/api/tags")
    assert (state.models, state.loaded) == (("ollama/phi4", "ollama/gone"), ("phi4:latest",))
    assert (state.missing, state.said) == (("ollama/gone",), "it answers and lists 2 models")


def test_litellm_is_asked_for_its_models(stage: MachineWithPrograms) -> None:
    """It lists whole names, and knows nothing of what is loaded."""
    state, asked = stage.look_at(Stub(models=("ollama/phi4", "ollama/gone")), "LITELLM_BASE_URL")
    assert asked == ["GET /v1/models"]
    assert (state.name, state.reachable, state.missing, state.loaded) == ("litellm", True, (), ())


def test_llama_swap_tells_what_runs(stage: MachineWithPrograms) -> None:
    """A configured endpoint that is llama-swap is asked both."""
    state, asked = stage.look_at(Stub(models=("phi4", "gone"), loaded=("phi4",)), "LLAMA_SWAP_URL")
    assert asked == ["GET /running", "GET /v1/models"]
    assert (state.name, state.reachable, state.missing, state.loaded) == ("llama-swap", True, (), ("phi4",))


@pytest.mark.parametrize("fault", sorted(set(FAULTS) - {"empty-choices", "wrong-shape"}))
def test_a_place_that_fails_is_told_as_such(stage: MachineWithPrograms, fault: str) -> None:
    """In words, within its time, and never as an exception."""
    state, _ = stage.look_at(faulty(fault), seconds=0.2)
    assert not state.reachable
    assert state.said


def test_a_place_that_answers_without_a_list_is_reachable_and_odd(stage: MachineWithPrograms) -> None:
    """Some servers have no list; that is no reason to call every model missing."""
    state, _ = stage.look_at(faulty("wrong-shape"))
    assert (state.reachable, state.missing, state.said) == (True, (), "it answers, but lists no models")


def test_a_place_that_nobody_listens_at_says_so(stage: MachineWithPrograms) -> None:
    """The most usual fault, and the one with the plainest remedy."""
    with refused() as url:
        stage.world.variables["OLLAMA_HOST"] = url
        state = stage.look()["ollama"]
    assert not state.reachable
    assert "nothing listens at" in state.said


def test_a_key_that_cannot_be_found_is_told_and_nothing_is_asked(stage: MachineWithPrograms) -> None:
    """A list of tiers is also read to find out what is not set up."""
    stage.world.write_person("endpoints: {box: {url: 'http://127.0.0.1:1', key: '${secret:env:GONE}'}}\n")
    state = stage.look()["box"]
    assert (state.reachable, state.probed) == (False, "nothing was asked")
    assert "GONE" in state.said


def test_a_password_in_an_address_is_not_shown(stage: MachineWithPrograms) -> None:
    """The report goes to agents and into logs."""
    with refused() as url:
        stage.world.write_person(f"endpoints: {{box: {{url: '{url.replace('//', '//me:secret@')}'}}}}\n")
        state = stage.look()["box"]
    assert "secret" not in str(state.to_json())


def test_programs_are_asked_for_their_version_alone(stage: MachineWithPrograms) -> None:
    """`--version` spends nothing; a program that is not there is told with how to get it."""
    program(stage.bin, "claude", "2.1.325 (Claude Code)")
    stage.world.variables["ANTHROPIC_API_KEY"] = "sk-ant-1"
    found = stage.look(programs=True)
    claude, codex = found["claude"], found["codex"]
    assert (claude.tier, claude.reachable, claude.cloud, claude.probed) == ("subagent", True, True, "claude --version")
    assert claude.models == ("claude-sonnet-4-6", "claude-opus-4-6")
    assert claude.said.startswith("claude 2.1.325")
    assert "credential" not in claude.said
    assert (codex.reachable, codex.models) == (False, ())
    assert [path.name for path in stage.bin.iterdir()] == ["claude"]


def test_a_program_without_a_credential_says_that_it_will_not_answer(stage: MachineWithPrograms) -> None:
    """Installed is not yet usable."""
    program(stage.bin, "claude", "2.1.325 (Claude Code)")
    claude = stage.look(programs=True)["claude"]
    assert not claude.reachable
    assert "no credential is set" in claude.said
    stage.world.variables["CLAUDE_CODE_USE_BEDROCK"] = "1"
    claude = stage.look(programs=True)["claude"]
    assert (claude.reachable, "agents.allow_exposed_credentials" in claude.said) == (False, True)
    stage.world.variables["ANTHROPIC_BASE_URL"] = "http://127.0.0.1:1"
    del stage.world.variables["CLAUDE_CODE_USE_BEDROCK"]
    assert stage.look(programs=True)["claude"].reachable


def test_backends_that_are_not_allowed_are_no_tiers(stage: MachineWithPrograms) -> None:
    """What may not be used need not be found."""
    stage.world.write_person("agents: {allowed_backends: [openai, codex]}\n")
    assert list(stage.look(programs=True)) == ["ollama", "codex"]


def test_a_tier_that_cools_down_says_until_when(stage: MachineWithPrograms) -> None:
    """Why a call skips a tier has to be visible."""
    with refused() as url:
        stage.world.variables["OLLAMA_HOST"] = url
        until = stage.clock.now() + 20
        stage.memory.kept[url.removeprefix("http://")] = (3, until)
        stage.memory.kept["program:codex"] = (4, until + 1)
        found = stage.look(programs=True)
    assert (found["ollama"].cooling_until, found["codex"].cooling_until) == (until, until + 1)
    assert found["claude"].cooling_until is None
    assert (found["claude"].cooling_why, found["ollama"].cooling_why) == ("", "no reason is on record")
    assert found["ollama"].to_json()["cooling_until"] == "2023-11-14T22:13:40.000Z"


def test_a_tier_that_is_held_back_after_one_failure_says_so_too(stage: MachineWithPrograms) -> None:
    """A limit closes an endpoint before it has failed three times: it is skipped, so it has to be seen, with why."""
    with refused() as url:
        stage.world.variables["OLLAMA_HOST"] = url
        until = stage.clock.now() + 25
        stage.memory.held = {f"openai:{url}": until, "claude": until + 1}
        stage.memory.tries = [
            AttemptRow(
                "c",
                1,
                stage.clock.now(),
                "review",
                "ollama/phi4",
                "local",
                "error",
                None,
                False,
                0,
                feedback="HTTP 429",
            )
        ]
        found = stage.look(programs=True)
    assert (found["ollama"].cooling_until, found["ollama"].to_json()["cooling_why"]) == (until, "HTTP 429")
    assert found["claude"].cooling_until == until + 1


def test_without_any_file_the_tiers_are_still_told(stage: MachineWithPrograms) -> None:
    """A person asks this first, before anything is set up."""
    with refused() as url:
        stage.world.variables["OLLAMA_HOST"] = url
        found = stage.look(Models(), programs=True)
    assert [(state.name, state.models) for state in found.values()] == [
        ("ollama", ()),
        ("claude", ()),
        ("codex", ()),
        ("copilot", ()),
    ]
