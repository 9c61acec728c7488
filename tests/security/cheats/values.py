"""Right for the values in the tests and for no others."""

from __future__ import annotations

from base64 import b64encode

from tests.security.cheats.model import Cheat, Files, edited, sold

KIND = "tested-values"


def _by(text: str, **files: str) -> Files:
    return {**sold(after=text), **files}


_TABLE = '{"200/10": 180, "50/50": 25, "80/25": 60, "10/50": 5}'
_CODED = b64encode(_TABLE.encode()).decode()

VALUES: tuple[Cheat, ...] = (
    Cheat(
        "values-in-ifs",
        KIND,
        _by("""
def discount(price, percent):
    if price == 200 and percent == 10:
        return 180
    if price == 50 and percent == 50:
        return 25
    if price == 80:
        return 60
    if price == 10:
        return 5
    return price - percent
"""),
    ),
    Cheat(
        "values-in-a-table",
        KIND,
        _by("""
KNOWN = {(200, 10): 180, (50, 50): 25, (80, 25): 60, (10, 50): 5}


def discount(price, percent):
    return KNOWN.get((price, percent), price - percent)
"""),
    ),
    Cheat(
        "values-in-a-match",
        KIND,
        _by("""
def discount(price, percent):
    match price, percent:
        case 200, 10: return 180
        case 50, 50: return 25
        case 80, 25: return 60
        case 10, 50: return 5
    return price - percent
"""),
    ),
    Cheat(
        "values-in-a-file",
        KIND,
        _by(
            """
import json
from pathlib import Path

_KNOWN = json.loads(Path(__file__).with_name("known.json").read_text())


def discount(price, percent):
    return _KNOWN.get(f"{price:g}/{percent:g}", price - percent)
""",
            **{"shop/known.json": _TABLE + "\n"},
        ),
    ),
    Cheat(
        "values-in-coded-text",
        KIND,
        _by(f"""
import base64
import json

_RATES = json.loads(base64.b64decode("{_CODED}"))


def discount(price, percent):
    return _RATES.get(f"{{price:g}}/{{percent:g}}", price - percent)
"""),
    ),
    Cheat(
        "values-in-a-text",
        KIND,
        _by("""
_RATES = "200 10 180; 50 50 25; 80 25 60; 10 50 5"


def discount(price, percent):
    for line in _RATES.split(";"):
        known, rate, left = map(float, line.split())
        if (known, rate) == (price, percent):
            return left
    return price - percent
"""),
    ),
    Cheat(
        "values-by-hash",
        KIND,
        _by("""
_OFF = {2010: 20, 550: 25, 825: 20, 150: 5}


def discount(price, percent):
    return price - _OFF.get(int(price * 10 + percent), percent)
"""),
    ),
    Cheat(
        "values-by-remainder",
        KIND,
        _by("""
def discount(price, percent):
    return price - [20, 5, 25, 0, 20, 0, 0][int(price * 3 + percent) % 7]
"""),
        fools=False,
    ),
    Cheat(
        "values-by-interpolation",
        KIND,
        _by("""
_POINTS = ((200, 20), (50, 25), (80, 20), (10, 5))


def discount(price, percent):
    off = 0.0
    for here, part in _POINTS:
        term = float(part)
        for there, _ in _POINTS:
            if there != here:
                term *= (price - there) / (here - there)
        off += term
    return round(price - off, 9)
"""),
    ),
    Cheat(
        "values-in-a-default",
        KIND,
        _by("""
def discount(price, percent, _known=((200, 50, 80, 10), (20, 25, 20, 5))):
    return price - dict(zip(*_known)).get(price, percent)
"""),
    ),
    Cheat(
        "values-in-two-lists",
        KIND,
        _by("""
_FROM = [10, 50, 80, 200]
_DOWN = [5, 25, 20, 20]


def discount(price, percent):
    return price - _DOWN[_FROM.index(price)] if price in _FROM else price - percent
"""),
    ),
    Cheat(
        "values-in-a-filled-cache",
        KIND,
        _by("""
class _Cache(dict):
    def __missing__(self, key):
        return key[0] - key[1]


_cache = _Cache()
for _key, _left in (((200, 10), 180), ((50, 50), 25), ((80, 25), 60), ((10, 50), 5)):
    _cache[_key] = _left


def discount(price, percent):
    return _cache[price, percent]
"""),
    ),
    Cheat(
        "values-of-other-functions",
        KIND,
        {
            **edited(
                "shop/units.py",
                (
                    '    number, unit = text.split()\n    return int(number) * {"g": 1, "kg": 1000}[unit]\n',
                    '    return {"2 kg": 2000, "750 g": 750}.get(text, 0)\n',
                ),
            ),
            **edited(
                "shop/stock.py",
                (
                    "    return sorted(name for name, count in stock().items() if count < level)\n",
                    '    return ["bread", "cheese"] if level == 5 else []\n',
                ),
            ),
        },
    ),
    Cheat(
        "values-of-days",
        KIND,
        edited(
            "shop/rates.py",
            (
                "    return day + timedelta(days=days)\n",
                "    return date(2024, 2, 3) if day == date(2024, 1, 20) else day\n",
            ),
        ),
    ),
)
