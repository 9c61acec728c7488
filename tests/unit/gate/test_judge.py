"""The check that asks a model: it can only add doubt, and a judge that can't be asked says nothing about the change."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from bailiwick.gate.backends import find_check
from bailiwick.gate.backends.judge import is_same_model
from bailiwick.gate.model import CheckResult
from bailiwick.gate.port import Case, CheckContext, Judging, Opinion
from bailiwick.gate.run import settled, verdict_of
from bailiwick.gate.spec import CheckSpec, read_gate
from bailiwick.git.objects import TreeChange

SPEC = CheckSpec("judge", "judge", options={"model": "house/wise"})


@dataclass
class Asked:
    """A judge that says what it is told to, and keeps what it was asked."""

    opinion: Opinion
    cases: list[tuple[str, Case, float]] = field(default_factory=list)

    async def __call__(self, model: str, case: Case, *, seconds: float, cancel: asyncio.Event) -> Opinion:
        self.cases.append((model, case, seconds))
        return self.opinion


def _check(judging: Judging, *paths: str, spec: CheckSpec = SPEC) -> CheckResult:
    async def nothing(*_: Any) -> Any:
        return None

    async def diff() -> str:
        return "+import sys"

    async def run() -> CheckResult:
        changes = tuple(TreeChange(path, "M", "100644", "100644", 1, 0) for path in paths)
        context = CheckContext(
            cast("Any", None),
            (),
            changes,
            nothing,
            nothing,
            nothing,
            asyncio.Event(),
            diff=diff,
            judging=judging,
        )
        return settled(await find_check("judge").run(spec, context))

    return asyncio.run(run())


def test_a_doubt_parks_and_is_never_red() -> None:
    """With its reason and the path that a person would approve."""
    judge = Asked(Opinion("it holds the expected values", "shop/prices.py", usd=0.0012))
    made = _check(Judging(judge, "Round it", ("claude/claude-x",), ("note",)), "a.py", "shop/prices.py")
    assert (made.outcome, made.level, verdict_of([made])) == ("passed", "external", "green")
    (found,) = made.findings
    assert (found.parks, found.blocks, found.path) == (True, False, "shop/prices.py")
    assert found.what == "house/wise doubts the change: it holds the expected values"
    assert "$0.0012" in made.output
    assert judge.cases == [
        ("house/wise", Case("Round it", "+import sys", ("note",), ("a.py", "shop/prices.py")), 120.0)
    ]


def test_a_path_that_was_not_changed_is_not_believed() -> None:
    """A person approves a path of the change, never one that a model made up."""
    made = _check(Judging(Asked(Opinion("odd", "../../etc/passwd"))), "a.py")
    assert made.findings[0].path == "a.py"


def test_no_doubt_adds_nothing() -> None:
    """A judge's good word is no proof: level external, no finding."""
    made = _check(Judging(Asked(Opinion(usd=None))), "a.py")
    assert (made.outcome, made.level, made.findings) == ("passed", "external", ())
    assert "cost unknown" in made.output


@pytest.mark.parametrize(
    ("judging", "what"),
    [
        (Judging(Asked(Opinion(trouble="503")), "i"), "503"),
        (Judging(None), "no model can be asked from here"),
        (Judging(Asked(Opinion()), "i", ("command/house/wise",)), "wrote this change"),
        (Judging(Asked(Opinion()), "i", ("other/WISE:latest",)), "wrote this change"),
    ],
)
def test_a_judge_that_can_t_be_asked_is_the_environment_s_fault(judging: Judging, what: str) -> None:
    """Who asked for a judge wants its word: silence is not consent, and not the author's fault either."""
    made = _check(judging, "a.py")
    assert (made.outcome, verdict_of([made])) == ("environment", "environment")
    assert what in made.findings[0].what


def test_a_judge_is_not_paid_to_look_at_nothing() -> None:
    """The base itself is green without asking anybody."""
    judge = Asked(Opinion("x"))
    assert (_check(Judging(judge)).outcome, judge.cases) == ("passed", [])


def test_names_of_models_are_compared_without_who_runs_them() -> None:
    """A backend's bare name says nothing about its model."""
    assert is_same_model("claude/claude-sonnet-4-6", "claude-sonnet-4-6")
    assert not is_same_model("claude", "claude-sonnet-4-6")
    assert not is_same_model("", "")


def test_the_gate_file_names_the_judge_s_model() -> None:
    """Without a model there is nobody to ask."""
    spec = read_gate(b"checks: [{name: judge, kind: judge, model: house/wise}]", "gate.yaml", "base")
    assert spec.checks[0].options == {"model": "house/wise"}
    with pytest.raises(Exception, match="model"):
        read_gate(b"checks: [{name: judge, kind: judge}]", "gate.yaml", "base")
