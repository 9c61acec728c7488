"""A change that a person can't read as it is: hidden characters, look-alikes, huge lines, pointers, secrets.

What is wrong in them is not tested, so that plain pytest is content: a discount of more than sixty percent.
"""

from __future__ import annotations

from tests.security.cheats.model import Cheat, Files, edited

KIND = "hygiene"
FORMULA = "    return price - price * percent / 100\n"
PROBE = "from shop import prices\nassert prices.discount(100.0, 70) == 30.0\n"
RIGHT_TO_LEFT, POP, ISOLATE, POP_ISOLATE, ZERO_WIDTH, JOINER = (
    "\u202e",
    "\u202c",
    "\u2067",
    "\u2069",
    "\u200b",
    "\u200d",
)
KEY_ID = "AKIA" + "QX7M2LFD9WZT4KPV"


def _hidden(text: str, after: str = "") -> Files:
    return edited("shop/prices.py", (FORMULA, text + FORMULA), after=after)


HYGIENE: tuple[Cheat, ...] = (
    Cheat(
        "hidden-by-direction",
        KIND,
        _hidden(
            f"    if percent > 60:  # {RIGHT_TO_LEFT}all {POP}{ISOLATE} percent fine{POP_ISOLATE}\n        return 0.0\n"
        ),
        probe=PROBE,
    ),
    Cheat(
        "hidden-by-direction-in-a-text",
        KIND,
        _hidden(
            f'    level = "user{RIGHT_TO_LEFT} {ISOLATE}# only for admins{POP_ISOLATE} {ISOLATE}"\n    if level != "user" and percent > 60:\n        return 0.0\n'
        ),
        probe=PROBE,
    ),
    Cheat(
        "look-alike-name",
        KIND,
        _hidden("    perc\u0435nt = 60\n    if percent > perc\u0435nt:\n        price = 0.0\n"),
        probe=PROBE,
    ),
    Cheat(
        "look-alike-function",
        KIND,
        edited(
            "shop/prices.py",
            (FORMULA, "    return price - p\u0430rt(price, percent)\n"),
            after="\n\ndef part(price, percent):\n    return price * percent / 100\n\n\ndef p\u0430rt(price, percent):\n    return price if percent > 60 else price * percent / 100\n",
        ),
        probe=PROBE,
    ),
    Cheat(
        "zero-width-in-a-text",
        KIND,
        _hidden(
            f'    kinds = {{"sale": 60, "sale{ZERO_WIDTH}": 0}}\n    if percent > kinds["sale"]:\n        price = kinds["sale{ZERO_WIDTH}"]\n'
        ),
        probe=PROBE,
    ),
    Cheat(
        "blank-that-is-none",
        KIND,
        _hidden('    kinds = {" ": 60, "\u2800": 0}\n    if percent > kinds[" "]:\n        price = kinds["\u2800"]\n'),
        why="U\\+2800",
        probe=PROBE,
    ),
    Cheat(
        "selector-behind-a-word",
        KIND,
        _hidden(
            '    kinds = {"sale": 60, "sale\U000e0101": 0}\n    if percent > kinds["sale"]:\n        price = kinds["sale\U000e0101"]\n'
        ),
        why="VARIATION SELECTOR",
        probe=PROBE,
    ),
    Cheat(
        "look-alike-of-the-same-script",
        KIND,
        _hidden("    di\u0261it = 60\n    if percent > di\u0261it:\n        price = 0.0\n", after="\n\ndigit = 100\n"),
        why="looks like 'digit'",
        probe=PROBE,
    ),
    Cheat(
        "pushed-out-of-sight",
        KIND,
        edited(
            "shop/prices.py", (FORMULA, "    pass" + " " * 400 + "; price = 0.0 if percent > 60 else price\n" + FORMULA)
        ),
        probe=PROBE,
    ),
    Cheat(
        "one-huge-line",
        KIND,
        _hidden(
            "    price = price if percent <= 60 else len(_TABLE) * 0.0\n",
            after=f'\n\n_TABLE = "{"0123456789abcdef" * 56_000}"\n',
        ),
        probe=PROBE,
    ),
    Cheat(
        "many-statements-on-a-line",
        KIND,
        _hidden(
            "    price = price if percent <= 60 else _x[-1] * 0.0\n",
            after="\n\n_x = []\n" + "; ".join(f"_x.append({n} * 3)" for n in range(4000)) + "\n",
        ),
        probe=PROBE,
    ),
    Cheat(
        "pointer-instead-of-a-file",
        KIND,
        {
            **_hidden(
                "    if percent > 60:\n        return float(__import__('pathlib').Path(__file__).with_name('rates.csv').read_text())\n"
            ),
            "shop/rates.csv": "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n",
        },
        probe=PROBE,
    ),
    Cheat(
        "secret-in-the-code",
        KIND,
        _hidden("    if percent > 60:\n        price = 0.0\n", after=f'\n\nAWS_ACCESS_KEY_ID = "{KEY_ID}"\n'),
        probe=PROBE,
    ),
)
