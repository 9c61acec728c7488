"""Rewrites tests so that each must fail: one expected operand is exchanged for an object that nothing equals. Pure.

Text is only put in, never taken away, so that a test keeps its id, its lines and all it does. What a test evaluated
before it still evaluates: `a == b` becomes `a == (b, X)[1]`. An object of the product that claims to equal everything
then passes, and so does every test whose outcome is not the one that is reported. How the operands are chosen is in
`Operands`; which statement is rewritten in `_choose`.
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bailiwick.gate.diffs.layout import Edit, Layout

_SWALLOWING = ("Exception", "BaseException", "AssertionError")
_SECOND = (
    "assertEqual", "assertEquals", "assertAlmostEqual", "assertAlmostEquals", "assertIs", "assertGreater",
    "assertGreaterEqual", "assertLess", "assertLessEqual", "assertListEqual", "assertDictEqual", "assertSetEqual",
    "assertTupleEqual", "assertSequenceEqual", "assertMultiLineEqual", "assertCountEqual", "assertRegex",
    "assertItemsEqual",
)  # fmt: skip
_TWIN = ("assertNotEqual", "assertNotEquals", "assertIsNot", "assertNotAlmostEqual", "assertNotAlmostEquals")
_RAISES = ("raises", "assertRaises", "assertRaisesRegex", "assertRaisesRegexp")
_LOOSE_BLOCKS = ("subTest", "test")
"""Contexts in which a failure need not end the test; `test` is that of the `subtests` fixture."""
_SIMPLE = (
    ast.Expr, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Assert, ast.Pass, ast.Delete, ast.Import, ast.ImportFrom,
    ast.Global, ast.Nonlocal,
)  # fmt: skip
"""Statements behind which another fits on the same line."""


@dataclass(frozen=True, slots=True)
class Target:
    """The function of a test: its name and the line on which it or its first decorator begins."""

    line: int
    name: str


@dataclass(frozen=True, slots=True)
class Inverted:
    """A file whose tests must fail, and which of the wanted functions were found in it."""

    source: bytes
    done: frozenset[Target]


def invert(source: bytes, targets: Iterable[Target], token: str) -> Inverted | None:
    """Rewrite the functions that are found; None for a file that can't be read. `token` makes the new names unique."""
    try:
        return _invert(source, set(targets), token)
    except RecursionError:
        return None


def _invert(source: bytes, wanted: set[Target], token: str) -> Inverted | None:
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(source).readline)
        text = source.decode(encoding)
        module = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    functions = {target: node for target, node in _functions(module) if target in wanted}
    names = Names(f"_{token}")
    raw = text.encode("utf-8")
    for plan in (_choose, _append):
        layout = Layout(raw)
        edits = [edit for node in functions.values() for edit in plan(node, layout, names)]
        changed = layout.apply(edits).decode("utf-8") + names.definitions
        if _parses(changed):
            return Inverted(changed.encode(encoding), frozenset(functions))
    return None


