"""Which functions a change touches, and how a statement is put at their start."""

from __future__ import annotations

import ast
import builtins
import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from bailiwick.gate.diffs.layout import Edit, Layout
from bailiwick.gate.diffs.lines import added
from bailiwick.gate.diffs.syntax import (
    FUNCTIONS,
    IMPORTS,
    Function,
    Parsed,
    Unreadable,
    bound_by,
    compiles,
    first_line,
    is_docstring,
    outermost_functions,
    parse,
    parse_or_none,
    single_imports,
    without_docstring,
)

_BLOCKS = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Try, ast.TryStar, ast.Match)
_COMPOUND = (*_BLOCKS, *FUNCTIONS, ast.ClassDef)


@dataclass(frozen=True, slots=True)
class ChangedFunction:
    """A function of the new source; `line` is that of `def` or of the first decorator."""

    qualname: str
    line: int
    name: str


@dataclass(frozen=True, slots=True)
class ChangedCode:
    """What a change touches in a file; `unreadable` says why nobody can know, empty where all is known."""

    functions: tuple[ChangedFunction, ...]
    module_level: bool
    unreadable: str


def changed_code(old: bytes | None, new: bytes) -> ChangedCode:
    """The outermost functions that behave otherwise by their syntax trees, and whether code outside of them does.

    Comments, docstrings and annotations don't count, except where a decorator or a class may read the annotation. A
    deleted function, another default, decorator, base class or class attribute counts as code outside of functions;
    an import that is only added doesn't, unless it takes a name that meant something else.
    """
    try:
        after = parse(new)
        before = parse_or_none(old)
        return _compare(before, after, known=before is not None or old is None)
    except Unreadable as error:
        return ChangedCode((), module_level=True, unreadable=str(error))
    except RecursionError:
        return ChangedCode((), module_level=True, unreadable="it is nested too deeply")


def functions_of(source: bytes) -> tuple[ChangedFunction, ...]:
    """All outermost functions and methods of a source; none where it can't be read."""
    parsed = parse_or_none(source)
    if parsed is None:
        return ()
    return tuple(_as_changed(name, node) for name, node in outermost_functions(parsed.tree.body))


def insert_at_start(
    source: bytes, functions: Sequence[ChangedFunction], text: Callable[[ChangedFunction], str]
) -> bytes:
    """The source with a simple statement at the start of each function, behind its docstring.

    Lines keep their numbers, except below a function that begins with a block and has no docstring. A function that
    is not found, or where the result would be no Python, is left as it is.
    """
    parsed = parse_or_none(source)
    if parsed is None:
        return source
    nodes = {(first_line(node), node.name): node for _, node in outermost_functions(parsed.tree.body)}
    layout = Layout(parsed.text.encode("utf-8"))
    edits = [
        _edit(layout, node, text(function))
        for function in functions
        if (node := nodes.get((function.line, function.name))) is not None
    ]
    whole = _applied(parsed, layout, edits)
    if whole is not None:
        return whole
    kept: list[Edit] = []
    for edit in edits:
        if _applied(parsed, layout, [*kept, edit]) is not None:
            kept.append(edit)
    return _applied(parsed, layout, kept) or source


def _edit(layout: Layout, node: Function, text: str) -> Edit:
    first = node.body[0]
    if is_docstring(first):
        place, text = layout.end(first), f"; {text}"
    elif not isinstance(first, _COMPOUND):
        place, text = layout.start(first), f"{text}; "
    else:
        line = first_line(first) if isinstance(first, (*FUNCTIONS, ast.ClassDef)) else first.lineno
        place, text = layout.line_start(line), f"{layout.indent(first)}{text}{layout.newline(line)}"
    return Edit(place, place, text)


def _applied(parsed: Parsed, layout: Layout, edits: Sequence[Edit]) -> bytes | None:
    """The file with all edits; None where that is no Python, or can't be written in the file's encoding."""
    changed = layout.apply(edits)
    if not compiles(changed):
        return None
    try:
        return changed.encode(parsed.encoding)
    except UnicodeEncodeError:
        return None


def _as_changed(qualname: str, node: Function) -> ChangedFunction:
    return ChangedFunction(qualname, first_line(node), node.name)


