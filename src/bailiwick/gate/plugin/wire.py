"""The pipe to the gate outside; sent as text, before everything else that runs inside."""

from __future__ import annotations

import _thread
import hashlib
import json
import os
import struct
from typing import Any


def open_wire(handle: int, key: bytes) -> Any:
    """A function that sends a record down the pipe: numbered, sealed, and only from the process that opened it.

    It says whether it did. Who may not wait, such as an audit hook in another thread, is told no while one is sent.
    """
    write, pack, dumps, getpid = os.write, struct.pack, json.dumps, os.getpid
    owner, sent = getpid(), [0]
    lock = _thread.allocate_lock()
    empty = hashlib.blake2b(key=key, digest_size=16)

    def send(record: dict[str, Any], *, wait: bool = True) -> bool:
        if getpid() != owner or not lock.acquire(wait):
            return False
        try:
            body = dumps(record).encode("ascii")
            seal = empty.copy()
            seal.update(pack(">Q", sent[0]) + body)
            sent[0] += 1
            data = pack(">I", len(body)) + seal.digest() + body
            while data:
                data = data[write(handle, data) :]
        finally:
            lock.release()
        return True

    os.set_inheritable(handle, False)
    return send


def hide_input() -> None:
    """Give the program an empty standard input: ours held the request."""
    handle = os.open(os.devnull, os.O_RDONLY)
    os.dup2(handle, 0)
    os.close(handle)
