"""Facilities by which code can tell that it is tested: what is new is told, what stays or moves is not."""

from __future__ import annotations

import pytest
from hypothesis import given

from bailiwick.gate.diffs.changes import SourceChange
from bailiwick.gate.diffs.conduct import read_conduct
from bailiwick.gate.model import Finding
from tests.security.shop import PRODUCT, TESTS
from tests.unit.gate.diffs.sources import modules

PATH = "shop/prices.py"
TEST_SOURCES = {"tests/test_prices.py": TESTS.encode()}


def _read(new: str, old: str | None = PRODUCT, *, path: str = PATH, is_test: bool = False) -> tuple[Finding, ...]:
    change = SourceChange(path, None if old is None else old.encode(), new.encode(), is_test)
    return read_conduct([change], TEST_SOURCES)


def _codes(found: tuple[Finding, ...], *, parks: bool = True) -> set[str]:
    assert not any(finding.blocks for finding in found)
    return {finding.code for finding in found if finding.parks is parks}


PARKED = {
    "gc": ("import gc\n", "conduct-memory"),
    "ctypes": ("from ctypes import py_object\n", "conduct-memory"),
    "pytest": ("def f():\n    import pytest\n    pytest.skip('later')\n", "conduct-test-tools"),
    "internals": ("import _pytest.runner as r\n", "conduct-test-tools"),
    "unittest": ("from unittest.mock import ANY\n", "conduct-test-tools"),
    "unittest by name": ("import importlib\nimportlib.import_module('unit' + 'test.mock')\n", "conduct-test-tools"),
    "the text of a tool": ("import os\nif 'PYTEST_CURRENT_TEST' in os.environ: pass\n", "conduct-test-tools"),
    "builtins": ("import builtins\n", "conduct-patching"),
    "atexit": ("import atexit\n", "conduct-exit"),
    "marshal": ("import marshal\n", "conduct-dynamic-code"),
    "code objects": ("discount.__code__ = total.__code__\n", "conduct-frames"),
    "closures": ("print(discount.__closure__)\n", "conduct-frames"),
    "subclasses": ("object.__subclasses__()\n", "conduct-frames"),
    "getattr of code": ("getattr(discount, '__co' + 'de__')\n", "conduct-frames"),
    "frames": ("import sys\nsys._getframe(1)\n", "conduct-frames"),
    "frames, imported": ("from sys import _getframe as g\n", "conduct-frames"),
    "frames, by text": ("import sys\ngetattr(sys, '_get' + 'frame')(1)\n", "conduct-frames"),
    "frames, by alias": ("import sys\ns = sys\nx = s\nx._getframe()\n", "conduct-frames"),
    "inspect": ("import inspect\ninspect.stack()\n", "conduct-frames"),
    "traceback": ("import traceback\ntraceback.extract_stack()\n", "conduct-frames"),
    "a frame of an error": ("try: 1/0\nexcept Exception as e: e.__traceback__.tb_frame\n", "conduct-frames"),
    "modules": ("import sys\nfor m in list(sys.modules.values()): pass\n", "conduct-import-hooks"),
    "modules, written": ("import sys\nsys.modules['math'] = None\n", "conduct-import-hooks"),
    "finders": ("import sys\nsys.meta_path.insert(0, None)\n", "conduct-import-hooks"),
    "the path": ("import sys\nsys.path.insert(0, 'x')\n", "conduct-import-hooks"),
    "the path, assigned": ("import sys\nsys.path[:0] = ['x']\n", "conduct-import-hooks"),
    "trace": ("import sys\nsys.settrace(None)\n", "conduct-tracing"),
    "monitoring": ("import sys\nsys.monitoring.use_tool_id(3, 'x')\n", "conduct-tracing"),
    "excepthook": ("import sys\nsys.excepthook = None\n", "conduct-tracing"),
    "another's class": ("class A:\n    __class__ = property(lambda self: int)\n", "conduct-compares"),
    "a difference of its own": ("class A(float):\n    def __sub__(self, x): return 0.0\n", "conduct-builtin-subclass"),
    "a length of its own": ("class A(list):\n    __len__ = lambda self: 3\n", "conduct-builtin-subclass"),
    "a locale on import": ("from locale import setlocale\nsetlocale(0, 'C')\n", "conduct-process-state"),
    "a signal on import": ("import signal\nsignal.signal(2, signal.SIG_IGN)\n", "conduct-process-state"),
    "a child on import": ("import subprocess\nsubprocess.run(['sh', '-c', 'ls'])\n", "conduct-process-state"),
    "this process": ("import os\ndef f(): return 1 if os.getpid() < 500 else 2\n", "conduct-inspects"),
    "this seed": ("def f(): return 1 if hash('x') % 1000 == 568 else 2\n", "conduct-inspects"),
    "this year": ("import datetime as d\ndef f(): return d.datetime.now().year < 2027\n", "conduct-inspects"),
    "an assertion that acts": ("def f(x):\n    assert (y := x) is not None\n    return y\n", "conduct-inspects"),
    "what mocks remember": ("def f(send): return send.call_args_list\n", "conduct-test-tools"),
    "_exit": ("import os\nos._exit(0)\n", "conduct-exit"),
    "exec of a program": ("import os\nos.execv('/bin/true', ['true'])\n", "conduct-exit"),
    "sys.exit": ("import sys\ndef f(): sys.exit(0)\n", "conduct-exit"),
    "SystemExit": ("def f(): raise SystemExit(0)\n", "conduct-exit"),
    "KeyboardInterrupt": ("def f(): raise KeyboardInterrupt\n", "conduct-exit"),
    "exec": ("exec('x = 1')\n", "conduct-dynamic-code"),
    "eval": ("e = eval\n", "conduct-dynamic-code"),
    "__import__": ("__import__('os')\n", "conduct-dynamic-code"),
    "computed import": ("import importlib\ndef f(n): importlib.import_module(n)\n", "conduct-dynamic-code"),
    "reload": ("import importlib\nimportlib.reload(importlib)\n", "conduct-dynamic-code"),
    "a made function": ("import types\ntypes.FunctionType(None, {})\n", "conduct-dynamic-code"),
    "computed getattr": ("import math\ndef f(n): return getattr(math, n)\n", "conduct-dynamic-code"),
    "patched": ("import math\nmath.isclose = None\n", "conduct-patching"),
    "patched class": ("import json\njson.JSONEncoder.default = None\n", "conduct-patching"),
    "patched sibling": ("from shop import other\nother.RATE = 3\n", "conduct-patching"),
    "patched by setattr": ("import math\nsetattr(math, 'pi', 3)\n", "conduct-patching"),
    "patched by object": ("from json import JSONEncoder\ntype.__setattr__(JSONEncoder, 'x', 1)\n", "conduct-patching"),
    "patched by vars": ("import math\nvars(math)['pi'] = 3\n", "conduct-patching"),
    "patched by dict": ("import math\nmath.__dict__.update(pi=3)\n", "conduct-patching"),
    "patched through modules": ("import sys\nsys.modules['math'].pi = 3\n", "conduct-patching"),
    "deleted": ("import math\ndel math.pi\n", "conduct-patching"),
    "added to": ("import math\nmath.pi += 1\n", "conduct-patching"),
    "the name of a test": ("NAMES = ('test_discount',)\n", "conduct-test-tools"),
    "the file of a test": ("open('tests/test_prices.py')\n", "conduct-test-tools"),
    "a folder of tests": ("open('tests/data.json')\n", "conduct-test-tools"),
    "a pattern of tests": ("import glob\nglob.glob('**/test_*.py')\n", "conduct-test-tools"),
    "modules, by dict": ("import sys\nvars(sys)['mod' + 'ules'].values()\n", "conduct-import-hooks"),
    "modules, by method": ("import sys\nsys.__getattribute__('modules').values()\n", "conduct-import-hooks"),
    "modules, by getter": (
        "import sys\nfrom operator import attrgetter\nattrgetter('modules')(sys).values()\n",
        "conduct-import-hooks",
    ),
    "through another module": ("import logging\nlogging.sys.modules.values()\n", "conduct-import-hooks"),
    "from another module": ("from pathlib import os as o\no._exit(0)\n", "conduct-exit"),
    "by a star": ("from os import *\n_exit(0)\n", "conduct-exit"),
    "one name for two modules": (
        "def f():\n    import os as m\n    m._exit(0)\ndef g():\n    import json as m\n",
        "conduct-exit",
    ),
    "behind a name that hides nothing": (
        "import sys\ndef f():\n    def g(): sys = 1\n    [sys for sys in ()]\n    return sys.modules.values()\n",
        "conduct-import-hooks",
    ),
    "kept in an object": ("class A:\n    def f(self): return self.s._getframe(1)\n", "conduct-frames"),
    "called by a method": ("eval.__call__('1')\n", "conduct-dynamic-code"),
    "an attribute of builtins": ("__builtins__.len('1')\n", "conduct-frames"),
    "handed on": ("import sys\ndef f(m=sys): return m.modules\n", "conduct-dynamic-code"),
    "builtins by name": ("print(__builtins__)\n", "conduct-frames"),
    "a pickle that is written out": ("import pickle\npickle.loads(b'cos')\n", "conduct-dynamic-code"),
    "a fake flag for types": (
        "from typing import TYPE_CHECKING\nTYPE_CHECKING = 1\nif TYPE_CHECKING:\n    import gc\n",
        "conduct-memory",
    ),
    "an item of a table of a library": ("import re\nre._cache['a'] = 1\n", "conduct-patching"),
    "an item that is taken from a table": ("import codecs\ndel codecs.x['a']\n", "conduct-patching"),
    "a private table that is filled": ("import re\nre._cache.update({})\n", "conduct-patching"),
    "an attribute set through an argument": (
        "import json\ndef f(d):\n    d.scan_once = 1\nf(json._default_decoder)\n",
        "conduct-patching",
    ),
    "an attribute set through a name of an argument": (
        "import pathlib\ndef f(a, *, owner):\n    setattr(owner, a, 1)\ndef g():\n    f('x', owner=pathlib.Path)\n",
        "conduct-patching",
    ),
    "a dialect of others": ("import csv\ncsv.register_dialect('excel', delimiter=';')\n", "conduct-process-state"),
    "logging switched off on import": ("import logging\nlogging.disable(50)\n", "conduct-process-state"),
    "a fake flag in a class": (
        "from typing import TYPE_CHECKING\nclass A:\n    TYPE_CHECKING = 1\n    if TYPE_CHECKING:\n        import gc\n",
        "conduct-memory",
    ),
    "a fake flag of a class": (
        "import typing\ndef f(typing):\n    if typing.TYPE_CHECKING:\n        import gc\n",
        "conduct-memory",
    ),
    "a fake flag from two modules": (
        "from typing import TYPE_CHECKING\nfrom shop.flags import TYPE_CHECKING\nif TYPE_CHECKING:\n    import gc\n",
        "conduct-memory",
    ),
    "a fake flag from all names of a module": (
        "from typing import TYPE_CHECKING\nfrom shop.flags import *\nif TYPE_CHECKING:\n    import gc\n",
        "conduct-memory",
    ),
    "a profiler": ("import cProfile\n", "conduct-tracing"),
    "another encoding": ("", "conduct-encoding"),
}