def _parses(text: str) -> bool:
    try:
        compile(text, "<inverted>", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


Function = ast.FunctionDef | ast.AsyncFunctionDef


def _functions(module: ast.Module) -> Iterable[tuple[Target, Function]]:
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            yield Target(first, node.name), node


@dataclass(frozen=True, slots=True)
class Names:
    """The names that are put into a file: the object that nothing equals, what is held, an error nobody raises."""

    prefix: str

    @property
    def other(self) -> str:
        return f"{self.prefix}o"

    @property
    def held(self) -> str:
        return f"{self.prefix}h"

    @property
    def error(self) -> str:
        return f"{self.prefix}e"

    @property
    def definitions(self) -> str:
        """The last line of the file: tests run when it has been executed."""
        return (
            f"\n{self.other}, {self.held}, {self.error} = object(), [], type('{self.error}', (BaseException,), {{}})\n"
        )


class Operands:
    """Exchanges operands so that what holds no longer does."""

    def __init__(self, layout: Layout, names: Names) -> None:
        self._layout = layout
        self._names = names

    def truth(self, test: ast.expr) -> list[Edit]:
        """Make the expression of an assert false, whatever its value can be made to say about itself."""
        match test:
            case ast.Compare(ops=[op], comparators=[right]):
                return self.comparison(test.left, op, right)
            case ast.Compare(ops=[*_, ast.Eq() | ast.Lt() | ast.LtE() | ast.Gt() | ast.GtE()], comparators=[*_, right]):
                return self.replace(right, self._names.other)
            case ast.BoolOp(op=ast.And(), values=[*_, last]):
                return self.truth(last)
            case ast.BoolOp(op=ast.Or(), values=values):
                return [edit for value in values for edit in self.truth(value)]
            case _:
                return self.replace(test, "False")

    def comparison(self, left: ast.expr, op: ast.cmpop, right: ast.expr) -> list[Edit]:
        """One comparison. The expected operand is the one that is written out; else the right one."""
        match op:
            case ast.NotEq() | ast.IsNot():
                return [*self.hold(left), *self.replace(right, f"{self._names.held}[-1]")]
            case ast.NotIn():
                return [*self.hold(left), *self.replace(right, f"({self._names.held}[-1],)")]
            case ast.In():
                return self.membership(left, right)
            case _:
                return self.expected(left, right)

    def expected(self, left: ast.expr, right: ast.expr) -> list[Edit]:
        """Exchange the expected one of two operands for the object that nothing equals."""
        written_left = _is_written_out(left) and not _is_written_out(right)
        return self.replace(left if written_left else right, self._names.other)

    def membership(self, member: ast.expr, container: ast.expr) -> list[Edit]:
        """Ask for a member that is not there, of the product's container; or give it one that holds only that."""
        if not _is_written_out(member) and _is_written_out(container):
            return self.replace(container, f"({self._names.other},)")
        return self.replace(member, self._names.other)

    def replace(self, node: ast.expr, by: str) -> list[Edit]:
        """Evaluate a node, but use something else."""
        return self._wrap(node, "(", f", {by})[1]")

    def hold(self, node: ast.expr) -> list[Edit]:
        """Use a node, and keep its value for the other side."""
        held = self._names.held
        return self._wrap(node, f"({held}.append((", f")), {held}[-1])[1]")

    def method(self, call: ast.Call) -> list[Edit] | None:
        """A method of unittest's TestCase; None for one that is not known."""
        name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        if any(isinstance(arg, ast.Starred) for arg in call.args[:2]) or not call.args:
            return None
        first, second = call.args[0], call.args[1] if len(call.args) > 1 else None
        single = {
            "assertTrue": "False", "assertFalse": "True", "assertIsNone": self._names.other, "assertIsNotNone": "None",
            "assert_": "False",
        }  # fmt: skip
        if name in single:
            return self.replace(first, single[name])
        if second is None:
            return None
        if name in _SECOND:
            return self.expected(first, second)
        if name in _TWIN:
            return [*self.hold(first), *self.replace(second, f"{self._names.held}[-1]")]
        match name:
            case "assertIn":
                return self.membership(first, second)
            case "assertNotIn":
                return [*self.hold(first), *self.replace(second, f"({self._names.held}[-1],)")]
            case "assertIsInstance":
                return self.replace(second, self._names.error)
            case "assertNotIsInstance":
                return self.replace(second, "object")
            case _:
                return None

    def raised(self, call: ast.Call) -> list[Edit] | None:
        """`pytest.raises` and its kin: expect an error that nobody raises; None for anything else."""
        if _called(call) in _RAISES and call.args and not isinstance(call.args[0], ast.Starred):
            return self.replace(call.args[0], self._names.error)
        return None

    def _wrap(self, node: ast.expr, before: str, after: str) -> list[Edit]:
        return [(self._layout.start(node), before), (self._layout.end(node), after)]


def _is_written_out(node: ast.expr) -> bool:
    """Whether an operand is what a person expects: a constant, a display of constants, `approx` of something."""
    match node:
        case ast.Constant():
            return True
        case ast.UnaryOp(operand=operand):
            return _is_written_out(operand)
        case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts):
            return all(_is_written_out(part) for part in parts)
        case ast.Dict(keys=keys, values=values):
            return all(key is not None and _is_written_out(key) for key in keys) and all(map(_is_written_out, values))
        case ast.Call():
            return _called(node) == "approx"
        case _:
            return False


