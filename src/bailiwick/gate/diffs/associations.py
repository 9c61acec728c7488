"""Where a program says that one constant belongs to another: tables, branches, cases, rows of data."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

from bailiwick.gate.diffs.folding import ConstantFolder, NotConstant
from bailiwick.gate.diffs.syntax import is_docstring

MOST_SEQUENCES = 200
LONGEST_ROW = 16
_SEGMENTS = re.compile(r"[;\n|]")
_TOKENS = re.compile(r"[\s,:=>()\[\]{}\"'\t]+")
_JOINED = re.compile(r"(?!\d{4}-\d\d-\d\d$)\d+(?:\.\d+)?(?:[-/_@+&#~x]\d+(?:\.\d+)?)+")
"""Numbers that are put together to one word, as a key of several arguments is."""
_TRIVIAL: frozenset[Hashable] = frozenset(
    {("none",), ("bool", True), ("bool", False), ("number", 0), ("number", 1), ("number", -1)}
    | {("text", ""), ("text", " "), ("list", ()), ("set", frozenset()), ("dict", frozenset())}
)


@dataclass(frozen=True, slots=True)
class Association:
    """Constants that lead to others. A row has no sides: any of its values may be the result of the rest."""

    guards: frozenset[Hashable]
    results: frozenset[Hashable]
    line: int
    row: tuple[Hashable, ...] = ()


def canonical(value: object) -> Hashable:
    """A value as it is compared: 180 and 180.0 are the same, and so are a list and a tuple of the same."""
    match value:
        case None:
            return ("none",)
        case bool():
            return ("bool", value)
        case int() | float():
            whole = isinstance(value, float) and value.is_integer()
            return ("number", int(value) if whole else value)
        case str():
            return ("text", value)
        case list() | tuple():
            return ("list", tuple(canonical(item) for item in value)) if value else ("list", ())
        case set() | frozenset():
            return ("set", frozenset(canonical(item) for item in value))
        case dict():
            return ("dict", frozenset((canonical(key), canonical(item)) for key, item in value.items()))
        case _:
            return (type(value).__name__, repr(value))


def is_trivial(key: Hashable) -> bool:
    """Whether a value stands beside so many others that it says nothing."""
    return key in _TRIVIAL


def is_digit(key: Hashable) -> bool:
    """Whether a value is a number of one digit: those stand beside each other everywhere."""
    return isinstance(key, tuple) and len(key) == 2 and key[0] == "number" and key[1] in range(-9, 10)


def spread(value: object) -> frozenset[Hashable]:
    """A value and, of a compound one, its parts: `(200, 10)` also means 200 and 10, and so do "200,10" and "[200]"."""
    found = {canonical(value)}
    if isinstance(value, list | tuple | set | frozenset):
        for item in value:
            found |= spread(item)
    elif isinstance(value, str) and 0 < len(value) <= 200:
        found |= {canonical(number) for token in _TOKENS.split(value) if (number := _as_number(token)) is not None}
        if value[0] in "([{":
            found |= _written(value)
    return frozenset(found)


def _written(text: str) -> frozenset[Hashable]:
    """The parts of a value that stands in a text as Python writes it."""
    try:
        return spread(ast.literal_eval(text))
    except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
        return frozenset()


def associations_of(module: ast.Module, folder: ConstantFolder) -> tuple[Association, ...]:
    """Every association of a file of Python."""
    reading = _Reading(folder)
    reading.visit(module)
    return (*reading.found, *_parallel(reading.sequences))


class _Reading(ast.NodeVisitor):
    def __init__(self, folder: ConstantFolder) -> None:
        self.found: list[Association] = []
        self.sequences: list[tuple[tuple[Hashable, ...], int]] = []
        self._folder = folder

    def _add(self, guards: frozenset[Hashable], results: frozenset[Hashable], node: ast.AST) -> None:
        if guards and results:
            self.found.append(Association(guards, results, getattr(node, "lineno", 1)))

    def _constant(self, node: ast.expr | None) -> frozenset[Hashable]:
        """The keys of a constant expression; none of any other."""
        if node is None:
            return frozenset()
        try:
            return spread(self._folder.fold(node))
        except NotConstant:
            return frozenset()

    def visit_Expr(self, node: ast.Expr) -> None:
        if not is_docstring(node):
            self.generic_visit(node)

    def visit_Dict(self, node: ast.Dict) -> None:
        self._entries(node, frozenset())
        self.generic_visit(node)

    def _entries(self, node: ast.Dict, above: frozenset[Hashable]) -> None:
        for key, value in zip(node.keys, node.values, strict=True):
            guards = above | self._constant(key)
            if isinstance(value, ast.Dict):
                self._entries(value, guards)
            self._add(guards, self._constant(value), value)

    def visit_If(self, node: ast.If) -> None:
        self._branch(node, frozenset())
        self.generic_visit(node)

    def _branch(self, node: ast.If, above: frozenset[Hashable]) -> None:
        equal, unequal = self._literals(node.test)
        for ways, body in ((equal, node.body), (unequal, node.orelse)):
            for guards in ways:
                for statement in body:
                    self._add(above | guards, self._given(statement), statement)
                    if isinstance(statement, ast.If):
                        self._branch(statement, above | guards)

    def _given(self, statement: ast.stmt) -> frozenset[Hashable]:
        """What a statement gives back, sets or yields, where that is a constant."""
        match statement:
            case ast.Return(value=value) | ast.Expr(value=ast.Yield(value=value)):
                return self._constant(value)
            case ast.Assign(value=value) | ast.AnnAssign(value=value):
                return self._constant(value)
            case _:
                return frozenset()

    def visit_IfExp(self, node: ast.IfExp) -> None:
        equal, unequal = self._literals(node.test)
        self._add_each(equal, node.body)
        self._add_each(unequal, node.orelse)
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        """`x == 200 and 180`."""
        if isinstance(node.op, ast.And):
            self._add_each(self._literals(ast.BoolOp(ast.And(), node.values[:-1]))[0], node.values[-1])
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        """`(x == 200) * 180`."""
        if isinstance(node.op, ast.Mult):
            self._add_each(self._literals(node.left)[0], node.right)
            self._add_each(self._literals(node.right)[0], node.left)
        self.generic_visit(node)

    def _add_each(self, ways: Sequence[frozenset[Hashable]], result: ast.expr) -> None:
        for guards in ways:
            self._add(guards, self._constant(result), result)

    def visit_Match(self, node: ast.Match) -> None:
        for case in node.cases:
            values = [inner.value for inner in ast.walk(case.pattern) if isinstance(inner, ast.MatchValue)]
            guards = frozenset[Hashable]().union(*(self._constant(value) for value in values))
            for statement in case.body:
                self._add(guards, self._given(statement), statement)
        self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        for target in node.targets:
            if isinstance(target, ast.Subscript) and not isinstance(target.slice, ast.Slice):
                self._add(self._constant(target.slice), self._constant(node.value), node)
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        if isinstance(node.func, ast.Name) and node.func.id == "dict":
            for word in node.keywords:
                self._add(spread(word.arg) if word.arg else frozenset(), self._constant(word.value), node)
        self.generic_visit(node)

    def visit_List(self, node: ast.List | ast.Tuple | ast.Set) -> None:
        """Rows of a table, and lists that may belong together item by item."""
        rows = [item for item in node.elts if isinstance(item, ast.Tuple | ast.List) and len(item.elts) > 1]
        for item in rows:
            values = self._values(item)
            if values and len(values) <= LONGEST_ROW:
                self.found.append(Association(frozenset(), frozenset(), item.lineno, values))
        if not rows and len(node.elts) > 1 and len(self.sequences) < MOST_SEQUENCES:
            flat = self._values(node)
            if flat:
                self.sequences.append((flat, node.lineno))
        self.generic_visit(node)

    visit_Tuple = visit_Set = visit_List  # noqa: N815  as ast calls them

    def _values(self, node: ast.List | ast.Tuple | ast.Set) -> tuple[Hashable, ...]:
        try:
            return tuple(key for item in node.elts for key in sorted(spread(self._folder.fold(item)), key=repr))
        except NotConstant:
            return ()

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, str) and len(node.value) > 4:
            self.found += [a for a in rows_of_text(node.value, node.lineno) if a.guards or len(a.row) > 1]

    def _literals(self, test: ast.expr) -> tuple[list[frozenset[Hashable]], list[frozenset[Hashable]]]:
        """The ways in which a condition holds by constants, and those in which it does not: what has to equal what."""
        equal, unequal = _Ways(), _Ways()
        for node in ast.walk(test):
            if not isinstance(node, ast.Compare):
                continue
            for op, side in zip(node.ops, node.comparators, strict=True):
                ways = equal if isinstance(op, ast.Eq | ast.Is | ast.In) else unequal
                if isinstance(op, ast.In | ast.NotIn):
                    ways.members += [self._constant(item) for item in getattr(side, "elts", [side])]
                elif isinstance(op, ast.Eq | ast.Is | ast.NotEq | ast.IsNot):
                    ways.fixed |= self._constant(side) or self._constant(node.left)
        return equal.listed(), unequal.listed()


class _Ways:
    """Constants that all have to be there, and members of which one has to."""

    def __init__(self) -> None:
        self.fixed: frozenset[Hashable] = frozenset()
        self.members: list[frozenset[Hashable]] = []

    def listed(self) -> list[frozenset[Hashable]]:
        return [self.fixed | member for member in self.members if member] or ([self.fixed] if self.fixed else [])


def _parallel(sequences: Sequence[tuple[tuple[Hashable, ...], int]]) -> Iterator[Association]:
    """Lists of the same length, item by item: keys in one, values in the other."""
    by_length: dict[int, list[tuple[tuple[Hashable, ...], int]]] = {}
    for values, line in sequences:
        by_length.setdefault(len(values), []).append((values, line))
    for group in by_length.values():
        if 2 <= len(group) <= 8:
            for row in zip(*(values for values, _ in group), strict=True):
                yield Association(frozenset(), frozenset(), group[0][1], row)


def rows_of_text(text: str, line: int = 0) -> Iterator[Association]:
    """The rows of a text of data: one for each line, or for each part between semicolons. `line` 0: count them."""
    stripped = text.strip()
    if stripped[:1] in ("{", "["):
        try:
            yield from _rows_of_json(json.loads(stripped), max(line, 1))
        except (ValueError, RecursionError):
            pass
        else:
            return
    for number, part in enumerate(_SEGMENTS.split(text), 1):
        tokens = [token for token in _TOKENS.split(part) if token]
        if 2 <= len(tokens) <= LONGEST_ROW and any(_as_number(token) is not None for token in tokens):
            keys: list[Hashable] = []
            for token in tokens:
                number_of = _as_number(token)
                keys.append(canonical(token if number_of is None else number_of))
                keys += [canonical(part) for part in _joined(token)]
            yield Association(frozenset(), frozenset(), line or number, tuple(keys))


def _joined(token: str) -> Iterator[int | float]:
    """The numbers of `200/19`."""
    if _JOINED.fullmatch(token):
        for part in re.split(r"[-/_@+&#~x]", token):
            number = _as_number(part)
            if number is not None:
                yield number


def _rows_of_json(value: object, line: int) -> Iterator[Association]:
    match value:
        case dict():
            for key, item in value.items():
                yield Association(spread(key), spread(item), line)
            yield from _plain_row(value.values(), line)
            for item in value.values():
                yield from _rows_of_json(item, line)
        case list():
            yield from _plain_row(value, line)
            for item in value:
                yield from _rows_of_json(item, line)
        case _:
            pass


def _plain_row(values: object, line: int) -> Iterator[Association]:
    items = list(values) if isinstance(values, list | type({}.values())) else []
    if 2 <= len(items) <= LONGEST_ROW:
        row = tuple(key for item in items for key in sorted(spread(item), key=repr))
        yield Association(frozenset(), frozenset(), line, row)


def _as_number(token: str) -> int | float | None:
    try:
        return int(token) if len(token) < 20 else None
    except ValueError:
        pass
    try:
        return float(token) if len(token) < 40 and any(sign.isdigit() for sign in token) else None
    except ValueError:
        return None
