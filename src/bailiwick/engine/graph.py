"""The compiled workflow: what the engine walks. Made by `lang`, stored as JSON, read back without YAML."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from types import MappingProxyType
from typing import Any, ClassVar

from bailiwick.errors import JournalCorrupt
from bailiwick.ids import Json

FORMAT = 1
"""The version of the stored form; a reader refuses a higher one."""
LATER: Mapping[str, bool] = MappingProxyType({"later": True})
"""Marks a field that came after the first release: unset it is not stored, so that old files keep their digest."""


@dataclass(frozen=True, slots=True)
class Output:
    """A key a node gives to the context; `declared` says that `default` was written by the author."""

    key: str
    schema: Json = None
    default: Json = None
    declared: bool = False


@dataclass(frozen=True, slots=True)
class Retry:
    """How often a failed attempt is tried again, and the first pause in seconds (doubled each time)."""

    max: int
    backoff: float = 1.0


@dataclass(frozen=True, slots=True)
class Condition:
    """One comparison of a branch."""

    op: str
    value: str
    next: str


@dataclass(frozen=True, slots=True)
class Budget:
    """Ceilings for the whole run tree; None is no ceiling. `wall` in seconds."""

    usd: float | None = None
    tokens: int | None = None
    agent_calls: int | None = None
    wall: float | None = None


@dataclass(frozen=True, slots=True)
class Display:
    """How people see a step. `mode`: shown; quiet, only under way or gone wrong; hidden, only gone wrong.

    `title` and `text` are templates for its name and for what is said of it; a text that renders empty says nothing.
    """

    mode: str = "shown"
    title: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What every node has."""

    kind: ClassVar[str] = ""
    id: str
    next: str | None = None
    max_visits: int = 1000
    on_error: str | None = None
    display: Display | None = field(default=None, metadata=LATER)


@dataclass(frozen=True, slots=True, kw_only=True)
class Work(Step):
    """A node of the open set (script, agent, a plug-in's): one effect per attempt. `spec` is the kind's own fields."""

    type: str
    spec: dict[str, Json] = field(default_factory=dict)
    outputs: tuple[Output, ...] = ()
    retry: Retry | None = None
    timeout: float | None = None
    on_unknown: str = "again"
    on_exhausted: str = ""
    accept_defaulted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch(Step):
    """Goes by a value in the context."""

    kind: ClassVar[str] = "branch"
    path: str
    cases: dict[str, str] = field(default_factory=dict)
    conditions: tuple[Condition, ...] = ()
    default: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Set(Step):
    """Pure assignments; text in `values` is a template, a lone `{{ expression }}` keeps its type."""

    kind: ClassVar[str] = "set"
    values: dict[str, Json]


