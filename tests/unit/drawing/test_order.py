"""Orders and dominators."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bailiwick.drawing.order import dominators, order

NAMES = [f"n{i}" for i in range(8)]
WAYS = st.dictionaries(st.sampled_from(NAMES), st.lists(st.sampled_from(NAMES), max_size=4))


def test_a_diamond_is_dominated_by_its_top() -> None:
    """What both sides lead to belongs to where they part."""
    ways = {"a": ["b", "c"], "b": ["d"], "c": ["d"], "d": ["a"]}
    found = order("abcd", ways)
    assert found.back == {("d", "a")}
    assert dominators(found, ways) == {"b": "a", "c": "a", "d": "a"}


@given(WAYS)
def test_every_line_but_those_that_go_back_leads_forward(ways: dict[str, list[str]]) -> None:
    """Rows are made from this: a line upwards that isn't known as one would cross everything."""
    found = order(NAMES, ways)
    place = {name: number for number, name in enumerate(found.forward)}
    assert sorted(found.forward) == NAMES
    part = {name: sum(place[root] <= place[name] for root in found.roots) for name in NAMES}
    for source, targets in ways.items():
        for target in targets:
            forward = place[source] < place[target] or part[target] < part[source]
            assert forward or (source, target) in found.back


def _reaches(ways: dict[str, list[str]], start: str, goal: str, without: str) -> bool:
    seen, ahead = {start}, [start]
    while ahead:
        name = ahead.pop()
        if name == goal:
            return True
        for target in ways.get(name, []):
            if target not in seen and target != without:
                seen.add(target)
                ahead.append(target)
    return False


@given(WAYS)
def test_no_way_to_a_node_avoids_its_dominator(ways: dict[str, list[str]]) -> None:
    """Indenting under a node claims that one comes from there and from nowhere else; lines back don't count."""
    reachable = [name for name in NAMES if _reaches(ways, "n0", name, "")]
    inner = {name: [t for t in ways.get(name, []) if t in reachable] for name in reachable}
    found = order(reachable, inner)
    forward = {name: [t for t in inner[name] if (name, t) not in found.back] for name in reachable}
    for name, above in dominators(found, inner).items():
        assert above == "n0" or not _reaches(forward, "n0", name, above)
