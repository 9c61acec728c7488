"""The outputs of a process: read as they come, kept within fixed bounds, and told line by line to whoever watches."""

from __future__ import annotations

import asyncio
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import IO

LINE_LENGTH = 2000
LINES_PER_SECOND = 20

OnLine = Callable[[str, str], None]

_CHUNK = 64 * 1024
_LAST = 1024 * 1024
"""The most bytes that are taken at the end: what a pipe may hold. Whoever still writes then is not waited for."""
_PARTIAL = 4 * LINE_LENGTH
_SEQUENCES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]PX^_][^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?|\x9b[0-?]*[ -/]*[@-~]|\x1b[ -/]*[0-~]?"
)
_CONTROLS = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def plain_line(raw: bytes, length: int = LINE_LENGTH) -> str:
    """A line of output as text that is safe to show: no terminal sequences or control characters, of bounded length."""
    text = raw[: 4 * length].decode("utf-8", "replace")
    text = _CONTROLS.sub("", _SEQUENCES.sub("", text)).replace("\t", " ").strip()
    return text if len(text) <= length else text[: length - 1] + "…"


class Pipe(ABC):
    """One of the two outputs: read whenever there is something, kept within a bound.

    `received` gets the bytes as they come, `closed` is called at the end.
    """

    def __init__(
        self, file: IO[bytes], bound: int, received: Callable[[bytes], None], closed: Callable[[], None]
    ) -> None:
        self.kept = bytearray()
        self.truncated = False
        self.is_closed = False
        self._file = file
        self._bound = bound
        self._received = received
        self._closed = closed
        self._loop = asyncio.get_running_loop()
        os.set_blocking(file.fileno(), False)
        self._loop.add_reader(file.fileno(), self._read)

    def _read(self) -> None:
        data = self._next()
        if data:
            self._take(data)
        elif data is not None:
            self._let_go()
            self._closed()

    def _next(self) -> bytes | None:
        """What there is to read now: empty at the end, None while there is nothing."""
        try:
            return os.read(self._file.fileno(), _CHUNK)
        except BlockingIOError:
            return None
        except OSError:
            return b""

    def _take(self, data: bytes) -> None:
        self._keep(data)
        self._received(data)

    @abstractmethod
    def _keep(self, data: bytes) -> None:
        """Keep of it what the bound allows."""

    def _let_go(self) -> None:
        self.is_closed = True
        self._loop.remove_reader(self._file.fileno())
        self._file.close()

    def close(self) -> None:
        """Take what is there, however late we come to it, then stop reading; a second time does nothing."""
        taken = 0
        while not self.is_closed and taken < _LAST and (data := self._next()):
            taken += len(data)
            self._take(data)
        if not self.is_closed:
            self._let_go()


class FirstBytes(Pipe):
    """Keeps the first bytes."""

    def _keep(self, data: bytes) -> None:
        room = self._bound - len(self.kept)
        self.truncated = self.truncated or len(data) > room
        if room > 0:
            self.kept += data[:room]


class Tail(Pipe):
    """Keeps the last bytes; twice the bound in between, so that bytes are moved seldom."""

    def _keep(self, data: bytes) -> None:
        self.kept += data
        if len(self.kept) > 2 * self._bound:
            del self.kept[: -self._bound]


class Lines:
    """Passes lines on, some twenty a second; of those that come faster the last one is passed on a little later."""

    def __init__(self, loop: asyncio.AbstractEventLoop, on_line: OnLine) -> None:
        self._loop = loop
        self._on_line = on_line
        self._partial = {"stdout": b"", "stderr": b""}
        self._held: tuple[str, bytes] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._left = float(LINES_PER_SECOND)
        self._since = loop.time()

    def feed(self, stream: str, data: bytes) -> None:
        """Take some bytes of a stream; a carriage return ends a line too, as progress bars write them."""
        room = self._room()
        *lines, partial = (self._partial[stream] + data.replace(b"\r", b"\n")).rsplit(b"\n", room + 2)
        self._partial[stream] = partial[:_PARTIAL]
        if len(lines) > room + 1:
            del lines[0]  # what is before the last lines, however many lines that is
        if len(lines) > room:
            self._hold(stream, lines[-1])
            lines = lines[:room]
        for line in lines:
            self._pass_on(stream, line)

    def _room(self) -> int:
        now = self._loop.time()
        self._left = min(LINES_PER_SECOND, self._left + (now - self._since) * LINES_PER_SECOND)
        self._since = now
        return int(self._left)

    def _hold(self, stream: str, line: bytes) -> None:
        self._held = (stream, line[:_PARTIAL])
        if self._timer is None:
            self._timer = self._loop.call_later(1 / LINES_PER_SECOND, self._release)

    def _release(self) -> None:
        self._timer = None
        if self._held is not None:
            (stream, line), self._held = self._held, None
            self._pass_on(stream, line)

    def _pass_on(self, stream: str, line: bytes) -> None:
        text = plain_line(line)
        if text:
            self._left -= 1
            self._on_line(stream, text)

    def close(self) -> None:
        """Say what is still held, and the last lines that no newline ended."""
        if self._timer is not None:
            self._timer.cancel()
        self._release()
        for stream, line in self._partial.items():
            self._pass_on(stream, line)
