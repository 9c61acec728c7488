"""The router with tiers that nobody here wrote: a real llama-server as local tier, the real claude as the others."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from bailiwick.agents.asking import TurnRunner
from bailiwick.agents.settings import AgentSettings
from bailiwick.clock import SystemClock
from bailiwick.journal.slots import FileSlots
from bailiwick.journal.sqlite import SqliteStore
from bailiwick.processes.proc import become_subreaper
from bailiwick.routing.ask import ModelAccess
from bailiwick.routing.cooldown import Cooldowns
from bailiwick.routing.endpoints import Endpoints
from bailiwick.routing.model import Job, Outcome
from bailiwick.routing.models_file import Models
from bailiwick.routing.service import Router
from bailiwick.routing.slots import Slots
from bailiwick.testing.model_server.script import Say, Step, UseTool
from bailiwick.testing.model_server.server import ModelRequestSeen, ModelServer
from tests.agents.conftest import need
from tests.agents.desk import AGENTS
from tests.llama.conftest import llama
from tests.unit.config.places import ConfigLayers

__all__ = ["llama"]

CLAUDE = "claude-sonnet-4-6"
REJECT = json.dumps({"accept": False, "feedback": "cite a line"})
ACCEPT = json.dumps({"accept": True, "feedback": ""})
RESULT = json.dumps({"status": "pass", "message": "One finding.", "findings": [{"file": "a.py", "line": 1}]})
SHORT = {
    "type": "object",
    "properties": {"status": {"enum": ["pass", "fail"]}, "message": {"type": "string", "minLength": 3}},
    "required": ["status", "message"],
}
REVIEW = Job("review", "review", "Cite lines.", "phase: review", schema=SHORT, seconds=90.0)


def checked(text: str) -> list[Step]:
    """What a model does that is asked for a structured answer: it gives it by the tool, and says so."""
    return [UseTool("structured", raw=text), Say("Done.")]


def route(folder: Path, url: str, models: Models, steps: Sequence[Step]) -> tuple[Outcome, list[ModelRequestSeen]]:
    """Route a review; `steps` are what the model behind claude does."""
    become_subreaper()

    async def go() -> tuple[Outcome, list[ModelRequestSeen]]:
        clock, endpoints = SystemClock(), {"openai": {"url": url}}
        async with AsyncExitStack() as stack:
            server = await stack.enter_async_context(ModelServer({"scene": steps}))
            store = await SqliteStore.open(folder / "bailiwick.db", now=clock.now)
            stack.push_async_callback(store.close)
            home = folder / "home"
            home.mkdir()
            env = {
                "PATH": f"{AGENTS / 'bin'}:{os.environ['PATH']}",
                "HOME": str(home),
                "TZ": "UTC",
                "LANG": "C.UTF-8",
                "ANTHROPIC_BASE_URL": server.url("scene"),
                "ANTHROPIC_API_KEY": "made-up",
            }
            settings = AgentSettings(endpoints=endpoints)
            config = ConfigLayers(folder).load()
            access = ModelAccess(
                turns=TurnRunner(settings, store, clock),
                clock=clock,
                endpoints=Endpoints(endpoints),
                queue=Slots(FileSlots(config.paths.state / "endpoints").hold),
                cooldowns=Cooldowns(store, clock),
                environment=lambda: env,
            )
            router = Router(config=config, store=store, access=access, models=lambda: models)
            outcome = await router.call(REVIEW, None, show=lambda _text: None, cancel=asyncio.Event())
            return outcome, server.requests

    return asyncio.run(go())


@pytest.fixture
def claude() -> None:
    """The real claude."""
    need("claude")


@pytest.mark.usefixtures("claude")
def test_rejected_by_claude_a_local_answer_is_given_by_claude(llama: str, tmp_path: Path) -> None:
    """The whole way: a real local model, a real verifier, its feedback in the task of a real subagent."""
    models = Models(verifier=CLAUDE, default_chain=("tiny", CLAUDE))
    outcome, requests = route(tmp_path, llama, models, [*checked(REJECT), *checked(RESULT)])
    first, second = outcome.result.attempts
    assert (first.tier, first.verdict, first.verified, first.feedback) == ("local", "escalate", False, "cite a line")
    assert first.output_tokens
    assert (second.tier, second.verdict, second.verified) == ("subagent", "accept_unverified", None)
    assert (outcome.error, outcome.result.message, outcome.result.model_used) == ("", "One finding.", CLAUDE)
    assert outcome.result.findings == ({"file": "a.py", "line": 1},)
    asked = [json.dumps(seen.body) for seen in requests if seen.step is not None]
    assert "Prior attempt feedback: cite a line" in asked[-1]
    assert "Cite lines." in asked[-1]
    assert second.cost
    assert first.verifier is not None
    assert first.verifier.cost
    assert first.cost == first.verifier.cost


@pytest.mark.nightly
@pytest.mark.usefixtures("claude")
def test_accepted_by_claude_a_local_answer_counts(llama: str, tmp_path: Path) -> None:
    """Nobody dearer is asked for the work itself."""
    models = Models(verifier=CLAUDE, default_chain=("tiny", CLAUDE))
    outcome, _ = route(tmp_path, llama, models, checked(ACCEPT))
    assert [one.verdict for one in outcome.result.attempts] == ["accept"]
    assert (outcome.result.model_used, outcome.result.verified) == ("tiny", True)


def test_a_local_model_answers_in_the_shape_that_is_asked_for(llama: str, tmp_path: Path) -> None:
    """The schema reaches the server in the way it understands: even a tiny model gives a result."""
    outcome, requests = route(tmp_path, llama, Models(default_chain=("tiny",)), [Say("nobody asks")])
    assert (outcome.error, requests) == ("", [])
    (attempt,) = outcome.result.attempts
    assert (attempt.tier, attempt.verdict, attempt.cost) == ("local", "accept_unverified", 0.0)
    assert outcome.result.status in ("pass", "fail")


def test_a_local_model_that_is_judged_by_a_local_model_never_leaves_the_house(llama: str, tmp_path: Path) -> None:
    """A verdict in the wanted shape is read as one, whatever a tiny model decides; no cloud is asked."""
    models = Models(verifier="tiny", default_chain=("tiny",), local_only=True)
    outcome, requests = route(tmp_path, llama, models, [Say("nobody asks")])
    (attempt,) = outcome.result.attempts
    assert attempt.verdict in ("accept", "escalate")
    assert not attempt.feedback.startswith("verifier error")
    assert requests == []
