"""Writes what a process is to read from its standard input, as fast as it reads, and closes it."""

from __future__ import annotations

import asyncio
import os
from typing import IO

_CHUNK = 256 * 1024


class StdinWriter:
    """The standard input of one process. A process that closes it early has read what it wanted."""

    def __init__(self, loop: asyncio.AbstractEventLoop, file: IO[bytes], data: bytes) -> None:
        self._loop = loop
        self._file = file
        self._left = memoryview(data)
        self._is_closed = False
        os.set_blocking(file.fileno(), False)
        loop.add_writer(file.fileno(), self._write)

    def _write(self) -> None:
        try:
            written = os.write(self._file.fileno(), self._left[:_CHUNK])
        except BlockingIOError:
            return
        except OSError:
            self.close()
            return
        self._left = self._left[written:]
        if not self._left:
            self.close()

    def close(self) -> None:
        """Write no more; a second time does nothing."""
        if not self._is_closed:
            self._is_closed = True
            self._loop.remove_writer(self._file.fileno())
            self._file.close()
