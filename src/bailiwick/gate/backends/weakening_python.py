"""Tests in Python, compared by their syntax trees."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bailiwick.gate.diffs.lines import added
from bailiwick.gate.diffs.syntax import FUNCTIONS, Function, assigned, called_name, last_name
from bailiwick.gate.model import Finding

_SKIPS = ("skip", "skipif", "skipIf", "skipUnless", "xfail", "expectedFailure")
_SKIP_CALLS = ("skip", "skipTest", "xfail", "SkipTest", "importorskip")
_BROAD = ("Exception", "BaseException")
_FILTERS = (
    "collect_ignore", "collect_ignore_glob", "pytest_collection_modifyitems", "pytest_ignore_collect",
    "pytest_runtest_makereport", "pytest_runtest_call", "pytest_pyfunc_call", "pytest_sessionfinish",
    "pytest_collect_file", "pytest_runtest_protocol",
)  # fmt: skip
_WEAK_CALLS = ("isinstance", "hasattr", "callable", "bool", "any", "len")

Scope = ast.Module | ast.ClassDef


@dataclass(frozen=True, slots=True)
class _Test:
    """A test function with what stands above it."""

    name: str
    node: Function
    skips: tuple[str, ...]


def python_findings(path: str, old: str, new: str) -> list[Finding]:
    """Tests that are gone, skipped or softer than they were."""
    unreadable = [Finding("unreadable-test", "the file can't be read as Python", path, blocks=False)]
    try:
        before, after = _parse(old), _parse(new)
        return unreadable if after is None else _findings(path, before, after)
    except RecursionError:
        return unreadable


def _findings(path: str, before: ast.Module | None, after: ast.Module) -> list[Finding]:
    was, now = (_tests(before) if before is not None else {}), _tests(after)
    found = list(_filters(path, before, after))
    bodies = Counter(_body(test) for name, test in now.items() if name not in was)
    for name, test in was.items():
        again = now.get(name)
        if again is not None:
            found += _compare(path, test, again)
        elif bodies[_body(test)] > 0:
            bodies[_body(test)] -= 1
            found.append(
                Finding("test-renamed", f"the test {name} has another name", path, test.node.lineno, blocks=False)
            )
        else:
            found.append(Finding("test-deleted", f"the test {name} is deleted", path, test.node.lineno))
    return found


def _parse(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, MemoryError):
        return None


def _body(test: _Test) -> str:
    return "\n".join(ast.dump(statement) for statement in test.node.body)


def _tests(module: ast.Module) -> dict[str, _Test]:
    return {test.name: test for test in _walk(module, "", _scope_skips(module))}


def _walk(scope: Scope | ast.If | ast.Try, prefix: str, skips: tuple[str, ...]) -> Iterator[_Test]:
    for node in scope.body:
        if isinstance(node, FUNCTIONS) and node.name.startswith("test"):
            yield _Test(prefix + node.name, node, (*skips, *_marks(node.decorator_list), *_skip_calls(node)))
        elif isinstance(node, ast.ClassDef):
            own = (*skips, *_marks(node.decorator_list), *_scope_skips(node))
            yield from _walk(node, f"{prefix}{node.name}::", own)
        elif isinstance(node, ast.If | ast.Try):
            yield from _walk(node, prefix, skips)


def _scope_skips(scope: Scope) -> tuple[str, ...]:
    """What skips all tests of a module or class: `pytestmark`, `__test__ = False`, a call at its top."""
    found: list[str] = []
    for node in scope.body:
        match node:
            case ast.Assign(targets=[ast.Name(id="pytestmark")], value=value):
                marks = value.elts if isinstance(value, ast.List | ast.Tuple) else [value]
                found += _marks(marks)
            case ast.Assign(targets=[ast.Name(id="__test__")], value=ast.Constant(value=False)):
                found.append("__test__")
            case ast.Expr(value=ast.Call() as call) if called_name(call) in _SKIP_CALLS:
                found.append(called_name(call))
            case _:
                pass
    return tuple(found)


def _marks(decorators: Sequence[ast.expr]) -> list[str]:
    names = [called_name(decorator) or last_name(decorator) for decorator in decorators]
    return [name for name in names if name in _SKIPS]


def _skip_calls(node: Function) -> list[str]:
    return [name for inner in ast.walk(node) if (name := called_name(inner)) in _SKIP_CALLS]


def _filters(path: str, before: ast.Module | None, after: ast.Module) -> Iterator[Finding]:
    """Functions and lists by which a conftest.py decides which tests count."""
    if not path.endswith("conftest.py"):
        return
    old = {} if before is None else _defined(before)
    for name, node in _defined(after).items():
        if name in _FILTERS and (name not in old or ast.dump(old[name]) != ast.dump(node)):
            yield Finding(
                "tests-filtered", f"{name} decides which tests count, and is new or changed", path, node.lineno
            )


def _defined(module: ast.Module) -> dict[str, ast.stmt]:
    functions = {node.name: node for node in module.body if isinstance(node, FUNCTIONS)}
    return functions | {name: node for node in module.body for name, _ in assigned(node)}


def _compare(path: str, old: _Test, new: _Test) -> Iterator[Finding]:
    line = new.node.lineno
    more = Counter(new.skips) - Counter(old.skips)
    if more:
        yield Finding("test-skipped", f"the test {new.name} is skipped or excused now ({', '.join(more)})", path, line)
    lost = _cases(old.node) - _cases(new.node)
    if lost > 0:
        yield Finding("cases-removed", f"the test {new.name} has {lost} fewer cases", path, line)
    if _broad_handlers(new.node) > _broad_handlers(old.node):
        what = f"the test {new.name} catches errors that it let through"
        yield Finding("broad-except", what, path, line, blocks=False)
    yield from _asserts(path, old, new)


def _cases(node: Function) -> int:
    """How many cases `parametrize` lists, as far as they are written out."""
    total = 0
    for decorator in node.decorator_list:
        if isinstance(decorator, ast.Call) and called_name(decorator) == "parametrize" and len(decorator.args) > 1:
            values = decorator.args[1]
            total += len(values.elts) if isinstance(values, ast.List | ast.Tuple | ast.Set) else 0
    return total


def _broad_handlers(node: Function) -> int:
    count = 0
    for inner in ast.walk(node):
        if isinstance(inner, ast.ExceptHandler):
            kinds = inner.type.elts if isinstance(inner.type, ast.Tuple) else [inner.type]
            count += any(kind is None or last_name(kind) in (*_BROAD, "AssertionError") for kind in kinds)
        elif isinstance(inner, ast.Call) and called_name(inner) == "suppress":
            count += any(last_name(arg) in (*_BROAD, "AssertionError") for arg in inner.args)
    return count


def _asserts(path: str, old: _Test, new: _Test) -> Iterator[Finding]:
    """Assertions that are gone, and those that say less in the place of one that said more."""
    was, now = _assertions(old.node), _assertions(new.node)
    gone, come = added(map(ast.dump, now), was, key=ast.dump), added(map(ast.dump, was), now, key=ast.dump)
    if len(now) < len(was):
        what = f"the test {new.name} has {len(was) - len(now)} fewer assertions"
        yield Finding("assert-removed", what, path, new.node.lineno, blocks=False)
    for before, after in zip(gone, come, strict=False):
        loosened = _strength(after) < _strength(before) or _tolerance(after) > _tolerance(before)
        code = "assert-loosened" if loosened else "assert-changed"
        verb = "says less" if loosened else "expects something else"
        what = f"an assertion of {new.name} {verb} now: {_shown(before)} → {_shown(after)}"
        yield Finding(code, what, path, after.lineno, blocks=False)


def _assertions(function: Function) -> list[ast.expr]:
    """What a test asserts, in the order of the text."""
    found: list[ast.expr] = []
    for node in ast.walk(function):
        if isinstance(node, ast.Assert):
            found.append(node.test)
        elif isinstance(node, ast.Call) and (called_name(node).startswith("assert") or called_name(node) == "raises"):
            found.append(node)
    return sorted(found, key=lambda node: (node.lineno, node.col_offset))


def _strength(node: ast.expr) -> int:
    """How much an assertion says: 4 an exact value, 3 an error of a kind, 2 a relation, 1 a presence, 0 nothing."""
    match node:
        case ast.Constant():
            return 0
        case ast.Compare(ops=[ast.Eq()]):
            return 0 if ast.dump(node.left) == ast.dump(node.comparators[0]) else 4
        case ast.Compare(ops=[ast.Is()]):
            return 4
        case ast.Compare(ops=[ast.IsNot() | ast.NotEq()]):
            return 1
        case ast.Compare():
            return 2
        case ast.BoolOp(op=ast.And(), values=values):
            return max(_strength(value) for value in values)
        case ast.BoolOp(values=values):
            return min(2, *(_strength(value) for value in values)) if not any(map(_is_true, values)) else 0
        case ast.Call():
            return _call_strength(node)
        case _:
            return 1


def _is_true(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and bool(node.value)


def _call_strength(node: ast.Call) -> int:
    name = called_name(node)
    if name in ("raises", "assertRaises", "assertRaisesRegex"):
        return 1 if node.args and last_name(node.args[0]) in _BROAD else 3
    if name in ("assertTrue", "assertFalse"):
        return 0 if node.args and isinstance(node.args[0], ast.Constant) else 1
    if name in ("assertIsNotNone", "assertNotEqual", "assertIsInstance", "assert_called", *_WEAK_CALLS):
        return 1
    if name in ("assertIn", "assertGreater", "assertLess", "assertGreaterEqual", "assertLessEqual", "assertNotIn"):
        return 2
    return 4 if name.startswith("assert") else 2


def _tolerance(node: ast.expr) -> float:
    """How far off a value may be by what is written out; more is looser."""
    most = 0.0
    for inner in ast.walk(node):
        if not isinstance(inner, ast.Call):
            continue
        for word in inner.keywords:
            if isinstance(word.value, ast.Constant) and isinstance(word.value.value, int | float):
                value = float(word.value.value)
                if word.arg in ("rel", "abs", "delta", "rel_tol", "abs_tol", "atol", "rtol"):
                    most = max(most, value)
                elif word.arg in ("places", "decimal"):
                    most = max(most, 10.0 ** -min(value, 300.0))
    return most


def _shown(node: ast.expr) -> str:
    text = " ".join(ast.unparse(node).split())
    bare = "".join(sign for sign in text if sign.isprintable())
    return bare if len(bare) <= 80 else f"{bare[:79]}…"
