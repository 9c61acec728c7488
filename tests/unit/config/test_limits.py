"""Limits: the result is never looser than any layer. That sentence is the product, so it is a property."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bailiwick.config.keys import find_key, keys_by_name
from bailiwick.config.layers import Layer, LayerKind, Origin, Setting
from bailiwick.config.limits import AllAgree, AnyAsks, Least, LimitRule, Most, Overlap, Ranked, Union
from bailiwick.config.service import CEILINGS, resolve
from bailiwick.ids import Json

NAMES = st.lists(st.sampled_from(["a", "ab", "abc", "a*", "ab*", "b", "*", "a**", "b*c"]), max_size=4)
LIMITS = {key.name: key.rule for key in keys_by_name().values() if key.rule is not None and "*" not in key.name}
LAYERS = [kind for kind in LayerKind if kind not in (LayerKind.BUILT_IN, LayerKind.FLAG)]


def values_of(rule: LimitRule) -> st.SearchStrategy[Json]:
    """Values that a limit can have."""
    match rule:
        case Least() | Most():
            return st.none() | st.integers(0, 50)
        case AllAgree() | AnyAsks():
            return st.booleans()
        case Ranked(groups):
            return st.sampled_from([word for group in groups for word in group])
        case Overlap():
            return st.none() | NAMES
        case Union():
            return NAMES
        case _:
            raise AssertionError(f"no values for {rule}")


@st.composite
def settings_of_a_limit(draw: st.DrawFn) -> tuple[str, LimitRule, dict[LayerKind, Json]]:
    name = draw(st.sampled_from(sorted(LIMITS)))
    rule = LIMITS[name]
    kinds = draw(st.lists(st.sampled_from([*LAYERS, LayerKind.FLAG]), min_size=1, unique=True))
    return name, rule, {kind: draw(values_of(rule)) for kind in kinds}


def result(name: str, given_by: dict[LayerKind, Json]) -> Json:
    layers = [Layer(kind, {name: Setting(value, Origin(kind))}) for kind, value in given_by.items()]
    decided, _ = resolve(layers)
    return decided[name].value


@given(settings_of_a_limit())
def test_a_limit_is_never_looser_than_any_layer(case: tuple[str, LimitRule, dict[LayerKind, Json]]) -> None:
    """Without a flag it holds for all layers; a flag may loosen what is no operator's file, and those never."""
    name, rule, given_by = case
    value = result(name, given_by)
    binding = CEILINGS if LayerKind.FLAG in given_by else tuple(LAYERS)
    for kind in binding:
        if kind in given_by:
            assert rule.within(value, given_by[kind]), kind


@given(settings_of_a_limit())
def test_a_repository_never_loosens(case: tuple[str, LimitRule, dict[LayerKind, Json]]) -> None:
    """Whatever else is set: with the repository's file the result is within the one without it."""
    name, rule, given_by = case
    given_by.pop(LayerKind.FLAG, None)
    others: dict[LayerKind, Json] = {
        kind: value for kind, value in given_by.items() if kind is not LayerKind.REPOSITORY
    }
    key = find_key(name)
    assert key is not None
    without = result(name, others) if others else key.default
    if LayerKind.REPOSITORY in given_by:
        assert rule.within(result(name, given_by), without)


@given(st.data(), st.sampled_from(sorted(LIMITS)))
def test_combining_is_stricter_than_both_sides_and_keeps_equal_ones(data: st.DataObject, name: str) -> None:
    """The rules themselves, without the layers around them."""
    rule = LIMITS[name]
    one, two = data.draw(values_of(rule)), data.draw(values_of(rule))
    both = rule.combine(one, two)
    assert rule.within(both, one)
    assert rule.within(both, two)
    assert rule.combine(one, one) == one


@given(first=NAMES, second=NAMES, name=st.text(alphabet="abc", max_size=4))
def test_what_an_overlap_allows_both_sides_allow(first: list[str], second: list[str], name: str) -> None:
    """Names with a star at the end stand for sets; no concrete name may slip through their intersection."""

    def allows(names: list[str]) -> bool:
        return any(name == one or (one.endswith("*") and name.startswith(one[:-1])) for one in names)

    if allows(Overlap().combine(first, second)):
        assert allows(first)
        assert allows(second)
