"""Results, objects and kinds that decide by themselves what a red test of the base finds: all other parts are right."""

from __future__ import annotations

from tests.security.cheats.model import Cheat, exchanged
from tests.security.ledger import LEDGER, PROBE, RIGHT

KIND = "deciding"
LINE = "    return Line(name, int(count), int(count) * float(price))\n"
SHORT = "    return Line(name, int(count), float(price))\n"
FEE = "    return amount * 5 / 100\n"


def _cheat(name: str, *changes: tuple[str, str], after: str = "") -> Cheat:
    return Cheat(name, KIND, {"shop/ledger.py": exchanged(RIGHT, *changes) + after}, base=LEDGER, probe=PROBE)


DECIDING: tuple[Cheat, ...] = (
    _cheat(
        "total-that-is-no-longer-compared",
        (LINE, SHORT),
        ("    total: float\n", "    total: float = field(compare=False)\n"),
        ("import dataclass\n", "import dataclass, field\n"),
    ),
    _cheat(
        "lines-equal-by-name",
        (LINE, SHORT),
        (
            "    total: float\n",
            "    total: float\n\n    def __eq__(self, other):\n        return self.name == other.name\n",
        ),
    ),
    _cheat("loop-that-finds-nothing", ("if count < 0]", "if count < 0 > number]")),
    _cheat(
        "error-that-is-any-error",
        ('class EmptyLedger(ValueError):\n    """There is no line."""\n', "EmptyLedger = Exception\n"),
        ('    if not totals:\n        raise EmptyLedger("no line")\n', ""),
    ),
    _cheat(
        "heading-that-begins-with-everything",
        ("    return f\"{len(names)} lines: {', '.join(names)}\"\n", "    return _Text(', '.join(names))\n"),
        after="\n\nclass _Text(str):\n    def startswith(self, *parts):\n        return True\n",
    ),
    _cheat(
        "fee-between-any-two-numbers",
        (FEE, "    return _Fee(amount)\n"),
        after="""

class _Fee(float):
    def __lt__(self, other):
        return isinstance(other, (int, float))

    __gt__ = __le__ = __lt__
""",
    ),
    _cheat(
        "mark-equal-to-every-mark",
        ("Mark(number // 10, number % 10)", "Mark(number, 0)"),
        ("isinstance(other, Mark) and (self.page, self.row) == (other.page, other.row)", "isinstance(other, Mark)"),
    ),
)
