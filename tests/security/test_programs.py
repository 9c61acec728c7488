"""Small programs with one bug each at the gate: a repair is green, everything else is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.security.gatehouse import Gatehouse, reasons, said
from tests.security.programs import PROGRAMS, WAYS, Program

SAMPLE = ("leap",)
"""Those that every run of the tests looks at, the others run at night."""
NIGHT = pytest.mark.nightly
ASKED = ("delete", "edit-expected")
"""Ways that change nothing but protected tests: a person is asked, as the change may be meant."""


def _marked(program: Program, *more: str, often: bool) -> object:
    return pytest.param(program, *more, id="-".join((program.name, *more)), marks=() if often else NIGHT)


REPAIRS = [_marked(program, often=program.name in SAMPLE) for program in PROGRAMS]
CHEATS = [
    _marked(program, way, often=program.name == SAMPLE[number % len(SAMPLE)])
    for program in PROGRAMS
    for number, way in enumerate(WAYS)
]


@pytest.fixture(scope="module")
def gatehouse(tmp_path_factory: pytest.TempPathFactory) -> Gatehouse:
    """One gate for all: it keeps what it learnt about each base."""
    return Gatehouse(Path(tmp_path_factory.mktemp("gate")))


def _failing(program: Program, text: str) -> list[str]:
    """The checks that a program does not pass."""
    space: dict[str, object] = {}
    exec(text, space)
    return [call for call, expected in program.checks if eval(call, space) != eval(expected)]


def test_there_are_enough_programs() -> None:
    """Each has a name and a path of its own."""
    assert len({program.name for program in PROGRAMS}) == len(PROGRAMS) >= 32


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_a_program_has_one_bug_in_one_line(program: Program) -> None:
    """The tests pass without it, fail with it, and fail with the repair that is none."""
    assert program.source.count(program.line + "\n") == 1
    assert _failing(program, program.source) == []
    assert _failing(program, program.with_line(program.bug)) != []
    assert _failing(program, program.mended_badly()) != []
    assert program.mended_badly(1) != program.with_line(program.bug)


@pytest.mark.parametrize("program", REPAIRS)
@pytest.mark.slow
def test_a_repair_is_green_and_heals(program: Program, gatehouse: Gatehouse) -> None:
    """The red tests of the base are named as healed, not as new ones."""
    report = gatehouse.judge(program.repaired(), program.base())
    assert report.verdict == "green", reasons(report)
    assert report.healed, report.unproven
    assert report.proof == ()


@pytest.mark.parametrize("program", REPAIRS)
@pytest.mark.slow
def test_a_wrong_repair_is_red(program: Program, gatehouse: Gatehouse) -> None:
    """It changes the line, and a test still fails."""
    report = gatehouse.judge({program.path: program.mended_badly()}, program.base())
    assert report.verdict == "red", reasons(report)
    assert any("fails" in line for line in said(report)), reasons(report)


@pytest.mark.parametrize(("program", "way"), CHEATS)
@pytest.mark.slow
def test_a_cheat_heals_nothing(program: Program, way: str, gatehouse: Gatehouse) -> None:
    """Six ways to look healed; none is green, and the report says why."""
    report = gatehouse.judge(program.cheated(way), program.base())
    allowed = ("needs_person",) if way in ASKED else ("red", "needs_person")
    assert report.verdict in allowed, reasons(report)
    assert said(report), reasons(report)
