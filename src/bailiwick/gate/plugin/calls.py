"""Records calls of changed functions while tests run, and makes them again in a plain process; sent as text.

Values travel as text, never pickled: exact builtins, a few types of the standard library, and objects of the tree whose
attributes are of these kinds. A call with anything else is not recorded.
"""

from __future__ import annotations

import datetime as dt
import decimal
import fractions
import importlib
import inspect
import opcode
import os
import pathlib
import signal
import sys
import threading
import time
import uuid
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bailiwick.gate.plugin.nearby import near  # noqa: TC004 - its text is sent before this one
    from bailiwick.gate.plugin.wire import hide_input, open_wire  # noqa: TC004 - as above

KEPT = 12
"""Different calls of one function that are kept."""
SEEN = 400
"""Calls of one function after which nobody looks any more."""
LONGEST = 4000
LEVELS = 7
SECONDS = 5.0
ASKED_ELSEWHERE = 3
"""Calls of one function that are also made in other surroundings."""
ZONE = "ELSE-05:30"
LATER = 400 * 86_400
CLOCKS = ("time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns")
GENERATES = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
RETURNS = tuple(opcode.opmap[name] for name in ("RETURN_VALUE", "RETURN_CONST") if name in opcode.opmap)
TEXTS: dict[str, tuple[type, Any, Any]] = {
    "int": (int, str, int),
    "float": (float, float.hex, float.fromhex),
    "bytes": (bytes, bytes.hex, bytes.fromhex),
    "Decimal": (decimal.Decimal, str, decimal.Decimal),
    "Fraction": (fractions.Fraction, str, fractions.Fraction),
    "date": (dt.date, dt.date.isoformat, dt.date.fromisoformat),
    "datetime": (dt.datetime, dt.datetime.isoformat, dt.datetime.fromisoformat),
    "UUID": (uuid.UUID, str, uuid.UUID),
    "Path": (type(pathlib.Path()), str, pathlib.Path),
}
"""Types that are written as a text: how, and how back."""
LISTS: dict[str, type] = {"list": list, "tuple": tuple, "set": set, "frozenset": frozenset}


class Unwritable(Exception):
    """A value that can't be written as text."""


def freeze(value: Any, levels: int = LEVELS) -> list[Any]:
    """A value as a document; raises `Unwritable`."""
    kind = type(value)
    if value is None or kind in (bool, str):
        return ["plain", value]
    if not levels:
        raise Unwritable
    for name, (exact, write, _) in TEXTS.items():
        if kind is exact:
            return [name, write(value)]
    if kind is dict:
        return ["dict", [[freeze(key, levels - 1), freeze(one, levels - 1)] for key, one in value.items()]]
    if kind in LISTS.values():
        parts = [freeze(one, levels - 1) for one in value]
        return [kind.__name__, sorted(parts, key=repr) if kind in (set, frozenset) else parts]
    if isinstance(value, type):
        return ["class", value.__module__, value.__qualname__]
    return _freeze_object(value, levels)


def _freeze_object(value: Any, levels: int) -> list[Any]:
    for base in (int, float, str):
        if isinstance(value, base):
            kind = type(value)
            return ["subclass", kind.__module__, kind.__qualname__, freeze(base(value), levels - 1)]
    names = getattr(value, "__dict__", None)
    kind = type(value)
    module = sys.modules.get(kind.__module__)
    if type(names) is not dict or getattr(module, "__file__", None) is None or kind.__basicsize__ > 48:
        raise Unwritable
    state = [[name, freeze(one, levels - 1)] for name, one in sorted(names.items())]
    return ["object", kind.__module__, kind.__qualname__, state]


def thaw(document: list[Any]) -> Any:
    """The value that a document says; raises `Unwritable` for one that can only be compared."""
    name, *rest = document
    if name == "plain":
        return rest[0]
    if name in TEXTS:
        return TEXTS[name][2](rest[0])
    if name in LISTS:
        return LISTS[name](thaw(one) for one in rest[0])
    if name == "dict":
        return {thaw(key): thaw(one) for key, one in rest[0]}
    if name == "class":
        return find(rest[0], rest[1])
    if name == "object":
        kind = find(rest[0], rest[1])
        made = object.__new__(kind)
        made.__dict__.update({key: thaw(one) for key, one in rest[2]})
        return made
    raise Unwritable


