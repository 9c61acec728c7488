"""Tests without their tool: those that need nothing of it run, the others are left out, and nothing is guessed."""

from __future__ import annotations

import decimal
import os
import signal
import sys
import textwrap
import types
from pathlib import Path
from typing import Any

import pytest

from bailiwick.gate.plainly import PlainTestRun as Ended
from bailiwick.gate.plainly import alone_findings, could_be_alone, undeclared
from bailiwick.gate.plugin import alone, standin
from bailiwick.gate.plugin.alone import Alone, Barrier, can_be_alone, twice_alone
from bailiwick.gate.plugin.calls import in_child

FILE = """
import unittest
import warnings
import pytest
from pytest import approx, mark, raises

@pytest.fixture
def made(): return 1

def test_passes(): assert 1 + 1 == 2
def test_fails(): assert 1 + 1 == 3
def test_with_a_fixture(made): assert made
def test_raises():
    with raises(ValueError, match="no"): raise ValueError("no price")
def test_raises_another():
    with raises(ValueError): raise KeyError(1)
def test_raises_nothing():
    with pytest.raises(ValueError): pass
def test_warns():
    with pytest.warns(DeprecationWarning, match="old"): warnings.warn("old", DeprecationWarning)
def test_near(): assert 0.1 + 0.2 == approx(0.3) and [0.1] != approx([0.2])
def test_skips(): pytest.skip("no")
def test_patches(monkeypatch: pytest.MonkeyPatch, tmp_path):
    import os
    monkeypatch.setenv("PLAIN_TEST", "1")
    monkeypatch.setattr(os, "sep", "!")
    assert os.environ["PLAIN_TEST"] == "1" and os.sep == "!" and tmp_path.is_dir()
def test_is_put_back():
    import os
    assert "PLAIN_TEST" not in os.environ and os.sep == "/"
@mark.parametrize(("one", "two"), [(1, 1), pytest.param(2, 2, id="x")])
@mark.parametrize("three", [(1, 2)])
@mark.slow
def test_rows(one, two, three): assert one == two and three == (1, 2)
@mark.parametrize("one", [1, 2])
def test_wrong_row(one): assert one == 1
async def test_driven(): assert 1
def test_unknown(): pytest.register_assert_rewrite("x")

class TestPlain:
    def test_in_class(self): assert self
class TestSetUp:
    def setup_method(self): pass
    def test_set_up(self): assert self
class Case(unittest.TestCase):
    def setUp(self): self.one = 1
    def test_case(self): self.assertEqual(self.one, 1)
    def test_wrong_case(self): self.assertEqual(self.one, 2)
"""
PASS = ("passes", "raises", "warns", "near", "patches", "is_put_back", "rows")
FAIL = ("fails", "raises_another", "raises_nothing", "wrong_row")
OUT = ("with_a_fixture", "skips", "driven", "unknown")


@pytest.fixture(autouse=True)
def _together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Inside, all texts share one namespace."""
    for name in ("LeftOut", "Patch", "StandIn", "rows_of"):
        monkeypatch.setattr(alone, name, getattr(standin, name), raising=False)


def _run(folder: Path, test: str, text: str = FILE) -> str:
    (folder / "test_plain_file.py").write_text(text)
    return Alone(str(folder), hidden=True).run(f"test_plain_file.py::{test}")


@pytest.mark.parametrize("name", [*(f"test_{name}" for name in PASS), "TestPlain::test_in_class", "Case::test_case"])
def test_a_test_that_needs_nothing_runs(name: str, tmp_path: Path) -> None:
    """Functions, methods, TestCases, parameters, and the two fixtures that are easily made."""
    assert _run(tmp_path, name) == ""


@pytest.mark.parametrize("name", [*(f"test_{name}" for name in FAIL), "Case::test_wrong_case"])
def test_a_test_that_fails_says_so(name: str, tmp_path: Path) -> None:
    """With what it raised."""
    assert "Error" in _run(tmp_path, name)


@pytest.mark.parametrize("name", [*(f"test_{name}" for name in OUT), "TestSetUp::test_set_up", "test_nowhere"])
def test_a_test_that_can_t_be_run_is_left_out_or_not_there(name: str, tmp_path: Path) -> None:
    """Nothing is said about it."""
    told = _run(tmp_path, name)
    assert told.startswith("left out") or name == "test_nowhere"


@pytest.mark.parametrize(
    "conftest", ["import os\nos.environ['X'] = '1'\n", "def pytest_configure(config): pass\n", "X = print()\n"]
)
def test_what_a_conftest_prepares_is_not_guessed(conftest: str, tmp_path: Path) -> None:
    """Tests below it are left out; one that only defines things is harmless."""
    (tmp_path / "conftest.py").write_text(conftest)
    assert _run(tmp_path, "test_passes").startswith("left out")
    (tmp_path / "conftest.py").write_text('"""Help."""\nimport os\nNAME = "x"\ndef help(): return os.getcwd()\n')
    assert _run(tmp_path, "test_passes") == ""


def test_nothing_tells_of_a_test(tmp_path: Path) -> None:
    """Neither the file nor the function nor a loaded tool, where that is asked for."""
    text = """
    import sys
    def place():
        frame = sys._getframe(1)
        return frame.f_code.co_filename + frame.f_code.co_name + frame.f_globals["__name__"]
    def test_place(): assert "test" not in place()
    """
    (tmp_path / "test_seen.py").write_text(textwrap.dedent(text))
    asked = ["test_seen.py::test_place"]
    assert dict(twice_alone(str(tmp_path), asked, hidden=True)) == {asked[0]: ["", ""]}
    assert dict(twice_alone(str(tmp_path), asked, hidden=False))[asked[0]][0]


def test_a_tool_is_kept_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever asks for it does not get it, and that is known."""
    barrier = Barrier()
    with pytest.raises(ModuleNotFoundError):
        barrier.find_spec("pytest.x")
    assert barrier.hit
    others = Barrier(["packaging"])
    others.find_spec("pytest")
    assert not others.hit


