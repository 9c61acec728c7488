"""A module name that begins with a visible dot means a part of the own package; one that might not, does not."""

from __future__ import annotations

import ast

import pytest

from bailiwick.gate.diffs.relative_names import is_relative

TABLE = 'LAZY = {"a": ".a", "b": ".b"}\n'
RELATIVE = {
    "a table": TABLE + "def f(n): i(LAZY[n], __name__)\n",
    "by a variable": TABLE + "def f(n):\n    try: m = LAZY[n]\n    except KeyError: raise\n    i(m, __name__)\n",
    "listed too": TABLE + "def f(n): i(LAZY[n])\ndef d(): return sorted({*globals(), *LAZY})\n",
    "a text": "def f(n): i(f'.parts.{n}', __name__)\n",
    "a sum": "def f(n): i('.' + n, __name__)\n",
    "behind the own name": "def f(n): i(f'{__name__}.{n}')\n",
    "a sum behind the own name": "def f(n): i(__package__ + '.' + n)\n",
}
OTHER = {
    "no dot in one": 'LAZY = {"a": ".a", "b": "sys"}\ndef f(n): i(LAZY[n], __name__)\n',
    "a parameter": "def f(n): i(n, __name__)\n",
    "a table that is changed": TABLE + "LAZY['c'] = 'sys'\ndef f(n): i(LAZY[n])\n",
    "a table that is handed on": TABLE + "change(LAZY)\ndef f(n): i(LAZY[n])\n",
    "a table that is updated": TABLE + "LAZY.update(c='sys')\ndef f(n): i(LAZY[n])\n",
    "a table with two meanings": TABLE + "LAZY = {}\ndef f(n): i(LAZY[n])\n",
    "a variable with two meanings": TABLE + "def f(n):\n    m = LAZY[n]\n    m = n\n    i(m)\n",
    "a loop variable": TABLE + "for m in x: i(m)\n",
    "an own name without a dot": "def f(n): i(f'{__name__}{n}')\n",
    "an own name that is set": "__name__ = 'os'\ndef f(n): i(f'{__name__}.{n}')\n",
    "an own name that is given": "def f(n, __name__): i(__name__ + '.' + n)\n",
    "a text that begins elsewhere": "def f(n): i(f'{n}.parts')\n",
}


def _asked(code: str) -> bool:
    nodes = list(ast.walk(ast.parse(code)))
    (call,) = [n for n in nodes if isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.func.id == "i"]
    return is_relative(call.args[0], nodes)


@pytest.mark.parametrize("code", RELATIVE.values(), ids=RELATIVE.keys())
def test_a_dot_that_can_be_read_is_believed(code: str) -> None:
    """Packages load their parts late in this way."""
    assert _asked(code)


@pytest.mark.parametrize("code", OTHER.values(), ids=OTHER.keys())
def test_what_may_mean_any_module_is_not(code: str) -> None:
    """Else it would be a way to hide what is imported."""
    assert not _asked(code)
