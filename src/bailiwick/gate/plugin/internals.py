"""What pytest and the libraries that decide are made of at the start of a run, to notice what is exchanged later.

Sent as text, before `witness`. A look at the core costs about a millisecond and is taken before each test, into its
functions only where somebody has set a part of a function; all of it is looked at after collection and at the end.
"""

from __future__ import annotations

import csv
import gc
import json
import logging
import operator
import re
import signal
import sys
import threading
import types
from typing import Any

CORE = (
    "builtins", "pytest", "unittest.case", "unittest.suite", "unittest.mock", "_pytest.runner", "_pytest.reports",
    "_pytest.main", "_pytest.nodes", "_pytest.python", "_pytest.python_api", "_pytest.raises", "_pytest.unittest",
    "_pytest.skipping", "_pytest.outcomes", "_pytest.terminal", "_pytest.junitxml", "_pytest.config",
    "_pytest.assertion", "_pytest.assertion.rewrite", "_pytest.assertion.util", "_pytest._code.code",
    "_pytest.stash", "_pytest.recwarn", "_pytest.fixtures", "_pytest.doctest", "operator", "_operator", "math",
    "re", "json", "functools",
)  # fmt: skip
"""Modules that are looked at before each test; all of pluggy too."""
DECIDING = (
    "_abc", "_ast", "_collections_abc", "_datetime", "_decimal", "_functools", "_io", "_json", "_pydecimal",
    "_pydatetime", "_sre", "_struct", "_weakref", "abc", "ast", "asyncio.runners", "base64", "bisect", "cmath",
    "codecs", "collections", "contextlib", "copy", "csv", "dataclasses", "datetime", "decimal", "difflib", "dis",
    "doctest", "enum", "fnmatch", "fractions", "glob", "hashlib", "heapq", "importlib", "importlib._bootstrap",
    "importlib._bootstrap_external", "importlib.util", "inspect", "io", "itertools", "json.decoder", "json.encoder",
    "json.scanner", "linecache", "logging", "numbers", "os", "pathlib", "pathlib._local", "posixpath", "pprint",
    "random", "re._compiler", "re._parser", "reprlib", "secrets", "shutil", "sre_compile", "sre_parse",
    "statistics", "string", "struct", "subprocess", "sys", "textwrap", "time", "tokenize", "traceback", "types",
    "typing", "unittest", "unittest.async_case", "unittest.loader", "unittest.result", "unittest.runner",
    "unittest.signals", "unittest.util", "uuid", "warnings", "weakref", "numpy", "numpy.testing",
    "numpy.testing._private.utils", "numpy.core.numeric", "numpy._core.numeric", "pandas.testing",
    "pandas._testing.asserters", "hypothesis", "hypothesis.core",
)  # fmt: skip
"""Modules whose functions, constants and defaults decide what a test sees; looked at now and then."""
VOLATILE = frozenset({
    "_", "last_type", "last_value", "last_traceback", "last_exc", "ps1", "ps2", "argv", "path", "modules", "stdin",
    "stdout", "stderr", "tracebacklimit", "dont_write_bytecode", "lastResort", "showwarning", "_showwarnmsg_impl",
    "_showwarning_orig", "ENCODING",
})  # fmt: skip
"""Names that change by themselves or are exchanged by pytest's own plugins for the time of a test."""
PLAIN = (int, float, str, bytes, bool, tuple, frozenset, type(None))
IS = operator.is_
REFERENTS = gc.get_referents
PARTS = ("__code__", "__defaults__", "__kwdefaults__")
SETTING = "setting: "
"""Stands before what honest code may set as well, though hardly while it is tested."""
DIALECT = (
    "delimiter",
    "doublequote",
    "escapechar",
    "lineterminator",
    "quotechar",
    "quoting",
    "skipinitialspace",
    "strict",
)
SIGNALS = ("SIGALRM", "SIGTERM", "SIGUSR1", "SIGUSR2", "SIGPROF", "SIGVTALRM", "SIGABRT", "SIGHUP")


def _parts(function: Any) -> list[Any]:
    return [function.__code__, function.__defaults__, function.__kwdefaults__]


