"""A scripted agent: no key, no network, the same each time. Without a script it answers every declared output."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self, assert_never

from bailiwick.agents.port import (
    Answered,
    Capabilities,
    Compacted,
    Emit,
    LimitSeen,
    ProcessEnded,
    Said,
    SessionKnown,
    ToolBegan,
    ToolEnded,
    Trouble,
    Turn,
    TurnIo,
    Used,
)
from bailiwick.agents.settings import AgentSettings
from bailiwick.agents.simulation import (
    Behaviour,
    Cap,
    Cheat,
    Crash,
    Denial,
    Outage,
    RateLimit,
    Script,
    Stuck,
    Words,
    read_script,
)
from bailiwick.clock import Clock, SystemClock
from bailiwick.engine.failures import FailureKind
from bailiwick.ids import Json, digest
from bailiwick.processes.command import Exit

SHOWN = 2000
"""Characters of a command's output that are told."""
_SESSION = re.compile(r"(sim-[0-9a-f]{12})-(\d{1,4})")
_STUCK: Mapping[Stuck, tuple[str, ...]] = {
    "hang": ("sh", "-c", "exec tail -f /dev/null"),
    "ignore_term": ("sh", "-c", "trap '' TERM; while :; do sleep 1; done"),
    "endless": ("sh", "-c", "exec yes 'simulated output without end'"),
}
_TEST_FILES = ("**/test_*.py", "**/*_test.py", "**/*_test.go", "**/*.test.*", "**/*.spec.*")
_EXIT = "import os\n\n\ndef pytest_sessionfinish(session, exitstatus):\n    os._exit(0)\n"
_SKIP = 'import pytest\n\npytestmark = pytest.mark.skip(reason="flaky")\n'


class SimulateBackend:
    """Plays a script. What it does is a function of the script and the place: node, visit, attempt, effect key."""

    name = "simulate"
    capabilities = Capabilities(resume=True, compact=True, schema=True)

    def __init__(self, script: Script | None = None, *, shown: str = "", clock: Clock | None = None) -> None:
        self._script = script or Script()
        self._shown = shown
        self._clock = clock or SystemClock()

    @classmethod
    def for_settings(cls, settings: AgentSettings) -> Self:
        """The backend for the script that was given; raises `InputInvalid` where the script has problems."""
        if settings.script is None:
            return cls()
        return cls(read_script(settings.script), shown=str(settings.script))

    async def turn(self, turn: Turn, io: TurnIo, emit: Emit) -> None:
        context = _Scene(turn, does=self._behaviour(turn), script=self._script, clock=self._clock, io=io, emit=emit)
        emit(SessionKnown(_session(turn)))
        try:
            await context.play()
        except OSError as error:
            emit(
                Trouble(f"the simulated agent could not do what its script says: {error}", type=str(FailureKind.SPAWN))
            )

    async def compact(self, turn: Turn, io: TurnIo, emit: Emit) -> None:
        if not self._behaviour(turn).compacts:
            emit(Compacted(ok=False, text="Compaction failed · conversation could not be reduced"))
            return
        base, count = _known(turn)
        emit(SessionKnown(f"{base}-{count + 1}"))
        emit(Compacted(ok=True))

    async def check(self, env: Mapping[str, str], io: TurnIo) -> tuple[bool, str]:
        script = f"by {self._shown}" if self._shown else "every declared output is answered"
        return True, f"simulated agent, no key, no network: {script}"

    def _behaviour(self, turn: Turn) -> Behaviour:
        return self._script.behaviour(turn.node, int(turn.options.get("visit", 1)), turn.attempt, turn.key)


def _known(turn: Turn) -> tuple[str, int]:
    """A session's name and how often it was compacted; both are in its id, so that a restart forgets nothing."""
    found = _SESSION.fullmatch(turn.session or "")
    return (found[1], int(found[2])) if found else (f"sim-{digest(turn.key + turn.node)[:12]}", 0)


def _compactions(turn: Turn) -> int:
    """How often the session was compacted when this turn begins; one on the compact rung has just been."""
    return _known(turn)[1] + (turn.options.get("rung") == "compact")


