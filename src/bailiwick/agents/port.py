"""The port of agent backends: one turn in, a stream of our events out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from bailiwick.ids import Json
from bailiwick.processes.command import Exit


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn. `session` is resumed where it is given; `schema` is the wanted answer, where it can be enforced.

    `system` is what stands above the task: a message of its own where the backend knows one, else before the prompt.
    """

    key: str
    prompt: str
    model: str | None
    cwd: Path
    env: Mapping[str, str]
    session: str | None = None
    schema: Json = None
    max_usd: float | None = None
    base_url: str | None = None
    token: str | None = None
    options: Mapping[str, Json] = field(default_factory=dict)
    node: str = ""
    attempt: int = 1
    tree: Path | None = None
    system: str = ""

    @property
    def folder(self) -> Path:
        """Where the files of `cwd` are on the host: inside a sandbox the directory may have another name."""
        return self.tree or self.cwd

    @property
    def messages(self) -> list[Json]:
        """The turn as a chat: the task, below what stands above it."""
        above: list[Json] = [{"role": "system", "content": self.system}] if self.system else []
        return [*above, {"role": "user", "content": self.prompt}]


@dataclass(frozen=True, slots=True)
class Said:
    """The agent said something on its way; not yet its answer."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolBegan:
    """A tool call is open: silence is no hang while it is."""

    id: str
    name: str


@dataclass(frozen=True, slots=True)
class ToolEnded:
    """A tool call ended; `denied` when permission for it was refused."""

    id: str
    denied: bool = False
    text: str = ""


@dataclass(frozen=True, slots=True)
class Used:
    """Tokens and money as the backend counts them. `cumulative` totals run over a resumed session. None is unknown."""

    input: int | None = None
    output: int | None = None
    cached: int | None = None
    usd: float | None = None
    cumulative: bool = False
    model: str = ""


@dataclass(frozen=True, slots=True)
class SessionKnown:
    """The session can be resumed under this id."""

    id: str


@dataclass(frozen=True, slots=True)
class LimitSeen:
    """The backend told of a limit. `hit` says that it stops us; a warning does not."""

    hit: bool
    window: str = ""
    used: float | None = None
    resets_at: float | None = None
    text: str = ""


@dataclass(frozen=True, slots=True)
class Trouble:
    """The backend reported an error: status, type, words, Retry-After in seconds. `final` ends the turn."""

    message: str
    status: int | None = None
    type: str = ""
    retry_after: float | None = None
    resets_at: float | None = None
    final: bool = True


@dataclass(frozen=True, slots=True)
class Answered:
    """The turn's answer. `structured` is what a backend that enforces a schema gave; `stop` why the model stopped."""

    text: str
    structured: Json = None
    stop: str = ""


@dataclass(frozen=True, slots=True)
class Compacted:
    """The session was made shorter, or could not be."""

    ok: bool
    text: str = ""


@dataclass(frozen=True, slots=True)
class ProcessEnded:
    """The backend's process ended; standard error is its tail."""

    code: int
    stderr: str = ""
    why: Literal["exited", "silence", "total", "cancelled", "budget", "disk"] = "exited"


AgentEvent = (
    Said | ToolBegan | ToolEnded | Used | SessionKnown | LimitSeen | Trouble | Answered | Compacted | ProcessEnded
)
Emit = Callable[[AgentEvent], None]


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a backend can do. `credential` says whether the broker can keep the real one out of the agent's reach."""

    resume: bool = False
    compact: bool = False
    schema: bool = False
    credential: Literal["brokered", "exposed", "none"] = "none"
    default_model: str | None = None
    system: bool = False


class TurnIo(Protocol):
    """What a backend may do to the world. Clocks, cancellation and process groups are the launcher's."""

    async def spawn(
        self, argv: tuple[str, ...], env: Mapping[str, str], cwd: Path, stdin: bytes, on_line: Callable[[bytes], None]
    ) -> Exit:
        """Run a program of this turn; each line of its output goes to `on_line` as bytes, of bounded length."""

    def note(self, path: Path) -> None:
        """A temporary file of this turn, removed when it is over."""


class Backend(Protocol):
    """A way to reach an agent. It never retries, sleeps or decides; vendors' own retries are turned off."""

    name: str
    capabilities: Capabilities

    async def turn(self, turn: Turn, io: TurnIo, emit: Emit) -> None:
        """Ask once. Ends with `Answered`, a final `Trouble`, or `ProcessEnded` alone. Foreign exceptions stop here."""

    async def compact(self, turn: Turn, io: TurnIo, emit: Emit) -> None:
        """Make `turn.session` shorter; ends with `Compacted`. Only where the capability says so."""

    async def check(self, env: Mapping[str, str], io: TurnIo) -> tuple[bool, str]:
        """Whether it could be used, in one line, without spending anything."""
