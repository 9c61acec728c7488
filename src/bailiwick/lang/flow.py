"""Where control can go: targets exist, nodes are reached, ends can be reached, scopes stay closed."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from bailiwick.engine.graph import Branch, End, Map, Node, Parallel, Set, edges
from bailiwick.errors import Place
from bailiwick.lang import codes
from bailiwick.lang.compile import Compiled
from bailiwick.lang.fields import Findings
from bailiwick.lang.values import Value
from bailiwick.lang.wording import quoted


@dataclass(frozen=True, slots=True, eq=False)
class FlowScope:
    """A branch, an item's chain, or the run itself; it ends at `join`."""

    path: str = "the run"
    construct: str = ""
    member: str = ""
    join: str = ""


def check_flow(compiled: Compiled, found: Findings) -> dict[str, FlowScope]:
    """Note every problem of control flow; gives the scope of each node that is reached."""
    loose = _check_targets(compiled, found)
    _check_cycles(compiled, found)
    start = compiled.header.get("start")
    if start not in compiled.nodes:
        return {}
    owners = _Walk(compiled, found).walk(start)
    _check_ends(compiled, owners, loose, found)
    for name, value in compiled.ids.items() if compiled.whole and not loose else ():
        if name not in owners:
            hint = "lead to it from another node, or remove it"
            found.warn(codes.UNREACHABLE, f"nothing leads to the node {name!r}", value.at("id"), hint)
    return owners


def steps(node: Node) -> list[str]:
    """The nodes that can follow within the same scope: of a parallel or map its join, not its members."""
    if isinstance(node, Parallel | Map):
        return [node.join, *([node.on_error] if node.on_error else [])]
    return [target for _, target in edges(node)]


def edge_place(value: Value, target: str) -> Place:
    """Where a node's file entry names this target."""
    for part in _targets(value):
        if part.data == target:
            return part.place
    return value.place


def _targets(value: Value) -> Iterator[Value]:
    for name in ("next", "join", "body", "default", "on_error"):
        if name in value.entries:
            yield value.entries[name]
    for name in ("cases", "branches"):
        if name in value.entries:
            yield from value.entries[name].entries.values()
    for condition in value.entries["conditions"].items if "conditions" in value.entries else ():
        if "next" in condition.entries:
            yield condition.entries["next"]


def _check_targets(compiled: Compiled, found: Findings) -> set[str]:
    """Every edge names a node of the file, and every node that has to lead somewhere does; gives those where not."""
    loose: set[str] = set()
    start = compiled.header.get("start")
    if start is not None and compiled.ids and start not in compiled.ids:
        hint = found.suggest(start, compiled.ids, "name one of the nodes")
        what = f"the run starts at {start!r}, which does not exist"
        found.error(codes.UNKNOWN_NODE, what, compiled.root.at("start"), hint)
    for name, node in compiled.nodes.items():
        value = compiled.ids[name]
        for target in dict.fromkeys(target for _, target in edges(node)):
            if target not in compiled.ids:
                hint = found.suggest(target, compiled.ids, f"add a node with the id {target!r}")
                what = f"node {name!r} goes to {target!r}, which does not exist"
                found.error(codes.UNKNOWN_NODE, what, edge_place(value, target), hint)
            if target not in compiled.nodes:
                loose.add(name)
        if compiled.leads[name] and node.next is None:
            hint = "add `next: <node>`; a chain ends at a node of type terminal or fail"
            found.error(codes.NO_NEXT, f"node {name!r} has no `next`", value.place, hint)
            loose.add(name)
    return loose


