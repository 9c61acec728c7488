# ruff: noqa: S101 - a conformance suite asserts
"""How it ends, and that nothing is left."""

from __future__ import annotations

import asyncio
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from bailiwick.processes import children
from bailiwick.processes.command import Exit
from bailiwick.processes.proc import EFFECT_MARK
from bailiwick.sandbox.spec import INNER, Bind, SandboxSpec
from bailiwick.testing.polling import until
from bailiwick.testing.sandbox_conformance.stage import (
    DAEMON,
    PATH,
    PATIENCE,
    SandboxFixture,
    folder,
    new_mark,
    python,
    run,
    spawn,
    traces,
)


class Endings(SandboxFixture):
    """How it ends, and that nothing is left."""

    def test_a_process_left_behind_is_gone_at_the_end(self, tmp_path: Path) -> None:
        """It left its session, closed its pipes, ignores TERM, and still does not survive."""
        mark = new_mark()
        end = self.play(tmp_path, python(DAEMON), env={"PATH": PATH, EFFECT_MARK: mark})
        assert end.code == 0, end
        assert (self.tree(tmp_path) / "alive").exists()
        assert children.find_children({EFFECT_MARK: mark}) == []

    def test_nothing_is_left_on_the_host(self, tmp_path: Path) -> None:
        """No mount, no control group, no open file of ours, no temporary file."""
        sandbox = self.ready_sandbox(tmp_path)
        self.play(tmp_path, ("true",), sandbox=sandbox)
        before = traces(tmp_path)
        sandbox_spec = replace(self.sandbox_spec(tmp_path), doors=("model",))
        for argv in (("true",), ("no-such-program",), ("sh", "-c", "kill -9 $$")):
            self.play(
                tmp_path, argv, sandbox=sandbox, sandbox_spec=sandbox_spec, on_door=lambda _, listener: listener.close()
            )
        assert traces(tmp_path) == before

    def test_a_cancel_lets_the_program_end_by_itself(self, tmp_path: Path) -> None:
        """An agent that gets TERM can write its session down."""
        code = (
            "import signal, sys\n"
            "def end(*_): open('ended', 'w').close(); sys.exit(7)\n"
            "signal.signal(signal.SIGTERM, end); print('ready', flush=True)\nwhile True: signal.pause()"
        )
        end = self.play(tmp_path, python(code), cancel_at="ready")
        assert end.cancelled
        assert (self.tree(tmp_path) / "ended").exists()

    def test_a_cancel_ends_a_deaf_program_too(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """After its grace."""
        monkeypatch.setattr(children, "GRACE", 0.2)
        mark = new_mark()
        code = "import signal; signal.signal(15, signal.SIG_IGN); print('ready', flush=True)\nwhile 1: signal.pause()"
        end = self.play(tmp_path, python(code), cancel_at="ready", env={"PATH": PATH, EFFECT_MARK: mark})
        assert end.cancelled
        assert children.find_children({EFFECT_MARK: mark}) == []

    def test_to_leave_a_room_ends_what_runs_in_it(self, tmp_path: Path) -> None:
        """Also where whoever started it no longer cares."""
        mark = new_mark()
        started: list[subprocess.Popen[bytes]] = []
        sandbox = self.ready_sandbox(tmp_path)

        async def go() -> None:
            async with sandbox.enter(self.sandbox_spec(tmp_path)) as room:
                env = {"PATH": PATH, EFFECT_MARK: mark}
                command = room.command(python("open('here', 'w')\nimport signal; signal.pause()"), env)
                started.append(spawn(command))
                await asyncio.to_thread(until, (self.tree(tmp_path) / "here").exists)

        asyncio.run(go())
        started[0].wait(PATIENCE)
        assert children.find_children({EFFECT_MARK: mark}) == []

    def test_twenty_at_once_do_not_mix(self, tmp_path: Path) -> None:
        """A map over twenty items starts twenty agents."""
        sandbox = self.ready_sandbox(tmp_path)
        trees = [folder(tmp_path / f"tree-{number}") for number in range(20)]

        async def one(number: int, tree: Path) -> Exit:
            sandbox_spec = SandboxSpec("agent", (Bind(tree, INNER, write=True),))
            script = f"ls -A; echo {number} > file; cat file; exit {number}"
            return await run(sandbox, sandbox_spec, ("sh", "-c", script), {"PATH": PATH, EFFECT_MARK: new_mark()})

        async def go() -> list[Exit]:
            return await asyncio.gather(*(one(number, tree) for number, tree in enumerate(trees)))

        ends = asyncio.run(go())
        assert [(end.code, end.stdout) for end in ends] == [(n, f"{n}\n".encode()) for n in range(20)]

    def test_a_path_of_the_host_is_told_as_it_is_inside(self, tmp_path: Path) -> None:
        """What is told to an agent has to be true where it is."""
        file = self.tree(tmp_path) / "a/file"
        sandbox = self.ready_sandbox(tmp_path)

        async def go() -> None:
            async with sandbox.enter(self.sandbox_spec(tmp_path)) as room:
                if not self.isolates:
                    assert room.inner(file) == file
                    return
                assert room.inner(file) == INNER / "a/file"
                with pytest.raises(ValueError, match="can't be seen"):
                    room.inner(tmp_path / "elsewhere")

        asyncio.run(go())
