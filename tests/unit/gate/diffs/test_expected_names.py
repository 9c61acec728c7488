"""Names and data of the product that tests expect."""

from __future__ import annotations

import pytest

from bailiwick.gate.diffs.changes import SourceChange
from bailiwick.gate.diffs.expected_names import changed_expectations, changed_samples

OLD = "ORDER = [1, 2]\nTOTAL = 5.0\n\n\ndef sample(name):\n    return name\n"
NEW = "ORDER = [1, 2]\nTOTAL = 3.5\n\n\ndef sample(name):\n    return name[1:]\n"


def _found(test: str, *, new: str | None = NEW, products: dict[str, str] | None = None) -> set[str]:
    change = SourceChange("src/till/samples.py", OLD.encode(), None if new is None else new.encode(), is_test=False)
    others = {path: text.encode() for path, text in (products or {}).items()}
    found = changed_expectations([change], {"tests/test_a.py": test.encode()}, others)
    assert all(finding.parks and not finding.blocks for finding in found)
    return {finding.what.partition(" expects ")[2].partition(",")[0] for finding in found}


EXPECTED = {
    "a name": "from till.samples import TOTAL\ndef test_a():\n    assert total([1]) == TOTAL\n",
    "an attribute": "from till import samples\ndef test_a():\n    assert total([1]) == samples.TOTAL\n",
    "a long name": "import till.samples\ndef test_a():\n    assert total([1]) == till.samples.TOTAL\n",
    "handed on": "from till import TOTAL\ndef test_a():\n    assert total([1]) == TOTAL\n",
    "on the left": "from till.samples import TOTAL\ndef test_a():\n    assert TOTAL == total([1])\n",
    "by a local name": "from till.samples import TOTAL\ndef test_a():\n    wanted = TOTAL\n    assert f() == wanted\n",
    "nearly": "import pytest\nfrom till.samples import TOTAL\ndef test_a():\n    assert f() == pytest.approx(TOTAL)\n",
    "in a class": "from till.samples import TOTAL\nclass A:\n  def test_a(self):\n    self.assertEqual(f(), TOTAL)\n",
    "a part": "from till.samples import TOTAL\ndef test_a():\n    assert TOTAL in f()\n",
    "a pattern": "import pytest as p\nfrom till.samples import TOTAL\ndef test_a():\n p.raises(E, f, match=TOTAL)\n",
}


@pytest.mark.parametrize("test", EXPECTED.values(), ids=EXPECTED.keys())
def test_a_constant_that_only_tests_expect_asks_for_a_person(test: str) -> None:
    """It is part of the test, wherever it lies."""
    assert _found(test) == {"TOTAL"}
    assert _found(test, new=None) == {"TOTAL"}
    assert _found(test, new=OLD) == set()
    assert _found(test, products={"src/till/__init__.py": "from till.samples import TOTAL\n"}) == {"TOTAL"}


def test_a_function_that_only_tests_expect_asks_for_a_person() -> None:
    """What it gives is what another function has to give."""
    assert _found("from till.samples import sample\ndef test_a():\n    assert receipt() == sample('a')\n") == {"sample"}


HONEST = {
    "itself tested": "from till.samples import TOTAL\ndef test_a():\n    assert TOTAL == 5\n",
    "counted": "from till.samples import TOTAL\ndef test_a():\n    assert len(TOTAL) == 5\n",
    "a function tested": "from till.samples import sample\ndef test_a():\n    assert sample('a') == 'a'\n",
    "a function beside itself": "from till.samples import sample\ndef test_a():\n assert sample(1) == sample(2)\n",
    "used elsewhere too": "from till.samples import sample\ndef test_a():\n f(sample(1))\n assert f() == sample(1)\n",
    "another module": "from other.values import TOTAL\ndef test_a():\n    assert f() == TOTAL\n",
}


@pytest.mark.parametrize("test", HONEST.values(), ids=HONEST.keys())
def test_what_is_tested_may_change(test: str) -> None:
    """A name on the actual side is what the test is about."""
    assert _found(test) == set()


@pytest.mark.parametrize(
    "other", ["from till.samples import TOTAL\nX = TOTAL + 1\n", "import till\nX = till.samples.TOTAL\n"]
)
def test_what_the_product_uses_may_change(other: str) -> None:
    """A default value is written once and compared with in tests."""
    test = EXPECTED["a name"]
    assert _found(test, products={"src/till/orders.py": other}) == set()
    assert _found(test, new=f"{NEW}X = TOTAL\n") == set()


def test_a_version_may_change() -> None:
    """It does with every release."""
    change = SourceChange("till/a.py", b"VERSION = '1'\n", b"VERSION = '2'\n", is_test=False)
    test = {"tests/test_a.py": b"from till.a import VERSION\ndef test_a():\n    assert run() == VERSION\n"}
    assert changed_expectations([change], test, {}) == ()


def test_data_that_a_helper_opens_for_tests_asks_for_a_person() -> None:
    """The helper only hands on what tests expect; one that is tested itself is the product."""
    opened = {"till/a.txt": ("till/samples.py",), "till/b.txt": ("till/samples.py", "till/other.py")}
    helper = {
        "tests/test_a.py": b"from till.samples import sample\ndef test_a():\n    assert receipt() == sample('a')\n"
    }
    tested = {"tests/test_a.py": b"from till.samples import sample\ndef test_a():\n    assert sample('a') == 'x'\n"}
    assert [f.path for f in changed_samples(opened, opened, helper, {})] == ["till/a.txt"]
    assert changed_samples(opened, opened, tested, {}) == ()
    assert changed_samples(["till/c.txt"], opened, helper, {}) == ()
