"""Reading a run back: its events, those of the run it was forked from, and the definitions they name."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

from bailiwick.engine.events import DefinitionAdopted, Entry, Forked, Rewound, RunCreated
from bailiwick.engine.evolve import replay
from bailiwick.engine.state import State
from bailiwick.errors import JournalCorrupt
from bailiwick.ids import Json
from bailiwick.journal.codec import decode
from bailiwick.journal.port import Store
from bailiwick.runtime.pins import Definitions


@dataclass(slots=True)
class _Read:
    """What was read of a run: its own events, and the state after them where somebody asked for it."""

    run_id: str
    own: list[Entry]
    state: State | None = None


class RunReader:
    """Reads runs from a store; definitions are read once, and so are the events of the run that was read last."""

    def __init__(self, store: Store, definitions: Definitions | None = None) -> None:
        self.store = store
        self.definitions = definitions or Definitions()
        self._last: _Read | None = None

    def fetch(self, digest: str) -> Json:
        """The value of a blob."""
        return json.loads(self.store.blob(digest))

    async def history(self, run_id: str, upto: int | None = None) -> list[Entry]:
        """Every event in order. A forked run's inherited events have seqs up to 0, its own begin at 1."""
        own = (await self._read(run_id)).own if upto is None else await self._entries(run_id, 0, upto)
        return await self._whole(run_id, own)

    async def _whole(self, run_id: str, own: list[Entry]) -> list[Entry]:
        """A run's own events behind those that it inherited; their definitions are read."""
        if not own:
            raise JournalCorrupt(f"run {run_id} has no events")
        first = own[0][2]
        inherited = _inherited(await self.history(first.run, first.upto)) if isinstance(first, Forked) else []
        await self._define([*inherited, *own])
        return [*inherited, *own]

    async def _read(self, run_id: str) -> _Read:
        """The events of a run; of the one that was read last only those are read that came since."""
        last = self._last if self._last and self._last.run_id == run_id else _Read(run_id, [])
        if news := await self._entries(run_id, last.own[-1][0] if last.own else 0):
            last = _Read(run_id, [*last.own, *news])
        self._last = last
        return last

    async def _entries(self, run_id: str, after: int, upto: int | None = None) -> list[Entry]:
        return [(row.seq, row.at, decode(row)) for row in await self.store.read(run_id, after, upto)]

    async def _define(self, entries: list[Entry]) -> None:
        for _, _, event in entries:
            if isinstance(event, RunCreated | DefinitionAdopted):
                await self.define(event.definition)

    async def define(self, digest: str) -> None:
        """Read a definition unless it was read before."""
        if not self.definitions.has(digest):
            self.definitions.add(digest, await self.store.definition(digest))

    async def state(self, run_id: str) -> State:
        """The state of a run, from its journal alone; to look at, not to go on with."""
        last = await self._read(run_id)
        if last.state is None:
            last.state = self.replay(await self._whole(run_id, last.own))
        return last.state

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
