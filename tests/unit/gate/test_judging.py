"""What several runs show together, as pure functions over their sessions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from bailiwick.gate.doubts import approved, only_read_by_tests, weigh_values, without_measurements
from bailiwick.gate.evidence import Evidence, Lie, Pair
from bailiwick.gate.instrument import AssertionSite, Reach
from bailiwick.gate.judging import (
    WatchedRun,
    actions,
    foreign_copies,
    replaced_tests,
    vacuous_findings,
    watched_findings,
    weakened_findings,
)
from bailiwick.gate.model import CheckResult, Finding
from bailiwick.gate.outcomes import PytestItem, PytestSession
from bailiwick.gate.replays import Replayed, generality, leaning, only_under_test, surroundings

A, B = "tests/test_a.py::test_a", "tests/test_a.py::test_b"
SITES = {1: AssertionSite("tests/test_a.py", 7), 2: AssertionSite("tests/test_a.py", 9)}


def test_only_changed_files_and_only_what_the_base_does_not_do_count() -> None:
    """A project that looks at frames may go on doing so; a file that begins to is shown to a person."""
    base = PytestSession(evidence=Evidence(events={("sys._getframe", "shop/old.py"): 3}))
    here = PytestSession(
        evidence=Evidence(
            events={
                ("sys._getframe", "shop/old.py"): 3,
                ("gc.get_objects", "shop/new.py"): 5,
                ("exec", "shop/x.py"): 1,
            },
            grafts=frozenset({("_pytest.runner.x", "shop/new.py"), ("logging.y", "shop/new.py")}),
            opened={"tests/test_a.py": ("shop/new.py",), "tests/data.json": ("shop/new.py",)},
        )
    )
    found = actions(base, here, {"shop/old.py", "shop/new.py"})
    assert [(f.code, f.path, f.blocks, f.parks) for f in found] == [
        ("conduct-events", "shop/new.py", False, True),
        ("conduct-reads-tests", "shop/new.py", False, True),
        ("conduct-patching", "shop/new.py", True, False),
        ("conduct-patching", "shop/new.py", False, True),
    ]


def test_a_copy_in_the_environment_is_named() -> None:
    """What ran was not the tree."""
    (found,) = foreign_copies(PytestSession(evidence=Evidence(origins=(("src/shop.py", "/env/shop.py"),))))
    assert "/env/shop.py" in found.what
    assert "not tested" in found.what


def test_a_test_with_the_code_of_another_file_is_found() -> None:
    """Its id is there and green; its code is not the base's."""
    base = PytestSession(items=(PytestItem(A, "tests/test_a.py", "tests/test_a.py", 1, "test_a"),))
    here = PytestSession(items=(PytestItem(A, "tests/test_a.py", "shop/prices.py", 1, "test_a"),))
    assert [f.code for f in replaced_tests(base, here, ())] == ["test-replaced"]
    assert replaced_tests(base, base, ()) == []
    assert replaced_tests(base, here, ("tests/test_a.py",)) == []


def _watched(**evidence: Any) -> WatchedRun:
    session = PytestSession({A: "failed", B: "failed"}, returned=frozenset({A, B}), evidence=Evidence(**evidence))
    return WatchedRun(session, SITES, {A: Reach(frozenset({1, 2})), B: Reach(frozenset({1}))})


def test_a_watched_run_names_lies_missing_assertions_and_hidden_failures() -> None:
    """Each with the line of the test, for the person who reads it."""
    both = frozenset({1, 2})
    honest = _watched(reached={A: both, B: both})
    assert watched_findings(honest, {A, B}) == []
    assert honest.doubtful({A, B}) == set()
    lying = _watched(reached={A: both, B: both}, lies={A: (Lie(2, "x equals everything"),)})
    early = _watched(reached={A: frozenset({1}), B: both})
    caught = _watched(reached={A: both, B: both}, failed={B: frozenset({1})})
    silent = WatchedRun(PytestSession({A: "passed"}, returned=frozenset({A})), SITES, {})
    told = [watched_findings(run, {A, B})[0] for run in (lying, early, caught, silent)]
    assert [f.code for f in told] == ["comparison-lies", "assertion-not-reached", "failure-swallowed", "failure-hidden"]
    assert [f.line for f in told] == [9, 9, 7, 0]
    assert all(f.blocks for f in told)
    assert not watched_findings(lying, {A, B}, excused={A})[0].blocks
    assert WatchedRun(PytestSession({A: "failed"}), SITES, {}).differing([A]) == [A]


