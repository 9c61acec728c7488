"""What a run tells over its pipe: sealed, in order, and in agreement with everything else that is known of it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bailiwick.gate import outcomes
from bailiwick.gate.backends.pytest_run import NO_PYTEST
from bailiwick.gate.outcomes import PytestSession, Records, read_records, read_session
from bailiwick.gate.plugin import witness
from bailiwick.gate.plugin.wire import open_wire
from bailiwick.ids import Json

KEY = b"k" * 32
START: dict[str, Json] = {"t": "start"}


def _finish(collected: int = 1, failed: int = 0, **more: Json) -> dict[str, Json]:
    shown = {"failed": failed} if failed else {}
    return {
        "t": "finish",
        "collected": collected,
        "failed": failed,
        "shown": shown,
        "terminal": True,
        "changed": [],
        "hooks": {},
        **more,
    }


def _file(tests: int = 1, failures: int = 0) -> dict[str, Json]:
    suite = f'<testsuite name="p" errors="0" failures="{failures}" tests="{tests}">'
    return {"t": "file", "head": f'<?xml version="1.0"?><testsuites name="p">{suite}'}


def _end(code: int = 0) -> dict[str, Json]:
    return {"t": "end", "code": code}


def _items(*ids: str) -> dict[str, Json]:
    return {"t": "items", "items": [{"id": test, "path": test.partition("::")[0]} for test in ids]}


def _report(test: str, outcome: str = "passed", when: str = "call", **more: Json) -> dict[str, Json]:
    return {
        "t": "report",
        "id": test,
        "when": when,
        "outcome": outcome,
        "sub": False,
        "xfail": False,
        "text": "",
        **more,
    }


def _read(*records: dict[str, Json], code: int | None = 0, **options: Any) -> PytestSession:
    read = Records(KEY)
    read.all = list(records)
    return read_records(read, code, **options)


def _codes(session: PytestSession) -> list[str]:
    return [fault.code for fault in session.faults]


def _sent(*records: dict[str, Json]) -> bytes:
    """The bytes that the text inside the sandbox writes for these records."""
    reading, writing = os.pipe()
    send = open_wire(writing, KEY)
    for record in records:
        send(record)
    os.close(writing)
    with open(reading, "rb") as opened:  # noqa: PTH123 - a descriptor
        return opened.read()


GREEN = (START, _items("a::t"), _report("a::t", returned=True), _finish(), _file(), _end())


def test_a_run_that_agrees_with_itself_has_no_fault() -> None:
    """Ids, outcomes, counts, summary, report file and exit code say the same."""
    session = _read(*GREEN)
    assert (session.outcomes, session.faults, session.exit) == ({"a::t": "passed"}, (), 0)
    assert session.witnessed == {"a::t"}


@given(cuts=st.lists(st.integers(1, 40), max_size=30))
def test_records_are_read_however_the_pipe_cuts_them(cuts: list[int]) -> None:
    """A pipe knows no records, only bytes."""
    raw = _sent(*GREEN)
    records = Records(KEY)
    for size in cuts:
        records.feed(raw[:size])
        raw = raw[size:]
    records.feed(raw)
    records.close()
    assert (records.all, records.fault) == (list(GREEN), None)


@given(st.binary(min_size=1, max_size=200), st.integers(0, 3))
def test_what_somebody_else_writes_is_a_fault(junk: bytes, after: int) -> None:
    """Whoever does not know the key of the run can't add a record, nor change one."""
    records = Records(KEY)
    records.feed(_sent(*GREEN[:after]))
    records.feed(junk)
    records.close()
    assert records.all == list(GREEN[:after])
    assert records.fault is not None
    assert records.fault.code == "forged-record"


def test_a_record_can_t_be_repeated_or_left_out() -> None:
    """The seal holds the place of a record too."""
    first, second = _sent(GREEN[0]), _sent(*GREEN[:2])[len(_sent(GREEN[0])) :]
    for raw in (first + first, second):
        records = Records(KEY)
        records.feed(raw)
        assert records.fault is not None


def test_a_run_that_never_stops_talking_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory here is not for the code under test to fill."""
    monkeypatch.setattr(outcomes, "MOST_BYTES", 1000)
    records = Records(KEY)
    records.feed(_sent(*({"t": "x", "n": n} for n in range(100))))
    assert records.fault is not None


@pytest.mark.parametrize(
    "record",
    [
        {"t": "report"},
        {"t": "items", "items": [{}]},
        {"t": "finish"},
        {"t": "end", "code": None},
        {"t": "deselected", "ids": 3},
    ],
)
def test_a_record_of_the_wrong_shape_breaks_nothing(record: dict[str, Json]) -> None:
    """Whoever found the key still can't bring us down."""
    assert _codes(_read(START, record, code=0))


def test_bytes_that_are_no_text_can_be_kept() -> None:
    """A file name may hold half of a pair; documents can't."""
    records = Records(KEY)
    records.feed(_sent({"t": "x", "id": "a\udc80b"}))
    assert records.all == [{"t": "x", "id": "a?b"}]


