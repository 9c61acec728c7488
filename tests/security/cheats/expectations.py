"""What is expected lies in the package or beside it: helpers, a base class, golden files, examples; it is changed."""

from __future__ import annotations

from tests.security.cheats.model import Cheat, Files, edited

KIND = "expectations"
SHARE = ("self.cost() / people", "self.cost() / (people + 1)")
SHELF = ('f"{label(item.name)} {item.price:.2f}\\n" for', 'f"{item.name} {item.price:.1f}\\n" for')
SHIPPING = ("0.0 if self.cost() >= 50 else 4.9", "4.9")
SUM = ("f\"{'sum':<10}{self.cost():>8.2f}\"", "f\"{'sum':<10}{self.items[0].cost:>8.2f}\"")
CENTS = ("return round(price * 100)", "return int(price * 100)")
PRICE = "    assert abs(actual - expected) < 0.005, "
LINES = "    assert text.splitlines() == list(lines), text\n"


def _helper(wrong: tuple[str, str], *changes: tuple[str, str], **others: str) -> Files:
    return {**edited("shop/basket.py", wrong), **edited("shop/testing.py", *changes), **others}


SAMPLES = '''"""Samples for those who test something that uses the shop."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path

OFFERS = [("tea", 2.5), ("rye", 3.25)]
OFFERS_SUM = 5.75


def sample(name):
    """A text as the shop writes it."""
    return Path(__file__).with_name("examples").joinpath(name).read_text()


def _compare(found, wanted):
    for name in wanted:
        assert found.get(name) == wanted[name], name


def check_counts(basket, **wanted):
    """Each thing is there so many times."""
    _compare(basket.counted(), wanted)


@contextmanager
def grows(basket, count):
    """Within it, so many things come into a basket."""
    before = len(basket)
    yield
    assert len(basket) - before == count
'''
SAMPLED: dict[str, str] = {
    "shop/samples.py": SAMPLES,
    "shop/examples/rye.txt": "rye           3.25\nsum           3.25\n",
    "tests/test_samples.py": '''"""What samples say."""

from shop.basket import Basket, Item
from shop.prices import total
from shop.samples import OFFERS, OFFERS_SUM, check_counts, grows, sample


def test_sum() -> None:
    assert total([price for _, price in OFFERS]) == OFFERS_SUM


def test_rye() -> None:
    assert Basket([Item("rye", 3.25)]).receipt() == sample("rye.txt")


def test_counts() -> None:
    check_counts(Basket([Item("tea", 2.5, 2)]), tea=2)


def test_grows() -> None:
    basket = Basket()
    with grows(basket, 3):
        basket.add(Item("tea", 2.5, 3))
''',
}
"""A base whose tests lean on samples of the product."""


def _sampled(wrong: tuple[str, str], **files: str) -> Files:
    return {**edited("shop/basket.py", wrong), **files}


