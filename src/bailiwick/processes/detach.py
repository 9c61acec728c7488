"""Going into the background: a worker of its own session, with no terminal, that outlives this command."""

from __future__ import annotations

import subprocess


def start_background(argv: list[str]) -> int:
    """Start a detached process; gives its pid."""
    process = subprocess.Popen(
        argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    process.returncode = 0
    return process.pid
