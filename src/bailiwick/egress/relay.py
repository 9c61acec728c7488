"""The way from a sandbox to the containers that its tests talk to: bytes are carried between a door and an address.

A door is a listener that was made inside, where it is all of the network there is. Behind it is one address and no
other, whatever is said through it: a port of a container's own loopback, which only a socket of its network reaches.
"""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field

from bailiwick.egress.carry import PIECE, Connection, ConnectionServer, carry

MAX_CONNECTIONS = 128
"""How many connections one command may have at once; one more is closed as soon as it is made."""
DIAL_SECONDS = 10.0
_HOST = "127.0.0.1"
_NEW_NETWORK = 0x40000000


@dataclass(frozen=True, slots=True)
class Address:
    """A port at 127.0.0.1 of a network: an open file of a namespace stands for it, or nothing for our own."""

    port: int
    network: int | None


@dataclass(slots=True)
class RelayServer:
    """Serves the doors of one command, until `close`: `addresses` says which address is behind which door."""

    addresses: Mapping[str, Address]
    connections: int = MAX_CONNECTIONS
    _server: ConnectionServer = field(init=False)

    def __post_init__(self) -> None:
        self._server = ConnectionServer(self.connections)

    async def serve(self, door: str, listening: socket.socket) -> None:
        """Serve a listener from now on, and own it; one behind which there is nothing is only closed."""
        address = self.addresses.get(door)
        if address is None:
            listening.close()
            return

        async def attend(ours: Connection) -> None:
            theirs = await dial(address)
            try:
                await carry(ours, theirs)
            finally:
                await theirs.close()

        await self._server.serve(listening, attend)

    async def close(self) -> None:
        """End every connection and stop to listen; a second time does nothing."""
        await self._server.close()


async def dial(address: Address, seconds: float = DIAL_SECONDS) -> Connection:
    """A connection to an address; an `OSError` or a `TimeoutError` where none comes about."""
    dialing = socket.socket() if address.network is None else _socket_of(address.network)
    try:
        dialing.setblocking(False)
        async with asyncio.timeout(seconds):
            await asyncio.get_running_loop().sock_connect(dialing, (_HOST, address.port))
            return Connection(*await asyncio.open_connection(sock=dialing, limit=PIECE))
    except BaseException:
        dialing.close()
        raise


def _socket_of(network: int) -> socket.socket:
    """A socket of another network, where it stays. The thread that goes there to make it ends there: none returns."""
    made: list[socket.socket | OSError] = []

    def make() -> None:
        try:
            _enter(network)
            made.append(socket.socket())
        except OSError as error:
            made.append(error)

    thread = threading.Thread(target=make, name="bailiwick-dial")
    thread.start()
    thread.join()
    if isinstance(made[0], OSError):
        raise made[0]
    return made[0]


def _enter(network: int) -> None:
    """Take the calling thread, and no other, to a network."""
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(network, _NEW_NETWORK):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
