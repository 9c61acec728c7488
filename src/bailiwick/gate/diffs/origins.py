"""What the names of a file stand for: `from os import _exit as leave` makes `leave` mean `os._exit`."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Iterator

from bailiwick.gate.diffs.folding import ConstantFolder, constant_names
from bailiwick.gate.diffs.syntax import FUNCTIONS, Function, Parsed, bound_by, parameters, parse_or_none
from bailiwick.gate.diffs.words import words

BUILTINS = "builtin:"
"""Stands before the names of Python itself, to tell them from those of an imported module `builtins`."""
RISKY = words("sys os gc builtins ctypes inspect importlib threading traceback signal types")
"""Modules that hold facilities: where a name may stand for several things, it is read as one of these."""
_REEXPORTED = words("sys os gc builtins ctypes")
"""Modules that are reached through others as well: `logging.sys` is `sys`."""
_IMPORTERS = ("importlib.import_module", f"{BUILTINS}__import__", "importlib.__import__")


class Origins:
    """Resolves expressions to dotted names of what they stand for. Scopes are entered and left by whoever walks."""

    def __init__(self, module: ast.Module) -> None:
        self.nodes = tuple(ast.walk(module))
        self.constants = constant_names(self.nodes)
        self.folder = ConstantFolder(self.constants)
        self._imported: dict[str, str] = {}
        self._stars: list[str] = []
        for name, origin in _imports(self.nodes):
            if name == "*":
                self._stars.append(origin.removesuffix(".*"))
            elif self._imported.get(name, "").partition(".")[0] not in RISKY:
                self._imported[name] = origin
        self._own = _bound_otherwise(module)
        self._set = _set_anywhere(self.nodes)
        self.setting = _setting(self.nodes)
        """Functions of the file that set attributes or items of what they are given: numbers and names of these."""
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
                return _below(self.dotted(value), attr)
            case ast.Subscript(value=value, slice=index):
                return self._item(self.dotted(value), index)
            case ast.Call(func=ast.Call(func=getter, args=[name]), args=[owner]) if (
                self.dotted(getter) == "operator.attrgetter"
            ):
                return _below(self.dotted(owner), self.folder.text(name))
            case ast.Call(func=ast.Attribute(value=owner, attr="__getattribute__"), args=[name]):
                return _below(self.dotted(owner), self.folder.text(name))
            case ast.Call(func=func, args=[first, *rest]):
                return self._called(self.dotted(func), first, rest)
            case _:
                return ""

    def _item(self, base: str, index: ast.expr) -> str:
        """What `sys.modules["gc"]` and `vars(sys)["modules"]` are."""
        if base != "sys.modules" and not base.endswith(".__dict__"):
            return ""
        key = self.folder.text(index)
        return key or "" if base == "sys.modules" else _below(base.removesuffix(".__dict__"), key)

    def is_imported(self, node: ast.expr) -> bool:
        """Whether an expression stands for something from outside of the file that is not built in."""
        dotted = self.dotted(node)
        return bool(dotted) and not dotted.startswith(BUILTINS)

    def _name(self, name: str) -> str:
        if any(name in hidden for hidden in self._hidden):
            return ""
        if name in self._imported:
            return _direct(self._imported[name])
        if name in self._aliases:
            return self._aliases[name]
        if name in self._own:
            return ""
        if hasattr(builtins, name):
            return f"{BUILTINS}{name}"
        return f"{self._stars[0]}.{name}" if self._stars else ""

    def is_type_checking(self, test: ast.expr) -> bool:
        """Whether a condition is that of code for type checkers, which never runs: nothing else sets its names."""
        parts = {node.id if isinstance(node, ast.Name) else getattr(node, "attr", "") for node in ast.walk(test)}
        if self._stars or parts & self._set:
            return False
        return self.dotted(test) in ("typing.TYPE_CHECKING", "typing_extensions.TYPE_CHECKING")

    def _called(self, function: str, first: ast.expr, rest: list[ast.expr]) -> str:
        """What `getattr(sys, "modules")` and `import_module("gc")` give back."""
        if function in _IMPORTERS:
            return self.folder.text(first) or ""
        if function in (f"{BUILTINS}getattr", "operator.getitem") and rest:
            return _below(self.dotted(first), self.folder.text(rest[0]))
        if function == f"{BUILTINS}vars":
            return _below(self.dotted(first), "__dict__")
        if function in (f"{BUILTINS}object.__getattribute__", f"{BUILTINS}type.__getattribute__") and rest:
            return _below(self.dotted(first), self.folder.text(rest[0]))
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


_SCOPES = (*FUNCTIONS, ast.Lambda, ast.ClassDef, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


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


def _setting(nodes: Iterable[ast.AST]) -> dict[str, frozenset[int | str | None]]:
    """By function, the places and names of the parameters that it sets something on."""
    found: dict[str, frozenset[int | str | None]] = {}
    for node in nodes:
        if isinstance(node, FUNCTIONS):
            names = [arg.arg for arg in (*node.args.posonlyargs, *node.args.args)]
            known = {*names, *(arg.arg for arg in node.args.kwonlyargs)}
            changed = {name for inner in ast.walk(node) for name in _changed_by(inner)} & known
            places = {place for place, name in enumerate(names) if name in changed}
            if changed:
                found[node.name] = found.get(node.name, frozenset()) | places | changed
    return found


def _changed_by(node: ast.AST) -> Iterator[str]:
    """The name whose attribute or item a node sets."""
    match node:
        case ast.Attribute(value=ast.Name(id=name), ctx=ast.Store() | ast.Del()):
            yield name
        case ast.Subscript(value=ast.Name(id=name), ctx=ast.Store() | ast.Del()):
            yield name
        case ast.Subscript(value=ast.Attribute(value=ast.Name(id=name)), ctx=ast.Store() | ast.Del()):
            yield name
        case ast.Call(func=ast.Name(id="setattr" | "delattr"), args=[ast.Name(id=name), *_]):
            yield name
        case ast.Call(func=ast.Attribute(attr="__setattr__" | "__delattr__"), args=[ast.Name(id=name), *_]):
            yield name
        case _:
            pass


def _set_anywhere(nodes: Iterable[ast.AST]) -> set[str]:
    """Names and attributes that are bound in any scope other than by one import."""
    found: set[str] = set()
    imported: dict[str, str] = {}
    for name, origin in _imports(nodes):
        if imported.setdefault(name, origin) != origin:
            found.add(name)
    for node in nodes:
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()) | ast.arg(arg=name):
                found.add(name)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                found.add(name)
            case _:
                pass
    return found


def _stored(node: ast.AST) -> Iterator[str]:
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
            yield inner.id


def _below(base: str, name: str | None) -> str:
    return _direct(f"{base}.{name}") if base and name else ""


def _direct(dotted: str) -> str:
    """`os._exit` for `pathlib.os._exit`."""
    parts = dotted.split(".")
    if not parts[0] or len(parts) < 2:
        return dotted
    places = [place for place, part in enumerate(parts) if place and part in _REEXPORTED]
    return ".".join(parts[places[-1] :]) if places else dotted


def _locals(scope: Function | ast.Lambda) -> set[str]:
    """The names that a function binds, other than by importing them or as names of the file."""
    found = set(parameters(scope))
    outside: set[str] = set()
    waiting: list[ast.AST] = list(scope.body) if not isinstance(scope, ast.Lambda) else []
    while waiting:
        node = waiting.pop()
        match node:
            case ast.Name(id=name, ctx=ast.Store()):
                found.add(name)
            case ast.Global(names=names) | ast.Nonlocal(names=names):
                outside.update(names)
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                outside.update(bound_by(alias, node) for alias in aliases)
            case _:
                pass
        if not isinstance(node, _SCOPES):
            waiting += ast.iter_child_nodes(node)
    return found - outside
