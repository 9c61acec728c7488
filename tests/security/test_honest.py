"""Honest changes pass the gate; those that need a protected path wait for a person and are not refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.security.gatehouse import Gatehouse, make_tools, reasons
from tests.security.honest import HONEST, SAMPLE, Honest
from tests.security.plain import is_right, leave, plain_pytest

PARKED: tuple[str, ...] = ()
"""Honest changes that wait for a person without need: two at most."""


@pytest.fixture(scope="module")
def gatehouse(tmp_path_factory: pytest.TempPathFactory) -> Gatehouse:
    """One gate for all: it keeps what it learnt about the base."""
    return Gatehouse(Path(tmp_path_factory.mktemp("gate")))


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Programs of an environment with pytest and nothing else."""
    return make_tools(tmp_path_factory.mktemp("tools") / "tools")


def _marks(number: int, name: str) -> Sequence[pytest.MarkDecorator]:
    if name in SAMPLE:
        return ()
    return (pytest.mark.nightly,) if number % 8 else (pytest.mark.slow,)


CASES = [
    pytest.param(change, id=change.name, marks=_marks(number, change.name)) for number, change in enumerate(HONEST)
]


@pytest.mark.parametrize("change", CASES)
def test_an_honest_change_is_not_refused(change: Honest, gatehouse: Gatehouse) -> None:
    """A gate that cries wolf is switched off: none is red, two at most wait for a person without need."""
    report = gatehouse.judge(change.files, change.base)
    assert report.verdict == ("needs_person" if change.name in PARKED else change.expect), reasons(report)
    assert report.proof or not change.proof or change.name in PARKED, f"a new test shows this change: {report.unproven}"
    assert report.healed or not change.heals, "a red test of the base is green now"


@pytest.mark.nightly
@pytest.mark.parametrize("change", HONEST, ids=lambda change: change.name)
def test_an_honest_change_is_right(change: Honest, tools: Path, tmp_path: Path) -> None:
    """It is right in a plain process and green with plain pytest."""
    tree = leave(tmp_path / "tree", change.files, change.base)
    right, output = is_right(tree, change.probe)
    assert right, output
    outcome = plain_pytest(tree, tools)
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr


@pytest.mark.nightly
@pytest.mark.parametrize("change", [c for c in HONEST if c.proof], ids=lambda change: change.name)
def test_a_proof_is_one(change: Honest, tools: Path, tmp_path: Path) -> None:
    """Without the change to the product the new tests fail."""
    tests = {name: text for name, text in change.files.items() if name.startswith("tests/")}
    tree = leave(tmp_path / "tree", tests, change.base)
    outcome = plain_pytest(tree, tools, *(name for name in tests if name.endswith(".py")))
    assert outcome.returncode in (1, 2), outcome.stdout + outcome.stderr


def test_there_are_enough_honest_changes() -> None:
    """The catalogue only grows, and only a handful of changes needs a person."""
    names = Counter(change.name for change in HONEST)
    assert max(names.values()) == 1
    assert len(names) >= 110
    assert set(SAMPLE) <= set(names)
    assert len(PARKED) <= 2
    assert sum(change.expect == "needs_person" for change in HONEST) <= 8
    assert len({repr(change.base) for change in HONEST}) <= 12
