"""Whether a new version of a file only adds to it, and which public names a change loses. Pure."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from bailiwick.gate.diffs.appended import appended
from bailiwick.gate.diffs.syntax import FUNCTIONS, bound_by, parse_or_none

_HIDES = re.compile(
    r"/\*|<!--|^=begin|^#if|\"\"\"|'''|\.(?:skip|only|todo)\b|\b(?:xit|xdescribe|xtest|xcontext|fit|fdescribe)\s*\("
    r"|#\[ignore|\bif\s*\(?\s*(?:false|0)\b",
    re.MULTILINE,
)
"""What in an added line may keep the lines that were there from counting."""
_NAME = r"(?P<name>[A-Za-z_$][\w$]*)"
_KEYWORD = r"(?:function\*?|class|const|let|var|interface|type|enum)"
_EXPORTED = {
    (".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".mts"): (
        rf"^\s*export\s+(?:(?:default|declare|abstract|async)\s+)*{_KEYWORD}\s+{_NAME}",
        rf"^\s*(?:module\.)?exports\.{_NAME}\s*=",
    ),
    (".go",): (r"^func\s+(?:\([^)]*\)\s*)?(?P<name>[A-Z]\w*)", r"^(?:type|var|const)\s+(?P<name>[A-Z]\w*)"),
    (".rs",): (
        rf"^\s*pub\s+(?:async\s+|unsafe\s+|const\s+)*(?:fn|struct|enum|trait|type|static|mod|union)\s+{_NAME}",
        rf"^\s*pub\s+const\s+{_NAME}\s*:",
    ),
    (".rb",): (rf"^\s*(?:def\s+(?:self\.)?|class\s+|module\s+){_NAME}",),
    (".java", ".kt", ".cs"): (rf"^\s*public\s+(?:[\w<>\[\],.?]+\s+)*?{_NAME}\s*[({{]",),
}
_LISTED = re.compile(r"^\s*export\s*\{([^}]*)\}", re.MULTILINE)


def only_adds(old: bytes, new: bytes, path: str) -> bool:
    """Whether a test file has all that it had, unchanged and still counting, and perhaps more."""
    if old == new:
        return True
    if path.endswith(".py"):
        return appended(old, new) is not None
    added: list[bytes] = []
    left = [line.rstrip() for line in old.splitlines()]
    for line in new.splitlines():
        if left and line.rstrip() == left[0]:
            left.pop(0)
        else:
            added.append(line)
    return not left and not _HIDES.search(b"\n".join(added).decode("utf-8", "replace"))


def public_names(source: bytes, path: str) -> frozenset[str]:
    """The names of a file that others may use, `Class.method` for what classes have; empty where that can't be told."""
    if path.endswith(".py"):
        parsed = parse_or_none(source)
        return frozenset(_python_names(parsed.tree, path)) if parsed is not None else frozenset()
    text = source.decode("utf-8", "replace")
    return frozenset(_exported(text, path))


def lost_names(old: bytes, new: bytes | None, path: str) -> list[str]:
    """The public names that a file had and has no more, in order."""
    had = public_names(old, path)
    if not had or new is None:
        return sorted(had)
    parsed = parse_or_none(new) if path.endswith(".py") else None
    if parsed is None:
        return sorted(had - public_names(new, path))
    has = _Bound(parsed.tree)
    return sorted(name for name in had if not has.holds(name))


def _exported(text: str, path: str) -> Iterator[str]:
    for ends, patterns in _EXPORTED.items():
        if path.endswith(ends):
            for pattern in patterns:
                yield from (match["name"] for match in re.finditer(pattern, text, re.MULTILINE))
            if ends[0] == ".js":
                for listed in _LISTED.findall(text):
                    yield from (part.split()[-1] for part in listed.split(",") if part.strip())


def _python_names(module: ast.Module, path: str) -> Iterator[str]:
    listed = _all_of(module)
    imports = path.endswith("__init__.py")
    for statement in module.body:
        for name in _bound(statement, imports=imports):
            if not name.startswith("_") and (listed is None or name in listed):
                yield name
        if isinstance(statement, ast.ClassDef) and not statement.name.startswith("_"):
            yield from (
                f"{statement.name}.{inner.name}"
                for inner in statement.body
                if isinstance(inner, FUNCTIONS) and not inner.name.startswith("_")
            )
    yield from listed or ()


def _all_of(module: ast.Module) -> frozenset[str] | None:
    """What `__all__` lists; None where there is none that can be read."""
    for statement in module.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id="__all__")], value=ast.List(elts=parts) | ast.Tuple(elts=parts)):
                return frozenset(str(part.value) for part in parts if isinstance(part, ast.Constant))
            case _:
                continue
    return None


def _bound(statement: ast.stmt, *, imports: bool) -> Iterator[str]:
    match statement:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            yield from (bound_by(alias, statement) for alias in names if imports or alias.asname == alias.name)
        case ast.Assign() | ast.AnnAssign():
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            found = (node for target in targets for node in ast.walk(target))
            yield from (node.id for node in found if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
        case ast.If(body=body, orelse=other) | ast.Try(body=body, orelse=other):
            for inner in (*body, *other):
                yield from _bound(inner, imports=imports)
        case _:
            return


class _Bound:
    """What a Python file binds, however it does it."""

    def __init__(self, module: ast.Module) -> None:
        names = [name for statement in module.body for name in _bound(statement, imports=True)]
        self._names = frozenset(names)
        self._open = "*" in self._names or "__getattr__" in self._names
        self._classes = {node.name: node for node in module.body if isinstance(node, ast.ClassDef)}

    def holds(self, name: str) -> bool:
        """Whether a name, or a method of a class, can still be used."""
        owner, dot, method = name.partition(".")
        if self._open or not dot:
            return self._open or name in self._names
        return self._has(owner, method, frozenset())

    def _has(self, owner: str, method: str, seen: frozenset[str]) -> bool:
        """Whether a class has a method; one that comes from elsewhere, or has a base from there, may."""
        found = self._classes.get(owner)
        if found is None:
            return owner in self._names
        if any(method in _bound(statement, imports=True) for statement in found.body):
            return True
        bases = [base.id if isinstance(base, ast.Name) else "" for base in found.bases]
        return any(
            base not in seen and (base not in self._classes or self._has(base, method, seen | {owner}))
            for base in bases
            if base != "object"
        )
