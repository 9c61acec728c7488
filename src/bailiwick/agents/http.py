"""One bounded call to a model's HTTP API: clocks, sizes and errors are told as events; nothing is retried.

No variable of the environment changes where it goes: proxy and certificates come with the endpoint.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from bailiwick.agents.port import ProcessEnded, Trouble, Turn
from bailiwick.agents.resets import parse_retry_after
from bailiwick.agents.settings import TurnTimeouts
from bailiwick.agents.streams import as_object, one_line
from bailiwick.engine.failures import FailureKind
from bailiwick.ids import Json

if TYPE_CHECKING:
    import ssl

    import httpx2

MAX_BODY = 32 << 20
"""Bytes of an answer, framing included; more is a model that loops or a server that is none."""
MAX_LINE = 4 << 20
MAX_ERROR = 64 << 10
CONNECT = 30.0
CHECK_CLOCKS = TurnTimeouts(silence=10.0, total=10.0)

UNREACHABLE = str(FailureKind.UNREACHABLE)
CONNECTION_REFUSED = "connection refused"
"""How the message of a server ends that is not running."""
TOO_MUCH = str(FailureKind.BAD_OUTPUT)
OVERFLOW = str(FailureKind.OVERFLOW)
NOT_THERE = str(FailureKind.SPAWN)
"""Types of trouble for which the server has no word of its own: the ladder's."""

_TEXT = 500


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a model API is, what opens it, and how it is reached."""

    base_url: str = ""
    token: str | None = None
    proxy: str | None = None
    ca_file: Path | None = None

    def for_turn(self, turn: Turn) -> Endpoint:
        """The turn's own address and token win."""
        return replace(self, base_url=turn.base_url or self.base_url, token=turn.token or self.token)

    @property
    def host(self) -> str:
        """The host and port, for messages."""
        return re.sub(r"^[a-z+]*://(?:[^/@]*@)?", "", self.base_url).partition("/")[0] or "the endpoint"


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """One request; with a body it is a POST."""

    endpoint: Endpoint
    url: str
    body: Json = None
    clocks: TurnTimeouts = field(default_factory=TurnTimeouts)


class CallFailed(Exception):
    """The call did not come to its end; `event` says why in the port's words."""

    def __init__(self, event: Trouble | ProcessEnded) -> None:
        super().__init__(str(event))
        self.event = event


class ApiResponse:
    """What a server answers, read within bounds. A line that says something has to be acknowledged with `heard`."""

    def __init__(self, response: httpx2.Response, quiet: asyncio.Timeout, clocks: TurnTimeouts) -> None:
        self.status = response.status_code
        self.headers: Mapping[str, str] = response.headers
        self._response = response
        self._quiet = quiet
        self._clocks = clocks

    @property
    def kind(self) -> str:
        """The media type, without its parameters."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    def heard(self) -> None:
        """Something was said: the silence clock starts again. Bytes alone don't count, a dripping server never ends."""
        self._quiet.reschedule(asyncio.get_running_loop().time() + self._clocks.silence)

    async def lines(self) -> AsyncGenerator[bytes, None]:
        """The lines of the body without their ends; too long a line or too large a body raises `CallFailed`."""
        total = 0
        rest = bytearray()
        async with aclosing(self._response.aiter_raw()) as chunks:
            async for data in chunks:
                total += len(data)
                rest += data
                if total > MAX_BODY or len(rest) > MAX_LINE + len(data):
                    raise CallFailed(_too_large())
                if b"\n" in data:
                    *lines, rest = rest.split(b"\n")
                    for line in lines:
                        yield bytes(line).rstrip(b"\r")
        if rest:
            yield bytes(rest)

    async def body(self, most: int = MAX_LINE) -> bytes:
        """The whole body; more than `most` bytes raises `CallFailed`."""
        out = bytearray()
        async with aclosing(self._response.aiter_raw()) as chunks:
            async for data in chunks:
                out += data
                if len(out) > most:
                    raise CallFailed(_too_large())
        return bytes(out)

    async def error(self, now: float) -> Trouble:
        """What an answer with an error status says; of a body that is too long, nothing."""
        try:
            raw = await self.body(MAX_ERROR)
        except CallFailed:
            raw = b""
        return trouble_of(raw, self.status, self.headers, now)


@asynccontextmanager
async def calling(call: ApiRequest) -> AsyncIterator[ApiResponse]:
    """Send a request and give its reply; whatever goes wrong is raised as `CallFailed`, cancellation passes through."""
    import httpx2

    _check(call)
    clocks = call.clocks
    quiet = asyncio.timeout(clocks.silence)
    try:
        async with asyncio.timeout(clocks.total), quiet, _client(call.endpoint) as client:
            request = client.build_request("GET" if call.body is None else "POST", call.url, **_content(call))
            response = await client.send(request, stream=True)
            try:
                if response.headers.get("content-encoding", "identity") != "identity":
                    raise CallFailed(malformed("it is compressed, which was not asked for"))
                yield ApiResponse(response, quiet, clocks)
            finally:
                await response.aclose()
    except TimeoutError:
        raise CallFailed(_gave_up("silence" if quiet.expired() else "total", clocks)) from None
    except (httpx2.InvalidURL, UnicodeError):
        raise CallFailed(_no_address(call.url)) from None
    except httpx2.HTTPError as error:
        raise CallFailed(_unreachable(call.endpoint, error)) from None


def malformed(what: str) -> Trouble:
    """The server answered, but not as a model API does; a proxy or a gateway often is the reason."""
    return Trouble(f"the server's answer can't be used: {what}", type=UNREACHABLE)


