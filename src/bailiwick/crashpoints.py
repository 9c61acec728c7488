"""Named places where a test may cut the power. Nothing is armed unless the command line's configuration says so."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from typing import Literal, get_args

Action = Literal["kill", "stop"]

NAMES: dict[str, str] = {
    "append.before_commit": "A batch is written, its transaction is not committed.",
    "append.after_commit": "A batch is durable, its caller does not know yet.",
    "blob.written": "A big blob is a durable file, the batch that needs it is not committed.",
    "effect.before_start_commit": "An effect was decided on, its start is not durable.",
    "effect.after_start_commit": "The start of an effect is durable, the effect has not begun.",
    "effect.spawned": "The process of an effect runs, nothing about it is journaled.",
    "effect.finished_before_commit": "An effect has ended, its result is only in memory.",
    "effect.finished_after_commit": "The result of an effect is durable, the next one has not begun.",
    "wait.opened": "A wait is durable, the slot is not free yet.",
    "child.created": "A child run is durable, nobody walks it yet.",
    "claim.taken": "A run is claimed, its holder has not read it.",
    "claim.released": "A run was let go, its former holder does not know yet.",
    "inbox.sent": "A message is in an inbox, its sender does not know yet.",
    "inbox.drained": "Messages were read, the events made of them are not durable.",
    "document.committed": "A document is durable, the file that people read is not written.",
    "pin.written": "The files of a definition are pinned, the run does not exist.",
    "run.created": "A run is durable, its creator does not know yet.",
    "run.finished": "The end of a run is durable, nobody was told.",
    "project.visit": "The directory of a visit is half written.",
    "scope.joined": "A parallel or map has joined, its parent has not gone on.",
    "stop.landed": "A stop is durable, the process has not ended.",
    "worktree.filled": "A worktree has its files under another name, it is not in its place yet.",
    "worktree.made": "A worktree is in its place, its run does not know yet.",
    "worktree.put_away": "A worktree is out of sight, its files are still there.",
    "gate.checked": "All checks of a gate have ended, nothing of it is kept, its checkouts are still there.",
    "gate.recorded": "A gate's report is stored and audited, its run does not know yet.",
    "proposal.committed": "The commit of a proposal is made, there is no proposal yet.",
    "proposal.noted": "A proposal is durable, its branch is not there.",
    "proposal.branched": "The branch of a proposal is in the person's repository, nothing left this machine.",
    "proposal.pushed": "The branch is pushed, there is no pull request.",
    "proposal.opened": "The pull request is open, the proposal does not know yet.",
    "work.kept": "Work without a proposal is safe in its branch, its worktree is still there.",
}
"""Every point there is, with what is and is not done when it is reached."""


@dataclass(slots=True)
class _Trap:
    left: int
    signal: signal.Signals


_armed: dict[str, _Trap] = {}


def reach(name: str) -> None:
    """Do nothing, or end this process if `name` is armed and its turn has come; an unknown name is a `KeyError`."""
    if NAMES[name] and name in _armed:
        trap = _armed[name]
        trap.left -= 1
        if trap.left == 0:
            os.kill(os.getpid(), trap.signal)


def arm(name: str, nth: int = 1, action: Action = "kill") -> None:
    """Let the process kill itself (`stop`: suspend itself) the `nth` time it reaches `name`; later times pass."""
    if name not in NAMES:
        raise KeyError(name)
    if nth < 1:
        raise ValueError(f"a crash point is reached a first time before any other: {nth}")
    _armed[name] = _Trap(nth, signal.SIGSTOP if action == "stop" else signal.SIGKILL)


def arm_from(text: str) -> None:
    """Arm what `name`, `name:n` or `name:n:stop` says; `ValueError` when it says something else."""
    name, _, rest = text.partition(":")
    nth, _, action = rest.partition(":")
    if (nth and not nth.isdecimal()) or (action and action not in get_args(Action)):
        raise ValueError(f"a crash point reads name, name:n or name:n:stop, not {text!r}")
    arm(name, int(nth or 1), "stop" if action == "stop" else "kill")


def disarm() -> None:
    """Forget everything that was armed."""
    _armed.clear()