DISAGREEING: dict[str, tuple[tuple[dict[str, Json], ...], int | None, str]] = {
    "nothing came": ((), 0, "no-records"),
    "no end": (GREEN[:-1], 0, "cut-short"),
    "no end of the session": ((*GREEN[:3], _end()), 0, "cut-short"),
    "another exit code": (GREEN, 1, "reports-disagree"),
    "killed after the end": (GREEN, -9, "reports-disagree"),
    "a test without outcome": ((START, _items("a::t", "a::u"), _report("a::t"), _finish(2), _file(2), _end()), 0,
                               "reports-disagree"),
    "an outcome without test": ((START, _items(), _report("a::t"), _finish(0), _file(), _end()), 0, "reports-disagree"),
    "fewer collected": ((START, _items("a::t"), _report("a::t"), _finish(0), _file(), _end()), 0, "reports-disagree"),
    "a failure that the session does not count": (
        (START, _items("a::t"), _report("a::t", "failed"), _finish(), _file(1, 1), _end(1)), 1, "reports-disagree"),
    "a failure that the file does not have": (
        (START, _items("a::t"), _report("a::t", "failed"), _finish(1, 1), _file(), _end(1)), 1, "reports-disagree"),
    "a failure that only the session counts": (
        (START, _items("a::t"), _report("a::t"), _finish(1, 1), _file(), _end(1)), 1, "reports-disagree"),
    "a failure and exit code 0": (
        (START, _items("a::t"), _report("a::t", "failed"), _finish(1, 1), _file(1, 1), _end()), 0, "reports-disagree"),
    "a file with fewer tests": ((START, _items("a::t"), _report("a::t"), _finish(), _file(0), _end()), 0,
                                "reports-disagree"),
}  # fmt: skip


@pytest.mark.parametrize("case", DISAGREEING)
def test_what_does_not_agree_is_a_fault(case: str) -> None:
    """One lie is easy; the same lie everywhere at once is not."""
    records, code, fault = DISAGREEING[case]
    assert fault in _codes(_read(*records, code=code))


OUTCOMES: dict[str, tuple[tuple[dict[str, Json], ...], str]] = {
    "passed": ((_report("t", when="setup"), _report("t"), _report("t", when="teardown")), "passed"),
    "failed": ((_report("t", "failed"), _report("t", when="teardown")), "failed"),
    "broken before": ((_report("t", "failed", "setup"),), "error"),
    "broken after": ((_report("t"), _report("t", "failed", "teardown")), "error"),
    "skipped": ((_report("t", "skipped", "setup"),), "skipped"),
    "expected to fail": ((_report("t", "skipped", xfail=True),), "xfailed"),
    "not expected to pass": ((_report("t", xfail=True),), "xpassed"),
    "a part failed": ((_report("t", "failed", sub=True), _report("t")), "failed"),
    "a part was skipped": ((_report("t", "skipped", sub=True), _report("t")), "passed"),
    "tried again": ((_report("t", "rerun"), _report("t")), "passed"),
    "tried again in vain": ((_report("t", "rerun"), _report("t", "failed")), "failed"),
    "told twice": ((_report("t", "failed"), _report("t")), "failed"),
}


@pytest.mark.parametrize("case", OUTCOMES)
def test_the_outcome_of_a_test_is_the_worst_of_its_last_try(case: str) -> None:
    """What a person would call it."""
    reports, outcome = OUTCOMES[case]
    assert _read(START, *reports).outcomes == {"t": outcome}


@pytest.mark.parametrize(
    ("seen", "hidden"),
    [
        ({"raised": "AssertionError"}, True),
        ({"caught": "ValueError"}, True),
        ({"made": "failed"}, True),
        ({"raised": "Skipped"}, False),
        ({"returned": True, "caught": "", "made": "passed"}, False),
    ],
)
def test_a_passed_report_over_a_seen_failure_contradicts(seen: dict[str, Json], hidden: bool) -> None:
    """The error was there, closer to the test than the report."""
    assert bool(_read(START, _report("t", **seen)).contradicted) is hidden


def test_a_run_survives_being_kept() -> None:
    """What is known of a base is kept as a document; only what failures said is not."""
    more = ({"t": "deselected", "ids": ["a::d"]}, {"t": "uncollected", "id": "b", "text": "no"})
    red = (START, _items("a::t"), _report("a::t", "failed", seconds=2.5), *more, _finish(1, 2), _file(1, 1), _end(1))
    session = _read(*red, code=1)
    again = read_session(session.to_json())
    assert again.to_json() == session.to_json()
    assert (again.red, again.slowest) == (("a::t", "b"), 2.5)


def test_a_child_of_the_process_can_t_speak_for_it(tmp_path: Path) -> None:
    """A fork inherits the pipe and the key; its records would count twice."""
    reading, writing = os.pipe()
    send = open_wire(writing, KEY)
    child = os.fork()
    if child == 0:
        send({"t": "start"})
        os._exit(0)
    os.waitpid(child, 0)
    os.close(writing)
    with open(reading, "rb") as opened:  # noqa: PTH123 - a descriptor
        assert opened.read() == b""


def test_both_sides_call_a_missing_pytest_the_same() -> None:
    """The text inside can't import anything of ours, so the number is written twice."""
    assert NO_PYTEST == witness.NO_PYTEST
