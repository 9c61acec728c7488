"""Codex, headless: `codex exec --json`, a JSON object per line. Observed with 0.166.0.

All that a turn needs to know of its provider goes onto the command line: `CODEX_HOME` holds the sessions and may be the
operator's, so nothing is written there. Codex passes over a profile that doesn't exist, so we look for it first.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from bailiwick.agents.invoke import SPAWN, Invocation, ProgramBackend, conclude, invoke, write_file
from bailiwick.agents.port import (
    Answered,
    Capabilities,
    Emit,
    Said,
    SessionKnown,
    ToolBegan,
    ToolEnded,
    Trouble,
    Turn,
    TurnIo,
    Used,
)
from bailiwick.agents.profiles import CodexProfile, choose_model, codex_home
from bailiwick.agents.programs import Program
from bailiwick.agents.streams import as_object, at, count_at, excerpt, text_at
from bailiwick.ids import Json

PROGRAM = Program("codex", "@openai/codex", ("vendor/*/bin/codex", "vendor/*/codex/codex"), "0.166.0")
TOKEN = "BAILIWICK_MODEL_TOKEN"  # noqa: S105  the name of a variable
STREAM_IDLE_MS = 300_000

_QUIET = (
    "sandbox_workspace_write.exclude_slash_tmp=true",
    "sandbox_workspace_write.exclude_tmpdir_env_var=true",
    "analytics.enabled=false",
    "check_for_update_on_startup=false",
    "features.plugins=false",
    "features.apps=false",
)
_STATUS = re.compile(r"^unexpected status (\d{3})\b|^exceeded retry limit, last status: (\d{3})\b", re.IGNORECASE)
_ID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_PROFILE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_NO_TOOLS = {"agent_message", "reasoning", "error", "todo_list"}
_SANDBOXES = ("read-only", "workspace-write", "danger-full-access")


class CodexBackend(ProgramBackend):
    """Codex. It names no price; its token counts run over the whole thread."""

    name = "codex"
    program = PROGRAM
    capabilities = Capabilities(resume=True, schema=True, credential="brokered")

    async def turn(self, turn: Turn, io: TurnIo, emit: Emit) -> None:
        choice = choose_model(turn.model, _default_profile(turn))
        trouble = _unusable(turn, choice)
        if trouble:
            emit(Trouble(trouble, type=SPAWN))
            return
        reader = CodexStream(emit)
        try:
            call = Invocation(tuple(_argv(turn, choice, io)), _environment(turn), turn.cwd, turn.prompt)
        except OSError as error:
            emit(Trouble(f"the schema of the answer could not be written down: {error}", type=SPAWN))
            return
        conclude(await invoke(call, io, reader.see), reader.outcome, emit)


def _default_profile(turn: Turn) -> str:
    return text_at(dict(turn.options), "profile") or turn.env.get("CODEX_PROFILE", "")


def _unusable(turn: Turn, choice: CodexProfile) -> str:
    """What codex would silently do otherwise than asked."""
    if turn.session and not _ID.fullmatch(turn.session):
        return f"'{turn.session}' is not an id of a codex thread: codex would begin a new one"
    if not choice.profile:
        return ""
    if not _PROFILE.fullmatch(choice.profile):
        return f"'{choice.profile}' is not the name of a codex profile; models are written <profile>@<slug>, or @<slug>"
    file = codex_home(turn.env) / f"{choice.profile}.config.toml"
    return "" if file.is_file() else f"there is no codex profile '{choice.profile}': {file} does not exist"


def _argv(turn: Turn, choice: CodexProfile, io: TurnIo) -> Iterator[str]:
    options = dict(turn.options)
    sandbox = text_at(options, "sandbox")
    yield from (PROGRAM.path(turn.env, text_at(options, "program")), "exec", "--json", "--skip-git-repo-check")
    if options.get("skip_permissions"):
        yield "--dangerously-bypass-approvals-and-sandbox"
    else:
        yield from ("-s", sandbox if sandbox in _SANDBOXES else "workspace-write")
    if choice.profile:
        yield from ("--profile", choice.profile)
    if choice.slug:
        yield from ("-m", choice.slug)
    for setting in (*_QUIET, *_provider(turn)):
        yield from ("-c", setting)
    if turn.schema is not None and is_strict(turn.schema):
        schema = write_file(turn, io, json.dumps(turn.schema).encode(), prefix="bailiwick-schema-", suffix=".json")
        yield from ("--output-schema", str(schema))
    if turn.session:
        yield from ("resume", turn.session)
    yield "-"


def _provider(turn: Turn) -> Iterator[str]:
    """A provider of our own for this turn: TOML writes strings and numbers as JSON does."""
    if turn.base_url is None:
        return
    idle = count_at(dict(turn.options), "stream_idle_timeout_ms") or STREAM_IDLE_MS
    fields: dict[str, str | int] = {
        "name": "bailiwick",
        "base_url": turn.base_url,
        "wire_api": "responses",
        "request_max_retries": 0,
        "stream_max_retries": 0,
        "stream_idle_timeout_ms": idle,
    }
    if turn.token is not None:
        fields["env_key"] = TOKEN
    yield 'model_provider="bailiwick"'
    yield (
        "model_providers.bailiwick={" + ",".join(f"{name}={json.dumps(value)}" for name, value in fields.items()) + "}"
    )


def _environment(turn: Turn) -> dict[str, str]:
    env = dict(turn.env)
    if turn.token is not None:
        for name in ("OPENAI_API_KEY", "CODEX_API_KEY"):
            env.pop(name, None)
        env[TOKEN if turn.base_url is not None else "CODEX_API_KEY"] = turn.token
    return env


def is_strict(schema: Json) -> bool:
    """Whether the vendor takes a schema: it wants every object closed and every property required."""
    if isinstance(schema, list):
        return all(map(is_strict, schema))
    if not isinstance(schema, dict):
        return True
    properties = schema.get("properties")
    if schema.get("type") == "object" or isinstance(properties, dict):
        names = set(properties) if isinstance(properties, dict) else set()
        required = schema.get("required", [])
        if schema.get("additionalProperties") is not False or not isinstance(required, list) or names != set(required):
            return False
        return all(map(is_strict, properties.values())) if isinstance(properties, dict) else True
    return all(is_strict(value) for value in schema.values())


class CodexStream:
    """Reads the lines of one run. Only `turn.failed` is final: an `error` may be of a request that is tried again."""

    def __init__(self, emit: Emit) -> None:
        self.outcome: Answered | Trouble | None = None
        self._emit = emit
        self._answer = ""
        self._tools: set[str] = set()

    def see(self, event: dict[str, Json]) -> None:
        """Take one line."""
        match event.get("type"):
            case "thread.started" if text_at(event, "thread_id"):
                self._emit(SessionKnown(text_at(event, "thread_id")))
            case "item.started" | "item.completed" as kind:
                self._see_item(at(event, "item"), is_done=kind == "item.completed")
            case "error":
                self._emit(_trouble(text_at(event, "message"), final=False))
            case "turn.completed":
                self._see_usage(at(event, "usage"))
                self.outcome = Answered(self._answer)
            case "turn.failed":
                self.outcome = _trouble(text_at(event, "error", "message"), final=True)
            case _:
                pass

    def _see_item(self, item: Json, *, is_done: bool) -> None:
        kind, name = text_at(item, "type"), text_at(item, "id")
        if kind == "agent_message" and is_done:
            self._answer = text_at(item, "text")
            if self._answer:
                self._emit(Said(self._answer))
        if kind in _NO_TOOLS or not name:
            return
        if name not in self._tools:
            self._tools.add(name)
            self._emit(ToolBegan(name, kind))
        if is_done:
            self._emit(ToolEnded(name, text=excerpt(text_at(item, "aggregated_output"))))

    def _see_usage(self, usage: Json) -> None:
        taken, cached = count_at(usage, "input_tokens"), count_at(usage, "cached_input_tokens")
        self._emit(Used(taken, count_at(usage, "output_tokens"), cached, cumulative=True))


def _trouble(message: str, *, final: bool) -> Trouble:
    """An error from codex's words: the status it names, or the vendor's own answer where codex passes that on whole."""
    status = _STATUS.match(message)
    body = at(as_object(message), "error") if message.startswith("{") else None
    kind = text_at(body, "code") or text_at(body, "type")
    number = int(status[1] or status[2]) if status else None
    return Trouble(text_at(body, "message") or message, number, kind, final=final)
