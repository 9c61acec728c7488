"""Who answered in a run: the backends and models of its agent nodes, as its journal has them."""

from __future__ import annotations

from dataclasses import dataclass

from bailiwick.engine.events import EffectFinished
from bailiwick.journal.codec import decode
from bailiwick.journal.port import Store


@dataclass(frozen=True, slots=True)
class Author:
    """A backend that answered, with its model where that is known."""

    backend: str
    model: str = ""

    @property
    def name(self) -> str:
        """As `backend/model`."""
        return f"{self.backend}/{self.model}" if self.model else self.backend


async def authors_of(store: Store, run: str) -> tuple[Author, ...]:
    """Everybody who answered in a run, each once, in order."""
    found: dict[Author, None] = {}
    for row in await store.read(run):
        event = decode(row)
        if isinstance(event, EffectFinished) and isinstance(event.log.get("backend"), str):
            model = event.log.get("model")
            found[Author(str(event.log["backend"]), model if isinstance(model, str) else "")] = None
    return tuple(found)
