"""What a model has to know of a project to add a test: its files, the module concerned, the nearest test. Pure."""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bailiwick.gate.testfiles import is_test_file
from bailiwick.skills.material import CODE, imported, mentioned

MOST_LISTED = 200
"""Paths in a listing; of more, the rest is counted."""
MOST_CHARACTERS = 8_000
MOST_READ = 60
"""Code files whose definitions are compared with the words of a task."""
_WORD = re.compile(r"[A-Za-z][a-z0-9]+|[A-Z]+(?![a-z])")
_DEFINED = re.compile(
    r"^[ \t]*(?:export |pub |async |public |static )*(?:def|class|function|func|fn|const|struct|type)\s+(\w+)",
    re.MULTILINE,
)
_MARKS = ("test_", "_test", ".test", ".spec", "_spec", "-test", "-spec")
_SHORTEST = 3


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
    room = MOST_CHARACTERS
    for path in sorted(files, key=lambda one: (one.count("/"), one))[:MOST_LISTED]:
        room -= len(path) + 1
        if room < 0:
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
    return frozenset(word.lower() for word in _WORD.findall(text) if len(word) >= _SHORTEST)


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
