"""The plan for a Python project: which Python, what is installed, how the tests are run."""

from __future__ import annotations

import pytest

from bailiwick.gate.detection import PlanAdditions, detect, wanted_files
from bailiwick.gate.spec import CheckSpec, GateSpec

PYTHONS = ("python3", "python3.10", "python3.11", "python3.12", "python3.13")
PIP = ".venv/bin/python -m pip install"
PROJECT = '[project]\nname = "shop"\nversion = "1"\n'


def _planned(
    files: dict[str, str], *tools: str, tags: tuple[str, ...] = (), additions: PlanAdditions | None = None
) -> GateSpec:
    texts = {path: files[path].encode() for path in wanted_files(tuple(files))}
    return detect(tuple(files), texts, lambda name: name in (*PYTHONS, *tools), tags=tags, additions=additions)


def _prepare(
    files: dict[str, str], *tools: str, tags: tuple[str, ...] = (), additions: PlanAdditions | None = None
) -> list[str]:
    return [" ".join(command) for command in _planned(files, *tools, tags=tags, additions=additions).prepare]


def _tests(spec: GateSpec) -> CheckSpec:
    return next(check for check in spec.checks if check.name == "tests")


@pytest.mark.parametrize(
    ("files", "python"),
    [
        ({"pyproject.toml": PROJECT, ".python-version": "3.10.2\n"}, "python3.10"),
        ({"pyproject.toml": PROJECT, ".python-version": "3.8\n"}, "python3.12"),
        ({"pyproject.toml": PROJECT + 'classifiers = ["Programming Language :: Python :: 3.13"]\n'}, "python3.13"),
        ({"pyproject.toml": PROJECT + 'classifiers = ["Programming Language :: Python :: 3.11"]\n'}, "python3.11"),
        ({"pyproject.toml": PROJECT + 'requires-python = ">=3.13"\n'}, "python3.13"),
        ({"pyproject.toml": PROJECT + 'requires-python = ">=3.8,<3.12"\n'}, "python3.11"),
        ({"setup.py": "setup(name='a', python_requires='<3.11')"}, "python3.10"),
        ({"pyproject.toml": PROJECT, "requirements-test.txt": "pytest==7.0.1\n"}, "python3.10"),
    ],
)
def test_the_python_is_the_newest_that_the_project_knows(files: dict[str, str], python: str) -> None:
    """A newer one than the authors tried breaks projects, and so does a test tool that is older than the Python."""
    assert _prepare(files)[0] == f"{python} -m venv .venv"


@pytest.mark.parametrize(
    ("files", "installed"),
    [
        ({"setup.py": "setup(name='a')"}, "-e . pytest"),
        ({"setup.py": "X = ['mock']\nsetup(name='a', extras_require={'test': X, 'docs': []})"}, "-e .[test] pytest"),
        ({"setup.py": "setup(tests_require=['mock>=2'])"}, "-e . pytest mock>=2"),
        (
            {"setup.cfg": "[metadata]\nname = a\n[options.extras_require]\ntesting =\n    mock\ndev =\n    tox\n"},
            "-e .[testing] pytest",
        ),
        ({"pyproject.toml": PROJECT + '[project.optional-dependencies]\ndev = ["mock"]\n'}, "-e .[dev] pytest"),
        (
            {
                "pyproject.toml": PROJECT
                + '[dependency-groups]\nbase = ["six"]\ntest = [{include-group = "base"}, "pytest>7"]\n'
            },
            "-e . six pytest>7",
        ),
        (
            {"pyproject.toml": PROJECT + '[tool.pdm.dev-dependencies]\ntest = ["pytest", "mock"]\n'},
            "-e . pytest mock",
        ),
        (
            {
                "pyproject.toml": '[tool.poetry]\nname = "a"\n[tool.poetry.group.test.dependencies]\n'
                'pytest = "^7.1"\nmock = {version = "~2.3", extras = ["x"], markers = "os_name == \'posix\'"}\n'
            },
            "-e . pytest>=7.1,<8 mock[x]>=2.3,<2.4 ; os_name == 'posix'",
        ),
        ({"pyproject.toml": PROJECT, "requirements/tests.txt": "pytest\n"}, "-e . pytest -r requirements/tests.txt"),
        (
            {"pyproject.toml": PROJECT, "test-requirements.txt": "x\n", "dev-requirements.txt": "y\n"},
            "-e . pytest -r test-requirements.txt",
        ),
        ({"requirements.txt": "x\n", "requirements-docs.txt": "sphinx\n"}, "pytest -r requirements.txt"),
        ({"pyproject.toml": PROJECT, "tox.ini": "[testenv]\ndeps =\n  mock\n  py27: old\n"}, "-e . pytest mock"),
        (
            {"pyproject.toml": PROJECT + '[tool.hatch.envs.default]\ndependencies = ["mock"]\n'},
            "-e . pytest mock",
        ),
        (
            {"pyproject.toml": PROJECT, "noxfile.py": "def tests(session):\n    session.install('mock', '-e', '.')\n"},
            "-e . pytest mock",
        ),
        (
            {"pyproject.toml": PROJECT, ".github/workflows/ci.yml": "  - run: pip install mock -e .\n"},
            "-e . pytest mock",
        ),
    ],
)
def test_everything_for_tests_is_installed_in_one_resolve(files: dict[str, str], installed: str) -> None:
    """Pieces that are installed one after the other undo each other; docs and linters are nobody's business here."""
    assert _prepare(files)[1:] == [f"{PIP} {installed}"]


