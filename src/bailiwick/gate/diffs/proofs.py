"""New tests that prove nothing about a change: they exchange what it touches, or expect what it gives itself."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping, Sequence

from bailiwick.gate.diffs.assertions import equalities_in
from bailiwick.gate.diffs.syntax import (
    FUNCTIONS,
    Function,
    called_name,
    nodes_of,
    outermost_functions,
    parameters,
    parse_or_none,
)

_SETTERS = ("setattr", "delattr", "object", "patch", "spy")


def empty_proofs(tests: Mapping[str, str], sources: Mapping[str, bytes], touched: Collection[str]) -> frozenset[str]:
    """Those of the tests (id and file) whose file exchanges a touched function, or that only compare such with such."""
    found: set[str] = set()
    for path, body in _bodies(tests, sources) if touched else ():
        functions = dict(_functions(body))
        shared = any(not name.startswith("test") and _patches(node, touched) for name, node in functions.items())
        shared = shared or any(
            _patches(node, touched) for node in body if not isinstance(node, (*FUNCTIONS, ast.ClassDef))
        )
        weak = {
            name for name, node in functions.items() if _patches(node, touched) or _compares_with_itself(node, touched)
        }
        found |= {test for test, file in tests.items() if file == path and (shared or _name(test) in weak)}
    return frozenset(found)


def using_results(tests: Mapping[str, str], sources: Mapping[str, bytes], names: Collection[str]) -> frozenset[str]:
    """Those of the tests (id and file) that do something with what they get from functions of these names."""
    found: set[str] = set()
    for path, body in _bodies(tests, sources):
        using = {name for name, node in _functions(body) if _uses_a_result(node, names)}
        found |= {test for test, file in tests.items() if file == path and _name(test) in using}
    return frozenset(found)


def _bodies(tests: Mapping[str, str], sources: Mapping[str, bytes]) -> Iterator[tuple[str, Sequence[ast.stmt]]]:
    """The files of tests that can be read, with their statements."""
    for path in set(tests.values()):
        parsed = parse_or_none(sources.get(path))
        if parsed is not None:
            yield path, parsed.tree.body


def _functions(body: Sequence[ast.stmt]) -> list[tuple[str, Function]]:
    return [(name.rpartition(".")[2], node) for name, node in outermost_functions(body)]


def _uses_a_result(function: Function, names: Collection[str]) -> bool:
    dropped = {id(node.value) for node in ast.walk(function) if isinstance(node, ast.Expr)}
    return any(called_name(node) in names and id(node) not in dropped for node in ast.walk(function))


def hollow(tests: Mapping[str, str], sources: Mapping[str, bytes]) -> dict[str, tuple[str, int]]:
    """Those of the tests (id and file) with an assertion that holds whatever the product gives: where it stands."""
    found: dict[str, tuple[str, int]] = {}
    for path, body in _bodies(tests, sources):
        lines = {name: _hollow_line(node) for name, node in _functions(body)}
        for test, file in tests.items():
            line = lines.get(_name(test)) if file == path else None
            if line is not None:
                found[test] = (path, line)
    return found


def _hollow_line(function: Function) -> int | None:
    for node in ast.walk(function):
        if isinstance(node, ast.Assert) and _always(node.test):
            return node.lineno
        if isinstance(node, ast.Assert | ast.Expr) and any(_same(*pair) for pair in equalities_in(node)):
            return node.lineno
    return None


def _always(test: ast.expr) -> bool:
    """Whether an expression is true by its form alone. A constant is a person's note, such as a reason to fail."""
    match test:
        case ast.Tuple(elts=[_, *_]) | ast.List(elts=[_, *_]) | ast.Set() | ast.Dict(keys=[_, *_]) | ast.Lambda():
            return True
        case ast.BoolOp(op=ast.Or(), values=values):
            return any(_always(value) or (isinstance(value, ast.Constant) and bool(value.value)) for value in values)
        case ast.BoolOp(values=values):
            return all(_always(value) for value in values)
        case ast.NamedExpr(value=value):
            return _always(value)
        case _:
            return False


def _same(left: ast.expr, right: ast.expr) -> bool:
    """Whether both sides are the same expression, which computes nothing between them."""
    busy = (ast.Call, ast.Await, ast.Constant)
    named = any(isinstance(node, ast.Name) for node in ast.walk(left))
    return named and not any(isinstance(node, busy) for node in ast.walk(left)) and ast.dump(left) == ast.dump(right)


def computing(names: Collection[str], sources: Mapping[str, bytes]) -> frozenset[str]:
    """Those of the functions that are given something: one that is not, such as a clock, may be set by a test."""
    nodes = (node for source in sources.values() for node in nodes_of(source) if isinstance(node, FUNCTIONS))
    return frozenset(node.name for node in nodes if node.name in names and parameters(node) - {"self", "cls"})


def _name(test: str) -> str:
    return test.partition("[")[0].rpartition("::")[2]


def _patches(part: ast.AST, touched: Collection[str]) -> bool:
    """Whether code of a test sets one of the touched names of something."""
    return any(name in touched for node in ast.walk(part) for name in _set_by(node))


def _set_by(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Attribute(attr=name, ctx=ast.Store() | ast.Del()):
            yield name
        case ast.Call(func=ast.Name(id=called) | ast.Attribute(attr=called), args=arguments) if called in _SETTERS:
            for argument in arguments[:2]:
                if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                    yield argument.value.rpartition(".")[2]
        case _:
            pass


def _compares_with_itself(function: Function, touched: Collection[str]) -> bool:
    """Whether all that a test asserts is that touched functions agree with each other."""
    checks = [node for node in ast.walk(function) if isinstance(node, ast.Assert | ast.Expr)]
    pairs = [pair for check in checks for pair in equalities_in(check)]
    asserted = sum(isinstance(check, ast.Assert) or bool(list(equalities_in(check))) for check in checks)
    named = {
        target.id
        for node in ast.walk(function)
        if isinstance(node, ast.Assign) and _is_given(node.value, touched, ())
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    alike = [all(_is_given(side, touched, named) for side in pair) for pair in pairs]
    return bool(pairs) and all(alike) and asserted == len(pairs)


def _is_given(side: ast.expr, touched: Collection[str], named: Collection[str]) -> bool:
    """Whether one side is nothing but what a touched function gives; `named`: variables that hold such."""
    while isinstance(side, ast.Await | ast.Subscript | ast.Attribute):
        side = side.value
    return called_name(side) in touched or (isinstance(side, ast.Name) and side.id in named)
