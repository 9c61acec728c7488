"""The proposed tree: what an agent left, without its changes to protected paths."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from bailiwick.errors import InputInvalid
from bailiwick.gate.spec import ALWAYS_PROTECTED, PROTECTED
from bailiwick.gate.tree import ProposedTree, TreePolicy, sift
from bailiwick.git.store import GitStore
from tests.unit.git.repository_setup import RepositorySetup, make_scene

BASE: dict[str, str | bytes] = {
    ".bailiwick/gate.yaml": "checks: [{name: a, run: ['true']}]\n",
    "pyproject.toml": "[project]\n",
    "src/app.py": "x = 1\n",
    "tests/test_app.py": "def test_x(): assert True\n",
    "tests/data/one.json": "{}\n",
    "tests/conftest.py": "",
    "Makefile": "test:\n\tpytest\n",
    "uv.lock": "lock\n",
    "docs/guide.md": "guide\n",
}
POLICY = (*ALWAYS_PROTECTED, *PROTECTED)


@pytest.fixture
def scene(tmp_path: Path) -> RepositorySetup:
    made = make_scene(tmp_path)
    made.commit(BASE)
    return made


class Left:
    """What became of a change."""

    def __init__(
        self, asked: str, sifted: ProposedTree, files: tuple[str, ...], blobs: dict[str, bytes | None]
    ) -> None:
        self.asked = asked
        self.sifted = sifted
        self.files = files
        self.blobs = blobs
        self.out = {t.path: t.rule for t in sifted.taken if not t.allowed}
        self.allowed = [t.path for t in sifted.taken if t.allowed]


def _sift(
    scene: RepositorySetup, edit: Callable[[Path], None], *allow: str, installed: frozenset[str] = frozenset()
) -> Left:
    """Check the base out, let somebody edit it, and sift what they left."""

    async def history(git_store: GitStore) -> Left:
        base = await git_store.resolve("HEAD")
        work = scene.top / "work"
        await git_store.checkout(base, work)
        edit(work)
        asked = await git_store.snapshot(work, base=base)
        found = await sift(git_store, base, asked, TreePolicy(POLICY, allow, installed))
        files = await git_store.files(found.tree)
        return Left(asked, found, files, {path: await git_store.blob(found.tree, path) for path in files})

    return scene.run(history)


def _write(**files: str) -> Callable[[Path], None]:
    def edit(work: Path) -> None:
        for name, text in files.items():
            file = work / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)

    return edit


def test_an_ordinary_change_stays_as_it_is(scene: RepositorySetup) -> None:
    """The gate is for what matters; product code is the agent's to change."""
    left = _sift(scene, _write(**{"src/app.py": "x = 2\n", "src/new.py": "y\n", "docs/guide.md": "better\n"}))
    assert left.sifted.tree == left.asked
    assert left.sifted.taken == ()
    assert [change.path for change in left.sifted.changes] == ["docs/guide.md", "src/app.py", "src/new.py"]


