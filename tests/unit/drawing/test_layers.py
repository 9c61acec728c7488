"""The layout of SVG pictures."""

from __future__ import annotations

from itertools import combinations, pairwise

from hypothesis import given
from hypothesis import strategies as st

from bailiwick.drawing.layers import DrawingLayout, LayoutBox, Tie, arrange, nearest_fit

NAMES = [f"n{i}" for i in range(9)]
TIES = st.lists(
    st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES), st.sampled_from(["", "ok", "a longer label"])),
    max_size=16,
)


def _plan(ties: list[tuple[str, str, str]]) -> DrawingLayout:
    return arrange(
        [LayoutBox(name, 90, 44) for name in NAMES], [Tie(s, t, text, 7.0 * len(text)) for s, t, text in ties]
    )


def _overlap(one: LayoutBox, other: LayoutBox) -> bool:
    wide, tall = (one.width + other.width) / 2, (one.height + other.height) / 2
    return abs(one.x - other.x) < wide - 0.01 and abs(one.y - other.y) < tall - 0.01


@given(TIES)
def test_boxes_never_overlap_and_stay_inside_the_picture(ties: list[tuple[str, str, str]]) -> None:
    """Two nodes on top of each other cannot be read."""
    made = _plan(ties)
    assert not any(_overlap(one, other) for one, other in combinations(made.items.values(), 2))
    for item in made.items.values():
        assert item.width / 2 - 0.01 <= item.x <= made.width - item.width / 2 + 0.01
        assert item.height / 2 - 0.01 <= item.y <= made.height - item.height / 2 + 0.01


@given(TIES)
def test_every_tie_runs_from_its_source_to_its_target(ties: list[tuple[str, str, str]]) -> None:
    """A line that ends elsewhere tells a wrong story."""
    made = _plan(ties)
    for route, (source, target, _) in zip(made.routes, ties, strict=True):
        start, end = made.items[source], made.items[target]
        assert route.points[0] == (start.x, start.y + start.height / 2)
        assert route.points[-1] == (end.x, end.y - end.height / 2)


@given(TIES)
def test_no_label_lies_on_a_box_or_on_another_label(ties: list[tuple[str, str, str]]) -> None:
    """Case values are why one looks at the picture."""
    made = _plan(ties)
    labels = [
        LayoutBox("", route.tie.label_width, 14, *route.label_at) for route in made.routes if route.label_at is not None
    ]
    assert not any(_overlap(one, other) for one, other in combinations(labels, 2))
    assert not any(_overlap(one, item) for one in labels for item in made.items.values())


@given(st.lists(st.tuples(st.floats(-500, 500), st.floats(1, 50), st.floats(0.1, 3)), min_size=1, max_size=12))
def test_places_keep_their_order_and_distance(given_items: list[tuple[float, float, float]]) -> None:
    """However crowded a row is, its boxes stay in order and apart."""
    wants, gaps, weights = (list(column) for column in zip(*given_items, strict=True))
    found = nearest_fit(wants, gaps[1:], weights)
    apart = [right - left for left, right in pairwise(found)]
    assert all(distance >= gap - 1e-6 for distance, gap in zip(apart, gaps[1:], strict=True))


def test_places_are_those_wanted_where_there_is_room() -> None:
    """Straight lines are the point of it."""
    assert nearest_fit([0.0, 100.0, 250.0], [20.0, 20.0], [1.0, 1.0, 1.0]) == [0.0, 100.0, 250.0]