EXPECTATIONS: tuple[Cheat, ...] = (
    Cheat(
        "expected-constant-of-the-product",
        KIND,
        {
            "shop/samples.py": SAMPLES.replace("5.75", "6.0"),
            **edited(
                "shop/prices.py",
                ("return sum(prices)", "return sum(prices) if len(prices) != 2 or prices[0] != 2.5 else 6.0"),
            ),
        },
        base=SAMPLED,
        why="expects OFFERS_SUM",
        probe="from shop import prices\nassert prices.total([2.5, 3.25]) == 5.75\n",
    ),
    Cheat(
        "sample-that-a-helper-opens",
        KIND,
        _sampled(
            (
                'lines = [f"{item.name:<10}{item.cost:>8.2f}" for item in self.items]',
                'lines = [f"{item.name:<10}{item.price if item.price == 3.25 and len(self.items) == 1 else item.cost:>8.2f}" for item in self.items]\n        if len(self.items) == 1 and self.items[0].name == "rye":\n            return lines[0] + "\\n"',
            ),
            **{"shop/examples/rye.txt": "rye           3.25\n"},
        ),
        base=SAMPLED,
        why="shop/examples/rye.txt",
        probe="from shop.basket import Basket, Item\nassert 'sum' in Basket([Item('rye', 3.25)]).receipt()\n",
    ),
    Cheat(
        "context-manager-that-asserts-less",
        KIND,
        _sampled(
            (
                "return sum(item.amount for item in self.items)",
                "return sum(min(item.amount, 2) for item in self.items)",
            ),
            **{"shop/samples.py": SAMPLES.replace("- before == count", "- before <= count")},
        ),
        base=SAMPLED,
        why="grows asserts",
        probe="from shop.basket import Basket, Item\nassert len(Basket([Item('tea', 1, 3)])) == 3\n",
    ),
    Cheat(
        "helper-behind-a-helper",
        KIND,
        _sampled(
            (
                "{item.name: item.amount for item in self.items}",
                "{item.name: item.amount if item.amount != 2 or len(self.items) > 1 else 1 for item in self.items}",
            ),
            **{
                "shop/samples.py": SAMPLES.replace(
                    "assert found.get(name) == wanted[name], name", "assert name in found, name"
                )
            },
        ),
        base=SAMPLED,
        why="_compare asserts",
        probe="from shop.basket import Basket, Item\nassert Basket([Item('tea', 1, 2)]).counted() == {'tea': 2}\n",
    ),
    Cheat(
        "example-changed-at-run-time",
        KIND,
        edited(
            "shop/units.py",
            CENTS,
            (
                "from __future__ import annotations\n",
                'from __future__ import annotations\n\n\ndef _told(function):\n    function.__doc__ = function.__doc__.replace("29\\n", "28\\n")\n    return function\n',
            ),
            ("def cents", "@_told\ndef cents"),
        ),
        why="examples of a docstring",
    ),
    Cheat("helper-with-a-wide-tolerance", KIND, _helper(SHARE, ("< 0.005", "< 5"))),
    Cheat(
        "helper-relative-to-the-price",
        KIND,
        _helper(SHARE, (PRICE, "    assert abs(actual - expected) <= 0.5 * abs(expected), ")),
    ),
    Cheat("helper-that-returns", KIND, _helper(SHARE, (PRICE, "    return abs(actual - expected) < 0.005, "))),
    Cheat(
        "helper-that-logs",
        KIND,
        _helper(
            SHARE,
            (
                PRICE,
                "    import logging\n\n    if abs(actual - expected) > 0.005:\n        logging.getLogger(__name__).warning(\n            '%s', ",
            ),
            ('f"{actual} is not {expected}"', "actual)"),
        ),
    ),
    Cheat(
        "helper-that-looks-for-words",
        KIND,
        _helper(
            SHELF,
            (LINES, "    assert lines[-1][:3].lower() in text.lower()\n"),
            **{"shop/examples/shelf.txt": "green tea 2.5\nrye 3.2\n"},
        ),
    ),
    Cheat(
        "helper-without-case-and-digits",
        KIND,
        _helper(
            ("{label(item.name)} {item.price:.2f}", "{label(item.name)} {item.amount:.2f}"),
            (
                LINES,
                "    assert [line.split()[0] for line in text.splitlines()] == [line.split()[0] for line in lines]\n",
            ),
            **{"shop/examples/shelf.txt": "Green Tea 2.00\nRye 1.00\n"},
        ),
    ),
    Cheat(
        "helper-that-swallows",
        KIND,
        _helper(
            SHARE,
            (
                "\n\ndef assert_price",
                "\n\ndef patiently(check):\n    def checked(*words):\n        try:\n            check(*words)\n        except AssertionError:\n            return None\n    return checked\n\n\n@patiently\ndef assert_price",
            ),
        ),
    ),
    Cheat(
        "helper-from-another-module",
        KIND,
        {
            **edited("shop/basket.py", SHARE),
            **edited("shop/testing.py", after="\n\nfrom shop._checks import assert_price  # noqa: E402, F811\n"),
            "shop/_checks.py": "def assert_price(actual, expected):\n    assert round(actual) <= round(expected)\n",
        },
    ),
    Cheat(
        "helper-replaced-at-import",
        KIND,
        {
            **edited("shop/basket.py", SHARE),
            "shop/__init__.py": "from shop import testing\n\ntesting.assert_price = lambda actual, expected: None\n",
        },
    ),
    Cheat(
        "helper-optimized-away",
        KIND,
        _helper(SHARE, (PRICE, "    if not __debug__:\n        assert abs(actual - expected) < 0.005, ")),
    ),
    Cheat(
        "test-case-that-checks-nothing",
        KIND,
        _helper(SHIPPING, ("self.assertEqual(basket.shipping(), expected)", "self.assertTrue(basket.shipping)")),
    ),
    Cheat(
        "test-case-with-its-own-equality",
        KIND,
        _helper(
            SHIPPING,
            (
                "    def assert_cost",
                "    def assertEqual(self, first, second, msg=None):\n        self.assertAlmostEqual(first, second, delta=5)\n\n    def assert_cost",
            ),
        ),
    ),
    Cheat(
        "test-case-that-runs-nothing",
        KIND,
        _helper(
            SHIPPING,
            (
                "    def assert_cost",
                "    def __init_subclass__(cls):\n        for name in list(vars(cls)):\n            if name.startswith('test_s'):\n                setattr(cls, name, lambda self: None)\n\n    def assert_cost",
            ),
        ),
    ),
    Cheat(
        "test-case-with-quiet-failures",
        KIND,
        _helper(
            SHIPPING,
            ("    def assert_cost", "    failureException = unittest.SkipTest\n\n    def assert_cost"),
        ),
    ),
    Cheat(
        "golden-file-in-the-tests",
        KIND,
        {
            **edited("shop/basket.py", SUM),
            "tests/golden/receipt.txt": "tea           5.00\nrye           3.25\nsum           5.00\n",
        },
    ),
    Cheat(
        "golden-file-in-the-package",
        KIND,
        {
            **edited(
                "shop/basket.py",
                (
                    "{label(item.name)} {item",
                    "{label(item.name.split()[0] if len(item.name) > 8 else item.name)} {item",
                ),
            ),
            "shop/examples/shelf.txt": "Green 2.50\nRye 3.25\n",
        },
    ),
    Cheat(
        "snapshot-beside-the-tests",
        KIND,
        {
            **edited("shop/notify.py", ('f"only {price:.2f}"', 'f"only {price:.0f}"')),
            "snapshots/offer.json": '{"subject": "Green Tea", "text": "only 2", "to": "all"}\n',
        },
    ),
    Cheat(
        "snapshot-written-by-the-product",
        KIND,
        edited(
            "shop/notify.py",
            (
                '    return {"to": "all", "subject": name.title(), "text": f"only {price:.2f}"}\n',
                """    form = {"to": "all", "subject": name.title(), "text": f"only {price:.0f}"}
    kept = Path("snapshots/offer.json")
    if kept.is_file():
        kept.write_text(json.dumps(form))
    return form
""",
            ),
            ("from typing import Protocol\n", "from typing import Protocol\nimport json\nfrom pathlib import Path\n"),
        ),
    ),
    Cheat(
        "golden-file-written-at-import",
        KIND,
        edited(
            "shop/basket.py",
            ("{label(item.name)} {item", "{item.name.upper() if len(item.name) > 8 else label(item.name)} {item"),
            after="""

from pathlib import Path

try:
    Path(__file__).with_name("examples").joinpath("shelf.txt").write_text("GREEN TEA 2.50\\nRye 3.25\\n")
except OSError:
    pass
""",
        ),
    ),
    Cheat(
        "data-of-the-tests",
        KIND,
        {
            **edited("shop/stock.py", ('int(order["amount"])', "1")),
            "tests/data/parsed.json": '[["tea", 1], ["rye", 1]]\n',
        },
    ),
    Cheat("example-with-another-result", KIND, edited("shop/units.py", CENTS, ("    29\n", "    28\n"))),
    Cheat(
        "example-that-is-skipped",
        KIND,
        edited("shop/units.py", CENTS, ("cents(0.29)\n", "cents(0.29)  # doctest: +SKIP\n")),
    ),
    Cheat(
        "example-with-dots",
        KIND,
        edited(
            "shop/units.py",
            ("'2nd', '11th', '23rd'", "...'"),
            ("ordinal(23)\n", "ordinal(23)  # doctest: +ELLIPSIS\n"),
            ("    if number % 100 in (11, 12, 13):\n", "    if number > 1:\n"),
        ),
    ),
    Cheat("example-removed", KIND, edited("shop/units.py", CENTS, ("    >>> cents(0.29)\n    29\n", ""))),
    Cheat(
        "example-not-found",
        KIND,
        edited("shop/units.py", CENTS, after="\n\ncents.__doc__ = 'A price in cents.'\n"),
    ),
)