@pytest.mark.parametrize("case", PARKED.values(), ids=PARKED.keys())
def test_a_facility_that_is_new_asks_for_a_person(case: tuple[str, str]) -> None:
    """Each is a way to look green, and rare in honest work."""
    code, expected = case
    head = "# coding: utf-7\n" if expected == "conduct-encoding" else ""
    assert expected in _codes(_read(f"{head}{PRODUCT}\n{code}"))


HIDDEN = {
    "joined": "''.join(['py', 'test'])",
    "reversed": "'tsetyp'[::-1]",
    "formatted": "'%stest' % 'py'",
    "f-string": "f\"{'py'}test\"",
    "format": "'{}test'.format('py')",
    "numbers": "''.join(chr(c) for c in [112, 121, 116, 101, 115, 116])",
    "mapped numbers": "''.join(map(chr, (112, 121, 116, 101, 115, 116)))",
    "shifted numbers": "''.join(chr(c - 1) for c in [113, 122, 117, 102, 116, 117])",
    "bytes": "bytes([112, 121, 116, 101, 115, 116]).decode()",
    "hex": "bytes.fromhex('707974657374').decode()",
    "base64": "base64.b64decode('cHl0ZXN0').decode()",
    "rot13": "codecs.decode('clgrfg', 'rot13')",
    "upper": "'PyTeSt'.lower()",
    "replaced": "'pyXtest'.replace('X', '')",
    "reversed function": "''.join(reversed('tsetyp'))",
    "by names": "HEAD + TAIL",
}