@pytest.mark.parametrize(
    ("fixtures", "params", "bare"),
    [
        ((), {}, True),
        (("one",), {"one": 1}, True),
        (("monkeypatch", "tmp_path", "tmp_path_factory"), {}, True),
        (("db",), {}, False),
        (("_unittest_setUpClass_fixture_A",), {}, True),
        (("_xunit_setup_module_fixture_a",), {}, False),
    ],
)
def test_only_tests_without_fixtures_are_bare(fixtures: tuple[str, ...], params: dict[str, int], bare: bool) -> None:
    """Also of those that nobody asked for by name."""
    callspec = types.SimpleNamespace(params=params)
    item = types.SimpleNamespace(fixturenames=list(fixtures), callspec=callspec, function=lambda: None)
    assert can_be_alone(item) is bare


@pytest.mark.parametrize("expected", [1, 0.1, decimal.Decimal("0.1"), [0.1, 2], (1.5,), {"a": 0.3}, True, 1e20, 0])
@pytest.mark.parametrize("off", [0, 1e-14, 1e-9, 1e-3])
def test_nearness_is_pytest_s(expected: Any, off: float) -> None:
    """The same answer as the real one for numbers, lists and dicts of them."""

    def moved(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: moved(one) for key, one in value.items()}
        if isinstance(value, (list, tuple)):
            return type(value)(moved(one) for one in value)
        return value if isinstance(value, bool) else value + type(value)(off)

    assert (moved(expected) == standin.Approx(expected)) == (moved(expected) == pytest.approx(expected))
    if not isinstance(expected, decimal.Decimal):
        assert (moved(expected) == standin.Approx(expected, abs=0.01)) == (
            moved(expected) == pytest.approx(expected, abs=0.01)
        )


def test_a_child_tells_what_it_did_and_is_ended_in_time() -> None:
    """What it changes stays there; one that hangs is ended, and what it told before counts."""
    handle = os.open(os.devnull, os.O_RDONLY)

    def act(tell: Any) -> None:
        sys.modules["only_in_the_child"] = sys
        tell({"a": 1})
        tell({"b": "x" * 100_000})

    try:
        found = list(in_child(act, 120, handle))
        assert [set(one) for one in found] == [{"a"}, {"b"}]
        assert "only_in_the_child" not in sys.modules

        def hang(tell: Any) -> None:
            tell({"a": 1})
            while True:
                signal.pause()

        assert list(in_child(hang, 2, handle)) in ([{"a": 1}], [])
    finally:
        os.close(handle)


def test_only_whole_functions_are_run() -> None:
    """Of parametrized tests all have to be bare and to pass."""
    assert could_be_alone({"a::t[1]", "a::t[2]", "a::u", "a::v"}, {"a::t[1]", "a::u"}) == ["a::u"]


def test_a_test_that_fails_without_its_tool_is_a_finding() -> None:
    """Proven where the base passes like that; a person is asked where the base can't say; else nothing."""
    bad, good = ("AssertionError: ",) * 2, ("", "")
    tests = [
        Ended("a::proven", bad, good),
        Ended("a::never", bad, bad),
        Ended("a::healed", bad, bad),
        Ended("a::wavers", ("", "x"), good),
        Ended("a::out", ("left out: x",), good),
    ]
    known = {"a::proven", "a::never", "a::wavers", "a::out"}
    found = alone_findings(tests, known, "shop.py")
    assert [(f.what.split()[0], f.blocks, f.parks) for f in found] == [
        ("a::proven", True, False),
        ("a::healed", False, True),
    ]


def test_what_a_project_declares_is_its_own() -> None:
    """Whoever depends on it may use it."""
    assert "packaging" in undeclared(["[project]\n"])
    assert "packaging" not in undeclared(['dependencies = ["packaging>=20"]'])
