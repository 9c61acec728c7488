"""What a run's journal and ledger say about its change: its cost, its models, the defaults it rests on.

Unknown is not zero.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from bailiwick.engine.state import Scope, State
from bailiwick.journal.port import Store
from bailiwick.proposals.model import ChangeCost
from bailiwick.runtime.authors import authors_of
from bailiwick.runtime.history import RunReader


@dataclass(frozen=True, slots=True)
class RunCost:
    """The models that answered, each once, as `backend/model`; the cost of the whole run tree."""

    models: tuple[str, ...] = ()
    cost: ChangeCost = field(default_factory=ChangeCost)


Subscribed = Callable[[str], bool]
"""Whether a backend is paid by subscription."""


async def account(store: Store, run: str, root: str, subscribed: Subscribed) -> RunCost:
    """Read the journal of a run and the ledger of its tree."""
    authors = await authors_of(store, run)
    spent = [one for one in await store.spend(f"run:{root}") if one.unit == "usd"]
    known = [one.settled or 0.0 for one in spent if one.known and one.settled is not None]
    unknown = [one for one in spent if not one.known]
    usd = sum(known) if known or not unknown else None
    subscription = any(subscribed(backend) for backend in dict.fromkeys(author.backend for author in authors))
    return RunCost(
        tuple(author.name for author in authors), ChangeCost(usd, bool(unknown) and usd is not None, subscription)
    )


async def defaulted(store: Store, run: str, scope: str) -> tuple[str, ...]:
    """The nodes whose defaults a scope rests on: its own, those of the scopes around it and of the runs that called."""
    library, names = RunReader(store), dict[str, None]()
    state = await library.state(run)
    found = _above(state.scopes.get(scope))
    while True:
        names.update(dict.fromkeys(found))
        if state.parent is None:
            return tuple(names)
        child, state = state.run, await library.state(state.parent)
        found = _caller(state, child)


def _above(scope: Scope | None) -> list[str]:
    names: list[str] = []
    while scope is not None:
        names += scope.defaulted
        scope = scope.parent
    return names


def _caller(state: State, child: str) -> list[str]:
    """The defaults of the scope that waits for a child; where none is found, of all."""
    waiting = [scope for scope, wait in state.waits() if wait.id == child]
    return [name for scope in waiting or state.scopes.values() for name in _above(scope)]
