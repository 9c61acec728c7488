"""Computes expressions of constants, so that a text that is put together is read as the text it is.

Only what can be computed without side effects and in bounded time: no expression of a diff is evaluated by Python.
"""

from __future__ import annotations

import ast
import base64
import binascii
import codecs
import operator
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping

from bailiwick.gate.diffs.syntax import assigned
from bailiwick.gate.diffs.words import words

LONGEST = 20_000
"""Characters or items of a result; what is longer is no name and no expected value."""
_OPERATORS: Mapping[type[ast.operator], Callable[..., object]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.BitXor: operator.xor,
    ast.Mod: operator.mod,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Div: operator.truediv,
}
_METHODS = words(
    "lower upper title capitalize casefold swapcase strip lstrip rstrip replace removeprefix removesuffix join split "
    "format encode decode hex"
)
_CALLS: Mapping[str, Callable[..., object]] = {
    "chr": chr,
    "ord": ord,
    "str": str,
    "repr": repr,
    "ascii": ascii,
    "int": int,
    "float": float,
    "bytes": bytes,
    "bytearray": bytes,
    "tuple": tuple,
    "list": list,
    "set": set,
    "frozenset": set,
    "sorted": sorted,
    "reversed": lambda items: list(items)[::-1],
    "fromhex": bytes.fromhex,
    "b64decode": base64.b64decode,
    "urlsafe_b64decode": base64.urlsafe_b64decode,
    "b32decode": base64.b32decode,
    "b16decode": base64.b16decode,
    "a85decode": base64.a85decode,
    "b85decode": base64.b85decode,
    "unhexlify": binascii.unhexlify,
    "a2b_hex": binascii.unhexlify,
    "a2b_base64": binascii.a2b_base64,
}
_CODECS = words("rot13 rot_13 hex hex_codec base64 base64_codec ascii utf-8 utf8 latin-1 latin1")
_GET: Callable[..., object] = operator.getitem
_SLICE: Callable[..., object] = slice
_DECODE: Callable[..., object] = codecs.decode
_WIDE = re.compile(r"[0-9]{4}|[*]")
"""Widths in a format that would make a text very long."""
_WRONG = (TypeError, ValueError, ArithmeticError, LookupError, AttributeError, RecursionError, MemoryError)


class NotConstant(Exception):
    """An expression depends on more than constants."""


