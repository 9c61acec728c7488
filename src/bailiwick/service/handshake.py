"""The answer to a client's first message, at once: what the server is made of takes seconds to load, this does not.

The answer is what the server itself would say; a test compares the two.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Final

from bailiwick import __version__
from bailiwick.bundled_files import BUNDLED_FILES
from bailiwick.ids import Json
from bailiwick.service.jsonrpc import Id, RpcMessage

NAME: Final = "bailiwick"
TITLE: Final = "Bailiwick"
VERSIONS: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""Versions of the protocol that begin with a handshake, the newest last."""
CAPABILITIES: Final[dict[str, Json]] = {
    "prompts": {"listChanged": False},
    "resources": {"listChanged": False, "subscribe": False},
    "tools": {"listChanged": False},
}
INSTRUCTIONS: Final = BUNDLED_FILES / "prompts" / "mcp-instructions.md"


@cache
def instructions() -> str:
    """What a client is told about us."""
    return INSTRUCTIONS.read_text("utf-8").strip()


def greeting(message: RpcMessage) -> tuple[Id, bytes] | None:
    """The id and the answer of a plain `initialize`; None for anything else, which the server itself has to judge."""
    params = message.data.get("params")
    if message.method != "initialize" or message.id is None or not isinstance(params, dict):
        return None
    wanted, client = params.get("protocolVersion"), params.get("clientInfo")
    if not isinstance(wanted, str) or not isinstance(params.get("capabilities"), dict) or not isinstance(client, dict):
        return None
    if not isinstance(client.get("name"), str) or not isinstance(client.get("version"), str):
        return None
    result = {
        "capabilities": CAPABILITIES,
        "instructions": instructions(),
        "protocolVersion": wanted if wanted in VERSIONS else VERSIONS[-1],
        "serverInfo": {"name": NAME, "title": TITLE, "version": __version__},
    }
    answer = {"jsonrpc": "2.0", "id": message.id, "result": result}
    return message.id, json.dumps(answer, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
