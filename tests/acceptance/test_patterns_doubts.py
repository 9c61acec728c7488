"""What the gate doubts: the agent hears of it first, then a person decides, with the hunk in front of them.

Not collected under this name: it needs a gate that parks on conduct. Rename it to `test_patterns_doubts.py` with it.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.acceptance.command import Person
from tests.acceptance.shop import LONG, asks, branches, git, set_up_shop
from tests.acceptance.toolbox import python_with_pytest

__all__ = ["python_with_pytest"]
pytestmark = [pytest.mark.needs("sandbox"), pytest.mark.slow]

GOOD = "return round(price * (100 - percent) / 100, 2)"
TEST = """import unittest

from shop.prices import discount


class CentsTest(unittest.TestCase):
    def test_a_discounted_price_can_be_paid(self) -> None:
        assert discount(19.99, 10) == 17.99
"""


def _code(*first: str) -> str:
    lines = ['"""Prices."""', "", "import sys", "", "", "def discount(price: float, percent: float) -> float:"]
    return "\n".join([*lines, '    """The price after a discount."""', *(f"    {line}" for line in (*first, GOOD)), ""])


def _turn(code: str, wants: str = "[]") -> str:
    def block(text: str) -> str:
        return "".join(f"            {line}\n" if line else "\n" for line in text.splitlines())

    return (
        f"    - - edit:\n          shop/prices.py: |\n{block(code)}          tests/test_cents.py: |\n{block(TEST)}"
        f"        answer: {{outcome: done, summary: Rounded., wants: {wants}}}\n"
    )


DOUBTFUL = _code("if 'pytest' in sys.modules:", "    percent = percent + 0")
CLEAN = _code().replace("import sys\n", "")
REASON = "[{path: shop/prices.py, reason: it is needed there}]"


def _play(tmp_path: Path, fix: str) -> Path:
    path = tmp_path / "doubt.yaml"
    path.write_text(f"nodes:\n  implement:\n{_turn(DOUBTFUL)}  fix:\n{fix}")
    return path


def test_a_doubt_that_the_agent_takes_back_is_no_question(person: Person, tmp_path: Path) -> None:
    """Told, taken back, green: exit code 0, one fix call."""
    root = set_up_shop(person)
    result = asks(person, "--simulate", _play(tmp_path, _turn(CLEAN)), "--json")
    assert result.code == 0, result.out + result.err
    assert result.json()["context"]["calls"] == 1
    assert "sys.modules" not in git(root, "show", f"{branches(root)[0]}:shop/prices.py")


@pytest.mark.parametrize("wants", ["[]", pytest.param(REASON, marks=pytest.mark.nightly)])
def test_a_doubt_that_stays_waits_for_a_person_and_can_be_approved(person: Person, tmp_path: Path, wants: str) -> None:
    """Exit code 3 with finding, hunk and reason; allow-once lets it through, and the proposal shows it first."""
    root = set_up_shop(person)
    result = asks(person, "--simulate", _play(tmp_path, _turn(DOUBTFUL, wants)))
    assert result.code == 3, result.out + result.err
    assert re.search(r"needs you: shop/prices\.py:\d+: ", result.out)
    assert ("it is needed there" if wants != "[]" else "it gave none") in result.out
    run = re.search(r"bailiwick runs answer (\S+)", result.out)
    assert run is not None
    assert "+    if 'pytest' in sys.modules:" in person.runs("why", run[1]).out
    assert person.runs("runs", "answer", run[1], "allow-once", timeout=LONG).code == 0
    done = asks(person, "--json")
    assert done.code == 0, done.out + done.err
    shown = person.runs("proposals", "show", done.json()["context"]["proposal"]["id"]).out
    assert "Look here first: approved doubts" in shown
    assert "sys.modules" in git(root, "show", f"{branches(root)[0]}:shop/prices.py")


@pytest.mark.nightly
def test_a_refused_doubt_that_stays_is_handed_off(person: Person, tmp_path: Path) -> None:
    """Exit code 6, with what is still there; nothing is proposed."""
    set_up_shop(person)
    fixes = _turn(DOUBTFUL) + _turn(DOUBTFUL.replace("+ 0", "+ 0.0"))
    result = asks(person, "--simulate", _play(tmp_path, fixes))
    assert result.code == 3, result.out + result.err
    run = re.search(r"bailiwick runs answer (\S+)", result.out)
    assert run is not None
    assert person.runs("runs", "answer", run[1], "refuse", timeout=LONG).code == 0
    done = asks(person)
    assert done.code == 6, done.out + done.err
    assert "what a person refused is still there" in done.out
