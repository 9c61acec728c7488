"""Claude Code, headless: `claude -p` with a JSON object per line.

Observed with 2.1.325 and 2.1.197. The older one knows fewer fields and calls a failed turn completed, so an error is
told by `is_error`, the status and the words, never by `subtype` alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from bailiwick.agents.invoke import Invocation, ProgramBackend, conclude, ended, invoke, last_words, session_id
from bailiwick.agents.port import (
    Answered,
    Capabilities,
    Compacted,
    Emit,
    LimitSeen,
    Said,
    SessionKnown,
    ToolBegan,
    ToolEnded,
    Trouble,
    Turn,
    TurnIo,
    Used,
)
from bailiwick.agents.programs import Program
from bailiwick.agents.streams import at, count_at, excerpt, number_at, objects_at, text_at, total_of
from bailiwick.ids import Json
from bailiwick.processes.command import Exit

PROGRAM = Program("claude", "@anthropic-ai/claude-code", ("claude",), "2.1.325")
LONGEST_ARGUMENT = 120_000
"""Bytes that fit one argument; a bigger schema is left to the check of the answer."""

_CREDENTIALS = {
    "api_key": "ANTHROPIC_API_KEY",
    "auth_token": "ANTHROPIC_AUTH_TOKEN",
    "oauth": "CLAUDE_CODE_OAUTH_TOKEN",
}
_QUIET = {
    "CLAUDE_CODE_MAX_RETRIES": "0",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_AUTOUPDATER": "1",
}
_WINDOWS = {"seven_day": "week"}
_INPUTS = ("inputTokens", "cacheReadInputTokens", "cacheCreationInputTokens")
_PLAIN_ENDS = {"", "completed", "api_error"}
_IN_USE = re.compile(r"^Error: Session ID (\S+) is already in use\.", re.MULTILINE)


class ClaudeBackend(ProgramBackend):
    """Claude Code. A session begins under an id made from the turn, so that a crash can't lose it."""

    name = "claude"
    program = PROGRAM
    capabilities = Capabilities(resume=True, compact=True, schema=True, credential="brokered", default_model="sonnet")

    async def turn(self, turn: Turn, io: TurnIo, emit: Emit) -> None:
        reader = ClaudeStream(emit)
        end = await invoke(self._invocation(turn, turn.prompt, _session_flags(turn)), io, reader.see)
        if isinstance(end, Exit) and reader.outcome is None:
            in_use = _IN_USE.search(last_words(end))
            if in_use:
                emit(SessionKnown(in_use[1]))
                reader.outcome = Trouble(in_use[0], type="session_in_use")
        conclude(end, reader.outcome, emit)

    async def compact(self, turn: Turn, io: TurnIo, emit: Emit) -> None:
        if not turn.session:
            emit(Compacted(False, "there is no session to make shorter"))
            return
        reader = ClaudeStream(emit)
        end = await invoke(self._invocation(turn, "/compact", ("--resume", turn.session)), io, reader.see)
        if isinstance(end, Trouble):
            emit(Compacted(False, end.message))
            return
        if end.why != "exited":
            emit(ended(end))
        emit(reader.compacted or Compacted(False, reader.words or last_words(end) or "nothing was compacted"))

    def _invocation(self, turn: Turn, prompt: str, session: tuple[str, ...]) -> Invocation:
        argv = (
            PROGRAM.path(turn.env, text_at(dict(turn.options), "program")),
            "-p",
            "--output-format",
            "stream-json",
            "--verbose",
            *session,
            "--model",
            turn.model or str(self.capabilities.default_model),
            *_limits(turn),
            *_permissions(dict(turn.options)),
        )
        return Invocation(argv, _environment(turn), turn.cwd, prompt)


def _session_flags(turn: Turn) -> tuple[str, ...]:
    return ("--resume", turn.session) if turn.session else ("--session-id", session_id(turn))


def _limits(turn: Turn) -> Iterator[str]:
    if turn.max_usd is not None:
        yield from ("--max-budget-usd", f"{turn.max_usd:.6f}".rstrip("0").rstrip("."))
    if turn.schema is not None:
        schema = json.dumps(turn.schema)
        if len(schema) <= LONGEST_ARGUMENT:
            yield from ("--json-schema", schema)


def _permissions(options: dict[str, Json]) -> Iterator[str]:
    """What the agent may do. A repository's settings run commands (hooks, MCP servers): left out unless asked for."""
    if not options.get("repository_settings"):
        yield from ("--setting-sources", "user", "--strict-mcp-config")
    if options.get("skip_permissions"):
        yield "--dangerously-skip-permissions"
    if text_at(options, "permission_mode"):
        yield from ("--permission-mode", text_at(options, "permission_mode"))
    for name, flag in (("allowed_tools", "--allowedTools"), ("disallowed_tools", "--disallowedTools")):
        tools = options.get(name)
        if isinstance(tools, list) and tools:
            yield from (flag, *map(str, tools))


def _environment(turn: Turn) -> dict[str, str]:
    env = {**turn.env, **_QUIET}
    if turn.base_url is not None:
        env["ANTHROPIC_BASE_URL"] = turn.base_url
    if turn.token is not None:
        for name in _CREDENTIALS.values():
            env.pop(name, None)
        env[_CREDENTIALS.get(text_at(dict(turn.options), "auth"), "ANTHROPIC_API_KEY")] = turn.token
    if turn.options.get("sandboxed"):
        env["IS_SANDBOX"] = "1"
    return env


