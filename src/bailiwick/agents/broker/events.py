"""Splits a stream of server-sent events into whole ones, so that nothing is ever inserted into the middle of one."""

from __future__ import annotations

import re
from collections.abc import Iterator

MAX_EVENT = 4 << 20
"""Bytes of an event that is looked at; of a larger one the pieces are passed on as they come."""

_END = re.compile(rb"\r\n\r\n|\n\n|\r\r")
_OVERLAP = 3


class Events:
    """Takes bytes, gives back events: the bytes of each, and whether they are a whole one."""

    def __init__(self, most: int = MAX_EVENT) -> None:
        self._most = most
        self._rest = bytearray()
        self._looked = 0
        self._is_torn = False

    def feed(self, data: bytes) -> Iterator[tuple[bytes, bool]]:
        """The events that these bytes complete."""
        self._rest += data
        while found := _END.search(self._rest, self._looked):
            yield bytes(self._rest[: found.end()]), not self._is_torn
            del self._rest[: found.end()]
            self._looked, self._is_torn = 0, False
        if len(self._rest) > self._most:
            self._is_torn = True
            yield bytes(self._rest[:-_OVERLAP]), False
            del self._rest[:-_OVERLAP]
        self._looked = max(0, len(self._rest) - _OVERLAP)

    def finish(self) -> tuple[bytes, bool]:
        """What no empty line ended."""
        return bytes(self._rest), not self._is_torn


def data_of(event: bytes) -> bytes:
    """The data of an event, its lines joined."""
    lines = [line.partition(b":") for line in event.splitlines()]
    return b"\n".join(value.removeprefix(b" ") for name, _, value in lines if name == b"data")
