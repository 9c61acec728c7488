"""Configuration as the rest of the package asks for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bailiwick.config.files import read_operator_files, read_person_repository, read_repository
from bailiwick.config.keys import KEYS, Key, find_key
from bailiwick.config.layers import Layer, LayerKind, Origin, Setting, read_flags, read_variables
from bailiwick.config.limits import LimitRule
from bailiwick.config.paths import Paths, find_paths
from bailiwick.config.planned import NOT_YET, PLANNED, planned_name
from bailiwick.config.repository import Repository, find_repository
from bailiwick.config.variables import Environment
from bailiwick.errors import InputInvalid, NotFound, Problem
from bailiwick.ids import Json
from bailiwick.lang.fields import Findings
from bailiwick.lang.wording import suggestion

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
    """The precedence of layers: every key decided; and a notice for each flag that was cut to a ceiling."""
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


@dataclass(frozen=True, slots=True)
class Config:
    """The values that count, each with its origin. `notices` are for the person, once, at the start of a command."""

    paths: Paths
    repository: Repository | None
    decided: Mapping[str, Resolved]
    notices: tuple[Problem, ...] = ()

    def get(self, name: str) -> Json:
        """The value of a key, or a mapping of everything below a name such as `budget`; raises `NotFound`."""
        key = find_key(name)
        if key is not None:
            return self._value(name, key)
        below = {full: value for full, value in self.items() if full.startswith(f"{name}.")}
        if not below and not _is_section(name):
            raise unknown_key(name)
        return _nested(below, len(name) + 1)

    def origin(self, name: str) -> Origin:
        """Where the value of a key was set; of several layers the deciding one. Raises `NotFound`."""
        return self.origins(name)[0]

    def origins(self, name: str) -> tuple[Origin, ...]:
        """Every place that the value of a key is made of."""
        if find_key(name) is None:
            raise unknown_key(name)
        return self.decided[name].origins if name in self.decided else (BUILT_IN,)

    def items(self) -> Iterator[tuple[str, Json]]:
        """Every key with its value, in the order of the reference; below a `*` those that are set."""
        for key in KEYS:
            if "*" not in key.name:
                yield key.name, self._value(key.name, key)
            else:
                for name in sorted(self.decided):
                    if find_key(name) is key:
                        yield name, self.decided[name].value

    @property
    def runs_dir(self) -> Path:
        """Where run directories are written."""
        chosen = self.get("runs_dir")
        return Path(chosen) if chosen else self.paths.runs

    def _value(self, name: str, key: Key) -> Json:
        return self.decided[name].value if name in self.decided else key.default


def load_config(
    cwd: Path,
    flags: Mapping[str, Json],
    *,
    environment: Environment | None = None,
    machine: Path | None = None,
) -> Config:
    """Read every layer and decide. Raises `InputInvalid` with all problems of all layers; without files only looks."""
    env = environment or Environment()
    paths = find_paths(env, machine)
    here = cwd.absolute()
    found = Findings(strict=True)
    repository = find_repository(here)
    layers: list[Layer | None] = [
        read_flags(flags, here, found),
        *read_variables(env, here, found),
        *read_operator_files(paths, found),
    ]
    if repository is not None:
        layers.append(read_person_repository(paths, repository, found))
        layers.append(read_repository(repository, env, found))
    if found.failed:
        raise InputInvalid(found.problems)
    decided, notices = resolve([layer for layer in layers if layer is not None])
    return Config(paths, repository, decided, (*found.problems, *notices))


def unknown_key(name: str) -> NotFound:
    """The error for a key that does not exist, or not yet."""
    if (later := planned_name(name)) is not None:
        return NotFound(f"{later} is not in this version yet", hint=PLANNED[later], code=NOT_YET)
    sections = {key.name.split(".")[0]: None for key in KEYS}
    hint = suggestion(name, (*sections, *(key.name for key in KEYS)), "`bailiwick config show` lists them")
    return NotFound(f"there is no key {name!r}", hint=hint)


def _is_section(name: str) -> bool:
    parts = name.split(".")
    return any(
        all(part in ("*", given) for part, given in zip(key.name.split("."), parts, strict=False))
        for key in KEYS
        if key.name.count(".") >= len(parts)
    )


def _nested(flat: Mapping[str, Json], skip: int) -> dict[str, Json]:
    out: dict[str, Json] = {}
    for full, value in flat.items():
        *folders, leaf = full[skip:].split(".")
        here = out
        for folder in folders:
            here = here.setdefault(folder, {})
        here[leaf] = value
    return out
