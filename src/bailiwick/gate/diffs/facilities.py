"""Finds the uses of facilities in one file. What is new about them is decided by comparing two files."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from bailiwick.gate.diffs import conduct_tables as tables
from bailiwick.gate.diffs.folding import NotConstant
from bailiwick.gate.diffs.origins import BUILTINS, Origins, module_of
from bailiwick.gate.diffs.relative_names import is_relative
from bailiwick.gate.diffs.syntax import FUNCTIONS, Function, Parsed

_PARKED: Mapping[str, str] = {name: code for code, names in tables.PARKED.items() for name in names}
_NOTED: Mapping[str, str] = {name: code for code, names in tables.NOTED.items() for name in names}


@dataclass(frozen=True, slots=True)
class Use:
    """One use of a facility; `name` is what it is called in messages."""

    code: str
    name: str
    line: int
    parks: bool


def uses_in(parsed: Parsed, origins: Origins, *, is_test: bool) -> tuple[Use, ...]:
    """Every use of a facility in a file, in the order of its lines."""
    reading = _Reading(origins, is_test=is_test, is_command=_is_command(origins.nodes))
    if parsed.encoding.lower() in tables.ODD_ENCODINGS:
        reading.add(tables.ENCODING, f"the encoding {parsed.encoding}", parsed.tree)
    reading.visit(parsed.tree)
    return tuple(sorted(reading.found, key=lambda use: use.line))


def _is_command(nodes: Iterable[ast.AST]) -> bool:
    """Whether a file is the entry of a command, which has reason to end the program."""
    for node in nodes:
        match node:
            case ast.Import(names=names) if any(a.name.partition(".")[0] in tables.COMMANDS for a in names):
                return True
            case ast.ImportFrom(module=str(name), level=0) if name.partition(".")[0] in tables.COMMANDS:
                return True
            case ast.If(test=ast.Compare(left=ast.Name(id="__name__"))):
                return True
            case _:
                pass
    return False


class _Reading(ast.NodeVisitor):
    """Walks a file with its scopes."""

    def __init__(self, origins: Origins, *, is_test: bool, is_command: bool) -> None:
        self.found: list[Use] = []
        self._origins = origins
        self._is_test = is_test
        self._is_command = is_command
        self._inside: list[str] = []

    def add(self, code: str, name: str, node: ast.AST, *, parks: bool = True) -> None:
        """Keep a use; a test may use test tools."""
        if not (self._is_test and code == tables.TOOLS):
            self.found.append(Use(code, name, getattr(node, "lineno", 1), parks))

    # names and what they stand for

    def _refer(self, dotted: str, node: ast.AST) -> bool:
        """Keep a use of what a dotted name stands for; False where it is no facility."""
        parts = dotted.split(".")
        for length in range(1, len(parts) + 1):
            name = ".".join(parts[:length])
            if name in _PARKED:
                self.add(_PARKED[name], name, node)
                return True
            if name in _NOTED and not self._is_more(parts, length):
                self.add(_NOTED[name], name, node, parks=False)
                return True
        bare = parts[0].removeprefix(BUILTINS)
        if bare != parts[0] and bare in tables.BUILT_IN:
            self.add(tables.BUILT_IN[bare], bare, node)
            return True
        leaving = next((name for name in tables.LEAVING if f"{dotted}.".startswith(f"{name}.")), "")
        if leaving:
            self._leave(leaving, node)
        return bool(leaving)

    def _is_more(self, parts: list[str], length: int) -> bool:
        """Whether a longer part of the name asks for a person: `inspect` is noted, `inspect.stack` is not only."""
        return any(".".join(parts[:longer]) in _PARKED for longer in range(length + 1, len(parts) + 1))

    def _leave(self, name: str, node: ast.AST) -> None:
        fine = self._is_command or self._is_test or bool(tables.MAIN.intersection(self._inside))
        self.add(tables.EXIT, name.removeprefix(BUILTINS), node, parks=not fine)

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            self._refer(alias.name, node)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        for alias in node.names:
            self._refer(f"{module_of(node)}.{alias.name}", node)

    def visit_Name(self, node: ast.Name) -> None:
        if node.id in tables.MODULE_NAMES:
            self.add(tables.FRAMES, node.id, node)
        elif isinstance(node.ctx, ast.Load):
            dotted = self._origins.dotted(node)
            if not self._refer(dotted, node) and dotted in tables.HANDED_ON:
                self.add(tables.DYNAMIC, f"the module {dotted} as a value", node)
        elif self._is_test and node.id == "pytest_plugins":
            self.add(tables.PLUGINS, node.id, node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        writes = not isinstance(node.ctx, ast.Load)
        if node.attr in tables.FRAME_ATTRIBUTES or (writes and node.attr in tables.WRITTEN_ATTRIBUTES):
            self.add(tables.FRAMES, node.attr, node)
        dotted = self._origins.dotted(node)
        if writes:
            self._write(dotted, node)
        if self._refer(dotted, node):
            return
        if not dotted and node.attr in tables.TELLING_NAMES:
            self.add(tables.TELLING_NAMES[node.attr], node.attr, node)
        if not (dotted and isinstance(node.value, ast.Name)):
            self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        writes = not isinstance(node.ctx, ast.Load)
        dotted = self._origins.dotted(node.value)
        if dotted == "sys.modules":
            self._modules(node.slice, node, writes=writes)
            self.visit(node.slice)
            return
        if writes and dotted in tables.WRITTEN:
            self.add(tables.WRITTEN[dotted], dotted, node)
        elif writes and dotted.endswith(".__dict__"):
            self.add(tables.PATCHING, dotted, node)
        elif writes and _is_library(dotted):
            self.add(tables.PATCHING, dotted, node, parks=dotted not in tables.OPEN_TABLES)
        self.generic_visit(node)

    def _modules(self, key: ast.expr, node: ast.AST, *, writes: bool) -> None:
        """`sys.modules` is common for a named module and for the own one; anything else may find the tests.

        A module may put another in its own place, which its importers asked for. In new tests, which run apart, only
        an exchanged module matters.
        """
        own = isinstance(key, ast.Name) and key.id == "__name__"
        named = self._is_test or self._origins.folder.text(key) is not None
        self.add(tables.HOOKS, "sys.modules", node, parks=not own and (writes or not named))

    def _write(self, dotted: str, node: ast.Attribute) -> None:
        """An attribute is set or deleted."""
        if dotted in tables.WRITTEN:
            self.add(tables.WRITTEN[dotted], dotted, node)
        elif dotted in tables.STREAMS:
            self.add(tables.PATCHING, dotted, node, parks=False)
        elif self._origins.is_imported(node.value) and dotted not in _PARKED:
            self.add(tables.PATCHING, dotted, node)

    def visit_Compare(self, node: ast.Compare) -> None:
        self._decide(node)
        match node:
            case ast.Compare(left=left, ops=[ast.In() | ast.NotIn()], comparators=[right]) if (
                self._origins.dotted(right) == "sys.modules"
            ):
                self._modules(left, node, writes=False)
                self.visit(left)
            case _:
                self.generic_visit(node)

    # calls

    def visit_Call(self, node: ast.Call) -> None:
        if self._is_test and _root(node.func) in tables.PATCHERS:
            return
        function = self._origins.dotted(node.func)
        if node.args and (function == "sys.modules.get" or (self._is_test and function == "sys.modules.pop")):
            self._modules(node.args[0], node, writes=False)
            for argument in node.args:
                self.visit(argument)
            return
        self._call(function, node)
        if isinstance(node.func, ast.Attribute) and node.func.attr in tables.MUTATORS:
            self._mutate(node.func, node)
        if self._is_test and any(word.arg == "autouse" for word in node.keywords):
            self.add(tables.PLUGINS, "autouse", node, parks=False)
        for part in (node.func, *self._handed_on(function, node), *node.keywords):
            self.visit(part)

    def _call(self, function: str, node: ast.Call) -> None:
        if function in tables.MADE_CODE or (function in tables.LOADED and self._is_written_out(node)):
            self.add(tables.DYNAMIC, function, node)
        elif function == "importlib.import_module" and node.args:
            self._import_by_name(node)
        elif function == f"{BUILTINS}globals":
            self.add(tables.INSPECTS, "globals", node, parks=False)
        elif function in tables.REGISTRIES:
            self._register(function, node)
        elif node.args and self._origins.is_imported(node.args[0]):
            self._act_on(function, node, node.args)
        if not function and not self._is_test:
            self._hand_over(node)

    def _register(self, function: str, node: ast.Call) -> None:
        """A setting of the process is made; dialects of CSV under new names are left alone."""
        name = self._origins.folder.text(node.args[0]) if node.args else None
        if not (function.startswith("csv.") and name is not None and name not in tables.DIALECTS):
            at_import = not self._inside and not self._is_command and not self._is_test
            self.add(tables.PROCESS, f"{function}()", node, parks=at_import)

    def _hand_over(self, node: ast.Call) -> None:
        """Something of a library goes to a function of this file that sets what it is given."""
        if isinstance(node.func, ast.Name):
            for number, argument in (*enumerate(node.args), *((word.arg, word.value) for word in node.keywords)):
                what = self._origins.dotted(argument)
                if _is_library(what) and number in self._origins.setting.get(node.func.id, ()):
                    self.add(tables.PATCHING, what, node, parks=what not in tables.OPEN_TABLES)

    def _handed_on(self, function: str, node: ast.Call) -> list[ast.expr]:
        """The arguments that are looked at: `getattr(sys, "frozen")` has been, and hands nothing on."""
        looks = function.removeprefix(BUILTINS) in ("getattr", "hasattr", "setattr", "delattr", "vars", "dir")
        return node.args[1:] if looks and node.args and isinstance(node.args[0], ast.Name) else node.args

    def _is_written_out(self, node: ast.Call) -> bool:
        """Whether what is unpickled stands in the diff as a constant."""
        try:
            return bool(node.args) and self._origins.folder.fold(node.args[0]) is not None
        except NotConstant:
            return False

    def _import_by_name(self, node: ast.Call) -> None:
        name = self._origins.folder.text(node.args[0])
        if name is None:
            within = is_relative(node.args[0], self._origins.nodes)
            self.add(tables.DYNAMIC, "import_module of a computed name", node, parks=not within)
        else:
            self._refer(name, node)

    def _act_on(self, function: str, node: ast.Call, args: list[ast.expr]) -> None:
        """A call whose first argument is something imported."""
        what = self._origins.dotted(args[0])
        name = self._origins.folder.text(args[1]) if len(args) > 1 else None
        method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        if function in (f"{BUILTINS}setattr", f"{BUILTINS}delattr") or method in ("__setattr__", "__delattr__"):
            self.add(tables.PATCHING, f"{what}.{name or '…'}", node)
        elif function == f"{BUILTINS}getattr" and len(args) > 1:
            if name is None:
                self.add(tables.DYNAMIC, f"getattr of a computed name of {what}", node)
            else:
                self._refer(f"{what}.{name}", node)

    def _mutate(self, func: ast.Attribute, node: ast.Call) -> None:
        dotted = self._origins.dotted(func.value)
        if dotted in tables.WRITTEN:
            self.add(tables.WRITTEN[dotted], dotted, node)
        elif dotted.endswith(".__dict__") or (_is_library(dotted) and _is_private(dotted)):
            self.add(tables.PATCHING, dotted, node)

    def _decide(self, condition: ast.Compare) -> None:
        """A comparison of what is so on this machine, in this process or this year only, with something written."""
        if self._is_test or not any(isinstance(one, ast.Constant) for one in (condition.left, *condition.comparators)):
            return
        for node in ast.walk(condition):
            name = self._origins.dotted(node.func) if isinstance(node, ast.Call) else ""
            if name in tables.HERE_ONLY:
                self.add(tables.INSPECTS, f"{name.removeprefix(BUILTINS)}() in a condition", condition)
            elif _is_part_of_today(node):
                self.add(tables.INSPECTS, "the date of today in a condition", condition)

    def visit_Assert(self, node: ast.Assert) -> None:
        if not self._is_test and any(_acts(part) for part in ast.walk(node.test)):
            self.add(tables.INSPECTS, "an assertion that does something, which `python -O` leaves out", node)
        self.generic_visit(node)

    # statements and scopes

    def visit_If(self, node: ast.If) -> None:
        if self._origins.is_type_checking(node.test):
            for statement in node.orelse:
                self.visit(statement)
        else:
            self.generic_visit(node)

    def visit_Raise(self, node: ast.Raise) -> None:
        error = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
        name = self._origins.dotted(error) if error is not None else ""
        if name in tables.LEAVING_ERRORS:
            self._leave(f"raise {name.removeprefix(BUILTINS)}", node)
        self.generic_visit(node)

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        if not self._is_test and _swallows(node):
            caught = ast.unparse(node.type) if node.type is not None else ""
            self.add(tables.SWALLOWS, f"except {caught}".strip(), node, parks=False)
        self.generic_visit(node)

    def visit_Dict(self, node: ast.Dict) -> None:
        """What a class is made of may be written as a table."""
        for key in node.keys:
            if isinstance(key, ast.Constant) and isinstance(key.value, str) and key.value in tables.BORROWING:
                self.add(tables.COMPARES, key.value, node)
        self.generic_visit(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        for base in node.bases:
            name = self._origins.dotted(base).removeprefix(BUILTINS)
            if name in tables.BUILTIN_TYPES:
                own = {name for inner in node.body for name in _defines(inner)} & tables.OPERATORS
                shown = f"{name} with its own {', '.join(sorted(own))}" if own else name
                self.add(tables.BUILTIN, shown, node, parks=bool(own))
        for inner in node.body:
            for name in _defines(inner) & tables.COMPARISONS:
                self.add(tables.COMPARES, name, inner, parks=name in tables.BORROWING)
        self.generic_visit(node)

    def visit_FunctionDef(self, node: Function) -> None:
        for part in (*node.decorator_list, node.args, *([node.returns] if node.returns is not None else [])):
            self.visit(part)
        self._origins.enter(node)
        self._inside.append(node.name)
        for statement in node.body:
            self.visit(statement)
        self._inside.pop()
        self._origins.leave()

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815  as ast calls it

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self.visit(node.args)
        self._origins.enter(node)
        self.visit(node.body)
        self._origins.leave()


def _is_library(dotted: str) -> bool:
    """Whether a dotted name is that of something in the standard library or a test tool, below a module."""
    root, _, rest = dotted.partition(".")
    return bool(rest) and (root in sys.stdlib_module_names or root in tables.TEST_TOOLS)


def _is_private(dotted: str) -> bool:
    return any(part.startswith("_") and not part.startswith("__") for part in dotted.split(".")[1:])


def _acts(node: ast.AST) -> bool:
    """Whether a part of an expression sets a name, or changes what it is called on."""
    match node:
        case ast.NamedExpr():
            return True
        case ast.Call(func=ast.Attribute(attr=method)):
            return method in tables.MUTATORS
        case _:
            return False


def _is_part_of_today(node: ast.AST) -> bool:
    """The year, month or day of now."""
    match node:
        case ast.Attribute(attr="year" | "month" | "day", value=ast.Call(func=ast.Attribute(attr=method))) if (
            method in tables.TODAY
        ):
            return True
        case _:
            return False


def _defines(statement: ast.stmt) -> set[str]:
    """The names that a statement of a class defines."""
    match statement:
        case ast.Assign(targets=targets):
            return {target.id for target in targets if isinstance(target, ast.Name)}
        case _ if isinstance(statement, FUNCTIONS):
            return {statement.name}
        case _:
            return set()


def _swallows(node: ast.ExceptHandler) -> bool:
    """Whether a handler gives back a plain value in place of the error, or nothing at all."""
    *before, last = node.body
    quiet = all(isinstance(one, ast.Expr) for one in before)
    match last:
        case ast.Return(value=None | ast.Constant() | ast.List(elts=[]) | ast.Dict(keys=[]) | ast.Tuple(elts=[])):
            return quiet
        case ast.Return(value=ast.Call(func=ast.Name(), args=[], keywords=[])):
            return quiet
        case ast.Pass() | ast.Continue():
            return quiet
        case _:
            return False


def _root(node: ast.expr) -> str:
    """The name that a chain of attributes and calls begins with, or that of a `mock.patch` in it."""
    while isinstance(node, ast.Attribute | ast.Call | ast.Subscript):
        if isinstance(node, ast.Attribute) and node.attr in ("patch", "monkeypatch"):
            return node.attr
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""
