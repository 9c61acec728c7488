"""The gate of a repository that has none of its own: read off its files. Pure, so that what is shown is what is run."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

from bailiwick.gate.detection.draft import GateDraft, PlanAdditions
from bailiwick.gate.detection.other import MAKEFILES, make, other_languages
from bailiwick.gate.detection.python import python
from bailiwick.gate.detection.sources import is_requirements_file
from bailiwick.gate.detection.versions import CHANGE_LOG
from bailiwick.gate.spec import PROTECTED, CheckSpec, GateSpec
from bailiwick.gate.testfiles import is_test_file

__all__ = ["PlanAdditions", "detect", "wanted_files"]

NOTHING_FOUND = "BW444"
_MOST_TESTS = 120
"""Files with tests that are looked into for the plugins they use."""
_NAMES = frozenset(
    (
        *MAKEFILES,
        *("pyproject.toml", "setup.py", "setup.cfg", "tox.ini", "tox.toml", "noxfile.py", "hatch.toml", "Pipfile"),
        *("pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml", ".python-version", "PKG-INFO", ".flake8"),
        *("ruff.toml", ".ruff.toml", ".gitlab-ci.yml", "package.json", ".pre-commit-config.yaml", "go.sum"),
    )
)
_WORKFLOW = re.compile(r"\.github/workflows/[^/]+\.ya?ml")


def wanted_files(files: Iterable[str]) -> tuple[str, ...]:
    """Which files have to be read to detect a gate: manifests, settings, runners, and some tests."""
    listed = tuple(files)
    manifests = [
        path
        for path in listed
        if path in _NAMES or is_requirements_file(path) or _WORKFLOW.fullmatch(path) or CHANGE_LOG.fullmatch(path)
    ]
    tests = [path for path in listed if path.endswith("conftest.py") or (path.endswith(".py") and is_test_file(path))]
    return tuple(dict.fromkeys((*manifests, *tests[:_MOST_TESTS])))


def detect(
    files: Iterable[str],
    texts: Mapping[str, bytes],
    has_tool: Callable[[str], bool],
    *,
    tags: tuple[str, ...] = (),
    additions: PlanAdditions | None = None,
) -> GateSpec:
    """The gate that fits these files; `texts` holds those of `wanted_files`, `tags` those that lead to the base."""
    draft = GateDraft(
        frozenset(files), texts=texts, has_tool=has_tool, tags=tags, additions=additions or PlanAdditions()
    )
    for look in (python, other_languages):
        look(draft)
    if not draft.checks:
        make(draft)
    if not draft.checks:
        what = "no tests or linters were recognised here; the gate looks for secrets only"
        draft.warn(NOTHING_FOUND, what, "write .bailiwick/gate.yaml")
    draft.checks.append(CheckSpec("secrets", "secret-scan"))
    return GateSpec(
        prepare=tuple(draft.prepare),
        checks=tuple(draft.checks),
        protected=PROTECTED,
        origin="detected",
        notes=tuple(draft.notes),
    )
