"""The host's end of a link to a shim, over which the listeners come that it made inside."""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress

from bailiwick.sandbox.port import OnDoor
from bailiwick.sandbox.spec import DOORS

_NAMES = 4096


class ListenerChannel:
    """Hands each listener that comes over a connected socket to `on_door`, until the other end or we close it.

    A shim sends before the program starts and then closes its end, so nothing that comes was made by the program.
    """

    def __init__(self, near: socket.socket, on_door: OnDoor) -> None:
        near.setblocking(False)
        self._near: socket.socket | None = near
        self._on_door = on_door
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(near.fileno(), self._receive)

    def _receive(self) -> None:
        if self._near is None:
            return
        try:
            names, numbers, _, _ = socket.recv_fds(self._near, _NAMES, len(DOORS), socket.MSG_CMSG_CLOEXEC)
        except BlockingIOError:
            return
        except OSError:
            names, numbers = b"", []
        if not names:
            self.close()
        listeners = [socket.socket(fileno=number) for number in numbers]
        for name, listener in zip(names.decode("ascii", "replace").split(), listeners, strict=False):
            listener.setblocking(False)
            self._on_door(name, listener)

    def close(self) -> None:
        """Take no more; a second time does nothing."""
        if self._near is not None:
            with suppress(OSError, ValueError):
                self._loop.remove_reader(self._near.fileno())
            self._near.close()
            self._near = None
