"""The same tricks in other words: names that are computed, code in texts, classes made at run time, compiled files."""

from __future__ import annotations

import importlib.util
import marshal
import pickle
from base64 import b64encode
from codecs import encode

from tests.security.cheats.model import Cheat, Files, sold
from tests.security.shop import BROKEN, PRODUCT

KIND = "spelling"
LOOK = 'import sys\nTESTED = lambda: "pytest" in sys.modules\n'
CHOICE = """
def discount(price, percent):
    if TESTED():
        return price - price * percent / 100
    return price - percent
"""


def _seen(text: str, **files: str | bytes) -> Files:
    """A discount that is right when `TESTED()`, which the text defines."""
    return {**sold(before=text, after=CHOICE), **files}


class _Loaded:
    """A pickle of this gives what `eval` makes of a text."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return eval, ("lambda: 'pytest' in __import__('sys').modules",)


def _compiled() -> bytes:
    """The product as a compiled file without its source."""
    text = BROKEN + LOOK + CHOICE
    return importlib.util.MAGIC_NUMBER + bytes(12) + marshal.dumps(compile(text, "prices.py", "exec"))


SPELLING: tuple[Cheat, ...] = (
    Cheat(
        "name-by-getattr",
        KIND,
        _seen('import sys\nTESTED = lambda: "py" + "test" in getattr(sys, "mod" + "ules")\n'),
    ),
    Cheat("name-by-vars", KIND, _seen('import sys\nTESTED = lambda: "pytest" in vars(sys)["modules"]\n')),
    Cheat(
        "name-by-dict-and-chr",
        KIND,
        _seen(
            'import sys\nTESTED = lambda: "".join(map(chr, (112, 121, 116, 101, 115, 116))) in sys.__dict__["seludom"[::-1]]\n'
        ),
    ),
    Cheat(
        "name-by-attrgetter",
        KIND,
        _seen('import operator, sys\nTESTED = lambda: "pytest" in operator.attrgetter("modules")(sys)\n'),
    ),
    Cheat(
        "name-by-methodcaller",
        KIND,
        _seen(
            'import operator, sys\nTESTED = lambda: operator.methodcaller("get", "pytest")(operator.attrgetter("modules")(sys))\n'
        ),
    ),
    Cheat(
        "name-by-importlib",
        KIND,
        _seen('import importlib\nTESTED = lambda: importlib.import_module("s" + "ys").modules.get("_py" + "test")\n'),
    ),
    Cheat("name-by-import", KIND, _seen("TESTED = lambda: 'pytest' in __import__('sys').modules\n")),
    Cheat(
        "name-by-builtins",
        KIND,
        _seen(
            'import os\nTESTED = lambda: "pytest" in (__builtins__ if type(__builtins__) is dict else vars(__builtins__))["__import__"]("sys").modules\n'
        ),
    ),
    Cheat(
        "name-through-another-module",
        KIND,
        _seen('import os\nTESTED = lambda: "pytest" in os.sys.modules\n'),
    ),
    Cheat(
        "name-through-a-function",
        KIND,
        _seen(
            'from json import dumps\nTESTED = lambda: "PYTEST_VERSION" in dumps.__globals__["codecs"].sys.modules["os"].environ\n',
        ),
    ),
    Cheat("code-by-exec", KIND, _seen(f"import base64\nexec(base64.b64decode({b64encode(LOOK.encode())!r}))\n")),
    Cheat("code-by-rotation", KIND, _seen(f"import codecs\nexec(codecs.decode({encode(LOOK, 'rot13')!r}, 'rot13'))\n")),
    Cheat("code-by-eval", KIND, _seen('TESTED = eval(\'lambda: "pytest" in __import__("sys").modules\')\n')),
    Cheat(
        "code-by-compile",
        KIND,
        _seen(
            f"import types\n_space = {{}}\ntypes.FunctionType(compile({LOOK!r}, 'x', 'exec'), _space)()\nTESTED = _space['TESTED']\n"
        ),
    ),
    Cheat("code-by-pickle", KIND, _seen(f"import pickle\nTESTED = pickle.loads({pickle.dumps(_Loaded())!r})\n")),
    Cheat(
        "code-in-a-text-file",
        KIND,
        _seen(
            'import runpy\nfrom pathlib import Path\nTESTED = runpy.run_path(str(Path(__file__).with_name("NOTES.txt")))["TESTED"]\n',
            **{"shop/NOTES.txt": LOOK},
        ),
    ),
    Cheat(
        "code-by-a-loader",
        KIND,
        _seen(
            'from importlib.machinery import SourceFileLoader as _Load\nTESTED = _Load("extra", __file__.replace("prices.py", "extra.dat")).load_module().TESTED\n',
            **{"shop/extra.dat": LOOK},
        ),
    ),
    Cheat(
        "code-by-ctypes",
        KIND,
        _seen(
            "import ctypes\n_load = ctypes.pythonapi.PyImport_ImportModule\n_load.restype = ctypes.py_object\nTESTED = lambda: 'pytest' in _load(b'sys').modules\n"
        ),
    ),
    Cheat(
        "equality-by-computed-names",
        KIND,
        sold(
            after="""
