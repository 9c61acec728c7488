"""How a workflow wants its steps to be seen: titles and texts from templates, inner steps left out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bailiwick.cli.view.visits import ViewedVisit
from bailiwick.engine.render import RenderFailed
from bailiwick.engine.state import State
from bailiwick.engine.visits import VisitStatus
from bailiwick.errors import StoreError
from bailiwick.ids import Json

if TYPE_CHECKING:
    from bailiwick.lang.templates import Templates

LIMIT = 4000
"""Characters that a title or a text may have."""
_WELL = frozenset({VisitStatus.DONE, VisitStatus.PASSED})


class Displays:
    """Gives visits the title and text that their node declares. With `verbose` nothing is left out."""

    def __init__(self, *, verbose: bool = False) -> None:
        self.verbose = verbose
        self._templates: Templates | None = None

    def dress(self, visit: ViewedVisit, state: State) -> None:
        """Take over what the node says about its display, rendered with the context as it is now."""
        node = state.graph.nodes.get(visit.node)
        hint = node.display if node is not None else None
        if hint is None:
            return
        visit.mode = "shown" if self.verbose else hint.mode
        if hint.title:
            visit.title = self._rendered(hint.title, visit, state) or visit.title
        if hint.text:
            visit.text = self._rendered(hint.text, visit, state)

    def _rendered(self, template: str, visit: ViewedVisit, state: State) -> str:
        """A template with the context that the visit's scope sees; empty where it can't be rendered."""
        from bailiwick.lang.templates import Templates

        self._templates = self._templates or Templates(limit=LIMIT)
        scope = visit.scope if visit.scope in state.scopes else ""

        def lookup(name: str) -> Json:
            if name == "node":
                return {"id": visit.node, "visit": visit.number, "scope": visit.scope}
            return state.lookup(scope, name)

        try:
            return str(self._templates.text(template, lookup).value).strip()
        except (RenderFailed, StoreError, KeyError):
            return ""


def is_left_out(visit: ViewedVisit) -> bool:
    """Whether people are not shown a visit as it stands; one that failed, waits or found something bad always is."""
    if visit.bad or visit.defaulted or visit.status in (VisitStatus.FAILED, VisitStatus.WAITS, VisitStatus.CUT):
        return False
    if visit.mode == "hidden":
        return True
    if visit.status in _WELL:
        return visit.mode == "quiet" or (visit.text == "" and visit.status is VisitStatus.PASSED)
    return False
