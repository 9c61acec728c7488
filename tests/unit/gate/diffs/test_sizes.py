"""How much there is to read."""

from __future__ import annotations

import pytest
from hypothesis import given

from bailiwick.gate.backends.diff_size import ChangeSize, added_size
from tests.unit.gate.diffs.sources import modules


@pytest.mark.parametrize(
    ("path", "old", "new", "size"),
    [
        ("a.py", None, b"x = 1\n", ChangeSize(6, 1)),
        ("a.py", None, b"x = 1; y = 2; z = 3\n", ChangeSize(20, 3)),
        ("a.py", b"x = 1\n", b"x = 1\ndef f(): return 1\n", ChangeSize(18, 2)),
        ("a.py", b"x = 1\n", b"x = 1\n", ChangeSize()),
        ("a.py", b"x = 1\n", None, ChangeSize()),
        ("a.py", None, b"def (;\n", ChangeSize(7, 1)),
        ("a.js", None, b"a();b();c();\n\n", ChangeSize(14, 3)),
        ("a.bin", None, b"\0" * 900, ChangeSize(900, 0)),
        ("a.md", b"a\nb\n", b"b\na\n", ChangeSize()),
    ],
)
def test_added_bytes_and_statements_are_counted(
    path: str, old: bytes | None, new: bytes | None, size: ChangeSize
) -> None:
    """What is there already, or moves, need not be read again."""
    assert added_size(path, old, new) == size


@given(modules())
def test_lines_do_not_decide(source: str) -> None:
    """The same statements count the same, however many lines are between them."""
    spread = source.replace("\n\n", "\n\n\n\n")
    assert added_size("a.py", None, spread.encode()).statements == added_size("a.py", None, source.encode()).statements
