"""The gate of a repository that has none of its own: read off its files. Pure, so that what is shown is what is run."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from bailiwick.errors import Problem
from bailiwick.gate.detect_runners import runner_checks
from bailiwick.gate.spec import PROTECTED, CheckSpec, GateSpec
from bailiwick.gate.testfiles import is_test_file

NOTHING_FOUND = "BW444"
NO_LINTER = "BW445"

_MAKEFILES = ("GNUmakefile", "makefile", "Makefile")
_PYTHON_PROJECT = ("pyproject.toml", "setup.py", "setup.cfg", "pytest.ini", "tox.ini", "uv.lock", "poetry.lock")
_REQUIREMENTS = re.compile(r"requirements[A-Za-z0-9_.-]*\.txt")
_EXTRA_REQUIREMENTS = re.compile(
    r"requirements[-_.](?:dev|test|tests|testing|ci)\.txt|(?:dev|test)[-_]requirements\.txt"
)
_RUFF = re.compile(rb"\bruff\b")


@dataclass(slots=True)
class _Draft:
    """What has been detected so far."""

    files: frozenset[str]
    texts: Mapping[str, bytes]
    has_tool: Callable[[str], bool]
    prepare: list[tuple[str, ...]] = field(default_factory=list)
    checks: list[CheckSpec] = field(default_factory=list)
    notes: list[Problem] = field(default_factory=list)

    def first(self, *names: str) -> str:
        """The first of some files of the top directory that is there; empty where none is."""
        return next((name for name in names if name in self.files), "")

    def add(self, name: str, *run: str, kind: str = "command") -> None:
        """Add a check; a second one of the same name is told apart by its program."""
        taken = any(check.name == name for check in self.checks)
        self.checks.append(CheckSpec(f"{run[0]}-{name}" if taken else name, kind, run))


def wanted_files(files: tuple[str, ...]) -> tuple[str, ...]:
    """Which files have to be read to detect a gate: few, and only of the top directory."""
    names = {
        *_MAKEFILES,
        "pyproject.toml",
        "package.json",
        "ruff.toml",
        ".ruff.toml",
        ".pre-commit-config.yaml",
        "go.sum",
    }
    return tuple(path for path in files if path in names or _REQUIREMENTS.fullmatch(path))


def detect(files: tuple[str, ...], texts: Mapping[str, bytes], has_tool: Callable[[str], bool]) -> GateSpec:
    """The gate that fits these files; `texts` holds those of `wanted_files`."""
    draft = _Draft(frozenset(files), texts, has_tool)
    for look in (_python, _runners):
        look(draft)
    if not draft.checks:
        _make(draft)
    if not draft.checks:
        what = "no tests or linters were recognised here; the gate looks for secrets only"
        draft.notes.append(Problem(NOTHING_FOUND, what, hint="write .bailiwick/gate.yaml", warning=True))
    draft.checks.append(CheckSpec("secrets", "secret-scan"))
    return GateSpec(
        prepare=tuple(draft.prepare),
        checks=tuple(draft.checks),
        protected=PROTECTED,
        origin="detected",
        notes=tuple(draft.notes),
    )


def _python(draft: _Draft) -> None:
    tests = any(path.endswith(".py") and is_test_file(path) for path in draft.files)
    requirements = sorted(path for path in draft.files if _REQUIREMENTS.fullmatch(path))
    if not tests and not draft.first(*_PYTHON_PROJECT) and not requirements:
        return
    if "uv.lock" in draft.files:
        draft.prepare.append(("uv", "sync", "--frozen"))
    elif "poetry.lock" in draft.files:
        draft.prepare.append(("poetry", "install", "--no-interaction"))
    elif chosen := [path for path in requirements if path == "requirements.txt" or _EXTRA_REQUIREMENTS.fullmatch(path)]:
        _pip(draft, chosen)
    if draft.first("ruff.toml", ".ruff.toml") or any(map(_RUFF.search, draft.texts.values())) or draft.has_tool("ruff"):
        draft.add("lint", "ruff", "check", ".")
    else:
        what = "ruff is not installed and nothing here names it: the detected gate has no linter"
        draft.notes.append(Problem(NO_LINTER, what, hint="install it, or write .bailiwick/gate.yaml", warning=True))
    draft.add("tests", "pytest", "-q", kind="pytest")


def _pip(draft: _Draft, files: list[str]) -> None:
    hashed = all(b"--hash=" in draft.texts.get(path, b"") for path in files)
    listed = [word for path in files for word in ("-r", path)]
    draft.prepare.append(("python3", "-m", "venv", ".venv"))
    draft.prepare.append((
        ".venv/bin/python", "-m", "pip", "install", "--disable-pip-version-check", "--no-input",
        *(["--require-hashes"] if hashed else []), *listed,
    ))  # fmt: skip


def _runners(draft: _Draft) -> None:
    plan = runner_checks(draft.files, draft.texts, draft.has_tool)
    draft.prepare += plan.prepare
    for check in plan.checks:
        draft.add(check.name, *check.run, kind=check.kind)


def _make(draft: _Draft) -> None:
    name = draft.first(*_MAKEFILES)
    text = draft.texts.get(name, b"").decode("utf-8", "replace")
    for target in ("test", "check"):
        if re.search(rf"(?m)^{target}\s*::?(?!=)", text):
            draft.add("tests", "make", target)
            return
