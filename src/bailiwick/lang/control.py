"""The kinds of node that steer: a closed set, which the engine knows by heart."""

from __future__ import annotations

from typing import Any

from bailiwick.engine.graph import Ask, Branch, Call, Condition, End, Map, Node, Parallel, Poll, Set, Wait
from bailiwick.ids import NODE_ID, Json
from bailiwick.lang import codes
from bailiwick.lang.draft import (
    ACCEPT,
    ARGS,
    FILE,
    IDENTITY,
    KEY,
    NEXT,
    ON_ERROR,
    OUTPUTS,
    TARGET,
    Draft,
    NodeSyntax,
    texts,
)
from bailiwick.lang.durations import seconds_of
from bailiwick.lang.fields import (
    Anything,
    Choice,
    Duration,
    Field,
    Flag,
    ListOf,
    MapOf,
    Number,
    OneOf,
    Scalar,
    Table,
    Text,
)
from bailiwick.lang.reading import is_plain

_PATH = Text(pattern=r"[^\s.{}]+(\.[^\s.{}]+)*", expects="a dot path into the context, such as result.status")
_VARIABLE = Text(pattern=r"[A-Za-z_][A-Za-z0-9_]{0,63}", expects="the name of a variable")
_WIDTH = Field("max", Number(low=1, high=10_000, whole=True), "how many run at once; 4 if not given")
_JOIN = Field("join", TARGET, "the node where the run goes on when all are over; `next` means the same")
_FAIL_FAST = Field("fail_fast", Flag(), "the first failure ends the others and fails the node")
_FORK = (*IDENTITY, NEXT, ON_ERROR, _JOIN, _WIDTH, _FAIL_FAST)

CONDITION = Table(
    "condition",
    (
        Field("op", Choice(("==", "!=", "<", ">", "<=", ">=")), "how to compare", required=True),
        Field("value", Scalar(), "what to compare with", required=True),
        Field("next", TARGET, "the node that follows if it holds", required=True),
    ),
)
POLL = Table(
    "poll",
    (
        Field("script", FILE, "exit 0 means yes, exit 1 means not yet", required=True),
        Field("every", Duration(low=0.1), "the pause between two looks; a minute if not given"),
        Field("timeout", Duration(low=0.001), "after this time the node fails"),
        Field("args", ARGS, "its arguments, templates"),
    ),
)
BRANCH = Table(
    "branch node",
    (
        *IDENTITY,
        Field("path", _PATH, "the value that decides", required=True),
        Field("cases", MapOf(TARGET), "the next node by the value's text"),
        Field("conditions", ListOf(CONDITION), "comparisons, tried in order after the cases"),
        Field("default", TARGET, "the next node where nothing matches or the path leads nowhere"),
    ),
)
SET = Table("set node", (*IDENTITY, NEXT, Field("values", MapOf(Anything()), "templates by key", required=True)))
WAIT = Table(
    "wait node",
    (
        *IDENTITY,
        NEXT,
        ON_ERROR,
        OUTPUTS,
        Field("for", OneOf((Duration(), Text(empty=False))), "how long: a duration, or a template that gives one"),
        Field("until", Text(empty=False), "a time (RFC 3339) or a cron expression, or a template that gives one"),
        Field("poll", POLL, "a script that says when"),
    ),
)
ASK = Table(
    "ask node",
    (
        *IDENTITY,
        NEXT,
        ON_ERROR,
        ACCEPT,
        Field("question", Text(empty=False), "what to ask, a template", required=True),
        Field("choices", ListOf(Scalar(), least=1), "the possible answers; free text if not given"),
        Field("timeout", Duration(low=0.001), "how long to wait for an answer"),
        Field("default", Anything(), "the answer where none was given in time"),
    ),
)
PARALLEL = Table(
    "parallel node",
    (
        *_FORK,
        Field("branches", MapOf(TARGET, key=NODE_ID.pattern, least=1), "the first node of each branch", required=True),
        Field("export", ListOf(KEY), "keys that branches write and the run gets"),
    ),
)
MAP = Table(
    "map node",
    (
        *_FORK,
        Field("over", _PATH, "the list, by its dot path", required=True),
        Field("as", _VARIABLE, "the name of the item; `item` if not given"),
        Field("body", TARGET, "the first node of each item's chain", required=True),
    ),
)
CALL = Table(
    "call node",
    (
        *IDENTITY,
        NEXT,
        ON_ERROR,
        Field("workflow", Text(empty=False), "a directory in this one, or the name of a workflow", required=True),
        Field("params", MapOf(Anything()), "templates by name, given to the called workflow"),
    ),
)
TERMINAL = Table("terminal node", IDENTITY)
FAIL = Table(
    "fail node",
    (
        *IDENTITY,
        Field("reason", Text(), "why, a template"),
        Field("handoff", Flag(), "the work is given to a person: exit code 6 instead of 1"),
    ),
)


def compile_branch(draft: Draft) -> Node | None:
    """A branch with at least one way out."""
    fields = draft.fields
    conditions = tuple(Condition(c["op"], c["value"], c["next"]) for c in fields.get("conditions", ()))
    cases, default = fields.get("cases", {}), fields.get("default")
    if not cases and not conditions and not default:
        what = f"node {draft.id!r} has no way out"
        draft.found.error(codes.NO_NEXT, what, draft.value.place, "add `cases`, `conditions` or `default`")
        return None
    return Branch(path=fields["path"], cases=cases, conditions=conditions, default=default, **draft.step())


