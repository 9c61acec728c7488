"""Any program as an agent: a template split like a shell line and run without a shell; its output is the answer."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Mapping
from typing import Self

from bailiwick.agents.invoke import SPAWN, Invocation, ended, last_words, run, write_file
from bailiwick.agents.port import Answered, Capabilities, Compacted, Emit, Trouble, Turn, TurnIo
from bailiwick.agents.settings import AgentSettings

ANSWER_BOUND = 8 << 20
"""Bytes of output that are kept as the answer; what comes after is read and dropped."""
_PLACE = re.compile(r"\{(prompt_file|model|cwd)\}")


class CommandBackend:
    """The program of the operator's choice. It is given no credential."""

    name = "command"
    capabilities = Capabilities()

    def __init__(self, template: str) -> None:
        self._template = template

    @classmethod
    def for_settings(cls, settings: AgentSettings) -> Self:
        """The backend for the command that the person set."""
        return cls(settings.command or "")

    async def turn(self, turn: Turn, io: TurnIo, emit: Emit) -> None:
        try:
            call = _invocation(self._template, turn, io)
        except (ValueError, OSError) as error:
            emit(Trouble(str(error), type=SPAWN))
            return
        answer = _Answer()
        end = await run(call, io, answer.take)
        if isinstance(end, Trouble):
            emit(end)
        elif end.why != "exited":
            emit(ended(end))
        elif end.code:
            words = last_words(end)
            emit(Trouble(f"the command ended with code {end.code}" + (f": {words}" if words else ""), type="exit"))
        else:
            emit(Answered(answer.text))

    async def compact(self, turn: Turn, io: TurnIo, emit: Emit) -> None:
        emit(Compacted(False, "a command has no session"))

    async def check(self, env: Mapping[str, str], io: TurnIo) -> tuple[bool, str]:
        """Whether the program is there; what it would do with `--version` nobody knows."""
        try:
            program = split_template(self._template)[0]
        except ValueError as error:
            return False, f"command: {error}"
        found = shutil.which(program, path=env.get("PATH", ""))
        return found is not None, f"command: {found}" if found else f"command: '{program}' was not found on the PATH"


def split_template(template: str) -> list[str]:
    """The words of a template; raises `ValueError` where there are none or a quote is not closed."""
    try:
        words = shlex.split(template)
    except ValueError as error:
        raise ValueError(f"the command of the agent can't be split into words: {error}: {template}") from error
    if not words:
        raise ValueError("no command for the agent is set; set AGENT_CMD or agents.command")
    return words


def _invocation(template: str, turn: Turn, io: TurnIo) -> Invocation:
    """Fill in each word by itself: whatever a value holds, it stays within its argument."""
    words = split_template(template)
    words[0] = str(turn.options.get("program") or words[0])
    wants_file = any("{prompt_file}" in word for word in words)
    prompt = turn.prompt.encode("utf-8", "replace")
    file = write_file(turn, io, prompt, prefix="bailiwick-prompt-", suffix=".md") if wants_file else ""
    values = {"prompt_file": str(file), "model": turn.model or "", "cwd": str(turn.cwd)}
    argv = tuple(_PLACE.sub(lambda place: values[place[1]], word) for word in words)
    return Invocation(argv, turn.env, turn.cwd, "" if wants_file else turn.prompt)


class _Answer:
    """Collects lines up to a bound."""

    def __init__(self) -> None:
        self._lines: list[bytes] = []
        self._left = ANSWER_BOUND

    def take(self, line: bytes) -> None:
        if self._left > 0:
            self._lines.append(line[: self._left])
            self._left -= len(line) + 1

    @property
    def text(self) -> str:
        """What was collected; bytes that are no UTF-8 are replaced."""
        return b"\n".join(self._lines).decode("utf-8", "replace")
