"""An attempt works on a copy; the project gets what was checked, or nothing."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from bailiwick.errors import NotReady
from bailiwick.git.snapshot import TreeBounds
from bailiwick.routing.model import CheckOutcome, FileOut, Result
from bailiwick.skills import copies
from bailiwick.skills.project_files import MOST_FILES, ProjectFiles
from bailiwick.skills.site import CheckArguments, ProjectState, refused
from tests.unit.skills.skill_stage import DONE, ProjectSetup, given

FILES = {"calc.py": "def add(a, b):\n    return a + b\n", "docs/readme.md": "hello\n"}


async def accept(_result: Result, site: ProjectState, _asked: CheckArguments) -> CheckOutcome:
    """A check that everything passes; it tells what it saw."""
    return CheckOutcome(ok=True, output=" ".join(f"{one.status}:{one.path}" for one in site.changes))


def make_git(root: Path) -> None:
    for words in (["init", "-q"], ["add", "."], ["-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "-qm", "x"]):
        subprocess.run(["git", *words], cwd=root, check=True, timeout=600)


@pytest.fixture
def stage(tmp_path: Path) -> ProjectSetup:
    """A project in no repository."""
    made = ProjectSetup(tmp_path)
    made.write(FILES)
    return made


async def attempt(bench: ProjectFiles, files: Mapping[str, str]) -> tuple[str, CheckOutcome | None, str]:
    """One attempt as the router makes it: what put, check and keep said."""
    await bench.open()
    try:
        await bench.begin()
        if why := await bench.put(given(files)):
            return why, None, ""
        checked = await bench.check(DONE)
        return "", checked, await bench.keep() if checked.ok else ""
    finally:
        await bench.drop()


@pytest.mark.parametrize("repository", [False, True])
def test_what_was_accepted_is_in_the_project_afterwards(stage: ProjectSetup, *, repository: bool) -> None:
    """New and changed files come, the others stay, and no copy is left."""
    if repository:
        make_git(stage.root)
    new = {"calc.py": "changed\n", "src/new.py": "x = 1\n"}
    refused_by, checked, missed = asyncio.run(attempt(stage.bench(accept), new))
    assert (refused_by, missed) == ("", "")
    assert checked is not None
    assert checked.output == "M:calc.py A:src/new.py"
    assert stage.listed() == {**FILES, **new}
    assert list(stage.scratch.iterdir()) == []


def test_a_replaced_file_keeps_how_its_text_lies_in_it(stage: ProjectSetup) -> None:
    """Line endings, byte order mark, the right to be run; whether a model gave it or an agent wrote it."""
    (stage.root / "calc.py").write_bytes(b"def add(a, b):\r\n    return a + b\r\n")
    (stage.root / "run.sh").write_bytes(b"echo 1\n")
    (stage.root / "run.sh").chmod(0o755)

    async def history() -> CheckOutcome:
        bench = stage.bench(accept)
        await bench.open()
        work = await bench.begin()
        assert await bench.put(given({"calc.py": "one\ntwo\n", "run.sh": "\ufeffecho 2\r\n"})) == ""
        (work / "docs/readme.md").write_bytes(b"\xef\xbb\xbfhello\r\nyou")
        checked = await bench.check(DONE)
        assert await bench.keep() == ""
        await bench.drop()
        return checked

    assert asyncio.run(history()).output == "M:calc.py M:docs/readme.md M:run.sh"
    assert (stage.root / "calc.py").read_bytes() == b"one\r\ntwo\r\n"
    assert (stage.root / "run.sh").read_bytes() == b"echo 2\n"
    assert (stage.root / "run.sh").stat().st_mode & 0o111 == 0o111
    assert (stage.root / "docs/readme.md").read_bytes() == b"hello\nyou\n"


def test_what_was_refused_leaves_the_project_as_it_was(stage: ProjectSetup) -> None:
    """The whole point of a copy."""

    async def refuse(_result: Result, _site: ProjectState, _asked: CheckArguments) -> CheckOutcome:
        return refused("no")

    _, checked, _ = asyncio.run(attempt(stage.bench(refuse), {"calc.py": "bad\n"}))
    assert checked == refused("no")
    assert stage.listed() == FILES


def test_each_attempt_begins_with_the_project_as_it_was(stage: ProjectSetup) -> None:
    """Nothing of a refused attempt is in the next."""

    async def history() -> list[str]:
        bench = stage.bench(accept)
        await bench.open()
        seen = []
        for name in ("one.py", "two.py"):
            tree = await bench.begin()
            await bench.put(given({name: "x\n"}))
            seen.append((await bench.check(DONE)).output)
            assert (tree / "calc.py").read_text() == FILES["calc.py"]
        await bench.keep()
        await bench.drop()
        return seen

    assert asyncio.run(history()) == ["A:one.py", "A:two.py"]
    assert "one.py" not in stage.listed()


def test_a_file_that_a_person_changed_meanwhile_is_not_overwritten(stage: ProjectSetup) -> None:
    """Nor is anything else brought."""

    async def history() -> str:
        bench = stage.bench(accept)
        await bench.open()
        await bench.begin()
        await bench.put(given({"calc.py": "model\n", "new.py": "x\n"}))
        await bench.check(DONE)
        stage.write({"calc.py": "person\n"})
        missed = await bench.keep()
        await bench.drop()
        return missed

    assert "calc.py was changed" in asyncio.run(history())
    assert stage.listed() == {**FILES, "calc.py": "person\n"}


def test_an_agent_may_edit_and_delete_in_its_copy(stage: ProjectSetup) -> None:
    """A tier with tools works on the tree itself; what it did after the check is not brought."""

    async def history() -> str:
        bench = stage.bench(accept)
        await bench.open()
        tree = await bench.begin()
        (tree / "docs" / "readme.md").unlink()
        (tree / "calc.py").write_text("edited\n")
        (tree / "__pycache__").mkdir()
        (tree / "__pycache__" / "calc.pyc").write_bytes(b"x")
        checked = await bench.check(DONE)
        (tree / "calc.py").write_text("edited after the check\n")
        assert await bench.keep() == ""
        await bench.drop()
        return checked.output

    assert asyncio.run(history()) == "M:calc.py D:docs/readme.md"
    assert stage.listed() == {"calc.py": "edited\n"}


REFUSED: tuple[tuple[dict[str, str], str], ...] = (
    ({"../out": "x"}, "plain path"),
    ({"/etc/x": "x"}, "not relative"),
    ({".git/hooks/pre-commit": "x"}, "git"),
    ({".bailiwick/gate.yaml": "x"}, "never written"),
    ({"big": "x" * (2 << 20) + "y"}, "2 MB"),
    ({f"f{number}": "" for number in range(MOST_FILES + 1)}, "more than the 200"),
)


def test_files_that_may_not_be_written_are_refused_all_together(tmp_path: Path) -> None:
    """Put says why; nothing is in the copy, not even the good file among them."""
    stage = ProjectSetup(tmp_path)
    stage.write(FILES)

    async def history() -> None:
        bench = stage.bench(accept)
        await bench.open()
        tree = await bench.begin()
        for files, why in REFUSED:
            assert why in await bench.put(given({"good.py": "x", **files}))
        assert sorted(path.name for path in tree.iterdir()) == ["calc.py", "docs"]
        await bench.drop()

    asyncio.run(history())


def test_a_path_below_the_project_may_be_given_whole(tmp_path: Path) -> None:
    """Models like to repeat project_root; twice the same file is refused whatever it is called."""
    stage = ProjectSetup(tmp_path)
    stage.write(FILES)

    async def history() -> str:
        bench = stage.bench(accept)
        await bench.open()
        await bench.begin()
        assert await bench.put([FileOut(f"{stage.root}/a.py", "x"), FileOut("./b.py", "y")]) == ""
        twice = await bench.put([FileOut("a.py", "x"), FileOut("./a.py", "y")])
        await bench.drop()
        return twice

    assert "twice" in asyncio.run(history())


def test_a_link_that_an_agent_makes_is_refused(tmp_path: Path) -> None:
    """It could lead anywhere once it is in the project."""
    stage = ProjectSetup(tmp_path)
    stage.write(FILES)

    async def history() -> CheckOutcome:
        bench = stage.bench(accept)
        await bench.open()
        tree = await bench.begin()
        (tree / "link").symlink_to("/etc/passwd")
        checked = await bench.check(DONE)
        assert await bench.keep() != ""
        await bench.drop()
        return checked

    checked = asyncio.run(history())
    assert not checked.ok
    assert "symbolic link" in checked.feedback


def test_an_ignored_file_is_not_silently_lost(tmp_path: Path) -> None:
    """A model that writes one is told that it can't be kept."""
    stage = ProjectSetup(tmp_path)
    stage.write({**FILES, ".gitignore": "build/\n"})
    _, checked, _ = asyncio.run(attempt(stage.bench(accept), {"build/out.txt": "x"}))
    assert checked is not None
    assert "ignored" in checked.feedback


