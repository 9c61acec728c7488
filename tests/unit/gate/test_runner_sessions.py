"""What runs of other runners were, read from what they told: recordings of the real ones, and lies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bailiwick.gate.runner_sessions import GoTree, merged, read_cargo, read_go, read_node

RECORDINGS = Path(__file__).parent / "runner_recordings"
OUTCOMES = {
    "test/shop.test.js::ten": "passed",
    "test/shop.test.js::g > zero": "failed",
    "test/shop.test.js::g > sk": "skipped",
    "test/shop.test.js::g > td": "skipped",
}


def _recorded(kind: str) -> tuple[list[dict[str, Any]], int]:
    data = json.loads((RECORDINGS / f"{kind}.json").read_text())
    return data["records"], data["code"]


@pytest.mark.parametrize("kind", ["node-test", "vitest", "jest", "mocha"])
def test_a_recorded_run_is_read(kind: str) -> None:
    """Each reporter tells the same about the same tests; a file that can't be loaded is named."""
    records, code = _recorded(kind)
    session = read_node(records, None, code, own_process=kind == "node-test")
    assert session.outcomes == OUTCOMES
    assert session.faults == ()
    assert session.uncollected == (() if kind == "mocha" else ("test/broken.test.js",))
    assert session.changed == frozenset()
    assert "200" in session.texts["test/shop.test.js::g > zero"]


@pytest.mark.parametrize("kind", ["node-test", "vitest", "jest", "mocha"])
def test_a_run_that_was_cut_short_is_a_fault(kind: str) -> None:
    """Without its last word, what was told before is not all."""
    records, _ = _recorded(kind)
    cut = [record for record in records if record["t"] != "end"]
    assert [fault.code for fault in read_node(cut, None, 0, own_process=False).faults] == ["cut-short"]
    nothing = [record for record in cut if record["t"] != "test"]
    assert [fault.code for fault in read_node(nothing, None, 0, own_process=False).faults] == ["no-records"]


@pytest.mark.parametrize("kind", ["node-test", "vitest", "jest", "mocha"])
def test_single_outcomes_counts_and_exit_code_have_to_agree(kind: str) -> None:
    """Each source that says something else is a fault."""
    records, code = _recorded(kind)
    turned = [{**r, "outcome": "passed"} if r["t"] == "test" and r["outcome"] == "failed" else r for r in records]
    assert read_node(turned, None, code, own_process=False).faults
    assert [f.code for f in read_node(records, None, 0, own_process=False).faults] == ["reports-disagree"]


def test_a_record_that_makes_no_sense_is_forged() -> None:
    """Nothing that comes over the pipe may break the gate."""
    for record in ({"t": "test"}, {"t": "test", "file": "a", "names": 3, "outcome": "passed"}, {}):
        session = read_node([record], None, 0, own_process=False)
        assert [fault.code for fault in session.faults] == ["forged-record"]


def test_a_process_of_node_test_that_does_not_say_goodbye_is_a_fault() -> None:
    """What its file told may have been told by somebody else."""
    records, code = _recorded("node-test")
    silent = [record for record in records if record["t"] != "bye"]
    faults = read_node(silent, None, code, own_process=True).faults
    assert [fault.code for fault in faults] == ["cut-short"]
    assert "test/shop.test.js" in faults[0].what


GO = GoTree("shop", {"a_test.go": "func TestA(t *testing.T) {", "b/b_test.go": "func TestB("}, {"": "TestZz1"})


def _events(*events: dict[str, str]) -> bytes:
    return b"".join(json.dumps(event).encode() + b"\n" for event in events)


def test_events_of_go_are_read() -> None:
    """Ids begin with the file; a package that can't be built is named by its files, in the way of any version."""
    data = _events(
        {"Action": "run", "Package": "shop", "Test": "TestA"},
        {"Action": "run", "Package": "shop", "Test": "TestA/x"},
        {"Action": "skip", "Package": "shop", "Test": "TestA/x"},
        {"Action": "pass", "Package": "shop", "Test": "TestA"},
        {"Action": "pass", "Package": "shop", "Test": "TestZz1"},
        {"Action": "pass", "Package": "shop"},
    )
    session = read_go(data + b"FAIL\tshop/b [build failed]\nnot json\n[1]\n", 1, GO)
    assert session.outcomes == {"a_test.go::TestA/x": "skipped", "a_test.go::TestA": "passed"}
    assert session.uncollected == ("b/b_test.go",)
    assert session.faults == ()


