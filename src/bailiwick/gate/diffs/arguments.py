"""Functions whose arguments no longer decide, and functions whose name now means something that can't be watched."""

from __future__ import annotations

import ast

from bailiwick.gate.diffs.syntax import FUNCTIONS, Function, assigned, outermost_functions, parameters, parse_or_none
from bailiwick.gate.model import Finding

IGNORED = "argument-ignored"
REBOUND = "function-rebound"
_ALL = ("locals", "vars", "super", "eval", "exec")
"""Functions that may read arguments without naming them."""


def ignored_arguments(old: bytes | None, new: bytes | None, path: str) -> tuple[Finding, ...]:
    """Functions that used an argument on the base and do not name it any more; asks for a person.

    A parameter that is kept for its callers only is rare among fixes; an answer that looks at nothing is not.
    """
    before, after = parse_or_none(old), parse_or_none(new)
    if before is None or after is None:
        return ()
    was = dict(outermost_functions(before.tree.body))
    found = []
    for name, function in outermost_functions(after.tree.body):
        lost = _used(was[name]) - _used(function) if name in was and not _is_left_open(function) else frozenset()
        kept = sorted(lost & parameters(function))
        if kept:
            what = f"{name} no longer uses its argument{'s' if len(kept) > 1 else ''} {', '.join(kept)}"
            found.append(Finding(IGNORED, what, path, function.lineno, blocks=False, parks=True))
    return tuple(found)


def rebound_functions(old: bytes | None, new: bytes | None, path: str) -> tuple[Finding, ...]:
    """Functions of the base whose name now means something computed: a lambda, a partial, an object that is called.

    Another name for a function, and what is put around the same one (`cache(total)`), is fine.
    """
    before, after = parse_or_none(old), parse_or_none(new)
    if before is None or after is None:
        return ()
    known = {node.name for node in before.tree.body if isinstance(node, FUNCTIONS)}
    already = {name for statement in before.tree.body for name, _ in assigned(statement)}
    found = []
    for name, value in (pair for statement in after.tree.body for pair in assigned(statement)):
        if name in known - already and not _hands_on(name, value):
            what = f"{name} was a function and is now {ast.unparse(value)[:60]}"
            found.append(Finding(REBOUND, what, path, value.lineno, blocks=False, parks=True))
    return tuple(found)


def _hands_on(name: str, value: ast.expr) -> bool:
    match value:
        case ast.Name() | ast.Attribute():
            return True
        case ast.Call(args=[ast.Name(id=inner)], keywords=[]):
            return inner == name
        case _:
            return False


def _used(function: Function) -> frozenset[str]:
    """The parameters that a body names, or may read without naming them."""
    names = {node.id for part in function.body for node in ast.walk(part) if isinstance(node, ast.Name)}
    own = parameters(function)
    return own if names.intersection(_ALL) else own & names


def _is_left_open(function: Function) -> bool:
    """Whether a body is left to others: only a docstring, `...`, `pass`, or an error that says so."""
    match function.body[-1]:
        case ast.Pass() | ast.Expr(value=ast.Constant()):
            return True
        case ast.Raise(exc=ast.Name(id="NotImplementedError") | ast.Call(func=ast.Name(id="NotImplementedError"))):
            return True
        case _:
            return False
