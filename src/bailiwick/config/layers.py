"""Layers of configuration: what each sets, and where. A layer is checked when it is read; nothing is decided here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from bailiwick.config.keys import BACKENDS, CONCRETE_VARIABLES, KEYS, Key, find_key
from bailiwick.config.planned import NOT_YET, planned_name, planned_variable, refuse, refuse_value
from bailiwick.config.shapes import FilePath, as_value, from_text
from bailiwick.config.variables import MEANING, PREFIX, Environment
from bailiwick.errors import Place
from bailiwick.ids import Json
from bailiwick.lang import codes
from bailiwick.lang.fields import Findings, ListOf
from bailiwick.lang.values import Value
from bailiwick.lang.wording import suggestion

REPOSITORY_MAY_NOT = "BW211"
NOT_A_LIMIT = "BW212"
UNKNOWN_VARIABLE = "BW222"


class LayerKind(Enum):
    """The layers, the most specific first."""

    FLAG = "the command line"
    OWN_VARIABLE = "a variable of Bailiwick"
    OTHER_VARIABLE = "a variable of another tool"
    PERSON_REPOSITORY = "the person's file for this repository"
    REPOSITORY = "the repository"
    PERSON = "the person's file"
    MACHINE = "the machine's file"
    BUILT_IN = "built-in"
    POLICY = "the organisation's policy"


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a value was set; reads as file:line:column, the variable's name, `command line` or `built-in`."""

    kind: LayerKind
    place: Place | None = None

    def __str__(self) -> str:
        return str(self.place) if self.place else self.kind.value


@dataclass(frozen=True, slots=True)
class Setting:
    """A value and where it was set; None is a lifted limit."""

    value: Json
    origin: Origin


@dataclass(frozen=True, slots=True)
class Layer:
    """Everything one source sets, by the full name of the key."""

    kind: LayerKind
    settings: dict[str, Setting] = field(default_factory=dict)


def read_layer(kind: LayerKind, root: Value, base: Path, found: Findings) -> Layer:
    """The settings of a parsed file; `base` is where its relative paths start. Notes every problem in `found`."""
    layer = Layer(kind)

    def take(name: str, key: Key, value: Value) -> None:
        if _permitted(kind, name, key=key, value=value, found=found):
            _set(layer, name, key=key, value=value, context=(base, found))

    _walk(root, (), take, found)
    return layer


def _walk(value: Value, path: tuple[str, ...], take: Callable[[str, Key, Value], None], found: Findings) -> None:
    for name, part in value.entries.items():
        here = (*path, name)
        full = ".".join(here)
        key = find_key(full) if "." not in name else None
        if (later := planned_name(full)) is not None:
            refuse(later, value.key_place(name), found)
        elif key is not None:
            if part.data is not None:
                take(full, key, part)
        elif "." in name or not _children(here):
            _note_unknown(value, path, name, found)
        elif isinstance(part.data, dict):
            _walk(part, here, take, found)
        elif part.data is not None:
            found.wrong(part, f"a mapping with {', '.join(sorted(_children(here)))}")


def _children(path: tuple[str, ...]) -> set[str]:
    """The names that may stand below a path; `*` for any."""
    depth = len(path)
    below = (key.name.split(".") for key in KEYS)
    return {
        parts[depth]
        for parts in below
        if len(parts) > depth and all(part in ("*", name) for part, name in zip(parts, path, strict=False))
    }


def _note_unknown(value: Value, path: tuple[str, ...], name: str, found: Findings) -> None:
    known = sorted(_children(path) - {"*"})
    where = f" in {'.'.join(path)}" if path else ""
    full = ".".join((*path, name))
    if find_key(full):
        hint = "nest it: " + ": {".join((*path, *name.split("."))) + ": …" + "}" * full.count(".")
    else:
        hint = suggestion(name, known, f"known here: {', '.join(known)}" if known else "use a name without dots")
    found.error(codes.UNKNOWN_FIELD, f"the key {name!r} is not known{where}", value.key_place(name), hint)


