"""New tests that prove nothing about the change."""

from __future__ import annotations

import pytest

from bailiwick.gate.diffs.proofs import computing, empty_proofs, hollow, using_results

TOUCHED = {"discount", "_off"}


def _empty(text: str) -> bool:
    test = "tests/test_new.py::test_a[x::y]"
    found = empty_proofs({test: "tests/test_new.py"}, {"tests/test_new.py": text.encode()}, TOUCHED)
    assert found <= {test}
    return bool(found)


EMPTY = {
    "patched": "def test_a(monkeypatch):\n    monkeypatch.setattr(prices, '_off', f)\n    assert discount(1) == 2\n",
    "patched by a path": "def test_a(mp):\n    mp.setattr('till.prices._off', f)\n    assert discount(1) == 2\n",
    "a mock": "@mock.patch('till.prices._off', f)\ndef test_a():\n    assert discount(1) == 2\n",
    "a mock of an object": "def test_a():\n    with patch.object(prices, '_off'):\n        assert discount(1) == 2\n",
    "assigned": "def test_a():\n    prices._off = f\n    assert discount(1) == 2\n",
    "a fixture": "def made():\n    prices._off = f\ndef test_a(made):\n    assert discount(1) == 2\n",
    "at the top": "prices._off = f\ndef test_a():\n    assert discount(1) == 2\n",
    "its own truth": "def test_a():\n    assert discount(2, 1) == _off(2, 1)\n",
    "itself": "class A:\n    def test_a(self):\n        self.assertEqual(prices.discount(2), prices.discount(2))\n",
}


@pytest.mark.parametrize("text", EMPTY.values(), ids=EMPTY.keys())
def test_a_test_that_answers_itself_is_no_proof(text: str) -> None:
    """What it shows is what it brought along, or that the change agrees with itself."""
    assert _empty(text)


FULL = {
    "a value": "def test_a():\n    assert discount(200, 10) == 180\n",
    "something else patched": "def test_a(mp):\n    mp.setattr(prices, 'clock', f)\n    assert discount(1) == 2\n",
    "a round trip": "def test_a():\n    assert discount(_off(2)) == 2\n",
    "both": "def test_a():\n    assert discount(2) == _off(2)\n    assert discount(2) == 1\n",
    "truth and agreement": "def test_a():\n    assert discount(2) == _off(2)\n    assert discount(2)\n",
    "another test patches": "def test_b():\n    prices._off = f\ndef test_a():\n    assert discount(2) == 1\n",
    "an error": "def test_a():\n    with pytest.raises(ValueError):\n        discount(2)\n",
    "unreadable": "def test_a(:\n",
}


@pytest.mark.parametrize("text", FULL.values(), ids=FULL.keys())
def test_an_honest_test_stays_a_proof(text: str) -> None:
    """It says itself what has to come out."""
    assert not _empty(text)


def test_what_is_given_nothing_may_be_set() -> None:
    """A clock is where a test comes in; what computes from arguments is what it is about."""
    source = b"def today():\n    pass\ndef off(a):\n    pass\nclass A:\n    def now(self):\n        pass\n"
    assert computing({"today", "off", "now", "other"}, {"a.py": source, "b.py": b"("}) == {"off"}


@pytest.mark.parametrize(
    ("check", "holds"),
    [
        ("assert taxed(1) == 2 or True", True),
        ("assert (taxed(1) == 2, 'with tax')", True),
        ("assert [taxed(1)]", True),
        ("assert lambda: taxed(1) == 2", True),
        ("found = taxed(1)\n    assert found == found", True),
        ("found = taxed(1)\n    assert found.price == found.price", True),
        ("assert (taxed(1) == 2 or 'reason') and (2,)", True),
        ("assert taxed(1) == 2", False),
        ("assert taxed(1) == 2 or taxed(1) == 3", False),
        ("assert taxed(1) == taxed(1)", False),
        ("assert taxed(1) in (1, 2)", False),
        ("assert 2 == 2", False),
        ("assert True", False),
    ],
)
def test_an_assertion_that_holds_by_its_form_is_found(check: str, holds: bool) -> None:
    """Whatever the product gives, such a test passes; what might fail for some reason is left alone."""
    text = f"def test_new():\n    {check}\n"
    found = hollow({"t.py::test_new[1]": "t.py", "t.py::test_other": "t.py"}, {"t.py": text.encode()})
    assert ("t.py::test_new[1]" in found) is holds
    assert "t.py::test_other" not in found


def test_the_same_call_twice_under_names_is_no_proof() -> None:
    """It compares the change with itself, one step further away."""
    text = "def test_new():\n    one = taxed(1)\n    two = taxed(1)\n    assert one == two\n"
    assert empty_proofs({"t.py::test_new": "t.py"}, {"t.py": text.encode()}, {"taxed"}) == {"t.py::test_new"}


@pytest.mark.parametrize(
    ("body", "used"),
    [
        ("assert total([1])", True),
        ("found = shop.total([1])", True),
        ("with pytest.raises(ValueError):\n        total([])", False),
        ("total([1])\n    sender.send.assert_called_once()", False),
        ("assert other([1])", False),
    ],
)
def test_a_test_uses_a_result_or_only_the_effect(body: str, used: bool) -> None:
    """Whether another result has to be noticed."""
    source = f"def test_a():\n    {body}\n"
    found = using_results({"t.py::test_a": "t.py"}, {"t.py": source.encode()}, {"total"})
    assert found == (frozenset({"t.py::test_a"}) if used else frozenset())
