"""The pytest check on honest projects: what the base tells about a change, and what proves it."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from bailiwick.gate.backends.pytest import PytestCheck
from bailiwick.gate.backends.pytest_command import PytestCommand
from bailiwick.gate.backends.pytest_run import Runner
from bailiwick.gate.backends.pytest_study import Study
from bailiwick.gate.judging import WatchedRun
from bailiwick.gate.spec import CheckSpec
from bailiwick.ids import Json
from bailiwick.sandbox.toolchains import Toolchains
from tests.unit.gate.pytest_stage import Files, PytestCheckSetup

WRONG = "def discount(price, percent):\n    return price - percent\n"
RIGHT = "def discount(price, percent):\n    return price - price * percent // 100\n"
OLD_TEST = "import shop\ndef test_none(): assert shop.discount(200, 0) == 200\n"
NEW_TEST = "import shop\ndef test_ten(): assert shop.discount(200, 10) == 180\n"
BASE: Files = {"conftest.py": "", "shop.py": WRONG, "tests/test_old.py": OLD_TEST}

MANY_KINDS = """
    import asyncio, contextlib, unittest
    import pytest

    @pytest.fixture(params=["a", "b"])
    def letter(request): return request.param

    @pytest.mark.parametrize("n", [1, 2, pytest.param(3, marks=pytest.mark.skip)])
    def test_cases(n, letter): assert n < 3 and letter in "ab"

    def test_each():
        for i in range(3):
            assert i < 3

    @pytest.mark.xfail
    def test_expected(): assert 0

    def test_raises():
        with pytest.raises(ZeroDivisionError):
            1 / 0

    def test_swallowed():
        try:
            assert 1 == 1
        except Exception:
            pass

    def test_says_nothing(): print("nothing")

    def test_early():
        if True:
            return
        assert 1 == 1

    def around(function):
        def wrapper(): return function()
        return wrapper

    @around
    def test_wrapped(): assert 1 == 1

    class TestGroup:
        def test_in_class(self): assert [1] == [1]

    class Shared:
        def test_shared(self): self.assertEqual(self.value, self.value)

    class OneTests(Shared, unittest.TestCase):
        value = 1

        def setUp(self): self.x = 1

        def test_sub(self):
            for i in range(2):
                with self.subTest(i=i):
                    self.assertTrue(i < 2)

        @unittest.skip("not here")
        def test_skipped(self): self.fail()

        @unittest.expectedFailure
        def test_expected(self): self.fail()

    class AsyncTests(unittest.IsolatedAsyncioTestCase):
        async def test_awaits(self):
            await asyncio.sleep(0)
            self.assertEqual(1, 1)
"""


def test_every_kind_of_test_is_watched_without_a_word_about_an_honest_project(tmp_path: Path) -> None:
    """Asking again changes nothing about what tests do, and each of them is seen to fail when it must."""
    files = {"test_many.py": MANY_KINDS}
    stage = PytestCheckSetup(tmp_path, files, files)
    result = stage.check()
    assert (result.outcome, result.code, result.failing, result.findings) == ("passed", 0, (), ())
    assert dict(result.counts) == {"passed": 14, "skipped": 3, "xfailed": 2}

    async def watched() -> WatchedRun:
        context = PytestCheckSetup(tmp_path, files, files).context()
        study = Study(
            CheckSpec("tests", "pytest", ("pytest",)), context, Runner(PytestCommand("pytest", ()), context, None)
        )
        base = (await study.base()).session
        return await study.watch_base(base, base.passed)

    run = asyncio.run(watched())
    passed = {item.id for item in run.session.items}
    assert (run.doubtful(passed), run.differing(passed)) == (set(), [])
    assert set(run.session.outcomes.values()) == {"failed"}


def test_a_new_test_that_fails_on_the_base_is_the_proof(tmp_path: Path) -> None:
    """That is what shows that the change does what was asked."""
    result = PytestCheckSetup(tmp_path, BASE, {**BASE, "shop.py": RIGHT, "tests/test_new.py": NEW_TEST}).check()
    assert (result.outcome, result.proof, result.unproven) == ("passed", ("tests/test_new.py::test_ten",), "")


@pytest.mark.nightly
def test_a_new_test_of_something_new_is_a_proof_though_the_base_can_t_import_it(tmp_path: Path) -> None:
    """On the base the file can't be collected: it fails there."""
    new = {
        "shop.py": WRONG + "def tax(p): return p // 5\n",
        "tests/test_tax.py": "import shop\nfrom shop import tax\ndef test_tax(): assert tax(10) == 2\n",
    }
    result = PytestCheckSetup(tmp_path, BASE, {**BASE, **new}).check()
    assert (result.outcome, result.proof) == ("passed", ("tests/test_tax.py::test_tax",))


def test_a_new_test_that_passes_on_the_base_proves_nothing(tmp_path: Path) -> None:
    """It is let through, and said."""
    result = PytestCheckSetup(tmp_path, BASE, {**BASE, "shop.py": RIGHT, "tests/test_new.py": OLD_TEST}).check()
    assert (result.outcome, result.proof) == ("passed", ())
    assert result.unproven.startswith("no test shows this fix: 1 new tests pass on the base too")


