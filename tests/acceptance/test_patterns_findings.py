"""What people and agents are told about a gate: the failing test, where it failed, and commands that can be tried."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from bailiwick.pipelines.simulation import write_repository
from tests.acceptance.command import Person
from tests.acceptance.next_steps import unworkable
from tests.acceptance.shop import LONG, asks, branches, script, set_up_shop
from tests.acceptance.toolbox import python_with_pytest

__all__ = ["python_with_pytest"]
pytestmark = [pytest.mark.needs("sandbox"), pytest.mark.slow]

FAILS = "tests/test_prices.py::DiscountTest::test_ten_percent_off_200_is_180 fails: tests/test_prices.py:8: assert "


def test_a_hand_off_names_the_failing_test_and_its_line(person: Person) -> None:
    """On the terminal after each red gate, in the reason, in the last words, and in `why`."""
    set_up_shop(person)
    result = asks(person, "--simulate", script("issue-to-pr", "stuck"), "--attempts", "1")
    assert result.code == 6, result.out + result.err
    assert f"gate 1        red: {FAILS}190 == 180" in result.out
    assert "next          back to the agent with what failed, fix call 1 of 1" in result.out
    assert "gave up after 1 fix calls, handing off to a person (red: tests/test_prices.py::" in result.out
    last = result.out.partition("No PR proposed")[2]
    assert f"{FAILS}20.0 == 180" in last
    assert re.search(r"^ +go on +git switch agent/", last, re.MULTILINE)
    run = re.search(r"bailiwick why (\S+)", last)
    assert run is not None
    why = person.runs("why", run[1])
    assert "found: red: tests/test_prices.py::" in why.out
    assert f"{FAILS}20.0 == 180" in why.out
    assert unworkable(person, last) == []


def test_the_gate_itself_says_why_in_one_line(person: Person) -> None:
    """A person runs it by hand: the test, the line, what was said, and what to do."""
    root = set_up_shop(person)
    code = root / "shop" / "prices.py"
    code.write_text(code.read_text().replace("price * (100 - percent) / 100", "price - percent"))
    result = person.runs("gate", timeout=LONG)
    assert result.code == 1
    assert f"gate: red: {FAILS}190 == 180" in result.out
    assert "bailiwick self-heal" in result.out


PREPARED = """
prepare:
  - [python3, -m, venv, --system-site-packages, .venv]
  - [sh, -c, "printf '#!/workspace/.venv/bin/python\\nimport sys\\nprint(sys.prefix)\\n' > .venv/bin/own-lint"]
  - [chmod, +x, .venv/bin/own-lint]
checks:
  - {name: tests, run: [python, -m, pytest, -q], kind: pytest, timeout: 2m}
  - {name: lint, run: [own-lint]}
"""
AGENT = """import json, pathlib, subprocess, sys
brief = sys.stdin.read().partition("try them before you say that you are done.")[2].lstrip("\\n")
commands = [line.strip() for line in brief.partition("\\n\\n")[0].splitlines()]
said = []
for command in commands:
    ran = subprocess.run(command, shell=True, capture_output=True, text=True)
    said.append(f"{command}: {ran.returncode} {' '.join((ran.stdout + ran.stderr).split())[-60:]}")
pathlib.Path("new.py").write_text("x = 1\\n")
print(json.dumps({"outcome": "done", "reason": "", "summary": " | ".join(said), "wants": []}))
"""


def test_the_gate_s_commands_work_in_the_agent_s_own_sandbox(person: Person) -> None:
    """The brief lists them as they stand; the prepared environment is on the path, and trying leaves nothing behind."""
    person.extra["BAILIWICK_RETENTION_MIN_FREE"] = "100MB"
    files = {
        "shop/__init__.py": "def f():\n    return 1\n",
        "tests/test_f.py": "from shop import f\n\n\ndef test_f():\n    assert f() == 1\n",
        "issue.md": "# Do it\n\nPlease.\n",
        ".bailiwick/gate.yaml": PREPARED,
    }
    person.cwd = write_repository(person.cwd / "own", files)
    program = person.home.parent / "agent.py"
    program.write_text(AGENT)
    person.extra |= {"AGENT_CMD": f"{shutil.which('python3')} {program}", "AGENT_CLI": "command"}
    result = person.runs("issue-to-pr", "issue.md", "--json", timeout=LONG)
    assert result.code == 0, result.out + result.err
    proposal = result.json()["context"]["proposal"]
    shown = person.runs("proposals", "show", proposal["id"]).out
    assert re.search(r"python -m pytest -q: 0 .*1 passed", shown)
    assert "own-lint: 0 /workspace/.venv" in shown
    assert branches(person.cwd) == [proposal["branch"]]
    assert "1 file, 1 line added" in shown


def test_a_copied_workflow_keeps_the_parts_that_come_along_or_brings_its_own(person: Person, tmp_path: Path) -> None:
    """`cp -r` and a change of one file: the run is pinned to what was there when it started."""
    from bailiwick.workflows.service import BUNDLED

    set_up_shop(person)
    mine = person.home / "config" / "workflows" / "issue-to-pr"
    shutil.copytree(BUNDLED / "issue-to-pr", mine)
    assert person.runs("validate", str(mine)).code == 0
    (mine / "bailiwick").mkdir()
    (mine / "bailiwick" / "rules.md").write_text("My own rules.\n")
    play = tmp_path / "refuse.yaml"
    play.write_text("nodes: {implement: [{answer: {outcome: refused, reason: no}}]}\n")
    result = asks(person, "--simulate", play)
    assert result.code == 6, result.out + result.err
    pinned = list((person.home / "state").glob("pins/*/bailiwick/rules.md"))
    assert [path.read_text() for path in pinned] == ["My own rules.\n"]