def _called(node: ast.expr) -> str:
    """The last part of the name that is called; empty where no name is."""
    match node:
        case ast.Call(func=ast.Name(id=name)) | ast.Call(func=ast.Attribute(attr=name)):
            return name
        case _:
            return ""


def _choose(function: Function, layout: Layout, names: Names) -> list[Edit]:
    """The last assertion that surely runs; else each that may; else one that fails is put at the end."""
    found = _Found(Operands(layout, names))
    found.read(function.body, sure=True)
    if found.sure:
        return found.sure[-1]
    if found.unsure:
        return [edit for edits in found.unsure for edit in edits]
    return _append(function, layout, names)


def _append(function: Function, layout: Layout, names: Names) -> list[Edit]:
    """Let a function fail at its end, on its last line where that can be."""
    last, text = function.body[-1], f"assert {names.other} is None"
    if isinstance(last, ast.Return | ast.Raise):
        return [(layout.start(last), f"{text}; ")]
    if isinstance(last, _SIMPLE):
        return [(layout.end(last), f"; {text}")]
    return [(layout.end(last), f"\n{layout.indent(function.body[0])}{text}")]


class _Found:
    """The assertions of a function: those that run whenever it reaches its end, and those that may not."""

    def __init__(self, operands: Operands) -> None:
        self.sure: list[list[Edit]] = []
        self.unsure: list[list[Edit]] = []
        self._operands = operands

    def read(self, body: Sequence[ast.stmt], *, sure: bool) -> None:
        for statement in body:
            self._statement(statement, sure=sure)

    def _add(self, edits: list[Edit] | None, *, sure: bool) -> None:
        if edits:
            (self.sure if sure else self.unsure).append(edits)

    def _statement(self, statement: ast.stmt, *, sure: bool) -> None:
        match statement:
            case ast.Assert(test=test):
                self._add(self._operands.truth(test), sure=sure)
            case ast.Expr(value=ast.Call() as call) | ast.Assign(value=ast.Call() as call):
                raised = self._operands.raised(call) if len(call.args) > 1 else None
                self._add(raised or self._operands.method(call), sure=sure)
            case ast.With(items=items, body=body) | ast.AsyncWith(items=items, body=body):
                self._block([item.context_expr for item in items], body, sure=sure)
            case ast.Try() | ast.TryStar():
                self._attempt(statement, sure=sure)
            case ast.If() | ast.For() | ast.AsyncFor() | ast.While():
                self.read([*statement.body, *statement.orelse], sure=False)
            case ast.Match(cases=cases):
                self.read([inner for case in cases for inner in case.body], sure=False)
            case _:
                pass

    def _block(self, contexts: Sequence[ast.expr], body: Sequence[ast.stmt], *, sure: bool) -> None:
        raising = [edits for call in contexts if isinstance(call, ast.Call) and (edits := self._operands.raised(call))]
        if raising:
            self._add(raising[0], sure=sure)
            return
        if any(_called(context) == "suppress" for context in contexts):
            return
        loose = any(_called(context) in _LOOSE_BLOCKS for context in contexts)
        self.read(body, sure=sure and not loose)

    def _attempt(self, statement: ast.Try | ast.TryStar, *, sure: bool) -> None:
        caught = [name for handler in statement.handlers for name in _caught(handler.type)]
        if not any(name in _SWALLOWING for name in caught):
            self.read(statement.body, sure=sure and not statement.handlers)
        self.read(statement.orelse, sure=False)
        self.read(statement.finalbody, sure=sure)


def _caught(kind: ast.expr | None) -> list[str]:
    """The names of the errors that a handler catches."""
    match kind:
        case None:
            return ["BaseException"]
        case ast.Tuple(elts=parts):
            return [name for part in parts for name in _caught(part)]
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return [name]
        case _:
            return ["Exception"]
