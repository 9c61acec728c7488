"""The script of the simulated agent: what it does per node, visit and attempt, and what its models cost."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Literal

from bailiwick.errors import InputInvalid
from bailiwick.ids import Json, digest
from bailiwick.lang import codes
from bailiwick.lang.fields import (
    Anything,
    Choice,
    Duration,
    Field,
    Findings,
    Flag,
    ListOf,
    MapOf,
    Number,
    OneOf,
    Table,
    Text,
)
from bailiwick.lang.source import read_yaml
from bailiwick.lang.values import Value

ANY = "*"
"""The node or the model of a script that stands for those without an entry of their own."""
Cheat = Literal["claim", "delete", "exit", "gate", "skip"]
CHEATS = ("claim", "delete", "exit", "gate", "skip")


@dataclass(frozen=True, slots=True)
class Price:
    """What a model takes: seconds before it answers, dollars per million tokens."""

    latency: float = 0.0
    input_usd: float = 0.0
    output_usd: float = 0.0


@dataclass(frozen=True, slots=True)
class RateLimit:
    """A 429; the wait it asks for, in seconds."""

    retry_after: float | None = None


@dataclass(frozen=True, slots=True)
class Cap:
    """A spent allowance: in words alone, or with the seconds until its window resets."""

    text: str = ""
    window: str = ""
    resets_in: float | None = None


@dataclass(frozen=True, slots=True)
class Outage:
    """The endpoint is at fault, until a moment or until a file is there; without either, always."""

    kind: Literal["overloaded", "unreachable"] = "overloaded"
    until: float | None = None
    until_file: str = ""


@dataclass(frozen=True, slots=True)
class Crash:
    """The agent's process ends by itself."""

    code: int = 139
    stderr: str = "simulated crash"


@dataclass(frozen=True, slots=True)
class Words:
    """A text as it is, with why the model stopped; `shape` names one that is made from the answer."""

    text: str = ""
    stop: str = ""
    shape: Literal["", "bad_json", "two_objects"] = ""


Stuck = Literal["hang", "ignore_term", "endless"]
Denial = Literal["auth", "billing"]
End = RateLimit | Cap | Crash | Words | Stuck | Denial


@dataclass(frozen=True, slots=True)
class Behaviour:
    """What the agent does in one attempt; `end` None is an answer with all that is declared, `answer` on top."""

    say: tuple[str, ...] = ()
    edit: Mapping[str, str | None] = field(default_factory=dict)
    run: tuple[tuple[str, ...], ...] = ()
    denied: str = ""
    cheat: Cheat | None = None
    outage: Outage | None = None
    overflow: int = 0
    compacts: bool = True
    answer: Mapping[str, Json] | None = None
    end: End | None = None
    latency: float | None = None
    tokens: Mapping[str, int] = field(default_factory=dict)
    usd: float | None = None


@dataclass(frozen=True, slots=True)
class ScriptedAttempt:
    """A place in a list of attempts: one of several behaviours by weight, for so many attempts."""

    choices: tuple[tuple[float, Behaviour], ...]
    repeat: int = 1


Attempts = tuple[ScriptedAttempt, ...]


@dataclass(frozen=True, slots=True)
class Script:
    """A whole script. The empty one answers everything well."""

    seed: int = 0
    models: Mapping[str, Price] = field(default_factory=dict)
    nodes: Mapping[str, tuple[Attempts, ...]] = field(default_factory=dict)

    def price(self, model: str | None) -> Price:
        """What a model takes; nothing where the script does not say."""
        return self.models.get(model or ANY) or self.models.get(ANY) or Price()

    def behaviour(self, node: str, visit: int, attempt: int, key: str) -> Behaviour:
        """What happens: the same for the same place, whatever ran before. The last visit and attempt repeat."""
        visits = self.nodes.get(node) or self.nodes.get(ANY)
        if not visits:
            return Behaviour()
        steps = visits[min(visit, len(visits)) - 1]
        left = attempt
        for step in steps:
            left -= step.repeat
            if left <= 0:
                break
        return _drawn(step, f"{self.seed}\0{key}\0{node}\0{visit}\0{attempt}")


