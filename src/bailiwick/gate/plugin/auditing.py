"""Which file of the tree does what, as Python's own audit events and tables tell it; sent as text, before `witness`.

How something is spelled hides nothing here: the events come from the interpreter, and the file from the frame.
"""

from __future__ import annotations

import os
import sys
import types
from typing import Any

FRAMES = ("sys._getframe", "sys._current_frames")
DIRECT = frozenset({
    "gc.get_objects", "gc.get_referrers", "gc.get_referents", "sys.settrace", "sys.setprofile", "sys.addaudithook",
    "code.__new__", "function.__new__", "object.__getattr__", "object.__setattr__", "object.__delattr__", "exec",
    "compile", "sys.monitoring.register_callback", *FRAMES,
})  # fmt: skip
"""Events that count for the file whose code makes the call. Frames and code are read by `object.__getattr__`."""
REWRITING = frozenset({"object.__setattr__", "object.__delattr__"})
WRITING = {"open": 1, "os.rename": 2, "os.remove": 1, "os.truncate": 1, "os.link": 2, "os.symlink": 2}
"""Events that change files, with how many of their arguments name some."""
FOR_WRITING = os.O_WRONLY | os.O_RDWR | os.O_TRUNC | os.O_CREAT
PASSING_ON = ("inspect.py", "traceback.py", "warnings.py")
"""Modules through which somebody looks at frames: the file that called them counts."""
GIVING = frozenset({
    ("traceback.py", "walk_tb"), ("inspect.py", "getmembers"), ("inspect.py", "_getmembers"),
    ("base_tasks.py", "_task_get_stack"),
})  # fmt: skip
"""Functions that hand frames to whoever calls them: file and name."""
DEEP = 40
MOST = 400
OPENERS = 6


class Tree:
    """Which paths belong to the checkout: everything below it but what was mounted there as the environment."""

    def __init__(self, root: str, environment: Any) -> None:
        self.root = root
        self._prefix = root + os.sep
        self._kept = tuple(path.rstrip(os.sep) + os.sep for path in environment)
        self._known: dict[str, str] = {}

    def relative(self, path: Any) -> str:
        """The path from the top of the tree with slashes; empty for one outside."""
        if type(path) is not str:
            return ""
        found = self._known.get(path)
        if found is None:
            full = path if os.path.isabs(path) else os.path.join(self.root, path)  # noqa: PTH118, PTH117 - as in witness
            inside = full.startswith(self._prefix) and not full.startswith(self._kept or ("\0",))
            found = full[len(self._prefix) :].replace(os.sep, "/") if inside and path[:1] != "<" else ""
            if len(self._known) < 20_000:
                self._known[path] = found
        return found


class Auditor:
    """Listens to the interpreter: what files of the tree do, and which files they open.

    What they do is told at once: whoever holds a frame can reach this object, and what it knows until the end.
    """

    def __init__(self, tree: Tree, tell: Any) -> None:
        self._tree = tree
        self._tell = tell
        self.busy = False
        """What happens now is our own doing."""
        self._frame: Any = sys._getframe  # noqa: SLF001 - the only way to know who acts
        self._path = os.fspath
        self.events: dict[tuple[str, str], int] = {}
        self.opened: dict[str, set[str]] = {}
        self.written: dict[str, set[str]] = {}
        self.rewritten = 0
        """How often somebody has set a part of an object that decides what it does, such as the code of a function."""

    def start(self) -> None:
        """From now on, until the process ends: nobody can take an audit hook away."""
        sys.addaudithook(self._hear)

    def _hear(self, event: str, args: Any) -> None:
        if event in REWRITING:
            self.rewritten += 1
        if self.busy or not (event in DIRECT or event in WRITING or event.startswith("ctypes.")):
            return
        self.busy = True
        try:
            if event == "open":
                self._open(args[0], self.opened)
                if len(args) > 2 and type(args[2]) is int and args[2] & FOR_WRITING:
                    self._open(args[0], self.written)
            elif event in WRITING:
                for name in args[: WRITING[event]]:
                    self._open(name, self.written)
            else:
                self._act(event, args)
        except Exception:  # noqa: BLE001, S110 - whatever goes wrong here must not change what the program does
            pass
        finally:
            self.busy = False

    def _act(self, event: str, args: Any) -> None:
        frame: Any = self._frame(2)
        if event in FRAMES:
            while frame is not None and frame.f_code.co_filename.endswith(PASSING_ON):
                frame = frame.f_back
        while event == "object.__getattr__" and frame is not None and _gives(frame.f_code):
            frame = frame.f_back
        path = self._tree.relative(frame.f_code.co_filename) if frame is not None else ""
        name = f"{event} {args[1]}" if event.startswith("object.") else event
        if path and len(self.events) < MOST and (name, path) not in self.events:
            self.events[name, path] = frame.f_lineno
            self._tell({"t": "event", "event": [name, path, frame.f_lineno]}, wait=False)

    def _open(self, file: Any, kept: dict[str, set[str]]) -> None:
        if type(file) is int:
            return
        name = self._path(file)
        path = self._tree.relative(name.decode("utf-8", "replace") if isinstance(name, bytes) else name)
        if not path:
            return
        frame: Any = self._frame(2)
        for _ in range(DEEP):
            if frame is None:
                return
            opener = self._tree.relative(frame.f_code.co_filename)
            if opener and opener != path:
                break
            frame = frame.f_back
        else:
            return
        found = kept.setdefault(path, set())
        if len(found) < OPENERS and len(kept) < 50 * MOST:
            found.add(opener)

    def told(self) -> dict[str, Any]:
        """As a document: events by file, and who opened which file."""
        return {
            "events": [[event, path, line] for (event, path), line in sorted(self.events.items())],
            "opened": {path: sorted(openers) for path, openers in sorted(self.opened.items())},
            "written": {path: sorted(openers) for path, openers in sorted(self.written.items())},
        }


