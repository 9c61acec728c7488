"""An ordinary program as the agent: it edits files and exits, and knows nothing of our JSON."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.acceptance.command import Person
from tests.acceptance.shop import LONG, asks, branches, git, set_up_shop
from tests.acceptance.toolbox import python_with_pytest

__all__ = ["python_with_pytest"]
pytestmark = [pytest.mark.needs("sandbox"), pytest.mark.slow]

TOOL = """import pathlib, sys
sys.stdin.read()
code = pathlib.Path("shop/prices.py")
text = code.read_text()
code.write_text(text.replace("return price * (100 - percent) / 100", "return round(price * (100 - percent) / 100, 2)"))
"""
SAYS = {"nothing": "", "prose": "print('Applied edit to shop/prices.py: + x = {} { return 1; }')\n"}


def _tool(person: Person, text: str) -> None:
    program = person.home.parent / "tool.py"
    program.write_text(text)
    person.extra["AGENT_CMD"] = f"{shutil.which('python3')} {program}"


def _attempts(person: Person, node: str) -> list[dict[str, object]]:
    found = [path for path in Path(person.home).rglob("attempts.jsonl") if node in path.parts]
    return [json.loads(line) for path in found for line in path.read_text().splitlines()]


@pytest.mark.parametrize("says", SAYS)
def test_a_tool_that_edits_files_and_exits_0_leads_to_a_proposal(person: Person, says: str) -> None:
    """The files are the answer; it is called once, and nothing counts as a default."""
    root = set_up_shop(person)
    _tool(person, TOOL + SAYS[says])
    result = asks(person, "--json")
    assert result.code == 0, result.out + result.err
    context = result.json()["context"]
    assert context["proposal"]["id"]
    assert "round(price" in git(root, "show", f"{branches(root)[0]}:shop/prices.py")
    assert len(_attempts(person, "implement")) == 1


def test_a_tool_heals_by_editing_files_alone(person: Person) -> None:
    """The same holds for the other pattern."""
    root = set_up_shop(person)
    file = root / "shop" / "prices.py"
    good = file.read_text()
    file.write_text(good.replace("(100 - percent)", "(101 - percent)"))
    program = f"import pathlib\npathlib.Path('shop/prices.py').write_text({good!r})\n"
    _tool(person, program)
    result = person.runs("self-heal", "--json", timeout=LONG)
    assert result.code == 0, result.out + result.err
    assert result.json()["context"]["proposal"]["id"]


def test_a_tool_that_fails_is_called_once_and_its_code_is_told(person: Person) -> None:
    """Trying it again would only fail again; the person sees the code and the last words at once."""
    set_up_shop(person)
    _tool(
        person,
        "import sys\nprint('loading', file=sys.stderr)\nprint('no model is loaded', file=sys.stderr)\nsys.exit(7)\n",
    )
    result = asks(person)
    assert result.code == 3, result.out + result.err
    words = "the command ended with code 7: no model is loaded"
    assert words in result.out + result.err
    assert "unknown: each counts as $1" in result.out + result.err
    assert len(_attempts(person, "implement")) == 1
    run = next(line.split()[0] for line in person.runs("runs", "list").out.splitlines() if "issue-to-pr" in line)
    assert words in person.runs("why", run).out