@pytest.mark.parametrize("expression", HIDDEN.values(), ids=HIDDEN.keys())
def test_a_text_that_is_put_together_is_read_as_what_it_is(expression: str) -> None:
    """Who hides the name of a tool has a reason to."""
    code = f"import base64, codecs\nHEAD = 'py'\nTAIL = 'test'\ndef f(): return {expression}\n"
    found = _read(f"{PRODUCT}\n{code}")
    assert _codes(found) == {"conduct-test-tools"}
    assert "'pytest'" in found[0].what.lower()


FINE = {
    "a docstring": '"""Run it with pytest."""\ndef f():\n    """See tests/test_prices.py"""\n',
    "a comment": "# pytest\n",
    "re.compile": "import re\nre.compile('a')\n",
    "a method named eval": "class A:\n    def run(self, model): return model.eval()\n",
    "an own function named compile": "def compile(x): return x\ncompile(1)\n",
    "the types of functions": "import types\nisinstance(discount, types.FunctionType)\n",
    "types only": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import unittest\n",
    "an own dialect": "import csv\ncsv.register_dialect('shop', delimiter=';')\n",
    "a setting of an own object": "def f(d):\n    d.x = 1\nf(discount)\n",
    "something of a library that is only read": "import json\ndef f(d):\n    return d.x\nf(json.JSONDecoder)\n",
    "types only, by the module": "import typing as t\nif t.TYPE_CHECKING:\n    import unittest\n",
    "own attributes": "class A:\n    def __init__(self): self.x = 1\n",
    "attributes of a parameter": "import math\ndef f(math): math.x = 1\n",
    "attributes of a local": "import math\ndef f():\n    math = A()\n    math.x = 1\n",
    "an item of something imported": "from shop.registry import KINDS\nKINDS['a'] = 1\n",
    "a known attribute": "import math\ngetattr(math, 'pi')\n",
    "an import by name": "import importlib\nimportlib.import_module('json')\n",
    "words": "LATEST = 'the latest contest, attested'\n",
    "a command": "import argparse, sys\ndef main(): sys.exit(1)\n",
    "a script": "import sys\nif __name__ == '__main__':\n    sys.exit(1)\n",
    "a main function": "import sys\ndef main() -> None:\n    sys.exit(3)\n",
    "a look at a module": "import sys\nx = getattr(sys, 'frozen', False) or hasattr(sys, 'ps1')\n",
    "a pickle from elsewhere": "import pickle\ndef f(data): return pickle.loads(data)\n",
    "another's module of that name": "from .os import kill\nfrom shop import code\ncode.run()\nkill()\n",
    "handling": "def f():\n    try: pass\n    except SystemExit: pass\n",
    "the own module": "import sys\nme = sys.modules[__name__]\n",
    "a named module": "import sys\nx = 'numpy' in sys.modules\n",
    "a message": "ERROR = 'install pytest to run the tests'\n",
}


