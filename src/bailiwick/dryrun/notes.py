"""Renders as the workflow does, and keeps which node missed which name."""

from __future__ import annotations

from dataclasses import dataclass, field

from bailiwick.engine.graph import Node, Wait, Work
from bailiwick.engine.render import Lookup, Rendered, RenderFailed
from bailiwick.ids import Json
from bailiwick.lang.templates import Templates

_AS_WRITTEN = frozenset({"prompt", "script", "args"})


@dataclass(slots=True)
class NotingTemplates:
    """The workflow's own templates; what they miss is kept by node, for the report."""

    templates: Templates
    missed: dict[tuple[str, str], None] = field(default_factory=dict)

    def text(self, template: str, lookup: Lookup) -> Rendered:
        return self._noted(self.templates.text(template, lookup), lookup)

    def file(self, name: str, lookup: Lookup) -> Rendered:
        return self._noted(self.templates.file(name, lookup), lookup)

    def value(self, template: Json, lookup: Lookup) -> Rendered:
        return self._noted(self.templates.value(template, lookup), lookup)

    def prepare(self, node: Node, lookup: Lookup) -> Rendered:
        """Render everything an attempt of the node would: arguments first, then the prompt, which sees them by name."""
        if isinstance(node, Wait):
            return self.value(list(node.poll.args) if node.poll else [], lookup)
        if not isinstance(node, Work):
            raise RenderFailed(f"'{node.id}' has nothing to prepare")
        args = self.value(node.spec.get("args") or [], lookup).value
        given: dict[str, Json] = args if isinstance(args, dict) else {}

        def inner(name: str) -> Json:
            return given[name] if name in given else lookup(name)

        rest = {key: value for key, value in node.spec.items() if key not in _AS_WRITTEN}
        self.value(rest, inner)
        prompt = node.spec.get("prompt")
        if isinstance(prompt, str) and node.type == "agent":
            self.file(prompt, inner)
        return Rendered(None)

    def _noted(self, made: Rendered, lookup: Lookup) -> Rendered:
        if made.missing:
            here = str(lookup("node")["id"])
            self.missed.update({(here, name): None for name in made.missing})
        return made
