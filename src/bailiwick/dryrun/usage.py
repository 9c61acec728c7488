"""What templates, branches and maps expect of a value that nothing describes: fields, a list, a number. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from bailiwick.engine.graph import Ask, Branch, Call, End, Graph, Map, Node, Set, Wait, Work
from bailiwick.ids import Json

_CODE = re.compile(r"\{\{(.*?)\}\}|\{%(.*?)%\}", re.DOTALL)
_QUOTED = re.compile(r"'[^'\n]*'|\"[^\"\n]*\"")
_LOOP = re.compile(r"\bfor\s+(\w+)\s+in\s+([A-Za-z_][\w.]*)(?![\w.(])")
_NAME = re.compile(r"(?<![\w.])([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)(\s*\()?")
_COUNTS_AFTER = re.compile(r"\s*(?:[-+*/%]|[<>]=?|\*\*)")
_COUNTS_BEFORE = re.compile(r"(?:[-+*/%]|[<>]=?)\s*$")
_LISTS = re.compile(r"\s*\|\s*(?:join|first|last|sort|map|select|reject|selectattr|unique|batch)\b")


@dataclass(slots=True)
class ValueUse:
    """How one value is used. An `item` makes it a list."""

    fields: dict[str, ValueUse] = field(default_factory=dict)
    item: ValueUse | None = None
    counts: bool = False

    def at(self, path: list[str]) -> ValueUse:
        """The use of a part of the value."""
        here = self
        for part in path:
            here = here.fields.setdefault(part, ValueUse())
        return here

    def listed(self) -> ValueUse:
        """The use of an item, once the value is known to be a list."""
        if self.item is None:
            self.item = ValueUse()
        return self.item


def uses_of(graph: Graph, texts: list[str]) -> ValueUse:
    """How each name of the context is used by the nodes and by further template texts."""
    top = ValueUse()
    for node in graph.nodes.values():
        if isinstance(node, Branch):
            top.at(node.path.split("."))
        for text in templates_of(node):
            _read(text, top)
    for text in texts:
        _read(text, top)
    for node in graph.nodes.values():
        if isinstance(node, Map):
            over = top.at(node.over.split("."))
            over.item = top.at([node.as_]) if over.item is None else _joined(over.item, top.at([node.as_]))
    return top


def templates_of(node: Node) -> Iterator[str]:
    """Every text of a node that is rendered, but for those in files."""
    found: Json
    match node:
        case Work():
            found = node.spec
        case Set():
            found = node.values
        case Call():
            found = node.params
        case Wait():
            found = [node.seconds, node.until, *(node.poll.args if node.poll else ())]
        case Ask():
            found = node.question
        case End():
            found = node.reason
        case _:
            found = None
    yield from _texts(found)


def plausible(use: ValueUse, depth: int = 0) -> Json:
    """A value that fits how it is used."""
    if depth > 12:
        return "example"
    if use.item is not None:
        return [plausible(use.item, depth + 1), plausible(use.item, depth + 1)]
    if use.fields:
        return {name: plausible(part, depth + 1) for name, part in use.fields.items()}
    return 1 if use.counts else "example"


def _joined(one: ValueUse, other: ValueUse) -> ValueUse:
    for name, part in other.fields.items():
        one.fields.setdefault(name, part)
    one.item = one.item or other.item
    one.counts = one.counts or other.counts
    return one


def _texts(value: Json) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _texts(item)


def _read(text: str, top: ValueUse) -> None:
    """Note the dotted names in the code of a template; a loop's variable stands for an item of its list."""
    if "{{" not in text and "{%" not in text:
        return
    known: dict[str, ValueUse] = {}
    for match in _CODE.finditer(text):
        code = _QUOTED.sub("''", match[1] or match[2] or "")
        for variable, path in _LOOP.findall(code):
            known[variable] = _find(path.split("."), top, known).listed()
        for name in _NAME.finditer(code):
            parts = name[1].split(".")
            if name[2]:
                parts = parts[:-1]
            if parts:
                _note(code, name, _find(parts, top, known))


def _find(parts: list[str], top: ValueUse, known: dict[str, ValueUse]) -> ValueUse:
    start = known.get(parts[0])
    return start.at(parts[1:]) if start is not None else top.at(parts)


def _note(code: str, name: re.Match[str], use: ValueUse) -> None:
    if _LISTS.match(code, name.end(1)):
        use.listed()
    if _COUNTS_AFTER.match(code, name.end(1)) or _COUNTS_BEFORE.search(code, 0, name.start()):
        use.counts = True
