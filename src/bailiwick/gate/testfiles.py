"""Which files are tests, and which files a tool loads by itself because of their name. Pure."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable

from bailiwick.gate.globs import first_match

_TEST_FILE = re.compile(
    r"(?:.*/)?(?:test_[^/]*\.py|[^/]*_test\.py|[^/]*_test\.go|[^/]*[._-](?:test|spec)\.[cm]?[jt]sx?)"
    r"|(?:.*/)?__tests__/[^/]*\.[cm]?[jt]sx?"
    r"|tests?/(?:.*/)?[^/]*\.rs|(?:.*/)?[^/]*_(?:test|spec)\.(?:rb|exs|lua|php)",
    re.IGNORECASE,
)

SELF_LOADING = (
    # Python: what the interpreter, pytest and other runners pick up
    "**/conftest.py", "**/pytest.ini", "**/.pytest.ini", "**/pytest.toml", "**/.pytest.toml", "**/tox.ini",
    "**/tox.toml", "**/setup.cfg", "**/.coveragerc", "**/sitecustomize.py", "**/usercustomize.py", "**/*.pth",
    "**/noxfile.py", "**/*.egg-info/**", "**/*.dist-info/**", "**/*.egg-link", "**/__pycache__/**", "**/*.pyc",
    "**/pyvenv.cfg", "**/.python-version", "**/pip.conf", "**/uv.toml", "**/.venv/**", "**/venv/**",
    # linters and type checkers
    "**/ruff.toml", "**/.ruff.toml", "**/mypy.ini", "**/.mypy.ini", "**/.flake8", "**/.pylintrc", "**/pylintrc",
    "**/pyrightconfig.json", "**/.pre-commit-config.yaml", "**/.golangci.*", "**/clippy.toml", "**/.clippy.toml",
    "**/.eslintrc*", "**/eslint.config.*", "**/.eslintignore", "**/biome.json*",
    # JavaScript
    "**/.npmrc", "**/.yarnrc*", "**/.pnpmfile.*", "**/.pnp.*", "**/bunfig.toml", "**/node_modules/**", "**/.nvmrc",
    "**/.node-version", "**/jest.config.*", "**/vitest.config.*", "**/vitest.workspace.*", "**/vite.config.*",
    "**/babel.config.*", "**/.babelrc*", "**/.swcrc", "**/.mocharc*", "**/karma.conf.*", "**/playwright.config.*",
    "**/tsconfig*.json",
    # make, go, cargo and runners of tools
    "**/Makefile", "**/GNUmakefile", "**/*.mk", "**/justfile", "**/Taskfile.y*ml", "**/go.work", "**/vendor/**",
    "**/.cargo/**", "**/build.rs", "**/rust-toolchain", "**/rust-toolchain.toml", "**/.tool-versions", "**/mise.toml",
    "**/.mise.toml", "**/.envrc", "**/.env", "**/.env.*",
    # lock files: the environment was made from the base's
    "**/uv.lock", "**/poetry.lock", "**/pdm.lock", "**/Pipfile.lock", "**/pylock*.toml", "**/package-lock.json",
    "**/npm-shrinkwrap.json", "**/yarn.lock", "**/pnpm-lock.yaml", "**/bun.lock*", "**/Cargo.lock", "**/go.sum",
    "**/go.work.sum", "**/requirements*.txt", "**/requirements/*.txt", "**/constraints*.txt",
    # git: what changes how files are checked out
    "**/.gitattributes", "**/.gitmodules", "**/.lfsconfig",
)  # fmt: skip
"""Files that some tool of a gate loads without being told to: protected whether new or changed."""
SELF_LOADING_WHEN_NEW = ("**/pytest_*.py", "**/pytest_*/**")
"""The same for new files only: a repository may well be the home of such a plugin."""

_MODULE = re.compile(
    r"(?P<folder>.*/)?(?P<name>(?!__init__)[^/.]+)(?:/__init__)?(?:\.py|\.pyc|(?:\.[^/]*)?\.(?:so|pyd))"
)
_TEST_TOOLS = frozenset({
    "pytest", "_pytest", "pluggy", "iniconfig", "packaging", "exceptiongroup", "tomli", "pygments", "hypothesis",
    "xdist", "execnet", "coverage", "pytest_cov", "pytest_asyncio", "setuptools", "pkg_resources", "pip", "ruff",
    "mypy",
})  # fmt: skip
_TEST_FOLDERS = frozenset({"tests", "test", "__tests__"})
_SOURCE_FOLDERS = ("", "src/", "lib/", "python/", "tests/", "test/")


def is_test_file(path: str) -> bool:
    """Whether a file is a test by the naming rules of the runners we know."""
    return _TEST_FILE.fullmatch(path) is not None


def belongs_to_tests(path: str) -> bool:
    """Whether a file is a test, or lies in a folder of tests and so helps them."""
    return is_test_file(path) or bool(_TEST_FOLDERS.intersection(path.split("/")[:-1]))


def self_loading(path: str, *, new: bool) -> str:
    """The pattern by which a tool loads a file by itself; empty where none does."""
    return first_match(SELF_LOADING, path) or (first_match(SELF_LOADING_WHEN_NEW, path) if new else "")


def importable(path: str) -> tuple[str, str]:
    """The folder and the name under which Python would import a file or the package it begins; empty where not."""
    found = _MODULE.fullmatch(path)
    return ("", "") if found is None else (found["folder"] or "", found["name"])


def shadowed(path: str, base: Iterable[str], installed: frozenset[str] = frozenset()) -> str:
    """The module that a new file takes the place of: of the standard library, a test tool, or one `installed`.

    Only where Python looks for modules of a repository: the top directory, `src`, and folders that hold tests of the
    base. A name that the base has itself is its own business. Empty where nothing is shadowed.
    """
    folder, name = importable(path)
    if not name or not (name in sys.stdlib_module_names or name in _TEST_TOOLS or name in installed):
        return ""
    folders = set(_SOURCE_FOLDERS)
    for other in base:
        if importable(other) == (folder, name):
            return ""
        if other.endswith(".py") and is_test_file(other):
            folders.add(other[: other.rfind("/") + 1])
    return name if folder in folders else ""