@pytest.mark.parametrize(
    ("path", "rule"),
    [
        ("tests/test_app.py", "tests/**"),
        ("tests/data/one.json", "tests/**"),
        (".bailiwick/gate.yaml", ".bailiwick/**"),
        (".bailiwick/new.yaml", ".bailiwick/**"),
        ("pyproject.toml", "pyproject.toml"),
        (".github/workflows/ci.yml", ".github/**"),
        ("Makefile", "loaded by itself: **/Makefile"),
        ("uv.lock", "loaded by itself: **/uv.lock"),
        ("src/conftest.py", "loaded by itself: **/conftest.py"),
        ("sub/PyTest.ini", "loaded by itself: **/pytest.ini"),
        ("src/evil.pth", "loaded by itself: **/*.pth"),
        ("sitecustomize.py", "loaded by itself: **/sitecustomize.py"),
        ("x.egg-info/entry_points.txt", "loaded by itself: **/*.egg-info/**"),
        ("src/__pycache__/app.cpython-311.pyc", "loaded by itself: **/__pycache__/**"),
        (".venv/bin/ruff", "loaded by itself: **/.venv/**"),
        ("node_modules/.bin/jest", "loaded by itself: **/node_modules/**"),
        (".gitattributes", "loaded by itself: **/.gitattributes"),
        (".env.local", "loaded by itself: **/.env.*"),
        ("pytest_plugin.py", "loaded by itself: **/pytest_*.py"),
        ("random.py", "shadows the module random"),
        ("src/json/__init__.py", "shadows the module json"),
        ("pytest.py", "shadows the module pytest"),
        ("tests/test_helper/__init__.py", "tests/**"),
    ],
)
def test_a_change_to_a_protected_path_is_taken_out(scene: RepositorySetup, path: str, rule: str) -> None:
    """Each of these could decide how the tests come out; what is tested is what is proposed."""
    left = _sift(scene, _write(**{path: "evil = 1\n", "src/app.py": "x = 2\n"}))
    assert left.out == {path: rule}
    assert left.blobs["src/app.py"] == b"x = 2\n"
    original = BASE.get(path)
    assert left.blobs.get(path) == (original.encode() if isinstance(original, str) else original)
    assert "evil = 1" in left.sifted.taken[0].patch


@pytest.mark.parametrize(
    "path", ["tests/test_new.py", "tests/unit/test_more.py", "src/app.test.ts", "pkg/util_test.go", "tests/more.rs"]
)
def test_a_new_test_is_let_in(scene: RepositorySetup, path: str) -> None:
    """It can only add, and without it no fix could be proven."""
    left = _sift(scene, _write(**{path: "new\n"}))
    assert left.out == {}
    assert left.blobs[path] == b"new\n"


def test_a_new_folder_of_tests_may_have_its_empty_package_file(scene: RepositorySetup) -> None:
    """Two tests of one name in two folders need it; one with code in it, or in an old folder, is no test."""
    left = _sift(scene, _write(**{"tests/unit/__init__.py": "\n", "tests/unit/test_a.py": "", "tests/__init__.py": ""}))
    assert left.out == {"tests/__init__.py": "tests/**"}
    assert "tests/unit/__init__.py" in left.files


def test_deleted_tests_come_back(scene: RepositorySetup) -> None:
    """The oldest cheat: no test, no failure."""

    def edit(work: Path) -> None:
        (work / "tests/test_app.py").unlink()
        (work / "tests/conftest.py").unlink()

    left = _sift(scene, edit)
    assert {t.path: t.change for t in left.sifted.taken} == {
        "tests/test_app.py": "deleted",
        "tests/conftest.py": "deleted",
    }
    assert left.sifted.tree != left.asked
    assert "tests/test_app.py" in left.files


def test_a_protected_directory_can_t_be_replaced_by_a_link(scene: RepositorySetup) -> None:
    """A link would put other tests in the place of the base's without touching one of them."""

    def edit(work: Path) -> None:
        for file in sorted((work / "tests").rglob("*"), reverse=True):
            file.rmdir() if file.is_dir() else file.unlink()
        (work / "tests").rmdir()
        (work / "mine").mkdir()
        (work / "mine/test_app.py").write_text("def test_x(): pass\n")
        (work / "tests").symlink_to("mine")

    left = _sift(scene, edit)
    assert left.out["tests"] == "tests/**"
    assert left.blobs["tests/test_app.py"] == BASE["tests/test_app.py"].encode()  # type: ignore[union-attr]
    assert "tests" not in left.files


def test_what_lies_above_or_below_a_protected_file_can_t_take_its_place(scene: RepositorySetup) -> None:
    """A tree can't hold a file and a directory of one name: the base's wins."""
    scene.commit({"deep/down/conftest.py": "base\n"})

    def edit(work: Path) -> None:
        (work / "deep/down/conftest.py").unlink()
        (work / "deep/down").rmdir()
        (work / "deep").rmdir()
        (work / "deep").write_text("a file now\n")
        (work / "pyproject.toml").unlink()
        (work / "pyproject.toml").mkdir()
        (work / "pyproject.toml/x").write_text("x\n")

    left = _sift(scene, edit)
    assert left.out["deep"] == "takes the place of a protected directory"
    assert left.out["pyproject.toml/x"] == "takes the place of a protected file"
    assert left.blobs["deep/down/conftest.py"] == b"base\n"
    assert left.blobs["pyproject.toml"] == b"[project]\n"
    assert left.sifted.changes == ()


