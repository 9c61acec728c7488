"""Asking a recorded turn once more."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.acceptance.command import Person

pytestmark = pytest.mark.slow

FLOW = """version: 1
name: think
start: a
nodes:
  - {id: a, type: agent, prompt_text: "What is {{ 1 + 1 }}?", outputs: [{key: x, schema: {type: integer}}], next: d}
  - {id: d, type: terminal}
returns: [x]
"""


def test_a_turn_is_asked_once_more_and_the_run_stays_as_it_is(person: Person) -> None:
    """Would another model have done better? Both answers are shown, the new one is paid for, the journal stays."""
    flow = person.workflow("think", FLOW)
    assert person.runs("run", flow, "--simulate", timeout=600).code == 0
    before = person.runs("runs", "logs", "think", "--json").json()
    (person.cwd / "other.md").write_text("What is 3 + 4?\n")
    asked = person.runs("runs", "reask", "think", "a", "--model", "tiny", "--prompt", "other.md", "--json").json()
    assert asked["recorded"]["prompt"].startswith("What is 2?")
    assert (asked["recorded"]["model"], asked["model"], asked["ok"]) == (None, "tiny", True)
    assert '"x"' in asked["recorded"]["answer"]
    assert '"x"' in asked["answer"]
    shown = person.runs("runs", "reask", "think", "a").out
    assert "as recorded" in shown
    assert "asked again" in shown
    assert person.runs("runs", "logs", "think", "--json").json() == before
    costs = {one["name"]: one["lines"] for one in person.runs("costs", "--json").json()["workflows"]}
    assert costs["skill reask"] == 2


def test_what_asked_no_agent_can_not_be_asked_again(person: Person) -> None:
    """Exit 2, with what there is."""
    assert person.runs("run", person.workflow("think", FLOW), "--simulate", timeout=600).code == 0
    refused = person.runs("runs", "reask", "think", "d")
    assert (refused.code, "asked no agent" in refused.err) == (2, True)
    assert person.runs("runs", "reask", "think", "a", "--prompt", "nowhere.md").code == 2
