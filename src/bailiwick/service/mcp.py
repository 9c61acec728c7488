"""The MCP server: tools, prompts and resources over the official package's low-level server, whatever the transport."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from bailiwick import __version__
from bailiwick.errors import BailiwickError
from bailiwick.ids import Json
from bailiwick.service.asgi import ACCESS, App, Context, Message, Receive, Send, answer, header
from bailiwick.service.asgi_app import Part
from bailiwick.service.auth import access_of
from bailiwick.service.handshake import NAME, TITLE, instructions
from bailiwick.service.jsonrpc import OpenRequests, Refused, in_use, read_message
from bailiwick.service.mcp_resources import Resources
from bailiwick.service.mcp_tools import Answerer, RunningToolCall, document_of, objection, refusal, unknown, visible
from bailiwick.service.tokens import TokenAccess
from bailiwick.skills.model import Skill, Tool
from bailiwick.skills.schemas import input_schema
from bailiwick.skills.tools import tools_for

if TYPE_CHECKING:
    from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
    from mcp.server.context import ServerRequestContext
    from mcp.server.lowlevel import Server

PERSON: Final = TokenAccess("person", "admin")
"""Whoever started us on a pipe."""
CALLS: Final = 64
"""Calls that may be open at once, of all clients."""
SESSIONS: Final = 256
"""Sessions of older clients that may be open at once."""
IDLE: Final = 1800.0
PATH: Final = "/mcp"
BAD_REQUEST: Final = 400
_WHOLE: Final[dict[str, Json]] = {"resultType": "complete"}
_NOT_A_NAME = re.compile(r"[^A-Za-z0-9_.-]+")


@dataclass(slots=True)
class Offer:
    """What is offered. `skills` reads the disciplines there are now; `answer` does what a tool promises."""

    skills: Callable[[], Awaitable[Mapping[str, Skill]]]
    answer: Answerer
    resources: Resources
    clean: Callable[[Json], Json] = lambda value: value
    tell: Callable[[str], None] = lambda _text: None
    _tools: dict[str, Tool] = field(default_factory=lambda: tools_for(()))
    _schemas: dict[str, dict[str, Json]] = field(default_factory=dict)

    async def refresh(self) -> Mapping[str, Skill]:
        """Look which skills there are now, and with them which tools."""
        skills = await self.skills()
        self._tools = tools_for(skills.values())
        self._schemas = {}
        return skills

    @property
    def tools(self) -> Mapping[str, Tool]:
        """The tools as they were last looked at; those of the table at least."""
        return self._tools

    async def tool(self, name: str) -> Tool | None:
        """A tool by name; one that is new is found too."""
        if name not in self._tools:
            await self.refresh()
        return self._tools.get(name)

    def schema(self, name: str) -> Mapping[str, Json] | None:
        """What a tool takes, made once."""
        if name not in self._schemas and (tool := self._tools.get(name)) is not None:
            self._schemas[name] = input_schema(tool)
        return self._schemas.get(name)


def build_server(offer: Offer) -> Server[Any]:
    """A server that offers this, to old and new clients alike."""
    import mcp_types as types
    from mcp.server.lowlevel import Server

    server: Server[Any] = Server(
        NAME,
        version=__version__,
        title=TITLE,
        instructions=instructions(),
        get_tool_input_schema=offer.schema,
    )
    server.middleware.clear()  # spans that nobody collects; they cost a tenth of a short call
    handlers = Handlers(offer)
    server.add_request_handler("tools/list", types.PaginatedRequestParams, handlers.list_tools)
    server.add_request_handler("tools/call", types.CallToolRequestParams, handlers.call_tool)
    server.add_request_handler("prompts/list", types.PaginatedRequestParams, handlers.list_prompts)
    server.add_request_handler("prompts/get", types.GetPromptRequestParams, handlers.get_prompt)
    server.add_request_handler("resources/list", types.PaginatedRequestParams, handlers.list_resources)
    server.add_request_handler("resources/templates/list", types.PaginatedRequestParams, handlers.list_templates)
    server.add_request_handler("resources/read", types.ReadResourceRequestParams, handlers.read_resource)
    return server


class Handlers:
    """The methods that clients call."""

    def __init__(self, offer: Offer) -> None:
        self._offer = offer
        self._open = 0

    async def list_tools(self, ctx: ServerRequestContext[Any, Any], _params: Any) -> dict[str, Json]:
        """The tools that this client's token reaches."""
        skills = await self._offer.refresh()
        tools = visible(self._offer.tools, access_from(ctx))
        return _listed("tools", [document_of(tool, skills.get(tool.skill)) for tool in tools])

    async def call_tool(self, ctx: ServerRequestContext[Any, Any], params: Any) -> dict[str, Json]:
        """An MCP call to a tool; what is wrong with it is told as its result, for the model to correct."""
        tool = await self._offer.tool(params.name)
        if tool is None:
            raise _invalid(unknown(params.name, self._offer.tools))
        arguments = params.arguments or {}
        why = objection(tool, arguments, access_from(ctx))
        if not why and self._open >= CALLS:
            why = f"{CALLS} calls are open already; try again when one of them is done"
        if why:
            return {**_WHOLE, **refusal(why)}

        async def report(progress: float, line: str) -> None:
            await ctx.session.report_progress(progress, None, line)

        call = RunningToolCall(self._offer.answer, report, self._offer.tell)
        self._open += 1
        try:
            return {**_WHOLE, **self._offer.clean(await call.run(tool, arguments, client_of(ctx)))}
        finally:
            self._open -= 1

    async def list_prompts(self, _ctx: ServerRequestContext[Any, Any], _params: Any) -> dict[str, Json]:
        """One prompt per discipline."""
        task = {"name": "task", "description": "What is to be done under this discipline.", "required": False}
        found = (await self._offer.skills()).values()
        return _listed(
            "prompts",
            [
                {"name": one.name, "title": title_of(one), "description": one.description, "arguments": [task]}
                for one in found
            ],
        )

    async def get_prompt(self, _ctx: ServerRequestContext[Any, Any], params: Any) -> dict[str, Json]:
        """A discipline as a prompt, the task below it."""
        skill = (await self._offer.skills()).get(params.name)
        if skill is None:
            raise _invalid(f"Unknown prompt: {params.name[:64]}")
        phases = (tool.phase for tool in self._offer.tools.values() if tool.skill == skill.name)
        parts = [part for phase in phases if (part := skill.parts.get(phase))]
        text = "\n\n".join(part for part in (skill.body, *parts, (params.arguments or {}).get("task", "")) if part)
        message = {"role": "user", "content": {"type": "text", "text": text}}
        return {**_WHOLE, "description": skill.description, "messages": [message]}

    async def list_resources(self, _ctx: ServerRequestContext[Any, Any], _params: Any) -> dict[str, Json]:
        """Disciplines, the newest runs, the newest sessions."""
        return _listed("resources", await self._offer.resources.entries(await self._offer.skills()))

    async def list_templates(self, _ctx: ServerRequestContext[Any, Any], _params: Any) -> dict[str, Json]:
        """How the addresses of resources are made."""
        return _listed("resourceTemplates", self._offer.resources.templates())

    async def read_resource(self, _ctx: ServerRequestContext[Any, Any], params: Any) -> dict[str, Json]:
        """What is at an address."""
        address = str(params.uri)
        try:
            contents = await self._offer.resources.read(address, await self._offer.skills())
        except BailiwickError as error:
            raise _invalid(error.sentence, {"uri": address[:2048]}) from None
        return _listed("contents", [self._offer.clean(contents)])


