"""Notes are also posted where the operator says so. A server that does not take one costs nothing but a word."""

from __future__ import annotations

from bailiwick.agents.http import ApiRequest, CallFailed, Endpoint, HttpTimeouts, calling, with_scheme
from bailiwick.agents.port import Trouble
from bailiwick.brain.model import Note, one_line
from bailiwick.clock import iso
from bailiwick.ids import Json

SECONDS = 5.0
_CLOCKS = HttpTimeouts(SECONDS, SECONDS)


async def post_note(url: str, note: Note) -> str:
    """Send a note as JSON; gives why it could not be sent, empty where it was taken."""
    endpoint = Endpoint(with_scheme(url))
    try:
        async with calling(ApiRequest(endpoint, endpoint.base_url, _body(note), clocks=_CLOCKS)) as reply:
            return "" if 200 <= reply.status < 300 else f"{endpoint.host} answered with status {reply.status}"
    except CallFailed as failed:
        event = failed.event
        return one_line(event.message if isinstance(event, Trouble) else f"{endpoint.host}: {event.stderr}", 200)


def _body(note: Note) -> dict[str, Json]:
    said: dict[str, Json] = {name: getattr(note, name) for name in ("id", "title", "text", "type", "scope", "source")}
    return {**said, "tags": list(note.tags), "status": note.status, "created": iso(note.created)}
