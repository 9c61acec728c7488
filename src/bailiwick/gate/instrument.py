"""Rewrites test files so that every assertion in them is asked again with a near value. Pure.

A comparison `a == b` becomes a call that compares the same two values in the same way, gives the same result, and then
asks once more with something near the expected one. A test does what it did, on the same lines. Each place has
a number; which places a test surely reaches when it runs to its end is said by `Reach.sure`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from bailiwick.gate.diffs.layout import Edit, Layout
from bailiwick.gate.diffs.syntax import (
    FUNCTIONS,
    IMPORTS,
    Function,
    bound_by,
    called_name,
    compiles,
    first_line,
    outermost_functions,
    parse_or_none,
)

_OPERATORS: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Eq: ("==", "=="),
    ast.NotEq: ("!=", "!="),
    ast.Lt: ("<", r"<(?!=)"),
    ast.LtE: ("<=", "<="),
    ast.Gt: (">", r">(?!=)"),
    ast.GtE: (">=", ">="),
    ast.In: ("in", r"\bin\b"),
    ast.NotIn: ("not in", r"\bnot\s+in\b"),
}
_RAISES = (
    "raises",
    "assertRaises",
    "assertRaisesRegex",
    "assertRaisesRegexp",
    "warns",
    "assertWarns",
    "deprecated_call",
)
_KINDS = ("isinstance", "issubclass")
_TEXT_METHODS = ("startswith", "endswith", "find", "rfind", "index", "count", "isidentifier")
_ENDING = ("skip", "xfail", "importorskip", "fail", "exit", "skipTest", "_exit")
_SWALLOWING = ("suppress",)
_LOOPS = (ast.For, ast.AsyncFor, ast.While)


@dataclass(frozen=True, slots=True)
class Target:
    """The function of a test: its name and the line on which it or its first decorator begins."""

    line: int
    name: str


@dataclass(frozen=True, slots=True)
class AssertionSite:
    """The place of an assertion or comparison."""

    path: str
    line: int


@dataclass(frozen=True, slots=True)
class Reach:
    """The numbers of places in a test: those that it surely reaches, and others that it need not.

    `held` are the assertions in loops and in conditions that have no other branch, `looped` those that every turn of a
    loop reaches.
    """

    sure: frozenset[int] = frozenset()
    held: frozenset[int] = frozenset()
    looped: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Instrumented:
    """A rewritten file; its places by number, and which of them its test functions reach."""

    source: bytes
    sites: dict[int, AssertionSite]
    reach: dict[Target, Reach]


def instrument(path: str, source: bytes, token: str, first: int = 0) -> Instrumented | None:
    """Rewrite a file; None for one that can't be read. Places are numbered from `first` on."""
    parsed = parse_or_none(source)
    if parsed is None:
        return None
    for careful in (False, True):
        editor = _Editor(parsed.text.encode("utf-8"), token, first, _imported(parsed.tree), careful=careful)
        for _, function in outermost_functions(parsed.tree.body):
            editor.function(function)
        changed = editor.apply()
        if compiles(changed):
            sites = {number: AssertionSite(path, line) for number, line in editor.lines.items()}
            again = changed.encode(parsed.encoding)
            return Instrumented(again, sites, editor.reach)
    return None