class ClaudeStream:
    """Reads the lines of one run; `outcome` is what its result line says."""

    def __init__(self, emit: Emit) -> None:
        self.outcome: Answered | Trouble | None = None
        self.compacted: Compacted | None = None
        self.words = ""
        self._emit = emit
        self._session = ""
        self._tools: set[str] = set()
        self._denied: set[str] = set()
        self._error = ""
        self._resets_at: float | None = None

    def see(self, event: dict[str, Json]) -> None:
        """Take one line."""
        self._note_session(text_at(event, "session_id"))
        match event.get("type"):
            case "system":
                self._see_system(event)
            case "assistant":
                self._see_assistant(event)
            case "user":
                self._see_user(event)
            case "rate_limit_event":
                self._see_limit(at(event, "rate_limit_info"))
            case "result":
                self._see_result(event)
            case _:
                pass

    def _note_session(self, session: str) -> None:
        if session and session != self._session:
            self._session = session
            self._emit(SessionKnown(session))

    def _see_system(self, event: dict[str, Json]) -> None:
        match event.get("subtype"):
            case "api_retry":
                status, kind = count_at(event, "error_status"), text_at(event, "error")
                self._emit(Trouble(f"the request is tried again after {kind or 'an error'}", status, kind, final=False))
            case "permission_denied":
                self._end_tool(text_at(event, "tool_use_id"), text_at(event, "message"), denied=True)
            case "compact_boundary":
                self.compacted = Compacted(True)
            case "status" if event.get("compact_result") == "failed":
                self.compacted = Compacted(False, text_at(event, "compact_error"))
            case _:
                pass

    def _see_assistant(self, event: dict[str, Json]) -> None:
        self._error = text_at(event, "error") or self._error
        resets_at = number_at(event, "api_error_params", "rate_limit_info", "resetsAt")
        self._resets_at = resets_at if resets_at is not None else self._resets_at
        is_own = not event.get("error") and not event.get("parent_tool_use_id")
        for block in objects_at(event, "message", "content"):
            match block.get("type"):
                case "text" if is_own and text_at(block, "text"):
                    self._emit(Said(text_at(block, "text")))
                case "tool_use" if text_at(block, "id"):
                    self._tools.add(text_at(block, "id"))
                    self._emit(ToolBegan(text_at(block, "id"), text_at(block, "name")))
                case _:
                    pass

    def _see_user(self, event: dict[str, Json]) -> None:
        for block in objects_at(event, "message", "content"):
            if block.get("type") == "tool_result":
                self._end_tool(text_at(block, "tool_use_id"), _words(block.get("content")))

    def _end_tool(self, tool: str, text: str, *, denied: bool = False) -> None:
        """Say once that a tool call ended, and once more only if it turns out to have been denied."""
        if (denied and tool not in self._denied) or tool in self._tools:
            self._emit(ToolEnded(tool, denied, excerpt(text)))
        self._tools.discard(tool)
        if denied:
            self._denied.add(tool)

    def _see_limit(self, info: Json) -> None:
        stops = text_at(info, "status") == "rejected"
        name, resets_at = text_at(info, "rateLimitType"), number_at(info, "resetsAt")
        if stops:
            self._resets_at = resets_at
        windows = at(info, "unifiedWindows")
        if not isinstance(windows, dict):
            windows = {
                name: {"utilization": at(info, "utilization"), "resetsAt": resets_at, "status": at(info, "status")}
            }
        for window, state in windows.items():
            used, resets_at = number_at(state, "utilization"), number_at(state, "resetsAt")
            if used is not None or resets_at is not None:
                hit = stops and text_at(state, "status") == "rejected"
                self._emit(LimitSeen(hit, _WINDOWS.get(window, window), used, resets_at))

    def _see_result(self, event: dict[str, Json]) -> None:
        self._see_usage(event)
        for denial in objects_at(event, "permission_denials"):
            self._end_tool(text_at(denial, "tool_use_id"), "", denied=True)
        self.words = text_at(event, "result") or "; ".join(_strings(event.get("errors")))
        if event.get("is_error") is True:
            status = count_at(event, "api_error_status")
            self.outcome = Trouble(self.words, status, self._error_type(event), resets_at=self._resets_at)
        else:
            self.outcome = Answered(
                text_at(event, "result"), event.get("structured_output"), text_at(event, "stop_reason")
            )

    def _error_type(self, event: dict[str, Json]) -> str:
        """The names that an error has in different fields, each once, the most telling first."""
        reason = text_at(event, "terminal_reason")
        names = (
            "refusal" if event.get("stop_reason") == "refusal" else "",
            "" if reason in _PLAIN_ENDS else reason,
            text_at(event, "api_error"),
            self._error,
            text_at(event, "api_error_type"),
        )
        return " ".join(dict.fromkeys(filter(None, names)))

    def _see_usage(self, event: dict[str, Json]) -> None:
        """What the whole session used. A price that claude made up for a model it doesn't know is unknown."""
        models = at(event, "modelUsage")
        uses = models if isinstance(models, dict) else {}
        made_up = any(text_at(use, "costBasis") == "unknown" for use in uses.values())
        self._emit(
            Used(
                total_of(*(count_at(use, name) for use in uses.values() for name in _INPUTS)),
                total_of(*(count_at(use, "outputTokens") for use in uses.values())),
                total_of(*(count_at(use, "cacheReadInputTokens") for use in uses.values())),
                None if made_up else number_at(event, "total_cost_usd"),
                cumulative=True,
                model=next(iter(uses)) if len(uses) == 1 else "",
            )
        )


def _words(content: Json) -> str:
    """The text of a tool's result, which is a string or a list of blocks."""
    if isinstance(content, str):
        return content
    return (
        "\n".join(text_at(block, "text") for block in content if text_at(block, "text"))
        if isinstance(content, list)
        else ""
    )


def _strings(value: Json) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []
