"""A parsed workflow file to the graph the engine walks, as far as one file can tell; `checks` looks at the rest."""

from __future__ import annotations

from dataclasses import dataclass, field

from bailiwick.engine.graph import Budget, Graph, Node
from bailiwick.ids import NAME, Json
from bailiwick.lang import codes
from bailiwick.lang.draft import KEY, Draft, NodeSyntax
from bailiwick.lang.fields import Anything, Duration, Field, Findings, Flag, ListOf, MapOf, Number, OneOf, Table, Text
from bailiwick.lang.kinds import find_kind
from bailiwick.lang.values import Value

MAX_NODES = 10_000

_CEILING = Number(low=0)
BUDGET = Table(
    "budget",
    (
        Field("usd", _CEILING, "dollars"),
        Field("tokens", Number(low=0, whole=True), "tokens"),
        Field("agent_calls", Number(low=0, whole=True), "calls of an agent"),
        Field("wall", Duration(), "time in which it works; no wait of any kind counts"),
    ),
)
_NAME = Text(pattern=NAME.pattern, expects="a name: letters, digits, _, . or -, at most 64, first a letter or digit")
WORKFLOW = Table(
    "workflow",
    (
        Field("version", Number(low=1, high=1, whole=True), "the version of the language; absent: rules of workhorse"),
        Field("name", _NAME, "the workflow's name; the directory's if not given"),
        Field("description", Text(), "what it is for"),
        Field("vars", MapOf(Anything()), "the initial context"),
        Field("params", MapOf(OneOf((MapOf(Anything()), Flag()))), "typed inputs: a JSON Schema per name"),
        Field("budget", BUDGET, "ceilings for the whole run"),
        Field("strict", Flag(), "a missing variable in a template is an error"),
        Field("returns", ListOf(KEY), "the keys that a caller gets back"),
        Field("start", Text(empty=False, expects="the id of a node"), "the first node", required=True),
        Field("nodes", ListOf(Anything(), least=1), "the nodes", required=True),
    ),
)


@dataclass(slots=True)
class Compiled:
    """What one file says. `ids` holds every id in it, also of nodes that could not be compiled.

    `reads` are the context keys that it is checked to read; None where they can't all be known.
    """

    root: Value
    header: dict[str, Json]
    name: str
    ids: dict[str, Value] = field(default_factory=dict)
    nodes: dict[str, Node] = field(default_factory=dict)
    leads: dict[str, bool] = field(default_factory=dict)
    reads: frozenset[str] | None = None

    @property
    def whole(self) -> bool:
        """Whether every node could be compiled, so that paths through them can be judged."""
        return len(self.nodes) == len(self.root.entries["nodes"].items if "nodes" in self.root.entries else ())

    def graph(self) -> Graph:
        """The compiled form; to be asked for only when there was no error."""
        header = self.header
        return Graph(
            name=self.name,
            start=header["start"],
            nodes=self.nodes,
            version=header.get("version", 0),
            description=header.get("description", ""),
            strict=header.get("strict", False),
            vars=header.get("vars", {}),
            params=header.get("params"),
            budget=Budget(**header.get("budget", {})),
            returns=tuple(header.get("returns", ())),
        )


def compile_file(root: Value, directory: str, found: Findings) -> Compiled:
    """Compile one file; `directory` is the name that stands in where the file gives none."""
    header = WORKFLOW.read(root, found)
    name = header.get("name") or directory
    if not NAME.fullmatch(name) and "name" not in root.entries:
        what = f"the directory's name {name!r} can't be used as the workflow's name"
        found.error(codes.BAD_NAME, what, root.place, "add `name:` with letters, digits, _, . or -")
    compiled = Compiled(root, header, name)
    nodes = root.entries.get("nodes")
    items = nodes.items if nodes is not None else []
    if nodes is not None and len(items) > MAX_NODES:
        what = f"the workflow has {len(items):,} nodes, the most is {MAX_NODES:,}"
        found.error(codes.TOO_MANY, what, nodes.place, "split it, and use `call` or `map`")
        return compiled
    kinds: dict[str, NodeSyntax] = {}
    for item in items:
        _node(item, compiled, found, kinds)
    return compiled


def _node(item: Value, compiled: Compiled, found: Findings, kinds: dict[str, NodeSyntax]) -> None:
    if not isinstance(item.data, dict):
        found.wrong(item, "a mapping (a node)", "write `- id: …` and `type: …`")
        return
    before = len(found.problems)
    name = item.data.get("id")
    if isinstance(name, str) and not _is_new(name, item, compiled, found):
        return
    given = item.entries.get("type")
    if given is None:
        found.error(
            codes.MISSING_FIELD, "node: the field 'type' is missing", item.place, "add `type: agent` or another"
        )
        return
    kind = find_kind(given, found, kinds)
    if kind is None:
        return
    draft = Draft(str(name), item, kind.table.read(item, found), found)
    if found.failed_since(before):
        return
    node = kind.compile(draft)
    if node is not None and not found.failed_since(before):
        compiled.nodes[draft.id] = node
        compiled.leads[draft.id] = kind.leads


def _is_new(name: str, item: Value, compiled: Compiled, found: Findings) -> bool:
    first = compiled.ids.setdefault(name, item)
    if first is item:
        return True
    place = first.at("id")
    what = f"the id {name!r} is used twice, first at {place.line}:{place.column}"
    found.error(codes.DUPLICATE_ID, what, item.at("id"), "give each node an id of its own")
    return False