def _gives(code: Any) -> bool:
    return (code.co_filename.rpartition(os.sep)[2], code.co_name) in GIVING


def origins(tree: Tree, changed: Any, tools: Any) -> list[list[str]]:
    """Changed modules that were imported from somewhere else than the tree: path in the tree, and the other file.

    `tools` are modules that were there before anything of the tree: those of the test tool itself.
    """
    found = []
    for path in changed:
        for name in _names(tree.root, path):
            module = None if name in tools else sys.modules.get(name)
            file = getattr(module, "__file__", None)
            if isinstance(file, str) and not tree.relative(os.path.realpath(file)) and not tree.relative(file):
                found.append([path, file])
    return found


def _names(root: str, path: str) -> list[str]:
    """The names under which a file may be imported: from its package's top directory on."""
    if not path.endswith(".py"):
        return []
    parts = path[:-3].split("/")
    if parts[-1] == "__init__":
        parts.pop()
    first = len(parts) - 1
    while first > 0 and os.path.exists(os.path.join(root, *parts[:first], "__init__.py")):  # noqa: PTH110, PTH118
        first -= 1
    return [".".join(parts[start:]) for start in {0, first} if parts[start:]]


def grafts(tree: Tree) -> list[list[str]]:
    """Modules outside the tree that hold a function of the tree: the name there, and the file of the function."""
    found = []
    modules: dict[str, Any] = dict(sys.modules)
    for name, module in modules.items():
        if not isinstance(module, types.ModuleType) or tree.relative(getattr(module, "__file__", None) or ""):
            continue
        if name == "__main__" or name.startswith("_bw"):
            continue
        for key, value in list(vars(module).items()):
            path = _file_of(tree, value)
            if path:
                found.append([f"{name}.{key}", path])
            elif isinstance(value, type) and value.__module__ == name:
                for inner, part in list(vars(value).items()):
                    path = _file_of(tree, part)
                    if path:
                        found.append([f"{name}.{key}.{inner}", path])
    return found[:MOST]


def _file_of(tree: Tree, value: Any) -> str:
    inner = getattr(value, "__func__", value) if isinstance(value, (staticmethod, classmethod)) else value
    if isinstance(inner, property):
        inner = inner.fget
    return tree.relative(inner.__code__.co_filename) if isinstance(inner, types.FunctionType) else ""


class TestCode:
    """The code of test files as it was made from their source, to know it again."""

    __test__ = False

    def __init__(self, rewriting: Any) -> None:
        self._files: dict[str, set[Any]] = {}
        real = getattr(rewriting, "_rewrite_test", None)
        if real is None:
            return

        def rewrite(path: Any, config: Any) -> Any:
            made = real(path, config)
            self._files[str(path)] = set(_codes(made[1]))
            return made

        rewriting._rewrite_test = rewrite  # noqa: SLF001 - pytest has no other place to see the code of a file

    def is_strange(self, code: Any) -> bool:
        """Whether a test runs code that its file did not hold."""
        known = self._files.get(getattr(code, "co_filename", ""))
        return known is not None and code not in known


def _codes(code: Any) -> Any:
    todo = [code]
    while todo:
        current = todo.pop()
        yield current
        todo += [part for part in current.co_consts if isinstance(part, types.CodeType)]
