"""Which models a skill goes through, and the file that says so: `models.yaml`.

One file decides the chains: the one that was named, else the repository's as of its base commit, else the person's.
`local_only` is a limit: it holds if any of these files asks for it, so no file can lift what another one closed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from bailiwick.config.repository import FOLDER, Repository, committed
from bailiwick.config.service import Config
from bailiwick.config.variables import Environment
from bailiwick.errors import InputInvalid, Place, Problem
from bailiwick.ids import NAME, Json, digest
from bailiwick.lang.fields import Field, Findings, Flag, ListOf, MapOf, Schema, Shape, Table, Text

if TYPE_CHECKING:
    from bailiwick.lang.values import Value

NAMED = "models.yaml"
FILE = f"{FOLDER}/{NAMED}"
REPOSITORY_MAY_NOT = "BW281"
NOT_COMMITTED = "BW288"
NOT_YOURS = "BW289"

Origin = Literal["named", "repository", "person"]


@dataclass(frozen=True, slots=True)
class SkillModels:
    """What a file says of one skill; an empty chain falls to the default one. `line` is 0 where no file names it."""

    chain: tuple[str, ...] = ()
    local_only: bool = False
    line: int = 0


@dataclass(frozen=True, slots=True)
class Models:
    """What the files say together. `path` is the one whose chains count, None where there is none at all.

    `looked` are the places a file could have been at; `notes` are for the person, once.
    """

    verifier: str = ""
    llama_swap_url: str = ""
    default_chain: tuple[str, ...] = ()
    skills: Mapping[str, SkillModels] = field(default_factory=dict)
    local_only: bool = False
    path: Path | None = None
    digest: str = ""
    default_line: int = 0
    looked: tuple[str, ...] = ()
    notes: tuple[Problem, ...] = ()

    @property
    def shown(self) -> str:
        """The file's name, for one line that a person reads."""
        return self.path.name if self.path else NAMED


_MODEL = Text(pattern=r"\S+", expects="the name of a model such as ollama/phi4")
_MODEL_OR_NONE = Text(pattern=r"\S*", expects="the name of a model such as ollama/phi4")
_CHAIN = ListOf(_MODEL)
_URL = Text(pattern=r"(https?://\S+)?", expects="a URL such as http://127.0.0.1:8080")
_LOCAL = "keep everything on this machine or its private network; what one file closes no other opens"
_SKILL = Table(
    "skill",
    (
        Field("chain", _CHAIN, "its models, the cheapest first; default_chain where it is empty"),
        Field("local_only", Flag(), _LOCAL),
    ),
)


class _Entry:
    """What may stand behind a skill's name: its table, one model, or nothing."""

    expects = "the name of a model, or {chain: [MODEL, …]}"

    def accepts(self, data: Json) -> bool:
        return data is None or isinstance(data, str | dict)

    def read(self, value: Value, found: Findings) -> Json:
        if not self.accepts(value.data):
            found.wrong(value, self.expects)
            return None
        shape: Shape = _SKILL if isinstance(value.data, dict) else _MODEL_OR_NONE
        return None if value.data is None else shape.read(value, found)

    def schema(self) -> Schema:
        return {"anyOf": [_MODEL_OR_NONE.schema(), _SKILL.schema(), {"type": "null"}]}


MODELS = Table(
    "models",
    (
        Field("verifier", _MODEL_OR_NONE, "the model that judges what local models answer"),
        Field("llama_swap_url", _URL, "where llama-swap tells which models are loaded; LLAMA_SWAP_URL goes before it"),
        Field("default_chain", _CHAIN, "the models of skills that name none, the cheapest first"),
        Field("default", _MODEL_OR_NONE, "the older form of a default_chain: one model"),
        Field("skills", MapOf(_Entry(), key=NAME.pattern), "per skill its chain, or one model"),
        Field("local_only", Flag(), _LOCAL),
    ),
    removed={
        "routing": "remove the line: chains are walked from their first model on; `bailiwick stats models` says which"
        " models to take out"
    },
)
"""The format of `models.yaml`."""


def models_schema() -> Schema:
    """The JSON Schema of `models.yaml`, for editors."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Bailiwick models",
        **MODELS.schema(),
    }


def read_models(config: Config, *, file: Path | None = None, environment: Environment | None = None) -> Models:
    """What the files say; `file` is the one named on the command line. Without any file, nothing is said.

    Raises `InputInvalid` with every problem of every file at its place.
    """
    found = Findings(strict=True)
    sources = _sources(config, file, environment or Environment(), found)
    read = [_parse(source, found) for source in sources if source.data is not None]
    if found.failed:
        raise InputInvalid(found.problems)
    chosen = next(iter(read), Models())
    swap = config.get("endpoints.llama-swap.url")
    return replace(
        chosen,
        llama_swap_url=str(swap or chosen.llama_swap_url),
        local_only=any(each.local_only for each in read),
        skills=_closed(chosen.skills, read),
        looked=tuple(str(path) for path in _places(config, file)),
        notes=tuple(found.problems),
    )


def _closed(skills: Mapping[str, SkillModels], read: list[Models]) -> dict[str, SkillModels]:
    """The chosen file's skills, each kept local where any file wants that."""
    local = {name for each in read for name, entry in each.skills.items() if entry.local_only}
    out = {name: replace(entry, local_only=name in local) for name, entry in skills.items()}
    return out | {name: SkillModels(local_only=True) for name in sorted(local - set(out))}