def _listed(name: str, items: list[Json]) -> dict[str, Json]:
    """A list that is true now and for this client; the newest protocol wants that said."""
    return {**_WHOLE, "ttlMs": 0, "cacheScope": "private", name: items}


def title_of(skill: Skill) -> str:
    """A skill's name as a title."""
    return skill.name.replace("-", " ").capitalize()


def access_from(ctx: ServerRequestContext[Any, Any]) -> TokenAccess:
    """Who asks: the token of the request, or the person where there is no request but a pipe."""
    return PERSON if ctx.request is None else access_of(ctx.request.scope)


def client_of(ctx: ServerRequestContext[Any, Any]) -> str:
    """The client for records: its own name, cut to letters that can do no harm, and whose token it used."""
    params = ctx.session.client_params
    name = _NOT_A_NAME.sub("-", params.client_info.name)[:64].strip("-") if params is not None else ""
    token = "" if ctx.request is None else f"@{access_of(ctx.request.scope).name}"
    return f"mcp:{name or 'unknown'}{token}"


def _invalid(what: str, data: Json = None) -> Exception:
    from mcp.shared.exceptions import MCPError
    from mcp_types import INVALID_PARAMS

    return MCPError(code=INVALID_PARAMS, message=what, data=data)


def http_part(offer: Offer, *, most: int) -> Part:
    """The server as a part of the application. A session belongs to the token that opened it."""
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    sessions = StreamableHTTPSessionManager(
        build_server(offer), max_request_body_size=most, session_idle_timeout=IDLE, max_sessions=SESSIONS
    )

    return Part(PATH, Bound(sessions.handle_request), "read", open=sessions.run)


@dataclass(frozen=True, slots=True)
class Bound:
    """Tells the session's keeper whose request it is, so that nobody else can go on with a session.

    What is no message, and a request with the id of one that is open in its session, is refused before.
    """

    app: App
    open: OpenRequests = field(default_factory=OpenRequests)

    async def __call__(self, context: Context, receive: Receive, send: Send) -> None:
        context["user"] = _user(context[ACCESS])
        if context["method"] != "POST":
            await self.app(context, receive, send)
            return
        first = await receive()
        found = read_message(first.get("body", b""))
        if isinstance(found, Refused):
            await answer(send, BAD_REQUEST, json.loads(found.answer))
            return
        session = header(context, b"mcp-session-id")
        name = (session, found.id) if session and found.id is not None and found.method else None
        if name is not None and found.id is not None and not self.open.begin(name):
            await answer(send, BAD_REQUEST, json.loads(in_use(found.id)))
            return
        left = [first]

        async def replay() -> Message:
            return left.pop() if left else await receive()

        try:
            await self.app(context, replay, send)
        finally:
            self.open.end(name)


@lru_cache(maxsize=256)
def _user(access: TokenAccess) -> AuthenticatedUser:
    from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
    from mcp.server.auth.provider import AccessToken

    return AuthenticatedUser(AccessToken(token="", client_id=access.name, scopes=[access.scope]))
