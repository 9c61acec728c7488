"""Whether a computed module name can only mean a part of the own package: it begins with a dot that can be read. Pure.

Packages that load their parts late import them by a name from a table: `import_module(_LAZY[name], __name__)`. That is
no way to hide a module, as long as every value of the table begins with a dot and nothing can change the table.
"""

from __future__ import annotations

import ast
from collections.abc import Collection

_OWN = ("__name__", "__package__")
_READING = frozenset({"get", "keys", "values", "items", "copy"})


def is_relative(name: ast.expr, nodes: Collection[ast.AST], steps: int = 4) -> bool:
    """Whether an expression is a text that begins with a dot, as far as `nodes`, all of its file, tell."""
    if not steps:
        return False
    match name:
        case ast.Constant(value=str(text)):
            return text.startswith(".")
        case ast.JoinedStr(values=[ast.Constant(value=str(text)), *_]):
            return text.startswith(".")
        case (
            ast.JoinedStr(values=[ast.FormattedValue(value=ast.Name(id=own)), ast.Constant(value=str(text)), *_])
            | ast.BinOp(left=ast.BinOp(left=ast.Name(id=own), right=ast.Constant(value=str(text))))
        ) if own in _OWN:
            return text.startswith(".") and not _is_bound(own, nodes)
        case ast.BinOp(left=left, op=ast.Add()):
            return is_relative(left, nodes, steps - 1)
        case ast.Subscript(value=ast.Name(id=table)):
            return _is_table(table, nodes)
        case ast.Name(id=variable):
            given = _assigned(variable, nodes)
            return bool(given) and all(is_relative(value, nodes, steps - 1) for value in given)
        case _:
            return False


def _is_bound(variable: str, nodes: Collection[ast.AST]) -> bool:
    """Whether a file gives a name, which every module has, a meaning of its own."""
    own = (node for node in nodes if isinstance(node, ast.Name | ast.arg))
    return any(
        one.arg == variable if isinstance(one, ast.arg) else one.id == variable and isinstance(one.ctx, ast.Store)
        for one in own
    )


def _assigned(variable: str, nodes: Collection[ast.AST]) -> list[ast.expr]:
    """What is assigned to a name anywhere in the file; empty where it is also bound in other ways."""
    found: list[ast.expr] = []
    stores = 0
    for node in nodes:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if name == variable:
                found.append(value)
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value) if name == variable:
                found.append(value)
            case ast.Name(id=name, ctx=ast.Store()) if name == variable:
                stores += 1
            case ast.arg(arg=name) if name == variable:
                return []
            case _:
                pass
    return found if stores == len(found) else []


def _is_table(table: str, nodes: Collection[ast.AST]) -> bool:
    """Whether a name always means one dictionary of texts that begin with a dot, which is only read."""
    given = _assigned(table, nodes)
    if len(given) != 1 or not isinstance(given[0], ast.Dict):
        return False
    texts = [value.value if isinstance(value, ast.Constant) else None for value in given[0].values]
    if not texts or not all(isinstance(text, str) and text.startswith(".") for text in texts):
        return False
    used = {id(part) for node in nodes if _reads(node, table) for part in ast.iter_child_nodes(node)}
    return all(id(node) in used for node in nodes if _is_load(node, table) and not _is_iterated(node, nodes))


def _reads(node: ast.AST, table: str) -> bool:
    match node:
        case ast.Subscript(value=ast.Name(id=name), ctx=ast.Load()):
            return name == table
        case ast.Attribute(value=ast.Name(id=name), attr=attribute):
            return name == table and attribute in _READING
        case _:
            return False


def _is_load(node: ast.AST, table: str) -> bool:
    return isinstance(node, ast.Name) and node.id == table and isinstance(node.ctx, ast.Load)


def _is_iterated(name: ast.AST, nodes: Collection[ast.AST]) -> bool:
    """Whether a name only gives its keys there: `name in TABLE`, `*TABLE`, `for name in TABLE`, `sorted(TABLE)`."""
    for node in nodes:
        match node:
            case ast.Compare(comparators=[right]) if right is name:
                return True
            case ast.Starred(value=value) | ast.comprehension(iter=value) | ast.For(iter=value) if value is name:
                return True
            case ast.Call(func=ast.Name(id="sorted" | "list" | "set" | "tuple" | "len"), args=[one]) if one is name:
                return True
            case _:
                pass
    return False
