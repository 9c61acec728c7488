"""What a gate checks, and the file that says so: `gate.yaml`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from bailiwick.errors import InputInvalid, Problem
from bailiwick.gate.globs import fault_of
from bailiwick.ids import NAME, Json, canonical, digest
from bailiwick.lang import codes
from bailiwick.lang.fields import Duration, Field, Findings, ListOf, MapOf, Number, Scalar, Schema, Table, Text

if TYPE_CHECKING:
    from bailiwick.lang.values import Value

FILE = ".bailiwick/gate.yaml"
UNKNOWN_CHECK = "BW441"
BAD_PATTERN = "BW443"
NOT_PLAIN = "BW447"
GROUP = "bailiwick.checks"
"""The entry point group of further kinds of check: each a class with `fields`, a tuple of `Field`, and `run`."""

LOWEST_PORT, HIGHEST_PORT = 1024, 65535
"""Of a service: lower ones can't be opened in a sandbox, whose processes have no rights."""
MOST_PORTS = 16
"""Of one service."""
MINUTE = 60.0
TIMEOUT = 20 * MINUTE
"""How long a check may take where the file says nothing."""
ALWAYS_PROTECTED = (".bailiwick/**",)
"""Protected whatever a file says: who may change the gate need not pass it."""
PROTECTED = (
    "tests/**", "test/**", "**/__tests__/**", "**/conftest.py", "**/test_*.py", "**/*_test.py", "**/*_test.go",
    "**/*.test.*", "**/*.spec.*", "pyproject.toml", "package.json", "go.mod", "Cargo.toml",
    ".github/**", ".gitlab-ci.yml", ".forgejo/**", ".gitea/**",
)  # fmt: skip
"""Protected where no file says what is."""

Origin = Literal["operator", "base", "detected"]


@dataclass(frozen=True, slots=True)
class CheckSpec:
    """One check: its command without a shell, its kind, its seconds, and the options of that kind."""

    name: str
    kind: str = "command"
    run: tuple[str, ...] = ()
    timeout: float | None = TIMEOUT
    options: Mapping[str, Json] = field(default_factory=dict)
    optional: bool = False
    """A linter that was only detected: where it is red or missing on the base too it is left out, with a note."""

    def to_json(self) -> dict[str, Json]:
        """As a document."""
        told: dict[str, Json] = {"name": self.name, "kind": self.kind, "run": list(self.run), "timeout": self.timeout}
        return {**told, "options": dict(self.options), **({"optional": True} if self.optional else {})}


@dataclass(frozen=True, slots=True)
class Service:
    """A container that tests talk to; `ready` is the command inside that succeeds as soon as it can be used.

    `ports` are those that tests reach at 127.0.0.1; where none are given, the ones that the image exposes.
    """

    name: str
    image: str
    ready: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    ports: tuple[int, ...] = ()

    def to_json(self) -> dict[str, Json]:
        """As a document."""
        return {"image": self.image, "ready": list(self.ready), "env": dict(self.env), "ports": list(self.ports)}


@dataclass(frozen=True, slots=True)
class GateSpec:
    """What is checked, where that was said, and what the person should know about it (`notes`)."""

    prepare: tuple[tuple[str, ...], ...] = ()
    copy: tuple[str, ...] = ()
    services: tuple[Service, ...] = ()
    checks: tuple[CheckSpec, ...] = ()
    protected: tuple[str, ...] = PROTECTED
    origin: Origin = "detected"
    file: str = ""
    notes: tuple[Problem, ...] = ()

    def to_json(self) -> dict[str, Json]:
        """What decides, as a document; where it was said is left out."""
        return {
            "version": 1,
            "prepare": [list(command) for command in self.prepare],
            "copy": list(self.copy),
            "services": {service.name: service.to_json() for service in self.services},
            "checks": [check.to_json() for check in self.checks],
            "protected": list(self.protected),
        }

    @property
    def digest(self) -> str:
        """The policy digest: equal gates have equal ones, whoever wrote them."""
        return digest(canonical(self.to_json()))


