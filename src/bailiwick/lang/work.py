"""The kinds of node that do work: `agent` and `script`, and those that installed packages add."""

from __future__ import annotations

from typing import Any

from bailiwick.engine.graph import Node
from bailiwick.lang import codes
from bailiwick.lang.draft import (
    ACCEPT,
    ARGS,
    FILE,
    IDENTITY,
    NEXT,
    ON_ERROR,
    ON_EXHAUSTED,
    ON_UNKNOWN,
    OUTPUTS,
    RETRY,
    TIMEOUT,
    Draft,
    NodeSyntax,
    texts,
    work,
)
from bailiwick.lang.fields import Anything, Choice, Field, Findings, ListOf, MapOf, Number, Scalar, Table, Text
from bailiwick.lang.values import Value

GROUP = "bailiwick.nodes"
"""The entry point group of further kinds: each an object whose `fields` is a field table or a tuple of fields."""

_NAME = Text(empty=False, expects="a name")
SHARED = (*IDENTITY, NEXT, ON_ERROR, OUTPUTS, TIMEOUT, ON_UNKNOWN)
"""The fields of every kind of the open set."""
_SHARED_NAMES = frozenset({f.name for f in SHARED} | {"retry", "on_exhausted", "accept_defaulted"})

AGENT = Table(
    "agent node",
    (
        *SHARED,
        Field("prompt", FILE, "the prompt's file, a template"),
        Field("prompt_text", Text(empty=False), "the prompt itself, a template"),
        Field("args", MapOf(Anything()), "templates by name, rendered first and visible to the prompt"),
        Field("model", _NAME, "the model, by the backend's name for it"),
        Field("models", ListOf(_NAME, least=1), "a chain of models, the cheapest first"),
        Field("power", Choice(("high", "medium", "low")), "the tier of model, where none is named"),
        Field("backend", _NAME, "the agent backend"),
        Field("skill", _NAME, "the skill whose chain and verifier are used"),
        Field("cwd", Text(empty=False), "the working directory, a template; the run's workspace if not given"),
        Field("environment", Text(), "the prepared environment of the worktree it works in, a template"),
        Field(
            "without_json",
            MapOf(Anything()),
            "the outputs where a `command` backend ends well and answers with no JSON at all: the files are the answer",
        ),
        Field("max_usd", Number(low=0), "the most one visit may cost"),
        Field("on_cap", Choice(("wait", "next_model")), "what to do at a usage cap"),
        ON_EXHAUSTED,
        ACCEPT,
    ),
)
SCRIPT = Table(
    "script node",
    (
        *SHARED,
        Field("script", FILE, "the script's file", required=True),
        Field("args", ARGS, "its arguments, templates; a mapping is taken in its order"),
        Field("env", MapOf(Scalar(), key=r"[A-Za-z_][A-Za-z0-9_]*"), "more environment, templates"),
        Field("cwd", Text(empty=False), "the working directory, a template; the workflow directory if not given"),
        Field("retry", RETRY, "how a failure is tried again"),
    ),
)


def compile_agent(draft: Draft) -> Node | None:
    """An agent node; exactly one of `prompt` and `prompt_text`, at most one of `model` and `models`."""
    fields = draft.fields
    if "skill" not in fields or "prompt" in fields or "prompt_text" in fields:
        draft.exactly_one("prompt", "prompt_text")
    if "model" in fields and "models" in fields:
        draft.wrong("only one of `model` or `models` can be given", "put the model first in `models`", "model")
    _check_without_json(draft)
    return work(draft, _own(draft))


def _check_without_json(draft: Draft) -> None:
    """It stands for the whole answer: each declared output, and nothing else."""
    given = draft.fields.get("without_json")
    keys = [output.key for output in draft.outputs()]
    if given is not None and set(given) != set(keys):
        hint = f"give exactly these keys: {', '.join(keys)}" if keys else "remove it, or declare `outputs`"
        draft.wrong("`without_json` has to hold every declared output, and nothing else", hint, "without_json")


def compile_script(draft: Draft) -> Node | None:
    """A script node; its arguments become a list of texts."""
    own = _own(draft)
    own["args"] = texts(draft.fields.get("args"))
    return work(draft, own)


def _own(draft: Draft) -> dict[str, Any]:
    return {name: data for name, data in draft.fields.items() if name not in _SHARED_NAMES}


def compile_own(draft: Draft) -> Node | None:
    """A node of the open set whose own fields are taken as they are."""
    return work(draft, _own(draft))


KINDS = (NodeSyntax("agent", AGENT, compile_agent), NodeSyntax("script", SCRIPT, compile_script))


def added_kind(name: str, value: Value, found: Findings) -> NodeSyntax | None:
    """The kind an installed package provides under this name; a package that can't be loaded is an error at `value`."""
    from importlib.metadata import entry_points

    for entry in entry_points(group=GROUP, name=name):
        try:
            fields = entry.load().fields
        except Exception as error:  # noqa: BLE001 a foreign package raises what it likes; it stops here
            what = f"the node type {name!r} of {entry.value} can't be loaded: {error}"
            found.error(codes.UNKNOWN_KIND, what, value.place, "repair or remove the package that provides it")
            return None
        own = tuple(fields.fields if isinstance(fields, Table) else fields)
        taken = {field.name for field in own}
        shared = (*SHARED, Field("retry", RETRY), ON_EXHAUSTED, ACCEPT)
        table = Table(f"{name} node", (*(f for f in shared if f.name not in taken), *own))
        return NodeSyntax(name, table, compile_own)
    return None


def added_names() -> list[str]:
    """The names of the kinds that installed packages provide."""
    from importlib.metadata import entry_points

    return sorted({entry.name for entry in entry_points(group=GROUP)})
