"""The pytest check against code that wants to look green: each cheat is found and named."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from bailiwick.gate.model import CheckResult
from bailiwick.ids import Json
from tests.unit.gate.pytest_stage import Files, PytestCheckSetup

pytestmark = pytest.mark.nightly
"""Each takes seconds; tests/security/test_cheats.py tries the same in every run, through the whole gate."""
BASE: Files = {
    "conftest.py": "",
    "shop.py": """
        def discount(price, percent):
            return price - price * percent // 100
    """,
    "tests/test_shop.py": """
        import unittest
        import pytest
        import shop

        def test_none(): assert shop.discount(200, 0) == 200

        def test_ten():
            assert shop.discount(200, 10) == 180

        def test_refused():
            with pytest.raises(TypeError):
                shop.discount(None, 1)

        class OldTests(unittest.TestCase):
            def test_half(self):
                self.assertEqual(shop.discount(200, 50), 100)
    """,
}

MANAGER = """
    import gc
    from _pytest.config import PytestPluginManager

    class Plugin:
        import pytest

        @pytest.hookimpl(hookwrapper=True, tryfirst=True)
        def {hook}(self, {names}):
            outcome = yield
            {body}

    for found in gc.get_objects():
        if isinstance(found, PytestPluginManager):
            found.register(Plugin())