_WORD = Text(empty=False)
_COMMAND = ListOf(Scalar(), least=1)
_IMAGE = Text(pattern=r"[A-Za-z0-9][A-Za-z0-9._/:@-]*", expects="the name of an image, such as postgres:16")
_PORT = Number(low=LOWEST_PORT, high=HIGHEST_PORT, whole=True)
_SERVICE = Table(
    "service",
    (
        Field("image", _IMAGE, "the image of the container, fetched where it is missing", required=True),
        Field("ready", _COMMAND, "a command inside that succeeds as soon as it can be used"),
        Field("ports", ListOf(_PORT, least=1, most=MOST_PORTS), "ports that tests reach; else those the image exposes"),
        Field("env", MapOf(Scalar(), key=r"[A-Za-z_][A-Za-z0-9_]*"), "its environment: plain values, never a secret"),
    ),
)
_SHARED = (
    Field("name", Text(pattern=NAME.pattern, expects="a name: letters, digits, _ . -"), "its name", required=True),
    Field(
        "kind", _WORD, "command, pytest, node-test, vitest, jest, mocha, go-test, cargo-test, judge, … or a package's"
    ),
    Field("timeout", Duration(low=1.0), "the longest time it may take; 20 minutes if not given"),
)
_RUN = Field("run", _COMMAND, "the command, without a shell", required=True)
_COUNT = Number(low=0, whole=True)
OPTIONS: dict[str, tuple[Field, ...]] = {
    "command": (_RUN,),
    "pytest": (_RUN,),
    **dict.fromkeys(("node-test", "vitest", "jest", "mocha", "go-test", "cargo-test"), (_RUN,)),
    "secret-scan": (Field("ignore", ListOf(_WORD), "paths in which nothing is looked for"),),
    "diff-size": (
        Field("max_lines", _COUNT, "added and deleted lines together"),
        Field("max_files", _COUNT, "changed files"),
        Field("max_bytes", _COUNT, "added bytes"),
        Field("max_statements", _COUNT, "added statements"),
        Field("ignore", ListOf(_WORD), "paths that don't count"),
    ),
    "weakening": (),
    "judge": (Field("model", _WORD, "the model that judges, as in models.yaml; not the author's", required=True),),
}
"""What each kind of check that comes with Bailiwick may say besides what all of them may."""
_ANY_CHECK = Table("check", (*_SHARED, *{f.name: f for own in OPTIONS.values() for f in own}.values()))


class _Checks:
    """The list of checks: each is read by the table of its own kind."""

    expects = "a list of checks that is not empty"

    def accepts(self, data: Json) -> bool:
        return isinstance(data, list)

    def read(self, value: Value, found: Findings) -> Json:
        if not isinstance(value.data, list) or not value.items:
            found.wrong(value, self.expects)
            return None
        read: dict[str, CheckSpec] = {}
        for item in value.items:
            check = _read_check(item, found)
            if check is not None and check.name in read:
                what = f"two checks are named {check.name!r}"
                found.error(codes.DUPLICATE_ID, what, item.at("name"), "give each a name of its own")
            elif check is not None:
                read[check.name] = check
        return list(read.values())

    def schema(self) -> Schema:
        optional = Table("check", tuple(replace(part, required=part.name == "name") for part in _ANY_CHECK.fields))
        return {"type": "array", "minItems": 1, "items": optional.schema(closed=False)}


GATE = Table(
    "gate",
    (
        Field("version", Number(low=1, high=1, whole=True), "the version of this file's language"),
        Field("prepare", ListOf(_COMMAND), "commands that make the environment from the base's lock files"),
        Field("copy", ListOf(_WORD), "ignored files to bring from the work tree"),
        Field("services", MapOf(_SERVICE, key=r"[a-z][a-z0-9-]{0,62}"), "containers for tests"),
        Field("checks", _Checks(), "what a change has to pass", required=True),
        Field("protected", ListOf(_WORD), "patterns of paths whose changes need a person"),
    ),
)
"""The format of `gate.yaml`."""


