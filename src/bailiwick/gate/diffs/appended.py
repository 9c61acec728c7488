"""Whether a changed test file only has more tests than before: then what it adds is new, and nothing of it protected.

The base's statements are all there, in order, untouched; what is added defines new names and does nothing else while
the file is imported. Lists of imported names may grow, and so may the bodies of classes.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import EllipsisType

from bailiwick.gate.diffs.syntax import (
    FUNCTIONS,
    IMPORTS,
    Function,
    blocks_of,
    bound_by,
    compiles,
    parse_or_none,
    single_imports,
)
from bailiwick.gate.diffs.words import words

_HOOKS = re.compile(
    r"pytest_.*|pytestmark|collect_ignore(?:_glob)?|load_tests|setUpModule|tearDownModule|setUpClass|tearDownClass"
    r"|setUp|tearDown|asyncSetUp|asyncTearDown|(?:setup|teardown)(?:_(?:module|function|class|method))?|__.*__"
)
"""Names by which a runner finds more than a test: in a file, or in a class that was there before."""
_FIXTURES = words(
    "request tmp_path tmp_path_factory tmpdir tmpdir_factory monkeypatch capsys capfd capsysbinary capfdbinary caplog "
    "recwarn pytestconfig cache record_property record_testsuite_property testdir pytester doctest_namespace"
)
_PLAIN_MODULES = words(
    "datetime decimal fractions pathlib re collections itertools uuid string textwrap math enum dataclasses typing "
    "json pytest hypothesis logging operator random statistics ipaddress zoneinfo contextlib abc"
)
"""Modules whose functions may be called while a test file is imported: they make values."""
_PLAIN_CALLS = words(
    "dict list set tuple frozenset range int float complex str bytes bytearray bool object sorted len min max sum abs "
    "round zip enumerate reversed map filter chr ord repr divmod pow slice type property staticmethod classmethod"
)
_UNITTEST_BASES = frozenset({"TestCase", "IsolatedAsyncioTestCase", "object"})


@dataclass(frozen=True, slots=True)
class Appended:
    """What a test file adds: names at its top, and `Class.method` for what existing classes gain; imports left out."""

    names: tuple[str, ...]


def appended(old: bytes, new: bytes) -> Appended | None:
    """What a new version of a test file adds; None where it does more than add.

    An added method may have the name of one that its class inherits from another file: whoever knows the ids of the
    base's tests compares them.
    """
    before, after = parse_or_none(old), parse_or_none(new)
    if before is None or after is None or not compiles(after.text):
        return None
    try:
        reading = _Reading(before.tree, after.tree)
        return Appended(tuple(reading.names)) if reading.holds() else None
    except RecursionError:
        return None


class _Reading:
    """Walks both versions side by side and collects the names that are added."""

    def __init__(self, before: ast.Module, after: ast.Module) -> None:
        self.names: list[str] = []
        self._before = before
        self._after = after
        self._taken = _names_in(before)
        self._attributes = {node.attr for node in ast.walk(before) if isinstance(node, ast.Attribute)}
        self._imports = {ast.dump(node) for node in single_imports(before.body) if isinstance(node, IMPORTS)}
        self._origins = dict(_origins(after))
        self._classes = {node.name: node for node in ast.walk(before) if isinstance(node, ast.ClassDef)}

    def holds(self) -> bool:
        """Whether every difference is an addition that is let in."""
        return self._body(list(single_imports(self._before.body)), list(single_imports(self._after.body)))

    def _body(self, old: Sequence[ast.stmt], new: Sequence[ast.stmt], owner: ast.ClassDef | None = None) -> bool:
        place = 0
        for statement in new:
            there = old[place] if place < len(old) else None
            if there is not None and self._is_kept(there, statement):
                place += 1
            elif not self._may_add(statement, owner):
                return False
        return place == len(old)

    def _is_kept(self, old: ast.stmt, new: ast.stmt) -> bool:
        if ast.dump(old) == ast.dump(new):
            return True
        if not (isinstance(old, ast.ClassDef) and isinstance(new, ast.ClassDef)) or _head(old) != _head(new):
            return False
        return self._body(old.body, new.body, owner=old)

    def _may_add(self, statement: ast.stmt, owner: ast.ClassDef | None) -> bool:
        match statement:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                fine = self._may_define(statement, owner)
            case ast.Import() | ast.ImportFrom():
                return owner is None and self._may_import(statement)
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=value)
                | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
            ):
                fine = self._is_free(name, owner) and self._is_plain(value)
            case _:
                return False
        if fine:
            self.names.append(f"{owner.name}.{name}" if owner is not None else name)
        return fine

    def _may_define(self, node: Function | ast.ClassDef, owner: ast.ClassDef | None) -> bool:
        if not self._is_free(node.name, owner):
            return False
        if not all(self._may_decorate(decorator) for decorator in node.decorator_list):
            return False
        if isinstance(node, ast.ClassDef):
            return all(map(self._is_plain, node.bases)) and all(map(self._is_new_body, node.body))
        defaults = [part for part in (*node.args.defaults, *node.args.kw_defaults) if part is not None]
        return all(self._is_plain(part) for part in defaults) and not self._reaches_out(node)

    def _is_new_body(self, statement: ast.stmt) -> bool:
        """Whether a statement of a new class is a definition or a plain value."""
        match statement:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                return all(map(self._may_decorate, statement.decorator_list)) and not self._reaches_out(statement)
            case ast.ClassDef(body=body):
                return all(map(self._is_new_body, body))
            case ast.Assign(targets=[ast.Name()], value=value):
                return self._is_plain(value)
            case ast.AnnAssign(target=ast.Name(), value=value):
                return value is None or self._is_plain(value)
            case ast.Pass() | ast.Expr(value=ast.Constant(value=str() | EllipsisType())):
                return True
            case _:
                return False

    def _is_free(self, name: str, owner: ast.ClassDef | None) -> bool:
        """Whether a name means nothing yet: in the file, to a runner, or in the class that gains it."""
        if _HOOKS.fullmatch(name) or name in _FIXTURES:
            return False
        if owner is None:
            return name not in self._taken
        inherited, known = self._inherited(owner)
        if name in inherited or name in self._attributes:
            return False
        return name not in self._taken or name.startswith("test") if known else name.startswith("test")

    def _inherited(self, owner: ast.ClassDef) -> tuple[set[str], bool]:
        """What a class has already, as far as this file can say, and whether that is all."""
        import unittest

        found = {name for statement in owner.body for name in _bound_in(statement)}
        known = True
        for base in owner.bases:
            name = base.id if isinstance(base, ast.Name) else base.attr if isinstance(base, ast.Attribute) else ""
            if name in self._classes and self._classes[name] is not owner:
                more, sure = self._inherited(self._classes[name])
                found, known = found | more, known and sure
            elif name in _UNITTEST_BASES:
                found |= set(dir(unittest.IsolatedAsyncioTestCase))
            else:
                known = False
        return found, known

    def _may_import(self, node: ast.Import | ast.ImportFrom) -> bool:
        name = bound_by(node.names[0], node)
        if ast.dump(node) in self._imports:
            return True
        return name != "*" and name not in self._taken and not _HOOKS.fullmatch(name)

    def _may_decorate(self, decorator: ast.expr) -> bool:
        """Whether a decorator neither acts on all tests nor takes a fixture's name; its arguments only make values."""
        if any(isinstance(node, ast.NamedExpr | ast.Await) or _acts(node) for node in ast.walk(decorator)):
            return False
        for word in decorator.keywords if isinstance(decorator, ast.Call) else ():
            constant = word.value.value if isinstance(word.value, ast.Constant) else None
            if word.arg == "autouse" and constant is not False:
                return False
            if word.arg == "name" and (not isinstance(constant, str) or not self._is_free(constant, None)):
                return False
        return True

    def _is_plain(self, value: ast.expr) -> bool:
        """Whether an expression makes a value and calls nothing of the product."""
        for node in ast.walk(value):
            if isinstance(node, ast.NamedExpr | ast.Await | ast.Yield | ast.YieldFrom) or _acts(node):
                return False
            if isinstance(node, ast.Call) and not self._is_plain_call(node):
                return False
        return True

    def _is_plain_call(self, call: ast.Call) -> bool:
        root: ast.expr = call.func
        while isinstance(root, ast.Attribute | ast.Subscript | ast.Call):
            root = root.func if isinstance(root, ast.Call) else root.value
        if not isinstance(root, ast.Name):
            return isinstance(root, ast.Constant | ast.JoinedStr | ast.List | ast.Tuple | ast.Dict | ast.Set)
        if root.id in self._origins:
            return self._origins[root.id] in _PLAIN_MODULES
        return root.id in _PLAIN_CALLS or root.id in self._defined()

    def _defined(self) -> set[str]:
        return {node.name for node in self._after.body if isinstance(node, (*FUNCTIONS, ast.ClassDef))}

    def _reaches_out(self, node: Function) -> bool:
        """Whether a function sets names of the file that were there before."""
        return any(isinstance(n, ast.Global) and self._taken.intersection(n.names) for n in ast.walk(node))


