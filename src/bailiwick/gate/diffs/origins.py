"""What the names of a file stand for: `from os import _exit as leave` makes `leave` mean `os._exit`."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Iterator

from bailiwick.gate.diffs.folding import Folder, constant_names
from bailiwick.gate.diffs.syntax import Function, Parsed, bound_by, parse_or_none

BUILTINS = "builtin:"
"""Stands before the names of Python itself, to tell them from those of an imported module `builtins`."""
_IMPORTERS = ("importlib.import_module", f"{BUILTINS}__import__", "importlib.__import__")


class Origins:
    """Resolves expressions to dotted names of what they stand for. Scopes are entered and left by whoever walks."""

    def __init__(self, module: ast.Module) -> None:
        self.nodes = tuple(ast.walk(module))
        self.constants = constant_names(self.nodes)
        self.folder = Folder(self.constants)
        self._imported = dict(_imports(self.nodes))
        self._own = _bound_otherwise(module)
        self._hidden: list[set[str]] = []
        self._aliases: dict[str, str] = {}
        for _ in range(2):  # an alias of an alias
            self._aliases = {
                name: dotted
                for name, value in self.constants.items()
                if name not in self._imported and (dotted := self.dotted(value))
            }

    def enter(self, scope: Function | ast.Lambda) -> None:
        """Names that a function binds itself hide those of the file."""
        self._hidden.append(_locals(scope) - self._aliases.keys())

    def leave(self) -> None:
        """The end of the function that was entered last."""
        self._hidden.pop()

    def dotted(self, node: ast.expr) -> str:
        """The dotted name of what an expression stands for; empty where it is nothing imported or built in."""
        match node:
            case ast.Name(id=name):
                return self._name(name)
            case ast.Attribute(value=value, attr=attr):
                base = self.dotted(value)
                return f"{base}.{attr}" if base else ""
            case ast.Subscript(value=value, slice=index):
                key = self.folder.text(index) if self.dotted(value) == "sys.modules" else None
                return key or ""
            case ast.Call(func=func, args=[first, *rest]):
                return self._called(self.dotted(func), first, rest)
            case _:
                return ""

    def is_imported(self, node: ast.expr) -> bool:
        """Whether an expression stands for something from outside of the file that is not built in."""
        dotted = self.dotted(node)
        return bool(dotted) and not dotted.startswith(BUILTINS)

    def _name(self, name: str) -> str:
        if any(name in hidden for hidden in self._hidden):
            return ""
        if name in self._imported:
            return self._imported[name]
        if name in self._aliases:
            return self._aliases[name]
        return f"{BUILTINS}{name}" if hasattr(builtins, name) and name not in self._own else ""

    def _called(self, function: str, first: ast.expr, rest: list[ast.expr]) -> str:
        """What `getattr(sys, "modules")` and `import_module("gc")` give back."""
        if function in _IMPORTERS:
            return self.folder.text(first) or ""
        if function in (f"{BUILTINS}getattr", "operator.getitem") and rest:
            base, name = self.dotted(first), self.folder.text(rest[0])
            return f"{base}.{name}" if base and name else ""
        if function == f"{BUILTINS}vars":
            base = self.dotted(first)
            return f"{base}.__dict__" if base else ""
        return ""


class Readings:
    """Sources that have been read, so that each is read once for all that asks."""

    def __init__(self) -> None:
        self._known: dict[bytes, tuple[Parsed, Origins] | None] = {}

    def read(self, source: bytes | None) -> tuple[Parsed, Origins] | None:
        """The tree of a source and what its names stand for; None where it can't be read."""
        if source is None:
            return None
        if source not in self._known:
            parsed = parse_or_none(source)
            try:
                self._known[source] = None if parsed is None else (parsed, Origins(parsed.tree))
            except RecursionError:
                self._known[source] = None
        return self._known[source]


def _imports(nodes: Iterable[ast.AST]) -> Iterator[tuple[str, str]]:
    for node in nodes:
        match node:
            case ast.Import(names=names):
                for alias in names:
                    yield bound_by(alias, node), alias.name if alias.asname else alias.name.partition(".")[0]
            case ast.ImportFrom(names=names):
                for alias in names:
                    yield bound_by(alias, node), f"{module_of(node)}.{alias.name}"
            case _:
                pass


def module_of(node: ast.ImportFrom) -> str:
    """The module that names are imported from, with its leading dots."""
    return f"{'.' * node.level}{node.module or ''}"


def _bound_otherwise(module: ast.Module) -> set[str]:
    """Names that the top of a file binds by anything but an import."""
    found: set[str] = set()
    for node in module.body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                found.add(name)
            case _:
                found.update(_stored(node))
    return found


def _stored(node: ast.AST) -> Iterator[str]:
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
            yield inner.id


def _locals(scope: Function | ast.Lambda) -> set[str]:
    """The names that a function binds, other than by importing them or as names of the file."""
    found = {arg.arg for arg in ast.walk(scope.args) if isinstance(arg, ast.arg)}
    if isinstance(scope, ast.Lambda):
        return found
    outside: set[str] = set()
    for statement in scope.body:
        for node in ast.walk(statement):
            match node:
                case ast.Name(id=name, ctx=ast.Store()):
                    found.add(name)
                case ast.Global(names=names) | ast.Nonlocal(names=names):
                    outside.update(names)
                case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                    outside.update(bound_by(alias, node) for alias in aliases)
                case _:
                    pass
    return found - outside
