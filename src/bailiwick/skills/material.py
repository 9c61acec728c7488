"""Which files of a project a model without tools should see: named, mentioned, or imported by a test. Pure."""

from __future__ import annotations

import ast
import posixpath
import re
from collections.abc import Iterable, Iterator, Sequence

MOST = 40
"""Files that are chosen at most, besides those that a caller named."""
MOST_IN_FOLDER = 200
_PATH = re.compile(r"[\w@+.-]*(?:/[\w@+.-]+)+|[\w@+-]+\.[A-Za-z]\w{0,5}\b")
_WORD = re.compile(r"[A-Za-z_]\w{2,}")
_SCRIPT = re.compile(r"""(?:from|import|require\()\s*['"](\.{1,2}/[^'"]+)['"]""")
_ENDS = ("", ".ts", ".tsx", ".js", ".jsx", ".mjs", ".cjs", "/index.ts", "/index.js")
_SOURCES = ("", "src/", "lib/", "python/")
CODE = (".py", ".js", ".ts", ".tsx", ".jsx", ".mjs", ".go", ".rs", ".rb", ".java", ".kt", ".c", ".h", ".cpp", ".php")


def expanded(names: Sequence[str], files: Sequence[str]) -> tuple[list[str], list[str]]:
    """Named files, and the files of named folders; then the names that are neither."""
    known = frozenset(files)
    found: dict[str, None] = {}
    missing = []
    for name in names:
        below = [path for path in files if path.startswith(f"{name}/") or name == "."][:MOST_IN_FOLDER]
        if name in known:
            found[name] = None
        elif below:
            found.update(dict.fromkeys(below))
        else:
            missing.append(name)
    return list(found), missing


def mentioned(text: str, files: Sequence[str], root: str = "") -> list[str]:
    """Files that a text names: by their path, by the end of it where that is unmistakable, or code by its bare name."""
    known = frozenset(files)
    found: dict[str, None] = {}
    for match in _PATH.finditer(text.replace(f"{root}/", "") if root else text):
        path = match[0].removeprefix("./").lstrip("/")
        ends = [path] if path in known else [one for one in files if one.endswith(f"/{path}")]
        if len(ends) == 1:
            found[ends[0]] = None
    words = frozenset(_WORD.findall(text))
    stems: dict[str, list[str]] = {}
    for one in files:
        name, dot, end = one.rpartition("/")[2].rpartition(".")
        if name in words and dot + end in CODE:
            stems.setdefault(name, []).append(one)
    found.update((paths[0], None) for paths in stems.values() if len(paths) == 1)
    return list(found)[:MOST]


def imported(source: bytes, path: str, files: Iterable[str]) -> list[str]:
    """Files of the project that a test imports, as far as that can be told from its text."""
    known = frozenset(files)
    if path.endswith(".py"):
        wanted: Iterable[str] = _python(source, path)
    elif path.endswith(".go"):
        folder = posixpath.dirname(path)
        return sorted(one for one in known if posixpath.dirname(one) == folder and one.endswith(".go"))[:MOST]
    else:
        wanted = _script(source, path)
    return list(dict.fromkeys(one for one in wanted if one in known and one != path))[:MOST]


def _python(source: bytes, path: str) -> Iterator[str]:
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return
    folder = posixpath.dirname(path)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = folder.split("/")[: len(folder.split("/")) - node.level + 1] if node.level else []
            base = ".".join([*filter(None, above), *([node.module] if node.module else [])])
            modules = [base, *(f"{base}.{alias.name}" for alias in node.names)]
        else:
            continue
        for module in modules:
            yield from _module_files(module.replace(".", "/"), folder)


def _module_files(module: str, folder: str) -> Iterator[str]:
    for top in (*_SOURCES, f"{folder}/" if folder else ""):
        yield f"{top}{module}.py"
        yield f"{top}{module}/__init__.py"


def _script(source: bytes, path: str) -> Iterator[str]:
    folder = posixpath.dirname(path)
    for name in _SCRIPT.findall(source.decode("utf-8", "replace")):
        base = posixpath.normpath(posixpath.join(folder, name))
        yield from (base + end for end in _ENDS)
        yield from (base.removesuffix(".js") + end for end in _ENDS if base.endswith(".js"))
