"""Messages of JSON-RPC before anybody else reads them: what is none is refused in the protocol's own words. Pure."""

from __future__ import annotations

import json
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Final

from bailiwick.ids import Json

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
CANCELLED: Final = "notifications/cancelled"

Id = int | str


@dataclass(frozen=True, slots=True)
class RpcMessage:
    """One message: a request has a method and an id, a notification only a method, an answer only an id."""

    data: dict[str, Json]

    @property
    def id(self) -> Id | None:
        """Its id; None where it has none."""
        return id_of(self.data.get("id"))

    @property
    def method(self) -> str:
        """What is asked for; "" in an answer."""
        method = self.data.get("method")
        return method if isinstance(method, str) else ""

    @property
    def cancels(self) -> Id | None:
        """The id of the request that it takes back; None where it takes back none."""
        params = self.data.get("params")
        return id_of(params.get("requestId")) if self.method == CANCELLED and isinstance(params, dict) else None


@dataclass(frozen=True, slots=True)
class Refused:
    """What is answered to something that is no message."""

    answer: bytes


def id_of(value: Json) -> Id | None:
    """A value as the id of a request; None where it can't be one."""
    return value if isinstance(value, int | str) and not isinstance(value, bool) else None


def refusal(code: int, message: str, name: Id | None = None) -> bytes:
    """An error as one line."""
    answer = {"jsonrpc": "2.0", "id": name, "error": {"code": code, "message": message}}
    return json.dumps(answer, separators=(",", ":")).encode() + b"\n"


def read_message(raw: bytes) -> RpcMessage | Refused:
    """The message in some bytes, or the answer to what is none."""
    try:
        data = json.loads(raw)
    except (ValueError, RecursionError):
        return Refused(refusal(PARSE_ERROR, "Parse error: each line has to be one JSON-RPC message"))
    if isinstance(data, list):
        return Refused(refusal(INVALID_REQUEST, "batches are not supported: send each message by itself"))
    if not isinstance(data, dict):
        return Refused(refusal(INVALID_REQUEST, "a message has to be a JSON object"))
    name = id_of(data.get("id"))
    if data.get("jsonrpc") != "2.0":
        return Refused(refusal(INVALID_REQUEST, 'a message has to say "jsonrpc": "2.0"', name))
    if "method" in data and not isinstance(data["method"], str):
        return Refused(refusal(INVALID_REQUEST, "'method' has to be a text", name))
    if "id" in data and name is None and "method" in data:
        return Refused(refusal(INVALID_REQUEST, "'id' has to be a number or a text"))
    return RpcMessage(data)


@dataclass(slots=True)
class OpenRequests:
    """The requests that wait for their answer, by whoever made them."""

    _open: set[Hashable] = field(default_factory=set)

    def begin(self, name: Hashable) -> bool:
        """Take note of a request; False where one with this id is open."""
        if name in self._open:
            return False
        self._open.add(name)
        return True

    def end(self, name: Hashable) -> None:
        """It is answered, or nobody wants the answer any more."""
        self._open.discard(name)


def in_use(name: Id) -> bytes:
    """What is answered to a request whose id another one has that is still open."""
    return refusal(INVALID_REQUEST, "a request with this id is still open: give each request an id of its own", name)
