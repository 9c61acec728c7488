"""The `agent` kind where no backend is installed: it loads and validates, and running it says what is missing."""

from __future__ import annotations

from bailiwick.engine.events import Failure
from bailiwick.engine.graph import Node
from bailiwick.engine.render import Lookup, Rendered, Renderer
from bailiwick.runtime.kinds import Done, Failed, Io, Request

MESSAGE = "no agent backend is available: this version runs scripts, decisions and waits"


class AgentlessKind:
    """Refuses each attempt in words."""

    def prepare(self, node: Node, lookup: Lookup, renderer: Renderer) -> Rendered:
        return Rendered(None)

    async def attempt(self, request: Request, io: Io) -> Done | Failed:
        return Failed(Failure("no_backend", MESSAGE))
