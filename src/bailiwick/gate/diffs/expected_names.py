"""Names of the product that only tests use, and these as what they expect: to change one is to change a test."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from bailiwick.gate.diffs.assertions import equalities_in
from bailiwick.gate.diffs.changes import SourceChange
from bailiwick.gate.diffs.folding import constant_names
from bailiwick.gate.diffs.origins import BUILTINS, Origins, Readings
from bailiwick.gate.diffs.syntax import FUNCTIONS, definitions, parse_or_none
from bailiwick.gate.model import Finding

EXPECTED = "expectation-in-the-product"
DATA = "expectation-data"
PROPOSED = " (as proposed)"
"""Stands behind the path of a test that the change brings."""
_TOLD = re.compile(r"__\w+__|.*version.*", re.IGNORECASE)
"""Names that change with every release."""


@dataclass(frozen=True, slots=True)
class _Use:
    """One use of something imported in a test; `called`: it is called there for what it gives."""

    dotted: str
    expected: bool
    called: bool
    place: str


def changed_expectations(
    changes: Sequence[SourceChange], tests: Mapping[str, bytes], products: Mapping[str, bytes]
) -> tuple[Finding, ...]:
    """Changed constants and functions of the product that tests of the base expect, and that nothing else uses."""
    readings = Readings()
    found = []
    for change in changes:
        if change.is_test or not change.path.endswith(".py") or change.old is None:
            continue
        names = _changed_names(change.old, change.new)
        uses = list(_uses(tests, names, readings)) if names else []
        for name, line in names.items():
            wanted = [use for use in uses if _is_of(use.dotted, change.path, name)]
            expecting = [use for use in wanted if use.expected]
            constant = not any(use.called for use in wanted)
            if expecting and (constant or len(expecting) == len(wanted)) and not _is_used(name, change, products):
                what = f"{expecting[0].place} expects {name}, nothing else uses it, and it is changed"
                found.append(Finding(EXPECTED, what, change.path, line, blocks=False, parks=True))
    return tuple(found)


def changed_samples(
    changed: Iterable[str],
    opened: Mapping[str, Sequence[str]],
    tests: Mapping[str, bytes],
    is_test: Mapping[str, bool],
) -> tuple[Finding, ...]:
    """Changed data that the base opened for tests alone: by a module of which they use nothing but expected values."""
    read = {path: openers for path in changed if (openers := opened.get(path)) and not path.endswith(".py")}
    asked = {opener for openers in read.values() for opener in openers if not is_test.get(opener, False)}
    helpers = {path for path in asked if _only_expected(path, tests)} if asked else set()
    found = []
    for path, openers in read.items():
        if helpers.intersection(openers) and all(is_test.get(one, False) or one in helpers for one in openers):
            what = f"tests compare with it, through {', '.join(openers)}, and it is changed"
            found.append(Finding(DATA, what, path, blocks=False, parks=True))
    return tuple(found)


def _only_expected(path: str, tests: Mapping[str, bytes]) -> bool:
    stem = _stem(path)
    uses = [use for use in _uses(tests, {stem: 0}, Readings()) if _module_is(use.dotted.split(".")[:-1], path)]
    return any(use.expected for use in uses) and all(use.expected or not use.called for use in uses)


def _changed_names(old: bytes, new: bytes | None) -> dict[str, int]:
    """Constants and functions at the top of a file that mean something else now, with the line where they are."""
    before, after = parse_or_none(old), parse_or_none(new)
    if before is None:
        return {}
    was, now = definitions(before.tree.body), definitions(after.tree.body) if after is not None else {}
    return {
        name: now[name][1] if name in now else 0
        for name, (text, _) in was.items()
        if _TOLD.fullmatch(name) is None and (name not in now or now[name][0] != text)
    }


def _uses(tests: Mapping[str, bytes], names: Mapping[str, int], readings: Readings) -> Iterator[_Use]:
    """What tests of the base that have one of these words use of other modules."""
    words = re.compile(rb"(?<!\w)(?:" + b"|".join(re.escape(name.encode()) for name in names) + rb")(?!\w)")
    for path, source in tests.items():
        read = readings.read(source) if not path.endswith(PROPOSED) and words.search(source) else None
        if read is not None:
            yield from _uses_in(path, read[0].tree, read[1])


def _uses_in(path: str, module: ast.Module, origins: Origins) -> Iterator[_Use]:
    expected = set(_expected_nodes(module, origins))
    alone = {id(part) for node in origins.nodes for part in _alone(node)}
    called = {id(node.func) for node in origins.nodes if isinstance(node, ast.Call) and id(node) not in alone}
    inner: set[int] = set()
    for node in origins.nodes:
        if isinstance(node, ast.Name | ast.Attribute) and id(node) not in inner:
            dotted = origins.dotted(node)
            if dotted and not dotted.startswith(BUILTINS):
                inner.update(map(id, ast.walk(node)))
                place = f"{path}:{node.lineno}"
                yield _Use(dotted, id(node) in expected, id(node) in called, place)


def _alone(node: ast.AST) -> Iterator[ast.expr]:
    """Calls for what they do, not for what they give: as a statement, and by `with`."""
    match node:
        case ast.Expr(value=ast.Await(value=value)) | ast.Expr(value=value):
            yield value
        case ast.With(items=items) | ast.AsyncWith(items=items):
            yield from (item.context_expr for item in items)
        case _:
            pass


def _expected_nodes(module: ast.Module, origins: Origins) -> Iterator[int]:
    """The names in tests that stand for what is expected: beside a computed value, not beside a constant."""
    for function in (node for node in origins.nodes if isinstance(node, FUNCTIONS)):
        local = constant_names(ast.walk(function))
        for node in ast.walk(function):
            for actual, wanted in _sides(node):
                told = _bare(wanted, local)
                if told is not None and _is_computed(actual, told, origins, local):
                    yield id(told)


def _sides(node: ast.AST) -> Iterator[tuple[ast.expr | None, ast.expr]]:
    """What is compared with what may be expected; None where the other side is no expression of the test."""
    if isinstance(node, ast.Assert | ast.Expr):
        for left, right in equalities_in(node):
            yield left, right
            if not isinstance(left, ast.Call):
                yield right, left
    match node:
        case ast.Assert(test=ast.Compare(left=left, ops=[ast.In()], comparators=[right])):
            yield right, left
        case ast.Call(func=ast.Attribute(attr="raises" | "warns" | "assertRaisesRegex")):
            for word in node.keywords:
                if word.arg in ("match", "expected_regex"):
                    yield None, word.value
        case _:
            pass


def _bare(node: ast.expr, local: Mapping[str, ast.expr]) -> ast.Name | ast.Attribute | None:
    """The name in `X`, `X[0]`, `sorted(X)`, `approx(X)` and `x("a")`, or that a local name stands for."""
    for _ in range(6):
        match node:
            case ast.Name(id=name) if name in local:
                node = local[name]
            case ast.Name() | ast.Attribute():
                return node
            case ast.Subscript(value=value):
                node = value
            case ast.Call(
                func=ast.Name(id="sorted" | "list" | "tuple" | "set" | "dict" | "approx" | "str"), args=[one]
            ):
                node = one
            case ast.Call(
                func=ast.Attribute(attr="approx" | "format" | "splitlines" | "copy"), args=[ast.expr() as one]
            ):
                node = one
            case ast.Call(func=ast.Name() | ast.Attribute() as func):
                node = func
            case _:
                return None
    return None


def _is_computed(actual: ast.expr | None, wanted: ast.expr, origins: Origins, local: Mapping[str, ast.expr]) -> bool:
    """Whether something else than the expected name itself, and than a constant, makes the other side."""
    if actual is None:
        return True
    if isinstance(actual, ast.Name) and actual.id in local:
        actual = local[actual.id]
    own = origins.dotted(wanted)
    for node in ast.walk(actual):
        if isinstance(node, ast.Name | ast.Attribute) and origins.dotted(node) == own:
            return False
    return any(
        isinstance(node, ast.Name) and not origins.dotted(node).startswith(BUILTINS) for node in ast.walk(actual)
    )


def _is_of(dotted: str, path: str, name: str) -> bool:
    """Whether a dotted name is that of something in a file; a package may hand it on."""
    *module, last = dotted.strip(".").split(".")
    handed_on = bool(module) and module[0] in path.removesuffix(".py").split("/")
    return last == name and (handed_on or _module_is(module, path))


def _module_is(module: Sequence[str], path: str) -> bool:
    parts = [part for part in module if part]
    return bool(parts) and parts[-1] == _stem(path)


def _stem(path: str) -> str:
    """The last part of the name that a file is imported by."""
    parts = path.removesuffix(".py").removesuffix("/__init__").split("/")
    return parts[-1]


def _is_used(name: str, change: SourceChange, products: Mapping[str, bytes]) -> bool:
    """Whether product code uses a name other than to define it; imports alone hand it on."""
    word = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)".encode())
    own = {path: data for path, data in products.items() if path != change.path and word.search(data)}
    sources = [*own.values(), change.old or b"", change.new or b""]
    return any(_loads(name, source) for source in sources)


def _loads(name: str, source: bytes) -> bool:
    parsed = parse_or_none(source)
    if parsed is None:
        return True
    waiting: list[ast.AST] = [parsed.tree]
    while waiting:
        node = waiting.pop()
        match node:
            case ast.Name(id=found, ctx=ast.Load()) | ast.Attribute(attr=found, ctx=ast.Load()) if found == name:
                return True
            case ast.FunctionDef(name=found) | ast.AsyncFunctionDef(name=found) if found == name:
                continue
            case _:
                waiting += ast.iter_child_nodes(node)
    return False