class Space:
    """The names of a module or class with what they meant. A look is fast while nothing has changed."""

    def __init__(self, label: str, names: Any, *, closed: bool) -> None:
        self._label = label
        self._names = names
        self._closed = closed
        self._kept = {key: value for key, value in list(names.items()) if _counts(key, value)}
        plain = [_function_of(value) for value in self._kept.values()]
        self._functions = [value for value in plain if value is not None]
        self._holding = REFERENTS(*self._functions)
        self._made_of = [part for function in self._functions for part in _parts(function)]
        self._seen = list(names.values())

    def changed(self, *, inside: bool) -> list[str]:
        """What is no longer what it was; in a closed space also what is new there. `inside`: functions too."""
        found: list[str] = []
        if len(self._names) != len(self._seen) or not all(map(IS, self._names.values(), self._seen)):
            names = dict(self._names)
            self._seen = list(self._names.values())
            found += [key for key, value in self._kept.items() if not _same(names.get(key), value)]
            if self._closed:
                found += [key for key, value in names.items() if key not in self._kept and _acts(value)]
        if inside:
            found += self._rewritten()
        return [f"{self._label}.{key}" for key in found]

    def _rewritten(self) -> list[str]:
        """Parts of functions that are no longer what they were.

        Python tells of each time that the code of a function is read, which takes long for all of them. So they are
        read only where a function holds something else than before, if only a note that somebody put on it.
        """
        holding = REFERENTS(*self._functions)
        if len(holding) == len(self._holding) and all(map(IS, holding, self._holding)):
            return []
        found = []
        now = [part for function in self._functions for part in _parts(function)]
        for index, (part, was) in enumerate(zip(now, self._made_of)):  # noqa: B905 - Python 3.8 has no strict
            if part is not was:
                found.append(f"{self._functions[index // 3].__name__}.{PARTS[index % 3]}")
        if not found:
            self._holding = holding
        return found


class Modules:
    """Some modules with their classes, as they were when they were first seen."""

    def __init__(self, names: Any) -> None:
        self._names = tuple(names)
        self._modules: dict[str, Any] = {}
        self._spaces: list[Space] = []
        self.add()

    def add(self) -> None:
        """Take in those that have been imported since."""
        for name in self._names:
            module = sys.modules.get(name)
            if name in self._modules or not isinstance(module, types.ModuleType):
                continue
            self._modules[name] = module
            self._spaces.append(Space(name, vars(module), closed=False))
            for key, value in list(vars(module).items()):
                if isinstance(value, type) and value.__module__ == name and name != "builtins":
                    self._spaces.append(Space(f"{name}.{key}", vars(value), closed=True))

    def changed(self, *, inside: bool) -> list[str]:
        """Names of what is no longer what it was since the last look."""
        found = [name for name, module in self._modules.items() if sys.modules.get(name) is not module]
        for space in self._spaces:
            found += space.changed(inside=inside)
        return found


class Switches:
    """Tracing, profiling, import hooks and signal handlers: what Python lets anybody set for the whole process."""

    def __init__(self) -> None:
        self._was = self._now()

    def _now(self) -> dict[str, Any]:
        monitoring: Any = getattr(sys, "monitoring", None)
        told: dict[str, Any] = {
            "sys.settrace": (sys.gettrace(),),
            "sys.setprofile": (sys.getprofile(),),
            "threading.settrace": (getattr(threading, "_trace_hook", None),),
            "threading.setprofile": (getattr(threading, "_profile_hook", None),),
            "sys.meta_path": tuple(sys.meta_path),
            "sys.path_hooks": tuple(sys.path_hooks),
            "sys.excepthook": (sys.excepthook,),
            "sys.displayhook": (sys.displayhook,),
        }
        if monitoring is not None:
            told["sys.monitoring"] = tuple(monitoring.get_tool(number) for number in range(6))
        for name in SIGNALS:
            number: Any = getattr(signal, name, None)
            if number is not None:
                told[f"signal.{name}"] = (signal.getsignal(number),)
        return told

    def changed(self) -> list[str]:
        """The names of those that are set in another way than at the start, as long as nobody put them back."""
        now = self._now()
        return [
            name for name, was in self._was.items() if len(now[name]) != len(was) or not all(map(_same, now[name], was))
        ]

    def settle(self) -> None:
        """From now on this is how they have to be."""
        self._was = self._now()