def _acts(node: ast.AST) -> bool:
    """Whether a node is a call that changes something by name."""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("setattr", "delattr", "exec", "eval", "globals", "vars", "locals", "__import__", "compile")
    )


def _head(node: ast.ClassDef) -> tuple[str, ...]:
    parts = [*node.bases, *node.keywords, *node.decorator_list, *getattr(node, "type_params", ())]
    return (node.name, *(ast.dump(part) for part in parts))


def _bound_in(statement: ast.stmt) -> Iterator[str]:
    """The names that a statement binds where it stands."""
    match statement:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            yield from (bound_by(alias, statement) for alias in names)
        case _:
            for node in ast.walk(statement):
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                    yield node.id
            for block in blocks_of(statement):
                for inner in block:
                    yield from _bound_in(inner)


def _names_in(module: ast.Module) -> set[str]:
    """Every name that a file binds or uses, and every word that could name a fixture; names of methods left out."""
    classes = [node for node in ast.walk(module) if isinstance(node, ast.ClassDef)]
    methods = {id(inner) for node in classes for inner in node.body if isinstance(inner, FUNCTIONS)}
    found: set[str] = set()
    for node in ast.walk(module):
        match node:
            case ast.Name(id=name) | ast.arg(arg=name) | ast.ClassDef(name=name):
                found.add(name)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) if id(node) not in methods:
                found.add(name)
            case ast.Global(names=names) | ast.Nonlocal(names=names):
                found.update(names)
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                found.update(bound_by(alias, node) for alias in aliases)
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                found.add(name)
            case ast.Constant(value=str(text)) if text.isidentifier():
                found.add(text)
            case _:
                pass
    return found


def _origins(module: ast.Module) -> Iterator[tuple[str, str]]:
    """Where imported names come from: the first part of the module's name."""
    for node in ast.walk(module):
        match node:
            case ast.Import(names=names):
                yield from ((bound_by(alias, node), alias.name.partition(".")[0]) for alias in names)
            case ast.ImportFrom(module=name, level=level, names=names):
                origin = "." if level else (name or "").partition(".")[0]
                yield from ((bound_by(alias, node), origin) for alias in names)
            case _:
                pass