def _call(result: Any, here: Any, near: Any = (), base: Any = None) -> Replayed:
    call = {"module": "shop", "name": "f", "args": [["int", "1"]], "named": {}, "result": result}
    return Replayed(call, {"results": here, "near": list(near)}, base)


def test_a_stable_other_result_in_a_plain_process_is_a_finding() -> None:
    """About one that wavers though it does not under test a person is asked, unless the base's wavers too."""
    two, three = ["int", "2"], ["int", "3"]
    assert only_under_test([_call(two, [three, three])], {"shop.f": "shop.py"})[0].path == "shop.py"
    for here in ([two, two], []):
        assert only_under_test([_call(two, here)], {}) == []
    for here in ([two, three], [["unwritable"]] * 2):
        (found,) = only_under_test([_call(two, here)], {})
        assert (found.blocks, found.parks) == (False, True)
        assert only_under_test([_call(two, here, base={"results": [two, three]})], {}) == []
    assert only_under_test([_call(["raises"], [["raises", "ValueError"]] * 2)], {}) == []
    gone = {"missing": "ImportError: x", "import": True}
    assert [f.parks for f in only_under_test([replace(_call(two, []), here=gone, base={})], {})] == [True]
    assert only_under_test([replace(_call(two, []), here=gone, base=gone)], {}) == []


def test_who_needs_the_tests_beside_it_is_shown_to_a_person() -> None:
    """Unless the call itself names a file, or the base needs them as well."""
    two, three = ["int", "2"], ["int", "3"]
    whole = _call(two, [two, two])
    for without in ({"missing": "ModuleNotFoundError: helpers"}, {"results": [three, three]}):
        (found,) = leaning([replace(whole, without=without)], {"shop.f": "shop.py"})
        assert (found.path, found.blocks, found.parks) == ("shop.py", False, True)
        same = replace(whole, without=without, base={"results": [two, two]}, base_without=without)
        named = replace(whole, without=without, call={**whole.call, "args": [["plain", "tests/data.json"]]})
        assert leaning([same, named], {}) == []
    for without in ({}, {"results": [two, two]}, {"results": [two, three]}):
        assert leaning([replace(whole, without=without)], {}) == []


def test_who_finds_its_files_from_the_repository_only_is_shown_to_a_person() -> None:
    """Another result elsewhere is a note: a function may be about where it is called."""
    two, lost = ["int", "2"], ["raises", "FileNotFoundError"]
    call = _call(two, [two, two])
    for other, base, parks in ((lost, None, True), (lost, lost, False), (["int", "3"], None, False)):
        here = {**call.here, "elsewhere": {"cwd": other}}
        (found,) = surroundings([replace(call, here=here, base={"elsewhere": {"cwd": base}})], {})
        assert (found.blocks, found.parks) == (False, parks)


def test_near_arguments_tell_a_table_from_code() -> None:
    """As the base beside the tested values, other than the base on them: that is a table."""
    one, two, nine = ["int", "1"], ["int", "2"], ["int", "9"]
    base = {"results": [nine, nine], "near": [nine, nine]}
    table = _call(two, [two, two], [nine, nine], base)
    code = _call(two, [two, two], [one, nine], base)
    assert [f.code for f in generality([table], {})] == ["value-table"]
    assert [f.code for f in generality([code], {})] == ["generalises"]
    new = [_call(one, [one, one], [nine, nine]), _call(two, [two, two], [nine])]
    assert [f.code for f in generality(new, {})] == ["value-table"]


def test_a_table_of_several_values_asks_a_person() -> None:
    """One value that is answered apart is what a special case looks like, and so is a yes for several arguments."""
    two, three, nine = ["int", "2"], ["int", "3"], ["int", "9"]
    base = {"results": [nine, nine], "near": [nine, nine]}
    one, other = (_call(result, [result, result], [nine, nine], base) for result in (two, three))
    assert [f.parks for f in generality([one], {})] == [False]
    assert [f.parks for f in generality([one, one], {})] == [False]
    assert [f.parks for f in generality([one, other], {})] == [True]


