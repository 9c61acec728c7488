"""The kinds of node by name: ours in a table, others' by entry point, looked for only when a name is not ours."""

from __future__ import annotations

from bailiwick.lang import codes, control, delivery, work
from bailiwick.lang.draft import NodeSyntax
from bailiwick.lang.fields import Findings
from bailiwick.lang.values import Value

KINDS: dict[str, NodeSyntax] = {kind.name: kind for kind in (*work.KINDS, *delivery.KINDS, *control.KINDS)}
"""The kinds that come with Bailiwick."""


def find_kind(value: Value, found: Findings, seen: dict[str, NodeSyntax]) -> NodeSyntax | None:
    """The kind that a node's `type` names; an unknown one is an error with the nearest names. `seen` is a cache."""
    name = value.data
    if not isinstance(name, str):
        found.wrong(value, "the name of a node type")
        return None
    kind = KINDS.get(name) or seen.get(name) or work.added_kind(name, value, found)
    if kind is not None:
        seen[name] = kind
        return kind
    if not any(problem.place == value.place for problem in found.problems[-1:]):
        known = [*KINDS, *work.added_names()]
        hint = found.suggest(name, known, f"one of {', '.join(known)}")
        found.error(codes.UNKNOWN_KIND, f"the node type {name!r} is not known", value.place, hint)
    return None
