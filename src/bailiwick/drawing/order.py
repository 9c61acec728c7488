"""How the nodes of a picture follow each other: which lines go back, and what every way to a node passes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

Ways = Mapping[str, Sequence[str]]


@dataclass(slots=True)
class NodeOrder:
    """`forward` holds every node, each after all that lead to it but for the lines in `back`; `roots` begin a part."""

    forward: list[str] = field(default_factory=list)
    back: set[tuple[str, str]] = field(default_factory=set)
    roots: list[str] = field(default_factory=list)


def order(names: Iterable[str], ways: Ways) -> NodeOrder:
    """Walk depth first from the first name on; a name that no earlier one leads to begins a part of its own."""
    found = NodeOrder()
    finished: list[str] = []
    opened: set[str] = set()
    closed: set[str] = set()
    for root in names:
        if root in opened:
            continue
        found.roots.append(root)
        part = len(finished)
        opened.add(root)
        stack = [(root, iter(reversed(ways.get(root, ()))))]
        while stack:
            name, rest = stack[-1]
            target = next(rest, None)
            if target is None:
                stack.pop()
                closed.add(name)
                finished.append(name)
            elif target not in opened:
                opened.add(target)
                stack.append((target, iter(reversed(ways.get(target, ())))))
            elif target not in closed:
                found.back.add((name, target))
        finished[part:] = reversed(finished[part:])
    found.forward = finished
    return found


def dominators(found: NodeOrder, ways: Ways) -> dict[str, str]:
    """For each node the last one that every way to it passes; a root has none. Lines that go back don't count."""
    leading: dict[str, list[str]] = {}
    for name in found.forward:
        for target in ways.get(name, ()):
            if (name, target) not in found.back:
                leading.setdefault(target, []).append(name)
    place = {name: number for number, name in enumerate(found.forward)}
    roots = set(found.roots)
    above: dict[str, list[str]] = {}
    depth: dict[str, int] = {}
    result: dict[str, str] = {}
    for name in found.forward:
        before = [other for other in leading.get(name, ()) if place[other] < place[name] and other in depth]
        if name in roots or not before:
            depth[name], above[name] = 0, []
            continue
        shared: str | None = before[0]
        for other in before[1:]:
            shared = _shared(shared, other, above, depth) if shared is not None else None
        if shared is None:
            depth[name], above[name] = 0, []
            continue
        result[name] = shared
        depth[name], above[name] = depth[shared] + 1, _jumps(shared, above)
    return result


def _jumps(parent: str, above: dict[str, list[str]]) -> list[str]:
    """The ancestors 1, 2, 4, 8, … steps up."""
    found, step = [parent], 0
    while step < len(above[found[step]]):
        found.append(above[found[step]][step])
        step += 1
    return found


def _shared(one: str, other: str, above: dict[str, list[str]], depth: dict[str, int]) -> str | None:
    """The nearest ancestor of both, each counting as its own; None where they belong to different parts."""
    if depth[one] < depth[other]:
        one, other = other, one
    for step in reversed(range(len(above[one]))):
        if step < len(above[one]) and depth[one] - (1 << step) >= depth[other]:
            one = above[one][step]
    if one == other:
        return one
    for step in reversed(range(len(above[one]))):
        if step < len(above[one]) and above[one][step] != above[other][step]:
            one, other = above[one][step], above[other][step]
    if not above[one] or not above[other]:
        return None
    return above[one][0] if above[one][0] == above[other][0] else None