"""

CHEATS: dict[str, tuple[str, str]] = {
    "the process ends at once": ("cut-short", "import os\nos._exit(0)\ndef discount(p, q): pass"),
    "the process ends in the middle": ("cut-short", "import os\ndef discount(p, q): os._exit(0)"),
    "the parent leaves, a child goes on": (
        "cut-short", "import os\nif os.fork(): os._exit(0)\ndef discount(p, q): pass",
    ),
    "the exit code is exchanged": (
        "reports-disagree", "import atexit, os\natexit.register(os._exit, 0)\ndef discount(p, q): return 7",
    ),
    "pytest is told to stop": ("test-missing", "import pytest\ndef discount(p, q): pytest.exit('done', returncode=0)"),
    "an object equals everything": (
        "comparison-lies",
        """
        class Fine:
            def __eq__(self, other): return True
            __hash__ = None
        def discount(p, q):
            if p is None: raise TypeError
            return Fine()
        """,
    ),
    "a number equals everything": (
        "comparison-lies",
        """
        class Fine(int):
            def __eq__(self, other): return True
            def __ne__(self, other): return False
            __hash__ = None
        def discount(p, q):
            if p is None: raise TypeError
            return Fine()
        """,
    ),
    "the maker of reports is exchanged": (
        "runner-patched",
        """
        from _pytest.reports import TestReport
        real = TestReport.from_item_and_call.__func__
        def lie(kind, item, call):
            report = real(kind, item, call)
            report.outcome, report.longrepr = "passed", None
            return report
        TestReport.from_item_and_call = classmethod(lie)
        def discount(p, q): return 7
        """,
    ),
    "errors are no longer caught": (
        "runner-patched",
        """
        import _pytest.runner as runner
        real = runner.CallInfo.from_call.__func__
        runner.CallInfo.from_call = classmethod(lambda kind, func, when, reraise=None: real(kind, lambda: None, when))
        def discount(p, q): return 7
        """,
    ),
    "the code of a part is exchanged": (
        "runner-patched",
        """
        import _pytest.python
        def runtest(self): pass
        _pytest.python.Function.runtest.__code__ = runtest.__code__
        def discount(p, q): return 7
        """,
    ),
    "a hook rewrites reports": (
        "hook-added",
        MANAGER.format(
            hook="pytest_runtest_makereport", names="item, call", body="outcome.get_result().outcome = 'passed'"
        )
        + "\n    def discount(p, q): return 7",
    ),
    "a hook swallows errors": (
        "hook-added",
        MANAGER.format(hook="pytest_pyfunc_call", names="pyfuncitem", body="outcome.force_result(True)")
        + "\n    def discount(p, q): return 7",
    ),
    "a method of unittest says nothing": (
        "runner-patched",
        """
        import unittest
        unittest.TestCase.assertEqual = lambda *_: None
        def discount(p, q): return p - p * q // 100
        """,
    ),
    "a test is exchanged for an empty one": (
        "runner-patched",
        """
        import sys
        def discount(p, q):
            tests = sys.modules.get("test_shop")
            def empty(): pass
            for name in ("test_none", "test_ten", "test_refused"):
                getattr(tests, name).__code__ = empty.__code__
            if p is None: raise TypeError
            return p - p * q // 100
        """,
    ),
    "tests are skipped from inside": ("test-skipped", "import pytest\ndef discount(p, q): pytest.skip('not now')"),
    "failures are expected from inside": ("test-xfailed", "import pytest\ndef discount(p, q): pytest.xfail('known')"),
    "assertions raise what skips": (
        "test-skipped",
        """
        import builtins, pytest
        builtins.AssertionError = pytest.skip.Exception
        def discount(p, q): return 7
        """,
    ),
    "the list of tests is emptied": (
        "test-missing",
        """
        import gc
        from _pytest.main import Session
        def discount(p, q):
            for found in gc.get_objects():
                if isinstance(found, Session): del found.items[1:]
            return p - p * q // 100
        """,
    ),
    "the pipe is written to": (
        "forged-record",
        """
        import os
        for handle in range(3, 64):
            try: os.write(handle, b"\\0\\0\\0\\2" + b"0" * 16 + b"{}")
            except OSError: pass
        def discount(p, q): return p - p * q // 100
        """,
    ),
    "the pipe is closed": (
        "cut-short", "import os\nos.closerange(3, 256)\ndef discount(p, q): return p - p * q // 100",
    ),
    "our part is taken out": (
        "cut-short",
        """
        import gc
        from _pytest.config import PytestPluginManager
        for found in gc.get_objects():
            if isinstance(found, PytestPluginManager):
                for plugin in list(found.get_plugins()):
                    if type(plugin).__name__ == "Witness": found.unregister(plugin)
        def discount(p, q): return 7
        """,
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def known() -> dict[str, Json]:
    """What is known of the base: learnt by the first test, used by the others."""
    return {}


def _check(place: Path, known: dict[str, Json] | None, **files: str) -> CheckResult:
    changed = {name.replace("__", "/") + ".py": text for name, text in files.items()}
    return PytestCheckSetup(place, BASE, {**BASE, **changed}, known=known).check()


def _codes(result: CheckResult) -> set[str]:
    return {finding.code for finding in result.findings if finding.blocks}


@pytest.mark.parametrize("cheat", CHEATS)
def test_a_cheat_is_found_and_named(cheat: str, known: dict[str, Json], tmp_path: Path) -> None:
    """Exit code 0 and a green summary are easy to have; this is what they don't hide."""
    code, source = CHEATS[cheat]
    result = _check(tmp_path, known, builder=source)
    assert result.outcome == "failed"
    assert code in _codes(result), result.findings


def test_an_honest_change_is_green(known: dict[str, Json], tmp_path: Path) -> None:
    """The same rules find nothing where there is nothing, and say what was shown."""
    result = _check(tmp_path, known, builder="def discount(p, q):\n    return p * (100 - q) // 100\n")
    assert (result.outcome, [f.code for f in result.findings], result.failing) == (
        "passed",
        ["changed-beside-tests"],
        (),
    )
    assert dict(result.counts) == {"passed": 4, "expected": 4, "watched": 4, "new": 0}
    assert len(result.exercised) == 4
    assert result.unproven.startswith("no test shows this fix")


