"""Expectations that lie in the product: functions that assert for tests, and examples in docstrings and documents."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

from bailiwick.gate.diffs.lines import added
from bailiwick.gate.diffs.syntax import (
    FUNCTIONS,
    Function,
    called_name,
    definitions,
    last_name,
    nodes_of,
    outermost_functions,
    parse_or_none,
    without_docstring,
)
from bailiwick.gate.model import Finding

HELPER = "expectation-helper"
DOCTEST = "expectation-doctest"
DEEPEST = 3
"""So many helpers may stand between a test and the function that asserts for it."""
_AROUND = ("__enter__", "__exit__", "__aenter__", "__aexit__", "__call__")
_ASKING = ("assert", "check", "expect", "verify", "compare", "ensure", "fail", "debug", "info", "log")
_NAMING = frozenset(
    ["id", "shortDescription", "__doc__", "__str__", "__repr__", "__module__", "maxDiff", "longMessage"]
)
_DIRECTIVE = re.compile(r"\s*#\s*doctest:\s*(.*)$", re.MULTILINE)
_FENCE = re.compile(r"^\s*(?:```|~~~).*$", re.MULTILINE)
_DOCUMENTS = (".rst", ".md", ".txt")
_EXAMPLES = ("__doc__", "__test__")
"""Names under which examples are looked for."""


def asserting_helpers(
    old: bytes | None, new: bytes, path: str, test_sources: Mapping[str, bytes]
) -> tuple[Finding, ...]:
    """Changed functions of the product that assert and that tests call as statements: such a test rests on them.

    It asks for a person where a function gives nothing back, so that its assertion is what it is called for, or where
    its assertion is another one; else it is a note. What only such functions read is part of them. What changes behind
    the last assertion, and what only tells a type checker something, doesn't count.
    """
    before = parse_or_none(old)
    if before is None:
        return ()
    asserting = {name: node for name, node in outermost_functions(before.tree.body) if _asserting(node) is not None}
    if not asserting:
        return ()
    after = parse_or_none(new)
    now = dict(outermost_functions(after.tree.body)) if after is not None else {}
    wanted = {name for name, node in asserting.items() if _differs(node, now.get(name))}
    if after is not None:
        wanted |= asserting.keys() & (_bound_again(after.tree.body) - _bound_again(before.tree.body))
        changed = _changed_names(before.tree.body, after.tree.body)
        wanted |= {
            name for name, node in asserting.items() if changed & _only_read_by(node, before.tree.body, asserting)
        }
    called = _called_as_statements(test_sources) if wanted else {}
    around = _put_around(test_sources) if wanted else {}
    functions = dict(outermost_functions(before.tree.body))
    found = []
    for name in sorted(wanted):
        node = asserting[name]
        if node.name in called:
            found.append(_helper(name, node, now=now.get(name), path=path, caller=called[node.name]))
        elif caller := _by_way(name, functions, called, around):
            found.append(_helper(name, node, now=now.get(name), path=path, caller=caller, gives=False))
    return tuple(found)


def _changed_names(before: Sequence[ast.stmt], after: Sequence[ast.stmt]) -> set[str]:
    """The functions and constants of a module that are otherwise now, or gone."""
    was, now = definitions(before), definitions(after)
    return {name for name, (text, _) in was.items() if name not in now or now[name][0] != text}


def _only_read_by(function: Function, body: Sequence[ast.stmt], asserting: Collection[str]) -> set[str]:
    """The names of the module that an asserting function reads and that nothing but asserting functions does."""
    read, seen = _loaded(function), set[str]()
    parts = {node.name: node for node in body if isinstance(node, FUNCTIONS)}
    while more := (read & parts.keys()) - seen - set(asserting):
        seen |= more
        for name in more:
            read |= _loaded(parts[name])
    others: set[str] = set()
    for name, node in outermost_functions(body):
        if name not in asserting and name not in seen:
            others |= _loaded(node)
    for statement in body:
        if not isinstance(statement, (*FUNCTIONS, ast.ClassDef)):
            others |= _loaded(statement)
    while shared := seen & others:
        seen -= shared
        for name in shared:
            others |= _loaded(parts[name])
    return read - others


def _loaded(node: ast.AST) -> set[str]:
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)}


def own_assertions(old: bytes | None, new: bytes, path: str, test_sources: Mapping[str, bytes]) -> tuple[Finding, ...]:
    """Methods of `unittest` that a class of the product newly brings to the tests which are made of it."""
    before, after = parse_or_none(old), parse_or_none(new)
    known = {name for name, _ in outermost_functions(before.tree.body)} if before is not None else set()
    made = [name for name, _ in outermost_functions(after.tree.body)] if after is not None else []
    ours = [name for name in made if name not in known and name.rpartition(".")[2] in _judging_methods()]
    bases = _bases_of_tests(test_sources) if ours else {}
    found = []
    for name in ours:
        owner = name.rpartition(".")[0].rpartition(".")[2]
        if owner in bases:
            what = f"{name} takes the place of the method of that name in unittest, and {bases[owner]} is made of it"
            found.append(Finding(HELPER, what, path, blocks=False, parks=True))
    return tuple(found)


@cache
def _judging_methods() -> frozenset[str]:
    """What a test case of `unittest` judges with, and what it calls by itself; naming is every class's own affair."""
    from unittest import TestCase

    return frozenset(name for name in vars(TestCase) if name not in _NAMING) | {"__init_subclass__", "__getattribute__"}


