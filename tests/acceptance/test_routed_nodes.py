"""Agent nodes with `skill:` or `models:`: cheap models first, verified, over real sockets and the real command."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from bailiwick.testing.model_server.script import Fail, Say
from tests.acceptance.command import Person, Result
from tests.model_places import ModelPlaces, Stub

FLOW = """version: 1
name: colour
start: look
nodes:
  - id: look
    type: agent
    {how}
    prompt_text: Which colour has the door?
    outputs: [{{key: colour, schema: {{type: string}}}}]
    next: done
  - {{id: done, type: terminal}}
"""
MODELS = "verifier: judge/v\ndefault_chain: [small/a, big/b]\n"
RED, BLUE = (Say(json.dumps({"colour": name})) for name in ("red", "blue"))


def _verdict(*, accept: bool, feedback: str = "") -> Say:
    return Say(json.dumps({"accept": accept, "feedback": feedback}))


def _plays(
    person: Person, stubs: Mapping[str, Stub], how: str = "skill: review", models: str = MODELS
) -> tuple[Result, ModelPlaces]:
    """Run the node with these places; gives what the command left and what the places were asked."""
    flow = person.workflow("colour", FLOW.format(how=how))
    person.home.mkdir(parents=True, exist_ok=True)

    async def history() -> tuple[Result, ModelPlaces]:
        async with ModelPlaces(stubs) as places:
            lines = [f"  {name}: {{url: {places.url(name)}}}\n" for name in stubs]
            config = person.home / "config"
            config.mkdir(exist_ok=True)
            (config / "config.yaml").write_text("version: 1\nendpoints:\n" + "".join(lines))
            if models:
                (config / "models.yaml").write_text(models)
            return await asyncio.to_thread(person.runs, "run", flow, "--json"), places

    return asyncio.run(history())


def _asked(places: ModelPlaces, name: str) -> list[list[dict[str, Any]]]:
    bodies = [seen.body for seen in places.requests if seen.scenario == name and isinstance(seen.body, dict)]
    return [body["messages"] for body in bodies]


def test_a_cheap_answer_that_the_verifier_takes_is_the_end(person: Person) -> None:
    """The strong model is never asked, and the discipline of the skill stands above the task."""
    stubs = {"small": Stub(says=(RED,)), "judge": Stub(says=(_verdict(accept=True),)), "big": Stub(says=(BLUE,))}
    result, places = _plays(person, stubs)
    assert result.code == 0, result.err
    assert result.json()["context"] == {"colour": "red"}
    (messages,) = _asked(places, "small")
    assert [one["role"] for one in messages] == ["system", "user"]
    assert "iron law" in messages[0]["content"].lower()
    assert _asked(places, "big") == []


def test_what_the_verifier_holds_against_an_answer_goes_to_the_next_model(person: Person) -> None:
    """A reject escalates at once; the stronger model is told why, and its own answer is judged too."""
    verdicts = (_verdict(accept=False, feedback="the door was painted since"), _verdict(accept=True))
    stubs = {"small": Stub(says=(RED,)), "judge": Stub(says=verdicts), "big": Stub(says=(BLUE,))}
    result, places = _plays(person, stubs)
    assert (result.code, result.json()["context"]) == (0, {"colour": "blue"})
    (asked,) = _asked(places, "big")
    assert "Prior attempt feedback: the door was painted since" in asked[-1]["content"]
    rows = person.runs("stats", "models", "--json").json()["models"]
    assert [(row["skill"], row["model"], row["tier"]) for row in rows] == [
        ("review", "big/b", "local"),
        ("review", "small/a", "local"),
    ]
    assert [row["escalated"] for row in rows] == [0, 1]
    assert [row["cost"] for row in rows] == [0.0, 0.0]


def test_a_model_that_fails_is_passed_over_at_once_and_says_nothing_of_the_task(person: Person) -> None:
    """No retry and no wait while a stronger model is there; an error is no feedback."""
    stubs = {"small": Stub(says=(Fail(503),)), "judge": Stub(says=(_verdict(accept=True),)), "big": Stub(says=(BLUE,))}
    result, places = _plays(person, stubs)
    assert (result.code, result.json()["context"]) == (0, {"colour": "blue"})
    assert len(_asked(places, "small")) == 1
    assert "Prior attempt feedback" not in json.dumps(_asked(places, "big"))


def test_a_chain_of_the_node_s_own_needs_no_file_and_no_skill(person: Person) -> None:
    """`models: [a, b]`, with nobody named who could verify."""
    stubs = {"small": Stub(says=(Say("the door? hard to say"),)), "big": Stub(says=(BLUE,))}
    result, places = _plays(person, stubs, "models: [small/a, big/b]", models="")
    assert (result.code, result.json()["context"]) == (0, {"colour": "blue"})
    assert len(_asked(places, "small")) == 1


def test_a_skill_without_any_models_is_refused_before_anything_starts(person: Person) -> None:
    """Exit code 2, what to write, and where."""
    result, _ = _plays(person, {}, models="")
    assert result.code == 2
    assert "default_chain" in result.err + result.out


def test_a_simulated_run_asks_nobody_and_a_skill_needs_no_models_there(person: Person) -> None:
    """Trying a workflow out costs nothing, also where its nodes name skills."""
    flow = person.workflow("colour", FLOW.format(how="skill: review"))
    result = person.runs("run", flow, "--simulate", "--json")
    assert (result.code, list(result.json()["context"])) == (0, ["colour"])


def test_a_visit_goes_on_with_the_chain_it_began_with(person: Person) -> None:
    """models.yaml is edited while the node waits for its endpoint: its further attempts ask whom the first asked."""
    flow = person.workflow("colour", FLOW.format(how="skill: review"))
    config = person.home / "config"
    config.mkdir(parents=True)
    stubs = {"small": Stub(says=(Fail(429), RED)), "big": Stub(says=(BLUE,))}

    async def history() -> tuple[Result, Result, ModelPlaces]:
        async with ModelPlaces(stubs) as places:
            lines = [f"  {name}: {{url: {places.url(name)}}}\n" for name in stubs]
            knobs = "agents: {invoke_backoff_base: 7s, invoke_backoff_cap: 7s}\n"
            (config / "config.yaml").write_text(f"version: 1\n{knobs}endpoints:\n" + "".join(lines))
            (config / "models.yaml").write_text("default_chain: [small/a]\n")
            parked = await asyncio.to_thread(person.runs, "run", flow, "--no-wait", "--json")
            (config / "models.yaml").write_text("default_chain: [big/b]\n")
            return parked, await asyncio.to_thread(person.runs, "run", flow, "--json"), places

    parked, ended, places = asyncio.run(history())
    assert parked.code == 7, parked.err
    assert (ended.code, ended.json()["context"]) == (0, {"colour": "red"}), ended.err
    assert (len(_asked(places, "small")), _asked(places, "big")) == (2, [])
