"""Real git repositories over HTTP on loopback, with logins: `git http-backend` behind a small server.

Tests push to it and fetch from it as they would from a forge, and can make it fail in the ways forges do.
"""

from __future__ import annotations

import base64
import os
import subprocess
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar, Literal, Self, cast
from urllib.parse import unquote, urlsplit

Right = Literal["none", "read", "write"]


@dataclass(frozen=True, slots=True)
class GitRequestSeen:
    """One request as it came in; `token` is the password of its login, empty without one."""

    method: str
    path: str
    query: str
    token: str
    status: int


@dataclass(slots=True)
class Knobs:
    """How the server misbehaves: `status` answers every request so, `hang` none until the server is closed."""

    status: int = 0
    body: str = ""
    location: str = ""
    hang: bool = False


class LoopbackServer:
    """Serves on loopback while it is entered; its handlers know it as `owner`."""

    handler: ClassVar[type[QuietHandler]]
    closed: threading.Event
    _http: _Http | None = None

    def __enter__(self) -> Self:
        self.closed = threading.Event()
        self._http = _Http(("127.0.0.1", 0), self.handler)
        self._http.owner = self
        threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closed.set()
        if self._http is not None:
            self._http.shutdown()
            self._http.server_close()

    @property
    def url(self) -> str:
        """The address of the server, for the configuration and for remotes."""
        if self._http is None:
            raise RuntimeError("the server is not running: use it in a with statement")
        return f"http://127.0.0.1:{self._http.server_address[1]}"


class QuietHandler(BaseHTTPRequestHandler):
    """Reads requests as git and API clients send them, and logs nothing."""

    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the base class's
        """Keep quiet."""

    @property
    def owner(self) -> LoopbackServer:
        """The server that this request came to."""
        return cast("_Http", self.server).owner

    def serve(self) -> None:
        """Answer one request, whatever its method."""
        raise NotImplementedError

    def do_GET(self) -> None:
        self.serve()

    do_POST = do_PATCH = do_PUT = do_DELETE = do_GET  # noqa: N815 - the names are the base class's

    def token(self) -> str:
        """The password or bearer of the login, empty without one."""
        kind, _, value = self.headers.get("Authorization", "").partition(" ")
        if kind.lower() != "basic":
            return value if kind else ""
        return base64.b64decode(value).decode().partition(":")[2]

    def body(self) -> bytes:
        """What came with the request, in one piece or in chunks."""
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def reply(self, status: int, body: bytes, headers: Iterable[tuple[str, str]]) -> None:
        """Answer in one piece."""
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def git_reply(self, root: Path, body: bytes) -> None:
        """Have `git http-backend` answer, for the repositories below `root`."""
        address = urlsplit(self.path)
        env = {
            "PATH": os.defpath,
            "GIT_PROJECT_ROOT": str(root),
            "GIT_HTTP_EXPORT_ALL": "1",
            "GIT_CONFIG_NOSYSTEM": "1",
            "HOME": "/nonexistent",
            "REQUEST_METHOD": self.command,
            "PATH_INFO": unquote(address.path),
            "QUERY_STRING": address.query,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(len(body)),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            "REMOTE_USER": "pusher",
            "REMOTE_ADDR": "127.0.0.1",
        }
        done = subprocess.run(
            ["git", "http-backend"], input=body, env=env, capture_output=True, check=False, timeout=60
        )
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        lines = [line for line in head.decode("latin-1").split("\r\n") if line]
        headers = [(name, value.strip()) for name, _, value in (line.partition(":") for line in lines)]
        status = next((int(value.split()[0]) for name, value in headers if name.lower() == "status"), 200)
        self.reply(status, content, [pair for pair in headers if pair[0].lower() not in ("status", "content-length")])


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    owner: LoopbackServer


class _Handler(QuietHandler):
    def serve(self) -> None:
        owner = cast("GitServer", self.owner)
        address = urlsplit(self.path)
        body = self.body()
        token = self.token()
        status = self._refusal(owner, address.path, address.query, token)
        if owner.knobs.hang:
            owner.closed.wait(60)
        owner.seen.append(
            GitRequestSeen(self.command, path=address.path, query=address.query, token=token, status=status or 200)
        )
        if status:
            login = [("WWW-Authenticate", 'Basic realm="git"')] if status == 401 else []
            away = [("Location", owner.knobs.location or "http://127.0.0.1:1/")] if 300 <= status < 400 else []
            self.reply(status, owner.knobs.body.encode(), [*login, *away])
        else:
            self.git_reply(owner.root, body)

    def _refusal(self, owner: GitServer, path: str, query: str, token: str) -> int:
        """The status to refuse with, 0 where the request is served."""
        if owner.knobs.status:
            return owner.knobs.status
        writes = "git-receive-pack" in path or "git-receive-pack" in query
        right = owner.right_of(token)
        if right == "none":
            return 403 if token in owner.tokens else 401
        if writes and right != "write":
            return 403
        inside = (owner.root / unquote(path).lstrip("/")).resolve()
        return 0 if inside.is_relative_to(owner.root.resolve()) and ".git/" in path else 404


@dataclass
class GitServer(LoopbackServer):
    """Serves the bare repositories below `root`; `tokens` gives each token its right, `public` lets all read.

    Use it as a context manager; `url_of` a repository is what git is given.
    """

    handler = _Handler
    root: Path
    tokens: dict[str, Right] = field(default_factory=dict)
    public: bool = False
    knobs: Knobs = field(default_factory=Knobs)
    seen: list[GitRequestSeen] = field(default_factory=list)

    def url_of(self, name: str) -> str:
        """The address of a repository, for instance of `owner/repo`."""
        return f"{self.url}/{name}.git"

    def path_of(self, name: str) -> Path:
        """The bare repository itself."""
        return self.root / f"{name}.git"

    def make(self, name: str) -> Path:
        """Make an empty bare repository that takes pushes."""
        return make_bare(self.path_of(name))

    def right_of(self, token: str) -> Right:
        """What a token may do."""
        return self.tokens.get(token, "read" if self.public and not token else "none")


def make_bare(path: Path) -> Path:
    """Make an empty bare repository that takes pushes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    run_git(["init", "-q", "--bare", "--template=", "--initial-branch=main", str(path)]).check_returncode()
    run_git(["-C", str(path), "config", "http.receivepack", "true"]).check_returncode()
    return path


def run_git(args: Sequence[str]) -> subprocess.CompletedProcess[bytes]:
    """Git without anybody's configuration."""
    env = {"PATH": os.defpath, "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1"}
    return subprocess.run(["git", *args], env=env, capture_output=True, check=False)
