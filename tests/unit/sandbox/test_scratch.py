"""Temporary files of a process: its own while it lives, and gone when it is, however it went."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from bailiwick.sandbox.service import own_scratch, sweep_scratch

MAKE = """
import os, signal, sys
from pathlib import Path
from bailiwick.sandbox.service import own_scratch
folder = own_scratch(Path(sys.argv[1]))
(folder / "gate" / "tree").mkdir(parents=True)
(folder / "gate" / "tree" / "file").write_text("x")
(folder / "gate").chmod(0)
print(folder, flush=True)
match sys.argv[2]:
    case "killed": os.kill(os.getpid(), signal.SIGKILL)
    case "alive": sys.stdin.read()
"""


def start(cache: Path, how: str) -> tuple[subprocess.Popen[str], Path]:
    """A process that has files in its directory."""
    process = subprocess.Popen(
        [sys.executable, "-c", MAKE, str(cache), how], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def test_a_process_has_one_directory_of_its_own(tmp_path: Path) -> None:
    """All of its sandboxes are in there; another cache has another one; one that was removed is made again."""
    first = own_scratch(tmp_path / "one")
    assert own_scratch(tmp_path / "one") == first
    assert first.parent == tmp_path / "one" / "scratch"
    assert first.stat().st_mode & 0o777 == 0o700
    assert own_scratch(tmp_path / "two") != first
    first.rmdir()
    again = own_scratch(tmp_path / "one")
    assert again.is_dir()
    assert sweep_scratch(tmp_path / "one") == 0
    assert again.is_dir()


def test_what_a_killed_process_left_is_removed_by_the_next(tmp_path: Path) -> None:
    """Checkouts of a gate are as big as the repository."""
    process, folder = start(tmp_path, "killed")
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert folder.is_dir()
    assert sweep_scratch(tmp_path) == 1
    assert list((tmp_path / "scratch").iterdir()) == []


def test_what_a_living_process_has_is_left_alone(tmp_path: Path) -> None:
    """Its gate runs; and at its own end it removes everything itself."""
    process, folder = start(tmp_path, "alive")
    assert sweep_scratch(tmp_path) == 0
    assert folder.is_dir()
    process.communicate()
    assert process.returncode == 0
    assert not folder.exists()


def test_a_fork_does_not_remove_what_is_its_parents(tmp_path: Path) -> None:
    """A process that was forked ends first, and often."""
    folder = own_scratch(tmp_path)
    pid = os.fork()
    if pid == 0:
        import atexit

        atexit._run_exitfuncs()
        os._exit(0)
    os.waitpid(pid, 0)
    assert folder.is_dir()


def test_no_cache_is_nothing_to_sweep(tmp_path: Path) -> None:
    """The first command of a new machine."""
    assert sweep_scratch(tmp_path) == 0
    assert list(tmp_path.iterdir()) == []