def test_a_skill_that_reads_only_changes_nothing(tmp_path: Path) -> None:
    """Neither by files in its answer nor by an agent's hand."""
    stage = ProjectSetup(tmp_path)
    stage.write(FILES)

    async def history() -> tuple[str, CheckOutcome]:
        bench = stage.bench(accept, writes=False)
        await bench.open()
        tree = await bench.begin()
        said = await bench.put(given({"a": "x"}))
        (tree / "calc.py").write_text("edited\n")
        checked = await bench.check(DONE)
        await bench.keep()
        await bench.drop()
        return said, checked

    said, checked = asyncio.run(history())
    assert "writes no files" in said
    assert "changes no files" in checked.feedback
    assert stage.listed() == FILES


def test_an_answer_that_says_it_failed_is_not_checked(tmp_path: Path) -> None:
    """The next tier hears why; an unchanged project would pass some checks."""
    stage = ProjectSetup(tmp_path)
    stage.write(FILES)

    async def history() -> CheckOutcome:
        bench = stage.bench(accept)
        await bench.open()
        await bench.begin()
        checked = await bench.check(replace(DONE, status="fail", message="the spec contradicts itself"))
        await bench.drop()
        return checked

    assert asyncio.run(history()) == CheckOutcome(
        ok=False, ran=False, feedback="it could not be done (fail): the spec contradicts itself"
    )


