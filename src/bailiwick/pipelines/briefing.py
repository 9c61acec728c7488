"""What an agent is told besides its task: the gate's commands, and approved notes.

A brain that can't be read stops no work.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from bailiwick.errors import BailiwickError
from bailiwick.pipelines.model import GateCommand, PreflightLine

if TYPE_CHECKING:
    from bailiwick.clock import Clock
    from bailiwick.config.service import Config
    from bailiwick.gate.spec import GateSpec


def gate_commands(spec: GateSpec) -> tuple[GateCommand, ...]:
    """The commands among the checks of a gate; what else it looks at has none."""
    return tuple(GateCommand(check.name, shlex.join(check.run)) for check in spec.checks if check.run)


async def notes_about(
    task: str, repository: Path, config: Config, clock: Clock, tell: Callable[[PreflightLine], None]
) -> str:
    """Approved notes of this project and global ones about a task, as one marked text; "" where there are none."""
    from bailiwick.brain.service import Brain, scope_of

    if not (config.get("features.brain") and config.get("brain.briefs")):
        return ""
    brain = Brain.open(config, clock)
    try:
        brief = await brain.brief(task, scope_of(repository), int(config.get("brain.tokens")))
    except (BailiwickError, OSError) as error:
        tell(PreflightLine("brief", f"without notes: {error.sentence if isinstance(error, BailiwickError) else error}"))
        return ""
    finally:
        brain.close()
    if brief.notes:
        tell(PreflightLine("brief", f"with notes {', '.join(note.id for note in brief.notes)}"))
    return brief.text
