"""Calling tools over MCP: what a client is told of each, what a call may carry, its progress, its cancellation."""

from __future__ import annotations

import asyncio
import difflib
import json
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from bailiwick.errors import BailiwickError
from bailiwick.ids import Json
from bailiwick.runtime.supervise import Supervisor, wait_set
from bailiwick.service.tokens import TokenAccess
from bailiwick.skills.arguments import bad_arguments, given
from bailiwick.skills.model import Skill, Tool
from bailiwick.skills.schemas import input_schema, output_schema

GRACE: Final = 20.0
"""Seconds that a cancelled call has to end its children and to be put on record."""
FLUSH: Final = 1.0
"""Seconds that a client has to take the last lines of progress."""
LINES: Final = 100
"""Lines of progress that wait for a slow client; older ones are left out."""
LONGEST_LINE: Final = 500
LARGEST: Final = 262_144
"""Characters that the arguments which are objects may have together, as JSON."""


@dataclass(frozen=True, slots=True)
class ToolRequest:
    """One call of a tool. `by` names the client for records; `cancel` is set when it no longer wants the answer."""

    tool: Tool
    arguments: Mapping[str, Json]
    by: str
    show: Callable[[str], None]
    cancel: asyncio.Event


Answerer = Callable[[ToolRequest], Awaitable[dict[str, Json]]]
"""Does what a tool promises and gives its document. Raises `BailiwickError` for what the caller can change."""
Report = Callable[[float, str], Awaitable[None]]
"""Tells a client how far a call is: a number that grows, and a line."""


def document_of(tool: Tool, skill: Skill | None) -> dict[str, Json]:
    """A tool as it stands in the list."""
    return {
        "name": tool.name,
        "title": tool.title,
        "description": tool.doc,
        "inputSchema": input_schema(tool),
        "outputSchema": output_schema(tool, skill),
        "annotations": {
            "title": tool.title,
            "readOnlyHint": tool.hints.read_only,
            "destructiveHint": tool.hints.destructive,
            "idempotentHint": tool.hints.idempotent,
            "openWorldHint": tool.hints.open_world,
        },
    }


def visible(tools: Mapping[str, Tool], access: TokenAccess) -> list[Tool]:
    """The tools that a token reaches."""
    return [tool for tool in tools.values() if access.reaches(tool.scope)]


def unknown(name: str, tools: Mapping[str, Tool]) -> str:
    """What to say of a tool that does not exist."""
    near = difflib.get_close_matches(name[:64], list(tools), 1)
    return f"Unknown tool: {name[:64]}" + (f"; did you mean {near[0]}?" if near else "")


def refusal(text: str) -> dict[str, Json]:
    """The result of a call that did not do what it should, for the model to read."""
    return {"content": [{"type": "text", "text": text}], "isError": True}


def result_of(value: dict[str, Json]) -> dict[str, Json]:
    """The result of a call: as data and, for clients that read text only, as its JSON."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    failed = value.get("status") == "error" or bool(value.get("error"))
    return {"content": [{"type": "text", "text": text}], "structuredContent": value, "isError": failed}


def objection(tool: Tool, arguments: Json, access: TokenAccess) -> str:
    """Why a call can't be made as it is, with what to change; "" where it can."""
    if not access.reaches(tool.scope):
        return f"{tool.name} needs a token with scope {tool.scope}; this one has scope {access.scope}"
    if found := bad_arguments(tool, arguments):
        return "\n".join(found)
    heavy = [one.name for one in tool.all_arguments if one.kind == "object" and arguments.get(one.name)]
    size = sum(len(json.dumps(arguments[name])) for name in heavy)
    return f"give at most {LARGEST:,} characters in {', '.join(heavy)}, found {size:,}" if size > LARGEST else ""


@dataclass(slots=True)
class RunningToolCall:
    """One call on its way: its work and its progress go on side by side, and both end with it."""

    answer: Answerer
    report: Report
    tell: Callable[[str], None]
    cancel: asyncio.Event = field(default_factory=asyncio.Event)
    _lines: deque[str] = field(default_factory=lambda: deque(maxlen=LINES))
    _news: asyncio.Event = field(default_factory=asyncio.Event)
    _over: asyncio.Event = field(default_factory=asyncio.Event)
    _told: asyncio.Event = field(default_factory=asyncio.Event)
    _result: dict[str, Json] = field(default_factory=dict)

    async def run(self, tool: Tool, arguments: Mapping[str, Json], by: str) -> dict[str, Json]:
        """Make the call. When this is cancelled, the call is told, and may end in order before we leave."""
        asked = ToolRequest(tool, arguments=given(tool, arguments), by=by, show=self._show, cancel=self.cancel)
        supervisor = Supervisor(self._crashed)
        supervisor.start(self._work(asked), f"tool {tool.name}")
        supervisor.start(self._pump(), "progress")
        try:
            await self._over.wait()
            self._news.set()
            async with asyncio.timeout(FLUSH):
                await self._told.wait()
        except TimeoutError:
            self.tell(f"{tool.name}: the client does not take its progress")
        except asyncio.CancelledError:
            self.cancel.set()
            await _shielded(self._over.wait)
            raise
        finally:
            await _shielded(supervisor.close)
        return self._result

    async def _work(self, asked: ToolRequest) -> None:
        try:
            self._result = result_of(await self.answer(asked))
        except BailiwickError as error:
            self._result = refusal("\n".join(map(str, error.problems())))
        self._over.set()

    async def _pump(self) -> None:
        count = 0
        while not (self._over.is_set() and not self._lines):
            await wait_set(self._news, None)
            while self._lines:
                count += 1
                await self.report(float(count), self._lines.popleft())
        self._told.set()

    def _show(self, line: str) -> None:
        self._lines.append(line.strip()[:LONGEST_LINE])
        self._news.set()

    def _crashed(self, name: str, error: BaseException) -> None:
        """Our own mistake: the client hears of it as a result, the operator with its kind."""
        self.tell(f"{name}: {type(error).__name__}: {error}")
        if name == "progress":
            self._told.set()
            return
        self._result = refusal("internal error: this is ours; the operator finds more in the log of the service")
        self._over.set()
        self._news.set()


async def _shielded(work: Callable[[], Awaitable[object]]) -> None:
    """Do a last thing although we are being cancelled, for a bounded time."""
    import anyio

    with anyio.move_on_after(GRACE, shield=True):
        await work()