def trouble_of(raw: bytes, status: int | None, headers: Mapping[str, str], now: float) -> Trouble:
    """The error that a body tells: `{"error": {message, type, code}}`, `{"error": text}`, `{"detail": …}` or text."""
    data = as_object(raw) or {}
    error = data.get("error") or data.get("detail") or data.get("message")
    if isinstance(error, str) and error.startswith("{") and "error" in (inner := as_object(error) or {}):
        error = inner["error"]
    message, kind = "", ""
    if isinstance(error, dict):
        message = _text(error.get("message"))
        kind = next((value for name in ("code", "type") if isinstance(value := error.get(name), str) and value), "")
        status = status or _status(error.get("code"))
    elif error:
        message = _text(error)
    plain = "" if data or raw.lstrip()[:1] in (b"<", b"{") else one_line(raw[: 4 * _TEXT].decode("utf-8", "replace"))
    if status is not None and 300 <= status < 400:
        return Trouble(f"the server sends us elsewhere, to {one_line(headers.get('location', '?'))}", status, NOT_THERE)
    if not message:
        message = plain or (f"the server answered with status {status}" if status else "the server reported an error")
    return Trouble(message, status, kind, _retry_after(headers, now))


def with_scheme(url: str) -> str:
    """An address as people also write it: `host:port` means `http://host:port`."""
    return f"http://{url}" if url and "://" not in url else url


def whole_number(value: Json) -> int | None:
    """A count that a server gave; None where it gave none that makes sense."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _check(call: ApiRequest) -> None:
    """Refuse an address or a token that can't be sent, without showing the token."""
    try:
        parts = urlsplit(call.url)
        fits = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        fits = False
    if not fits:
        raise CallFailed(_no_address(call.url))
    if call.endpoint.token and not re.fullmatch(r"[\x21-\x7e]+", call.endpoint.token):
        what = "the token holds a space or another character that no token has: check where it comes from"
        raise CallFailed(Trouble(what, type=str(FailureKind.AUTH)))


def _no_address(url: str) -> Trouble:
    what = f"{one_line(url)!r} is not an address that can be called: http://HOST:PORT or https://HOST is expected"
    return Trouble(what, type=NOT_THERE)


def _content(call: ApiRequest) -> dict[str, Any]:
    headers = {"accept-encoding": "identity", "user-agent": "bailiwick"}
    if call.endpoint.token:
        headers["authorization"] = f"Bearer {call.endpoint.token}"
    if call.body is None:
        return {"headers": headers}
    headers["content-type"] = "application/json"
    return {"headers": headers, "content": json.dumps(call.body).encode()}


def _client(endpoint: Endpoint) -> httpx2.AsyncClient:
    """A client that follows no redirect (it would carry the token along), keeps nothing and asks no variable."""
    import httpx2

    verify = _certificates(endpoint) if endpoint.base_url.startswith("https:") else False
    timeout = httpx2.Timeout(None, connect=CONNECT)
    return httpx2.AsyncClient(
        verify=verify, proxy=endpoint.proxy, timeout=timeout, trust_env=False, follow_redirects=False
    )


def _certificates(endpoint: Endpoint) -> ssl.SSLContext | bool:
    if endpoint.ca_file is None:
        return True
    import ssl

    try:
        return ssl.create_default_context(cafile=endpoint.ca_file)
    except OSError as error:
        what = f"the certificates in {endpoint.ca_file} can't be read: {error.strerror or error}"
        raise CallFailed(Trouble(what, type=NOT_THERE)) from None


def _gave_up(clock: Literal["silence", "total"], clocks: TurnTimeouts) -> ProcessEnded:
    seconds = clocks.silence if clock == "silence" else clocks.total
    what = f"nothing was said for {seconds:g} s" if clock == "silence" else f"the answer took longer than {seconds:g} s"
    return ProcessEnded(-1, what, clock)


def _unreachable(endpoint: Endpoint, error: Exception) -> Trouble:
    import httpx2

    if _is_refused(error):
        return Trouble(f"nothing listens at {endpoint.host}: {CONNECTION_REFUSED}", type=UNREACHABLE)
    said = one_line(str(error)) or type(error).__name__
    if isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.ProxyError):
        return Trouble(f"{endpoint.host} can't be reached: {said}", type=UNREACHABLE)
    return Trouble(f"the connection to {endpoint.host} broke off: {said}", type=UNREACHABLE)


def _is_refused(error: BaseException | None) -> bool:
    """Whether every way to a server was refused: nothing listens there, and asking again changes nothing."""
    while error is not None:
        inner = error.exceptions if isinstance(error, BaseExceptionGroup) else ()
        if isinstance(error, ConnectionRefusedError) or (inner and all(map(_is_refused, inner))):
            return True
        error = error.__cause__ or error.__context__
    return False


def _too_large() -> Trouble:
    return Trouble("the answer is larger than is ever read: the model loops, or this is not a model API", type=TOO_MUCH)


def _retry_after(headers: Mapping[str, str], now: float) -> float | None:
    millis = headers.get("retry-after-ms", "")
    if re.fullmatch(r"\d{1,12}(?:\.\d{1,6})?", millis):
        return float(millis) / 1000
    return parse_retry_after(headers.get("retry-after"), now)


def _status(code: Json) -> int | None:
    number = int(code) if isinstance(code, str) and re.fullmatch(r"[45]\d\d", code) else code
    return number if isinstance(number, int) and 400 <= number <= 599 else None


def _text(value: Json) -> str:
    return one_line(value if isinstance(value, str) else "" if value is None else json.dumps(value, ensure_ascii=False))
