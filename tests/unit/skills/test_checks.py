"""References that lead nowhere, documents without their sections, quotes that nobody said: found without a model."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace

import pytest

from bailiwick.ids import Json
from bailiwick.routing.model import CheckOutcome, Result
from bailiwick.skills.checks import CitationCheck, check_debug, check_review, check_spec, find_check
from bailiwick.skills.site import Check, CheckArguments
from bailiwick.skills.tools import TABLE
from tests.unit.skills.skill_stage import FakeSite, judged

FILES = {"shop/cart.py": "one\ntwo\nthree\n", "empty.py": ""}
DONE = Result("pass", "review", "review", "done")


def check(with_: Check, result: Result, asked: CheckArguments | None = None) -> CheckOutcome:
    return judged(with_, result, FakeSite(FILES, FILES), asked or CheckArguments())


def finding(**changes: Json) -> dict[str, Json]:
    return {"file": "shop/cart.py", "line": 3, "severity": "major", "title": "x", **changes}


def review(*findings: Mapping[str, Json]) -> CheckOutcome:
    return check(check_review, replace(DONE, findings=findings))


def test_a_review_whose_references_exist_is_taken() -> None:
    """Also by the whole path; an empty file has a first line."""
    good = (finding(), finding(file="/project/shop/cart.py", line=1), finding(file="./empty.py", line=1))
    assert review(*good) == CheckOutcome(ok=True)


def test_a_review_without_findings_has_nothing_to_check() -> None:
    """It is no proof that nothing is wrong."""
    assert review() == CheckOutcome(ok=True, ran=False)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"line": 4}, "3 lines"),
        ({"line": 0}, "no line 0"),
        ({"line": -1}, "no line -1"),
        ({"line": "3"}, "a number"),
        ({"line": True}, "a number"),
        ({"line": None}, "a number"),
        ({"file": "shop/nothing.py"}, "no file"),
        ({"file": "../etc/passwd"}, "no file"),
        ({"file": "/etc/passwd", "line": 1}, "no file"),
        ({"file": "shop"}, "no file"),
        ({"file": ""}, "names no file"),
        ({"file": ["shop/cart.py"]}, "names no file"),
        ({"severity": "critical"}, "blocker, major, minor, nit"),
        ({"severity": ["major"]}, "severity"),
        ({"title": " "}, "title"),
    ],
)
def test_a_finding_that_leads_nowhere_spoils_the_review(changes: dict[str, Json], why: str) -> None:
    """The number of the finding is told, so that it can be mended."""
    checked = review(finding(), finding(**changes))
    assert not checked.ok
    assert checked.feedback.startswith("finding 2: ")
    assert why in checked.feedback


DETAILS: dict[str, Json] = {
    "hypotheses": [{"claim": "a"}, {"claim": "b"}],
    "evidence": [{"file": "shop/cart.py", "line": 2}, {"quote": "expected 0 items,  found 2"}, "see shop/cart.py:3"],
    "root_cause": "a shared list",
    "proposed_fix": "make a new one",
}
ASKED = CheckArguments(material="Traceback:\n  expected 0 items,\n  found 2")


def debug(**changes: Json) -> CheckOutcome:
    return check(check_debug, replace(DONE, details={**DETAILS, **changes}), ASKED)


def test_a_root_cause_with_evidence_that_can_be_looked_up_is_taken() -> None:
    """Lines of files, and words of the error whatever its line breaks are."""
    assert debug() == CheckOutcome(ok=True)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"root_cause": ""}, "root_cause"),
        ({"proposed_fix": None}, "proposed_fix"),
        ({"hypotheses": [{"claim": "a"}]}, "at least 2"),
        ({"evidence": []}, "evidence"),
        ({"evidence": "shop/cart.py:2"}, "evidence"),
        ({"evidence": [{"file": "shop/cart.py", "line": 99}]}, "no line 99"),
        ({"evidence": [{"file": "shop/cart.py"}]}, "a number"),
        ({"evidence": [{"quote": "a text that nobody said"}]}, "is nowhere"),
        ({"evidence": ["somewhere in the cart"]}, "names no place"),
        ({"evidence": ["see shop/cart.py:77"]}, "no line 77"),
        ({"evidence": [{"shows": "it"}]}, "names no place"),
        ({"evidence": [7]}, "names no place"),
    ],
)
def test_a_root_cause_without_evidence_is_refused(changes: dict[str, Json], why: str) -> None:
    """A made-up cause costs more than none."""
    checked = debug(**changes)
    assert not checked.ok
    assert why in checked.feedback


PATH = "docs/specs/x.md"
SPEC = (
    "# X\n\n## Purpose\n\na\n\n## 2. Scope ##\n\nb\n\n### Not in scope\n\nc\n\n## Behaviour\n\n### Sub\n\nd\n\n"
    "## Acceptance Criteria\n\ne\n\n## Open questions\n\nNone: all is said.\n"
)


def spec(files: Mapping[str, str]) -> CheckOutcome:
    site = FakeSite(FILES, {**FILES, **files})
    return asyncio.run(check_spec(DONE, site, CheckArguments(output_path=PATH)))


def test_a_document_with_all_sections_is_taken() -> None:
    """At any level, numbered or not, in any case."""
    assert spec({PATH: SPEC}) == CheckOutcome(ok=True, file_path=f"/project/{PATH}")


@pytest.mark.parametrize(
    ("files", "why"),
    [
        ({}, "was not written"),
        ({PATH: " \n"}, "was not written"),
        ({PATH: SPEC, "other.md": "x"}, "other.md"),
        ({"other.md": SPEC}, "other.md"),
        ({PATH: SPEC.replace("## Behaviour", "## Behavior")}, "Behaviour"),
        ({PATH: SPEC.replace("None: all is said.", "")}, "Open questions"),
        ({PATH: SPEC.replace("## Purpose\n\na", "## Purpose")}, "Purpose"),
        ({PATH: SPEC.replace("## Purpose", "Purpose")}, "Purpose"),
    ],
)
def test_a_document_that_lacks_something_is_refused(files: dict[str, str], why: str) -> None:
    """Missing, empty, elsewhere, or with more than was asked for."""
    checked = spec(files)
    assert not checked.ok
    assert why in checked.feedback


def cited(status: str = "pass", **details: Json) -> CheckOutcome:
    result = replace(DONE, status=status, details=details)  # type: ignore[arg-type]
    return asyncio.run(CitationCheck({"n-1", "n-2"}).check(result))


def test_an_answer_cites_notes_that_it_was_given() -> None:
    """Each id is looked up."""
    assert cited(answer="so", cites=["n-1", "n-2"]).ok
    assert "n-3" in cited(answer="so", cites=["n-1", "n-3"]).feedback
    assert not cited(answer="so", cites="n-3").ok
    assert not cited(answer="so", cites=[{"id": "n-3"}]).ok
    assert not cited(answer="so", cites=[["n-1"]]).ok
    assert "n-0badcafe" in cited(answer="so [n-0badcafe]", cites=["n-1"]).feedback


def test_an_answer_without_notes_is_none_unless_it_says_so() -> None:
    """That the notes tell nothing is an answer too."""
    assert "cites no note" in cited(answer="so", cites=[]).feedback
    assert "'answer' is missing" in cited(answer="", cites=["n-1"]).feedback
    assert cited("fail", answer="", cites=[]).ok


def test_every_tool_that_works_on_a_project_has_its_checks() -> None:
    """One that is added to the table has to say what can be found out about it."""
    tools = [tool for tool in TABLE if any(one.name == "project_root" and one.required for one in tool.arguments)]
    assert [tool.name for tool in tools if find_check(tool.skill, tool.phase) is None] == []
    assert find_check("mine", "mine") is None