def test_outcomes_of_go_that_its_tests_did_not_print_are_forged() -> None:
    """The test that was added is not among them; the worst word about a test counts."""
    told = [
        {"Action": "run", "Package": "shop", "Test": "TestA"},
        {"Action": "fail", "Package": "shop", "Test": "TestA"},
        {"Action": "pass", "Package": "shop", "Test": "TestA"},
        {"Action": "pass", "Package": "shop"},
    ]
    session = read_go(_events(*told), 0, GO)
    assert session.outcomes == {"a_test.go::TestA": "failed"}
    assert [fault.code for fault in session.faults] == ["forged-record", "reports-disagree"]
    begun = read_go(_events(told[0], told[3]), 0, GO)
    assert [fault.code for fault in begun.faults] == ["cut-short"]
    assert [fault.code for fault in read_go(b"", 0, GO).faults] == ["no-records"]


def _said(*lines: str) -> list[dict[str, Any]]:
    return [{"t": line.partition(" ")[0], "said": line.partition(" ")[2]} for line in lines]


PROGRAM = (
    "begin /w/target/debug/deps/shop-1",
    "list t::a: test",
    "list t::b: test",
    "list t::c: test",
    "list x: benchmark",
)
RUNNING = "     Running unittests src/lib.rs (target/debug/deps/shop-1)\n"
RESULT = "test result: FAILED. 1 passed; 1 failed; 1 ignored; 0 measured\n"
DOC = "test src/lib.rs - add (line 3) ... ok\ntest src/lib.rs - add (line 9) - compile fail ... ok\n"


def test_logs_of_rust_programs_are_read() -> None:
    """What a failure says may have several lines; tests of documentation have no line numbers in their ids."""
    log = (
        "log ok t::a",
        "log failed: note: no panic",
        "log   wanted: x t::b",
        "log ignored: too slow, yes t::c",
        "end 101",
    )
    session = read_cargo(_said(*PROGRAM, *log), None, (RESULT + DOC, RUNNING), 101)
    assert session.outcomes == {
        "src/lib.rs::t::a": "passed",
        "src/lib.rs::t::b": "failed",
        "src/lib.rs::t::c": "skipped",
        "src/lib.rs::doc add": "passed",
        "src/lib.rs::doc add#2": "passed",
    }
    assert session.faults == ()


@pytest.mark.parametrize(
    ("lines", "stdout", "code", "fault"),
    [
        ((*PROGRAM, "log ok t::a", "end 0"), RESULT, 0, "cut-short"),
        (PROGRAM, RESULT, 0, "cut-short"),
        ((*PROGRAM, "log ok t::a", "log ok t::b", "log ok t::c", "end 0"), "", 0, "cut-short"),
        ((*PROGRAM, "log ok t::a", "log ok t::b", "log ok t::c", "end 7"), RESULT, 0, "reports-disagree"),
        ((*PROGRAM, "log ok t::a", "log failed t::b", "log ok t::c", "end 101"), RESULT, 0, "reports-disagree"),
        ((), "", 0, "cut-short"),
        ((), "", 101, "no-records"),
    ],
)
def test_what_does_not_fit_together_in_rust_is_a_fault(
    lines: tuple[str, ...], stdout: str, code: int, fault: str
) -> None:
    """Listed tests, log, printed result and exit codes have to agree, and every program has to be heard."""
    session = read_cargo(_said(*lines), None, (stdout, RUNNING), code)
    assert fault in [found.code for found in session.faults]


def test_several_runs_are_one() -> None:
    """A script may start its runner twice."""
    records, code = _recorded("mocha")
    one = read_node(records, None, code, own_process=False)
    two = read_node([{**r, "file": "b.js"} if "file" in r else r for r in records], None, 0, own_process=False)
    both = merged([two, one])
    assert len(both.outcomes) == 2 * len(one.outcomes)
    assert both.exit == code
