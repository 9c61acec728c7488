"""What is still done where there is no sandbox, and that it is said plainly."""

from __future__ import annotations

import asyncio
from pathlib import Path

from bailiwick.processes.command import Exit
from bailiwick.processes.proc import EFFECT_MARK, run_process
from bailiwick.sandbox.backends.none import NoSandboxBackend
from bailiwick.sandbox.spec import HOME, INNER, Bind, SandboxSpec


def _run(tmp_path: Path, script: str, sandbox_spec: SandboxSpec) -> Exit:
    async def go() -> Exit:
        async with NoSandboxBackend(tmp_path).enter(sandbox_spec) as sandbox:
            env = {"PATH": "/usr/bin:/bin", "HOME": str(HOME), "TMPDIR": "/tmp", EFFECT_MARK: f"none-{tmp_path}"}
            return await run_process(sandbox.command(("sh", "-c", script), env), cancel=asyncio.Event())

    return asyncio.run(go())


def test_it_says_plainly_that_nothing_is_protected() -> None:
    """A person who chooses this has to know what they chose."""
    standing = asyncio.run(NoSandboxBackend().check())
    assert standing.ok
    assert "no sandbox" in standing.found
    assert any("your files, your keys" in line for line in standing.unprotected)
    assert "bubblewrap" in standing.fix


def test_inner_names_mean_what_they_stand_for(tmp_path: Path) -> None:
    """A cage is built for the other sandboxes, where the tree is always at the same place."""
    tree = tmp_path / "tree"
    (tree / "sub").mkdir(parents=True)
    sandbox_spec = SandboxSpec("agent", (Bind(tree, INNER, write=True),), cwd=INNER / "sub")
    assert _run(tmp_path, "pwd", sandbox_spec).stdout.decode() == f"{tree}/sub\n"


def test_home_and_temporary_files_are_its_own_and_gone(tmp_path: Path) -> None:
    """The person's own home holds logins that an agent must not use by accident."""
    end = _run(tmp_path, 'touch "$HOME/a" "$TMPDIR/b"; echo "$HOME $TMPDIR"', SandboxSpec("agent", cwd=Path("/")))
    places = [Path(text) for text in end.stdout.decode().split()]
    assert all(place.is_relative_to(tmp_path) for place in places)
    assert list(tmp_path.iterdir()) == []


def test_a_home_that_is_given_is_used(tmp_path: Path) -> None:
    """And it stays."""
    home = tmp_path / "home"
    home.mkdir()
    assert (
        _run(tmp_path, 'echo "$HOME"; touch "$HOME/a"', SandboxSpec("agent", cwd=HOME, home=home)).stdout.decode()
        == f"{home}\n"
    )
    assert (home / "a").exists()