def find(module: str, qualname: str) -> Any:
    """Something by the name of its module and its own."""
    found = importlib.import_module(module)
    for part in qualname.split("."):
        found = getattr(found, part)
    return found


class Recorder:
    """Notes arguments and results of some functions. `wanted`: path, first line, qualified name."""

    def __init__(self, relative: Any, wanted: Any) -> None:
        self._relative = relative
        self._wanted = {(path, line): name for path, line, name in wanted}
        self._codes: dict[int, str] = {}
        self._open: dict[int, Any] = {}
        self._seen: dict[str, int] = {}
        self.calls: dict[str, dict[str, Any]] = {}
        self._profile = sys.setprofile

    def start(self) -> None:
        """A test begins."""
        if self._wanted and not all(self._seen.get(name, 0) >= SEEN for name in self._wanted.values()):
            self._open.clear()
            self._profile(self._hear)

    def stop(self) -> None:
        """It is over."""
        self._profile(None)

    def _hear(self, frame: Any, event: str, value: Any) -> None:
        if event not in ("call", "return"):
            return
        code = frame.f_code
        name = self._codes.get(id(code))
        if name is None:
            known = self._wanted.get((self._relative(code.co_filename), code.co_firstlineno), "")
            name = self._codes[id(code)] = "" if code.co_flags & GENERATES else known
        if not name:
            return
        try:
            if event == "call":
                self._begin(frame, name)
            else:
                self._end(frame, name, value)
        except Exception:  # noqa: BLE001 - what can't be written is not recorded
            self._open.pop(id(frame), None)

    def _begin(self, frame: Any, name: str) -> None:
        self._seen[name] = self._seen.get(name, 0) + 1
        if self._seen[name] > SEEN:
            return
        code, names = frame.f_code, frame.f_locals
        count = code.co_argcount
        args = [freeze(names[one]) for one in code.co_varnames[:count]]
        last = count + code.co_kwonlyargcount
        named = {one: freeze(names[one]) for one in code.co_varnames[count:last]}
        if code.co_flags & inspect.CO_VARARGS:
            args += [freeze(one) for one in names[code.co_varnames[last]]]
            last += 1
        if code.co_flags & inspect.CO_VARKEYWORDS:
            named.update({one: freeze(value) for one, value in names[code.co_varnames[last]].items()})
        self._open[id(frame)] = (frame.f_globals.get("__name__", ""), args, named)

    def _end(self, frame: Any, name: str, value: Any) -> None:
        begun = self._open.pop(id(frame), None)
        if begun is None:
            return
        returned = frame.f_code.co_code[frame.f_lasti] in RETURNS
        result = freeze(value) if returned else ["raises"]
        module, args, named = begun
        key = repr((name, args, named))
        kept = sum(1 for call in self.calls.values() if call["name"] == name)
        if key not in self.calls and kept < KEPT and len(key) < LONGEST and len(repr(result)) < LONGEST:
            self.calls[key] = {"module": module, "name": name, "args": args, "named": named, "result": result}


def _timed(function: Any, args: Any, named: Any) -> list[Any]:
    """What a call gives. Only the main thread can be interrupted; nobody waits longer for another."""
    if threading.current_thread() is not threading.main_thread():
        return _result_of(function, args, named)
    before = signal.signal(signal.SIGALRM, _ring)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        return _result_of(function, args, named)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _result_of(function: Any, args: Any, named: Any) -> list[Any]:
    try:
        return freeze(function(*args, **named))
    except Unwritable:
        return ["unwritable"]
    except BaseException as error:  # noqa: BLE001 - what it raises is its result
        return ["raises", type(error).__name__]


