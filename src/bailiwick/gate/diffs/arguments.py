"""Arguments that a function has stopped using: what it gives can no longer follow from them."""

from __future__ import annotations

import ast

from bailiwick.gate.diffs.syntax import Function, outermost_functions, parse_or_none
from bailiwick.gate.model import Finding

IGNORED = "argument-ignored"
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
        kept = sorted(lost & _parameters(function))
        if kept:
            what = f"{name} no longer uses its argument{'s' if len(kept) > 1 else ''} {', '.join(kept)}"
            found.append(Finding(IGNORED, what, path, function.lineno, blocks=False, parks=True))
    return tuple(found)


def _parameters(function: Function) -> frozenset[str]:
    args = function.args
    rest = [one for one in (args.vararg, args.kwarg) if one is not None]
    return frozenset(one.arg for one in (*args.posonlyargs, *args.args, *args.kwonlyargs, *rest))


def _used(function: Function) -> frozenset[str]:
    """The parameters that a body names, or may read without naming them."""
    names = {node.id for part in function.body for node in ast.walk(part) if isinstance(node, ast.Name)}
    own = _parameters(function)
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