class _Editor:
    """Collects what has to be put into one file. `careful`: only asserts as a whole, no operands."""

    def __init__(self, raw: bytes, token: str, first: int, imported: frozenset[str], *, careful: bool) -> None:
        self._raw = raw
        self._imported = imported
        self._layout = Layout(raw)
        self._token = token
        self._next = first
        self._careful = careful
        self._edits: list[Edit] = []
        self._numbers: dict[int, int] = {}
        self.lines: dict[int, int] = {}
        self.reach: dict[Target, Reach] = {}

    def function(self, node: Function) -> None:
        """Rewrite one function with all that is in it."""
        for statement in node.body:
            self._walk(statement, 0)
        self.reach[Target(first_line(node), node.name)] = Reach(
            sure=self._numbered(_surely_reached(node.body)),
            held=self._numbered(_held_back(node.body, (*_LOOPS, ast.If))),
            looped=self._numbered(_held_back(node.body, _LOOPS)),
        )

    def _numbered(self, parts: Iterable[ast.AST]) -> frozenset[int]:
        numbers = (self._numbers.get(id(part)) for part in parts)
        return frozenset(number for number in numbers if number is not None)

    def apply(self) -> str:
        """The file with everything put in."""
        return self._layout.apply(self._edits)

    def _walk(self, node: ast.AST, depth: int, *, asserted: bool = False) -> None:
        asserted = asserted or isinstance(node, ast.Assert)
        if asserted and not self._careful:
            self._assertion_part(node, depth)
        match node:
            case ast.JoinedStr():
                return
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() | ast.Lambda() if self._careful:
                return
            case ast.Assert(test=test):
                self._wrap(test, f"{self._token}.t({self._site(node)},(", "))", depth)
            case ast.Compare(ops=[op], comparators=[right]) if not self._careful:
                self._compare(node, op, right, depth)
            case ast.Compare() if not self._careful:
                self._chain(node, depth)
            case ast.Call() if not self._careful:
                self._call(node, depth)
            case _:
                pass
        for part in _parts(node):
            self._walk(part, depth + 1, asserted=asserted)

    def _assertion_part(self, node: ast.AST, depth: int) -> None:
        """In what is asserted also a negation, a difference and a question to a text."""
        match node:
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                self._wrap(operand, f"{self._token}.n({self._site(operand)},(", "))", depth)
            case ast.BinOp(op=ast.Sub(), left=left, right=right):
                place = _find(self._raw, (self._layout.end(left), self._layout.start(right)), "-")
                if place is not None:
                    self._wrap(node, f"{self._token}.b({self._site(node)},(", "))", depth)
                    self._edits.append(Edit(*place, "),(", (1, depth)))
            case ast.Call(func=ast.Attribute(attr=name, value=value), args=args, keywords=[]) if name in _TEXT_METHODS:
                lone = any(isinstance(arg, ast.GeneratorExp) for arg in args)
                end = self._layout.end(value)
                place = _find(self._raw, (end, self._layout.end(node)), rf"\.\s*{name}\s*\(")
                if place is None or lone or not args or self._raw[end : place[0]].strip() or _is_super(node.func):
                    return
                start = self._layout.start(node)
                before = f"{self._token}.q({self._site(node)},{name!r},("
                self._edits.append(Edit(start, start, before, (1, depth)))
                self._edits.append(Edit(*place, "), ", (1, depth)))
            case _:
                pass

    def _chain(self, node: ast.Compare, depth: int) -> None:
        """A chain of comparisons stays as it is; its operands are noted as they come."""
        known = [_OPERATORS[type(op)][0] for op in node.ops if type(op) in _OPERATORS]
        if len(known) != len(node.ops):
            return
        number = self._site(node)
        self._wrap(node, f"{self._token}.k({number},{tuple(known)!r},(", "))", depth)
        for operand in (node.left, *node.comparators):
            self._wrap(operand, f"{self._token}.s({number},(", "))", depth + 1)

    def _site(self, node: ast.stmt | ast.expr) -> int:
        number = self._next
        self._next += 1
        self._numbers[id(node)] = number
        self.lines[number] = node.lineno
        return number

    def _wrap(self, node: ast.expr, before: str, after: str, depth: int) -> None:
        start, end = self._layout.start(node), self._layout.end(node)
        self._edits.append(Edit(start, start, before, (1, depth)))
        self._edits.append(Edit(end, end, after, (0, -depth)))

    def _compare(self, node: ast.Compare, op: ast.cmpop, right: ast.expr, depth: int) -> None:
        known = _OPERATORS.get(type(op))
        if known is None:
            return
        place = _find(self._raw, (self._layout.end(node.left), self._layout.start(right)), known[1])
        if place is None:
            return
        side = not (_is_written_out(node.left) and not _is_written_out(right))
        self._wrap(node, f"{self._token}.c({self._site(node)},{known[0]!r},{side},(", "))", depth)
        self._edits.append(Edit(*place, "),(", (1, depth)))

    def _may_be_exchanged(self, node: ast.Call) -> bool:
        """Whether the kind of error that a test asks for is imported, and may be wider than its name says."""
        first = next(iter([*node.args, *(keyword.value for keyword in node.keywords)]), None)
        parts = first.elts if isinstance(first, ast.Tuple) else [first]
        for part in parts:
            root = part
            while isinstance(root, ast.Attribute):
                root = root.value
            if isinstance(root, ast.Name) and root.id in self._imported:
                return True
        return False

    def _call(self, node: ast.Call, depth: int) -> None:
        name = called_name(node)
        kind = "r" if name in _RAISES else "i" if name in _KINDS else "m" if name.startswith("assert") else ""
        lone = any(isinstance(arg, ast.GeneratorExp) for arg in node.args)
        if not kind or lone or (kind == "i" and (len(node.args) != 2 or node.keywords)) or _is_super(node.func):
            return
        end = self._layout.end(node.func)
        place = _find(self._raw, (end, self._layout.end(node)), r"\(")
        if place is None or self._raw[end : place[0]].strip():
            return
        start = self._layout.start(node)
        if kind == "r" and not self._may_be_exchanged(node):
            kind = "w"
        self._edits.append(Edit(start, start, f"{self._token}.{kind}({self._site(node)},", (1, depth)))
        comma = ", " if node.args or node.keywords else ","
        self._edits.append(Edit(*place, comma, (1, depth)))


