"""What the tests of the base have to do on a change: told from the two runs alone."""

from __future__ import annotations

from bailiwick.gate.ids import (
    NAMED,
    bounded,
    compare,
    missing_ids,
    proven_by,
    run_faults,
    tampering,
)
from bailiwick.gate.model import Finding
from bailiwick.gate.outcomes import Fault, PytestItem, PytestSession

A, B = "tests/test_a.py::test_a", "tests/test_a.py::test_b"
ITEMS = (PytestItem(A, "tests/test_a.py", "tests/test_a.py", 1, "test_a"), PytestItem(B, "tests/test_a.py"))


def _codes(findings: list[Finding]) -> list[tuple[str, bool]]:
    return [(finding.code, finding.blocks) for finding in findings]


def test_nothing_is_found_where_nothing_changed() -> None:
    """Two equal runs have nothing to say."""
    run = PytestSession(
        {A: "passed", B: "skipped"}, ITEMS, witnessed=frozenset({A}), hooks={"conftest.py:x": 1}, exit=0
    )
    assert [*compare(run, run), *tampering(run, run), *run_faults(run, run)] == []


def test_a_skipped_test_may_run_and_a_red_one_may_heal() -> None:
    """What gets better is no finding."""
    base = PytestSession({A: "skipped", B: "failed"}, ITEMS)
    assert compare(base, PytestSession({A: "passed", B: "passed"}, ITEMS)) == []


def test_examples_that_moved_with_their_function_ask_a_person_and_others_are_missing() -> None:
    """A module may move; what it shows has to be shown, and to hold, where it is now."""
    was = "src/shop/units.py::shop.units.cents"
    base = PytestSession({was: "passed"}, (PytestItem(was, "src/shop/units.py"),))

    def found(here: dict[str, str]) -> list[tuple[str, bool, bool]]:
        told = compare(base, PytestSession(here))  # type: ignore[arg-type]
        return [(finding.code, finding.blocks, finding.parks) for finding in told]

    assert found({"src/shop/measures.py::shop.measures.cents": "passed"}) == [("test-moved", False, True)]
    for other in (
        {"src/shop/measures.py::shop.measures.cents": "failed"},
        {"src/shop/measures.py::shop.measures.Coin.cents": "passed"},
        {"src/shop/measures.py::shop.measures.euro_cents": "passed"},
        {"tests/test_a.py::test_cents": "passed"},
        {},
    ):
        assert found(other) == [("test-missing", True, False)]


def test_a_red_test_may_not_be_skipped_away() -> None:
    """Otherwise a red build would be healed by leaving out what is red."""
    base = PytestSession({A: "failed", B: "failed"}, ITEMS)
    assert _codes(compare(base, PytestSession({A: "skipped"}, ITEMS))) == [
        ("test-missing", True),
        ("test-skipped", True),
    ]


def test_tests_of_a_file_that_broke_are_not_missing_one_by_one() -> None:
    """The file is red itself; a hundred findings would hide that."""
    here = PytestSession({}, (), uncollected=("tests/test_a.py",), exit=2)
    assert missing_ids(PytestSession({A: "passed"}, ITEMS), here) == frozenset()


def test_tests_of_a_run_that_was_cut_are_not_missing_one_by_one() -> None:
    """That it was cut is the finding."""
    here = PytestSession({}, (), faults=(Fault("cut-short", "gone"),))
    assert missing_ids(PytestSession({A: "passed"}, ITEMS), here) == frozenset()


def test_a_test_that_never_ran_but_is_told_as_passed_is_found() -> None:
    """On the base its function was seen to return; here nobody saw it."""
    base = PytestSession({A: "passed"}, ITEMS, witnessed=frozenset({A}))
    assert _codes(compare(base, PytestSession({A: "passed"}, ITEMS))) == [("test-not-run", True)]


def test_a_hook_in_a_plugin_that_the_base_has_too_is_only_listed() -> None:
    """A project that is a pytest plugin may grow; a file that becomes one is something else."""
    base = PytestSession(hooks={"src/plugin.py:pytest_configure": 1, "/site/a.py:pytest_x": 1})
    here = PytestSession(
        hooks={
            "src/plugin.py:pytest_configure": 1,
            "src/plugin.py:pytest_collect": 1,
            "shop.py:pytest_x": 1,
            "/site/a.py:pytest_x": 2,
        }
    )
    assert _codes(tampering(base, here)) == [("hook-added", True), ("hook-added", True), ("hook-added", False)]
    assert _codes(tampering(base, here, allowed=("shop.py",)))[1] == ("hook-added", False)


def test_a_fault_that_the_base_has_too_does_not_block() -> None:
    """A project whose runs always end that way is red on its base; the change is not to blame."""
    base = PytestSession(faults=(Fault("cut-short", "a"),))
    here = PytestSession(faults=(Fault("cut-short", "b"), Fault("forged-record", "c")))
    assert _codes(run_faults(base, here)) == [("cut-short", False), ("forged-record", True)]


def test_an_exit_code_without_a_failed_test_is_a_finding() -> None:
    """Coverage below its limit ends a run so; so does an error inside pytest."""
    good = PytestSession({A: "passed"}, ITEMS, exit=0)
    for code in (1, 2, 3, 4):
        bad = PytestSession({A: "passed"}, ITEMS, exit=code)
        assert _codes(run_faults(good, bad)) == [("exit-code", True)]
        assert _codes(run_faults(bad, bad)) == [("exit-code", False)]


def test_findings_of_one_kind_are_bounded() -> None:
    """A suite of a thousand tests that is gone is one fact, not a thousand lines."""
    found = bounded([Finding("test-missing", str(n)) for n in range(NAMED + 5)] + [Finding("other", "x", blocks=False)])
    assert len(found) == NAMED + 2
    assert found[-1] == Finding("test-missing", "and 5 more of this kind")


def test_only_what_fails_on_the_base_proves() -> None:
    """Failing, or not even importable; a test that merely isn't collected there proves nothing."""
    new = {A: "tests/test_a.py", B: "tests/test_b.py", "c::t": "c.py"}
    there = PytestSession({A: "failed"}, uncollected=("tests/test_b.py",))
    assert proven_by(new, there) == {A, B}


def test_data_of_tests_that_is_changed_in_place_is_shown_to_a_person() -> None:
    """Honest code may sort a list that it is given; a list that a test compares with is another matter."""
    here = PytestSession(changed=frozenset({f"test data EXPECTED of {A}", "builtins.len"}))
    found = tampering(PytestSession(), here)
    assert [(f.code, f.blocks, f.parks) for f in found] == [
        ("runner-patched", True, False),
        ("test-data-changed", False, True),
    ]
    assert tampering(here, here) == []
