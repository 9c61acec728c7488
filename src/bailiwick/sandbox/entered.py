"""What every entered sandbox keeps of its commands: what they take with them, their marks, and how far they got."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from bailiwick.processes import children
from bailiwick.processes.command import Command
from bailiwick.processes.proc import EFFECT_MARK
from bailiwick.processes.spawning import marks_of


def pack(fields: Iterable[tuple[str, str | bytes]]) -> bytes:
    """A letter to the shim. Raises `OSError` for a value that no process could be given, such as one with a NUL."""
    try:
        encoded = [tag.encode() + b"=" + (os.fsencode(said) if isinstance(said, str) else said) for tag, said in fields]
        if any(b"\0" in field for field in encoded):
            raise ValueError("embedded null byte")
    except ValueError as error:
        raise OSError(errno.EINVAL, f"an argument or a variable can't be passed to a process: {error}") from error
    return b"\0".join(encoded)


class Descriptors:
    """Open descriptors of ours, all closed at once."""

    def __init__(self) -> None:
        self._numbers: list[int] = []
        self._said: set[int] = set()

    def content(self, data: bytes) -> int:
        """One from which `data` can be read once."""
        number = self.own(os.memfd_create("bailiwick", os.MFD_CLOEXEC))
        with os.fdopen(os.dup(number), "wb") as file:
            file.write(data)
        os.lseek(number, 0, os.SEEK_SET)
        return number

    def pipe(self) -> tuple[int, int]:
        """A pipe whose reading end, which stays here, never blocks."""
        reader, writer = os.pipe()
        os.set_blocking(reader, False)
        return self.own(reader), self.own(writer)

    def own(self, number: int) -> int:
        """Take one over."""
        self._numbers.append(number)
        return number

    def said(self, number: int) -> bool:
        """Whether somebody has written to the pipe with this reading end."""
        if number in self._numbers and number not in self._said:
            with suppress(OSError):
                if os.read(number, 1):
                    self._said.add(number)
        return number in self._said

    def close(self) -> None:
        """Close them all."""
        while self._numbers:
            with suppress(OSError):
                os.close(self._numbers.pop())


@dataclass(slots=True)
class EnteredSandbox:
    """The part of an entered sandbox that is the same however it was made."""

    _descriptors: Descriptors = field(default_factory=Descriptors, init=False)
    _ready: dict[tuple[str, ...], int] = field(default_factory=dict, init=False)
    _keys: set[str] = field(default_factory=set, init=False)

    def entered(self, command: Command) -> bool:
        """Whether the program of a command was reached: if not, what it printed is about the sandbox."""
        return self._descriptors.said(self._ready.get(command.argv, -1))

    def exceeded(self) -> tuple[str, ...]:
        """Which limits of the whole sandbox were met so far; none where nobody tells."""
        return ()

    def _marks(self, env: Mapping[str, str]) -> dict[str, str]:
        """By which the processes of a command are found, also when the sandbox is left."""
        marks = marks_of(env)
        self._keys.update(marks.values())
        return marks

    async def _end_marked(self) -> None:
        for key in self._keys:
            await children.end_children({EFFECT_MARK: key}, 0.0)
