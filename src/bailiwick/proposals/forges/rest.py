"""One bounded request to a forge's REST API. Nothing is retried, no other host ever gets the token."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlencode, urljoin, urlsplit

from bailiwick.agents.resets import parse_retry_after
from bailiwick.clock import Clock
from bailiwick.ids import Json
from bailiwick.proposals.forges.port import ForgeFailed, Trouble
from bailiwick.proposals.neutral import one_line

if TYPE_CHECKING:
    import ssl

    import httpx2

MAX_BODY = 8 << 20
"""Bytes of an answer; a page of a hundred long comments is less."""
TOTAL = 30.0
CONNECT = 10.0
PAGES = 10
"""Pages of a list that are read; what is beyond is left out."""
HOPS = 3
_MESSAGE = 300
_LIMITED = re.compile(r"rate limit|secondary|abuse|too many requests", re.IGNORECASE)
_REDIRECTS = frozenset({301, 302, 307, 308})


@dataclass(frozen=True, slots=True)
class Network:
    """How the outside is reached; seconds for one request in `total`."""

    proxy: str | None = None
    ca_file: Path | None = None
    total: float = TOTAL


@dataclass(frozen=True, slots=True)
class RestAnswer:
    """A good answer: its status, its JSON and its headers in lower case."""

    status: int
    data: Json
    headers: Mapping[str, str]


@dataclass(slots=True)
class Rest:
    """A forge's API below one address, with one token."""

    base: str
    token: str | None = field(repr=False)
    clock: Clock
    network: Network = field(default_factory=Network)
    scheme: str = "Bearer"
    headers: Mapping[str, str] = field(default_factory=dict)
    page: str = "per_page"
    size: int = 100
    _client: httpx2.AsyncClient | None = None

    @property
    def host(self) -> str:
        """The host, for messages."""
        return urlsplit(self.base).netloc.rpartition("@")[2]

    async def get(self, path: str, query: Mapping[str, str | int] | None = None) -> RestAnswer:
        """Read something; a repository that moved is followed on the same host."""
        url = self._url(path, query)
        for _ in range(HOPS):
            answer = await self._send("GET", url, None)
            if answer.status not in _REDIRECTS:
                return answer
            url = self._elsewhere(url, answer)
        raise self._moved(url)

    async def send(self, method: str, path: str, body: Json) -> RestAnswer:
        """Change something; never sent elsewhere."""
        answer = await self._send(method, self._url(path, None), body)
        if answer.status in _REDIRECTS:
            raise self._moved(answer.headers.get("location", "?"))
        return answer

    async def pages(self, path: str, query: Mapping[str, str | int] | None = None) -> list[Json]:
        """The items of a list over a bounded number of pages; a list inside an object is found by its only list."""
        items: list[Json] = []
        for number in range(1, PAGES + 1):
            answer = await self.get(path, {**(query or {}), self.page: self.size, "page": number})
            found = self._list(answer.data)
            items += found
            if len(found) < self.size:
                break
        return items

    async def close(self) -> None:
        """Let go of connections."""
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    def _list(self, data: Json) -> list[Json]:
        if isinstance(data, dict):
            data = next((value for value in data.values() if isinstance(value, list)), None)
        if not isinstance(data, list) or not all(isinstance(item, dict) for item in data):
            raise self.malformed("a list was expected")
        return data

    def _url(self, path: str, query: Mapping[str, str | int] | None) -> str:
        return f"{self.base}{path}" + (f"?{urlencode(query)}" if query else "")

    def _elsewhere(self, url: str, answer: RestAnswer) -> str:
        """Where a redirect leads; another host never gets the token."""
        there = urljoin(url, answer.headers.get("location", ""))
        if urlsplit(there)[:2] != urlsplit(self.base)[:2]:
            raise self._moved(there)
        return there

    async def _send(self, method: str, url: str, body: Json) -> RestAnswer:
        import httpx2

        try:
            async with asyncio.timeout(self.network.total):
                client = self._opened()
                request = client.build_request(method, url, headers=self._head(body), content=_content(body))
                response = await client.send(request, stream=True)
                try:
                    raw = await self._body(response)
                finally:
                    await response.aclose()
        except TimeoutError:
            what = f"{self.host} did not answer within {self.network.total:g} s"
            raise ForgeFailed("timeout", what, hint="try again; see network.proxy where it can't be reached") from None
        except (httpx2.InvalidURL, UnicodeError) as error:
            raise ForgeFailed("invalid", f"the forge's address can't be called: {error}", hint=_ADDRESS) from None
        except httpx2.HTTPError as error:
            said = one_line(str(error), _MESSAGE) or type(error).__name__
            raise ForgeFailed("unreachable", f"{self.host} can't be reached: {said}", hint=_ADDRESS) from None
        return self._read(response.status_code, {k.lower(): v for k, v in response.headers.items()}, raw)

    async def _body(self, response: httpx2.Response) -> bytes:
        if response.headers.get("content-encoding", "identity") != "identity":
            raise self.malformed("it is compressed, which was not asked for")
        out = bytearray()
        async for data in response.aiter_raw():
            out += data
            if len(out) > MAX_BODY:
                what = f"{self.host} answers with more than {MAX_BODY >> 20} MiB"
                raise ForgeFailed("too_large", what, hint="check the forge's url: this is hardly its API")
        return bytes(out)

    def _read(self, status: int, headers: Mapping[str, str], raw: bytes) -> RestAnswer:
        if status in _REDIRECTS:
            return RestAnswer(status, None, headers)
        data: Json = None
        try:
            data = json.loads(raw) if raw.strip() else None
        except (ValueError, RecursionError):
            if 200 <= status < 300:
                raise self.malformed("it is not JSON") from None
        if 200 <= status < 300:
            return RestAnswer(status, data, headers)
        raise self._failure(status, headers, _said(data))

    def malformed(self, what: str) -> ForgeFailed:
        """The answer is not what this API says; a proxy or a wrong address often is the reason."""
        text = f"the answer of {self.host} can't be used: {what}"
        return ForgeFailed("malformed", text, hint="check the forge's type and url, and the proxy in between")

    def _failure(self, status: int, headers: Mapping[str, str], said: str) -> ForgeFailed:
        told = f": {said}" if said else ""
        if status == 401:
            what = f"{self.host} does not accept the token{told}"
            return ForgeFailed("auth", what, hint="make a new token and put it where forges.*.token says", status=401)
        if status == 429 or (status == 403 and self._limited(headers, said)):
            wait = self._wait(headers)
            until = f"it opens in {wait:.0f} s" if wait is not None else "wait a while"
            return ForgeFailed(
                "rate_limit", f"{self.host} limits our requests{told}", hint=until, retry_after=wait, status=status
            )
        if status == 403:
            hint = "the token needs write access to contents and pull requests of this repository"
            return ForgeFailed("permission", f"{self.host} refuses this{told}", hint=hint, status=403)
        if status in (404, 410):
            hint = "check the repository's remote; a token that may not see it gets the same answer"
            return ForgeFailed("not_found", f"{self.host} does not have this{told}", hint=hint, status=status)
        if status >= 500:
            what = f"{self.host} has trouble of its own (status {status}){told}"
            return ForgeFailed(
                "unavailable", what, hint="try again later", retry_after=self._wait(headers), status=status
            )
        kind: Trouble = "conflict" if status == 409 else "invalid"
        what = f"{self.host} does not accept this (status {status}){told}"
        return ForgeFailed(kind, what, hint="settle there what it names, then do the same again", status=status)

    def _limited(self, headers: Mapping[str, str], said: str) -> bool:
        return headers.get("x-ratelimit-remaining") == "0" or "retry-after" in headers or bool(_LIMITED.search(said))

    def _wait(self, headers: Mapping[str, str]) -> float | None:
        now = self.clock.now()
        if (after := parse_retry_after(headers.get("retry-after"), now)) is not None:
            return after
        reset = headers.get("x-ratelimit-reset", "")
        if headers.get("x-ratelimit-remaining") == "0" and re.fullmatch(r"\d{1,12}", reset):
            return max(0.0, int(reset) - now)
        return None

    def _moved(self, there: str) -> ForgeFailed:
        return ForgeFailed(
            "moved",
            f"{self.host} sends us elsewhere, to {one_line(there, 200)}",
            hint="set the repository's remote, or the forge's url, to where it is now",
        )

    def _head(self, body: Json) -> dict[str, str]:
        out = {"accept": "application/json", "accept-encoding": "identity", "user-agent": "bailiwick", **self.headers}
        if self.token:
            out["authorization"] = f"{self.scheme} {self.token}"
        if body is not None:
            out["content-type"] = "application/json"
        return out

    def _opened(self) -> httpx2.AsyncClient:
        """A client that follows no redirect, asks no variable and keeps nothing."""
        import httpx2

        if self._client is None:
            self._client = httpx2.AsyncClient(
                verify=self._certificates() if self.base.startswith("https:") else False,
                proxy=self.network.proxy,
                timeout=httpx2.Timeout(None, connect=CONNECT),
                trust_env=False,
                follow_redirects=False,
            )
        return self._client

    def _certificates(self) -> ssl.SSLContext | bool:
        if self.network.ca_file is None:
            return True
        import ssl

        try:
            context = ssl.create_default_context()
            context.load_verify_locations(self.network.ca_file)
            return context
        except OSError as error:
            what = f"the certificates in {self.network.ca_file} can't be read: {error.strerror or error}"
            raise ForgeFailed("invalid", what, hint="correct network.ca_file") from None


_ADDRESS = "check forges.*.url, network.proxy and network.ca_file"


def _content(body: Json) -> bytes | None:
    return None if body is None else json.dumps(body).encode()


def _said(data: Json) -> str:
    """What an error's body says: its message and the details behind it, in one bounded line of plain text."""
    if not isinstance(data, dict):
        return ""
    words = [str(data.get("message") or "")]
    errors = data.get("errors")
    for one in errors if isinstance(errors, list) else []:
        if isinstance(one, dict):
            words.append(str(one.get("message") or " ".join(str(one.get(k) or "") for k in ("field", "code"))))
        else:
            words.append(str(one))
    return one_line("; ".join(word for word in words if word.strip()), _MESSAGE)
