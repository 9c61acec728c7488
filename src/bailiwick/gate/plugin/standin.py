"""What a test file sees as `pytest` where no test tool is imported: the few things that most tests use; sent as text.

Whatever is not here can't be used so: the test is left out, and nothing is said about it.
"""

from __future__ import annotations

import decimal
import importlib
import os
import re
import sys
import types
import warnings
from typing import Any

ABSENT = object()


class LeftOut(BaseException):
    """A test that can't be run without its tool."""


class Info:
    """What was raised."""

    value: Any = None
    type: Any = None

    def match(self, pattern: str) -> bool:
        """Whether its text has this in it."""
        assert re.search(pattern, str(self.value)), f"{pattern!r} is not in {self.value!s}"  # noqa: S101 - it stands for a test
        return True


class Raises:
    """`pytest.raises` as a context."""

    def __init__(self, kinds: Any, *args: Any, match: Any = None, **more: Any) -> None:
        if args or more:
            raise LeftOut("raises with more arguments")
        self._kinds = kinds
        self._match = match
        self._info = Info()

    def __enter__(self) -> Info:
        """It begins."""
        return self._info

    def __exit__(self, kind: type[BaseException] | None, value: object, _: object) -> bool:
        """What was raised is wanted, or it is not."""
        if kind is None:
            raise AssertionError(f"nothing was raised: {self._kinds!r}")
        if not issubclass(kind, self._kinds):
            return False
        self._info.type, self._info.value = kind, value
        return self._match is None or self._info.match(self._match)


class Warns(warnings.catch_warnings):
    """`pytest.warns` as a context."""

    def __init__(self, kinds: Any = Warning, *args: Any, match: Any = None, **more: Any) -> None:
        if args or more:
            raise LeftOut("warns with more arguments")
        super().__init__(record=True)
        self._kinds = kinds
        self._match = match

    def __enter__(self) -> Any:
        """It begins: every warning counts."""
        self._told: Any = super().__enter__()
        warnings.simplefilter("always")
        return self._told

    def __exit__(
        self,
        kind: type[BaseException] | None = None,
        value: BaseException | None = None,
        place: types.TracebackType | None = None,
    ) -> None:
        """One of the wanted kind was there."""
        super().__exit__(kind, value, place)
        wanted = [one for one in self._told if issubclass(one.category, self._kinds)]
        found = [one for one in wanted if self._match is None or re.search(self._match, str(one.message))]
        if kind is None and not found:
            raise AssertionError(f"no such warning: {self._kinds!r}")


class Approx:
    """`pytest.approx` for numbers, and for lists, tuples and dicts of them."""

    __hash__ = None  # type: ignore[assignment]  # as the real one

    def __init__(self, expected: Any, rel: Any = None, abs: Any = None, **more: Any) -> None:  # noqa: A002 - pytest's own name
        if more or not isinstance(expected, (int, float, decimal.Decimal, list, tuple, dict)):
            raise LeftOut("approx of something else than numbers")
        self._expected, self._rel, self._abs = expected, rel, abs

    def __eq__(self, other: object) -> Any:
        """Whether it is near."""
        return self._near(self._expected, other)

    def __ne__(self, other: object) -> Any:
        """Whether it is not."""
        return not self._near(self._expected, other)

    def _near(self, expected: Any, other: Any) -> bool:
        if isinstance(expected, dict):
            keys = set(expected)
            return set(other) == keys and all(self._near(expected[key], other[key]) for key in keys)
        if isinstance(expected, (list, tuple)):
            return len(other) == len(expected) and all(map(self._near, expected, other))
        if isinstance(expected, bool) or expected == other or not isinstance(expected, (int, float, decimal.Decimal)):
            return bool(expected == other)
        exact = type(expected) is decimal.Decimal
        rel, low = (decimal.Decimal("1e-6"), decimal.Decimal("1e-12")) if exact else (1e-6, 1e-12)
        given: Any = 0 if self._abs is None else self._abs
        relative: Any = rel if self._rel is None and self._abs is None else self._rel or 0
        return bool(abs(expected - other) <= max(relative * abs(expected), given or low))


