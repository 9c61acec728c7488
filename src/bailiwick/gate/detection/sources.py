"""Which extras, groups and requirements files an environment for tests is made of. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from bailiwick.gate.detection.project import Project
from bailiwick.gate.detection.reading import name_of, normal, requirement_lines, text_of, unique
from bailiwick.gate.detection.runners import Steps

TEST_NAMES = frozenset({"test", "tests", "testing", "unittest", "unittests", "unit-tests", "unit", "pytest"})
DEV_NAMES = frozenset({"dev", "develop", "development", "devel", "developer", "dev-dependencies", "ci"})
_NEVER = re.compile(
    r"doc|lint|typ|mypy|bench|format|style|release|publish|build|sphinx|pre-commit|notebook|tutorial|conda"
)
_NOT_NEEDED = re.compile(
    r"pre-commit|sphinx.*|mkdocs.*|furo|twine|bump.*|black|isort|flake8.*|ruff|pep8-naming|check-manifest|codecov|coveralls|tox.*|nox|towncrier|commitizen|codespell"
)
"""Tools that development groups list and tests don't need."""
_FOR_ONE = re.compile(r"\d\.(?:txt|in)$")
"""Files of requirements for one version of Python."""
_FOLDERS = (
    "",
    "requirements/",
    "requirements-",
    "tests/",
    "test/",
    "dev/",
    "ci/",
    ".ci/",
    "tools/",
    ".github/",
    "etc/",
)
_FILE = re.compile(r"(?P<folder>(?:[\w.-]+/)?)(?P<name>[\w.-]+)\.(?P<kind>txt|in|pip)")
_WORDS = re.compile(r"requirements?|reqs?|[-_.]")


@dataclass(frozen=True, slots=True)
class Sources:
    """What is installed besides the project itself."""

    extras: tuple[str, ...] = ()
    requirements: tuple[str, ...] = ()
    files: tuple[str, ...] = ()

    @property
    def empty(self) -> bool:
        """Whether nothing was found."""
        return not (self.extras or self.requirements or self.files)

    def plus(self, other: Sources) -> Sources:
        """Both together."""
        return Sources(
            unique((*self.extras, *other.extras)),
            unique((*self.requirements, *other.requirements)),
            unique((*self.files, *other.files)),
        )


def is_requirements_file(path: str) -> bool:
    """Whether a file is a list of requirements by its name and place."""
    found = _FILE.fullmatch(path)
    if found is None or not path.startswith(_FOLDERS):
        return False
    return "requirement" in found["name"] or found["folder"] == "requirements/" or found["name"].startswith("reqs")


def choose(project: Project, texts: Mapping[str, bytes], steps: Steps, level: int) -> Sources:
    """What to install for tests: test names; else names for development; else what runners install.

    Level 1 takes all three, and the extras that are features of the project.
    """
    files = _by_purpose(texts)
    tests = _named(project, TEST_NAMES, files["test"])
    tests = tests.plus(Sources((), project.tests_require))
    development = _named(project, DEV_NAMES, files["dev"])
    known = {normal(extra) for extra in project.extras}
    ran = Sources(
        tuple(extra for extra in steps.extras if normal(extra) in known and not _NEVER.search(normal(extra))),
        _settled((*steps.requirements, *(r for group in steps.groups for r in project.groups.get(normal(group), ())))),
        tuple(path for path in steps.files if path in texts and not _NEVER.search(path) and not _FOR_ONE.search(path)),
    )
    plain = Sources(files=files["plain"]) if not project.installable else Sources()
    if level:
        features = tuple(extra for extra in project.extras if not _NEVER.search(normal(extra)))
        return plain.plus(tests).plus(development).plus(ran).plus(Sources(extras=features))
    with_pytest = Sources(files=files["pytest"])
    return plain.plus(next((found for found in (tests, with_pytest, development, ran) if not found.empty), Sources()))


def _settled(requirements: Iterable[str]) -> tuple[str, ...]:
    """What environments of a runner need together: without tools for other ends, and no version where they differ."""
    asked: dict[str, set[str]] = {}
    for text in requirements:
        if not _NOT_NEEDED.fullmatch(name_of(text)):
            asked.setdefault(name_of(text), set()).add(text)
    return tuple(name if len(texts) > 1 or _is_old(min(texts)) else min(texts) for name, texts in asked.items())


def _is_old(requirement: str) -> bool:
    """Whether a runner holds pytest back to what only old Pythons can run."""
    return re.match(r"pytest\s*(?:==|<=?|~=)\s*[0-6]\b", requirement) is not None


def _named(project: Project, names: frozenset[str], files: tuple[str, ...]) -> Sources:
    extras = tuple(extra for extra in project.extras if normal(extra) in names)
    listed = [text for group in project.groups if group in names for text in project.groups[group]]
    needed = [text for text in listed if names is TEST_NAMES or not _NOT_NEEDED.fullmatch(name_of(text))]
    return Sources(extras, tuple(needed), files)


def _by_purpose(texts: Mapping[str, bytes]) -> dict[str, tuple[str, ...]]:
    """Requirements files by what they are for: test, dev, plain, or pytest for any that lists it."""
    found: dict[str, list[str]] = {"test": [], "dev": [], "plain": [], "pytest": []}
    paths = sorted(path for path in texts if is_requirements_file(path))
    for path in _preferred(path for path in paths if not _FOR_ONE.search(path) and not _NEVER.search(path)):
        match = _FILE.fullmatch(path)
        words = {word for word in _WORDS.split((match["name"] if match else "").lower()) if word}
        folder = (match["folder"] if match else "").rstrip("/")
        if words & TEST_NAMES or (folder in TEST_NAMES and not words):
            found["test"].append(path)
        elif words & DEV_NAMES or (folder in DEV_NAMES and not words):
            found["dev"].append(path)
        elif path in ("requirements.txt", "requirements.in", "requirements/base.txt", "requirements/requirements.txt"):
            found["plain"].append(path)
        if _lists_pytest(text_of(texts, path)):
            found["pytest"].append(path)
    return {kind: tuple(listed) for kind, listed in found.items()}


def _preferred(paths: Iterable[str]) -> Iterable[str]:
    """Of two files with one name the locked one."""
    listed = set(paths)
    return sorted(path for path in listed if not (path.endswith(".in") and f"{path[:-3]}.txt" in listed))


def _lists_pytest(text: str) -> bool:
    return any(name_of(line) == "pytest" for line in requirement_lines(text)) or bool(
        re.search(r"(?m)^(?:-e|--editable)\s+\.", text)
    )
