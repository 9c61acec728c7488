"""The bundled disciplines: whole, and true to the contract that they tell models to keep."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from bailiwick.agents.port import Answered
from bailiwick.routing.model import Job, Result
from bailiwick.routing.result import read_result
from bailiwick.skills.authoring import STARTER
from bailiwick.skills.checks import SECTIONS, check_citations
from bailiwick.skills.folders import bundled_skills
from bailiwick.skills.model import SEVERITIES, Skill
from bailiwick.skills.schemas import FINDING
from bailiwick.skills.tools import TABLE

SKILLS = bundled_skills()
EXAMPLE = re.compile(r"^```json\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SHAPE = ("## Iron laws", "## What the task gives you", "## Procedure", "## Output contract", "## Good and bad")


def examples(skill: Skill) -> Iterator[dict[str, Any]]:
    """The answers that a discipline shows."""
    for text in (skill.body, *skill.parts.values()):
        yield from (json.loads(found) for found in EXAMPLE.findall(text))


def phases(name: str) -> set[str]:
    """The phases of a skill's tools."""
    return {tool.phase for tool in TABLE if tool.skill == name}


@pytest.mark.parametrize("skill", SKILLS.values(), ids=SKILLS)
def test_a_discipline_has_all_its_parts(skill: Skill) -> None:
    """Laws to be judged by, a procedure, a contract, examples, and what to do when it can't be done."""
    whole = [text for name, text in skill.parts.items() if name not in phases(skill.name)]
    for text in (skill.body, *whole):
        for part in (*SHAPE, "## Known excuses", "## When it can't be done"):
            assert f"\n{part}\n" in text, part
    lines = skill.body.count("\n")
    assert 80 <= lines <= 200
    laws = re.findall(r"^\d\. \*\*", skill.body.split("## Iron laws")[1].split("\n## ")[0], re.MULTILINE)
    assert 4 <= len(laws) <= 7


@pytest.mark.parametrize("skill", SKILLS.values(), ids=SKILLS)
def test_a_description_says_when_to_use_the_skill(skill: Skill) -> None:
    """A client chooses by it, so it holds the words that people say; the tools' descriptions too."""
    assert "Use when " in skill.description
    assert len(re.findall(r'"[^"]+"', skill.description)) >= 3
    assert len(skill.description) <= 1024
    for tool in TABLE:
        if tool.skill == skill.name:
            assert "Use it " in tool.doc
            assert '"' in tool.doc


@pytest.mark.parametrize("skill", SKILLS.values(), ids=SKILLS)
def test_a_discipline_answers_the_excuses_that_are_known(skill: Skill) -> None:
    """The thought before a law is broken, and what to do instead: at least four of them, each with an answer."""
    whole = [text for name, text in skill.parts.items() if name not in phases(skill.name)]
    for text in (skill.body, *whole):
        rows = re.findall(r"^\| (.+?) \| (.+?) \|$", text.split("## Known excuses")[1].split("\n## ")[0], re.MULTILINE)
        assert rows[0] == ("the thought", "the answer")
        assert len(rows) >= 5


def test_each_phase_of_tdd_is_a_text_of_its_own_that_is_loaded_when_it_is_done() -> None:
    """Who writes a test does not read how code is refactored."""
    tdd = SKILLS["tdd"]
    assert phases("tdd") == set(tdd.parts)
    for phase, text in tdd.parts.items():
        for part in ("## Procedure", "## An answer", "## When it can't be done"):
            assert f"\n{part}\n" in text
        assert f"[{phase}.md]({phase}.md)" in tdd.body
        told = tdd.discipline(phase)
        assert told.endswith(text)
        assert not [other for name, other in tdd.parts.items() if name != phase and other in told]
    assert SKILLS["review"].discipline("review") == SKILLS["review"].body


def test_debug_reproduces_and_bisects_before_it_explains() -> None:
    """In that order, and its answer says how."""
    procedure = SKILLS["debug"].body.split("## Procedure")[1].split("\n## ")[0]
    assert (
        procedure.index("**Reproduce**") < procedure.index("**Bisect**") < procedure.index("**Write down hypotheses**")
    )
    for one in examples(SKILLS["debug"]):
        assert one["details"]["reproduction"]["command"]
        assert "bisected" in one["details"]


