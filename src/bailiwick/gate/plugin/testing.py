"""What is done to each test while it runs, and how tests were when they were collected; sent as text."""

from __future__ import annotations

import inspect
import os
import signal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bailiwick.gate.plugin.internals import PLAIN  # noqa: TC004 - its text is sent before this one


class LimitReached(BaseException):
    """A test that must fail goes on instead; only where a limit was given."""


class Limit:
    """Ends a test after so many seconds, and whatever it does after that each second again; None: never."""

    def __init__(self, seconds: float | None) -> None:
        self.seconds = seconds
        self._set = signal.setitimer
        if seconds is not None:
            signal.signal(signal.SIGALRM, self._ring)

    def _ring(self, *_: object) -> None:
        raise LimitReached(f"more than {self.seconds} s")

    def start(self) -> None:
        """From now on."""
        if self.seconds is not None:
            self._set(signal.ITIMER_REAL, self.seconds, 1.0)

    def stop(self) -> None:
        """No longer."""
        if self.seconds is not None:
            self._set(signal.ITIMER_REAL, 0.0)


class Absence:
    """What changed functions call in a run in which they must not work: during a test it raises."""

    def __init__(self, token: str, failure: Any) -> None:
        self._token = token
        self._failure = failure
        self.active = False
        self.hits: set[int] = set()

    def __call__(self, number: int) -> None:
        """A changed function begins."""
        if self.active:
            self.hits.add(number)
            raise self._failure("this function was taken away to see which tests notice", pytrace=False)

    def switch(self, *, on: bool) -> None:
        """In a test, also in the processes that it starts, or between tests."""
        self.active = on
        if on:
            os.environ[self._token] = "1"
        else:
            os.environ.pop(self._token, None)


DATA_LEVELS = 5
PARTS_KEPT = 2000


def parts_of(value: Any, levels: int = DATA_LEVELS) -> Any:
    """What a list, dict or set holds, to be compared later; other things stand for themselves."""
    if not levels or type(value) not in (list, dict, set) or len(value) > PARTS_KEPT:
        return value if type(value) in PLAIN and type(value) not in (tuple, frozenset) else id(value)
    if type(value) is dict:
        return {id(key) if type(key) not in PLAIN else key: parts_of(one, levels - 1) for key, one in value.items()}
    if type(value) is set:
        return frozenset(map(id, value)) if any(type(one) not in PLAIN for one in value) else frozenset(value)
    return [parts_of(one, levels - 1) for one in value]


class Tests:
    """The tests as they were collected: code, defaults, parameters, and the constants of their modules."""

    def __init__(self, code: Any) -> None:
        self._code = code
        self._made: dict[str, tuple[Any, ...]] = {}
        self._constants: dict[int, dict[str, Any]] = {}
        self._data: dict[str, dict[str, Any]] = {}

    def keep(self, items: Any) -> list[str]:
        """Remember how they are; names what is strange already."""
        found = []
        for item in items:
            self._made[item.nodeid] = _made_of(item)
            if self._code.is_strange(code_of(item)):
                found.append(f"test {item.nodeid}")
            module = getattr(item, "module", None)
            if module is not None and id(module) not in self._constants:
                kept = {key: value for key, value in vars(module).items() if type(value) in PLAIN}
                self._constants[id(module)] = kept
            self._data[item.nodeid] = {name: (value, parts_of(value)) for name, value in _data_of(item)}
        return found

    def changed(self, item: Any) -> list[str]:
        """What is no longer as it was, before a test begins."""
        found = []
        kept = self._made.get(item.nodeid)
        now = _made_of(item)
        if kept is not None and (len(now) != len(kept) or any(a is not b for a, b in zip(now, kept))):  # noqa: B905
            found.append(f"test {item.nodeid}")
        module = getattr(item, "module", None)
        if module is not None:
            names = vars(module)
            was = self._constants.get(id(module), {})
            found += [f"test constant {item.nodeid.partition('::')[0]}:{k}" for k in was if names.get(k) is not was[k]]
        for name, (value, parts) in self._data.get(item.nodeid, {}).items():
            if parts_of(value) != parts:
                found.append(f"test data {name} of {item.nodeid}")
        return found


def code_of(item: Any) -> Any:
    """The code of the function that a person wrote as this test; None for a test that is none."""
    function: Any = getattr(item, "function", None) or getattr(item, "obj", None)
    inner = getattr(getattr(function, "hypothesis", None), "inner_test", None)
    try:
        function = inspect.unwrap(inner or function)
    except (TypeError, ValueError):
        return None
    return getattr(getattr(function, "__func__", function), "__code__", None)


def _data_of(item: Any) -> Any:
    """Lists, dicts and sets that a test compares with or hands over: of its module, and its parameters."""
    code = code_of(item)
    names = vars(getattr(item, "module", None) or object)
    for name in code.co_names if code is not None else ():
        if type(names.get(name)) in (list, dict, set) and names[name]:
            yield name, names[name]
    for name, value in getattr(getattr(item, "callspec", None), "params", {}).items():
        if type(value) in (list, dict, set) and value:
            yield name, value


def _made_of(item: Any) -> tuple[Any, ...]:
    function: Any = getattr(item, "function", None)
    parameters = getattr(getattr(item, "callspec", None), "params", {})
    made = (code_of(item), getattr(function, "__defaults__", None), getattr(function, "__kwdefaults__", None))
    return (*made, *parameters.values())
