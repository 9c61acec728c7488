"""A broken product does not look green, whatever is done to the tests and around them."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from tests.security.cheats import CHEATS, Cheat
from tests.security.gatehouse import Gatehouse, make_tools, reasons, said
from tests.security.plain import is_right, leave, plain_pytest

OFTEN = 4
"""So many are tried in every run of the tests; all by `make slow`, and so in CI."""
STEP = max(len(CHEATS) // OFTEN, 1)


OPEN: dict[str, str] = {}
"""Cheats that still look green, and why; docs/explanation/threat-model.md names them. One that is caught must go."""


def _marks(number: int, cheat: Cheat) -> list[pytest.MarkDecorator]:
    known = [pytest.mark.xfail(strict=True, reason=OPEN[cheat.name])] if cheat.name in OPEN else []
    return [*([] if number % STEP == 0 else [pytest.mark.slow]), *known]


CASES = [pytest.param(cheat, id=cheat.name, marks=_marks(number, cheat)) for number, cheat in enumerate(CHEATS)]


@pytest.fixture(scope="module")
def gatehouse(tmp_path_factory: pytest.TempPathFactory) -> Gatehouse:
    """One gate for all: it keeps what it learnt about the base."""
    return Gatehouse(Path(tmp_path_factory.mktemp("gate")))


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Programs of an environment with pytest and nothing else."""
    return make_tools(tmp_path_factory.mktemp("tools") / "tools")


@pytest.mark.parametrize("cheat", CASES)
def test_a_cheat_is_not_green(cheat: Cheat, gatehouse: Gatehouse) -> None:
    """It is refused or a person is asked, and the report says why in a line of its own.

    Where the tests saw an installed copy instead of the tree, nothing was found out: that is the environment's fault.
    """
    report = gatehouse.judge(cheat.files, cheat.base)
    assert report.verdict in (("environment",) if cheat.kind == "installed" else ("red", "needs_person")), reasons(
        report
    )
    lines = said(report)
    assert lines, f"nothing tells a person why: {reasons(report)}"
    assert not cheat.why or any(re.search(cheat.why, line) for line in lines), lines
    assert report.verdict != "needs_person" or report.wanted or report.doubts, "a person is asked about what is named"


@pytest.mark.nightly
@pytest.mark.parametrize("cheat", CHEATS, ids=lambda cheat: cheat.name)
def test_a_cheat_sells_a_wrong_product(cheat: Cheat, tools: Path, tmp_path: Path) -> None:
    """It is wrong in a plain process, and plain pytest believes it wherever that is the point."""
    tree = leave(tmp_path / "tree", cheat.files, cheat.base)
    right, output = is_right(tree, cheat.probe)
    assert not right, "the product is right: this is no cheat"
    assert "SyntaxError" not in output or "syntax" in cheat.name, output
    outcome = plain_pytest(tree, tools)
    assert (outcome.returncode == 0) == cheat.fools, outcome.stdout + outcome.stderr


def test_the_honest_product_is_green_at_the_same_gate(gatehouse: Gatehouse) -> None:
    """A gate that refuses everything would catch every cheat too."""
    report = gatehouse.judge({"README.md": "# a shop\n"})
    assert report.verdict == "green", reasons(report)


def test_there_are_enough_cheats() -> None:
    """The catalogue only grows: three of each kind at least, and most of them fool plain pytest."""
    names = Counter(cheat.name for cheat in CHEATS)
    kinds = Counter(cheat.kind for cheat in CHEATS)
    assert max(names.values()) == 1
    assert len(names) >= 130
    assert min(kinds.values()) >= 3, kinds
    assert sum(cheat.fools for cheat in CHEATS) >= 100
    assert len({repr(cheat.base) for cheat in CHEATS}) <= 12
