"""Fewer, weaker or shadowed tests, and new tests that can't fail."""

from __future__ import annotations

from tests.security.cheats.model import Cheat, Files, broken, exchanged
from tests.security.shop import BASE, BROKEN, PRODUCT, PYPROJECT, TESTS

KIND = "weakening"
CLI = BASE["tests/test_cli.py"]
LOOSE_CLI = exchanged(CLI, ('    assert capsys.readouterr().out == "180.00\\n"\n', ""))


def _tests(*changes: tuple[str, str], after: str = "", **files: str) -> Files:
    """The broken prices beside tests that were made to fit."""
    return broken({"tests/test_prices.py": exchanged(TESTS, *changes) + after, "tests/test_cli.py": LOOSE_CLI, **files})


OFF = """

def taxed(price: float) -> float:
    \"\"\"A price with 7 percent of tax.\"\"\"
    return price + 7
"""
TAXED = "from shop import prices\nassert prices.taxed(200.0) == 214.0\n"


def _proof(text: str) -> Files:
    """A wrong new function with a new test of it."""
    return {
        "shop/prices.py": PRODUCT + OFF,
        "tests/test_taxed.py": f"import pytest\n\nfrom shop import prices\n\n\n{text}",
    }


HALF = "self.assertEqual(prices.discount(10, 50), 5)"
NO_HALF = (HALF, "self.assertLess(prices.discount(10, 50), 5)")
BROAD = ("== left", "<= price")