def test_plugins_come_from_the_settings_and_not_from_errors() -> None:
    """An option of a missing plugin ends pytest before it says anything useful."""
    settings = '[tool.pytest.ini_options]\naddopts = "--cov=shop -n auto"\nasyncio_mode = "auto"\ntimeout = 5\n'
    files = {"pyproject.toml": PROJECT + settings, "tests/test_a.py": "def test_a(mocker): ...\n"}
    spec = _planned(files)
    wanted = "pytest-cov pytest-xdist pytest-asyncio pytest-timeout pytest-mock"
    assert " ".join(spec.prepare[1]) == f"{PIP} -e . pytest {wanted}"
    assert " ".join(_tests(spec).run) == "python -m pytest -q --no-cov -n 0 tests"


@pytest.mark.parametrize(
    ("files", "run"),
    [
        ({"tests/test_a.py": "", "docs/test_b.py": ""}, "python -m pytest -q tests"),
        ({"shop/tests/test_a.py": "", "bench/test_b.py": ""}, "python -m pytest -q shop/tests"),
        ({"tests.py": ""}, "python -m pytest -q tests.py"),
        ({"pytest.ini": "[pytest]\ntestpaths = checks\n", "tests/test_a.py": ""}, "python -m pytest -q"),
        ({"pytest.ini": "[pytest]\naddopts = --doctest-modules\n", "tests/test_a.py": ""}, "python -m pytest -q"),
    ],
)
def test_tests_are_looked_for_where_the_project_has_them(files: dict[str, str], run: str) -> None:
    """Examples and benchmarks need things that the tests don't."""
    assert " ".join(_tests(_planned({"pyproject.toml": PROJECT, **files})).run) == run


@pytest.mark.parametrize(
    ("files", "tags", "variables"),
    [
        ({"PKG-INFO": "Name: shop\nVersion: 2.3\n"}, (), "SETUPTOOLS_SCM_PRETEND_VERSION_FOR_SHOP=2.3"),
        ({"PKG-INFO": "Version: 2.3\n"}, ("v3.1.0",), "SETUPTOOLS_SCM_PRETEND_VERSION_FOR_SHOP=3.1.0"),
        ({"CHANGES.md": "# Changes\n\n## [4.5.6] - today\n"}, (), "SETUPTOOLS_SCM_PRETEND_VERSION_FOR_SHOP=4.5.6"),
    ],
)
def test_a_version_that_comes_from_git_is_told(files: dict[str, str], tags: tuple[str, ...], variables: str) -> None:
    """A checkout has no tags, and a version such as 0.0 conflicts with whatever depends on the project."""
    build = '[build-system]\nrequires = ["setuptools-scm"]\n[project]\nname = "shop"\ndynamic = ["version"]\n'
    made = _prepare({"pyproject.toml": build, **files}, tags=tags)
    assert made[1] == f"env {variables} {PIP} -e . pytest"


