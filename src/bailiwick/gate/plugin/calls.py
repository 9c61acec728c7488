"""Records calls of changed functions while tests run, and makes them again in a plain process; sent as text.

Values travel as text, never pickled: exact builtins, a few types of the standard library, and objects of the tree whose
attributes are of these kinds. A call with anything else is not recorded.
"""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import fractions
import importlib
import inspect
import itertools
import json
import opcode
import os
import pathlib
import select
import signal
import sys
import threading
import time
import uuid
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bailiwick.gate.plugin.alone import Barrier, alone_main  # noqa: TC004 - its text is sent before this one
    from bailiwick.gate.plugin.internals import own_defaults  # noqa: TC004 - as above
    from bailiwick.gate.plugin.nearby import near  # noqa: TC004 - its text is sent before this one
    from bailiwick.gate.plugin.surroundings import in_surroundings, install_clocks  # noqa: TC004 - as above
    from bailiwick.gate.plugin.wire import hide_input, open_wire  # noqa: TC004 - as above

VARIED_KINDS = ("int", "float", "plain", "Decimal", "Fraction", "date", "datetime", "timedelta", "bytes")
KEPT = 12
"""Different calls of one function that are kept."""
SEEN = 400
"""Calls of one function after which nobody looks any more."""
LONGEST = 4000
LEVELS = 7
SECONDS = 5.0
ASKED_ELSEWHERE = 3
"""Calls of one function that are also made in other surroundings."""
YIELDED = 200
"""What a generator gives at most before it is left."""
DRIVEN = inspect.CO_GENERATOR | inspect.CO_COROUTINE
CHANGEABLE = ("list", "dict", "set", "object")
"""Kinds of arguments that a call may change."""
ENDLESS = ["raises", "TimeoutError"]
ALL_CALLS = 240.0
"""Seconds for all calls of one process."""
RETURNS = tuple(opcode.opmap[name] for name in ("RETURN_VALUE", "RETURN_CONST") if name in opcode.opmap)
YIELDS = tuple(opcode.opmap[name] for name in ("YIELD_VALUE", "YIELD_FROM", "SEND") if name in opcode.opmap)
TEXTS: dict[str, tuple[type, Any, Any]] = {
    "int": (int, str, int),
    "float": (float, float.hex, float.fromhex),
    "bytes": (bytes, bytes.hex, bytes.fromhex),
    "Decimal": (decimal.Decimal, str, decimal.Decimal),
    "Fraction": (fractions.Fraction, str, fractions.Fraction),
    "date": (dt.date, dt.date.isoformat, dt.date.fromisoformat),
    "datetime": (dt.datetime, dt.datetime.isoformat, dt.datetime.fromisoformat),
    "timedelta": (
        dt.timedelta,
        lambda t: f"{t.days} {t.seconds} {t.microseconds}",
        lambda t: dt.timedelta(*map(int, t.split())),
    ),
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
    kind = type(value)
    if isinstance(value, enum.Enum):
        return ["member", kind.__module__, kind.__qualname__, value.name]
    if isinstance(value, tuple) and hasattr(kind, "_fields"):
        return ["named", kind.__module__, kind.__qualname__, [freeze(one, levels - 1) for one in tuple(value)]]
    for base in (int, float, str):
        if isinstance(value, base):
            return ["subclass", kind.__module__, kind.__qualname__, freeze(base(value), levels - 1)]
    slots = _slots_of(kind)
    own = getattr(value, "__dict__", {})
    module = sys.modules.get(kind.__module__)
    plain = type(own) is dict and (slots or hasattr(value, "__dict__"))
    if not plain or getattr(module, "__file__", None) is None or kind.__basicsize__ > 48 + 8 * len(slots):
        raise Unwritable
    names = {**{name: getattr(value, name) for name in slots if hasattr(value, name)}, **own}
    state = [[name, freeze(one, levels - 1)] for name, one in sorted(names.items())]
    return ["object", kind.__module__, kind.__qualname__, state]


def _slots_of(kind: Any) -> list[str]:
    """The names that objects of a class keep without a dict."""
    found = []
    for one in kind.__mro__:
        slots = vars(one).get("__slots__", ())
        found += [slots] if isinstance(slots, str) else list(slots)
    return [name for name in found if name not in ("__dict__", "__weakref__")]


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
    if name in ("class", "member"):
        found = find(rest[0], rest[1])
        return found[rest[2]] if name == "member" else found
    if name == "object":
        return _thaw_object(find(rest[0], rest[1]), rest[2])
    if name == "named":
        return tuple.__new__(find(rest[0], rest[1]), [thaw(one) for one in rest[2]])
    raise Unwritable


def _thaw_object(kind: Any, state: Any) -> Any:
    made = object.__new__(kind)
    slots = _slots_of(kind)
    for key, one in state:
        if key in slots:
            object.__setattr__(made, key, thaw(one))
        else:
            made.__dict__[key] = thaw(one)
    return made


def find(module: str, qualname: str) -> Any:
    """Something by the name of its module and its own."""
    found = importlib.import_module(module)
    for part in qualname.split("."):
        found = getattr(found, part)
    return found


class Recorder:
    """Notes arguments and results of some functions. `wanted`: path, first line, qualified name."""

    def __init__(self, relative: Any, wanted: Any, auditor: Any) -> None:
        self._relative = relative
        self._auditor = auditor
        self._wanted = {(path, line): name for path, line, name in wanted}
        self._codes: dict[int, str] = {}
        self._open: dict[int, Any] = {}
        self._seen: dict[str, int] = {}
        self._kept: dict[str, int] = {}
        self.calls: dict[str, dict[str, Any]] = {}
        self._profile = sys.setprofile

    def start(self) -> None:
        """A test begins."""
        self._open.clear()
        if not self._has_enough():
            self._profile(self._hear)

    def stop(self) -> None:
        """It is over."""
        self._profile(None)

    def _has_enough(self) -> bool:
        """Whether no further call would be kept: to hear of every call makes a test several times slower."""
        return not self._open and all(
            self._seen.get(name, 0) >= SEEN or self._kept.get(name, 0) >= KEPT for name in self._wanted.values()
        )

    def _hear(self, frame: Any, event: str, value: Any) -> None:
        if event not in ("call", "return"):
            return
        auditor = self._auditor
        was, auditor.busy = auditor.busy, True  # that we look at a frame is nobody's act
        code = frame.f_code
        auditor.busy = was
        name = self._codes.get(id(code))
        if name is None:
            known = self._wanted.get((self._relative(code.co_filename), code.co_firstlineno), "")
            name = self._codes[id(code)] = "" if code.co_flags & inspect.CO_ASYNC_GENERATOR else known
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
        if id(frame) in self._open:  # a generator or coroutine goes on
            return
        self._seen[name] = self._seen.get(name, 0) + 1
        if self._seen[name] > SEEN:
            return
        code, names = frame.f_code, frame.f_locals
        count = code.co_argcount
        given = [names[one] for one in code.co_varnames[:count]]
        last = count + code.co_kwonlyargcount
        unset = own_defaults(frame, name) if not code.co_flags & inspect.CO_VARARGS else {}
        while count and names[code.co_varnames[count - 1]] is unset.get(code.co_varnames[count - 1], unset):
            count -= 1  # as if nobody had given it: what the base has may not know it
        wanted = [one for one in code.co_varnames[len(given) : last] if names[one] is not unset.get(one, unset)]
        args = [freeze(one) for one in given[:count]]
        named = {one: freeze(names[one]) for one in wanted}
        if code.co_flags & inspect.CO_VARARGS:
            args += [freeze(one) for one in names[code.co_varnames[last]]]
            last += 1
        if code.co_flags & inspect.CO_VARKEYWORDS:
            named.update({one: freeze(value) for one, value in names[code.co_varnames[last]].items()})
        self._open[id(frame)] = (frame.f_globals.get("__name__", ""), args, named, given[:count], [], frame)

    def _end(self, frame: Any, name: str, value: Any) -> None:
        begun = self._open.get(id(frame))
        if begun is None:
            return
        module, args, named, given, yielded, _ = begun
        operation = frame.f_code.co_code[frame.f_lasti]
        driven = frame.f_code.co_flags & DRIVEN
        if driven and (operation in YIELDS or (operation not in RETURNS and value is not None)):
            if driven & inspect.CO_GENERATOR and len(yielded) < YIELDED:
                yielded.append(freeze(value))
            return
        del self._open[id(frame)]
        returned = operation in RETURNS
        if driven and not returned:  # it raised, or it yields nothing and goes on: versions of Python tell it otherwise
            return
        if driven & inspect.CO_GENERATOR:
            result = ["yields", yielded]
        else:
            result = state_after(freeze(value), args, given) if returned else ["raises"]
        key = repr((name, args, named))
        kept = self._kept.get(name, 0)
        if key not in self.calls and kept < KEPT and len(key) < LONGEST and len(repr(result)) < LONGEST:
            self.calls[key] = {"module": module, "name": name, "args": args, "named": named, "result": result}
            self._kept[name] = kept + 1
        if self._has_enough():
            self.stop()


def state_after(result: list[Any], args: Any, given: Any) -> list[Any]:
    """What a call gave; where that is nothing, also what became of its arguments."""
    if result != ["plain", None] or not any(one[0] in CHANGEABLE for one in args):
        return result
    return ["after", [freeze(one) for one in given]]


def _driven(made: Any) -> Any:
    """What a generator yields, or a coroutine comes to."""
    if inspect.isgenerator(made):
        return ["yields", [freeze(one) for one in itertools.islice(made, YIELDED)]]
    if inspect.iscoroutine(made):
        import asyncio

        return freeze(asyncio.run(made))
    return None


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
        before = [_frozen(one) or [""] for one in args]
        made = function(*args, **named)
        return _driven(made) or state_after(freeze(made), before, args)
    except Unwritable:
        return ["unwritable"]
    except BaseException as error:  # noqa: BLE001 - what it raises is its result
        return ["raises", type(error).__name__]


def _called(call: dict[str, Any]) -> Any:
    """What is to be called: of a method its function, of a property what reads it."""
    found = find(call["module"], call["name"])
    if inspect.ismethod(found) and call["args"]:
        return found.__func__
    return getattr(found, "fget", None) or (found if callable(found) else getattr(found, "func", found))


def repeat(call: dict[str, Any], *, nearby: bool = True, asked: Any = ()) -> dict[str, Any]:
    """Make a recorded call again, twice, and with near arguments once each; one that does not end only once.

    `asked` are the arguments of all calls of tests: near ones of one may be those of another, which say nothing new.
    """
    try:
        function = _called(call)
    except BaseException as error:  # noqa: BLE001 - it can't be found
        return {
            "missing": f"{type(error).__name__}: {error}"[:300],
            "import": isinstance(error, (ImportError, OSError)),
        }
    results, others_gave = [], []
    for _ in range(2):
        try:
            args = [thaw(one) for one in call["args"]]
            named = {name: thaw(one) for name, one in call["named"].items()}
        except BaseException as error:  # noqa: BLE001 - as above
            return {"missing": f"{type(error).__name__}: {error}"[:300]}
        results.append(_timed(function, args, named))
        if results[0] == ENDLESS:
            return {"results": [ENDLESS, ENDLESS], "near": []}
    for index, one in enumerate(call["args"] if nearby else ()):
        for other in _varied(one, [given[index] for given in asked if _but(given, index) == _but(call["args"], index)]):
            others = [thaw(part) for part in call["args"]]
            others[index] = other
            others_gave.append(_timed(function, others, {name: thaw(part) for name, part in call["named"].items()}))
    return {"results": results, "near": others_gave}


def _but(given: list[Any], index: int) -> list[Any]:
    """Arguments without one of them."""
    return [*given[:index], None, *given[index + 1 :]]


def _varied(one: list[Any], asked: list[Any]) -> list[Any]:
    """Two values near an argument: near ones of its kind, or a sequence with one element more, and with one less.

    None of them is among those that are asked for anyway.
    """
    found: list[Any] = []
    if one[0] in VARIED_KINDS:
        value = thaw(one)
        found = near(value)
        if type(value) is int:  # tests of whole numbers ask for neighbours
            found += [value + step for step in (1, -1, 2, 3, 7)]
    elif one[0] in ("list", "tuple") and one[1]:
        wider = [*one[1], one[1][0]], one[1][:-1], [*one[1], one[1][-1]], one[1][1:]
        found = [thaw([one[0], parts]) for parts in wider]
    others: list[Any] = []
    for other in found:
        if other not in others and _frozen(other) not in asked:
            others.append(other)
    return others[:2]


def _frozen(value: Any) -> Any:
    try:
        return freeze(value)
    except Unwritable:
        return None


def elsewhere(call: dict[str, Any], set_ahead: Any, often: bool) -> dict[str, Any]:
    """What a call gives in other surroundings."""

    def ask() -> list[Any]:
        function = _called(call)
        named = {name: thaw(one) for name, one in call["named"].items()}
        return _timed(function, [thaw(one) for one in call["args"]], named)

    return in_surroundings(ask, set_ahead, often)


def _ring(*_: object) -> None:
    raise TimeoutError


def in_child(act: Any, seconds: float, closed: int) -> Any:
    """Do something in a child of this process; gives what it tells, until it ends or the seconds are over."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        os.close(closed)
        try:
            act(lambda record: os.write(writing, json.dumps(record).encode() + b"\n"))
        finally:
            os._exit(0)
    os.close(writing)
    rest, deadline = b"", time.monotonic() + seconds
    while True:
        ready, _, _ = select.select([reading], [], [], max(deadline - time.monotonic(), 0))
        data = os.read(reading, 1 << 16) if ready else b""
        if not data:
            break
        *lines, rest = (rest + data).split(b"\n")
        yield from map(json.loads, lines)
    os.close(reading)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def _make_calls(calls: Any, tell: Any) -> None:
    set_ahead = install_clocks()
    asked: dict[str, int] = {}
    known: dict[str, list[Any]] = {}
    for call in calls:
        known.setdefault(call["name"], []).append(call["args"])
    endless: set[str] = set()
    for number, call in enumerate(calls):
        if call["name"] in endless:
            continue
        made = repeat(call, asked=[given for given in known[call["name"]] if len(given) == len(call["args"])])
        results = made.get("results", [])
        asked[call["name"]] = asked.get(call["name"], 0) + 1
        if results and results[0] == results[1] != ENDLESS and asked[call["name"]] <= ASKED_ELSEWHERE:
            made["elsewhere"] = elsewhere(call, set_ahead, asked[call["name"]] == 1)
        if ENDLESS in results:
            endless.add(call["name"])
        tell({"number": number, **made})


def _make_without(calls: Any, blocked: Any, tell: Any) -> None:
    finders: list[Any] = sys.meta_path
    finders.insert(0, Barrier(blocked))
    for number, call in enumerate(calls):
        made = repeat(call, nearby=False)
        tell({"number": number, **made})
        if ENDLESS in made.get("results", ()):
            break


def replay_main(request: dict[str, Any]) -> None:
    """Run tests and make calls, each in a process in which nothing of a test tool was ever imported.

    The calls are made once more without the files of the tests and without what only test tools need.
    """
    hide_input()
    handle = request["handle"]
    send = open_wire(handle, bytes.fromhex(request.pop("key")))
    root = os.path.realpath(os.getcwd())  # noqa: PTH109 - pathlib may be the product's own
    wanted = [root + path[1:] if path.startswith("@") else path for path in request["path"]]
    sys.path[:0] = [path for path in wanted if path not in sys.path]
    sys.argv = ["app"]
    send({"t": "start"})
    calls, tests = request["calls"], request["tests"]
    for told in in_child(lambda tell: alone_main(root, tests, tell), request["seconds"], handle) if tests else ():
        send({"t": "alone", **told})
    for told in in_child(lambda tell: _make_calls(calls, tell), ALL_CALLS, handle) if calls else ():
        send({"t": "call", **told})
    if calls and request["hidden"]:
        for path in request["hidden"]:
            _remove(root, path)
        for told in in_child(lambda tell: _make_without(calls, request["blocked"], tell), ALL_CALLS, handle):
            send({"t": "without", **told})
    send({"t": "end", "code": 0})


def _remove(root: str, path: str) -> None:
    parts = path.split("/")
    try:
        os.unlink(os.path.join(root, *parts))  # noqa: PTH108, PTH118 - pathlib may be the product's own
        for depth in range(len(parts) - 1, 0, -1):
            os.rmdir(os.path.join(root, *parts[:depth]))  # noqa: PTH106, PTH118 - as above
    except OSError:
        pass