def _drawn(step: ScriptedAttempt, place: str) -> Behaviour:
    """One of the choices, by weight; the dice are the digest of the place."""
    dice = int(digest(f"dice\0{place}")[:12], 16) / 16**12 * sum(weight for weight, _ in step.choices)
    for weight, behaviour in step.choices:
        dice -= weight
        if dice < 0:
            return behaviour
    return step.choices[-1][1]


_SWITCH = Flag()
_SPOKEN = OneOf((Flag(), Text()))
_RATE = Table("rate_limit", (Field("retry_after", Duration()),))
_CAP = Table("cap", (Field("text", Text()), Field("window", Text()), Field("resets_in", Duration())))
_OUTAGE = Table(
    "outage",
    (
        Field("kind", Choice(("overloaded", "unreachable"))),
        Field("until", Text(), "a time such as 2030-01-31T08:00:00Z"),
        Field("until_file", Text(), "a file of the working directory"),
    ),
)
_CRASH = Table("crash", (Field("code", Number(whole=True)), Field("stderr", Text())))
_TOKENS = Table("tokens", tuple(Field(name, Number(low=0, whole=True)) for name in ("input", "output", "cached")))
_DEEDS = (
    Field("say", OneOf((ListOf(Text()), Text()))),
    Field("edit", MapOf(Anything())),
    Field("run", ListOf(Text(empty=False))),
    Field("denied", Text(empty=False), "the tool that is denied"),
    Field("cheat", Choice(CHEATS)),
    Field("outage", OneOf((Flag(), _OUTAGE))),
    Field("overflow", OneOf((Flag(), Number(low=1, whole=True)))),
    Field("compacts", _SWITCH),
    Field("answer", MapOf(Anything())),
    Field("latency", Duration()),
    Field("tokens", _TOKENS),
    Field("usd", Number(low=0)),
    Field("repeat", Number(low=1, whole=True)),
)
_ENDS = (
    Field("text", Text()),
    Field("bad_json", _SPOKEN),
    Field("two_objects", _SWITCH),
    Field("empty", _SWITCH),
    Field("refusal", _SPOKEN),
    Field("hang", _SWITCH),
    Field("ignore_term", _SWITCH),
    Field("endless", _SWITCH),
    Field("rate_limit", OneOf((Flag(), _RATE))),
    Field("cap", OneOf((Text(empty=False), _CAP))),
    Field("crash", OneOf((Flag(), _CRASH))),
    Field("auth", _SWITCH),
    Field("billing", _SWITCH),
)
_CHOICE = Table("choice", (*_DEEDS[:-1], *_ENDS, Field("weight", Number(low=0))))
_BEHAVIOUR = Table("behaviour", (*_DEEDS, *_ENDS, Field("choose", ListOf(_CHOICE, least=1))))
_ATTEMPTS = ListOf(_BEHAVIOUR, least=1)
_MODEL = Table(
    "model", (Field("latency", Duration()), Field("input_usd", Number(low=0)), Field("output_usd", Number(low=0)))
)
SCRIPT = Table(
    "script",
    (
        Field("seed", Number(low=0, whole=True)),
        Field("models", MapOf(_MODEL)),
        Field("nodes", MapOf(ListOf(OneOf((_BEHAVIOUR, _ATTEMPTS)), least=1))),
    ),
)
"""The format of a script; `docs/how-to/simulate.md` explains it."""


def read_script(path: Path) -> Script:
    """Read a script; raises `InputInvalid` with every problem at its place."""
    root = read_yaml(path)
    found = Findings(strict=True)
    plain = SCRIPT.read(root, found)
    nodes = root.entries.get("nodes")
    for listed in nodes.entries.values() if nodes is not None else ():
        _check_list(listed, found)
    if found.failed:
        raise InputInvalid(found.problems)
    return Script(
        seed=int(plain.get("seed", 0)),
        models={name: Price(**given) for name, given in plain.get("models", {}).items()},
        nodes={name: _visits(listed) for name, listed in plain.get("nodes", {}).items()},
    )


def _check_list(listed: Value, found: Findings) -> None:
    """What the table can't say: one ending at most, paths that stay inside, lines that can be split, times."""
    kinds = {isinstance(item.data, list) for item in listed.items}
    if len(kinds) > 1:
        hint = "give each visit a list of attempts, or one list of attempts for every visit"
        found.error(codes.WRONG_TYPE, "attempts and lists of attempts are mixed", listed.place, hint)
    for item in listed.items:
        for behaviour in item.items if isinstance(item.data, list) else [item]:
            chosen = behaviour.entries.get("choose")
            for each in [behaviour, *(chosen.items if chosen is not None else ())]:
                _check_behaviour(each, found)