def _bases_of_tests(test_sources: Mapping[str, bytes]) -> dict[str, str]:
    """The last parts of the names of the classes that test classes are made of, each with the first such class."""
    found: dict[str, str] = {}
    for path, source in test_sources.items():
        for node in (node for node in nodes_of(source) if isinstance(node, ast.ClassDef)):
            for name in filter(None, map(last_name, node.bases)):
                found.setdefault(name, f"{path}::{node.name}")
    return found


def _bound_again(body: Sequence[ast.stmt]) -> set[str]:
    """Names that statements of a module set otherwise than by `def` and `class`: what was defined is then not used."""
    found: set[str] = set()
    for statement in body:
        for node in ast.walk(statement) if not isinstance(statement, (*FUNCTIONS, ast.ClassDef)) else ():
            if isinstance(node, ast.alias):
                found.add(node.asname or node.name.partition(".")[0])
            elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
                found.add(node.id)
    return found


def _by_way(name: str, functions: Mapping[str, Function], called: Mapping[str, str], around: Mapping[str, str]) -> str:
    """The test that uses an asserting function by `with`, as a decorator, or through helpers that only assert."""
    owner = name.rpartition(".")[0].rpartition(".")[2]
    node = functions[name]
    if node.name in _AROUND and owner in around:
        return around[owner]
    if node.name in around and _only_asserts(node):
        return around[node.name]
    names, seen = {node.name}, {name}
    for _ in range(DEEPEST):
        above = [other for other, function in functions.items() if other not in seen and _calls_any(function, names)]
        seen.update(above)
        names = {functions[other].name for other in above if _only_asserts(functions[other])}
        direct = sorted(found for found in names if found in called or found in around)
        if direct:
            return called.get(direct[0]) or around[direct[0]]
    return ""


def _calls_any(function: Function, names: Collection[str]) -> bool:
    """Whether a function calls something of these names."""
    return any(called_name(node) in names for node in ast.walk(function))


def _only_asserts(function: Function) -> bool:
    """Whether a function is there for its assertions: it changes nothing but its own names."""
    for node in ast.walk(function):
        match node:
            case ast.Attribute(ctx=ast.Store() | ast.Del()) | ast.Subscript(ctx=ast.Store() | ast.Del()):
                return False
            case ast.Global() | ast.Nonlocal():
                return False
            case ast.Expr(value=ast.Call(func=ast.Attribute(attr=name))) if not name.lstrip("_").startswith(_ASKING):
                return False
            case _:
                pass
    return True


def _helper(
    name: str, node: Function, now: Function | None, path: str, caller: str, *, gives: bool | None = None
) -> Finding:
    what = f"{name} asserts, {caller} calls it for that, and it is {'changed' if now is not None else 'deleted'}"
    if gives is None:
        gives = any(isinstance(inner, ast.Return) and inner.value is not None for inner in ast.walk(node))
        gives = gives and now is not None and _assertions(node) == _assertions(now)
    return Finding(HELPER, what, path, now.lineno if now is not None else 0, blocks=False, parks=not gives)