def test_a_part_of_a_repository_is_a_project_of_its_own(tmp_path: Path) -> None:
    """A package of a larger repository: tracked, new and ignored files as that repository has them."""
    top = ProjectSetup(tmp_path)
    top.write({"other/a.py": "1\n", "pkg/.gitignore": "*.log\n", "pkg/b.py": "2\n", "pkg/x.log": "3\n"})
    make_git(top.root)
    top.write({"pkg/new.py": "4\n"})

    async def history() -> list[str]:
        bench = top.bench(accept)
        bench.project = top.root / "pkg"
        await bench.open()
        tree = await bench.begin()
        found = sorted(path.name for path in tree.iterdir())
        await bench.drop()
        return found

    assert asyncio.run(history()) == [".gitignore", "b.py", "new.py"]


def test_a_project_that_is_too_large_is_refused_before_anything_is_spent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message says what to do; nothing is left."""
    stage = ProjectSetup(tmp_path)
    stage.write(FILES)
    monkeypatch.setattr(copies, "BOUNDS", TreeBounds(files=1))
    with pytest.raises(NotReady, match="too large"):
        asyncio.run(stage.bench(accept).open())
    assert list(stage.scratch.iterdir()) == []


def test_caches_and_installed_things_are_not_copied(tmp_path: Path) -> None:
    """A folder without an ignore file has them too."""
    stage = ProjectSetup(tmp_path)
    stage.write({**FILES, ".venv/lib/x.py": "x", "node_modules/y/index.js": "y", "__pycache__/z.pyc": "z"})

    async def history() -> list[str]:
        bench = stage.bench(accept)
        tree = (await bench.open(), await bench.begin())[1]
        found = sorted(path.name for path in tree.iterdir())
        await bench.drop()
        await bench.drop()
        return found

    assert asyncio.run(history()) == ["calc.py", "docs"]
