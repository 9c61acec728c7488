"""What pytest is made of at the start of a run, to notice what is exchanged later. Sent as text, before `witness`."""

from __future__ import annotations

import operator
import sys
from typing import Any

WATCHED = (
    "builtins", "pytest", "unittest.case", "unittest.suite", "_pytest.runner", "_pytest.reports", "_pytest.main",
    "_pytest.nodes", "_pytest.python", "_pytest.python_api", "_pytest.raises", "_pytest.unittest", "_pytest.skipping",
    "_pytest.outcomes", "_pytest.terminal", "_pytest.junitxml", "_pytest.config", "_pytest.assertion",
    "_pytest.assertion.rewrite", "_pytest.assertion.util", "_pytest._code.code", "_pytest.stash",
)  # fmt: skip
"""Modules in which nothing may change while tests run; all of pluggy too."""
IS = operator.is_
CODE = operator.attrgetter("__code__")


class Space:
    """The names of a module or class with what they meant. A look costs microseconds while nothing has changed."""

    def __init__(self, label: str, names: Any, *, closed: bool) -> None:
        self._label = label
        self._names = names
        self._closed = closed
        self._parts = {key: value for key, value in names.items() if _acts(value)}
        self._functions = [value for value in self._parts.values() if hasattr(value, "__code__")]
        self._codes = [value.__code__ for value in self._functions]
        self._seen = list(names.values())

    def changed(self) -> list[str]:
        """What is no longer what it was; in a closed space also what is new there."""
        found: list[str] = []
        if len(self._names) != len(self._seen) or not all(map(IS, self._names.values(), self._seen)):
            self._seen = list(self._names.values())
            found += [key for key, value in self._parts.items() if self._names.get(key) is not value]
            if self._closed:
                found += [key for key, value in self._names.items() if key not in self._parts and _acts(value)]
        if not all(map(IS, map(CODE, self._functions), self._codes)):
            pairs = zip(self._functions, self._codes)  # noqa: B905 - Python 3.8 has no strict
            found += [function.__name__ for function, code in pairs if function.__code__ is not code]
        return [f"{self._label}.{key}" for key in found]


class Internals:
    """What pytest, pluggy and unittest were made of at the start, to notice what was exchanged later."""

    def __init__(self) -> None:
        names = (*WATCHED, *sorted(name for name in sys.modules if name.split(".")[0] == "pluggy"))
        self._modules = {name: sys.modules[name] for name in names if name in sys.modules}
        self._spaces: list[Space] = []
        for name, module in self._modules.items():
            self._spaces.append(Space(name, vars(module), closed=False))
            for key, value in list(vars(module).items()):
                if isinstance(value, type) and value.__module__ == name and name != "builtins":
                    self._spaces.append(Space(f"{name}.{key}", vars(value), closed=True))

    def changed(self) -> list[str]:
        """Names of what is no longer what it was since the last look."""
        found = [name for name, module in self._modules.items() if sys.modules.get(name) is not module]
        for space in self._spaces:
            found += space.changed()
        return found


def _acts(value: Any) -> bool:
    return callable(value) or isinstance(value, (staticmethod, classmethod, property))