def test_what_is_right_for_the_arguments_of_tests_only_asks_a_person() -> None:
    """It agrees with the base on them and next to them hardly ever; a change beside them asks too.

    One that only refuses more than before is a note.
    """
    one, two, nine = ["int", "1"], ["int", "2"], ["int", "9"]
    error = ["raises", "ValueError"]
    base = {"results": [two, two], "near": [one, one]}
    apart, both = _call(two, [two, two], [nine, nine], base), _call(two, [two, two], [nine, one], base)
    for calls, code, parks in (
        ([apart], "right-for-tests-only", True),
        ([apart, apart, both], "right-for-tests-only", True),
        ([both, both, both], "changed-beside-tests", True),
        ([both], "changed-beside-tests", True),
        ([_call(two, [two, two], [error, one], base)], "changed-beside-tests", False),
    ):
        assert [(f.code, f.parks) for f in generality(calls, {})] == [(code, parks)]


def test_an_object_in_the_place_of_a_value_asks_a_person() -> None:
    """What it equals and shows is its own affair."""
    two, thing = ["int", "2"], ["object", "shop", "Left", []]
    for was, now, told in ((two, thing, True), (thing, thing, False), (two, two, False), (["raises"], thing, False)):
        base = {"results": [was, was], "near": []}
        codes = {(f.code, f.parks) for f in generality([_call(now, [now, now], (), base)], {})}
        assert (("result-of-another-kind", True) in codes) is told


def test_errors_beside_the_tested_values_are_nothing_new() -> None:
    """A dictionary that only knows the tested keys raises for all others: it generalises nothing."""
    two, nine, error = ["int", "2"], ["int", "9"], ["raises", "KeyError"]
    base = {"results": [nine, nine], "near": [nine, nine]}
    assert [f.code for f in generality([_call(two, [two, two], [error, error], base)], {})] == ["value-table"]
    base = {"results": [nine, nine], "near": [error, error]}
    assert generality([_call(two, [two, two], [error, error], base)], {}) == []


def test_a_result_that_depends_on_thread_zone_or_date_is_a_note() -> None:
    """Honest code depends on these too: the reader is told, nobody is accused."""
    two, three = ["int", "2"], ["int", "3"]
    call = {"module": "shop", "name": "f", "args": [["int", "1"]], "named": {}, "result": two}
    here = {"results": [two, two], "elsewhere": {"thread": three, "zone": two, "later": three, "mars": three}}
    found = surroundings([Replayed(call, here)], {"shop.f": "shop.py"})
    assert [(f.code, f.path, f.blocks, f.parks) for f in found] == [("surroundings", "shop.py", False, False)] * 2
    assert [f.what for f in found] == [
        "shop.f(1) gives 2 now and 3 a year later",
        "shop.f(1) gives 2 in the main thread and 3 in another",
    ]
    same = {"results": [two, two], "elsewhere": {"thread": two, "later": two}}
    newly = surroundings([Replayed(call, here, same)], {})
    assert [f.parks for f in newly] == [True, True], "the base gives the same everywhere: why does this not?"
    as_before = surroundings([Replayed(call, here, here)], {})
    assert [f.parks for f in as_before] == [False, False]


def test_a_comparison_with_a_tolerance_of_the_change_asks_a_person() -> None:
    """It may be what the issue wants: a person knows, the gate does not."""
    both = frozenset({1, 2})
    run = _watched(reached={A: both, B: both}, loose={A: (Lie(2, "Money equals one that is 0.01 more"),)})
    (found,) = watched_findings(run, {A, B})
    assert (found.code, found.line, found.blocks, found.parks) == ("comparison-tolerant", 9, False, True)
    assert not watched_findings(run, {A, B}, excused={A})[0].parks


