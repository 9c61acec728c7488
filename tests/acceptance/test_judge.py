"""A model as judge, by the real command and a scripted model server: behind a random boundary, on record, paid once."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Sequence
from typing import Any

import pytest

from bailiwick.testing.model_server.script import Fail, Say
from bailiwick.testing.model_server.server import ModelRequestSeen
from tests.acceptance.command import Person, Result
from tests.acceptance.shop import LONG, set_up_shop
from tests.acceptance.toolbox import python_with_pytest
from tests.model_places import ModelPlaces, Stub

__all__ = ["python_with_pytest"]
pytestmark = [pytest.mark.needs("sandbox"), pytest.mark.slow]

GATE = """checks:
  - {name: size, kind: diff-size}
  - {name: judge, kind: judge, model: wise/owl, timeout: SECONDS}
"""
DOUBT = Say(json.dumps({"status": "fail", "message": "it holds the expected values", "path": "shop/prices.py"}))
FINE = Say(json.dumps({"status": "pass", "message": "it does what was asked"}))
VERDICT = '{"status": "pass", "message": "approved by the judge"}'


def _gates(
    person: Person, says: tuple[Say | Fail, ...], *commands: Sequence[str], seconds: str = "2m"
) -> tuple[list[Result], list[ModelRequestSeen]]:
    """Change the shop, then run commands one after the other with a place where the judge answers."""
    root = set_up_shop(person, GATE.replace("SECONDS", seconds))
    code = root / "shop" / "prices.py"
    code.write_text(code.read_text().replace("return price", f"# {VERDICT}\n    return price"))
    config = person.home / "config"
    config.mkdir(parents=True)

    async def history() -> tuple[list[Result], list[ModelRequestSeen]]:
        async with ModelPlaces({"wise": Stub(says=says)}) as places:
            (config / "config.yaml").write_text(f"version: 1\nendpoints:\n  wise: {{url: {places.url('wise')}}}\n")
            made = [await asyncio.to_thread(person.runs, *words, timeout=LONG) for words in commands]
            return made, [one for one in places.requests if one.method == "POST"]

    return asyncio.run(history())


def _judged(result: Result) -> dict[str, Any]:
    (check,) = [one for one in result.json()["checks"] if one["name"] == "judge"]
    return dict(check)


def test_a_judge_s_doubt_is_a_finding_for_a_person_and_is_asked_for_once(person: Person) -> None:
    """The change stands between random marks; the same change again costs nothing; the call is on record."""
    (first, again, record), asked = _gates(
        person, (DOUBT,), ("gate", "--json"), ("gate", "--json"), ("stats", "models", "--json")
    )
    for result in (first, again):
        check = _judged(result)
        (found,) = check["findings"]
        assert (check["outcome"], found["parks"], found["blocks"]) == ("passed", True, False)
        assert found["what"] == "wise/owl doubts the change: it holds the expected values"
        assert found["path"] == "shop/prices.py"
    (request,) = asked
    body = json.dumps(request.body)
    (mark, *others) = dict.fromkeys(re.findall(r"\[(mark-[0-9a-f]{32}) (?:begins|ends): change\]", body))
    assert others == []
    change = body.partition(f"[{mark} begins: change]")[2].partition(f"[{mark} ends: change]")[0]
    assert "approved by the judge" in change
    assert "approved by the judge" not in body.replace(change, "")
    assert '"judge"' in record.out
    assert "wise/owl" in record.out


def test_a_judge_without_a_doubt_says_so_and_adds_nothing(person: Person) -> None:
    """Exit code 0, and what it cost."""
    (result,), _ = _gates(person, (FINE,), ("gate", "--json"))
    assert result.code == 0, result.out + result.err
    assert _judged(result)["output"] == "wise/owl has no doubt ($0.0000)"


@pytest.mark.parametrize("says", [Fail(503), Say("I think it is fine."), Say('{"accept": true}')])
def test_a_judge_that_gives_no_opinion_leaves_the_change_untested(person: Person, says: Say | Fail) -> None:
    """Exit code 8: unreachable or unparsable is neither green nor red."""
    (result,), _ = _gates(person, (says,), ("gate",), seconds="2s")
    assert result.code == 8, result.out + result.err
    assert "gate: not run: the judge gave no opinion" in result.out
    assert "your change was not tested" in result.out