def _check_behaviour(value: Value, found: Findings) -> None:
    known = {end.name for end in _ENDS}
    ends = [name for name, part in value.entries.items() if name in known and part.data]
    if len(ends) > 1:
        what = f"a behaviour ends in one way, not in {len(ends)}: {', '.join(ends)}"
        found.error(codes.WRONG_TYPE, what, value.key_place(ends[1]), "make them attempts of their own")
    edits = value.entries.get("edit")
    if edits is not None:
        _check_edits(edits, found)
    lines = value.entries.get("run")
    for line in lines.items if lines is not None else ():
        if isinstance(line.data, str) and not _words(line.data):
            found.wrong(line, "a command line with closed quotes")
    outage = value.entries.get("outage")
    until = outage.entries.get("until") if outage is not None else None
    if until is not None and isinstance(until.data, str) and _moment(until.data) is None:
        found.wrong(until, "a time such as 2030-01-31T08:00:00Z")


def _check_edits(edits: Value, found: Findings) -> None:
    for name, content in edits.entries.items():
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or not path.parts:
            what = f"{name!r} leaves the working directory"
            found.error(codes.OUTSIDE, what, edits.key_place(name), "give a relative path")
        if content.data is not None and not isinstance(content.data, str):
            found.wrong(content, "the text of a file, or null to remove it")


def _words(line: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(line))
    except ValueError:
        return ()


def _moment(text: str) -> float | None:
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    return at.timestamp() if at.tzinfo is not None else None


def _visits(listed: Sequence[Json]) -> tuple[Attempts, ...]:
    if isinstance(listed[0], list):
        return tuple(tuple(_step(given) for given in attempts) for attempts in listed)
    return (tuple(_step(given) for given in listed),)


def _step(given: dict[str, Json]) -> ScriptedAttempt:
    repeat = int(given.get("repeat", 1))
    chosen = given.get("choose")
    if not chosen:
        return ScriptedAttempt(((1.0, _behaviour(given)),), repeat)
    shared = {name: value for name, value in given.items() if name not in ("choose", "repeat")}
    return ScriptedAttempt(
        tuple((float(part.get("weight", 1)), _behaviour({**shared, **part})) for part in chosen), repeat
    )


def _behaviour(given: dict[str, Json]) -> Behaviour:
    say = given.get("say", ())
    outage = given.get("outage")
    return Behaviour(
        say=(say,) if isinstance(say, str) else tuple(say),
        edit=given.get("edit", {}),
        run=tuple(_words(line) for line in given.get("run", ())),
        denied=given.get("denied", ""),
        cheat=given.get("cheat"),
        outage=_outage(outage) if outage not in (None, False) else None,
        overflow=int(given.get("overflow", 0)),
        compacts=given.get("compacts", True),
        answer=given.get("answer"),
        end=_end(given),
        latency=given.get("latency"),
        tokens=given.get("tokens", {}),
        usd=given.get("usd"),
    )


def _outage(given: Json) -> Outage:
    if not isinstance(given, dict):
        return Outage()
    until = given.get("until")
    return Outage(given.get("kind", "overloaded"), _moment(until) if until else None, given.get("until_file", ""))


def _end(given: dict[str, Json]) -> End | None:
    for name in ("hang", "ignore_term", "endless", "auth", "billing"):
        if given.get(name):
            return name
    for name, kind in (("rate_limit", RateLimit), ("crash", Crash)):
        if name in given and given[name] is not False:
            made: RateLimit | Crash = kind(**given[name]) if isinstance(given[name], dict) else kind()
            return made
    if "cap" in given:
        return Cap(**given["cap"]) if isinstance(given["cap"], dict) else Cap(given["cap"])
    return _spoken(given)


def _spoken(given: dict[str, Json]) -> Words | None:
    if "text" in given:
        return Words(given["text"])
    if given.get("empty"):
        return Words()
    if said := given.get("refusal"):
        return Words(said if isinstance(said, str) else "I can't help with that.", stop="refusal")
    if said := given.get("bad_json"):
        return Words(said) if isinstance(said, str) else Words(shape="bad_json")
    return Words(shape="two_objects") if given.get("two_objects") else None
