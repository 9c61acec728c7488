"""GitHub Copilot CLI, headless: a JSON object per line. Observed with 1.0.102.

The prompt goes to standard input, where it may be of any length. Tokens stand only in a file written at the end.
Copilot tries failed requests again by itself and can't be told not to: each failed call is passed on as it is seen.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from bailiwick.agents.invoke import SPAWN, Invocation, ProgramBackend, conclude, invoke, session_id
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
from bailiwick.agents.programs import Program
from bailiwick.agents.streams import as_object, at, count_at, excerpt, number_at, text_at, total_of
from bailiwick.ids import Json

PROGRAM = Program("copilot", "@github/copilot", ("copilot",), "1.0.102")
FILTERED = "The model returned no content because the response was blocked by content filtering."
"""What copilot says in the model's place when the model refused."""
_USAGE_BOUND = 1 << 20


class CopilotBackend(ProgramBackend):
    """GitHub Copilot CLI, with its own login or a provider of ours."""

    name = "copilot"
    program = PROGRAM
    capabilities = Capabilities(resume=True, credential="brokered")

    async def turn(self, turn: Turn, io: TurnIo, emit: Emit) -> None:
        reader = CopilotStream(emit, turn.session or session_id(turn))
        try:
            usage = _usage_file(turn, io)
        except OSError as error:
            emit(Trouble(f"no file for the usage could be made: {error}", type=SPAWN))
            return
        argv = tuple(_argv(turn, usage))
        end = await invoke(Invocation(argv, _environment(turn), turn.cwd, turn.prompt), io, reader.see)
        used = _read_usage(usage)
        if used is not None:
            emit(used)
        conclude(end, reader.outcome, emit)


def _argv(turn: Turn, usage: Path) -> Iterator[str]:
    """The command line; with the id of a session that it already has, copilot goes on with it."""
    options = dict(turn.options)
    yield from (PROGRAM.path(turn.env, text_at(options, "program")), "--output-format", "json")
    yield f"--resume={turn.session}" if turn.session else f"--session-id={session_id(turn)}"
    if turn.model:
        yield from ("--model", turn.model)
    if options.get("skip_permissions"):
        yield "--allow-all-tools"
    for name, flag in (("allowed_tools", "--allow-tool"), ("disallowed_tools", "--deny-tool")):
        tools = options.get(name)
        for tool in tools if isinstance(tools, list) else []:
            yield f"{flag}={tool}"
    yield f"--usage-output-file={usage}"


def _environment(turn: Turn) -> dict[str, str]:
    env = {**turn.env, "COPILOT_AUTO_UPDATE": "false"}
    options = dict(turn.options)
    if turn.base_url is None:
        if turn.token is not None:
            env["COPILOT_GITHUB_TOKEN"] = turn.token
        return env
    for name in ("COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN", "COPILOT_PROVIDER_BEARER_TOKEN"):
        env.pop(name, None)
    env["COPILOT_OFFLINE"] = "true"
    env["COPILOT_PROVIDER_BASE_URL"] = turn.base_url
    env["COPILOT_PROVIDER_TYPE"] = text_at(options, "provider_type") or "openai"
    env["COPILOT_PROVIDER_WIRE_API"] = text_at(options, "wire_api") or "completions"
    if turn.model:
        env["COPILOT_MODEL"] = turn.model
    if turn.token is not None:
        env["COPILOT_PROVIDER_API_KEY"] = turn.token
    return env


def _usage_file(turn: Turn, io: TurnIo) -> Path:
    import tempfile

    folder = Path(tempfile.mkdtemp(prefix="bailiwick-usage-", dir=turn.env.get("TMPDIR") or None))
    io.note(folder)
    return folder / "usage.json"


def _read_usage(path: Path) -> Used | None:
    """What the whole session used, all models together; None where copilot wrote nothing."""
    try:
        with path.open("rb") as file:
            text = file.read(_USAGE_BOUND).decode("utf-8", "replace")
    except OSError:
        return None
    models = at(as_object(text), "modelMetrics")
    if not isinstance(models, dict):
        return None
    uses = [at(metrics, "usage") for metrics in models.values()]
    taken, given, cached = (
        total_of(*(count_at(use, name) for use in uses)) for name in ("inputTokens", "outputTokens", "cacheReadTokens")
    )
    return Used(taken, given, cached, cumulative=True, model=next(iter(models)) if len(models) == 1 else "")


class CopilotStream:
    """Reads the lines of one run; the `result` line decides between the last message and the last error.

    `session` is the id that copilot was told to use: it is known as soon as copilot speaks.
    """

    def __init__(self, emit: Emit, session: str = "") -> None:
        self.outcome: Answered | Trouble | None = None
        self._emit = emit
        self._answer = ""
        self._session = ""
        self._told = session
        self._trouble: Trouble | None = None
        self._resets_at: float | None = None
        self._is_aborted = False

    def see(self, event: dict[str, Json]) -> None:
        """Take one line."""
        data = at(event, "data")
        self._note_session(text_at(event, "sessionId") or self._session or self._told)
        match event.get("type"):
            case "assistant.message":
                self._see_message(text_at(data, "content"))
            case "tool.execution_start" if text_at(data, "toolCallId"):
                self._emit(ToolBegan(text_at(data, "toolCallId"), text_at(data, "toolName")))
            case "tool.execution_complete" if text_at(data, "toolCallId"):
                denied = text_at(data, "error", "code") == "denied"
                words = text_at(data, "error", "message") or text_at(data, "result", "content")
                self._emit(ToolEnded(text_at(data, "toolCallId"), denied, excerpt(words)))
            case "model.call_failure":
                self._see_failure(data)
            case "session.error":
                kind, status = text_at(data, "errorType"), count_at(data, "statusCode")
                self._trouble = Trouble(text_at(data, "message"), status, kind, resets_at=self._resets_at)
            case "abort":
                self._is_aborted = True
            case "result":
                self._see_result(event)
            case _:
                pass

    def _note_session(self, session: str) -> None:
        if session and session != self._session:
            self._session = session
            self._emit(SessionKnown(session))

    def _see_message(self, text: str) -> None:
        self._answer = text
        if text:
            self._emit(Said(text))

    def _see_failure(self, data: Json) -> None:
        """A failed request, tried again or not. The time of a reset stands nowhere else."""
        words = text_at(data, "errorMessage")
        body = as_object(words)
        self._resets_at = number_at(body, "resets_at")
        kind = text_at(body, "code") or text_at(data, "errorType") or text_at(body, "type")
        message, status = text_at(body, "message") or words, count_at(data, "statusCode")
        self._emit(Trouble(message, status, kind, resets_at=self._resets_at, final=False))

    def _see_result(self, event: dict[str, Json]) -> None:
        """The end. Interrupted, copilot still calls it a success, with whatever was said last."""
        if self._is_aborted:
            self.outcome = Trouble("copilot was interrupted before it answered", type="aborted")
        elif event.get("exitCode") == 0:
            self.outcome = Answered(self._answer, stop="refusal" if self._answer == FILTERED else "")
        else:
            self.outcome = self._trouble
