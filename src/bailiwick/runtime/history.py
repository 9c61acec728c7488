"""Reading a run back: its events, those of the run it was forked from, and the definitions they name."""

from __future__ import annotations

import json
from dataclasses import replace

from bailiwick.engine.events import DefinitionAdopted, Entry, Forked, Rewound, RunCreated
from bailiwick.engine.evolve import replay
from bailiwick.engine.state import State
from bailiwick.errors import JournalCorrupt
from bailiwick.ids import Json
from bailiwick.journal.codec import decode
from bailiwick.journal.port import Store
from bailiwick.runtime.pins import Definitions


class RunReader:
    """Reads runs from a store; definitions are read once."""

    def __init__(self, store: Store, definitions: Definitions | None = None) -> None:
        self.store = store
        self.definitions = definitions or Definitions()

    def fetch(self, digest: str) -> Json:
        """The value of a blob."""
        return json.loads(self.store.blob(digest))

    async def history(self, run_id: str, upto: int | None = None) -> list[Entry]:
        """Every event in order. A forked run's inherited events have seqs up to 0, its own begin at 1."""
        rows = await self.store.read(run_id, upto=upto)
        own: list[Entry] = [(row.seq, row.at, decode(row)) for row in rows]
        if not own:
            raise JournalCorrupt(f"run {run_id} has no events")
        first = own[0][2]
        if isinstance(first, Forked):
            own = _inherited(await self.history(first.run, first.upto)) + own
        await self._define(own)
        return own

    async def _define(self, entries: list[Entry]) -> None:
        for _, _, event in entries:
            if isinstance(event, RunCreated | DefinitionAdopted):
                await self.define(event.definition)

    async def define(self, digest: str) -> None:
        """Read a definition unless it was read before."""
        if not self.definitions.has(digest):
            self.definitions.add(digest, await self.store.definition(digest))

    async def state(self, run_id: str) -> State:
        """The state of a run, from its journal alone."""
        return self.replay(await self.history(run_id))

    def replay(self, entries: list[Entry]) -> State:
        """Fold events whose definitions were read."""
        return replay(entries, self.definitions.graph, self.fetch)


def _inherited(entries: list[Entry]) -> list[Entry]:
    """Events of the run that was forked, renumbered to end at 0; a rewind among them is renumbered too."""
    last = entries[-1][0]
    return [
        (seq - last, at, replace(event, upto=event.upto - last) if isinstance(event, Rewound) else event)
        for seq, at, event in entries
    ]