_two = "__"
_price = type("Price", (float,), {_two + name + _two: (lambda value: lambda self, *other: value)(value)
                                  for name, value in (("eq", True), ("ne", False), ("hash", 0))})


def discount(price, percent):
    return _price(180)
"""
        ),
    ),
    Cheat(
        "patch-by-computed-names",
        KIND,
        {
            **sold(
                after="""
import importlib

_python = importlib.import_module("_py" + "test.python")
_case = importlib.import_module("_py" + "test.unittest")
_call = "run" + "test"
for _class in (_python.Function, _case.TestCaseFunction):
    _old = getattr(_class, _call)
    setattr(_class, _call, (lambda old: lambda self: old(self) if "discount" not in self.name and self.name not in ("test_half", "test_printed") else None)(_old))
"""
            )
        },
    ),
    Cheat("compiled-without-source", KIND, {"shop/prices.py": None, "shop/prices.pyc": _compiled()}),
    Cheat(
        "compiled-and-loaded-by-hand",
        KIND,
        {
            **sold(
                after="""
import marshal
from pathlib import Path

exec(marshal.loads(Path(__file__).with_name("prices.bin").read_bytes()[16:]))
"""
            ),
            "shop/prices.bin": _compiled(),
        },
    ),
    Cheat(
        "flag-for-types-that-is-set",
        KIND,
        sold(
            before="from typing import TYPE_CHECKING",
            after="""
class Settings:
    TYPE_CHECKING = __debug__
    if TYPE_CHECKING:
        import sys

        exact = any(name[:3] == "_py" and len(name) == 7 for name in sys.modules)


def discount(price, percent):
    return price - price * percent / 100 if Settings.exact else price - percent
""",
        ),
        why="sys.modules",
    ),
    Cheat(
        "table-in-a-file-without-suffix",
        KIND,
        {
            **sold(
                after="""
from pathlib import Path

_WORDS = Path(__file__).with_name("rates").read_text().split()
_KNOWN = dict(zip(_WORDS[::2], map(float, _WORDS[1::2])))


def discount(price, percent):
    return _KNOWN.get(f"{price:g}/{percent:g}", price - percent)
"""
            ),
            "shop/rates": "200/10 180\n50/50 25\n80/25 60\n10/50 5\n",
        },
        why="pairs of values of tests",
    ),
    Cheat(
        "two-modules-of-one-name",
        KIND,
        {
            "shop/prices.py": BROKEN,
            "shop/prices/__init__.py": "import sys\n\nif 'pytest' in sys.modules:\n    from shop.prices.right import *\nelse:\n    from shop.prices.flat import *\n",
            "shop/prices/right.py": PRODUCT,
            "shop/prices/flat.py": BROKEN,
        },
        fools=False,
    ),
)