@pytest.mark.parametrize("skill", SKILLS.values(), ids=SKILLS)
def test_every_example_is_a_result_as_the_router_reads_it(skill: Skill) -> None:
    """Models copy examples; one that breaks the contract would be copied too."""
    shown = list(examples(skill))
    assert {one["status"] for one in shown} > {"pass"}
    assert {one["phase"] for one in shown} == phases(skill.name)
    assert {one["skill"] for one in shown} == {skill.name}
    for one in shown:
        job = Job(skill.name, one["phase"], skill.body, "t", root="/p", writes=True)
        result = read_result(Answered(json.dumps(one)), job, "local")
        assert isinstance(result, Result), result
        assert not {"verified", "attempts", "model_used", "runner_output"} & set(one)
        assert result.status == "pass" or not result.files


def test_tdd_shows_an_answer_for_each_phase() -> None:
    """Red, green and refactor are different work; green and refactor write no test."""
    passed = [one for one in examples(SKILLS["tdd"]) if one["status"] == "pass"]
    written = {one["phase"]: [file["path"] for file in one["files"]] for one in passed}
    assert written == {"red": ["tests/test_price.py"], "green": ["shop/price.py"], "refactor": ["shop/price.py"]}
    for one in passed:
        for file in one["files"]:
            compile(file["content"], file["path"], "exec")


def test_tdds_examples_do_what_they_show() -> None:
    """The code that green and refactor show really meets the test that red shows."""
    for one in examples(SKILLS["tdd"]):
        if one["phase"] in ("green", "refactor") and one["status"] == "pass":
            names: dict[str, Any] = {}
            exec(one["files"][0]["content"], names)
            with pytest.raises(ValueError, match="negative"):
                names["parse_price"]("-1.00")
            assert str(names["parse_price"]("1.00")) == "1.00"


def test_review_shows_findings_of_the_shape_that_is_checked() -> None:
    """File, line, severity and title are looked at by a check; the severities are those that it knows."""
    shown = [finding for one in examples(SKILLS["review"]) for finding in one["findings"]]
    assert shown
    for finding in shown:
        assert set(finding) == set(FINDING["properties"])
        assert finding["severity"] in SEVERITIES
    assert all(f"`{severity}`" in SKILLS["review"].body for severity in SEVERITIES)


def test_spec_shows_a_document_with_every_section() -> None:
    """The check asks for them by name, so the discipline has to name them."""
    document = next(examples(SKILLS["spec"]))["files"][0]["content"]
    for section in SECTIONS:
        assert f"\n## {section}\n" in document
        assert f"| `## {section}` |" in SKILLS["spec"].body


def test_debug_shows_what_the_check_asks_for() -> None:
    """A root cause, a fix, two hypotheses at least, and evidence with places."""
    details = next(examples(SKILLS["debug"]))["details"]
    assert details["root_cause"]
    assert details["proposed_fix"]
    assert len(details["hypotheses"]) >= 2
    assert [piece for piece in details["evidence"] if piece.get("file") and piece.get("line", 0) >= 1]


def test_brain_cites_only_what_it_was_given() -> None:
    """The example is held against the check for citations, with the notes that it shows."""
    body = SKILLS["brain"].body
    known = set(re.findall(r"^(n-[0-9a-f]{8}) \(", body, re.MULTILINE))
    shown = next(examples(SKILLS["brain"]))
    result = read_result(Answered(json.dumps(shown)), Job("brain", "brain", body, "t"), "local")
    assert isinstance(result, Result)
    assert check_citations(result, known).ok
    assert not check_citations(result, known - {"n-77b0d415"}).ok


def test_trainer_has_a_reader_and_a_writer() -> None:
    """What the reader finds has the keys that the writer is told of."""
    reader, writer = SKILLS["trainer"].body, SKILLS["trainer"].parts["writer"]
    found = json.loads(EXAMPLE.findall(reader)[0])["candidates"]
    notes = json.loads(EXAMPLE.findall(writer)[0])["candidates"]
    assert all(f"`{key}`" in writer for candidate in found for key in candidate)
    assert all(set(note) == {"title", "type", "scope", "tags", "text"} for note in notes)
    assert {note["scope"] for note in notes} <= {"general", "project"}


def test_the_starter_shows_an_answer_that_is_a_result() -> None:
    """What people begin with must be right."""
    text = (STARTER / "SKILL.md").read_text("utf-8")
    shown = json.loads(EXAMPLE.findall(text)[0])
    job = Job("my-skill", "my-skill", text, "t")
    assert isinstance(read_result(Answered(json.dumps(shown)), job, "local"), Result)