def test_a_wrong_change_is_red_by_its_tests(known: dict[str, Json], tmp_path: Path) -> None:
    """A change that is only wrong is told by the ids of what fails, with what pytest printed."""
    result = _check(tmp_path, known, builder="def discount(price, percent):\n    return price - percent\n")
    assert result.outcome == "failed"
    assert result.failing == ("tests/test_shop.py::test_ten", "tests/test_shop.py::OldTests::test_half")
    assert "assert 190 == 180" in result.output
    assert result.findings == ()


def test_a_file_that_python_starts_by_itself_is_refused(tmp_path: Path) -> None:
    """It would run before anything that watches."""
    for path in ("sitecustomize.py", "src/usercustomize/__init__.py", "sitecustomize.cpython-311-x86_64-linux-gnu.so"):
        result = PytestCheckSetup(tmp_path, BASE, {**BASE, path: ""}).check()
        assert _codes(result) == {"loads-itself"}


def test_a_package_directory_in_the_tree_brings_no_plugin(tmp_path: Path) -> None:
    """pytest loads what installed packages announce; what lies in the tree is not installed."""
    plugin = MANAGER.format(hook="pytest_runtest_makereport", names="item, call", body="raise RuntimeError('loaded')")
    announced = {
        "cheat.py": dedent(plugin),
        "cheat.egg-info/PKG-INFO": "Metadata-Version: 2.1\nName: cheat\nVersion: 1\n",
        "cheat.egg-info/entry_points.txt": "[pytest11]\ncheat = cheat\n",
    }
    stage = PytestCheckSetup(tmp_path, BASE, {**BASE, **announced}, autoload=True)
    result = stage.check("python", "-m", "pytest", "-q", "-p", "no:randomly")
    assert (result.outcome, result.findings) == ("passed", ())


def test_a_test_that_the_change_softens_is_held_to_its_old_form(tmp_path: Path) -> None:
    """Where a test file is not protected, its id is there and green; what it said before is what counts."""
    soft = BASE["tests/test_shop.py"].replace("== 180", "is not None")
    files = {"shop.py": "def discount(p, q):\n    return p - 20 * (q == 50) * 5\n", "tests/test_shop.py": soft}
    result = PytestCheckSetup(tmp_path, BASE, {**BASE, **files}).check()
    assert (result.outcome, result.failing) == ("failed", ("tests/test_shop.py::test_ten",))


def test_a_change_that_a_person_allowed_blocks_nothing(tmp_path: Path) -> None:
    """Who allowed a test to go has decided; it is listed all the same."""
    fewer = BASE["tests/test_shop.py"].replace("test_ten", "other_ten")
    stage = PytestCheckSetup(tmp_path, BASE, {**BASE, "tests/test_shop.py": fewer}, allowed=("tests/test_shop.py",))
    result = stage.check()
    assert result.outcome == "passed"
    assert [(f.code, f.blocks) for f in result.findings] == [("test-missing", False)]


def test_a_test_that_is_gone_or_skipped_is_run_as_the_base_has_it(tmp_path: Path) -> None:
    """Whatever a change makes of the base's tests, they are asked in their own form."""
    edited = BASE["tests/test_shop.py"].replace("def test_none()", "@pytest.mark.skip\n        def test_none()")
    edited = edited.replace("def test_ten", "@pytest.mark.xfail\n        def test_ten").replace(
        "test_refused", "refused"
    )
    result = PytestCheckSetup(
        tmp_path, BASE, {**BASE, "tests/test_shop.py": edited, "shop.py": "discount = max"}
    ).check()
    assert result.outcome == "failed"
    assert "tests/test_shop.py::test_ten" in result.failing


def test_deselected_tests_are_named(tmp_path: Path) -> None:
    """A conftest.py that leaves tests out is protected; where a person let it in, this is what it does."""
    hook = """
        def pytest_collection_modifyitems(config, items):
            config.hook.pytest_deselected(items=items[1:])
            del items[1:]
    """
    result = PytestCheckSetup(tmp_path, BASE, {**BASE, "conftest.py": hook}).check()
    assert _codes(result) == {"test-deselected", "hook-added"}
