"""Which features bring node kinds, by name: nothing here is imported before a workflow uses it."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING

from bailiwick.runtime.kinds import NodeKind

if TYPE_CHECKING:
    from bailiwick.app.service import App

TABLE: dict[str, str] = {
    "worktree": "bailiwick.pipelines.nodes",
    "gate": "bailiwick.gate.nodes",
    "propose": "bailiwick.proposals.nodes",
}


def makers(app: App) -> dict[str, Callable[[], NodeKind]]:
    """The kinds of features, each made when a node needs it by its module's `make_kind`."""

    def maker(module: str) -> Callable[[], NodeKind]:
        def make() -> NodeKind:
            made: NodeKind = import_module(module).make_kind(app)
            return made

        return make

    return {name: maker(module) for name, module in TABLE.items()}