def compile_set(draft: Draft) -> Node | None:
    """A set node."""
    return Set(values=draft.fields["values"], **draft.step())


def compile_end(draft: Draft) -> Node | None:
    """`terminal` or `fail`."""
    failed = draft.fields["type"] == "fail"
    handoff = bool(draft.fields.get("handoff"))
    return End(failed=failed, reason=draft.fields.get("reason", ""), handoff=handoff, **draft.step())


def compile_wait(draft: Draft) -> Node | None:
    """A wait for exactly one thing; a literal duration is kept as seconds."""
    if not draft.exactly_one("for", "until", "poll"):
        return None
    fields, own = draft.fields, dict[str, Any]()
    if "for" in fields:
        own["seconds"] = _seconds(draft, fields["for"])
    elif "until" in fields:
        own["until"] = fields["until"]
        _check_time(draft, fields["until"])
    else:
        poll = fields["poll"]
        own["poll"] = Poll(
            script=poll["script"],
            every=poll.get("every", 60.0),
            args=tuple(texts(poll.get("args"))),
            timeout=poll.get("timeout"),
        )
    if "outputs" in fields and "poll" not in fields:
        draft.wrong("only a `poll` gives outputs", "remove `outputs`", "outputs")
    return Wait(outputs=draft.outputs(), **own, **draft.step())


def _seconds(draft: Draft, given: Json) -> str:
    seconds = seconds_of(given)
    if seconds is not None:
        return str(int(seconds)) if seconds.is_integer() else str(seconds)
    if is_plain(str(given)):
        draft.wrong(f"{given!r} is not a duration", "give a duration such as 90s, 1h30m or 2d", "for")
    return str(given)


def _check_time(draft: Draft, text: str) -> None:
    """A literal has to be a time with a zone or a cron expression; a template is looked at when it is rendered."""
    from datetime import UTC, datetime

    if not is_plain(text):
        return
    try:
        datetime.fromisoformat(text.strip())
    except ValueError:
        from cronsim import CronSim, CronSimError

        try:
            CronSim(text, datetime(2000, 1, 1, tzinfo=UTC))
        except CronSimError:
            hint = "give a time such as 2030-01-31T08:00:00Z, or a cron expression such as `0 8 * * 1-5`"
            draft.wrong(f"{text!r} is neither a time nor a cron expression", hint, "until")


def compile_ask(draft: Draft) -> Node | None:
    """An ask node; a default has to be one of the choices."""
    fields = draft.fields
    choices = tuple(fields.get("choices", ()))
    own = {name: fields[name] for name in ("question", "timeout", "default", "accept_defaulted") if name in fields}
    if choices and own.get("default") is not None and own["default"] not in choices:
        draft.wrong(f"the default {own['default']!r} is not a choice", f"choose from {', '.join(choices)}", "default")
    return Ask(choices=choices, declared="default" in fields, **own, **draft.step())


def compile_parallel(draft: Draft) -> Node | None:
    """A parallel node with its join."""
    join = _join(draft)
    own = _fork(draft)
    export = tuple(draft.fields.get("export", ()))
    return Parallel(branches=draft.fields["branches"], export=export, join=join, **own) if join else None


def compile_map(draft: Draft) -> Node | None:
    """A map node with its join."""
    join = _join(draft)
    fields = draft.fields
    own = {**_fork(draft), "over": fields["over"], "body": fields["body"]}
    return Map(as_=fields.get("as", "item"), join=join, **own) if join else None


def _fork(draft: Draft) -> dict[str, Any]:
    fields = draft.fields
    own: dict[str, Any] = {name: fields[name] for name in ("max", "fail_fast") if name in fields}
    return {**draft.step(), **own, "next": None}


def _join(draft: Draft) -> str:
    fields = draft.fields
    join, following = fields.get("join"), fields.get("next")
    if join and following and join != following:
        what = f"node {draft.id!r}: `join` is {join!r} but `next` is {following!r}"
        draft.found.error(codes.JOIN, what, draft.value.at("next"), "both mean the same: remove one of them")
        return ""
    if not join and not following:
        what = f"node {draft.id!r} does not say where to go on"
        draft.found.error(codes.NO_NEXT, what, draft.value.place, "add `join: <node>`")
    return str(join or following or "")


def compile_call(draft: Draft) -> Node | None:
    """A call node."""
    return Call(workflow=draft.fields["workflow"], params=draft.fields.get("params", {}), **draft.step())


KINDS = (
    NodeSyntax("branch", BRANCH, compile_branch, leads=False),
    NodeSyntax("set", SET, compile_set),
    NodeSyntax("wait", WAIT, compile_wait),
    NodeSyntax("ask", ASK, compile_ask),
    NodeSyntax("parallel", PARALLEL, compile_parallel, leads=False),
    NodeSyntax("map", MAP, compile_map, leads=False),
    NodeSyntax("call", CALL, compile_call),
    NodeSyntax("terminal", TERMINAL, compile_end, leads=False),
    NodeSyntax("fail", FAIL, compile_end, leads=False),
)
