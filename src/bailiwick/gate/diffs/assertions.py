"""The arguments and expected values that tests write out: what a product would have to know to answer them by heart."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from bailiwick.gate.diffs.folding import ConstantFolder, NotConstant, constant_names
from bailiwick.gate.diffs.syntax import FUNCTIONS, Function, called_name, parse_or_none
from bailiwick.gate.diffs.words import words

MOST_ROWS = 2000
"""Rows of a table of tests that are read."""
_EQUAL = words(
    "assertEqual assertEquals assertAlmostEqual assertIs assertListEqual assertDictEqual assertTupleEqual "
    "assertSetEqual assertSequenceEqual assertMultiLineEqual assertCountEqual assert_equal eq_"
)
_WRAPPERS = words("list tuple str sorted dict set int float repr round abs len bytes frozenset next await approx")
Row = Mapping[str, ast.expr]


@dataclass(frozen=True, slots=True)
class ValuePair:
    """The arguments of a call that a test makes, and what it expects of it."""

    path: str
    line: int
    arguments: tuple[object, ...]
    expected: object
    function: str = ""
    """The name by which it is called."""


def value_pairs(test_sources: Mapping[str, bytes]) -> tuple[ValuePair, ...]:
    """Every pair that tests write out, in constants, whether in an assertion, a table of parameters or a loop."""
    found: list[ValuePair] = []
    for path, source in test_sources.items():
        parsed = parse_or_none(source) if path.endswith(".py") else None
        if parsed is not None:
            try:
                found += _pairs_in(path, parsed.tree)
            except RecursionError:
                continue
    return tuple(found)


def _pairs_in(path: str, module: ast.Module) -> Iterator[ValuePair]:
    shared = {
        target.id: node.value
        for node in module.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(module):
        if isinstance(node, FUNCTIONS):
            reading = _Test(path, node, shared)
            yield from islice(reading.pairs(), MOST_ROWS)


class _Test:
    """Reads one test function, once for each row of its tables."""

    def __init__(self, path: str, node: Function, shared: Row) -> None:
        self._path = path
        self._node = node
        self._local = {**shared, **constant_names(ast.walk(node))}

    def pairs(self) -> Iterator[ValuePair]:
        """The pairs of its assertions under every row of its parameters."""
        checks = [node for node in _own_nodes(self._node) if isinstance(node, ast.Assert | ast.Expr)]
        if not checks:
            return
        for row in self._rows():
            for check in checks:
                yield from self._of(check, row)

    def _rows(self) -> Iterator[Row]:
        """The rows of parametrize tables and of loops over written-out tables; one empty row without any."""
        rows: list[Row] = [{}]
        for names, table in [*self._parametrized(), *self._loops()]:
            more = list(_table_rows(names, table, self._local))
            if more:
                rows = list(islice(({**one, **two} for one in rows for two in more), MOST_ROWS))
        yield from rows

    def _parametrized(self) -> Iterator[tuple[list[str], ast.expr]]:
        for decorator in self._node.decorator_list:
            match decorator:
                case ast.Call(func=ast.Attribute(attr="parametrize"), args=[names, table, *_]):
                    yield _argument_names(names), table
                case ast.Call(func=ast.Attribute(attr="expand"), args=[table, *_]):
                    yield [arg.arg for arg in self._node.args.args if arg.arg != "self"], table
                case _:
                    pass

    def _loops(self) -> Iterator[tuple[list[str], ast.expr]]:
        for node in _own_nodes(self._node):
            match node:
                case ast.For(target=ast.Name(id=name), iter=table):
                    yield [name], table
                case ast.For(target=ast.Tuple(elts=targets), iter=table) if all(
                    isinstance(target, ast.Name) for target in targets
                ):
                    yield [target.id for target in targets if isinstance(target, ast.Name)], table
                case _:
                    pass

    def _of(self, check: ast.Assert | ast.Expr, row: Row) -> Iterator[ValuePair]:
        for left, right in equalities_in(check):
            for call, expected in ((left, right), (right, left)):
                pair = self._pair(call, expected, check.lineno, row)
                if pair is not None:
                    yield pair
                    break

    def _pair(self, call: ast.expr, expected: ast.expr, line: int, row: Row) -> ValuePair | None:
        names = {**self._local, **row}
        inner = _peeled(_looked_up(call, names))
        if not isinstance(inner, ast.Call):
            return None
        folder = ConstantFolder(names)
        try:
            arguments = tuple(_arguments(inner, folder))
            value = folder.fold(_peeled_expected(expected))
        except NotConstant:
            return None
        return (
            ValuePair(self._path, line=line, arguments=arguments, expected=value, function=called_name(inner))
            if arguments
            else None
        )


def _own_nodes(function: Function) -> Iterator[ast.AST]:
    """The nodes of a function, except those of functions inside of it."""
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop(0)
        yield node
        waiting += [child for child in ast.iter_child_nodes(node) if not isinstance(child, FUNCTIONS)]


def equalities_in(check: ast.Assert | ast.Expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    """The two sides of each equality that a statement asserts."""
    match check:
        case ast.Assert(test=test):
            yield from _equalities(test)
        case ast.Expr(value=ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name), args=[first, second, *_])) if (
            name in _EQUAL
        ):
            yield first, second
        case _:
            pass


def _equalities(test: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    match test:
        case ast.Compare(left=left, ops=[ast.Eq() | ast.Is()], comparators=[right]):
            yield left, right
        case ast.BoolOp(op=ast.And(), values=values):
            for value in values:
                yield from _equalities(value)
        case ast.Call(func=ast.Attribute(attr="isclose"), args=[first, second, *_]):
            yield first, second
        case _:
            pass


def _looked_up(node: ast.expr, names: Row) -> ast.expr:
    """What a name that is bound once stands for."""
    for _ in range(3):
        if not isinstance(node, ast.Name) or node.id not in names:
            break
        node = names[node.id]
    return node


def _peeled(node: ast.expr) -> ast.expr:
    """The call inside of `list(f(1))`, `f(1).total`, `f(1)[0]` and `await f(1)`."""
    while True:
        match node:
            case ast.Attribute(value=value) | ast.Subscript(value=value) | ast.Await(value=value):
                node = value
            case ast.Call(func=ast.Name(id=name), args=[inner, *_]) if name in _WRAPPERS and isinstance(
                inner, ast.Call | ast.Attribute | ast.Subscript | ast.Await
            ):
                node = inner
            case _:
                return node


def _peeled_expected(node: ast.expr) -> ast.expr:
    """The number inside of `approx(3)`, and the like."""
    match node:
        case ast.Call(func=ast.Attribute(attr="approx") | ast.Name(id="approx"), args=[inner, *_]):
            return inner
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=[ast.Constant() as inner]) if (
            name.istitle()
        ):
            return inner
        case _:
            return node


def _arguments(call: ast.Call, folder: ConstantFolder) -> Iterator[object]:
    """The arguments of a call, those of the calls that its method is taken from first."""
    if isinstance(call.func, ast.Attribute):
        owner = _peeled(call.func.value)
        if isinstance(owner, ast.Call):
            yield from _arguments(owner, folder)
        elif isinstance(owner, ast.Constant):
            yield owner.value
    for part in (*call.args, *(word.value for word in call.keywords)):
        yield folder.fold(part)


def _argument_names(node: ast.expr) -> list[str]:
    """The names of a parametrize: a text with commas, or a list of texts."""
    match node:
        case ast.Constant(value=str(text)):
            return [name.strip() for name in text.split(",") if name.strip()]
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            return [part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)]
        case _:
            return []


def _table_rows(names: Sequence[str], table: ast.expr, known: Row) -> Iterator[Row]:
    table = _looked_up(table, known)
    match table:
        case ast.Tuple(elts=rows) | ast.List(elts=rows) | ast.Set(elts=rows):
            yield from (found for row in rows[:MOST_ROWS] if (found := _row(names, row)) is not None)
        case ast.Call(func=ast.Attribute(attr="items", value=value), args=[]):
            display = _looked_up(value, known)
            if isinstance(display, ast.Dict) and len(names) == 2:
                yield from (
                    {names[0]: key, names[1]: item}
                    for key, item in zip(display.keys, display.values, strict=True)
                    if key is not None
                )
        case _:
            pass


def _row(names: Sequence[str], row: ast.expr) -> Row | None:
    if isinstance(row, ast.Call) and isinstance(row.func, ast.Attribute | ast.Name):  # pytest.param(...)
        parts = row.args
    elif len(names) == 1:
        return {names[0]: row}
    else:
        parts = row.elts if isinstance(row, ast.Tuple | ast.List) else []
    return dict(zip(names, parts, strict=True)) if len(parts) == len(names) else None