@pytest.mark.nightly
def test_a_new_test_that_passes_whatever_happens_proves_nothing(tmp_path: Path) -> None:
    """It fails on the base because of an import, and would pass here with any code behind it."""
    empty = """
        from shop import tax
        def test_tax():
            try:
                assert tax(10) == 3
            except Exception:
                return
    """
    new = {"shop.py": WRONG + "def tax(p): return 0\n", "tests/test_tax.py": empty}
    result = PytestCheckSetup(tmp_path, BASE, {**BASE, **new}).check()
    assert (result.outcome, result.proof) == ("passed", ())


def test_a_test_that_was_red_and_is_green_is_healed_and_not_new(tmp_path: Path) -> None:
    """A red build that is healed needs no new test."""
    base = {**BASE, "tests/test_ten.py": NEW_TEST}
    result = PytestCheckSetup(tmp_path, base, {**base, "shop.py": RIGHT}).check()
    assert (result.outcome, result.proof, result.healed) == ("passed", (), ("tests/test_ten.py::test_ten",))
    assert result.unproven == ""


@pytest.mark.nightly
def test_what_is_red_on_the_base_too_is_told_apart(tmp_path: Path) -> None:
    """The change did not break it; whether it may stay red is for others to say."""
    base = {**BASE, "tests/test_ten.py": NEW_TEST}
    result = PytestCheckSetup(tmp_path, base, {**base, "readme.txt": "changed"}).check()
    assert (result.outcome, result.failing) == ("red_on_base", ("tests/test_ten.py::test_ten",))


@pytest.mark.nightly
def test_a_second_red_test_is_not_excused_by_a_first(tmp_path: Path) -> None:
    """Exactly those that are red on the base are excused."""
    base = {**BASE, "tests/test_ten.py": NEW_TEST}
    result = PytestCheckSetup(tmp_path, base, {**base, "shop.py": "def discount(p, q): return 7\n"}).check()
    assert result.outcome == "failed"
    assert set(result.failing) == {"tests/test_ten.py::test_ten", "tests/test_old.py::test_none"}


@pytest.mark.nightly
def test_a_test_that_wavers_on_the_base_is_not_the_change_s_fault(tmp_path: Path) -> None:
    """It is run once more there before anybody is blamed."""
    mark = tmp_path / "ran"
    waver = f"""
        import pathlib
        def test_waver():
            mark = pathlib.Path({str(mark)!r})
            seen = mark.exists()
            mark.touch()
            assert not seen
    """
    base = {**BASE, "tests/test_waver.py": waver}
    known: dict[str, Json] = {}
    assert PytestCheckSetup(tmp_path, base, base, known=known).check().outcome in ("passed", "red_on_base", "failed")
    known["tests"]["session"]["outcomes"]["tests/test_waver.py::test_waver"] = "passed"
    result = PytestCheckSetup(tmp_path, base, {**base, "shop.py": RIGHT}, known=known).check()
    assert (result.outcome, result.failing) == ("red_on_base", ("tests/test_waver.py::test_waver",))


@pytest.mark.nightly
def test_ids_that_change_from_run_to_run_are_not_missed(tmp_path: Path) -> None:
    """A case named by an address or a random number has another id each time, on the base as well."""
    named = "import os, pytest\n@pytest.mark.parametrize('x', [os.urandom(4).hex()])\ndef test_x(x): assert x == x\n"
    base = {**BASE, "tests/test_random.py": named}
    result = PytestCheckSetup(tmp_path, base, {**base, "shop.py": RIGHT}).check()
    assert (result.outcome, [f.code for f in result.findings if f.blocks]) == ("passed", [])


@pytest.mark.nightly
def test_what_is_known_of_the_base_is_not_run_again(tmp_path: Path) -> None:
    """Of the runs of one gate after another, those of the base are made once."""
    known: dict[str, Json] = {}
    first = PytestCheckSetup(tmp_path, BASE, {**BASE, "shop.py": RIGHT}, known=known)
    assert first.check().outcome == "passed"
    second = PytestCheckSetup(tmp_path, BASE, {**BASE, "shop.py": RIGHT}, known=known)
    assert second.check().outcome == "passed"
    assert (first.made, second.made) == (6, 5)


@pytest.mark.slow
def test_a_test_that_never_ends_is_ended(tmp_path: Path) -> None:
    """The time of the check is the time of each run; it says so and names nothing as missing."""
    stage = PytestCheckSetup(
        tmp_path, BASE, {**BASE, "shop.py": "import threading\ndef discount(p, q): threading.Event().wait()\n"}
    )
    result = stage.check(timeout=20.0)
    assert result.outcome == "failed"
    assert [f.code for f in result.findings] == ["timeout"]