def test_a_compiled_project_is_built_without_isolation() -> None:
    """It is built again when it is imported, with what the environment has."""
    build = '[build-system]\nrequires = ["meson-python>=0.13"]\nbuild-backend = "mesonpy"\n'
    made = _prepare({"pyproject.toml": build + PROJECT})
    assert made[1:] == [f"{PIP} meson-python>=0.13 ninja", f"{PIP} --no-build-isolation -e . pytest"]


def test_a_lock_comes_first_where_its_tool_is_there() -> None:
    """Versions that the project has locked are the ones that it was tested with."""
    files = {"pyproject.toml": PROJECT + '[dependency-groups]\ntest = ["pytest"]\n', "uv.lock": ""}
    assert _prepare(files, "uv") == ["uv sync --frozen --inexact --group test"]
    without = _planned(files)
    assert [" ".join(command) for command in without.prepare][1] == f"{PIP} -e . pytest"
    assert "uv.lock" in without.notes[0].what


def test_uv_installs_where_it_is_there() -> None:
    """It is quicker; the plan is the same."""
    made = _prepare({"setup.py": "setup(name='a')"}, "uv")
    assert made == ["uv venv --python 3.12 .venv", "uv pip install -e . pytest"]


def test_without_a_manifest_the_operator_s_pytest_is_used() -> None:
    """A directory with a few tests needs no environment, and no network."""
    spec = _planned({"tests/test_a.py": ""}, "pytest")
    assert spec.prepare == ()
    assert _tests(spec).run == ("pytest", "-q")
    assert _prepare({"tests/test_a.py": ""}) == ["python3.12 -m venv .venv", f"{PIP} pytest"]


def test_hashed_requirements_are_installed_by_themselves() -> None:
    """pip wants hashes of everything in a call that has one."""
    files = {"pyproject.toml": PROJECT, "requirements-test.txt": "x==1 --hash=sha256:00\n"}
    assert _prepare(files)[1:] == [f"{PIP} --require-hashes -r requirements-test.txt", f"{PIP} -e . pytest"]


def test_only_a_configured_linter_is_used_and_it_is_optional() -> None:
    """An unconfigured ruff makes strangers' projects red; a configured one may be red with today's version."""
    assert [check.name for check in _planned({"pyproject.toml": PROJECT}, "ruff").checks] == ["tests", "secrets"]
    files = {"pyproject.toml": PROJECT + "[tool.ruff]\n", "tox.ini": "[flake8]\nmax-line-length = 99\n"}
    spec = _planned(files, "ruff", "flake8")
    assert [(check.name, check.optional) for check in spec.checks[:2]] == [("lint", True), ("flake8", True)]
    assert "ruff is configured here and not installed" in _planned(files).notes[0].what


def test_a_wider_plan_takes_what_the_runners_install_and_features() -> None:
    """The second attempt: everything that is named anywhere, but documentation and linters."""
    extras = '[project.optional-dependencies]\ntest = ["a"]\ndocs = ["b"]\nyaml = ["c"]\n'
    files = {"pyproject.toml": PROJECT + extras, "tox.ini": "[testenv]\ndeps = mock\n[testenv:lint]\ndeps = black\n"}
    assert _prepare(files)[1] == f"{PIP} -e .[test] pytest"
    assert _prepare(files, additions=PlanAdditions(level=1))[1] == f"{PIP} -e .[test,yaml] pytest mock"


def test_piece_by_piece_the_project_comes_last() -> None:
    """Otherwise the index's copy of the project may take the editable one's place."""
    extras = '[project.optional-dependencies]\ntest = ["a"]\n'
    files = {"pyproject.toml": PROJECT + extras, "tests/test_a.py": "def test_a(mocker): ...\n"}
    made = _prepare(files, additions=PlanAdditions(split=True, without=("extra test",)))
    pieces = ["pytest", "pytest-mock", "-e .", "--no-deps -e ."]
    assert made[1:] == [f"{PIP} {words}" for words in pieces]


def test_unittest_is_the_last_resort() -> None:
    """Some tests were never meant for pytest."""
    run = _tests(_planned({"setup.py": "", "tests/test_a.py": ""}, additions=PlanAdditions(unittest=True))).run
    assert " ".join(run) == "python -m unittest discover -s tests -t ."
