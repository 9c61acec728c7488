"""The scripted model API: a scenario per base URL, so that one server plays many parts at once.

`http://127.0.0.1:PORT/<scenario>~<run>` is a base URL; each run of a scenario has its own count of requests.
"""

from __future__ import annotations

import asyncio
import json
import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Self, assert_never

from bailiwick.clock import SystemClock
from bailiwick.ids import Json
from bailiwick.testing.model_server.anthropic import Anthropic
from bailiwick.testing.model_server.chat import Chat
from bailiwick.testing.model_server.dialect import Dialect, ModelAnswer
from bailiwick.testing.model_server.errors import MIDWAY_STATUS
from bailiwick.testing.model_server.ollama import Ollama
from bailiwick.testing.model_server.responses import Responses
from bailiwick.testing.model_server.script import (
    SCENARIOS,
    Babble,
    ByModel,
    Drip,
    Drop,
    Fail,
    FailMidway,
    Flood,
    Hang,
    Raw,
    Say,
    Scenario,
    Step,
    UseTool,
)
from bailiwick.testing.model_server.tools import choose
from bailiwick.testing.model_server.wire import MAX_HEAD, Gone, HttpResponder, ReceivedRequest, read_request

MODEL = "scripted-model"
_ROUTE = re.compile(r"/(?P<scenario>[a-z0-9_-]+)(?:~(?P<run>[A-Za-z0-9_.+-]*))?(?P<path>/.*)?")
_DIALECTS: tuple[tuple[str, Dialect], ...] = (
    ("/messages", Anthropic()),
    ("/responses", Responses()),
    ("/chat/completions", Chat()),
    ("/api/chat", Ollama()),
)
_ASIDE = Say("A few words")


@dataclass(frozen=True, slots=True)
class ModelRequestSeen:
    """A request as it came in; `step` is what it was answered with, None for what is no part of the script."""

    scenario: str
    run: str
    method: str
    path: str
    headers: Mapping[str, str]
    body: Json
    step: Step | None


class ModelServer:
    """Serves scenarios on loopback while it is entered: `async with ModelServer() as server: server.url("plain")`."""

    def __init__(self, scenarios: Mapping[str, Scenario] | None = None, *, port: int = 0) -> None:
        self.scenarios: dict[str, Scenario] = {**SCENARIOS, **(scenarios or {})}
        self.requests: list[ModelRequestSeen] = []
        self.asked = asyncio.Event()
        self._port = port
        self._clock = SystemClock()
        self._counts: dict[str, int] = {}
        self._mark = uuid.uuid4().hex[:8]
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self._port, limit=MAX_HEAD)
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None  # noqa: S101 - entered before it is left
        self._server.close()
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)
        await self._server.wait_closed()

    def url(self, scenario: str, run: str = "") -> str:
        """The base URL of a scenario; runs of different names are counted apart."""
        if scenario not in self.scenarios:
            raise KeyError(f"there is no scenario {scenario!r}")
        return f"http://127.0.0.1:{self._port}/{scenario}" + (f"~{run}" if run else "")

    def count(self, scenario: str, run: str = "") -> int:
        """How many steps of a scenario were played."""
        return self._counts.get(f"{scenario}~{run}", 0)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - a connection is served by a task
        self._open.add(task)
        try:
            while request := await read_request(reader):
                await self._answer(request, HttpResponder(reader, writer))
        except (Gone, asyncio.CancelledError):
            pass
        finally:
            self._open.discard(task)
            writer.transport.abort()

    async def _answer(self, request: ReceivedRequest, wire: HttpResponder) -> None:
        found = _ROUTE.fullmatch(request.path)
        scenario, run, path = (found["scenario"], found["run"] or "", found["path"] or "/") if found else ("", "", "/")
        body = _json(request.body)
        posted = request.method == "POST" and isinstance(body, dict) and scenario in self.scenarios
        dialect = next((each for ending, each in _DIALECTS if posted and path.endswith(ending)), None)
        step = None if dialect is None else self._next(scenario, run, dialect, body)
        self.requests.append(
            ModelRequestSeen(
                scenario, run=run, method=request.method, path=path, headers=request.headers, body=body, step=step
            )
        )
        self.asked.set()
        if dialect is None or step is None:
            status, said = _beside(request.method, path)
            await wire.send(status, json.dumps(said).encode(), "application/json", {}, head=request.method == "HEAD")
            return
        await self._play(step, dialect, body, wire)

    def _next(self, scenario: str, run: str, dialect: Dialect, body: dict[str, Json]) -> Step:
        if dialect.is_aside(body):
            return _ASIDE
        key = f"{scenario}~{run}"
        number = self._counts.get(key, 0)
        self._counts[key] = number + 1
        steps = self.scenarios[scenario]
        step = steps[min(number, len(steps) - 1)]
        if isinstance(step, ByModel):
            return step.then if step.word in str(body.get("model")) else step.otherwise
        return step

    async def _play(self, step: Step, dialect: Dialect, body: dict[str, Json], wire: HttpResponder) -> None:
        answer = ModelAnswer(
            f"{self._mark}{len(self.requests)}", str(body.get("model") or MODEL), created=int(self._clock.now())
        )
        match step:
            case Say():
                await _say(step, answer, dialect=dialect, body=body, wire=wire)
            case UseTool():
                call = choose(step, dialect.offered(body), body)
                text = "" if call else "The tool that the script names is not offered."
                await _tell(replace(answer, call=call, text=text, tokens=step.tokens), dialect, body, wire)
            case Fail():
                refused = dialect.refusal(step, answer.model, self._clock.now())
                await wire.send(refused.status, json.dumps(refused.body).encode(), "application/json", refused.headers)
            case FailMidway() | Hang() | Drop():
                await self._break(step, replace(answer, text=step.text), dialect, wire)
            case Raw():
                await wire.send(
                    step.status, step.body, step.media, {"location": "/plain/"} if step.status == 307 else {}
                )
            case Flood():
                await _flood(step, dialect, wire)
            case Drip():
                await _drip(step, dialect, wire)
            case Babble():
                await _babble(step, replace(answer, text=step.text), dialect, wire)
            case ByModel():
                raise AssertionError("resolved when the step was chosen")
            case never:
                assert_never(never)

    async def _break(
        self, step: FailMidway | Hang | Drop, answer: ModelAnswer, dialect: Dialect, wire: HttpResponder
    ) -> None:
        if step.text:
            await wire.begin(dialect.media, {})
            for frame in dialect.frames(answer).opening:
                await wire.chunk(frame)
        match step:
            case FailMidway():
                fail = Fail(MIDWAY_STATUS.get(step.code, 500), step.code)
                await wire.chunk(dialect.broken(fail, answer, self._clock.now()))
                await wire.end()
            case Hang():
                await wire.wait_gone()
            case Drop():
                wire.drop()


