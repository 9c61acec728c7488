"""Which files of a project a model should see: named, mentioned, imported by a test, near a new test. Pure."""

from __future__ import annotations

import ast
import posixpath
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from bailiwick.gate.testfiles import is_test_file

MOST = 40
"""Files that are chosen at most, besides those that a caller named."""
MOST_IN_FOLDER = 200
_PATH = re.compile(r"[\w@+.-]*(?:/[\w@+.-]+)+|[\w@+-]+\.[A-Za-z]\w{0,5}\b")
_WORD = re.compile(r"[A-Za-z_]\w{2,}")
_SCRIPT = re.compile(r"""(?:from|import|require\()\s*['"](\.{1,2}/[^'"]+)['"]""")
_ENDS = ("", ".ts", ".tsx", ".js", ".jsx", ".mjs", ".cjs", "/index.ts", "/index.js")
_SOURCES = ("", "src/", "lib/", "python/")
MOST_LISTED = 200
"""Paths in a listing; of more, the rest is counted."""
MOST_CHARACTERS = 8_000
MOST_READ = 60
"""Code files whose definitions are compared with the words of a task."""
_PART = re.compile(r"[A-Za-z][a-z0-9]+|[A-Z]+(?![a-z])")
_DEFINED = re.compile(
    r"^[ \t]*(?:export |pub |async |public |static )*(?:def|class|function|func|fn|const|struct|type)\s+(\w+)",
    re.MULTILINE,
)
_MARKS = ("test_", "_test", ".test", ".spec", "_spec", "-test", "-spec")
_SHORTEST = 3
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


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What was chosen for a task; "" where a project has no such file."""

    listing: str
    module: str = ""
    test: str = ""
    conftest: str = ""

    @property
    def shown(self) -> list[str]:
        """The files that a model without tools gets to read, the most useful first."""
        return [path for path in (self.test, self.module, self.conftest) if path]

    @property
    def lines(self) -> dict[str, str]:
        """What the task says of them."""
        told = {"project_files": self.listing, "nearest_test": self.test, "module": self.module}
        return {key: value for key, value in told.items() if value}


def listing(files: Sequence[str]) -> str:
    """The paths of a project, one in a line, within a limit: those near the top first, and how many are left out."""
    chosen: list[str] = []
    sandbox = MOST_CHARACTERS
    for path in sorted(files, key=lambda one: (one.count("/"), one))[:MOST_LISTED]:
        sandbox -= len(path) + 1
        if sandbox < 0:
            break
        chosen.append(path)
    left = len(files) - len(chosen)
    return "\n".join([*sorted(chosen), *([f"and {left} more"] if left else [])])


def candidates(text: str, files: Sequence[str]) -> list[str]:
    """The code files and tests that are worth reading to find out what a text is about, the likeliest first."""
    code = [path for path in files if path.endswith(CODE)]
    said = words_of(text)
    return sorted(code, key=lambda path: (-len(said & words_of(path)), path.count("/"), path))[:MOST_READ]


def surroundings(text: str, files: Sequence[str], sources: Mapping[str, bytes]) -> Surroundings:
    """What a text is about in a project, by what it names, else by words that it shares with paths and definitions."""
    tests = [path for path in files if is_test_file(path)]
    code = [path for path in files if path.endswith(CODE) and path not in tests and not _is_mark(path)]
    said = mentioned(text, files)
    module = next((path for path in said if path in code), "") or _likeliest(text, code, sources)
    test = next((path for path in said if path in tests), "") or _nearest(text, module, tests, sources)
    return Surroundings(listing(files), module, test, _conftest(test, frozenset(files)))


def words_of(text: str) -> frozenset[str]:
    """The words of a text, those inside names too: `parse_priceList` has three."""
    return frozenset(word.lower() for word in _PART.findall(text) if len(word) >= _SHORTEST)


def _likeliest(text: str, paths: Sequence[str], sources: Mapping[str, bytes]) -> str:
    """The file that shares most words with a text; the only one there is, where none shares any."""
    said = words_of(text)
    scores: Counter[str] = Counter()
    for path in paths:
        defined = " ".join(_DEFINED.findall(sources.get(path, b"").decode("utf-8", "replace")))
        scores[path] = 2 * len(said & words_of(posixpath.basename(path))) + len(said & words_of(defined))
    best = sorted(scores, key=lambda path: (-scores[path], path.count("/"), path))
    return best[0] if best and (scores[best[0]] or len(best) == 1) else ""


def _nearest(text: str, module: str, tests: Sequence[str], sources: Mapping[str, bytes]) -> str:
    """The test of a module by its name, else one that imports it, else the likeliest, else the first."""
    stem = _stem(module)
    by_name = [path for path in tests if module and _stem(path) == stem]
    importing = [path for path in tests if module in imported(sources.get(path, b""), path, (module,))]
    found = [*by_name, *importing]
    return found[0] if found else _likeliest(text, tests, sources) or min(tests, key=_depth, default="")


def _depth(path: str) -> tuple[int, str]:
    return path.count("/"), path


def _stem(path: str) -> str:
    """A file's name without its ends and without what marks a test."""
    name = posixpath.basename(path)
    name = name[: name.rfind(".")] if "." in name else name
    for mark in _MARKS:
        name = name.removeprefix(mark).removesuffix(mark)
    return name


def _is_mark(path: str) -> bool:
    return posixpath.basename(path) in ("__init__.py", "conftest.py", "setup.py")


def _conftest(test: str, files: frozenset[str]) -> str:
    """The settings that pytest loads for a test, nearest first."""
    folder = posixpath.dirname(test)
    while test:
        path = posixpath.join(folder, "conftest.py")
        if path in files:
            return path
        if not folder:
            return ""
        folder = posixpath.dirname(folder)
    return ""
