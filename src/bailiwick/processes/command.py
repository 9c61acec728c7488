"""A process to run, and how it ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal


@dataclass(frozen=True, slots=True)
class Command:
    """A process to run: argv without a shell, its whole environment, where, for how long, how much output to keep.

    `stdin` is written to it and then closed; without any its standard input is empty from the start. Of our open
    files it gets those in `pass_fds`, no other.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: Path
    timeout: float | None = None
    keep: int = 1 << 20
    stdin: bytes = b""
    pass_fds: tuple[int, ...] = ()


Why = Literal["exited", "silence", "total", "cancelled", "budget", "disk"]
"""What ended a process: itself, one of the clocks, a person, its money, or what it wrote."""


@dataclass(frozen=True, slots=True)
class Exit:
    """How a process ended. `code` is negative for a signal; output is capped, the rest was read and dropped."""

    code: int
    stdout: bytes
    stderr: bytes
    seconds: float
    timed_out: bool = False
    cancelled: bool = False
    truncated: bool = False
    why: Why = "exited"
