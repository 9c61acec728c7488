"""Tests run on a copy, with the project's own tools, and what they print is bounded and clean."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from bailiwick.errors import UsageError
from bailiwick.sandbox.backends.bwrap import BwrapBackend
from bailiwick.sandbox.spec import INNER, Bind
from bailiwick.skills.trials import OUTPUT, CheckRun, ProjectChecks, read_command
from tests.unit.skills.skill_stage import ProjectSetup

ROOT = Path("/work/shop")


def test_a_plain_command_runs_without_a_shell() -> None:
    """Quotes are read, paths below the project are made relative."""
    command = read_command(f"node --test '{ROOT}/tests/a b.js'", ROOT)
    assert command.argv == ("node", "--test", "tests/a b.js")
    assert command.call is None


@pytest.mark.parametrize(
    "line", ["cd sub && pytest", "FOO=1 pytest", "pytest | tee x", "pytest tests/*.py", 'sh "$HOME"/x', "a; b", "a > b"]
)
def test_a_line_that_needs_a_shell_gets_one(line: str) -> None:
    """It means what it means at a terminal."""
    assert read_command(line, ROOT).argv == ("sh", "-c", line)


@pytest.mark.parametrize("line", ["pytest -q", "python -m pytest", "uv run pytest -x", f"{ROOT}/.venv/bin/pytest"])
def test_pytest_is_recognised_and_told_to_speak_plainly(line: str) -> None:
    """Then its outcomes are heard one by one."""
    call = read_command(line, ROOT).call
    assert call is not None
    assert call.args[-3:] == ("--tb=long", "--color=no", "--continue-on-collection-errors")


def test_what_stands_in_quotes_needs_no_shell() -> None:
    """`-k 'a and (b or c)'` is one word for pytest."""
    assert read_command("pytest -k 'a and (b or c)'", ROOT).call is not None


@pytest.mark.parametrize("line", ["", "  ", "pytest 'x", "a\0b"])
def test_a_line_that_is_no_command_is_refused(line: str) -> None:
    """Before anything is spent."""
    with pytest.raises(UsageError):
        read_command(line, ROOT)


async def trials_of(stage: ProjectSetup) -> ProjectChecks:
    """Trials of the stage's project, opened through its bench."""
    return (await stage.bench().open()).trials


def run(stage: ProjectSetup, line: str, **changes: object) -> CheckRun:
    async def history() -> CheckRun:
        trials = replace(await trials_of(stage), **changes)  # type: ignore[arg-type]
        try:
            return await trials.run(trials.copies.base, line)
        finally:
            await trials.copies.close()

    return asyncio.run(history())


def test_a_command_runs_in_a_copy_and_its_exit_code_is_told(tmp_path: Path) -> None:
    """What it writes is not in the project."""
    stage = ProjectSetup(tmp_path)
    stage.write({"a.txt": "hello\n"})
    tried = run(stage, "cat a.txt; echo x > made; exit 3")
    assert (tried.code, tried.good) == (3, False)
    assert tried.output == "hello\n[exit code 3]"
    assert stage.listed() == {"a.txt": "hello\n"}


def test_long_output_is_cut_at_its_beginning_and_secrets_are_covered(tmp_path: Path) -> None:
    """The end says what went wrong."""
    stage = ProjectSetup(tmp_path)
    stage.write({"a.txt": "x\n"})
    line = (
        f'{sys.executable} -c \'print("y" * 99 + chr(10), end=str()); [print(n) for n in range(40000)]; print("hush")\''
    )
    tried = run(stage, line, clean=lambda text: text.replace("hush", "[redacted]"))
    assert len(tried.output.encode()) <= OUTPUT + 100
    assert tried.output.endswith("39999\n[redacted]\n[exit code 0]")


def test_a_command_that_hangs_is_ended(tmp_path: Path) -> None:
    """It has so many seconds."""
    stage = ProjectSetup(tmp_path)
    stage.write({"a.txt": "x\n"})
    tried = run(stage, f"{sys.executable} -c 'import signal; signal.pause()'", seconds=0.3)
    assert tried.timed_out
    assert tried.code is None


def test_a_program_that_is_not_there_is_told_before_a_model_is_asked(tmp_path: Path) -> None:
    """No model can mend that."""
    stage = ProjectSetup(tmp_path)
    stage.write({"a.txt": "x\n"})

    async def history() -> None:
        trials = await trials_of(stage)
        try:
            trials.check("sh -c true")
            trials.check("pytest")
            with pytest.raises(UsageError, match="no-such-runner"):
                trials.check("no-such-runner --all")
        finally:
            await trials.copies.close()

    asyncio.run(history())


def test_what_a_project_installed_is_shown_where_its_copy_and_its_own_path_are(tmp_path: Path) -> None:
    """Scripts of a virtual environment and packages installed to be edited name the project's own path."""
    stage = ProjectSetup(tmp_path, BwrapBackend())
    stage.write({"a.py": "x\n", ".venv/pyvenv.cfg": "home = /usr\n", "node_modules/x/index.js": "y"})
    (stage.root / "venv").symlink_to("/etc")

    async def history() -> tuple[Bind, ...]:
        trials = await trials_of(stage)
        try:
            return (await trials._bench(trials.copies.base, stage.scratch)).environment
        finally:
            await trials.copies.close()

    root = stage.root
    assert [bind for bind in asyncio.run(history()) if bind.source.is_relative_to(tmp_path)] == [
        Bind(stage.scratch, root, write=True),
        Bind(root / ".venv", root / ".venv"),
        Bind(root / "node_modules", root / "node_modules"),
        Bind(root / ".venv", INNER / ".venv"),
        Bind(root / "node_modules", INNER / "node_modules"),
    ]


def test_without_a_sandbox_installed_things_are_linked_into_the_copy(tmp_path: Path) -> None:
    """And the copy's code is imported before that of the project."""
    stage = ProjectSetup(tmp_path)
    stage.write({"src/a.py": "x\n", ".venv/pyvenv.cfg": "home = /usr\n"})
    tried = run(stage, "readlink .venv; echo $PYTHONPATH")
    lines = tried.output.splitlines()
    assert lines[0] == str(stage.root / ".venv")
    assert lines[1].startswith(str(stage.scratch))
    assert lines[1].endswith("/src")
