"""What a skill and a tool are. Pure: a tool is the same for the command line and for MCP."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from bailiwick.ids import Json

Kind = Literal["text", "id", "path", "paths", "texts", "integer", "object"]
Origin = Literal["bundled", "person", "repository"]
Scope = Literal["read", "run"]

NAME = re.compile(r"[a-z][a-z0-9-]{0,63}")
"""What a skill may be called; its folder is called the same."""
SEVERITIES = ("blocker", "major", "minor", "nit")
"""How bad a finding is, worst first."""
ARGUMENT_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a tool. `id` is a text that can be a file's name; lists read `a.py,b.py` on the command line."""

    name: str
    kind: Kind
    doc: str
    required: bool = False


@dataclass(frozen=True, slots=True)
class Hints:
    """What a client may assume of a call before it makes it."""

    read_only: bool
    destructive: bool
    idempotent: bool
    open_world: bool


@dataclass(frozen=True, slots=True)
class Tool:
    """Something that can be called by name. `skill` is the discipline it follows, "" where no model is asked.

    `scope` is what a token needs. `writes`: the call may change files of the project. `files` names the arguments
    whose files a model without tools gets to read.
    """

    name: str
    title: str
    doc: str
    arguments: tuple[Argument, ...]
    skill: str
    phase: str
    hints: Hints
    takes_model: bool = True
    takes_session: bool = True
    scope: Scope = "run"
    writes: bool = False
    files: tuple[str, ...] = ()

    @property
    def all_arguments(self) -> tuple[Argument, ...]:
        """The tool's own arguments, then those that many tools share."""
        named = {one.name for one in self.arguments}
        session = (SESSION if self.skill else IDLE_SESSION,) if self.takes_session else ()
        model = (MODEL if self.skill else IDLE_MODEL,) if self.takes_model else ()
        return (*self.arguments, *(one for one in (*session, *model) if one.name not in named))


@dataclass(frozen=True, slots=True)
class Skill:
    """A discipline: what a model is told to do and never to do. `parts` are further texts of the folder, by stem.

    A part with the name of a phase goes to the model with the body when that phase is done, and only then.

    `chain` and `local_only` are the author's wish; `arguments` None stands for the usual ones; `output` is the JSON
    Schema of `details`, where the skill has an answer of its own.
    """

    name: str
    description: str
    body: str
    origin: Origin
    path: str
    digest: str
    local_only: bool = False
    chain: tuple[str, ...] | None = None
    arguments: tuple[Argument, ...] | None = None
    phase: str = ""
    files: str = ""
    writes: bool = False
    output: Json = None
    parts: Mapping[str, str] = field(default_factory=dict)

    def discipline(self, phase: str = "") -> str:
        """What a model is told: the body, and the text of the phase that it is to do, where there is one."""
        part = self.parts.get(phase, "")
        return f"{self.body}\n\n{part}" if part else self.body

    @property
    def tool_name(self) -> str:
        """What the skill is called as a tool."""
        return self.name.replace("-", "_")


MODEL = Argument("model", "text", "One model to use instead of the chain; nothing is escalated or verified then.")
IDLE_MODEL = Argument("model", "text", "Every tool takes it; this one asks no model, so nothing depends on it.")
SESSION = Argument("session_id", "id", "The session of the call: its earlier entries are told, and the call is logged.")
IDLE_SESSION = Argument("session_id", "id", "The session that the call belongs to.")
