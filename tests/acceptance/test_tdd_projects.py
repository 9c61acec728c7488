"""Test-driven work on real small projects: real runners, in the real sandbox."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest

from bailiwick.routing.model import CheckOutcome, Result
from bailiwick.sandbox.port import SandboxBackend
from bailiwick.skills.checks import find_check
from bailiwick.skills.site import CheckArguments
from tests.unit.gate.gate_stage import real_sandbox
from tests.unit.skills.skill_stage import ProjectSetup, given

pytestmark = pytest.mark.slow

PYTHON = {
    "calc.py": "def add(a, b):\n    return a + b\n",
    "tests/test_add.py": "from calc import add\n\n\ndef test_add():\n    assert add(1, 2) == 3\n",
    "pytest.ini": "[pytest]\npythonpath = .\n",
}
TEST = "tests/test_sub.py"
WANTED = "from calc import sub\n\n\ndef test_sub():\n    assert sub(3, 1) == 2\n"
SOLVED = PYTHON["calc.py"] + "\n\ndef sub(a, b):\n    return a - b\n"
PYTEST = CheckArguments("pytest -q", TEST, "calc.py")


@cache
def sandbox() -> SandboxBackend:
    """The sandbox of this machine, tried once."""
    return real_sandbox()


def make(top: Path, files: Mapping[str, str], *, repository: bool = False) -> ProjectSetup:
    """A project, and a sandbox in which its tests run; pytest starts faster without the plugins of this machine."""
    stage = ProjectSetup(top, sandbox(), marks={"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"})
    stage.write(files)
    if repository:
        subprocess.run(["git", "init", "-q"], cwd=stage.root, check=True, timeout=600)
        subprocess.run(["git", "add", "."], cwd=stage.root, check=True, timeout=600)
    return stage


def attempt(stage: ProjectSetup, phase: str, files: Mapping[str, str], asked: CheckArguments = PYTEST) -> CheckOutcome:
    """One attempt of a phase as the router makes it; what holds is in the project afterwards."""

    async def history() -> CheckOutcome:
        bench = stage.bench(find_check("tdd", phase), asked)
        await bench.open()
        await bench.begin()
        assert await bench.put(given(files)) == ""
        checked = await bench.check(Result("pass", phase, "tdd", "done"))
        if checked.ok:
            assert await bench.keep() == ""
        await bench.drop()
        return checked

    return asyncio.run(history())


def test_red_green_and_refactor_follow_each_other(tmp_path: Path) -> None:
    """The whole way in a repository: each step is in the project before the next begins."""
    stage = make(tmp_path, PYTHON, repository=True)
    red = attempt(stage, "red", {TEST: WANTED})
    assert (red.ok, red.details["reason"]) == (True, "missing"), red.feedback
    assert "[exit code 1]" in red.output
    green = attempt(stage, "green", {"calc.py": SOLVED})
    assert green.ok, green.feedback
    assert "2 passed" in green.output
    refactored = attempt(stage, "refactor", {"calc.py": SOLVED.replace("a - b", "-b + a")})
    assert refactored.ok, refactored.feedback
    assert stage.listed() == {**PYTHON, TEST: WANTED, "calc.py": SOLVED.replace("a - b", "-b + a")}
    assert list(stage.scratch.iterdir()) == []


def test_red_for_a_syntax_error_is_refused(tmp_path: Path) -> None:
    """It says nothing about the product."""
    stage = make(tmp_path, PYTHON)
    checked = attempt(stage, "red", {TEST: "def test_sub(:\n    pass\n"})
    assert not checked.ok
    assert "SyntaxError" in checked.feedback
    assert stage.listed() == PYTHON


def test_green_that_touched_the_test_is_refused(tmp_path: Path) -> None:
    """Whatever the runner would say."""
    stage = make(tmp_path, {**PYTHON, TEST: WANTED})
    checked = attempt(stage, "green", {TEST: "def test_sub():\n    pass\n"})
    assert not checked.ok
    assert "have to stay as they are" in checked.feedback
    assert stage.listed()[TEST] == WANTED


BROKEN = {
    "fixture": ("def test_sub(nothing):\n    assert nothing\n", "fixture 'nothing' not found"),
    "name": ("def test_sub():\n    assert sub(3, 1) == 2\n", "NameError"),
    "nothing": ("x = 1\n", "the tests pass"),
    "passes": ("from calc import add\n\n\ndef test_sub():\n    assert add(1, 1) == 2\n", "the tests pass"),
    "skips": ("import pytest\n\n\ndef test_sub():\n    pytest.skip('later')\n", "the tests pass"),
    "raises": ("def test_sub():\n    1 / 0\n", "ZeroDivisionError"),
    "always": ("def test_sub():\n    assert False\n", "whatever is written"),
    "exits": ("import os\n\nos._exit(1)\n", "can't be trusted"),
    "relative": ("from . import calc\n\n\ndef test_sub():\n    assert calc\n", "relative import"),
}


@pytest.mark.nightly
@pytest.mark.parametrize("name", BROKEN)
def test_red_that_proves_nothing_is_refused(tmp_path: Path, name: str) -> None:
    """By what a real pytest says of it."""
    source, why = BROKEN[name]
    checked = attempt(make(tmp_path, PYTHON), "red", {TEST: source})
    assert not checked.ok
    assert why in checked.feedback


CHEATS = {
    "wrong": {"calc.py": SOLVED.replace("a - b", "a + b")},
    "exit": {"calc.py": "import os\n\nos._exit(0)\n"},
    "patch": {"calc.py": SOLVED + "\nimport _pytest.runner as r\n\nr.check_interactive_exception = print\n"},
    "skip": {"calc.py": "import pytest\n\npytest.skip('x', allow_module_level=True)\n"},
}  # fmt: skip


@pytest.mark.nightly
@pytest.mark.parametrize("name", CHEATS)
def test_green_by_a_trick_is_refused(tmp_path: Path, name: str) -> None:
    """Exit code 0 is not enough."""
    stage = make(tmp_path, {**PYTHON, TEST: WANTED})
    assert not attempt(stage, "green", CHEATS[name]).ok


def test_tests_have_no_network_and_no_way_to_the_persons_files(tmp_path: Path) -> None:
    """What a model wrote runs in the sandbox."""
    stage = make(tmp_path, {"private/key": "secret", "probe.py": ""})
    probe = (
        "import pathlib, socket\n"
        f"print('key', pathlib.Path({str(tmp_path / 'project' / '..' / 'outside')!r}).exists())\n"
        "line = socket.socket()\nline.settimeout(2)\n"
        "print('net', line.connect_ex(('192.0.2.1', 80)) == 0)\nraise SystemExit(3)\n"
    )
    (tmp_path / "outside").write_text("secret")
    checked = attempt(stage, "green", {"probe.py": probe}, CheckArguments("python3 probe.py", "x"))
    assert "key False\nnet False\n[exit code 3]" in checked.output


def test_a_virtual_environment_that_git_ignores_is_used_with_the_copys_code(tmp_path: Path) -> None:
    """A package that was installed to be edited is that of the copy, not that of the project."""
    stage = make(
        tmp_path,
        {
            "src/shop/__init__.py": "",
            "src/shop/price.py": "LOWEST = 1\n",
            ".gitignore": ".venv/\n",
            "tests/test_price.py": "import unittest\n\nfrom shop.price import LOWEST\n\n\n"
            "class TestPrice(unittest.TestCase):\n    def test_lowest(self):\n        self.assertEqual(LOWEST, 0)\n",
        },
        repository=True,
    )
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(stage.root / ".venv")], check=True, timeout=600)
    [packages] = (stage.root / ".venv").glob("lib/python3*/site-packages")
    (packages / "shop.pth").write_text(f"{stage.root / 'src'}\n", "utf-8")
    asked = CheckArguments(".venv/bin/python -m unittest discover -s tests", "tests/test_price.py")
    assert "exit code 1" in attempt(stage, "green", {"src/shop/price.py": "LOWEST = 2\n"}, asked).feedback
    solved = attempt(stage, "green", {"src/shop/price.py": "LOWEST = 0\n"}, asked)
    assert solved.ok, solved.feedback + solved.output
    assert "Ran 1 test" in solved.output


@pytest.mark.nightly
@pytest.mark.needs("node")
def test_another_runner_than_pytest_is_judged_too(tmp_path: Path) -> None:
    """node's own runner: a missing function is red, a syntax error is not."""
    head = "const test = require('node:test'), assert = require('node:assert'), calc = require('./calc.js');\n"
    stage = make(tmp_path, {"calc.js": "exports.add = (a, b) => a + b;\n"})
    asked = CheckArguments("node --test", "calc.test.js")
    broken = attempt(stage, "red", {"calc.test.js": head + "test('sub', ( => {});\n"}, asked)
    assert "broken itself" in broken.feedback
    red = attempt(stage, "red", {"calc.test.js": head + "test('sub', () => assert.equal(calc.sub(3, 1), 2));\n"}, asked)
    assert (red.ok, red.details["reason"]) == (True, "missing"), red.feedback
    solved = "exports.add = (a, b) => a + b;\nexports.sub = (a, b) => a - b;\n"
    assert attempt(stage, "green", {"calc.js": solved}, asked).ok