class Patch:
    """`monkeypatch`."""

    def __init__(self) -> None:
        self._undo: list[Any] = []

    def setattr(self, target: Any, name: Any, value: Any = ABSENT, raising: bool = True) -> None:
        """Another value for an attribute."""
        if value is ABSENT:
            module, _, last = str(target).rpartition(".")
            target, name, value = importlib.import_module(module), last, name
        was = vars(target).get(name, ABSENT) if isinstance(target, type) else getattr(target, name, ABSENT)
        if was is ABSENT and raising and not hasattr(target, name):
            raise AttributeError(name)
        self._undo.append((lambda: delattr(target, name)) if was is ABSENT else (lambda: setattr(target, name, was)))
        setattr(target, name, value)

    def setitem(self, names: Any, key: Any, value: Any) -> None:
        """Another value in a dict."""
        was = names.get(key, ABSENT)
        self._undo.append((lambda: names.pop(key, None)) if was is ABSENT else (lambda: names.__setitem__(key, was)))
        names[key] = value

    def delitem(self, names: Any, key: Any, raising: bool = True) -> None:
        """A dict without a key."""
        if key not in names:
            if raising:
                raise KeyError(key)
            return
        was = names.pop(key)
        self._undo.append(lambda: names.__setitem__(key, was))

    def setenv(self, name: str, value: Any) -> None:
        """A variable of the environment."""
        self.setitem(os.environ, name, str(value))

    def delenv(self, name: str, raising: bool = True) -> None:
        """The environment without one."""
        self.delitem(os.environ, name, raising)

    def chdir(self, path: Any) -> None:
        """Another working directory."""
        was = os.getcwd()  # noqa: PTH109 - also where pathlib is patched
        self._undo.append(lambda: os.chdir(was))
        os.chdir(path)

    def __getattr__(self, name: str) -> Any:
        """The rest of it."""
        raise LeftOut(f"monkeypatch.{name}")

    def undo(self) -> None:
        """All as it was."""
        while self._undo:
            self._undo.pop()()


class StandinMarks:
    """`pytest.mark`: only parameters say something here."""

    def __getattr__(self, name: str) -> Any:
        """A mark by its name."""
        if name in ("xfail", "filterwarnings", "asyncio", "anyio", "trio"):
            raise LeftOut(f"the mark {name}")
        return _parametrize if name == "parametrize" else _mark


def _mark(*args: Any, **_: Any) -> Any:
    return args[0] if len(args) == 1 and (isinstance(args[0], (type, types.FunctionType))) else lambda thing: thing


def _parametrize(names: Any, values: Any, *args: Any, **more: Any) -> Any:
    if args or more.pop("indirect", False):
        raise LeftOut("parameters that are fixtures")
    listed = [name.strip() for name in names.split(",") if name.strip()] if isinstance(names, str) else list(names)
    rows = list(values)

    def add(thing: Any) -> Any:
        if isinstance(thing, type):
            raise LeftOut("parameters of a class")
        thing.given = [*getattr(thing, "given", ()), (listed, rows)]
        return thing

    return add


class Param(tuple):  # type: ignore[type-arg]  # of anything
    """`pytest.param`."""

    __slots__ = ()


def _param(*values: Any, marks: Any = (), **_: Any) -> Param:
    if marks:
        raise LeftOut("parameters with marks")
    return Param(values)


def rows_of(function: Any) -> list[dict[str, Any]]:
    """All arguments by name with which a function is to be called."""
    found: list[dict[str, Any]] = [{}]
    for names, rows in getattr(function, "given", ()):
        made = []
        for row in rows:
            values = row if len(names) > 1 or isinstance(row, Param) else (row,)
            made.append(dict(zip(names, values)))  # noqa: B905 - Python 3.8 has no strict
        found = [{**one, **other} for one in found for other in made]
    return found


def _fail(reason: str = "", **_: Any) -> None:
    raise AssertionError(reason)


def _left_out(*_: Any, **__: Any) -> Any:
    raise LeftOut("it is skipped, or it asks for a fixture")


def _fixture(*args: Any, **_: Any) -> Any:
    return _left_out if args and callable(args[0]) else lambda _function: _left_out


class _Unknown(type):
    def __getitem__(cls, _: Any) -> Any:
        return cls

    def __call__(cls, *_: Any, **__: Any) -> Any:
        raise LeftOut(cls.__name__)


class StandIn(types.ModuleType):
    """The module. Names of its classes may be written down as types, and nothing more."""

    def __init__(self) -> None:
        super().__init__("standin")
        self.raises, self.warns, self.approx, self.param = Raises, Warns, Approx, _param
        self.mark, self.fixture, self.fail = StandinMarks(), _fixture, _fail
        self.skip = self.xfail = self.exit = _left_out

    def importorskip(self, name: str, **_: Any) -> Any:
        """A module."""
        importlib.import_module(name)
        return sys.modules[name]

    def __getattr__(self, name: str) -> Any:
        """Anything else."""
        if name[:1].isupper():
            return _Unknown(name, (), {})
        if name.startswith("__"):
            raise AttributeError(name)
        raise LeftOut(f"pytest.{name}")
