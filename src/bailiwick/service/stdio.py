"""MCP on a pipe: standard output carries the protocol and nothing else, a line that is too long is refused unread."""

from __future__ import annotations

import asyncio
import fcntl
import os
import queue
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from bailiwick.service.handshake import greeting
from bailiwick.service.jsonrpc import INVALID_REQUEST, Id, OpenRequests, RpcMessage, in_use, read_message, refusal

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.server.lowlevel import Server
    from mcp.shared.message import SessionMessage

LONGEST: Final = 4_000_000
"""Bytes of one line."""
CHUNK: Final = 65_536
AHEAD: Final = 8
"""Chunks that are read before they are looked at."""
LAST_WORDS: Final = 2.0
"""Seconds for what is still to be written at the end."""
TOO_LONG: Final = refusal(INVALID_REQUEST, "a message may have 4,000,000 bytes at most: name files by their path")


@contextmanager
def claimed() -> Iterator[tuple[int, int]]:
    """Standard input and output for the protocol alone; whoever else prints meanwhile prints to standard error."""
    sys.stdout.flush()
    inlet, outlet = (fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, 3) for number in (0, 1))
    nowhere = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    os.dup2(nowhere, 0)
    os.dup2(2, 1)
    os.close(nowhere)
    try:
        yield inlet, outlet
    finally:
        sys.stdout.flush()
        os.dup2(inlet, 0)
        os.dup2(outlet, 1)


@dataclass(slots=True)
class StdioLines:
    """Cuts bytes into lines; of one that is too long only that is told."""

    most: int = LONGEST
    _rest: bytearray = field(default_factory=bytearray)
    _skips: bool = False

    def feed(self, data: bytes) -> list[bytes | None]:
        """The lines that are whole now; None stands for one that was too long."""
        out: list[bytes | None] = []
        *whole, rest = data.split(b"\n")
        for part in whole:
            out += self._end(part)
        self._rest += rest
        if len(self._rest) > self.most and not self._skips:
            self._skips = True
            out.append(None)
        if self._skips:
            self._rest.clear()
        return out

    def _end(self, part: bytes) -> list[bytes | None]:
        line, skipped = bytes(self._rest) + part, self._skips
        self._rest.clear()
        self._skips = False
        if skipped or not line.strip():
            return []
        return [line if len(line) <= self.most else None]


class StdioTransport:
    """The two ends of the pipe. Threads of their own read and write, so that neither keeps the process from ending."""

    def __init__(self, inlet: int, outlet: int) -> None:
        self._inlet = inlet
        self._outlet = outlet
        self._loop = asyncio.get_running_loop()
        self._lines: asyncio.Queue[list[bytes | None]] = asyncio.Queue()
        self._first: list[list[bytes | None]] = []
        self._begun = False
        self.greeted: Id | None = None
        self.requests = OpenRequests()
        self._room = threading.Semaphore(AHEAD)
        self._words: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self.gone = asyncio.Event()
        self._writer = threading.Thread(target=self._write, name="mcp output", daemon=True)
        self._reader = threading.Thread(target=self._read, name="mcp input", daemon=True)

    def begin(self) -> None:
        """Start reading and writing; twice is once."""
        if not self._begun:
            self._begun = True
            self._writer.start()
            self._reader.start()

    async def greet(self, stop: asyncio.Event) -> None:
        """Begin, and answer the first message at once where it is a plain greeting; `take` gives it all the same."""
        self.begin()
        taking = asyncio.ensure_future(self.take())
        ended = asyncio.ensure_future(stop.wait())
        await asyncio.wait({taking, ended}, return_when=asyncio.FIRST_COMPLETED)
        ended.cancel()
        if not taking.done():
            taking.cancel()
            return
        lines = taking.result()
        self._first.append(lines)
        found = read_message(lines[0]) if lines and lines[0] is not None else None
        if isinstance(found, RpcMessage) and (made := greeting(found)) is not None:
            self.greeted, answer = made
            self.put(answer)

    async def take(self) -> list[bytes | None]:
        """The next lines; none at the end of the input."""
        if self._first:
            return self._first.pop()
        found = await self._lines.get()
        self._room.release()
        return found

    def put(self, line: bytes) -> None:
        """Write a line; never waits."""
        self._words.put(line)

    async def finish(self) -> None:
        """Write what is left, for a bounded time."""
        self._words.put(None)
        await asyncio.to_thread(self._writer.join, LAST_WORDS)

    def _read(self) -> None:
        cut = StdioLines()
        while True:
            try:
                data = os.read(self._inlet, CHUNK)
            except OSError:
                data = b""
            found = cut.feed(data)
            if (found or not data) and not self._hand_over(found if data else []):
                return
            if not data:
                return

    def _hand_over(self, lines: list[bytes | None]) -> bool:
        """Give lines to the loop, waiting while it is busy; False where there is none any more."""
        self._room.acquire()
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._lines.put_nowait, lines)
            return True
        return False

    def _write(self) -> None:
        while (line := self._words.get()) is not None:
            try:
                rest = memoryview(line)
                while rest:
                    rest = rest[os.write(self._outlet, rest) :]
            except OSError:
                with suppress(RuntimeError):
                    self._loop.call_soon_threadsafe(self.gone.set)
                return