def _compare(before: Parsed | None, after: Parsed, *, known: bool) -> ChangedCode:
    was = _by_name(before.tree.body if before is not None else [])
    now = _by_name(after.tree.body)
    changed: list[ChangedFunction] = []
    module = not known or any(name not in now for name in was)
    for name, nodes in now.items():
        old = was.get(name, [])
        fresh = list(added(map(_behaviour, old), nodes, key=_behaviour))
        changed += [_as_changed(name, node) for node in fresh]
        module = module or (bool(old) and (_shells(old) != _shells(nodes) or (not fresh and len(old) != len(nodes))))
        module = module or (not fresh and [_behaviour(n) for n in old] != [_behaviour(n) for n in nodes])
    module = module or _module_differs(before.tree if before is not None else ast.Module([], []), after.tree)
    return ChangedCode(tuple(sorted(changed, key=lambda f: f.line)), module, "")


def _by_name(body: Sequence[ast.stmt]) -> dict[str, list[Function]]:
    found: dict[str, list[Function]] = {}
    for name, node in outermost_functions(body):
        found.setdefault(name, []).append(node)
    return found


def _behaviour(node: Function) -> str:
    return ast.dump(_Bare().visit(copy.deepcopy(node)))


def _shells(nodes: Sequence[Function]) -> list[str]:
    """What runs where a function is defined: its decorators and defaults, and annotations that a decorator may read."""
    found = []
    for node in nodes:
        parts: list[ast.expr | ast.arguments | None] = [
            *node.decorator_list,
            *node.args.defaults,
            *node.args.kw_defaults,
        ]
        if node.decorator_list:
            parts += [node.args, node.returns]
        found.append(" ".join(ast.dump(part) if part is not None else "-" for part in parts))
    return found


class _Bare(ast.NodeTransformer):
    """Takes away what does not change behaviour: docstrings, annotations of functions and of their variables."""

    def visit_FunctionDef(self, node: Function) -> ast.AST:
        node.body = list(without_docstring(node.body)) or [ast.Pass()]
        node.returns = None
        for name in {"type_params"}.intersection(node._fields):
            setattr(node, name, [])
        return self.generic_visit(node)

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815  as ast calls it

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.annotation = None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST | None:
        if node.value is None:
            return ast.Pass()
        return self.generic_visit(ast.Assign([node.target], node.value))

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        """A class inside of a function: its annotations are its own business, and stay."""
        node.body = [
            inner if isinstance(inner, ast.AnnAssign) else self.visit(inner) for inner in without_docstring(node.body)
        ] or [ast.Pass()]
        return node


def _module_differs(before: ast.Module, after: ast.Module) -> bool:
    """Whether anything that runs when a module is imported differs, functions themselves left out."""
    old, new = list(_skeleton(before.body)), list(_skeleton(after.body))
    was, now = ([(dump, node) for dump, node in side if isinstance(node, IMPORTS)] for side in (old, new))
    fresh = [node for _, node in added((dump for dump, _ in was), now, key=lambda pair: pair[0])]
    if len(now) - len(fresh) < len(was) or any(_takes_a_name(node, before) for node in fresh):
        return True
    before_rest, rest = ([dump for dump, node in side if not isinstance(node, IMPORTS)] for side in (old, new))
    return before_rest != rest


def _takes_a_name(node: ast.Import | ast.ImportFrom, before: ast.Module) -> bool:
    """Whether an added import brings everything, or a name that meant something else before."""
    names = {bound_by(alias, node) for alias in node.names}
    return "*" in names or any(hasattr(builtins, name) for name in names) or bool(names & _bound(before))


def _bound(module: ast.Module) -> set[str]:
    """Names that a module binds at its top, whatever by."""
    found: set[str] = set()
    for node in module.body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                found.add(name)
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                found.update(bound_by(alias, node) for alias in names)
            case _:
                found.update(n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
    return found


def _skeleton(body: Sequence[ast.stmt]) -> Iterator[tuple[str, ast.stmt]]:
    """The statements of a module with functions left out, and classes that hold nothing else."""
    for statement in single_imports(without_docstring(body)):
        if isinstance(statement, FUNCTIONS):
            continue
        bare = _Hollow().visit(copy.deepcopy(statement))
        if isinstance(bare, ast.ClassDef) and _only_functions(bare, statement):
            continue
        yield ast.dump(bare), statement


def _only_functions(bare: ast.ClassDef, whole: ast.stmt) -> bool:
    plain = not (bare.body or bare.bases or bare.keywords or bare.decorator_list)
    return plain and any(isinstance(inner, FUNCTIONS) for inner in getattr(whole, "body", ()))


class _Hollow(ast.NodeTransformer):
    """Takes functions and docstrings out of statements."""

    def visit_FunctionDef(self, node: Function) -> None:
        return None

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815  as ast calls it

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        node.body = [inner for inner in without_docstring(node.body) if not isinstance(inner, ast.Pass)]
        return self.generic_visit(node)