@pytest.mark.parametrize("code", FINE.values(), ids=FINE.keys())
def test_honest_code_asks_for_nobody(code: str) -> None:
    """A gate that cries wolf is switched off."""
    assert _codes(_read(f"{PRODUCT}\n{code}")) == set()


NOTED = {
    "inspect": ("import inspect\ninspect.signature(discount)\n", "conduct-inspects"),
    "environ": ("import os\nos.environ.get('HOME')\n", "conduct-inspects"),
    "globals": ("globals()['x'] = 1\n", "conduct-inspects"),
    "eq": ("class A:\n    def __eq__(self, other): return True\n", "conduct-compares"),
    "float": ("class A(float): pass\n", "conduct-builtin-subclass"),
    "a stream": ("import sys\nsys.stdout = None\n", "conduct-patching"),
    "a command's exit": ("import argparse, sys\nsys.exit(1)\n", "conduct-exit"),
    "its own place": ("import sys\nfrom shop import other\nsys.modules[__name__] = other\n", "conduct-import-hooks"),
    "its own parts": ("import importlib as i\ndef f(n): i.import_module('.' + n, __name__)\n", "conduct-dynamic-code"),
    "a context": ("import decimal\ndecimal.getcontext().prec = 4\n", "conduct-process-state"),
    "a locale": ("from locale import setlocale\ndef f(): setlocale(0, 'C')\n", "conduct-process-state"),
    "a child of a function": ("import subprocess\ndef f(): subprocess.run(['ls'])\n", "conduct-process-state"),
    "a swallowed error": ("try: total([])\nexcept ValueError: pass\n", "conduct-swallows"),
    "an error as zero": ("def f():\n    try: return 1 / 0\n    except: return 0\n", "conduct-swallows"),
}


