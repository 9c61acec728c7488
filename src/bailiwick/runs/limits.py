"""The ceilings a run starts with: the workflow's own, never above what the operator configured."""

from __future__ import annotations

from bailiwick.config.layers import LayerKind
from bailiwick.config.service import Config
from bailiwick.engine.graph import Budget
from bailiwick.ids import Json

UNITS = ("usd", "tokens", "agent_calls", "wall")


def starting_limits(config: Config, budget: Budget) -> dict[str, Json]:
    """One ceiling per unit. A built-in default gives way to a workflow's own; a configured one only tightens it."""
    out: dict[str, Json] = {}
    for unit in UNITS:
        own: float | None = getattr(budget, unit)
        name = f"budget.run.{unit}"
        configured = config.get(name)
        if own is not None and (configured is None or config.origin(name).kind is LayerKind.BUILT_IN):
            out[unit] = own
        elif configured is not None:
            out[unit] = configured if own is None else min(own, configured)
    return out