def repeat(call: dict[str, Any]) -> dict[str, Any]:
    """Make a recorded call again, twice, and with near arguments once each."""
    try:
        function = find(call["module"], call["name"])
        if inspect.ismethod(function) and call["args"]:
            function = function.__func__
    except BaseException as error:  # noqa: BLE001 - it can't be found
        return {"missing": f"{type(error).__name__}: {error}"[:300]}
    results, nearby = [], []
    for _ in range(2):
        try:
            args = [thaw(one) for one in call["args"]]
            named = {name: thaw(one) for name, one in call["named"].items()}
        except BaseException as error:  # noqa: BLE001 - as above
            return {"missing": f"{type(error).__name__}: {error}"[:300]}
        results.append(_timed(function, args, named))
    for index, one in enumerate(call["args"]):
        if one[0] in ("int", "float", "plain") and not (index == 0 and call["args"][0][0] == "object"):
            for other in near(thaw(one))[:2]:
                others = [thaw(part) for part in call["args"]]
                others[index] = other
                nearby.append(_timed(function, others, {name: thaw(part) for name, part in call["named"].items()}))
    return {"results": results, "near": nearby}


def install_clocks() -> Any:
    """Let the clocks of `time` be set ahead from now on; gives what does it, in seconds."""
    ahead = [0]

    def shifted(real: Any, scale: int) -> Any:
        return lambda: real() + ahead[0] * scale

    for name in CLOCKS:
        setattr(time, name, shifted(getattr(time, name), 10**9 if name.endswith("_ns") else 1))

    def set_ahead(seconds: int) -> None:
        ahead[0] = seconds

    return set_ahead


def elsewhere(call: dict[str, Any], set_ahead: Any) -> dict[str, Any]:
    """What a call gives in another thread, in another time zone and a year later; without those that can't be asked."""

    def ask() -> list[Any]:
        function = find(call["module"], call["name"])
        if inspect.ismethod(function) and call["args"]:
            function = function.__func__
        named = {name: thaw(one) for name, one in call["named"].items()}
        return _timed(function, [thaw(one) for one in call["args"]], named)

    found = {"thread": _in_thread(ask), "zone": _in_zone(ask)}
    set_ahead(LATER)
    try:
        found["later"] = ask()
    finally:
        set_ahead(0)
    return {where: result for where, result in found.items() if result not in (None, ["unwritable"])}


def _in_thread(ask: Any) -> Any:
    made: list[Any] = []
    thread = threading.Thread(target=lambda: made.append(ask()), daemon=True)
    thread.start()
    thread.join(SECONDS)
    return made[0] if made else None


def _in_zone(ask: Any) -> Any:
    before = os.environ.get("TZ")
    os.environ["TZ"] = ZONE
    time.tzset()
    try:
        return ask()
    finally:
        if before is None:
            del os.environ["TZ"]
        else:
            os.environ["TZ"] = before
        time.tzset()


def _ring(*_: object) -> None:
    raise TimeoutError


def replay_main(request: dict[str, Any]) -> None:
    """Make the calls in this process, in which nothing of a test tool was ever imported."""
    hide_input()
    send = open_wire(request["handle"], bytes.fromhex(request.pop("key")))
    root = os.path.realpath(os.getcwd())  # noqa: PTH109 - pathlib may be the product's own
    wanted = [root + path[1:] if path.startswith("@") else path for path in request["path"]]
    sys.path[:0] = [path for path in wanted if path not in sys.path]
    sys.argv = ["app"]
    send({"t": "start"})
    set_ahead = install_clocks()
    asked: dict[str, int] = {}
    for number, call in enumerate(request["calls"]):
        made = repeat(call)
        results = made.get("results", [])
        asked[call["name"]] = asked.get(call["name"], 0) + 1
        if results and results[0] == results[1] and asked[call["name"]] <= ASKED_ELSEWHERE:
            made["elsewhere"] = elsewhere(call, set_ahead)
        send({"t": "call", "number": number, **made})
    send({"t": "end", "code": 0})