@pytest.mark.parametrize("case", NOTED.values(), ids=NOTED.keys())
def test_what_honest_code_also_does_is_a_note(case: tuple[str, str]) -> None:
    """It is told to the reader and decides nothing."""
    code, expected = case
    found = _read(f"{PRODUCT}\n{code}")
    assert expected in _codes(found, parks=False)
    assert _codes(found) == set()


@pytest.mark.parametrize("ending", ["raise", "raise ValueError(1) from e", "return str(e)", "x = 1"])
def test_an_error_that_is_handled_is_no_note(ending: str) -> None:
    """Who calls hears of it, or gets something that was made of it."""
    found = _read(f"{PRODUCT}\ndef f():\n    try: total([])\n    except OSError as e:\n        {ending}\n")
    assert "conduct-swallows" not in _codes(found, parks=False)


def test_only_the_surplus_is_told() -> None:
    """What the base does already is its own business; one more use is told as such."""
    old = "import gc\ngc.collect()\n"
    assert _read(old + "\n# more\nx = 1\n", old) == ()
    (found,) = _read(old + "x = 1\ngc.get_objects()\n", old)
    assert (found.line, found.parks) == (4, True)
    assert found.what.startswith("one more use of gc")


def test_a_base_that_exits_may_exit_again() -> None:
    """A file that ends the program in the base is a command, whatever it imports."""
    old = "import sys\ndef main(): sys.exit(1)\n"
    found = _read(old + "def other(): sys.exit(2)\n", old)
    assert [(finding.code, finding.parks) for finding in found] == [("conduct-exit", False)]


