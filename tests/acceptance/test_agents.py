"""Agents from the command line: the simulated one, any program, and files of workhorse-agent 0.1.0 as they are."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.acceptance.command import Person

OLD = """name: old
start: think
vars: {topic: lighthouses}
nodes:
  - id: think
    type: agent
    prompt: prompts/think.md
    args: {who: "the {{ topic }} club", nothing: "{{ missing.deep }}"}
    model: opus
    outputs: [{key: idea}, {key: score, default: 0}]
    next: done
  - {id: done, type: terminal}
"""
PROMPT = "Dear {{ who }},\n{% include 'prompts/rules.md' %}\nTopic: {{ topic }}.{{ nothing }}\n"
PROGRAM = """import json, pathlib, sys
pathlib.Path(sys.argv[1]).write_text(sys.stdin.read())
print("Thinking about", sys.argv[2])
print(json.dumps({"idea": "a lamp", "score": 3}))
"""


def _old(person: Person) -> Path:
    flow = person.workflow("old", OLD)
    (flow / "prompts").mkdir()
    (flow / "prompts" / "think.md").write_text(PROMPT)
    (flow / "prompts" / "rules.md").write_text("Be brief.\n")
    program = person.cwd / "agent.py"
    program.write_text(PROGRAM)
    person.extra["AGENT_CMD"] = f"{sys.executable} {program} seen.txt {{model}}"
    return flow


def _seen(person: Person) -> str:
    """What the agent wrote where it works; it can write nowhere else."""
    (found,) = (person.home / "state" / "workspaces").glob("*/seen.txt")
    return found.read_text()


@pytest.mark.needs("sandbox")
def test_a_workhorse_file_runs_as_it_is_with_its_own_variables(person: Person) -> None:
    """Its prompt arrives to the letter, the last newline too; nothing is appended to it; AGENT_CMD is the agent."""
    flow = _old(person)
    result = person.runs("run", flow, "--json")
    assert result.code == 0, result.err
    assert (result.json()["context"]["idea"], result.json()["context"]["score"]) == ("a lamp", 3)
    assert _seen(person) == "Dear the lighthouses club,\nBe brief.\n\nTopic: lighthouses.\n"


@pytest.mark.needs("sandbox")
def test_a_workhorse_file_defaults_what_it_can_not_get_and_says_so(person: Person) -> None:
    """Null where nothing is declared, exit code 4, and every attempt on record."""
    flow = _old(person)
    person.extra |= {
        "AGENT_CMD": "echo no idea",
        "AGENT_MAX_REPHRASE_ATTEMPTS": "1",
        "AGENT_INVOKE_BACKOFF_BASE_S": "0.01",
    }
    result = person.runs("run", flow, "--json")
    assert result.code == 4, result.err
    assert (result.json()["context"]["idea"], result.json()["context"]["score"]) == (None, 0)
    lines = (person.home / "state" / "runs" / "old-default" / "think" / "attempts.jsonl").read_text().splitlines()
    attempts = [json.loads(line) for line in lines]
    assert [a["rung"] for a in attempts] == ["first", "reframe"]
    assert {a["class"] for a in attempts} == {"bad_output"}
    assert attempts[-1]["decision"] == "default"


@pytest.mark.needs("sandbox")
def test_defaults_can_be_switched_off(person: Person) -> None:
    """`AGENT_USE_DEFAULT_OUTPUTS=false`: a hard stop instead."""
    flow = _old(person)
    person.extra |= {"AGENT_CMD": "echo no", "AGENT_USE_DEFAULT_OUTPUTS": "false", "AGENT_MAX_REPHRASE_ATTEMPTS": "0"}
    assert person.runs("run", flow).code == 1


@pytest.mark.needs("sandbox")
def test_a_simulated_run_is_resumed_as_one(person: Person) -> None:
    """Whoever goes on with it asks the same agent, though no flag says so again."""
    flow = person.workflow(
        "sim",
        "version: 1\nstart: q\nnodes:\n"
        "  - {id: q, type: ask, question: go?, choices: [go], next: a}\n"
        "  - {id: a, type: agent, prompt_text: hello, outputs: [{key: x, schema: {type: integer}}], next: d}\n"
        "  - {id: d, type: terminal}\nreturns: [x]\n",
    )
    assert person.runs("run", flow, "--simulate").code == 3
    assert person.runs("runs", "answer", "sim", "go").code == 0
    person.extra["PATH"] = "/usr/bin:/bin"
    assert person.runs("run", flow, "--json").code == 0


@pytest.mark.needs("sandbox")
def test_a_budget_on_the_command_line_parks_the_run(person: Person) -> None:
    """Exit code 5, and the question says what is used up; a raise lets it go on."""
    nodes = "".join(
        f"  - {{id: a{i}, type: agent, prompt_text: hi, outputs: [{{key: x}}], next: a{i + 1}}}\n" for i in range(3)
    )
    flow = person.workflow("paid", f"start: a0\nnodes:\n{nodes}  - {{id: a3, type: terminal}}\n")
    person.extra["AGENT_CMD"] = "echo '{\"x\": 1}'"
    result = person.runs("run", flow, "--budget-usd", "2", "--json")
    assert result.code == 5, result.out + result.err
    assert person.runs("runs", "answer", "paid", "raise").code == 0
    assert person.runs("resume", "paid").code == 0


def test_agents_and_limits_answer_without_spending(person: Person) -> None:
    """What is there, what is not, and how to get it."""
    listed = person.runs("agents", "--json")
    assert listed.code == 0
    assert "simulate" in listed.out
    assert person.runs("limits").code == 0
    assert person.runs("login", "claude").code == 2, "never a prompt without a terminal"
