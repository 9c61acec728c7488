"""What files of the tree do to reach frames and code, and what they do to the data of tests, is noticed."""

from __future__ import annotations

import sys
import threading
import types
from pathlib import Path
from typing import Any

import pytest

from bailiwick.gate.evidence import read_evidence
from bailiwick.gate.plugin import testing
from bailiwick.gate.plugin.auditing import Auditor, Tree
from bailiwick.gate.plugin.internals import PLAIN
from bailiwick.gate.plugin.testing import parts_of

READING = {
    "by its name": "def act(tb): return tb.tb_frame",
    "by a computed name": "def act(tb): return next(getattr(tb, n) for n in dir(tb) if n[:4] == 'tb_f')",
    "by walking": "import traceback\ndef act(tb): return next(traceback.walk_tb(tb))",
    "by listing": "import inspect\ndef act(tb): return inspect.getmembers(tb)",
}
HONEST = {
    "printing it": "import traceback\ndef act(tb): return traceback.format_tb(tb)",
    "the next one": "def act(tb): return tb.tb_next, tb.tb_lineno",
    "a signature": "import inspect\ndef act(tb): return inspect.signature(act), act.__name__, act.__doc__",
    "wrapping": "import functools\ndef act(tb): return functools.wraps(act)(lambda: 1)",
    "logging": "import logging\ndef act(tb): logging.getLogger('x').debug('no', exc_info=True)",
}


class _Hook:
    """An audit hook can't be taken away: one for all tests, which listens for one auditor at a time."""

    def __init__(self) -> None:
        self.auditor: Auditor | None = None
        self.added = False

    def __call__(self, event: str, args: Any) -> None:
        if self.auditor is not None:
            self.auditor._hear(event, args)


HOOK = _Hook()


class _Direct(Auditor):
    """Counts its own frames one deeper: the hook of these tests lies between."""

    def __init__(self, tree: Tree, tell: Any) -> None:
        super().__init__(tree, tell)
        real = sys._getframe
        self._frame = lambda depth: real(depth + 2)


def _told(tmp_path: Path, source: str) -> list[dict[str, Any]]:
    """What is told at once while a file of a tree acts on a traceback."""
    path = tmp_path / "product.py"
    path.write_text(source)
    module = types.ModuleType("product")
    exec(compile(source, str(path), "exec"), vars(module))
    told: list[dict[str, Any]] = []
    auditor = _Direct(Tree(str(tmp_path), ()), lambda record, **_: told.append(record))
    if not HOOK.added:
        HOOK.added = True
        sys.addaudithook(HOOK)
    try:
        raise LookupError
    except LookupError as error:
        HOOK.auditor = auditor
        try:
            module.act(error.__traceback__)
        finally:
            HOOK.auditor = None
    return told


@pytest.mark.parametrize("how", READING)
def test_who_reads_a_frame_is_told_at_once(how: str, tmp_path: Path) -> None:
    """However the name is spelled: the interpreter says it, and nobody can take it back later."""
    told = _told(tmp_path, READING[how])
    assert ("object.__getattr__ tb_frame", "product.py") in {tuple(record["event"][:2]) for record in told}
    assert read_evidence({"event": told}, {}).events


@pytest.mark.parametrize("how", HONEST)
def test_who_only_tells_of_an_error_is_not(how: str, tmp_path: Path) -> None:
    """What the standard library reads for itself does not count for the file that called it."""
    assert _told(tmp_path, HONEST[how]) == []


def test_a_record_is_sent_whole_or_not_at_all(tmp_path: Path) -> None:
    """A hook in another thread never writes into the middle of a record, and never waits."""
    import os

    from bailiwick.gate.outcomes import Records
    from bailiwick.gate.plugin.wire import open_wire

    reading, writing = os.pipe()
    records = Records(bytes(32))
    send = open_wire(writing, bytes(32))
    threads = [threading.Thread(target=lambda: [send({"t": "x"}, wait=False) for _ in range(50)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(50):
        assert send({"t": "y"})
    for thread in threads:
        thread.join()
    os.close(writing)
    while data := os.read(reading, 1 << 16):
        records.feed(data)
    os.close(reading)
    assert records.fault is None
    assert sum(record["t"] == "y" for record in records.all) == 50


@pytest.fixture(autouse=True)
def _together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Inside, all texts share one namespace."""
    monkeypatch.setattr(testing, "PLAIN", PLAIN, raising=False)


class _Code:
    def is_strange(self, _code: object) -> bool:
        return False


def test_data_of_a_test_that_was_changed_in_place_is_named() -> None:
    """A list that a test compares with is no longer what its file says; one that was empty is a notebook."""
    module: Any = types.ModuleType("test_a")
    exec("EXPECTED = [1, {'a': [2]}]\nSEEN = []\ndef test_a(): return EXPECTED, SEEN", vars(module))
    item = types.SimpleNamespace(nodeid="test_a.py::test_a", module=module, function=module.test_a)
    tests = testing.Tests(_Code())
    assert tests.keep([item]) == []
    module.SEEN.append(1)
    assert tests.changed(item) == []
    module.EXPECTED[1]["a"].append(3)
    assert tests.changed(item) == ["test data EXPECTED of test_a.py::test_a"]


@pytest.mark.parametrize("value", [[1, [2]], {"a": {3}}, {1, 2}, [object()], [float("nan")]])
def test_what_stays_the_same_is_the_same(value: Any) -> None:
    """Whatever is in it."""
    assert parts_of(value) == parts_of(value)