@dataclass(frozen=True, slots=True)
class _Source:
    """The bytes of a file; None where there is no such file."""

    path: Path
    origin: Origin
    data: bytes | None


def _places(config: Config, file: Path | None) -> list[Path]:
    """Where a file may be, the first one counts."""
    if named := file or config.get("models_file"):
        return [Path(named)]
    own = [config.repository.root / FILE] if config.repository else []
    return [*own, *_persons(config)]


def _persons(config: Config) -> list[Path]:
    """The person's: beside the skills where those have a directory of their own, else beside the configuration."""
    skills = config.get("skills_dir")
    return [*([Path(skills) / NAMED] if skills else []), config.paths.config / NAMED]


def _sources(config: Config, file: Path | None, environment: Environment, found: Findings) -> Iterator[_Source]:
    """Every file there is, the one that counts first."""
    if named := file or config.get("models_file"):
        yield _Source(Path(named), "named", _bytes(Path(named), found))
    if config.repository is not None and config.repository.has_folder:
        yield _of_repository(config.repository, environment, found)
    person = next((path for path in _persons(config) if os.path.lexists(path)), None)
    if person is not None:
        yield _Source(person, "person", _bytes(person, found))


def _bytes(path: Path, found: Findings) -> bytes | None:
    from bailiwick.lang.source import MAX_BYTES, read_bytes

    try:
        return read_bytes(path, Place(str(path)), MAX_BYTES)
    except InputInvalid as error:
        found.problems += error.problems()
        return None


def _of_repository(repository: Repository, environment: Environment, found: Findings) -> _Source:
    """The repository's file as of its base commit; outside git the file itself, unless somebody else wrote it."""
    path = repository.root / FILE
    if repository.git:
        data = committed(repository.root, FILE, environment)
        here = path.read_bytes() if path.is_file() and not path.is_symlink() else None
        if (here or b"").splitlines() != (data or b"").splitlines():
            hint = "commit it to use it" if here is not None else "the committed one counts"
            what = "the file differs from its last commit; the change is not used"
            found.warn(NOT_COMMITTED, what, Place(str(path)), hint)
        return _Source(path, "repository", data)
    if not path.is_file():
        return _Source(path, "repository", None)
    if path.stat().st_uid not in (0, os.geteuid()):
        what = "the file belongs to another user and is not used"
        found.warn(NOT_YOURS, what, Place(str(path)), "copy it, or take it over")
        return _Source(path, "repository", None)
    return _Source(path, "repository", _bytes(path, found))


def _parse(source: _Source, found: Findings) -> Models:
    """One file, all its problems noted; one that holds nothing but comments says nothing."""
    from bailiwick.lang.source import parse_yaml

    data = source.data or b""
    empty = Models(path=source.path, digest=digest(data))
    if not any(line.strip() and not line.lstrip().startswith(b"#") for line in data.splitlines()):
        return empty
    try:
        root = parse_yaml(data, str(source.path))
    except InputInvalid as error:
        found.problems += error.problems()
        return empty
    before = len(found.problems)
    plain = MODELS.read(root, found)
    if source.origin == "repository" and "llama_swap_url" in root.entries:
        what = "a repository can't set endpoints, and llama_swap_url is one"
        hint = "remove it here; set LLAMA_SWAP_URL, or endpoints.llama-swap.url in your own config.yaml"
        found.error(REPOSITORY_MAY_NOT, what, root.key_place("llama_swap_url"), hint)
    if found.failed_since(before):
        return empty
    older = plain.get("default")
    chain = tuple(plain.get("default_chain") or ((older,) if older else ()))
    return replace(
        empty,
        verifier=plain.get("verifier") or "",
        llama_swap_url=plain.get("llama_swap_url") or "",
        default_chain=chain,
        default_line=root.key_place("default_chain" if plain.get("default_chain") else "default").line if chain else 0,
        skills=_skills(root),
        local_only=bool(plain.get("local_only")),
    )


def _skills(root: Value) -> dict[str, SkillModels]:
    """The skills of a file that was found to be right."""
    listed = root.entries.get("skills")
    out: dict[str, SkillModels] = {}
    for name, part in listed.entries.items() if listed is not None else ():
        given = part.data if isinstance(part.data, dict) else {"chain": [part.data] if part.data else []}
        line = listed.key_place(name).line if listed is not None else 0
        out[name] = SkillModels(tuple(given.get("chain") or ()), bool(given.get("local_only")), line)
    return out
