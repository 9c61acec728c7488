"""What plain pytest says about a tree, and what a plain process says that asks with other values than the tests."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from tests.security.gatehouse import write
from tests.security.shop import BASE

END = "right to the end"
Outcome = subprocess.CompletedProcess[str]


def leave(
    folder: Path, files: Mapping[str, str | bytes | None], base: Mapping[str, str] | None = None
) -> Path:  # a whole tree, so that nothing is shared
    """The base with these files changed, in a new directory."""
    write(folder, {**BASE, **(base or {})})
    write(folder, files)
    return folder


def plain_pytest(folder: Path, tools: Path, *words: str) -> Outcome:
    """The project's own tests as a person or a pipeline runs them: nothing but pytest."""
    environment = {
        "PATH": f"{tools}:/usr/bin:/bin",
        "HOME": str(folder),
        "TMPDIR": str(folder.parent),
        "LANG": "C.UTF-8",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    return _run([str(tools / "pytest"), "-q", "-p", "no:cacheprovider", *words], folder, environment)


def is_right(folder: Path, program: str) -> tuple[bool, str]:
    """Whether a program comes to its end in a plain process that sees the product and no tests; and what it said.

    In a directory whose path names no tests either: some products look for that.
    """
    with tempfile.TemporaryDirectory(prefix="plain-") as outside:
        elsewhere = Path(outside) / "tree"
        shutil.copytree(folder, elsewhere, symlinks=True, ignore=shutil.ignore_patterns("tests", "__pycache__"))
        text = f"import sys\nsys.path.insert(0, {str(elsewhere)!r})\n{program}\nprint({END!r})\n"
        python = os.path.realpath(sys.executable)
        done = _run([python, "-I", "-B", "-"], Path(outside), {"PATH": "/usr/bin:/bin", "TMPDIR": outside}, text)
    return END in done.stdout, done.stdout + done.stderr


def _run(command: list[str], folder: Path, environment: dict[str, str], program: str = "") -> Outcome:
    return subprocess.run(
        command,
        cwd=folder,
        env=environment,
        input=program,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
        errors="replace",
    )