class Settings:
    """What libraries keep for the whole process in objects and tables, of which a module shows only the name."""

    def __init__(self) -> None:
        self._was = self._now()

    def _now(self) -> dict[str, Any]:
        told: dict[str, Any] = {
            "json decoder": _held(json, "_default_decoder"),
            "json encoder": _held(json, "_default_encoder"),
            "logging.disable": (logging.root.manager.disable,),
        }
        for name in ("excel", "excel-tab", "unix"):
            told[f"csv dialect {name}"] = _dialect(name)
        decimal: Any = sys.modules.get("decimal")
        if decimal is not None:
            context = decimal.getcontext()
            told["decimal context"] = (context.prec, context.rounding, context.Emin, context.Emax, context.clamp)
        return told

    def changed(self) -> list[str]:
        """Those that are no longer what they were; a decimal context counts from its first look on."""
        now = self._now()
        found = [
            name
            for name, value in now.items()
            if len(value) != len(self._was.setdefault(name, value)) or not all(map(_same, value, self._was[name]))
        ]
        return [f"{SETTING}{name}" for name in (*found, *_foreign_patterns())]


class Internals:
    """All of it together. `changed` looks at what decides most, `all_changed` at everything."""

    def __init__(self) -> None:
        pluggy = sorted(name for name in sys.modules if name.split(".")[0] == "pluggy")
        self._core = Modules((*CORE, *pluggy))
        self._rest = Modules(DECIDING)
        self.switches = Switches()
        self._settings = Settings()

    def add(self) -> None:
        """Take in modules that were imported by plugins: nothing of the tree has been imported yet."""
        self._core.add()
        self._rest.add()

    def changed(self, *, inside: bool = True) -> list[str]:
        """What was exchanged in the core since the last look; `inside`: in functions too."""
        return [*self._core.changed(inside=inside), *self.switches.changed(), *self._settings.changed()]

    def all_changed(self) -> list[str]:
        """What was exchanged anywhere since the last look at it."""
        return [*self.changed(), *self._rest.changed(inside=True)]


def own_defaults(frame: Any, name: str) -> dict[str, Any]:
    """The defaults by argument of the function that a frame runs, found by its qualified name; none where it is not."""
    found: Any = frame.f_globals
    for part in name.split("."):
        names = found if isinstance(found, dict) else vars(found) if isinstance(found, type) else {}
        found = getattr(names.get(part), "__func__", names.get(part))
    code: Any = frame.f_code
    is_found = getattr(found, "__code__", None) is code
    if not is_found:
        return {}
    known = code.co_varnames[: code.co_argcount]
    given = found.__defaults__ or ()
    return {**dict(zip(known[len(known) - len(given) :], given)), **(found.__kwdefaults__ or {})}  # noqa: B905 - 3.8


def _held(module: Any, name: str) -> Any:
    """An object that a module keeps, and what it is made of."""
    value = getattr(module, name, None)
    return (value, *(part for _, part in sorted(getattr(value, "__dict__", {}).items())))


def _dialect(name: str) -> Any:
    try:
        dialect: Any = csv.get_dialect(name)
    except csv.Error:
        return ()
    return tuple(getattr(dialect, part) for part in DIALECT)


def _foreign_patterns() -> list[str]:
    """Whether the cache of regular expressions gives for a text another pattern than that of the text."""
    for name in ("_cache", "_cache2"):
        for key, value in list(getattr(re, name, {}).items()):
            if type(key) is tuple and len(key) > 1 and getattr(value, "pattern", key[1]) != key[1]:
                return ["re cache"]
    return []


def _function_of(value: Any) -> Any:
    inner = getattr(value, "__func__", value) if isinstance(value, (staticmethod, classmethod)) else value
    return inner if isinstance(inner, types.FunctionType) else None


def _acts(value: Any) -> bool:
    return callable(value) or isinstance(value, (staticmethod, classmethod, property))


def _counts(key: str, value: Any) -> bool:
    """Whether it matters what a name means: functions and classes always, constants where they are public."""
    if key in VOLATILE:
        return False
    return _acts(value) or (type(value) in PLAIN and not key.startswith("_") and key not in ("tempdir", "inited"))


def _same(now: Any, was: Any) -> bool:
    return now is was or (type(now) in PLAIN and type(now) is type(was) and now == was)
