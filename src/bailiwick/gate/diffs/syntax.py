"""Python source as a syntax tree, with what every reading of a diff asks of one."""

from __future__ import annotations

import ast
import io
import tokenize
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

Function = ast.FunctionDef | ast.AsyncFunctionDef
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
IMPORTS = (ast.Import, ast.ImportFrom)
_UNREADABLE = (SyntaxError, ValueError, LookupError, RecursionError, MemoryError)


class Unreadable(Exception):
    """The source is not Python that this interpreter understands; the message says why."""


@dataclass(frozen=True, slots=True)
class Parsed:
    """A source that could be read: its text, the encoding of the file, its tree."""

    text: str
    encoding: str
    tree: ast.Module


def parse(source: bytes) -> Parsed:
    """Read a source file by its own encoding; raises `Unreadable`."""
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(source).readline)
        text = source.decode(encoding)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return Parsed(text, encoding, ast.parse(text))
    except _UNREADABLE as error:
        raise Unreadable(_why(error)) from error


def parse_or_none(source: bytes | None) -> Parsed | None:
    """Read a source file; None where there is none or where it can't be read."""
    if source is None:
        return None
    try:
        return parse(source)
    except Unreadable:
        return None


def nodes_of(source: bytes | None) -> Iterator[ast.AST]:
    """Every node of a source; none where there is none or where it can't be read."""
    parsed = parse_or_none(source)
    return ast.walk(parsed.tree) if parsed is not None else iter(())


def compiles(text: str) -> bool:
    """Whether a text is a whole module."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(text, "<changed>", "exec", dont_inherit=True)
    except _UNREADABLE:
        return False
    return True


def is_docstring(statement: ast.stmt) -> bool:
    """Whether a statement is a text and nothing else."""
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def without_docstring(body: Sequence[ast.stmt]) -> Sequence[ast.stmt]:
    """A body without the docstring it begins with."""
    return body[1:] if body and is_docstring(body[0]) else body


def first_line(node: Function | ast.ClassDef) -> int:
    """The line of `def` or `class`, or of the first decorator."""
    return min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])


def parameters(function: Function | ast.Lambda) -> frozenset[str]:
    """The names of all that a function is given."""
    args = function.args
    rest = [one for one in (args.vararg, args.kwarg) if one is not None]
    return frozenset(one.arg for one in (*args.posonlyargs, *args.args, *args.kwonlyargs, *rest))


def outermost_functions(body: Sequence[ast.stmt], prefix: str = "") -> Iterator[tuple[str, Function]]:
    """Functions and methods that stand in no other function, with their qualified names, in order."""
    for statement in body:
        if isinstance(statement, FUNCTIONS):
            yield f"{prefix}{statement.name}", statement
        elif isinstance(statement, ast.ClassDef):
            yield from outermost_functions(statement.body, f"{prefix}{statement.name}.")
        else:
            for block in blocks_of(statement):
                yield from outermost_functions(block, prefix)


def blocks_of(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    """The blocks of a compound statement: the branches of an `if`, the handlers of a `try`, the cases of a `match`."""
    for name in ("body", "orelse", "finalbody"):
        block = getattr(statement, name, None)
        if isinstance(block, list):
            yield block
    for part in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
        yield part.body


def last_name(node: ast.AST | None) -> str:
    """The last part of a dotted name; empty for what is none."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""


def called_name(node: ast.AST | None) -> str:
    """The last part of the name that a call calls; empty for what is no such call."""
    return last_name(node.func) if isinstance(node, ast.Call) else ""


def assigned(statement: ast.AST) -> list[tuple[str, ast.expr]]:
    """The names that an assignment gives a value, each with it."""
    match statement:
        case ast.Assign(targets=targets, value=value):
            return [(target.id, value) for target in targets if isinstance(target, ast.Name)]
        case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
            return [(name, value)]
        case _:
            return []


def definitions(body: Sequence[ast.stmt]) -> dict[str, tuple[str, int]]:
    """The functions and values of a module by name: all that says what they mean, and their last line."""
    found: dict[str, tuple[str, int]] = {}
    for node in body:
        texts = {name: ast.dump(value) for name, value in assigned(node)}
        if isinstance(node, FUNCTIONS):
            texts[node.name] = "".join(map(ast.dump, (node.args, *without_docstring(node.body))))
        for name, text in texts.items():
            found[name] = (found.get(name, ("", 0))[0] + text, node.lineno)
    return found


def bound_by(alias: ast.alias, statement: ast.Import | ast.ImportFrom) -> str:
    """The name that an import binds; `*` for all."""
    if alias.asname:
        return alias.asname
    return alias.name.partition(".")[0] if isinstance(statement, ast.Import) else alias.name


def single_imports(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """A body in which every import brings one name, so that a longer list of names is a list with one more."""
    for statement in body:
        match statement:
            case ast.Import(names=names) if len(names) > 1:
                for alias in names:
                    yield ast.copy_location(ast.Import([alias]), statement)
            case ast.ImportFrom(names=names) if len(names) > 1:
                for alias in names:
                    yield ast.copy_location(ast.ImportFrom(statement.module, [alias], statement.level), statement)
            case _:
                yield statement


def _why(error: BaseException) -> str:
    match error:
        case SyntaxError():
            return f"line {error.lineno}: {error.msg}" if error.lineno else str(error.msg)
        case RecursionError() | MemoryError():
            return "it is nested too deeply"
        case _:
            return str(error)