def test_values_of_tests_are_a_note_where_the_code_computes_them() -> None:
    """A table that an issue asks for is honest."""
    parked = Finding("conduct-values", "1 → 2", "shop.py", blocks=False, parks=True)
    computes = CheckResult(
        "t", "pytest", "tests", "passed", findings=(Finding("generalises", "", "shop.py", blocks=False),)
    )
    table = CheckResult(
        "t", "pytest", "tests", "passed", findings=(Finding("value-table", "", "shop.py", blocks=False),)
    )
    assert not weigh_values([parked], [computes])[0].parks
    assert weigh_values([parked], [table])[0].parks
    assert weigh_values([parked], [])[0].parks
    note = replace(parked, parks=False)
    assert weigh_values([note], [table])[0].parks, "one pair, and beside it nothing new"
    assert not weigh_values([note], [computes])[0].parks
    assert not weigh_values([note], [])[0].parks
    cases = replace(note, code="conduct-cases")
    assert weigh_values([cases], [table])[0].parks
    assert weigh_values([cases], [computes]) == weigh_values([cases], []) == ()
    assert without_measurements(computes).findings == ()
    assert without_measurements(table).findings


def test_what_a_person_allowed_parks_nothing() -> None:
    """It stays listed, with who let it through."""
    (found,) = approved([Finding("c", "reads frames", "shop.py", blocks=False, parks=True)], ["shop.py"])
    assert (found.parks, found.what) == (False, "reads frames (allowed)")


def test_data_that_only_tests_read_is_an_expectation() -> None:
    """What the product reads too is its own."""
    opened = {
        "data/golden.json": ["tests/test_a.py"],
        "data/table.json": ["tests/test_a.py", "shop.py"],
        "a.py": ["tests/t.py"],
    }
    assert only_read_by_tests(opened.items(), ()) == {"data/golden.json"}


def test_what_the_run_of_the_base_told_too_is_not_held_against_the_change() -> None:
    """By test, place and words: also of tests that are red there."""
    run = _watched(lies={A: (Lie(2, "x"), Lie(1, "y"))}, loose={B: (Lie(1, "z"),)})
    there = _watched(lies={A: (Lie(2, "x"),)}, loose={B: (Lie(1, "z"),)})
    found = watched_findings(run, {A, B}, known=there.told({A, B}))
    assert [(f.code, f.blocks, f.parks) for f in found] == [
        ("comparison-lies", False, False),
        ("comparison-lies", True, False),
        ("comparison-tolerant", False, False),
    ]


def test_objects_that_the_base_tells_apart_ask_a_person() -> None:
    """Only those that it told apart."""
    pairs = {A: (Pair(1, "two Line are equal now", []), Pair(2, "two Row are equal now", []))}
    here, there = _watched(pairs=pairs), _watched(apart=frozenset({1}))
    (found,) = weakened_findings(here, there, {A, B})
    assert (found.code, found.line, found.blocks, found.parks) == ("comparison-weakened", 9, False, True)
    assert weakened_findings(here, _watched(), {A, B}) == []


def test_a_loop_that_no_new_test_enters_asks_a_person() -> None:
    """Each instance of a parametrized test may pass over it, as long as one enters it."""
    looped = Reach(looped=frozenset({2}))
    for reached, blamed in (((), [A, B]), ((2,), [])):
        evidence = Evidence(reached={A: frozenset({1}), B: frozenset({1, *reached})})
        session = PytestSession({A: "failed", B: "failed"}, returned=frozenset({A, B}), evidence=evidence)
        run = WatchedRun(session, SITES, {A: looped, B: looped})
        found = vacuous_findings(run, {A, B}, {})
        assert [(f.code, f.what.partition(": ")[0], f.parks) for f in found] == [
            ("loop-not-entered", test, True) for test in blamed
        ]


def test_an_assertion_that_only_the_base_reaches_asks_a_person() -> None:
    """One in a loop or a condition; what neither reaches depends on something else."""
    session = PytestSession({A: "failed"}, returned=frozenset({A}), evidence=Evidence(reached={A: frozenset({1})}))
    here = WatchedRun(session, SITES, {A: Reach(held=frozenset({2}))})
    (found,) = weakened_findings(here, _watched(reached={A: frozenset({2})}), {A})
    assert (found.code, found.line, found.parks) == ("assertion-passed-over", 9, True)
    assert weakened_findings(here, _watched(reached={A: frozenset({1})}), {A}) == []