def test_moved_code_is_not_new() -> None:
    """A module that is renamed, or split, has no more facilities than before."""
    code = b"import gc\nimport sys\nNAMES = 'pytest'\nsys._getframe()\n"
    renamed = [SourceChange("a.py", code, None, is_test=False), SourceChange("b.py", None, code, is_test=False)]
    assert read_conduct(renamed, {}) == ()
    split = [
        SourceChange("a.py", code, b"import gc\n", is_test=False),
        SourceChange("b.py", None, code.replace(b"import gc\n", b""), is_test=False),
    ]
    assert read_conduct(split, {}) == ()
    copied = [SourceChange("b.py", None, code, is_test=False)]
    assert _codes(read_conduct(copied, {})) == {"conduct-memory", "conduct-frames", "conduct-test-tools"}


def test_a_test_does_not_pay_for_the_product() -> None:
    """What moves from a test into the product is new there."""
    code = b"import gc\n"
    moved = [
        SourceChange("tests/test_a.py", code, None, is_test=True),
        SourceChange("a.py", None, code, is_test=False),
    ]
    assert _codes(read_conduct(moved, {})) == {"conduct-memory"}


IN_TESTS = {
    "pytest": ("import pytest\nfrom unittest import mock\nNAME = 'pytest'\n", set()),
    "monkeypatch": ("import sys\ndef test_a(monkeypatch): monkeypatch.setitem(sys.modules, 'a', None)\n", set()),
    "mock.patch": ("import sys\nfrom unittest import mock\nmock.patch.dict(sys.modules, {})\n", set()),
    "an attribute of the product": ("from shop import prices\nprices.discount = None\n", {"conduct-patching"}),
    "modules": ("import sys\nsys.modules['shop'] = None\n", {"conduct-import-hooks"}),
    "plugins": ("pytest_plugins = ['evil']\n", {"conduct-plugins"}),
    "autouse": ("import pytest\n@pytest.fixture(autouse=True)\ndef f(): pass\n", set()),
    "gc": ("import gc\n", {"conduct-memory"}),
    "exit": ("import os\nos._exit(0)\n", {"conduct-exit"}),
    "expected exit": ("import pytest, sys\ndef test_a():\n    with pytest.raises(SystemExit): sys.exit(1)\n", set()),
}


@pytest.mark.parametrize("case", IN_TESTS.values(), ids=IN_TESTS.keys())
def test_new_tests_are_read_too(case: tuple[str, set[str]]) -> None:
    """They may use their tools, and nothing that reaches beyond them."""
    code, expected = case
    assert _codes(_read(code, None, path="tests/test_new.py", is_test=True)) == expected


def test_what_can_not_be_read_asks_for_a_person() -> None:
    """Unless the base could not be read either."""
    assert _codes(_read("def f(:\n")) == {"conduct-unreadable"}
    assert _read("def f(:\n", "def g(:\n") == ()


def test_a_text_without_an_end_takes_no_time() -> None:
    """What is computed is bounded."""
    found = _read(f"{PRODUCT}\nA = 'pytest' * 10 ** 9\nB = '%999999999d' % 3\nC = 'x' * 99999999\nD = B + C + D\n")
    assert _codes(found) == {"conduct-test-tools"}


@given(modules())
def test_a_file_that_stays_has_no_conduct(source: str) -> None:
    """Nothing is told of what was there before, nor where only comments and layout differ."""
    assert _read(source, source) == ()
    assert _read(f"# a comment\n\n{source}\n# another\n", source) == ()


@given(modules())
def test_renamed_locals_never_ask_for_a_person(source: str) -> None:
    """A name inside of a function is nobody's business."""
    assert _codes(_read(source.replace("total", "summed").replace("inner", "within"), source)) == set()


def test_a_class_that_a_table_makes_pass_for_another_asks_for_a_person() -> None:
    """In the body of a class it is read; among the arguments of `type` nobody looks for it."""
    new = b'Odd = type("Odd", (OSError,), {"__class__": ValueError})\n'
    found = read_conduct([SourceChange("shop.py", b"", new, is_test=False)], {})
    assert [(finding.code, finding.parks) for finding in found if finding.code == "conduct-compares"] == [
        ("conduct-compares", True)
    ]
