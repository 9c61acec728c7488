"""Stand-in answers: what a script, an agent, a person or a called workflow might say, steered to where a pass goes."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field

from bailiwick.dryrun.origins import NameSources, ValueSource
from bailiwick.dryrun.usage import ValueUse, plausible
from bailiwick.dryrun.values import candidates, way_of
from bailiwick.engine.graph import Ask, Branch, Call, Graph, Map, Output
from bailiwick.ids import Json
from bailiwick.lang.instances import SchemaValidator, offered, schema_at, smallest

MOST_ITEMS = 8
MOST_HEARD = 20
"""How many branches on one value are asked where they want to go."""
Wanted = dict[str, int]
"""The way each branch should go, by the branch's id; the one that matters most comes first."""


@dataclass(frozen=True, slots=True)
class Steer:
    """A branch that a giver's answer decides, and where in the answer it looks."""

    branch: Branch
    path: tuple[str, ...]


@dataclass(slots=True)
class AnswerGenerator:
    """Makes answers for one workflow. `returns` are the graphs of called workflows by reference."""

    graph: Graph
    sources: NameSources
    use: ValueUse
    returns: dict[str, Graph]
    fit: SchemaValidator = field(default_factory=SchemaValidator)
    steers: dict[tuple[str, str], list[Steer]] = field(default_factory=dict)
    misfits: dict[str, None] = field(default_factory=dict)
    _pools: dict[str, dict[int, list[Json]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for node in self.graph.nodes.values():
            if isinstance(node, Branch):
                for origin in self.sources.of(node.path):
                    self.steers.setdefault((origin.kind, origin.giver), []).append(Steer(node, origin.path))

    def outputs(self, node: str, outputs: tuple[Output, ...], wanted: Wanted) -> dict[str, Json]:
        """The outputs of a work node or a poll."""
        made: dict[str, Json] = {}
        for output in outputs:
            steers = [s for s in self.steers.get(("output", node), ()) if s.path[0] == output.key]
            inner = [Steer(s.branch, s.path[1:]) for s in steers]
            made[output.key] = self._value(f"output '{output.key}' of '{node}'", output, inner, wanted)
        return made

    def param(self, name: str, schema: Json, wanted: Wanted) -> Json:
        """A value for a param that nobody gave."""
        return self._value(f"param '{name}'", Output(name, schema), self.steers.get(("param", name), []), wanted)

    def reply(self, node: Ask, wanted: Wanted, fresh: str | None) -> Json:
        """A person's reply: the choice that leads where the pass wants, else one not given before."""
        for steer in self.steers.get(("ask", node.id), ()):
            values = self.pool(steer.branch, None).get(wanted.get(steer.branch.id, -1), [])
            fitting = [str(v) for v in values if isinstance(v, str)] or [str(v) for v in values]
            chosen = next((v for v in fitting if not node.choices or v in node.choices), None)
            if chosen is not None:
                return chosen
        return fresh or (node.choices[0] if node.choices else "example")

    def child(self, node: Call, wanted: Wanted) -> dict[str, Json]:
        """What a called workflow gives back: a value for each of its `returns`."""
        graph = self.returns.get(node.workflow)
        steers = self.steers.get(("call", node.id), [])
        made: dict[str, Json] = {}
        for key in graph.returns if graph is not None else ():
            inner = [Steer(s.branch, s.path[1:]) for s in steers if s.path[:1] == (key,)]
            output = _written(graph, key) if graph is not None else Output(key)
            use = self.use.at([node.id, key])
            made[key] = self._value(f"'{key}' returned by '{node.id}'", output, steers=inner, wanted=wanted, use=use)
        return made

    def failure_kind(self, wanted: Wanted) -> str:
        """The kind of a made-up failure; a branch that looks at it may want a certain one."""
        for steer in self.steers.get(("error", ""), ()):
            if steer.path == ("kind",):
                values = self.pool(steer.branch, None).get(wanted.get(steer.branch.id, -1), [])
                if values and isinstance(values[0], str):
                    return values[0]
        return "exit"

    def pool(self, branch: Branch, schema: Json) -> dict[int, list[Json]]:
        """Values by the way they make a branch go."""
        if schema is not None:
            return candidates(branch, offered(schema))
        if branch.id not in self._pools:
            self._pools[branch.id] = candidates(branch, [])
        return self._pools[branch.id]

    def possible(self, branch: Branch, way: int, origin: ValueSource) -> bool:
        """Whether an answer that its schema or its choices allow can make a branch go a way."""
        node = self.graph.nodes.get(origin.giver) if origin.kind == "ask" else None
        if isinstance(node, Ask) and node.choices:
            return any(way_of(branch, choice) == way for choice in node.choices)
        outputs = dict(self.sources.outputs.get(origin.path[0], ())) if origin.kind == "output" else {}
        output = outputs.get(origin.giver)
        if output is None or output.schema is None:
            return bool(self.pool(branch, None).get(way))
        steer = Steer(branch, origin.path[1:])
        base = smallest(output.schema)
        values = self.pool(branch, schema_at(output.schema, steer.path)).get(way, [])
        return any(self._put(base, steer.path, value, output.schema) is not None for value in values)

    def _value(
        self, name: str, output: Output, steers: list[Steer], wanted: Wanted, use: ValueUse | None = None
    ) -> Json:
        use = use or self.use.at([output.key])
        if output.declared and output.default is not None:
            made = copy.deepcopy(output.default)
        elif output.schema is not None:
            made = smallest(output.schema)
            if not self.fit.allows(output.schema, made):
                self.misfits[f"no stand-in for {name} was found that satisfies its schema"] = None
        else:
            made = plausible(use)
        made = self._fill_lists(output.key, made, output.schema)
        by_path: dict[tuple[str, ...], list[Branch]] = {}
        for steer in steers:
            if steer.branch.id in wanted:
                by_path.setdefault(steer.path, []).append(steer.branch)
        for path, branches in by_path.items():
            made = self._steered(made, path, branches=branches, wanted=wanted, schema=output.schema)
        return made

    def _steered(self, made: Json, path: tuple[str, ...], branches: list[Branch], wanted: Wanted, schema: Json) -> Json:
        """The value with the part at `path` chosen so that as many branches as possible go the way they should."""
        part, goal = schema_at(schema, path), next(iter(wanted), "")
        heard = sorted(branches, key=lambda branch: branch.id != goal)[:MOST_HEARD]
        values: dict[tuple[str, str], Json] = {}
        for branch in heard:
            for value in self.pool(branch, part).get(wanted[branch.id], []):
                values.setdefault((type(value).__name__, str(value)), value)

        def votes(value: Json) -> int:
            return sum(MOST_HEARD if b.id == goal else 1 for b in heard if way_of(b, value) == wanted[b.id])

        for value in sorted(values.values(), key=votes, reverse=True):
            changed = self._put(made, path, value, schema)
            if changed is not None:
                return changed[0]
        return made

    def _put(self, base: Json, path: tuple[str, ...], value: Json, schema: Json) -> tuple[Json] | None:
        """A copy with a value at a path, in a tuple; None where the schema does not allow it."""
        made = copy.deepcopy(base)
        if not path:
            made = value
        else:
            here = made if isinstance(made, dict) else {}
            made = here
            for part in path[:-1]:
                if not isinstance(here.get(part), dict):
                    here[part] = {}
                here = here[part]
            here[path[-1]] = value
        return (made,) if self.fit.allows(schema, made) else None

    def _fill_lists(self, key: str, made: Json, schema: Json) -> Json:
        """Give the lists that maps go through an item for each way that a branch on the item can go."""
        for node in self.graph.nodes.values():
            if isinstance(node, Map) and node.over.split(".")[0] == key:
                path = tuple(node.over.split(".")[1:])
                items = self._items(node, _part(made, path))
                changed = self._put(made, path, items, schema) if items else None
                made = changed[0] if changed is not None else made
        return made

    def _items(self, node: Map, given: Json) -> list[Json]:
        base = given[0] if isinstance(given, list) and given else plausible(self.use.at([node.as_]))
        made: list[Json] = []
        for steer in self.steers.get(("item", node.as_), ()):
            for values in self.pool(steer.branch, None).values():
                changed = self._put(base, steer.path, values[0], None)
                if changed is not None and changed[0] not in made:
                    made.append(changed[0])
        return made[:MOST_ITEMS]


def _part(value: Json, path: tuple[str, ...]) -> Json:
    for part in path:
        value = value.get(part) if isinstance(value, dict) else None
    return value


def _written(graph: Graph, key: str) -> Output:
    """How a called workflow describes a key it returns."""
    for node in graph.nodes.values():
        for output in getattr(node, "outputs", ()):
            if output.key == key:
                return Output(key, output.schema, output.default, output.declared)
    return Output(key, None, graph.vars.get(key), key in graph.vars)
