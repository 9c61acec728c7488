"""What is looked at before the first paid call."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from bailiwick.app.service import open_app
from bailiwick.errors import NotReady
from bailiwick.lang.load import load
from bailiwick.pipelines.model import ISSUE_TO_PR, PipelineRequest, PreflightLine
from bailiwick.pipelines.preflight import Preflight, Unready, red_base
from bailiwick.workflows.service import BUNDLED


def _flown(order: PipelineRequest, *, simulate: bool = True, **limits: float) -> tuple[list[PreflightLine], list[str]]:
    """A preflight of what needs no repository: its lines, and the codes of what is in the way."""
    lines: list[PreflightLine] = []

    async def fly() -> list[str]:
        async with open_app({}, simulate=simulate or None) as app:
            flight = Preflight(app.config, app.runtime, order, lines.append)
            flight.disk()
            flight.agent(load(BUNDLED / ISSUE_TO_PR).graph, {}, simulate or None)
            await flight.limits(dict(limits))
            return [problem.code for problem in flight.found]

    return lines, asyncio.run(fly())


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BAILIWICK_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("BAILIWICK_RETENTION_MIN_FREE", "1MB")
    monkeypatch.chdir(tmp_path)


def test_the_first_lines_name_agent_and_limits() -> None:
    """A person sees who works and what it may cost before it does."""
    lines, found = _flown(PipelineRequest(ISSUE_TO_PR, "/repo", attempts=1), usd=5.0, wall=3600.0)
    told = {line.label: line.text for line in lines}
    assert found == []
    assert told["agent"].startswith("simulated")
    assert "1 fix call" in told["limits"]
    assert "$5 for the run" in told["limits"]
    assert "left today" in told["limits"]


def test_every_cheap_problem_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk, no agent and no money: one command, three answers."""
    monkeypatch.setenv("BAILIWICK_RETENTION_MIN_FREE", "900TB")
    monkeypatch.setenv("BAILIWICK_BUDGET_DAY_USD", "0")
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setenv("AGENT_CLI", "claude")
    _, found = _flown(PipelineRequest(ISSUE_TO_PR, "/repo"), simulate=False)
    assert found == ["BW486", "BW252", "BW487"]


def test_what_is_in_the_way_is_one_error_with_all_problems() -> None:
    """Exit code 8: nothing was spent."""
    first = NotReady("a", code="BW486").problems()
    error = Unready([*first, *NotReady("b", hint="do b", code="BW487").problems()])
    assert error.exit_code == 8
    assert [problem.what for problem in error.problems()] == ["a", "b"]


def test_a_red_base_names_the_tests_and_both_ways_out() -> None:
    """Many of them are cut, and counted."""
    error = red_base([f"tests/test_a.py::test_{n}" for n in range(25)], "bailiwick issue-to-pr x.md")
    assert "tests/test_a.py::test_0" in error.what
    assert "and 5 more" in error.what
    assert "bailiwick self-heal" in error.hint
    assert "bailiwick issue-to-pr x.md --known-red" in error.hint
