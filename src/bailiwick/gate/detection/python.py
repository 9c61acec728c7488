"""Python: one plan for the environment, with the project installed editable, and for how its tests are run. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass

from bailiwick.gate.detection.draft import GateDraft
from bailiwick.gate.detection.plugins import plugins_of
from bailiwick.gate.detection.project import Project, PytestSettings, read_project
from bailiwick.gate.detection.reading import (
    ini_of,
    name_of,
    normal,
    requirement_lines,
    sections,
    text_of,
    toml_of,
    unique,
)
from bailiwick.gate.detection.runners import read_steps
from bailiwick.gate.detection.sources import DEV_NAMES, TEST_NAMES, Sources, choose, is_requirements_file
from bailiwick.gate.detection.versions import version_of, version_variables
from bailiwick.gate.spec import CheckSpec
from bailiwick.gate.testfiles import is_test_file


@dataclass(frozen=True, slots=True)
class Locked:
    """The commands that install from a lock file; none where `tool`, which `file` needs, is not installed."""

    commands: tuple[tuple[str, ...], ...] = ()
    has_pytest: bool = False
    file: str = ""
    tool: str = ""


_LOCKS = (("uv.lock", "uv"), ("poetry.lock", "poetry"), ("pdm.lock", "pdm"), ("Pipfile.lock", "pipenv"))


def lock_commands(files: frozenset[str], project: Project, has_tool: Callable[[str], bool]) -> Locked:
    """How the first lock file of the project is installed, with its groups and extras for tests."""
    there = [(lock, tool) for lock, tool in _LOCKS if lock in files]
    for _lock, tool in there:
        if has_tool(tool):
            return _commands(tool, project)
    return Locked(file=there[0][0], tool=there[0][1]) if there else Locked()


def _commands(tool: str, project: Project) -> Locked:
    extras = _chosen(project.extras)
    groups = _chosen(project.groups)
    listed = [text for group in groups for text in project.groups[group]]
    listed += [text for extra in extras for text in project.extras[extra]]
    if tool in ("uv", "poetry") and "dev" in project.groups:
        listed += project.groups["dev"]
    known = any(name_of(text) == "pytest" for text in listed) or tool == "pipenv"
    words = {
        "uv": ("uv", "sync", "--frozen", "--inexact", *_pairs("--group", groups), *_pairs("--extra", extras)),
        "poetry": (
            "poetry",
            "install",
            "--no-interaction",
            *(("--with", ",".join(groups)) if groups else ()),
            *_pairs("--extras", extras),
        ),
        "pdm": ("pdm", "sync", "--dev", *_pairs("--group", extras)),
        "pipenv": ("pipenv", "sync", "--dev"),
    }
    return Locked((words[tool],), has_pytest=known)


def _chosen(names: Collection[str]) -> tuple[str, ...]:
    """Of extras or groups those for tests; those for development where there are none."""
    tests = tuple(name for name in names if normal(name) in TEST_NAMES)
    return tests or tuple(name for name in names if normal(name) in DEV_NAMES)


def _pairs(option: str, values: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(word for value in values for word in (option, value))


VERSIONS = tuple(f"3.{minor}" for minor in range(15, 8, -1))
"""The versions that can be chosen, the newest first."""
CAUTIOUS = "3.12"
"""The newest that is taken where a project does not say which ones it knows."""


def choose_version(asked: str, requires: str, listed: Collection[str], there: Iterable[str]) -> str:
    """The version to use; empty where none of those that are there will do.

    `asked` is the text of `.python-version`; `requires` is requires-python; `listed` are those of the classifiers.
    """
    wanted = re.search(r"3\.\d+", asked)
    known_here = tuple(there)
    if wanted and wanted[0] in known_here:
        return wanted[0]
    allowed = [version for version in known_here if allows(requires, version)]
    known = [version for version in allowed if version in listed]
    careful = [version for version in allowed if _key(version) <= _key(CAUTIOUS)]
    return next(iter((*known, *careful, *allowed)), "")


_RUNS_ON = (((6, 2, 5), "3.9"), ((7, 2), "3.10"), ((7, 3), "3.11"), ((8, 2), "3.12"))
"""Before which version pytest does not run on anything newer than which Python."""


def newest_version_for(requirements: Iterable[str]) -> str:
    """The newest Python that a pinned pytest runs on; empty where pytest is not held back."""
    for text in requirements:
        pinned = re.match(r"pytest\s*(?:==\s*([\d.]+)|.*?<\s*([\d.]+))", text)
        if pinned is None:
            continue
        version = _key((pinned[1] or pinned[2]).strip("."))
        for limit, newest in _RUNS_ON:
            if version < limit or (pinned[2] and version == limit):
                return newest
    return ""


def allows(requires: str, version: str) -> bool:
    """Whether a range of versions has room for some release of a minor version."""
    return all(_allows(part.strip(), version) for part in requires.split(",") if part.strip())


def _allows(part: str, version: str) -> bool:
    found = re.fullmatch(r"(>=|<=|==|!=|~=|>|<|\^)?\s*v?(\d+(?:\.\d+)*)(\.\*)?.*", part)
    if found is None:
        return True
    sign, bound, wild = found[1] or "==", _key(found[2]), found[3]
    here = _key(version)
    short = bound[:2]
    if sign in (">=", "^"):
        return here >= short
    if sign == "~=":
        return here >= short and here[: max(1, len(bound) - 1)] <= bound[: max(1, len(bound) - 1)]
    if sign == ">":
        return here > short or (here == short and len(bound) > len(short))
    if sign == "<":
        return here < short or (here == short and len(bound) > len(short) and any(bound[2:]))
    if sign == "<=":
        return here <= short
    if sign == "!=":
        return not (wild and here[: len(bound)] == bound)
    return here[: len(short)] == short


def _key(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


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


NO_LINTER = "BW445"
NO_PYTHON = "BW456"
GUESSED_VERSION = "BW457"
NO_LOCK_TOOL = "BW458"
VENV = ".venv"
PYTHON = f"{VENV}/bin/python"
_MANIFESTS = ("pyproject.toml", "setup.py", "setup.cfg", "pytest.ini", "tox.ini", "Pipfile", "uv.lock", "poetry.lock")
_EDITABLE = re.compile(r"(?m)^\s*(?:-e|--editable)?\s*\.(?:\[[^\]]*\])?\s*$")


def python(draft: GateDraft) -> None:
    """A virtual environment that holds the project and what its tests need; pytest; linters that are configured."""
    tests = any(path.endswith(".py") and is_test_file(path) for path in draft.files)
    listed = any(is_requirements_file(path) for path in draft.texts)
    if not tests and not listed and not draft.first(*_MANIFESTS):
        return
    project = read_project(draft.texts, draft.files)
    plan = _Plan(draft, project)
    plan.prepare()
    plan.lint()
    plan.check()


class _Plan:
    """The plan for one project."""

    def __init__(self, draft: GateDraft, project: Project) -> None:
        self.draft = draft
        self.project = project
        texts = draft.texts
        steps = read_steps(texts)
        self.sources = _without(choose(project, texts, steps, draft.additions.level), draft.additions.without)
        tests = {path: data for path, data in texts.items() if is_test_file(path) or path.endswith("conftest.py")}
        own = name_of(project.name)
        self.plugins = tuple(name for name in plugins_of(project.pytest, tests) if name_of(name) != own)
        self.uv = draft.has_tool("uv")

    def prepare(self) -> None:
        """How the environment is made; nothing where the operator's own pytest is all that is needed."""
        draft, project = self.draft, self.project
        bare = not project.installable and self.sources.empty and not self.plugins and not draft.additions.add
        if bare and draft.has_tool("pytest"):
            return
        locked = lock_commands(draft.files, project, draft.has_tool)
        if locked.commands:
            draft.prepare += locked.commands
            missing = () if locked.has_pytest else ("pytest",)
            if wanted := (*missing, *draft.additions.add):
                draft.prepare.append(self._install(*wanted))
            return
        if locked.tool:
            what = f"{locked.file} is here and {locked.tool} is not installed: versions are resolved without the lock"
            draft.warn(NO_LOCK_TOOL, what, f"install {locked.tool} so that it is on PATH, for the locked versions")
        draft.prepare.append(self._environment())
        draft.prepare += self._installs()

    def _environment(self) -> tuple[str, ...]:
        draft = self.draft
        there = tuple(version for version in VERSIONS if draft.has_tool(f"python{version}"))
        asked = text_of(draft.texts, ".python-version")
        newest = newest_version_for(self._requirements())
        fitting = [version for version in there if not newest or _key(version) <= _key(newest)]
        version = choose_version(asked, self.project.requires_python, self.project.pythons, fitting or there)
        if not version and there:
            what = f"requires-python is {self.project.requires_python}, and installed are {', '.join(there)}"
            draft.warn(NO_PYTHON, what, "install a Python that fits, or write .bailiwick/gate.yaml")
        if self.uv:
            return ("uv", "venv", *(("--python", version) if version else ()), VENV)
        return (f"python{version or '3'}", "-m", "venv", VENV)

    def _requirements(self) -> Iterator[str]:
        """Every requirement that is installed for the tests, those in files among them."""
        yield from self.sources.requirements
        yield from self._extra_names()
        for path in self.sources.files:
            yield from requirement_lines(text_of(self.draft.texts, path))

    def _install(self, *words: str) -> tuple[str, ...]:
        return ("uv", "pip", "install", *words) if self.uv else (PYTHON, "-m", "pip", "install", *words)

    def _installs(self) -> Iterator[tuple[str, ...]]:
        """The installs, in one resolve where that is possible."""
        draft, sources = self.draft, self.sources
        texts = draft.texts
        hashed = [path for path in sources.files if b"--hash=" in texts.get(path, b"")]
        circular = [path for path in sources.files if _EDITABLE.search(text_of(texts, path)) and path not in hashed]
        plain = [path for path in sources.files if path not in hashed and path not in circular]
        listed = [*sources.requirements, *self.plugins, *draft.additions.add]
        wanted = unique((*(["pytest"] if "pytest" not in map(name_of, listed) else []), *listed))
        own, how = self._own(), ("--no-build-isolation",) if self.project.compiled else ()
        if how:
            yield self._install(*self._build_tools())
        if hashed:
            yield self._install("--require-hashes", *_files(hashed))
        if draft.additions.split:
            yield from (self._install(word) for word in wanted)
            yield from (self._install("-r", path) for path in plain)
            if own:
                yield self._told(*self._install(*how, *own))
        else:
            yield self._told(*self._install(*how, *own, *wanted, *_files(plain)))
        for path in circular:
            yield self._told(*self._install(*how, "-r", path))
        if own and (draft.additions.split or circular):
            yield self._told(*self._install(*how, "--no-deps", "-e", "."))

    def _own(self) -> tuple[str, ...]:
        """The project itself, editable, with the extras that were chosen."""
        if not self.project.installable:
            return ()
        extras = ",".join(self.sources.extras)
        return ("-e", f".[{extras}]" if extras else ".")

    def _build_tools(self) -> tuple[str, ...]:
        """What a build at import time needs in the environment."""
        needed = [text for text in self.project.build_requires if name_of(text)]
        return unique((*needed, "ninja", *(("cmake",) if "mesonpy" not in self.project.backend else ())))

    def _told(self, *command: str) -> tuple[str, ...]:
        """A command that builds the project, told the version that it would ask git for."""
        if not self.project.version_from or not self.project.installable:
            return command
        version, source = version_of(self.project, self.draft.texts, self.draft.tags)
        if source.startswith("a guess") and not any(note.code == GUESSED_VERSION for note in self.draft.notes):
            what = f"the version comes from git, and nothing here says it: {version} is used"
            self.draft.warn(GUESSED_VERSION, what, "fetch the tags: git fetch --tags")
        if self.project.version_from == "tag":
            self._tag(version)
        variables = version_variables(self.project, version)
        return ("env", *variables, *command) if variables else command

    def _tag(self, version: str) -> None:
        """A repository with a tag, for builds that ask git itself; it is not part of the environment."""
        commit = ("git", "-c", "user.name=prepare", "-c", "user.email=prepare@localhost", "commit", "--quiet")
        steps = (
            ("git", "init", "--quiet"),
            (*commit, "--allow-empty", "--message=base"),
            ("git", "tag", version),
        )
        if self.draft.has_tool("git"):
            self.draft.prepare += [step for step in steps if step not in self.draft.prepare]

    def check(self) -> None:
        """The tests."""
        draft = self.draft
        if draft.additions.unittest:
            draft.add("tests", "python", "-m", "unittest", *unittest_words(draft.files))
        elif not draft.prepare:
            draft.add("tests", "pytest", "-q", kind="pytest")
        else:
            names = {name_of(text) for text in (*self.sources.requirements, *self.plugins, *self._extra_names())}
            words = pytest_words(self.project.pytest, sorted(draft.files), names)
            draft.add("tests", "python", "-m", "pytest", *words, kind="pytest")

    def _extra_names(self) -> Iterator[str]:
        for extra in self.sources.extras:
            yield from self.project.extras.get(extra, ())

    def lint(self) -> None:
        """Linters that are configured, where they are installed; whether they are green is seen on the base."""
        for name, words in _configured(self.draft):
            if self.draft.has_tool(name):
                taken = any(check.name == "lint" for check in self.draft.checks)
                spec = CheckSpec(name if taken else "lint", "command", (name, *words), optional=True)
                self.draft.checks.append(spec)
            else:
                what = f"{name} is configured here and not installed: the detected gate leaves it out"
                self.draft.warn(NO_LINTER, what, f"uv tool install {name}, or write .bailiwick/gate.yaml")


def _configured(draft: GateDraft) -> Iterator[tuple[str, tuple[str, ...]]]:
    tools = toml_of(draft.texts, "pyproject.toml").get("tool")
    if draft.first("ruff.toml", ".ruff.toml") or (isinstance(tools, dict) and "ruff" in tools):
        yield "ruff", ("check", ".")
    listed = [sections(ini_of(draft.texts, path)) for path in ("setup.cfg", "tox.ini", ".flake8")]
    if any("flake8" in known for known in listed):
        yield "flake8", ()


def _files(paths: list[str]) -> tuple[str, ...]:
    return tuple(word for path in paths for word in ("-r", path))


def _without(sources: Sources, dropped: tuple[str, ...]) -> Sources:
    """What is left when some sources could not be installed."""
    return Sources(
        tuple(extra for extra in sources.extras if f"extra {extra}" not in dropped),
        tuple(text for text in sources.requirements if text not in dropped),
        tuple(path for path in sources.files if path not in dropped),
    )
