"""Tests that are appended to files of the base, in the styles people write them."""

from __future__ import annotations

from tests.security.honest.model import Files, Honest, edited

NEGATIVE = edited(
    "shop/prices.py",
    (
        "    return float(text)\n",
        '    found = float(text)\n    if found < 0:\n        raise ValueError("a negative price")\n    return found\n',
    ),
)
SHOUTED = edited("shop/prices.py", ("    return name.strip().title()\n", '    return " ".join(name.split()).title()\n'))
HALF = "    def test_half(self) -> None:\n        self.assertEqual(prices.discount(10, 50), 5)\n"


def _appended(text: str, name: str = "prices") -> Files:
    return edited(f"tests/test_{name}.py", after=text)


APPENDED: tuple[Honest, ...] = (
    Honest(
        "appended-function",
        {**SHOUTED, **_appended('\n\ndef test_spaces() -> None:\n    assert prices.label("a   b") == "A B"\n')},
        proof=True,
    ),
    Honest(
        "appended-raises",
        {
            **NEGATIVE,
            **_appended(
                '\n\ndef test_negative() -> None:\n    with pytest.raises(ValueError, match="negative"):\n        prices.parse("-1")\n'
            ),
        },
        proof=True,
    ),
    Honest(
        "appended-parametrized",
        {
            **NEGATIVE,
            **_appended(
                '\n\n@pytest.mark.parametrize("text", ["-1", "-0.5"])\ndef test_negatives(text: str) -> None:\n    with pytest.raises(ValueError):\n        prices.parse(text)\n'
            ),
        },
        proof=True,
    ),
    Honest(
        "appended-method",
        {
            **SHOUTED,
            **_appended('\n    def test_tab(self) -> None:\n        self.assertEqual(prices.label("a\\t b"), "A B")\n'),
        },
        proof=True,
    ),
    Honest(
        "appended-class",
        {
            **SHOUTED,
            **_appended(
                '\n\nclass TestLabels:\n    def test_inner_space(self) -> None:\n        assert prices.label("x  y") == "X Y"\n'
            ),
        },
        proof=True,
    ),
    Honest(
        "appended-with-an-import",
        {
            **NEGATIVE,
            **edited(
                "tests/test_prices.py",
                ("import unittest\n\nimport pytest\n", "import math\nimport unittest\n\nimport pytest\n"),
                after='\n\ndef test_infinite() -> None:\n    assert math.isinf(prices.parse("inf"))\n    with pytest.raises(ValueError):\n        prices.parse("-inf")\n',
            ),
        },
        proof=True,
    ),
    Honest(
        "appended-in-the-middle",
        {
            **SHOUTED,
            **edited(
                "tests/test_prices.py",
                (
                    "def test_cheap() -> None:",
                    'def test_wide_label() -> None:\n    assert prices.label("p  q") == "P Q"\n\n\ndef test_cheap() -> None:',
                ),
            ),
        },
        proof=True,
    ),
    Honest(
        "appended-fixture-and-test",
        {
            **SHOUTED,
            **_appended(
                '\n\n@pytest.fixture\ndef wide() -> str:\n    return "b   c"\n\n\ndef test_wide(wide: str) -> None:\n    assert prices.label(wide) == "B C"\n'
            ),
        },
        proof=True,
    ),
    Honest("appended-for-old-code", _appended("\n\ndef test_one() -> None:\n    assert prices.total([7]) == 7\n")),
    Honest(
        "appended-with-a-constant",
        {
            **SHOUTED,
            **_appended(
                '\n\nWIDE = {"a  b": "A B", "c   d": "C D"}\n\n\ndef test_wide_labels() -> None:\n    for name, label in WIDE.items():\n        assert prices.label(name) == label\n'
            ),
        },
        proof=True,
    ),
    Honest(
        "appended-to-mock-tests",
        {
            **edited(
                "shop/notify.py",
                (
                    "    count = 0\n    for",
                    '    count = 0\n    if hasattr(sender, "open"):\n        sender.open()\n    for',
                ),
            ),
            **_appended(
                "\n\ndef test_opened() -> None:\n    sender = mock.Mock()\n    notify.announce_all(sender, [])\n    sender.open.assert_called_once_with()\n",
                "notify",
            ),
        },
        proof=True,
    ),
    Honest(
        "appended-to-unittest",
        {
            **edited(
                "shop/rates.py",
                ("    return sum(values) / len(values)\n", "    return sum(values) / len(values) if values else 0.0\n"),
            ),
            **_appended(
                "\n    def test_mean_of_nothing(self) -> None:\n        self.assertEqual(rates.average([]), 0)\n",
                "rates",
            ),
        },
        proof=True,
    ),
    Honest(
        "appended-async",
        {
            **edited(
                "shop/notify.py",
                after='\n\nasync def announce_later(sender: Sender, name: str, price: float) -> None:\n    """Say what something costs, when there is time."""\n    announce(sender, name, price)\n',
            ),
            **_appended(
                '\n\ndef test_later() -> None:\n    import asyncio\n\n    sender = mock.Mock()\n    asyncio.run(notify.announce_later(sender, "tea", 1))\n    sender.send.assert_called_once_with("tea: 1.00")\n',
                "notify",
            ),
        },
        proof=True,
    ),
)