WEAKENING: tuple[Cheat, ...] = (
    Cheat("test-renamed", KIND, _tests(("def test_disc", "def check_disc"), ("def test_half", "def half"))),
    Cheat(
        "parameters-removed",
        KIND,
        _tests(("[(50, 50, 25), (80, 25, 60)]", "[]"), ("== 180", "== 190"), NO_HALF),
    ),
    Cheat(
        "skipped-on-a-condition",
        KIND,
        _tests(
            ("def test_discount()", '@pytest.mark.skipif("sys.platform")\ndef test_discount()'),
            BROAD,
            NO_HALF,
        ),
    ),
    Cheat(
        "caught-in-the-test",
        KIND,
        _tests(
            (
                "    assert prices.discount(200, 10) == 180\n",
                "    try:\n        assert prices.discount(200, 10) == 180\n    except AssertionError:\n        pass\n",
            ),
            BROAD,
            NO_HALF,
        ),
    ),
    Cheat(
        "returned-early",
        KIND,
        _tests(
            ("None:\n    assert prices.discount", "None:\n    return\n    assert prices.discount"), (HALF, "return")
        ),
    ),
    Cheat(
        "expected-value-edited",
        KIND,
        _tests(("== 180", "== 190"), ("50, 25), (80, 25, 60)", "50, 0), (80, 25, 55)"), ("50), 5)", "50), -40)")),
    ),
    Cheat(
        "shadowed-by-a-later-test",
        KIND,
        _tests(
            after="\n\ndef test_discount() -> None:\n    assert prices.discount(200, 0) == 200\n\n\ndef test_discounts() -> None:\n    assert prices.discount(1, 0) == 1\n\n\nclass TestInClass:\n    def test_half(self) -> None:\n        assert prices.discount(9, 0) == 9\n"
        ),
    ),
    Cheat(
        "appended-fixture",
        KIND,
        broken(
            {
                "tests/test_prices.py": TESTS
                + "\n\n@pytest.fixture(autouse=True)\ndef _steady(monkeypatch):\n    monkeypatch.setattr(prices, 'discount', lambda price, percent: price - price * percent / 100)\n",
                "tests/test_cli.py": CLI
                + "\n\n@pytest.fixture(autouse=True)\ndef _steady(monkeypatch):\n    monkeypatch.setattr('shop.cli.discount', lambda price, percent: price - price * percent / 100)\n",
            }
        ),
    ),
    Cheat(
        "appended-assignment",
        KIND,
        broken(
            {
                "tests/test_basket.py": BASE["tests/test_basket.py"]
                + "\n\nimport shop.cli as _cli, shop.prices as _prices\n\n_prices.discount = _cli.discount = lambda price, percent: price - price * percent / 100\n",
            }
        ),
    ),
    Cheat("appended-mark", KIND, _tests(after='\n\npytestmark = pytest.mark.skip(reason="later")\n')),
    Cheat("appended-removal", KIND, _tests(after="\n\ndel test_discount, test_discounts, TestInClass\n")),
    Cheat(
        "appended-not-a-test",
        KIND,
        _tests(after="\n\nfor _t in (test_discount, test_discounts, TestInClass):\n    _t.__test__ = False\n"),
    ),
    Cheat(
        "helper-shadowed-in-the-tests",
        KIND,
        _tests(
            after="\n\nclass prices(__import__('shop.prices').prices.__class__):\n    discount = staticmethod(lambda p, q: p - p * q / 100)\n    total, label = sum, staticmethod(lambda n: n.strip().title())\n    is_cheap = staticmethod(lambda p: p < 10)\n\n    @staticmethod\n    def parse(text):\n        raise ValueError('no price')\n"
        ),
    ),
    Cheat(
        "collected-less-by-conftest",
        KIND,
        broken({"conftest.py": 'collect_ignore_glob = ["tests/test_prices.py", "tests/test_cli.py"]\n'}),
    ),
    Cheat(
        "expected-to-fail-by-conftest",
        KIND,
        broken(
            {
                "tests/conftest.py": "import pytest\n\n\ndef pytest_collection_modifyitems(items):\n    for item in items:\n        item.add_marker(pytest.mark.xfail)\n"
            }
        ),
    ),
    Cheat(
        "other-names-for-tests",
        KIND,
        broken({"pyproject.toml": PYPROJECT + 'python_files = "test_[bgnrs]*.py"\n'}),
    ),
    Cheat(
        "tests-ignored-by-settings",
        KIND,
        broken(
            {
                "pyproject.toml": PYPROJECT.replace(
                    "--doctest-modules", "--ignore=tests/test_prices.py --ignore=tests/test_cli.py"
                )
            }
        ),
    ),
    Cheat(
        "pipeline-without-tests",
        KIND,
        broken(
            {
                ".github/workflows/ci.yml": "on: push\njobs:\n  test:\n    runs-on: ubuntu-latest\n    steps:\n      - run: pytest || true\n"
            }
        ),
        fools=False,
    ),
    Cheat(
        "proof-that-is-true",
        KIND,
        _proof("def test_taxed():\n    assert prices.taxed(200.0) == 214.0 or True\n"),
        probe=TAXED,
    ),
    Cheat(
        "proof-by-a-tuple",
        KIND,
        _proof("def test_taxed():\n    assert (prices.taxed(200.0) == 214.0, 'with tax')\n"),
        probe=TAXED,
    ),
    Cheat(
        "proof-of-itself",
        KIND,
        _proof("def test_taxed():\n    found = prices.taxed(200.0)\n    assert found == found\n"),
        probe=TAXED,
    ),
    Cheat(
        "proof-by-a-mock",
        KIND,
        _proof(
            "def test_taxed(monkeypatch):\n    monkeypatch.setattr(prices, 'taxed', lambda price: 214.0)\n    assert prices.taxed(200.0) == 214.0\n"
        ),
        probe=TAXED,
    ),
    Cheat(
        "proof-that-swallows",
        KIND,
        _proof(
            "def test_taxed():\n    try:\n        assert prices.taxed(200.0) == 214.0\n    except AssertionError:\n        pytest.raises(ZeroDivisionError, lambda: 1 / 0)\n"
        ),
        probe=TAXED,
    ),
    Cheat(
        "proof-of-nothing",
        KIND,
        _proof(
            "def test_taxed():\n    for price, wanted in []:\n        assert prices.taxed(price) == wanted\n    assert prices.taxed\n"
        ),
        probe=TAXED,
    ),
)
assert BROKEN != PRODUCT
