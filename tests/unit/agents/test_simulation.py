"""Scripts of the simulated agent: read with every problem at its place, and the same throw of the dice each time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bailiwick.agents import simulation
from bailiwick.agents.simulation import Behaviour, Script, ScriptedAttempt
from bailiwick.errors import InputInvalid
from tests.unit.agents.asking import script_of
from tests.unit.docs.pages import ROOT, blocks

if TYPE_CHECKING:
    from pathlib import Path


@given(seed=st.integers(0, 1000), key=st.text(max_size=5), attempt=st.integers(1, 9))
def test_the_same_place_always_behaves_the_same(seed: int, key: str, attempt: int) -> None:
    """A resumed run must not throw the dice again."""
    choices = tuple((1.0, Behaviour(say=(word,))) for word in "abc")
    scripts = [Script(seed=seed, nodes={"step": ((ScriptedAttempt(choices),),)}) for _ in range(2)]
    first, again = (script.behaviour("step", 1, attempt, key) for script in scripts)
    assert first == again
    assert first in [behaviour for _, behaviour in choices]


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("nodes: {step: [{anser: {}}]}", "1:17", "'anser' is not known"),
        ("nodes: {step: [{hang: true, empty: true}]}", "1:29", "ends in one way, not in 2: hang, empty"),
        ("nodes:\n  step:\n    - edit: {../x: hi}\n", "3:14", "'../x' leaves the working directory"),
        ("nodes:\n  step:\n    - edit: {x: 3}\n", "3:17", "the text of a file"),
        ("nodes: {step: []}", "1:15", "a list that is not empty"),
        ("nodes: {step: [{empty: true}, [{empty: true}]]}", "1:15", "mixed"),
        ('nodes: {step: [{run: ["it\'s"]}]}', "1:23", "closed quotes"),
        ("nodes: {step: [{outage: {until: tomorrow}}]}", "1:33", "a time such as"),
        ("nodes: {step: [{cheat: bribe}]}", "1:24", "one of claim"),
        ("nodes: {step: [{choose: [{text: a, hang: true}]}]}", "1:36", "ends in one way"),
        ("sed: 3", "1:1", "'sed' is not known"),
    ],
)
def test_a_problem_of_a_script_is_told_at_its_place(tmp_path: Path, text: str, place: str, words: str) -> None:
    """A script is written by hand; a typo must not play the wrong piece."""
    with pytest.raises(InputInvalid) as failed:
        script_of(tmp_path, text)
    problem = failed.value.problems()[0]
    assert str(problem.place).endswith(f"script.yaml:{place}")
    assert words in problem.what + problem.hint


def test_every_problem_is_told_in_one_go(tmp_path: Path) -> None:
    """Nobody likes to correct a file line by line."""
    with pytest.raises(InputInvalid) as failed:
        script_of(tmp_path, "sed: 3\nnodes: {step: [{hang: maybe}, {edit: {/x: a}}]}")
    assert len(failed.value.problems()) == 3


def test_the_scripts_that_the_guide_shows_can_be_read(tmp_path: Path) -> None:
    """People begin by copying them; between them they show every field there is."""
    shown = [block.text for block in blocks(ROOT / "docs" / "how-to" / "simulate.md") if block.language == "yaml"]
    scripts = [text for text in shown if text.startswith(("# file: script.yaml", "nodes:", "seed:"))]
    read = [script_of(tmp_path, text) for text in scripts]
    assert len(read) >= 3
    fields = [known.name for known in simulation._BEHAVIOUR.fields]
    missing = [name for name in fields if not any(f"{name}:" in text for text in scripts)]
    assert missing == []