def test_a_test_that_becomes_a_link_is_a_change_and_a_new_link_is_no_test(scene: RepositorySetup) -> None:
    """A link named like a test is whatever it points to."""

    def edit(work: Path) -> None:
        (work / "tests/test_app.py").unlink()
        (work / "tests/test_app.py").symlink_to("../src/app.py")
        (work / "tests/test_link.py").symlink_to("/etc/passwd")
        (work / "src/link.py").symlink_to("app.py")

    left = _sift(scene, edit)
    assert set(left.out) == {"tests/test_app.py", "tests/test_link.py"}
    assert [(f.code, f.path) for f in left.sifted.findings] == [("link", "src/link.py")]


def test_names_that_the_base_has_or_nobody_imports_shadow_nothing(scene: RepositorySetup) -> None:
    """Honest projects have a `types.py` in their package; only what Python would find first is meant."""
    scene.commit({"queue/__init__.py": "", "code.py": ""})
    edit = _write(
        **{
            "src/pkg/types.py": "",
            "queue/__init__.py": "x",
            "code.py": "x",
            "random.md": "",
            "random/data.txt": "",
        }
    )
    assert _sift(scene, edit).out == {}


def test_what_the_environment_has_can_be_shadowed_too(scene: RepositorySetup) -> None:
    """A file named like an installed package would be imported in its place."""
    left = _sift(scene, _write(**{"requests.py": "x\n"}), installed=frozenset({"requests"}))
    assert left.out == {"requests.py": "shadows the module requests"}
    assert [(f.code, f.blocks) for f in left.sifted.findings] == [("shadows", False)]


def test_what_a_person_allows_stays_and_is_listed_first(scene: RepositorySetup) -> None:
    """Their word counts, and the proposal shows it before anything else; the gate also runs without it."""
    edit = _write(**{"tests/test_app.py": "new\n", "pyproject.toml": "evil\n", "tests/data/one.json": "[]\n"})
    left = _sift(scene, edit, "tests/*.py")
    assert [(t.path, t.allowed) for t in left.sifted.taken] == [
        ("tests/test_app.py", True),
        ("pyproject.toml", False),
        ("tests/data/one.json", False),
    ]
    assert left.blobs["tests/test_app.py"] == b"new\n"
    assert left.blobs["pyproject.toml"] == b"[project]\n"
    assert left.sifted.without not in ("", left.sifted.tree)


def test_an_allowance_that_can_t_be_read_is_refused(scene: RepositorySetup) -> None:
    """Who mistypes a path has to learn it before the gate runs for an hour."""
    with pytest.raises(InputInvalid):
        _sift(scene, _write(**{"src/app.py": "x"}), "../tests")


def test_names_made_to_be_misread_are_handled(scene: RepositorySetup) -> None:
    """Spaces, newlines, quotes and letters of other alphabets are legal in a path."""
    names = ["tests/a b.txt", "tests/new\nline.txt", 'tests/"q".txt', "tests/ünï.txt", "src/-x.py"]
    left = _sift(scene, _write(**dict.fromkeys(names, "x\n")))
    assert set(left.out) == set()
    assert set(names) <= set(left.files)


def test_what_new_tests_need_beside_them_is_let_in(scene: RepositorySetup) -> None:
    """Data and helpers of new tests only add; the tests of the base run without them."""
    left = _sift(scene, _write(**{"tests/data/new.json": "{}", "tests/helper.py": "X = 1\n"}))
    assert not left.out
    assert {"tests/data/new.json", "tests/helper.py"} <= set(left.files)
