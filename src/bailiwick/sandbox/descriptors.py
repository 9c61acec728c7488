"""Descriptors that a command takes with it: made before it starts, closed on our side when the room is left."""

from __future__ import annotations

import os
from contextlib import suppress


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