async def serve_pipe(server: Server[Any], wire: StdioTransport, stop: asyncio.Event) -> None:
    """Serve one client until it closes the pipe or `stop` is set; what its calls started is ended then."""
    import anyio

    from bailiwick.runtime.supervise import Supervisor

    arrived, incoming = anyio.create_memory_object_stream[Any](0)
    outgoing, leaving = anyio.create_memory_object_stream[Any](0)
    problems: list[BaseException] = []

    def crashed(_name: str, error: BaseException) -> None:
        problems.append(error)
        stop.set()

    async def serve() -> None:
        await server.run(incoming, outgoing, server.create_initialization_options())
        stop.set()

    async def leave() -> None:
        await wire.gone.wait()
        stop.set()

    supervisor = Supervisor(crashed)
    wire.begin()
    supervisor.start(serve(), "mcp")
    supervisor.start(_pass_in(wire, arrived), "mcp input")
    supervisor.start(_pass_out(wire, leaving), "mcp output")
    supervisor.start(leave(), "mcp end")
    await stop.wait()
    await supervisor.close()
    await wire.finish()
    if problems:
        raise problems[0]


async def _pass_in(wire: StdioTransport, arrived: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
    from mcp.shared.message import SessionMessage
    from mcp_types import jsonrpc_message_adapter

    async with arrived:
        while lines := await wire.take():
            for line in lines:
                refused = _refused(wire.requests, line)
                if refused or line is None:
                    wire.put(refused)
                    continue
                try:
                    message = jsonrpc_message_adapter.validate_json(line, by_name=False)
                except ValueError:
                    wire.put(_no_message(wire.requests, line))
                    continue
                await arrived.send(SessionMessage(message))


def _refused(requests: OpenRequests, line: bytes | None) -> bytes:
    """What is answered to a line that nobody else gets to see; b"" where it is a message."""
    if line is None:
        return TOO_LONG
    found = read_message(line)
    if not isinstance(found, RpcMessage):
        return found.answer
    if (gone := found.cancels) is not None:
        requests.end(gone)
    if not found.method or found.id is None or requests.begin(found.id):
        return b""
    return in_use(found.id)


def _no_message(requests: OpenRequests, line: bytes) -> bytes:
    found = read_message(line)
    name = found.id if isinstance(found, RpcMessage) else None
    requests.end(name)
    return refusal(INVALID_REQUEST, "this is not a request, notification or answer of JSON-RPC", name)


async def _pass_out(wire: StdioTransport, leaving: MemoryObjectReceiveStream[SessionMessage]) -> None:
    async with leaving:
        async for one in leaving:
            name = None if hasattr(one.message, "method") else getattr(one.message, "id", None)
            wire.requests.end(name)
            if name is not None and name == wire.greeted:
                wire.greeted = None  # it was answered before the server was there
                continue
            wire.put(one.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")
