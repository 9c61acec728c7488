"""Which value counts: for a preference the most specific layer's, for a limit the strictest. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bailiwick.config.keys import Key, find_key
from bailiwick.config.layers import Layer, LayerKind, Origin, Setting
from bailiwick.config.limits import LimitRule
from bailiwick.errors import Problem
from bailiwick.ids import Json

FLAG_CUT = "BW220"
ORDER = {kind: rank for rank, kind in enumerate(LayerKind)}
CEILINGS = (LayerKind.POLICY, LayerKind.PERSON_REPOSITORY, LayerKind.PERSON, LayerKind.MACHINE)
"""The files an operator writes: a flag may loosen everything else, and never these."""

BUILT_IN = Origin(LayerKind.BUILT_IN)


@dataclass(frozen=True, slots=True)
class Resolved:
    """The value that counts and the settings it was made of, the deciding one first."""

    value: Json
    origins: tuple[Origin, ...]


def resolve(layers: Sequence[Layer]) -> tuple[dict[str, Resolved], list[Problem]]:
    """Every key that a layer sets, decided; and a notice for each flag that was cut to a ceiling."""
    ordered = sorted(layers, key=lambda layer: ORDER[layer.kind])
    names = dict.fromkeys(name for layer in ordered for name in layer.settings)
    decided: dict[str, Resolved] = {}
    notices: list[Problem] = []
    for name in names:
        key = find_key(name)
        if key is None:
            continue
        settings = [layer.settings[name] for layer in ordered if name in layer.settings]
        if key.rule is None:
            decided[name] = Resolved(settings[0].value, (settings[0].origin,))
        else:
            decided[name] = _strictest(key, key.rule, settings)
            notices += _cut(name, key.rule, settings[0], decided[name])
    return decided, notices


def _strictest(key: Key, rule: LimitRule, settings: list[Setting]) -> Resolved:
    """Combine what counts. The built-in value counts where no operator spoke; a flag replaces what is no ceiling."""
    counted = settings
    if settings[0].origin.kind is LayerKind.FLAG:
        counted = [s for s in settings if s.origin.kind is LayerKind.FLAG or s.origin.kind in CEILINGS]
    elif all(setting.origin.kind is LayerKind.REPOSITORY for setting in settings):
        counted = [*settings, Setting(key.default, BUILT_IN)]
    counted = sorted(counted, key=lambda setting: setting.origin.kind is not LayerKind.POLICY)
    value = counted[0].value
    for setting in counted[1:]:
        value = rule.combine(value, setting.value)
    deciding = [setting.origin for setting in counted if rule.within(setting.value, value)]
    return Resolved(value, tuple(deciding or [setting.origin for setting in counted]))


def _cut(name: str, rule: LimitRule, first: Setting, result: Resolved) -> list[Problem]:
    if first.origin.kind is not LayerKind.FLAG or rule.within(first.value, result.value):
        return []
    what = f"{name} was asked for as {first.value}, which is above the ceiling; {result.value} counts"
    where = next((origin.place for origin in result.origins if origin.place), None)
    return [Problem(FLAG_CUT, what, where, "raise the ceiling there, if it is yours", warning=True)]
