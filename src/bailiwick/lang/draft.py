"""A node between the file and the graph, and the fields that many kinds share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bailiwick.engine.graph import Display, Node, Output, Retry, Work
from bailiwick.ids import NODE_ID, Json
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
    Scalar,
    Table,
    Text,
)
from bailiwick.lang.values import Value

ID = Text(pattern=NODE_ID.pattern, expects="an id: a letter or _, then letters, digits, _ or -, at most 64")
TARGET = Text(empty=False, expects="the id of a node")
FILE = Text(empty=False, expects="a file of the workflow directory")
KEY = Text(empty=False, expects="the name of a context key")
ARGS = OneOf((ListOf(Scalar()), MapOf(Scalar())))

OUTPUT = Table(
    "output",
    (
        Field("key", KEY, "the key of the answer, and of the context", required=True),
        Field("schema", OneOf((MapOf(Anything()), Flag())), "a JSON Schema that the value has to satisfy"),
        Field("default", Anything(), "the value that stands in when the node can't give one"),
    ),
)
RETRY = Table(
    "retry",
    (
        Field("max", Number(low=1, high=1000, whole=True), "how often a failed attempt is tried again", required=True),
        Field("backoff", Duration(), "the first pause, doubled each time"),
    ),
)

MODES = ("hidden", "quiet")
"""What `display` may say instead of a title."""
DISPLAY = Table(
    "display",
    (
        Field("title", Text(empty=False), "what people see as its name, a template; `node.visit` counts"),
        Field("text", Text(empty=False), "what is said when it was done, a template; empty: nothing is shown"),
    ),
)

IDENTITY = (
    Field("id", ID, "the node's name", required=True),
    Field("type", Text(empty=False), "the kind of node", required=True),
    Field("description", Text(), "what the node is for"),
    Field(
        "display",
        OneOf((Text(empty=False), DISPLAY)),
        "how people see the step: `hidden`, `quiet` (only under way or gone wrong), a title, or title and text",
    ),
    Field("max_visits", Number(low=1, high=1_000_000, whole=True), "how often it may be entered; 1000 if not given"),
)
NEXT = Field("next", TARGET, "the node that follows")
ON_ERROR = Field("on_error", TARGET, "the node that follows a failure; its details are in `error`")
OUTPUTS = Field("outputs", ListOf(OUTPUT), "the keys the node gives to the context")
TIMEOUT = Field("timeout", Duration(low=0.001), "the longest time it may take")
ON_UNKNOWN = Field(
    "on_unknown",
    Choice(("again", "ask", "fail")),
    "what to do when a crash left it unknown whether the work was done",
)
ACCEPT = Field("accept_defaulted", Flag(), "a default used here does not hold up proposals and approvals")
ON_EXHAUSTED = Field("on_exhausted", Choice(("default", "ask", "fail")), "what to do when every attempt has failed")


@dataclass(frozen=True, slots=True)
class Draft:
    """A node's checked fields, and where to note what only its compiler can see."""

    id: str
    value: Value
    fields: dict[str, Json]
    found: Findings

    def step(self) -> dict[str, Any]:
        """What every compiled node takes."""
        given: dict[str, Any] = {
            name: self.fields[name] for name in ("next", "max_visits", "on_error") if name in self.fields
        }
        display = self._display()
        return {"id": self.id, **given, **({"display": display} if display is not None else {})}

    def _display(self) -> Display | None:
        """How the step is to be seen; a title that is nearly a mode is probably a misspelt one."""
        given = self.fields.get("display")
        if isinstance(given, dict):
            return Display(title=given.get("title", ""), text=given.get("text", ""))
        if not isinstance(given, str):
            return None
        if given in MODES:
            return Display(given)
        near = [mode for mode in MODES if _close(given.lower(), mode)]
        if near:
            what = f"node {self.id!r}: the display {given!r} is taken as a title"
            self.found.warn(codes.UNKNOWN_FIELD, what, self.value.at("display"), f"write `{near[0]}` if that is meant")
        return Display(title=given)

    def outputs(self) -> tuple[Output, ...]:
        """The declared outputs; a written null counts as a declared default."""
        return tuple(
            Output(out["key"], out.get("schema"), out.get("default"), "default" in out)
            for out in self.fields.get("outputs", ())
        )

    def wrong(self, what: str, hint: str, *path: str) -> None:
        """Note an error in a field of this node."""
        self.found.error(codes.WRONG_TYPE, f"node {self.id!r}: {what}", self.value.at(*path), hint)

    def exactly_one(self, *names: str) -> bool:
        """Whether one and only one of some fields is given; notes an error if not."""
        given = [name for name in names if name in self.fields]
        if len(given) == 1:
            return True
        listed = " or ".join(f"`{name}`" for name in names)
        if given:
            self.wrong(f"only one of {listed} can be given", f"remove `{given[-1]}`", given[-1])
        else:
            what = f"node {self.id!r}: {listed} is missing"
            self.found.error(codes.MISSING_FIELD, what, self.value.place, f"add one of {listed}")
        return False


def _close(text: str, word: str) -> bool:
    from difflib import SequenceMatcher

    return SequenceMatcher(None, text, word).ratio() > 0.75


Compile = Callable[[Draft], Node | None]


@dataclass(frozen=True, slots=True)
class NodeSyntax:
    """A kind of node: its fields, how it is compiled, whether it has to lead to a next node."""

    name: str
    table: Table
    compile: Compile
    leads: bool = True


def texts(args: Json) -> list[str]:
    """Arguments in their order, from a list or a mapping."""
    return list(args.values()) if isinstance(args, dict) else list(args or ())


def work(draft: Draft, own: dict[str, Json]) -> Work:
    """A node of the open set with the shared fields in their places and `own` as its spec."""
    fields = draft.fields
    retry = fields.get("retry")
    shared = {
        name: fields[name] for name in ("timeout", "on_unknown", "on_exhausted", "accept_defaulted") if name in fields
    }
    return Work(
        type=fields["type"],
        spec=own,
        outputs=draft.outputs(),
        retry=Retry(retry["max"], retry.get("backoff", 1.0)) if retry else None,
        **shared,
        **draft.step(),
    )