def _permitted(kind: LayerKind, name: str, key: Key, value: Value, found: Findings) -> bool:
    if key.name == "endpoints.*.num_ctx" and name != "endpoints.ollama.num_ctx":
        hint = "remove it; only Ollama is asked for a context window: endpoints.ollama.num_ctx"
        found.error(NOT_YET, f"{name} is not in this version yet", value.place, hint)
        return False
    if kind is LayerKind.POLICY and key.rule is None and name != "version":
        hint = "put it into config.yaml beside it; a policy holds limits only"
        found.error(NOT_A_LIMIT, f"{name} is a preference, not a limit", value.place, hint)
        return False
    if kind is not LayerKind.REPOSITORY:
        return True
    if not key.repository:
        hint = "put it into your own config.yaml, or into repos/<host>/<owner>/<name>.yaml beside it"
        found.error(REPOSITORY_MAY_NOT, f"a repository can't set {name}", value.place, hint)
        return False
    if name == "backend" and value.data == "command":
        hint = "name one of " + ", ".join(backend for backend in BACKENDS if backend != "command")
        found.error(REPOSITORY_MAY_NOT, "a repository can't choose a command as its backend", value.place, hint)
        return False
    return True


def _set(layer: Layer, name: str, key: Key, value: Value, context: tuple[Path, Findings]) -> None:
    base, found = context
    if refuse_value(key.name, value.data, value.place, found):
        return
    before = len(found.problems)
    data = key.shape.read(value, found)
    if len(found.problems) == before:
        layer.settings[name] = Setting(_absolute(data, key, base), Origin(layer.kind, value.place))


def _absolute(data: Json, key: Key, base: Path) -> Json:
    if isinstance(key.shape, FilePath):
        return str(base / Path(data).expanduser())
    if isinstance(key.shape, ListOf) and isinstance(key.shape.item, FilePath):
        return [str(base / Path(path).expanduser()) for path in data]
    return data


def read_flags(flags: Mapping[str, Json], cwd: Path, found: Findings) -> Layer:
    """What the command line sets: full key names and plain values. None is a flag that was not given."""
    layer = Layer(LayerKind.FLAG)
    for name, data in flags.items():
        key = find_key(name)
        if planned_name(name) and data is not None:
            refuse(name, Place("command line"), found)
        elif key is None:
            hint = suggestion(name, (known.name for known in KEYS), "see `bailiwick config show`")
            found.error(codes.UNKNOWN_FIELD, f"the key {name!r} is not known", Place("command line"), hint)
        elif data is not None:
            _set(layer, name, key=key, value=as_value(data, "command line"), context=(cwd, found))
    return layer


def read_variables(environment: Environment, cwd: Path, found: Findings) -> tuple[Layer, Layer]:
    """What our own variables set, and what those of other tools set. One of ours that nothing reads is a warning."""
    own, other = Layer(LayerKind.OWN_VARIABLE), Layer(LayerKind.OTHER_VARIABLE)
    known = set(MEANING)
    for key in KEYS:
        for variable in key.variables:
            known.add(variable)
            layer = own if variable.startswith(PREFIX) else other
            _set_from_variable(layer, key.name, variable=variable, environment=environment, context=(cwd, found))
    for variable, name in CONCRETE_VARIABLES.items():
        _set_from_variable(other, name, variable=variable, environment=environment, context=(cwd, found))
    command = other.settings.get("agents.command")
    if command is not None:
        other.settings.setdefault("backend", Setting("command", command.origin))
    for variable in environment.own_names():
        if (later := planned_variable(variable)) is not None:
            refuse(later, Place(variable), found)
        elif variable not in known:
            hint = suggestion(variable, known, "unset it")
            found.warn(UNKNOWN_VARIABLE, "nothing reads this variable", Place(variable), hint)
    return own, other


def _set_from_variable(
    layer: Layer, name: str, variable: str, environment: Environment, context: tuple[Path, Findings]
) -> None:
    text = environment.text(variable)
    key = find_key(name)
    if text is not None and key is not None and name not in layer.settings:
        _set(layer, name, key=key, value=as_value(from_text(text, key.shape), variable), context=context)
