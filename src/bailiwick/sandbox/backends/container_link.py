"""Where the shim of a container and the host meet: a socket in a directory that only this one container sees."""

from __future__ import annotations

import asyncio
import os
import socket
from contextlib import suppress
from pathlib import Path

from bailiwick.sandbox.listeners import ListenerChannel
from bailiwick.sandbox.port import OnDoor


class ShimConnection:
    """Waits for one shim, gives it descriptors, then takes listeners from it and holds the link until `close`.

    Once the shim has come, all that was in the directory is gone: the program finds neither letter nor socket there.
    """

    def __init__(self, folder: Path, give: list[int], on_door: OnDoor | None) -> None:
        self._folder = folder
        self._give = give
        self._on_door = on_door or _refuse
        self._loop = asyncio.get_running_loop()
        self._link: ListenerChannel | None = None
        self._listener: socket.socket | None = _listen(folder)
        self._loop.add_reader(self._listener.fileno(), self._accept)

    def _accept(self) -> None:
        if self._listener is None:
            return
        try:
            near, _ = self._listener.accept()
        except OSError:
            return
        self._stop_listening()
        try:
            socket.send_fds(near, [b"1"], self._give)
        except OSError:
            near.close()
            return
        self._link = ListenerChannel(near, self._on_door)

    def _stop_listening(self) -> None:
        if self._listener is not None:
            self._loop.remove_reader(self._listener.fileno())
            self._listener.close()
            self._listener = None
            with suppress(OSError):
                for path in self._folder.iterdir():
                    path.unlink()

    def close(self) -> None:
        """Wait no longer and let go of the link: a shim that watches it ends its program."""
        self._stop_listening()
        if self._link is not None:
            self._link.close()
            self._link = None


def _listen(folder: Path) -> socket.socket:
    """A listener in a directory, however long its path is."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    at = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        listener.bind(f"/proc/self/fd/{at}/link")
        listener.listen(1)
        listener.setblocking(False)
    except OSError:
        listener.close()
        raise
    finally:
        os.close(at)
    return listener


def _refuse(name: str, listener: socket.socket) -> None:
    """There is nobody behind a door that was not asked for."""
    listener.close()
