"""Strangers' projects: `git init`, `bailiwick init --yes`, `bailiwick gate`, and nothing edited by hand."""

from __future__ import annotations

import ast
import os
import pwd
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from tests.acceptance.command import Person
from tests.projects.index import UNREACHABLE
from tests.projects.table import PROJECTS, Project

SECONDS = 2700
INDEX = Path(__file__).with_name("index.py")
NIGHTLY = pytest.mark.nightly
pytestmark = [pytest.mark.timeout(3 * SECONDS), pytest.mark.needs("sandbox"), pytest.mark.slow]
BUG = "\n\ndef bailiwick_total(values):\n    return sum(values){bug}\n"
TEST = (
    "{first}from {package} import bailiwick_total\n\n\ndef test_the_total():\n    assert bailiwick_total([1, 2]) == 3\n"
)


EACH_TIME = [pytest.param(p, id=p.id, marks=() if p.small else NIGHTLY) for p in PROJECTS]
BY_NIGHT = [pytest.param(p, id=p.id, marks=NIGHTLY) for p in PROJECTS]


@pytest.fixture(scope="session")
def archives(request: pytest.FixtureRequest) -> Path:
    """Where source distributions are kept between runs."""
    given = os.environ.get("PROJECT_ARCHIVES")
    folder = Path(given) if given else Path(request.config.cache.mkdir("projects"))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture
def owner(tmp_path: Path, request: pytest.FixtureRequest, archives: Path) -> Person:
    """Somebody in a fresh copy of a project, whose pip knows the same index as ours."""
    project: Project = request.getfixturevalue("project")
    home = pwd.getpwuid(os.getuid()).pw_dir
    fetched = subprocess.run(
        [Path(sys.base_prefix) / "bin" / "python3", INDEX, project.name, project.version, archives],
        env={**os.environ, "HOME": home},
        capture_output=True,
        text=True,
        check=False,
    )
    if fetched.returncode == UNREACHABLE:
        pytest.skip(f"NOT TESTED, no index of packages can be reached: {fetched.stderr.strip()}")
    assert fetched.returncode == 0, fetched.stderr
    file, hosts, index = fetched.stdout.splitlines()
    with tarfile.open(file) as archive:
        archive.extractall(tmp_path / "work", filter="data")
    (tree,) = (tmp_path / "work").iterdir()
    person = Person(tmp_path / "home", tree, {"PIP_INDEX_URL": index})
    person.runs("config", "set", "sandbox.allow", f"[{', '.join(hosts.split())}]")
    _git(tree, "init", "--quiet")
    return person


def _git(tree: Path, *words: str) -> None:
    config = ("-c", "user.name=a", "-c", "user.email=a@localhost", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *config, *words], cwd=tree, check=True, capture_output=True)


def _commit(tree: Path, message: str) -> None:
    _git(tree, "add", "--all")
    _git(tree, "commit", "--quiet", "--message", message)


def _broken(source: str, name: str) -> str:
    """A module in which the last value that a function gives back is another one."""
    named = [n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.FunctionDef) and n.name == name]
    function = named[-1]  # the others are overloads
    last = [node for node in ast.walk(function) if isinstance(node, ast.Return) and node.value is not None][-1]
    lines = source.splitlines(keepends=True)
    assert last.end_lineno is not None
    indent = " " * last.col_offset
    lines[last.lineno - 1 : last.end_lineno] = [f"{indent}return object()\n"]
    return "".join(lines)


def _set_up(owner: Person, project: Project) -> bool:
    """Set the gate up; False where the project has its own reason to be red as it is, and the gate names it."""
    made = owner.runs("init", "--yes", timeout=SECONDS)
    if project.red:
        assert made.code == 1
        assert project.red in made.out
        return False
    assert made.code == 0, made.out[-6000:] + made.err[-2000:]
    return True


@pytest.mark.parametrize("project", EACH_TIME)
def test_a_stranger_s_project_is_green_without_editing_and_red_when_it_is_broken(
    owner: Person, project: Project
) -> None:
    """The first thing that somebody tries; and a gate that is green whatever happens would be worth nothing."""
    if not _set_up(owner, project):
        return
    green = owner.runs("gate", timeout=SECONDS)
    assert green.code == 0, green.out[-6000:]
    assert "passed (tests," in green.out or "passed (exit-code," in green.out
    _commit(owner.cwd, "as it is")
    module = owner.cwd / project.module
    module.write_text(_broken(module.read_text("utf-8"), project.function), "utf-8")
    red = owner.runs("gate", timeout=SECONDS)
    assert red.code == 1, red.out[-6000:]


def _add_test(tree: Path, text: str) -> None:
    """Where the project's own tests are: in a new file beside them, or at the end of its only one."""
    found = sorted(tree.glob("**/test_*.py")) or sorted(tree.glob("**/*_test.py"))
    only = tree / "tests.py"
    if not found and only.is_file():
        only.write_text(f"{only.read_text('utf-8')}\n\n{text}", "utf-8")
        return
    ((found[0].parent if found else tree) / "test_bailiwick_total.py").write_text(text, "utf-8")


@pytest.mark.parametrize("project", BY_NIGHT)
def test_a_fix_with_its_test_is_green_with_proof(owner: Person, project: Project) -> None:
    """A change as an agent would make it: the bug is gone, and a new test shows it."""
    if not _set_up(owner, project):
        return
    module = owner.cwd / project.module
    clean = module.read_text("utf-8")
    module.write_text(clean + BUG.format(bug=" + 1"), "utf-8")
    _commit(owner.cwd, "with a bug")
    module.write_text(clean + BUG.format(bug=""), "utf-8")
    _add_test(owner.cwd, TEST.format(package=project.package, first=f"import {project.first}\n" * bool(project.first)))
    fixed = owner.runs("gate", timeout=SECONDS)
    assert fixed.code == 0, fixed.out[-6000:]
    assert "1 new test fails on the base and passes here: " in fixed.out
    assert "test_the_total" in fixed.out
