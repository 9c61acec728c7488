"""What a command says about the agent it was told to use, before anything starts and when a run keeps its own."""

from __future__ import annotations

import pytest

from tests.acceptance.command import Person

FLOW = (
    "version: 1\nname: chosen\nstart: q\nnodes:\n"
    "  - {id: q, type: ask, question: go?, choices: [go], next: a}\n"
    "  - {id: a, type: agent, prompt_text: hello, outputs: [{key: x}], next: d}\n"
    "  - {id: d, type: terminal}\n"
)


@pytest.mark.parametrize(
    ("words", "env", "code", "said"),
    [
        (("--backend", "openai", "--model", "m"), {}, 2, "endpoints.openai.url"),
        (("--backend", "openai"), {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}, 2, "--model NAME"),
        (("--backend", "ollama"), {}, 2, "--model NAME"),
        (("--backend", "openai", "--model", "m"), {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}, 3, "go?"),
    ],
)
def test_what_can_not_be_asked_is_refused_before_anything_starts(
    person: Person, words: tuple[str, ...], env: dict[str, str], code: int, said: str
) -> None:
    """With the key to set; nothing is left behind that waits for it."""
    flow = person.workflow("chosen", FLOW)
    person.extra |= {"OPENAI_API_KEY": "", "OPENAI_BASE_URL": "", "LITELLM_BASE_URL": "", **env}
    result = person.runs("run", flow, *words, timeout=600)
    assert result.code == code, result.out + result.err
    assert said in result.out + result.err
    assert ("chosen" in person.runs("runs", "list", timeout=600).out) is (code == 3)


def test_a_run_that_keeps_its_agent_says_so(person: Person) -> None:
    """A flag that changes nothing must not look as if it did."""
    flow = person.workflow("chosen", FLOW)
    assert person.runs("run", flow, "--simulate", timeout=600).code == 3
    again = person.runs("run", flow, "--backend", "ollama", "--model", "m", timeout=600)
    assert again.code == 3, again.out + again.err
    words = "the run keeps the agent it was started with (backend simulate); backend ollama, model m is not used"
    assert words in again.out + again.err
    latest = person.runs("run", "--resume-latest", "--backend", "ollama", timeout=600)
    assert "keeps the agent" in latest.out + latest.err
    assert "keeps the agent" not in person.runs("run", flow, "--simulate", timeout=600).err


def test_workflow_dir_names_the_workflow_where_none_is_named(person: Person) -> None:
    """As workhorse had it; a name on the command line wins, and a directory that is none is an error."""
    person.extra["WORKFLOW_DIR"] = str(person.workflow("chosen", FLOW))
    assert person.runs("run", "--simulate", timeout=600).code == 3
    assert "chosen" in person.runs("runs", "list", timeout=600).out
    other = person.workflow("other", "version: 1\nname: other\nstart: d\nnodes:\n  - {id: d, type: terminal}\n")
    assert person.runs("run", other, timeout=600).code == 0
    person.extra["WORKFLOW_DIR"] = str(person.cwd / "nowhere")
    gone = person.runs("run", timeout=600)
    assert gone.code == 2
    assert "nowhere" in gone.err


@pytest.mark.parametrize(
    ("how", "said"), [("estimate", "each counts as $1"), ("allow", "is not counted: budget.unknown_cost is allow")]
)
def test_calls_that_nobody_prices_are_told_as_what_they_count(person: Person, how: str, said: str) -> None:
    """Unknown is not zero, and whoever pays is told so before the first call."""
    flow = person.workflow("chosen", FLOW)
    person.extra |= {"AGENT_CMD": "echo '{\"x\": 1}'", "BAILIWICK_BUDGET_UNKNOWN_COST": how}
    result = person.runs("run", flow, timeout=600)
    assert result.code == 3
    assert said in result.out + result.err