def _assertions(function: Function) -> list[str]:
    return [ast.dump(node) for node in ast.walk(function) if _is_assertion(node)]


def _asserting(function: Function) -> int | None:
    """The place of the last statement of a function that asserts; None where none does."""
    places = [
        place for place, statement in enumerate(function.body) if any(_is_assertion(n) for n in ast.walk(statement))
    ]
    return places[-1] if places else None


def _is_assertion(node: ast.AST) -> bool:
    match node:
        case ast.Assert(test=test):
            return not _narrows(test)
        case ast.Raise(exc=ast.Name(id="AssertionError") | ast.Call(func=ast.Name(id="AssertionError"))):
            return True
        case ast.Call(func=ast.Attribute(attr=name)):
            return name == "fail" or name.startswith("assert")
        case _:
            return False


def _narrows(test: ast.expr) -> bool:
    """Whether an assertion only tells a type checker what something is."""
    match test:
        case ast.Compare(ops=[ast.IsNot()], comparators=[ast.Constant(value=None)]):
            return True
        case ast.Call(func=ast.Name(id="isinstance" | "callable" | "issubclass")):
            return True
        case ast.Constant(value=False):
            return True
        case _:
            return False


def _differs(old: Function, new: Function | None) -> bool:
    """Whether anything up to the last assertion differs, or what is put around the function."""
    if new is None:
        return True
    last = _asserting(old)
    count = len(without_docstring(old.body[: (last or 0) + 1]))
    was, now = without_docstring(old.body)[:count], without_docstring(new.body)[:count]
    around = _dumps(old.decorator_list) != _dumps(new.decorator_list)
    return around or _dumps(was) != _dumps(now) or ast.dump(old.args) != ast.dump(new.args)


def _dumps(body: Sequence[ast.AST]) -> list[str]:
    return [ast.dump(statement) for statement in body]


def _called_as_statements(test_sources: Mapping[str, bytes]) -> dict[str, str]:
    """The last parts of the names that tests call as statements, each with the first test that does."""
    found: dict[str, str] = {}
    for place, function in _functions_of(test_sources):
        for node in ast.walk(function):
            value = node.value if isinstance(node, ast.Expr) else None
            if name := called_name(value.value if isinstance(value, ast.Await) else value):
                found.setdefault(name, place)
    return found


def _put_around(test_sources: Mapping[str, bytes]) -> dict[str, str]:
    """What tests put around their statements by `with`, or around themselves as a decorator, each with such a test."""
    found: dict[str, str] = {}
    for place, function in _functions_of(test_sources):
        withs = [node for node in ast.walk(function) if isinstance(node, ast.With | ast.AsyncWith)]
        for part in (*function.decorator_list, *(item.context_expr for node in withs for item in node.items)):
            if name := called_name(part) or last_name(part):
                found.setdefault(name, place)
    return found


def _functions_of(test_sources: Mapping[str, bytes]) -> Iterator[tuple[str, Function]]:
    """Every function of some files, with its place."""
    for path, source in test_sources.items():
        for node in nodes_of(source):
            if isinstance(node, FUNCTIONS):
                yield f"{path}::{node.name}", node


@dataclass(frozen=True, slots=True)
class _Sample:
    """An example: what is typed, what is to be seen, the directives on it, and its line."""

    source: str
    want: str
    directives: frozenset[str]
    line: int = field(compare=False)


def changed_doctests(old: bytes, new: bytes, path: str) -> tuple[Finding, ...]:
    """Examples of the base that are changed or gone; one that only moved in its file, or is new, is none."""
    before, after = _samples(old, path), _samples(new, path)
    lost, fresh = added(after, before), list(added(before, after))
    return tuple(Finding(DOCTEST, *_lost(sample, fresh, path), blocks=False, parks=True) for sample in lost)


