"""A file whose functions give something else: a test that does not mind shows nothing about what they give. Pure."""

from __future__ import annotations

import ast
from collections.abc import Collection

from bailiwick.gate.diffs.syntax import Function, outermost_functions, parse_or_none

_OTHER = """

def __bailiwick_other(value):
    if type(value) is bool:
        return not value
    if type(value) in (int, float):
        return value + abs(value) // 2 + 7
    if type(value) in (str, bytes, list, tuple, dict, set, frozenset) and value:
        return type(value)()
    raise LookupError("another result")


def __bailiwick_wrap(function):
    def wrapped(*args, **named):
        try:
            value = function(*args, **named)
        except BaseException:
            return None
        return __bailiwick_other(value)
    return wrapped

"""
"""A number stays one and is another; a text or container loses what it holds; an error is none; all else is one."""


def with_other_results(source: bytes, names: Collection[str]) -> bytes | None:
    """The file with these functions and methods giving another result; None where that can't be had for all of them.

    What is decorated, a generator, a coroutine or in another function can't: nothing could be told about its tests.
    """
    parsed = parse_or_none(source)
    known = dict(outermost_functions(parsed.tree.body)) if parsed is not None else {}
    if parsed is None or not all(name in known and _is_plain(known[name]) for name in names):
        return None
    bound = "".join(f"{name} = __bailiwick_wrap({name})\n" for name in sorted(names))
    return source.rstrip() + _OTHER.encode() + bound.encode()


def _is_plain(function: Function) -> bool:
    if function.decorator_list or isinstance(function, ast.AsyncFunctionDef):
        return False
    return not any(isinstance(node, ast.Yield | ast.YieldFrom) for node in ast.walk(function))