async def _say(step: Say, answer: ModelAnswer, dialect: Dialect, body: dict[str, Json], wire: HttpResponder) -> None:
    tokens = step.tokens
    if step.fills:
        tokens = replace(tokens, input=int((body.get("options") or {}).get("num_ctx") or 4096))
    full = replace(answer, text=step.text, thinking=step.thinking, stop=step.stop, tokens=tokens)
    await _tell(full, dialect, body, wire)


async def _tell(answer: ModelAnswer, dialect: Dialect, body: dict[str, Json], wire: HttpResponder) -> None:
    given = {"request-id": f"req_{answer.uid}", "x-request-id": f"req_{answer.uid}"}
    if not dialect.streams(body):
        await wire.send(200, json.dumps(dialect.whole(answer)).encode(), "application/json", given)
        return
    await wire.begin(dialect.media, given)
    frames = dialect.frames(answer)
    for frame in [*frames.opening, *frames.closing]:
        await wire.chunk(frame)
    await wire.end()


async def _flood(step: Flood, dialect: Dialect, wire: HttpResponder) -> None:
    await wire.begin(dialect.media, {})
    for _ in range(step.size >> 16):
        await wire.chunk(b"x" * (1 << 16))
    await wire.end()


async def _drip(step: Drip, dialect: Dialect, wire: HttpResponder) -> None:
    await wire.begin(dialect.media, {})
    await wire.chunk(b":")
    while True:
        await wire.chunk(b" ")
        await asyncio.sleep(step.every)


async def _babble(step: Babble, answer: ModelAnswer, dialect: Dialect, wire: HttpResponder) -> None:
    *first, again = dialect.frames(answer).opening
    await wire.begin(dialect.media, {})
    for frame in first:
        await wire.chunk(frame)
    while True:
        await wire.chunk(again)
        await asyncio.sleep(step.every)


def _json(raw: bytes) -> Json:
    try:
        return json.loads(raw) if raw else None
    except ValueError:
        return None


def _beside(method: str, path: str) -> tuple[int, Json]:
    """Answers to what is no question to a model."""
    model = {"id": MODEL, "object": "model", "type": "model", "owned_by": "script", "display_name": "Scripted"}
    known: dict[str, Json] = {
        "/": {},
        "/api/hello": {"message": "hello"},
        "/api/version": {"version": "0.33.3"},
        "/api/tags": {"models": [{"name": f"{MODEL}:latest", "model": f"{MODEL}:latest"}]},
        "/api/ps": {"models": []},
    }
    if path.endswith("/count_tokens"):
        return 200, {"input_tokens": 1200}
    if path.endswith("/models"):
        return 200, {"object": "list", "data": [model], "has_more": False}
    if method != "POST" and path in known:
        return 200, known[path]
    return 404, {"type": "error", "error": {"type": "not_found_error", "message": "the script knows no such path"}}