@dataclass(frozen=True, slots=True, kw_only=True)
class End(Step):
    """`terminal` or `fail`; `reason` is a template. `handoff`: a failure that gives the work to a person."""

    failed: bool = False
    reason: str = ""
    handoff: bool = field(default=False, metadata=LATER)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parallel(Step):
    """Named scopes at once. `join` is where the parent goes on; branches end there, at `terminal` or at `fail`."""

    kind: ClassVar[str] = "parallel"
    branches: dict[str, str]
    join: str
    export: tuple[str, ...] = ()
    max: int = 4
    fail_fast: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Map(Step):
    """One scope per item of the list at the dot path `over`, each with its item as `as_` in its context."""

    kind: ClassVar[str] = "map"
    over: str
    as_: str = "item"
    body: str
    join: str
    max: int = 4
    fail_fast: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Call(Step):
    """A child run of the workflow `workflow` (a key of `Definition.calls`); `params` are templates."""

    kind: ClassVar[str] = "call"
    workflow: str
    params: dict[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Poll:
    """Runs a script every so many seconds until it exits 0; exit 1 means not yet."""

    script: str
    every: float
    args: tuple[str, ...] = ()
    timeout: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait(Step):
    """Sleeps durably: exactly one of `seconds` (text, a template), `until` (a template) or `poll`."""

    kind: ClassVar[str] = "wait"
    seconds: str = ""
    until: str = ""
    poll: Poll | None = None
    outputs: tuple[Output, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask(Step):
    """Asks a person; the answer enters the context under the node's id as data."""

    kind: ClassVar[str] = "ask"
    question: str
    choices: tuple[str, ...] = ()
    timeout: float | None = None
    default: Json = None
    declared: bool = False
    accept_defaulted: bool = False


Node = Work | Branch | Set | End | Parallel | Map | Call | Wait | Ask
_TYPES: dict[str, type[Any]] = {
    t.__name__: t
    for t in (Work, Branch, Set, End, Parallel, Map, Call, Wait, Ask, Poll, Output, Retry, Condition, Budget, Display)
}


def kind_of(node: Node) -> str:
    """The `type:` the author wrote."""
    match node:
        case Work():
            return node.type
        case End():
            return "fail" if node.failed else "terminal"
        case _:
            return node.kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """One workflow, checked: every name in it exists."""

    name: str
    start: str
    nodes: dict[str, Node]
    version: int = 0
    description: str = ""
    strict: bool = False
    vars: dict[str, Json] = field(default_factory=dict)
    params: dict[str, Json] | None = None
    budget: Budget = Budget()
    returns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """What a run is pinned to: the graph, the digest of each file, the definitions of called workflows by reference."""

    graph: Graph
    files: dict[str, str] = field(default_factory=dict)
    calls: dict[str, str] = field(default_factory=dict)


def edges(node: Node) -> list[tuple[str, str]]:
    """Every (label, target) that control can take from a node, scope entries and the join included."""
    out: list[tuple[str, str]] = []
    match node:
        case Branch():
            out += [(value, target) for value, target in node.cases.items()]
            out += [(f"{c.op} {c.value}", c.next) for c in node.conditions]
            out += [("default", node.default)] if node.default else []
        case Parallel():
            out += [(name, entry) for name, entry in node.branches.items()]
            out.append(("join", node.join))
        case Map():
            out += [("each", node.body), ("join", node.join)]
        case _:
            out += [("", node.next)] if node.next else []
    if node.on_error:
        out.append(("on_error", node.on_error))
    return out


def to_json(definition: Definition) -> dict[str, Json]:
    """The stored form, with its format number."""
    return {
        "format": FORMAT,
        "graph": _dump(definition.graph),
        "files": dict(definition.files),
        "calls": dict(definition.calls),
    }


def from_json(data: dict[str, Json]) -> Definition:
    """Read the stored form back."""
    if data.get("format", 0) > FORMAT:
        raise JournalCorrupt(
            f"the stored definition has format {data.get('format')}, this version reads {FORMAT}",
            hint="upgrade bailiwick",
        )
    raw = dict(data["graph"])
    raw["nodes"] = {name: _load(node) for name, node in raw["nodes"].items()}
    raw["budget"] = _load(raw["budget"])
    raw["returns"] = tuple(raw["returns"])
    return Definition(graph=Graph(**raw), files=data["files"], calls=data["calls"])


def _dump(value: Any) -> Json:
    """Dataclasses become tagged objects, tuples lists; user data (dicts) passes as it is."""
    if is_dataclass(value) and not isinstance(value, type):
        body = {
            f.name: _dump(getattr(value, f.name))
            for f in fields(value)
            if "later" not in f.metadata or getattr(value, f.name) != f.default
        }
        if isinstance(value, Graph):
            body["nodes"] = {name: _dump(node) for name, node in value.nodes.items()}
            return body
        return {"$": type(value).__name__, **body}
    if isinstance(value, tuple):
        return [_dump(item) for item in value]
    return value


def _load(value: dict[str, Json]) -> Any:
    """The inverse of `_dump` for one tagged object; its fields decide what is read as a tagged object again."""
    kind = _TYPES[value["$"]]
    body: dict[str, Any] = {}
    for name, raw in value.items():
        if name == "$":
            continue
        if name in _TUPLES:
            body[name] = tuple(_load(item) if name in _TAGGED else item for item in raw)
        elif name in _TAGGED and raw is not None:
            body[name] = _load(raw)
        else:
            body[name] = raw
    return kind(**body)


_TUPLES = frozenset({"outputs", "conditions", "export", "choices", "args"})
_TAGGED = frozenset({"outputs", "conditions", "retry", "poll", "display"})
