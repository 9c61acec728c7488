"""A stub of GitHub or Gitea on loopback, on top of real bare repositories: REST here, git by `git http-backend`.

It knows what Bailiwick uses and refuses what no agent may do: a merge by a token is 403, always. `faults` make it fail
in the ways forges do.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Self, cast
from urllib.parse import parse_qsl, unquote, urlsplit

from bailiwick.testing.forge_server_api import ForgeApi
from bailiwick.testing.forge_server_gitea import GiteaApi
from bailiwick.testing.forge_server_github import GitHubApi
from bailiwick.testing.forge_server_state import (
    ForgeAccount,
    ForgeApiError,
    ForgeApiReply,
    ForgeApiRequest,
    Forgery,
    Hosted,
    Json,
    Right,
)
from bailiwick.testing.git_server import LoopbackServer, QuietHandler, make_bare

Flavour = Literal["github", "gitea"]
Fault = Literal["hang", "garbage", "flood", "drop"]


@dataclass(slots=True)
class ForgeRequestSeen:
    """A request as it came in; `status` is what it was answered with, 0 for not at all."""

    method: str
    path: str
    body: Json
    token: str
    status: int = 0


@dataclass(slots=True)
class Trip:
    """A fault: the next `times` requests whose method and path fit are answered so."""

    pattern: str
    answer: int | Fault
    times: int = 1_000_000
    body: Json = None
    headers: Mapping[str, str] = field(default_factory=dict)

    def takes(self, method: str, path: str) -> bool:
        """Whether it is this one's turn; counts."""
        if self.times <= 0 or not re.search(self.pattern, f"{method} {path}"):
            return False
        self.times -= 1
        return True


class _Handler(QuietHandler):
    @property
    def _owner(self) -> ForgeServer:
        return cast("ForgeServer", self.owner)

    def serve(self) -> None:
        path = unquote(urlsplit(self.path).path)
        raw = self.body()
        if git := re.fullmatch(r"/([^/]+/[^/]+)\.git/.*", path):
            self._pass_on(git[1], raw)
            return
        seen = ForgeRequestSeen(self.command, path, json.loads(raw) if raw else None, self.token())
        self._owner.seen.append(seen)
        trip = next((one for one in self._owner.faults if one.takes(self.command, path)), None)
        if trip is not None:
            self._stumble(trip, seen)
            return
        reply = self._reply(path, seen)
        seen.status = reply.status
        self._send(reply.status, json.dumps(reply.data).encode(), reply.headers)

    def _reply(self, path: str, seen: ForgeRequestSeen) -> ForgeApiReply:
        forgery = self._owner.forgery
        account = forgery.accounts.get(seen.token)
        if seen.token and account is None:
            return ForgeApiReply(401, {"message": "Bad credentials"})
        query = dict(parse_qsl(urlsplit(self.path).query))
        body = seen.body if isinstance(seen.body, dict) else {}
        api = self._owner.api
        for method, pattern, answer in api.routes:
            found = re.fullmatch(f"{api.root}{pattern}", path) if method == self.command else None
            if found:
                try:
                    return answer(ForgeApiRequest(found.groupdict(), query, body, account))
                except ForgeApiError as refusal:
                    return ForgeApiReply(refusal.status, refusal.body)
        return ForgeApiReply(404, {"message": "Not Found"})

    def _stumble(self, trip: Trip, seen: ForgeRequestSeen) -> None:
        match trip.answer:
            case "hang":
                self._owner.closed.wait(60)
                self.close_connection = True
            case "drop":
                self.close_connection = True
            case "garbage":
                self._send(200, b"<html>not what you think", {"content-type": "text/html"})
            case "flood":
                self._flood()
            case status:
                seen.status = status
                body = trip.body if trip.body is not None else {"message": f"made to answer {status}"}
                self._send(status, json.dumps(body).encode(), trip.headers)

    def _flood(self) -> None:
        """A hundred megabytes of a list, as long as somebody reads."""
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(100 << 20))
        self.end_headers()
        self.close_connection = True
        try:
            for _ in range(100):
                self.wfile.write(b"[" * (1 << 20))
        except OSError:
            return

    def _pass_on(self, name: str, raw: bytes) -> None:
        """Git: rights are ours, the rest is `git http-backend`'s."""
        owner = self._owner
        if refused := owner.admits(self.token(), name, write="git-receive-pack" in self.path):
            self._send(refused, b"", {"www-authenticate": 'Basic realm="git"'} if refused == 401 else {})
        else:
            self.git_reply(owner.root, raw)

    def _send(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
        self.reply(status, body, {"content-type": "application/json", **headers}.items())


@dataclass
class ForgeServer(LoopbackServer):
    """Serves a forge while it is entered: `with ForgeServer(tmp_path, "github") as forge: forge.url`."""

    handler = _Handler
    root: Path
    flavour: Flavour = "github"
    forgery: Forgery = field(default_factory=Forgery)
    faults: list[Trip] = field(default_factory=list)
    seen: list[ForgeRequestSeen] = field(default_factory=list)

    def __enter__(self) -> Self:
        super().__enter__()
        self.forgery.url = self.url
        return self

    @property
    def api(self) -> ForgeApi:
        """What answers requests."""
        return (GitHubApi if self.flavour == "github" else GiteaApi)(self.forgery)

    def add(self, name: str, *accounts: tuple[ForgeAccount, Right], fork_of: str = "") -> Hosted:
        """Make a repository, empty, and give accounts their rights."""
        path = self.root / f"{name}.git"
        if not path.exists():
            make_bare(path)
        hosted = Hosted(name, path, self.forgery.clock, fork_of)
        self.forgery.repositories[name] = hosted
        for account, right in accounts:
            account.rights[name] = right
        return hosted

    def admits(self, token: str, name: str, *, write: bool) -> int:
        """The status by which git is refused, 0 where it is served."""
        account = self.forgery.accounts.get(token)
        if account is None:
            return 401
        right = self.forgery.right(account, name)
        if right == "none":
            return 404
        return 403 if write and right == "read" else 0