def _imported(module: ast.Module) -> frozenset[str]:
    """The names that imports bind, wherever they stand."""
    imports = (node for node in ast.walk(module) if isinstance(node, IMPORTS))
    return frozenset(bound_by(alias, node) for node in imports for alias in node.names)


def _parts(node: ast.AST) -> Iterator[ast.AST]:
    """What is in a node and runs with it: no decorators, defaults or annotations."""
    skipped: Sequence[str] = ("decorator_list", "args", "returns", "annotation", "type_params")
    for name, value in ast.iter_fields(node):
        if name in skipped and not isinstance(node, ast.Call | ast.Lambda):
            continue
        if isinstance(node, ast.Lambda) and name == "args":
            continue
        yield from (part for part in (value if isinstance(value, list) else [value]) if isinstance(part, ast.AST))


def _find(raw: bytes, region: tuple[int, int], pattern: str) -> tuple[int, int] | None:
    """Where a token stands between two operands; comments there are not looked at."""
    text = raw[region[0] : region[1]]
    bare = re.sub(rb"#[^\n]*", lambda found: b" " * len(found[0]), text)
    found = re.search(pattern.encode(), bare)
    return (region[0] + found.start(), region[0] + found.end()) if found else None


def _is_super(function: ast.expr) -> bool:
    return isinstance(function, ast.Attribute) and called_name(function.value) == "super"


def _is_written_out(node: ast.expr) -> bool:
    """Whether an operand is what a person expects: a constant, a display of constants, `approx` of something."""
    match node:
        case ast.Constant():
            return True
        case ast.UnaryOp(operand=operand):
            return _is_written_out(operand)
        case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts):
            return all(_is_written_out(part) for part in parts)
        case ast.Dict(keys=keys, values=values):
            return all(key is not None and _is_written_out(key) for key in keys) and all(map(_is_written_out, values))
        case ast.Call():
            return called_name(node) == "approx"
        case _:
            return False


def _held_back(body: Sequence[ast.stmt], within: tuple[type[ast.stmt], ...]) -> Iterator[ast.AST]:
    """The assertions in some kinds of statements: in loops, and in conditions without another branch."""
    for statement in body:
        if isinstance(statement, within) and not (isinstance(statement, ast.If) and statement.orelse):
            inner: list[ast.stmt] = statement.body  # type: ignore[attr-defined]
            yield from _surely_reached(inner)
            yield from _held_back(inner, within)
        elif isinstance(statement, ast.With | ast.AsyncWith):
            yield from _held_back(statement.body, within)


def _surely_reached(body: Sequence[ast.stmt]) -> Iterator[ast.AST]:
    """The assertions that are reached whenever the statements run to their end."""
    for statement in body:
        yield from _reached_in(statement)
        if _may_leave(statement):
            return


def _reached_in(statement: ast.stmt) -> Iterator[ast.AST]:
    match statement:
        case ast.Assert():
            yield statement
        case ast.Expr(value=ast.Call() as call) | ast.Expr(value=ast.Await(value=ast.Call() as call)):
            yield call
        case ast.With(items=items, body=body) | ast.AsyncWith(items=items, body=body):
            contexts = [item.context_expr for item in items]
            yield from contexts
            if not any(called_name(context) in (*_RAISES, *_SWALLOWING) for context in contexts):
                yield from _surely_reached(body)
        case ast.Try(handlers=[], body=body, finalbody=final):
            yield from _surely_reached([*body, *final])
        case ast.Try(finalbody=final):
            yield from _surely_reached(final)
        case _:
            pass


def _may_leave(statement: ast.stmt) -> bool:
    """Whether what follows a statement may not be reached although nothing fails."""
    leaving = (ast.Return, ast.Yield, ast.YieldFrom)
    return any(isinstance(node, leaving) or called_name(node) in _ENDING for node in _own(statement))


def _own(node: ast.AST) -> Iterable[ast.AST]:
    todo: list[ast.AST] = [node]
    while todo:
        current = todo.pop()
        yield current
        if not isinstance(current, (*FUNCTIONS, ast.ClassDef, ast.Lambda)):
            todo += list(ast.iter_child_nodes(current))