def _session(turn: Turn) -> str:
    return f"{_known(turn)[0]}-{_compactions(turn)}"


@dataclass(slots=True)
class _Scene:
    """One attempt."""

    turn: Turn
    does: Behaviour
    script: Script
    clock: Clock
    io: TurnIo
    emit: Emit
    tools: int = 0

    async def play(self) -> None:
        """Do what the script says, up to one end."""
        trouble = self._outage() or self._overflow()
        if trouble is not None:
            self.emit(trouble)
            return
        if not await self._wait():
            return
        for text in self.does.say:
            self.emit(Said(text))
        self._edit(self.does.edit)
        for argv in self.does.run:
            if not await self._run(argv):
                return
        if self.does.denied:
            self.emit(ToolBegan("tool-denied", self.does.denied))
            self.emit(ToolEnded("tool-denied", denied=True, text=f"permission to use {self.does.denied} was denied"))
        if self.does.cheat:
            self._edit(_cheating(self.does.cheat, self.turn.folder))
        await self._end()

    def _outage(self) -> Trouble | None:
        outage = self.does.outage
        if outage is None or self._is_over(outage):
            return None
        if outage.kind == "unreachable":
            return Trouble("simulated: connection refused", type=str(FailureKind.UNREACHABLE))
        return Trouble("simulated: Overloaded", status=529, type="overloaded_error")

    def _is_over(self, outage: Outage) -> bool:
        if outage.until is not None and self.clock.now() >= outage.until:
            return True
        return bool(outage.until_file) and (self.turn.folder / outage.until_file).exists()

    def _overflow(self) -> Trouble | None:
        if _compactions(self.turn) >= self.does.overflow:
            return None
        return Trouble("simulated: prompt is too long", status=400, type=str(FailureKind.OVERFLOW))

    async def _wait(self) -> bool:
        """Let the model's latency pass, in a process, so that every clock and a cancel hold here too."""
        price = self.script.price(self.turn.model)
        seconds = price.latency if self.does.latency is None else self.does.latency
        if not seconds:
            return True
        end = await self._spawn(("sleep", f"{seconds:g}"))
        return self._went_on(end)

    def _edit(self, files: Mapping[str, str | None]) -> None:
        """Write files, or remove those without a text; a link that leads out of the directory is not followed."""
        root = self.turn.folder.resolve()
        for name, content in files.items():
            path = (root / name).resolve()
            if not path.is_relative_to(root):
                raise OSError(f"{name} leads out of the working directory")
            tool = self._tool("edit")
            if content is None:
                path.unlink(missing_ok=True)
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(content, "utf-8")
            self.emit(ToolEnded(tool, text=name))

    async def _run(self, argv: tuple[str, ...]) -> bool:
        lines: list[str] = []

        def on_line(line: bytes) -> None:
            if sum(map(len, lines)) < SHOWN:
                lines.append(line[:SHOWN].decode("utf-8", "replace"))

        tool = self._tool("shell")
        end = await self.io.spawn(argv, self.turn.env, cwd=self.turn.cwd, stdin=b"", on_line=on_line)
        text = "\n".join(lines)[:SHOWN]
        self.emit(ToolEnded(tool, text=text if end.code == 0 else f"exit {end.code}\n{text}".strip()))
        return self._went_on(end)

    def _tool(self, name: str) -> str:
        self.tools += 1
        self.emit(ToolBegan(f"tool-{self.tools}", name))
        return f"tool-{self.tools}"

    async def _spawn(self, argv: tuple[str, ...]) -> Exit:
        return await self.io.spawn(argv, self.turn.env, cwd=self.turn.cwd, stdin=b"", on_line=_ignore)

    def _went_on(self, end: Exit) -> bool:
        if end.why == "exited":
            return True
        self.emit(ProcessEnded(end.code, why=end.why))
        return False

    async def _end(self) -> None:
        match self.does.end:
            case None:
                self._answer()
            case Words() as words:
                self._speak(words)
            case RateLimit(retry_after=wait):
                self._use("")
                said = "simulated: this request would exceed the rate limit"
                self.emit(Trouble(said, status=429, type="rate_limit_error", retry_after=wait))
            case Cap() as cap:
                self._cap(cap)
            case Crash(code=code, stderr=stderr):
                self._use("")
                self.emit(ProcessEnded(code, stderr))
            case "auth" | "billing" as denial:
                self.emit(_denial(denial))
            case "hang" | "ignore_term" | "endless" as stuck:
                end = await self._spawn(_STUCK[stuck])
                self.emit(ProcessEnded(end.code, why=end.why))
            case never:
                assert_never(never)

    def _cap(self, cap: Cap) -> None:
        words = cap.text or "You've hit your 5-hour limit"
        if cap.resets_in is None:
            self.emit(Trouble(words))
            return
        resets_at = self.clock.now() + cap.resets_in
        self.emit(LimitSeen(hit=True, window=cap.window or "five_hour", resets_at=resets_at, text=words))
        self.emit(Trouble(words, status=429, type="usage_limit_reached", resets_at=resets_at))

    def _answer(self) -> None:
        if self.does.denied and self.does.answer is None:
            self._speak(Words())
            return
        values = self._values()
        text = (
            "Done." if values is None else f"Done.\n\n```json\n{json.dumps(values, ensure_ascii=False, indent=1)}\n```"
        )
        self._use(text)
        self.emit(Answered(text, values, "end_turn"))

    def _values(self) -> dict[str, Json] | None:
        """Every declared output: the script's word, else the declared default, else the least its schema allows."""
        from bailiwick.lang.instances import smallest

        given = dict(self.does.answer or {})
        if self.turn.schema is None:
            return given or None
        made = smallest(self.turn.schema)
        defaults = self.turn.options.get("defaults")
        return {
            **(made if isinstance(made, dict) else {}),
            **(defaults if isinstance(defaults, dict) else {}),
            **given,
        }

    def _speak(self, words: Words) -> None:
        text = words.text
        values = self._values() or {"result": "done"}
        if words.shape == "bad_json":
            text = f'Here is the result:\n{{"{next(iter(values), "result")}": "and then the text brea'
        elif words.shape == "two_objects":
            text = f'First: {{"draft": true}}\nNo, better: {json.dumps(values, ensure_ascii=False)}'
        self._use(text)
        self.emit(Answered(text, stop=words.stop or "end_turn"))

    def _use(self, text: str) -> None:
        """Tell the tokens, some four characters each where the script does not count them, and their price."""
        price, told = self.script.price(self.turn.model), self.does.tokens
        asked = told.get("input", len(self.turn.prompt) // 4 + 1)
        said = told.get("output", len(text) // 4 + 1)
        usd = (asked * price.input_usd + said * price.output_usd) / 1e6 if self.does.usd is None else self.does.usd
        self.emit(Used(asked, said, told.get("cached"), round(usd, 9), model=self.turn.model or "simulated"))


def _denial(denial: Denial) -> Trouble:
    if denial == "auth":
        return Trouble("simulated: invalid API key", status=401, type="authentication_error")
    return Trouble("simulated: the credit balance is too low", status=402, type="billing_error")


def _cheating(cheat: Cheat, cwd: Path) -> dict[str, str | None]:
    """The files that an agent changes which would rather look done than be done."""
    root = cwd.resolve()
    tests = sorted({path for pattern in _TEST_FILES for path in root.glob(pattern) if path.is_file()})
    names = [path.relative_to(root).as_posix() for path in tests]
    match cheat:
        case "claim":
            return {}
        case "exit":
            return {"conftest.py": _EXIT}
        case "gate":
            return {".bailiwick/gate.yaml": "checks: []\n"}
        case "delete":
            return dict.fromkeys(names)
        case "skip":
            python = [name for name in names if name.endswith(".py")]
            return {name: _SKIP + (root / name).read_text("utf-8", "replace") for name in python}
        case never:
            assert_never(never)


def _ignore(line: bytes) -> None:
    """Nobody reads the output of a process that is only there to be ended."""
