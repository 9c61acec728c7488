"""A broken product does not look green, whatever is done to the tests and around them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.security.cheats import CHEATS, Cheat
from tests.security.gatehouse import Gatehouse, reasons

OFTEN = 16
"""So many are tried in every run of the tests, the others by `make nightly`."""
CASES = [
    pytest.param(cheat, id=cheat.name, marks=() if number < OFTEN else pytest.mark.nightly)
    for number, cheat in enumerate(CHEATS)
]


@pytest.fixture(scope="module")
def gatehouse(tmp_path_factory: pytest.TempPathFactory) -> Gatehouse:
    """One gate for all: it keeps what it learnt about the base."""
    return Gatehouse(Path(tmp_path_factory.mktemp("gate")))


@pytest.mark.parametrize("cheat", CASES)
def test_a_cheat_is_not_green(cheat: Cheat, gatehouse: Gatehouse) -> None:
    """Each of these once fooled somebody's pipeline."""
    report = gatehouse.judge(cheat.files, cheat.base)
    assert report.verdict in ("red", "needs_person"), reasons(report)
    assert report.verdict == "red" or report.wanted, "a person is only asked about paths that are named"


def test_the_honest_product_is_green_at_the_same_gate(gatehouse: Gatehouse) -> None:
    """A gate that refuses everything would catch every cheat too."""
    report = gatehouse.judge({"README.md": "# a shop\n"})
    assert report.verdict == "green", reasons(report)


def test_there_are_enough_cheats() -> None:
    """The catalogue only grows."""
    assert len({cheat.name for cheat in CHEATS}) >= 40