class _Walk:
    """Walks each scope from its entry; a node that a second scope reaches too is an error there."""

    def __init__(self, compiled: Compiled, found: Findings) -> None:
        self.compiled = compiled
        self.found = found
        self.owners: dict[str, FlowScope] = {}
        self.scopes: deque[tuple[FlowScope, str, str]] = deque()

    def walk(self, start: str) -> dict[str, FlowScope]:
        self.scopes.append((FlowScope(), start, ""))
        while self.scopes:
            scope, entry, source = self.scopes.popleft()
            if scope.construct and entry == scope.join:
                what = f"{scope.path!r} begins at the join {entry!r}, so it has no nodes"
                self.found.error(codes.JOIN, what, self._place(source, entry), "give it a node of its own")
                continue
            self._walk_scope(scope, entry, source)
        return self.owners

    def _walk_scope(self, scope: FlowScope, entry: str, source: str) -> None:
        stack = [(entry, source)]
        while stack:
            name, origin = stack.pop()
            owner = self.owners.get(name)
            if owner is scope or name not in self.compiled.nodes or (name == scope.join and scope.join):
                continue
            if owner is not None:
                self._crossing(scope, owner, name, origin)
                continue
            self.owners[name] = scope
            node = self.compiled.nodes[name]
            stack.extend((target, name) for target in reversed(steps(node)))
            self._fork(scope, name, node)

    def _fork(self, scope: FlowScope, name: str, node: Node) -> None:
        match node:
            case Parallel():
                members = list(node.branches.items())
            case Map():
                members = [("", node.body)]
            case _:
                return
        outer = f"{scope.path}/" if scope.construct else ""
        for member, entry in members:
            path = f"{outer}{name}.{member}" if member else f"{outer}{name}[]"
            self.scopes.append((FlowScope(path, name, member, node.join), entry, name))

    def _crossing(self, scope: FlowScope, owner: FlowScope, name: str, origin: str) -> None:
        what = f"node {name!r} belongs to {owner.path}, but {origin!r} leads to it from {scope.path}"
        ends = f"the join {scope.join!r}, " if scope.join else ""
        hint = f"a chain stays in its scope: it ends at {ends}a terminal or a fail of its own"
        self.found.error(codes.SCOPE_EDGE, what, self._place(origin, name), hint)

    def _place(self, source: str, target: str) -> Place:
        return edge_place(self.compiled.ids[source], target) if source else self.compiled.root.at("start")


def _check_ends(compiled: Compiled, owners: dict[str, FlowScope], loose: set[str], found: Findings) -> None:
    """From every node an end of its scope can be reached; `loose` nodes have their own problem and count as ended."""
    before: dict[str, list[str]] = {name: [] for name in owners}
    good = deque[str]()
    ended: set[str] = set()
    for name, scope in owners.items():
        node = compiled.nodes[name]
        targets = steps(node)
        if isinstance(node, End) or name in loose or (scope.join and scope.join in targets):
            good.append(name)
            ended.add(name)
        for target in targets:
            if target in before:
                before[target].append(name)
    while good:
        for name in before[good.popleft()]:
            if name not in ended:
                ended.add(name)
                good.append(name)
    stuck = [name for name in owners if name not in ended]
    if stuck:
        more = f" and {len(stuck) - 3} more" if len(stuck) > 3 else ""
        what = f"no end can be reached from {quoted(stuck[:3])}{more}"
        hint = "lead one of them to a node of type terminal or fail"
        found.error(codes.NO_END, what, compiled.ids[stuck[0]].at("id"), hint)


def _check_cycles(compiled: Compiled, found: Findings) -> None:
    """A cycle of branches and sets does no work; the engine ends it after 100,000 steps."""
    pure = {name: node for name, node in compiled.nodes.items() if isinstance(node, Branch | Set)}
    after = {name: [target for target in steps(node) if target in pure] for name, node in pure.items()}
    done: set[str] = set()
    for start in after:
        cycle = _find_cycle(start, after, done)
        if cycle:
            shown = [*cycle[:6], "…"] if len(cycle) > 6 else [*cycle, cycle[0]]
            what = f"the nodes {' → '.join(shown)} form a cycle without any work"
            hint = "put a script, agent, ask or wait node into it, or make sure that it ends"
            found.warn(codes.PURE_CYCLE, what, compiled.ids[cycle[0]].at("id"), hint)


def _find_cycle(start: str, after: dict[str, list[str]], done: set[str]) -> list[str]:
    """A cycle that can be reached from `start` through nodes not yet `done`; empty if there is none."""
    if start in done:
        return []
    path: list[str] = [start]
    on_path = {start: 0}
    ahead = [iter(after[start])]
    cycle: list[str] = []
    while path:
        for target in ahead[-1]:
            if target in on_path:
                cycle = cycle or path[on_path[target] :]
            elif target not in done:
                on_path[target] = len(path)
                path.append(target)
                ahead.append(iter(after[target]))
                break
        else:
            ahead.pop()
            name = path.pop()
            del on_path[name]
            done.add(name)
    return cycle
