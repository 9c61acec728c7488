"""How the tests of a Python project are run. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

from bailiwick.gate.detection.project import PytestSettings
from bailiwick.gate.testfiles import is_test_file

_TOP = ("tests", "test", "testing", "unittests", "unit_tests", "t")
_INNER = re.compile(r"((?:src/|lib/)?[\w.-]+(?:/[\w.-]+)?/_?tests?)/.*")
_NOT_TESTS = re.compile(r"(?:docs?|examples?|bench\w*|benchmarks?|perf\w*|build|scripts?|tools?|fuzz\w*)/")


def pytest_words(settings: PytestSettings, files: Iterable[str], plugins: Iterable[str]) -> tuple[str, ...]:
    """The arguments of pytest: quiet, in order, one process, no coverage, where the tests are."""
    return ("-q", *_switches(settings, set(plugins)), *_paths(settings, files))


def unittest_words(files: Iterable[str]) -> tuple[str, ...]:
    """The arguments of unittest for projects that don't use pytest."""
    places = test_places(files)
    if len(places) == 1 and not places[0].endswith(".py"):
        return ("discover", "-s", places[0], "-t", ".")
    return ("discover",)


def _switches(settings: PytestSettings, plugins: set[str]) -> Iterable[str]:
    words = settings.addopts
    if any(word.startswith("--cov") for word in words):
        yield "--no-cov"
    if any(re.match(r"-n(?:\d+|auto|logical)?$|--numprocesses|--dist", word) for word in words):
        yield from ("-n", "0")
    if "pytest-randomly" in plugins:
        yield from ("-p", "no:randomly")
    if "pytest-benchmark" in plugins:
        yield "--benchmark-disable"


def _paths(settings: PytestSettings, files: Iterable[str]) -> tuple[str, ...]:
    words = settings.addopts
    if settings.testpaths or any(word.startswith(("--doctest-", "--pyargs")) for word in words):
        return ()
    listed = tuple(files)
    if any(word in listed or any(path.startswith(f"{word}/") for path in listed) for word in words):
        return ()
    return test_places(listed)


def test_places(files: Iterable[str]) -> tuple[str, ...]:
    """Where tests are by the usual names: directories at the top, else inside packages, else single files."""
    listed = [path for path in files if path.endswith(".py")]
    tops = tuple(name for name in _TOP if any(path.startswith(f"{name}/") for path in listed))
    tops = (
        tuple(name for name in tops if any(is_test_file(path) for path in listed if path.startswith(f"{name}/")))
        or tops
    )
    if tops:
        return tops
    inner = sorted({found[1] for path in listed if (found := _INNER.fullmatch(path)) and not _NOT_TESTS.match(path)})
    kept = tuple(place for place in inner if not any(place.startswith(f"{other}/") for other in inner))
    if kept:
        return kept
    return tuple(path for path in listed if "/" not in path and (is_test_file(path) or path in ("tests.py", "test.py")))