class ConstantFolder:
    """Folds the expressions of one file; `names` are those that are bound once, to a constant."""

    def __init__(self, names: Mapping[str, ast.expr] | None = None) -> None:
        self._names = dict(names or {})
        self._known: dict[int, tuple[ast.expr, object]] = {}
        self._not: dict[int, ast.expr] = {}

    def fold(self, node: ast.expr) -> object:
        """The value of an expression; raises `NotConstant`."""
        key = id(node)
        if key in self._known:
            return self._known[key][1]
        if key in self._not:
            raise NotConstant
        try:
            value = self._fold(node, {})
        except (NotConstant, *_WRONG) as error:
            self._not[key] = node
            raise NotConstant from error
        self._known[key] = node, value
        return value

    def text(self, node: ast.expr) -> str | None:
        """The text that an expression is; None where it is none."""
        try:
            value = self.fold(node)
        except NotConstant:
            return None
        return value if isinstance(value, str) else None

    def _fold(self, node: ast.expr, local: Mapping[str, object]) -> object:
        if not local and id(node) in self._known:
            return self._known[id(node)][1]
        value = self._value(node, local)
        if isinstance(value, str | bytes | list | tuple | set | dict) and len(value) > LONGEST:
            raise NotConstant
        return value

    def _value(self, node: ast.expr, local: Mapping[str, object]) -> object:
        match node:
            case ast.Constant(value=value):
                return value
            case ast.Name(id=name):
                return self._name(name, local)
            case ast.Tuple() | ast.List() | ast.Set() | ast.Dict():
                return self._display(node, local)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return operator.neg(_number(self._fold(operand, local)))
            case ast.BinOp():
                return self._operation(node, local)
            case ast.JoinedStr(values=parts):
                return "".join(self._formatted(part, local) for part in parts)
            case ast.Subscript(value=whole, slice=index):
                return self._item(self._fold(whole, local), index, local)
            case ast.Call():
                return self._call(node, local)
            case ast.ListComp() | ast.GeneratorExp() | ast.SetComp():
                return list(self._comprehension(node, local))
            case _:
                raise NotConstant

    def _name(self, name: str, local: Mapping[str, object]) -> object:
        if name in local:
            return local[name]
        if name not in self._names:
            raise NotConstant
        bound = self._names.pop(name)  # so that a name that leads to itself ends
        try:
            return self._fold(bound, {})
        finally:
            self._names[name] = bound

    def _display(self, node: ast.Tuple | ast.List | ast.Set | ast.Dict, local: Mapping[str, object]) -> object:
        if isinstance(node, ast.Dict):
            if any(key is None for key in node.keys):
                raise NotConstant
            keys = [self._fold(key, local) for key in node.keys if key is not None]
            return dict(zip(keys, [self._fold(value, local) for value in node.values], strict=True))
        items = [self._fold(item, local) for item in node.elts]
        return tuple(items) if isinstance(node, ast.Tuple) else set(items) if isinstance(node, ast.Set) else items

    def _operation(self, node: ast.BinOp, local: Mapping[str, object]) -> object:
        left, right = self._fold(node.left, local), self._fold(node.right, local)
        if type(node.op) not in _OPERATORS:
            raise NotConstant
        numbers = isinstance(left, int | float) and isinstance(right, int | float)
        if isinstance(node.op, ast.Mult) and not numbers and _size(left) * _size(right) > LONGEST:
            raise NotConstant
        if isinstance(node.op, ast.Mod) and not numbers and (not isinstance(left, str) or _WIDE.search(left)):
            raise NotConstant
        return _OPERATORS[type(node.op)](left, right)

    def _formatted(self, part: ast.expr, local: Mapping[str, object]) -> str:
        match part:
            case ast.Constant(value=str(text)):
                return text
            case ast.FormattedValue(value=value, conversion=-1, format_spec=None):
                return str(self._fold(value, local))
            case _:
                raise NotConstant

    def _item(self, whole: object, index: ast.expr, local: Mapping[str, object]) -> object:
        if not isinstance(whole, str | bytes | list | tuple | dict):
            raise NotConstant
        if isinstance(index, ast.Slice):
            parts = [None if p is None else self._fold(p, local) for p in (index.lower, index.upper, index.step)]
            return _GET(whole, _SLICE(*parts))
        return _GET(whole, self._fold(index, local))

    def _call(self, node: ast.Call, local: Mapping[str, object]) -> object:
        if node.keywords:
            raise NotConstant
        match node.func:
            case ast.Attribute(attr="decode" | "encode", value=ast.Name(id="codecs")):
                return self._codec(node, local)
            case ast.Attribute(attr=name) | ast.Name(id=name) if name in _CALLS:
                return _bounded(_CALLS[name], [self._fold(arg, local) for arg in node.args])
            case ast.Name(id="map"):
                return self._mapped(node, local)
            case ast.Attribute(attr=name, value=value) if name in _METHODS:
                return self._method(self._fold(value, local), name, [self._fold(arg, local) for arg in node.args])
            case _:
                raise NotConstant

    def _codec(self, node: ast.Call, local: Mapping[str, object]) -> object:
        values = [self._fold(arg, local) for arg in node.args]
        if len(values) != 2 or values[1] not in _CODECS:
            raise NotConstant
        return _DECODE(values[0], str(values[1]))

    def _mapped(self, node: ast.Call, local: Mapping[str, object]) -> object:
        """`map(chr, …)`, the usual way to hide a text in numbers."""
        if len(node.args) != 2 or not isinstance(node.args[0], ast.Name) or node.args[0].id not in _CALLS:
            raise NotConstant
        function, items = _CALLS[node.args[0].id], self._fold(node.args[1], local)
        return [_bounded(function, [item]) for item in _items(items)]

    def _method(self, value: object, name: str, args: list[object]) -> object:
        if not isinstance(value, str | bytes):
            raise NotConstant
        if name in ("decode", "encode") and args and args[0] not in _CODECS:
            raise NotConstant
        if name == "replace" and sum(map(_size, args)) * max(_size(value), 1) > LONGEST:
            raise NotConstant
        if name == "format" and ":" in str(value):
            raise NotConstant
        return getattr(value, name)(*args)

    def _comprehension(
        self, node: ast.ListComp | ast.GeneratorExp | ast.SetComp, local: Mapping[str, object]
    ) -> Iterator[object]:
        if len(node.generators) != 1:
            raise NotConstant
        over = node.generators[0]
        if over.ifs or over.is_async or not isinstance(over.target, ast.Name):
            raise NotConstant
        for item in _items(self._fold(over.iter, local)):
            yield self._fold(node.elt, {**local, over.target.id: item})


def constant_names(nodes: Iterable[ast.AST]) -> dict[str, ast.expr]:
    """Names that a file binds exactly once, by a plain assignment, and to what."""
    bound: Counter[str] = Counter()
    values: dict[str, ast.expr] = {}
    for node in nodes:
        values.update(assigned(node))
        bound.update(_binds(node))
    return {name: value for name, value in values.items() if bound[name] == 1}


def _binds(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()) | ast.arg(arg=name):
            yield name
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.Global(names=names) | ast.Nonlocal(names=names):
            yield from names
        case ast.alias(name=name, asname=other):
            yield other or name
        case _:
            pass


def _number(value: object) -> int | float | complex:
    if isinstance(value, int | float | complex):
        return value
    raise NotConstant


def _size(value: object) -> int:
    if isinstance(value, int | float):
        return int(min(abs(value), LONGEST + 1))
    return len(value) if isinstance(value, str | bytes | list | tuple) else 0


def _items(value: object) -> list[object]:
    if isinstance(value, str | bytes | list | tuple | set) and len(value) <= LONGEST:
        return list(value)
    raise NotConstant


def _bounded(function: Callable[..., object], values: list[object]) -> object:
    if function is bytes and any(isinstance(value, int) for value in values):
        raise NotConstant
    if any(isinstance(value, str | bytes) and len(value) > LONGEST for value in values):
        raise NotConstant
    return function(*values)