def rewritten_docstrings(old: bytes | None, new: bytes | None, path: str) -> tuple[Finding, ...]:
    """Docstrings and tables of examples that code newly sets: what it runs as an example can't be read any more.

    To hand on the docstring of another thing is common, and changes no example of what has none.
    """
    shown = _with_examples(old)
    was, now = _set_docstrings(old, shown), _set_docstrings(new, shown)
    more = [line for text, line in now if text not in {text for text, _ in was}]
    if len(now) <= len(was) or not more:
        return ()
    what = "the examples of a docstring are set while the program runs"
    return (Finding(DOCTEST, what, path, more[0], blocks=False, parks=True),)


def _with_examples(source: bytes | None) -> frozenset[str]:
    """The names of the functions and classes of a file whose docstrings hold examples."""
    named = [node for node in nodes_of(source) if isinstance(node, (*FUNCTIONS, ast.ClassDef))]
    return frozenset(node.name for node in named if ">>>" in (ast.get_docstring(node, clean=False) or ""))


def _set_docstrings(source: bytes | None, shown: frozenset[str]) -> list[tuple[str, int]]:
    found = []
    for node in nodes_of(source):
        match node:
            case ast.Call(
                func=ast.Name(id="update_wrapper") | ast.Attribute(attr="update_wrapper"), args=[ast.Name(id=name), *_]
            ) if name in shown:
                found.append((ast.dump(node), node.lineno))
            case ast.Assign(targets=[ast.Attribute(attr="__doc__", value=target)], value=value) if _is_plain(value):
                if isinstance(target, ast.Name) and target.id in shown:
                    found.append((ast.dump(node), node.lineno))
            case ast.Assign(targets=[*targets]) if any(last_name(target) in _EXAMPLES for target in targets):
                found.append((ast.dump(node), node.lineno))
            case ast.AugAssign(target=target) | ast.AnnAssign(target=target) if last_name(target) in _EXAMPLES:
                found.append((ast.dump(node), node.lineno))
            case ast.Call(func=ast.Name(id="setattr"), args=[_, ast.Constant(value="__doc__" | "__test__"), *_]):
                found.append((ast.dump(node), node.lineno))
            case _:
                pass
    return found


def _is_plain(value: ast.expr) -> bool:
    """Whether a docstring is that of another thing as it is, or a text without any example."""
    match value:
        case ast.Attribute(attr="__doc__"):
            return True
        case ast.Constant() | ast.JoinedStr():
            text = ast.unparse(value)
            return ">>>" not in text and "__doc__" not in text
        case _:
            return False


def _lost(sample: _Sample, fresh: Sequence[_Sample], path: str) -> tuple[str, str, int]:
    """What became of an example, and where."""
    again = next((other for other in fresh if other.source == sample.source), None)
    shown = sample.source.splitlines()[0][:80]
    if again is None:
        return f"the example `{shown}` is changed or gone", path, 0
    if again.want == sample.want:
        more = ", ".join(sorted(again.directives ^ sample.directives))
        return f"the example `{shown}` has other directives: {more}", path, again.line
    return f"the example `{shown}` expects something else", path, again.line


def _samples(source: bytes, path: str) -> list[_Sample]:
    if path.endswith(_DOCUMENTS):
        return list(_samples_in(source.decode("utf-8", "replace"), 0))
    found: list[_Sample] = []
    for node in nodes_of(source) if path.endswith((".py", ".pyi")) else ():
        if isinstance(node, (*FUNCTIONS, ast.ClassDef, ast.Module)):
            text = ast.get_docstring(node, clean=False)
            if text and ">>>" in text:
                found += _samples_in(text, node.body[0].lineno - 1)
    return found


def _samples_in(text: str, above: int) -> Iterator[_Sample]:
    from doctest import DocTestParser

    try:
        examples = DocTestParser().get_examples(text)
    except ValueError:
        return
    for example in examples:
        directives = {
            word for found in _DIRECTIVE.findall(example.source) for word in re.split(r"[,\s]+", found) if word
        }
        bare = _DIRECTIVE.sub("", example.source).strip()
        yield _Sample(bare, _FENCE.sub("", example.want).strip(), frozenset(directives), above + example.lineno + 1)