def gate_schema() -> Schema:
    """The JSON Schema of `gate.yaml`, for editors."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Bailiwick gate",
        **GATE.schema(),
    }


def read_gate(data: bytes, file: str, origin: Origin) -> GateSpec:
    """Read the bytes of a `gate.yaml`, named `file` in problems; raises `InputInvalid` with each at its place."""
    from bailiwick.lang.source import parse_yaml

    root = parse_yaml(data, file)
    found = Findings(strict=True)
    plain = GATE.read(root, found)
    _check_paths(root, found)
    _check_services(root, found)
    if found.failed:
        raise InputInvalid(found.problems)
    return GateSpec(
        prepare=tuple(tuple(command) for command in plain.get("prepare", ())),
        copy=tuple(plain.get("copy", ())),
        services=tuple(
            Service(
                name,
                image=given["image"],
                ready=tuple(given.get("ready", ())),
                env=given.get("env", {}),
                ports=tuple(given.get("ports", ())),
            )
            for name, given in plain.get("services", {}).items()
        ),
        checks=tuple(plain["checks"]),
        protected=tuple(dict.fromkeys((*ALWAYS_PROTECTED, *plain.get("protected", PROTECTED)))),
        origin=origin,
        file=file,
        notes=tuple(found.problems),
    )


def _read_check(item: Value, found: Findings) -> CheckSpec | None:
    kind = item.data.get("kind") if isinstance(item.data, dict) else None
    name = kind if isinstance(kind, str) else "command"
    own = _options(name, item, found)
    if own is None:
        return None
    before = len(found.problems)
    plain = Table(f"{name} check", (*_SHARED, *own)).read(item, found)
    if found.failed_since(before):
        return None
    shared = {part.name for part in _SHARED}
    return CheckSpec(
        name=plain["name"],
        kind=name,
        run=tuple(plain.get("run", ())),
        timeout=plain.get("timeout", TIMEOUT),
        options={key: data for key, data in plain.items() if key not in shared and key != "run"},
    )


def _options(kind: str, item: Value, found: Findings) -> tuple[Field, ...] | None:
    """The fields of a kind; one that neither we nor an installed package has is an error."""
    if kind in OPTIONS:
        return OPTIONS[kind]
    from importlib.metadata import entry_points

    points = entry_points(group=GROUP)
    place = item.at("kind")
    for point in points.select(name=kind):
        try:
            return tuple(point.load().fields)
        except Exception as error:  # noqa: BLE001 a foreign package raises what it likes; it stops here
            what = f"the check {kind!r} of {point.value} can't be loaded: {error}"
            found.error(UNKNOWN_CHECK, what, place, "repair or remove the package that provides it")
            return None
    known = [*OPTIONS, *(point.name for point in points)]
    hint = found.suggest(kind, known, f"one of {', '.join(known)}")
    found.error(UNKNOWN_CHECK, f"the kind of check {kind!r} is not known", place, hint)
    return None


def _check_paths(root: Value, found: Findings) -> None:
    """What the table can't say: patterns that can be read, and files to copy that stay inside."""
    listed = root.entries.get("protected")
    for item in listed.items if listed is not None else ():
        if isinstance(item.data, str) and (fault := fault_of(item.data)):
            found.error(BAD_PATTERN, f"{item.data!r}: {fault}", item.place, "write it like `tests/**`")
    copied = root.entries.get("copy")
    for item in copied.items if copied is not None else ():
        if isinstance(item.data, str) and not is_plain_path(item.data):
            what = f"{item.data!r} is not a path of a file below the repository"
            found.error(codes.OUTSIDE, what, item.place, "give a relative path without `..` or `*`")


def _check_services(root: Value, found: Findings) -> None:
    """A reference to a secret would reach a container as the text it is; and no container of tests needs a real one."""
    listed = root.entries.get("services")
    for service in listed.entries.values() if listed is not None else ():
        given = service.entries.get("env")
        for name, item in given.entries.items() if given is not None else ():
            if isinstance(item.data, str) and "${secret:" in item.data:
                what = f"{name!r} refers to a secret, which containers for tests are not given"
                found.error(NOT_PLAIN, what, item.place, "write a plain value that is good for tests only")


def is_plain_path(text: str) -> bool:
    """Whether a text is a relative path that stays below and means exactly one file."""
    parts = text.split("/")
    return not any(part in ("", ".", "..", ".git") for part in parts) and not any(sign in text for sign in "*?[\\\0\n")