@pytest.mark.nightly
def test_a_test_that_hangs_without_the_changed_function_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An honest test may wait for a thread that a function which was taken away no longer lets go."""
    monkeypatch.setattr("bailiwick.gate.backends.pytest_study.LIMIT", 0.5)
    hangs = """
        import threading
        from concurrent.futures import ThreadPoolExecutor
        import shop
        def test_hangs():
            go = threading.Event()
            with ThreadPoolExecutor(1) as pool:
                pool.submit(go.wait)
                shop.discount(1, 1)
                go.set()
    """
    base = {**BASE, "tests/test_a.py": hangs}
    result = PytestCheckSetup(tmp_path, base, {**base, "shop.py": RIGHT}).check()
    assert result.outcome == "passed"
    assert dict(result.counts)["watched"] == 2


@pytest.mark.nightly
def test_options_that_hide_tests_are_overruled(tmp_path: Path) -> None:
    """Stopping at the first failure, other processes, an order by chance: none of it may lose an outcome."""
    ini = "[pytest]\naddopts = -x -n 2 --lf\n"
    more = "def test_a(): assert 1 == 1\ndef test_b(): assert 2 == 2\n"
    base = {**BASE, "pytest.ini": ini, "tests/test_more.py": more}
    result = PytestCheckSetup(tmp_path, base, {**base, "shop.py": RIGHT}, autoload=True).check()
    assert result.outcome == "passed", result.findings
    assert dict(result.counts) == {"passed": 3, "expected": 3, "watched": 1, "new": 0}


@pytest.mark.nightly
def test_a_property_is_watched_too(tmp_path: Path) -> None:
    """Hypothesis calls the function many times; nobody waits for the smallest of examples that all fail."""
    prop = """
        from hypothesis import given, strategies as st
        import shop
        @given(st.integers(0, 9))
        def test_free(price): assert shop.discount(price, 0) == price
    """
    base = {**BASE, "tests/test_property.py": prop}
    result = PytestCheckSetup(tmp_path, base, {**base, "shop.py": RIGHT}, autoload=True).check()
    assert result.outcome == "passed"
    assert [f.code for f in result.findings if f.blocks or f.parks] == ["changed-beside-tests"], "no test shows the fix"
    assert dict(result.counts)["watched"] == 2


@pytest.mark.nightly
def test_a_run_without_any_test_is_no_failure_where_the_base_has_none(tmp_path: Path) -> None:
    """A first test can only be added to a project that has none."""
    base = {"conftest.py": "", "shop.py": WRONG}
    result = PytestCheckSetup(tmp_path, base, {**base, "shop.py": RIGHT, "tests/test_new.py": NEW_TEST}).check()
    assert (result.outcome, result.proof) == ("passed", ("tests/test_new.py::test_ten",))


def test_a_command_that_is_not_pytest_is_not_the_agent_s_fault(tmp_path: Path) -> None:
    """It is said how the command has to look."""
    result = PytestCheckSetup(tmp_path, BASE, BASE).check("tox", "-e", "py311")
    assert result.outcome == "environment"
    assert "[pytest" in result.hint


def test_a_missing_pytest_is_a_failed_check_with_the_remedy(tmp_path: Path) -> None:
    """The interpreter is there, its pytest is not."""
    context = PytestCheckSetup(tmp_path, BASE, BASE).context()
    empty = tmp_path / "bin"
    empty.mkdir()
    (empty / "python3").symlink_to(Path(shutil.which("python3", path="/usr/bin:/bin") or os.devnull))
    object.__setattr__(context.sandboxes, "toolchains", Toolchains(path=str(empty)))
    result = asyncio.run(PytestCheck().run(CheckSpec("tests", "pytest", ("pytest",)), context))
    assert result.outcome == "failed"
    assert [f.code for f in result.findings] == ["missing-tool"]
    assert "pytest" in result.hint


def test_an_interpreter_that_can_t_start_is_not_the_change_s_fault(tmp_path: Path) -> None:
    """Nothing comes from it on either tree, so nothing was found out."""
    context = PytestCheckSetup(tmp_path, BASE, {**BASE, "shop.py": RIGHT}).context()
    broken = tmp_path / "bin"
    broken.mkdir()
    (broken / "python3").symlink_to(Path(shutil.which("false") or os.devnull))
    object.__setattr__(context.sandboxes, "toolchains", Toolchains(path=str(broken)))
    result = asyncio.run(PytestCheck().run(CheckSpec("tests", "pytest", ("pytest",)), context))
    assert (result.outcome, result.code, result.findings) == ("environment", 1, ())


def test_a_cancelled_check_ends_soon(tmp_path: Path) -> None:
    """Whoever cancels waits for no second run."""
    stage = PytestCheckSetup(tmp_path, BASE, {**BASE, "shop.py": RIGHT})
    context = stage.context()
    context.cancel.set()
    result = asyncio.run(
        PytestCheck().run(CheckSpec("tests", "pytest", ("pytest",)), replace(context, base_results={}))
    )
    assert (result.outcome, result.findings) == ("environment", ())
    assert stage.made <= 3


@pytest.fixture(autouse=True)
def _nothing_left(tmp_path: Path) -> Iterator[None]:
    """A big tree of checkouts is not kept by a test."""
    yield
    shutil.rmtree(tmp_path, ignore_errors=True)
