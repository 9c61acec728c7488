"""Runs git so that it reads no configuration but ours and starts no program but its own parts.

Every call has a clean environment. What could make git run something else (hooks, file system monitors, filters,
external diffs, pagers, credential helpers, ssh, editors) is switched off in the scope of the command, which is above
the files of any repository. Those settings travel in the environment, so that neither they nor a token shows in `ps`.
"""

from __future__ import annotations

import asyncio
import os
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal
from urllib.parse import quote

from bailiwick.errors import NotReady, Place
from bailiwick.processes.command import Command, Exit
from bailiwick.processes.proc import plain_line, run_process

OLDEST = (2, 32)
"""Settings come through the environment since 2.31; a symbolic link as ignore file is not followed since 2.32."""
TIMEOUT = 300.0
KEEP = 256 << 20

Kind = Literal[
    "auth", "missing", "moved", "rejected", "declined", "network", "timeout", "cancelled", "tree", "refused", "git"
]
"""What went wrong: the login, no such place, it lies elsewhere, others' commits are there, a rule of the other side,
the line, the clock, a person, files that can't be taken, something we never do, or git itself."""

OFF = {
    "core.hooksPath": "/dev/null",
    "core.fsmonitor": "false",
    "core.untrackedCache": "false",
    "core.attributesFile": "/dev/null",
    "core.excludesFile": "/dev/null",
    "core.sshCommand": "false",
    "core.gitProxy": "false",
    "core.askPass": "",
    "core.editor": "false",
    "core.pager": "cat",
    "core.alternateRefsCommand": "true",
    "core.symlinks": "true",
    "core.fileMode": "true",
    "core.ignoreCase": "false",
    "core.precomposeUnicode": "false",
    "core.autocrlf": "false",
    "core.safecrlf": "false",
    "core.quotePath": "off",
    "core.protectHFS": "true",
    "core.protectNTFS": "true",
    "core.sparseCheckout": "false",
    "core.splitIndex": "false",
    "core.commitGraph": "false",
    "core.fsync": "loose-object,reference",
    "safe.bareRepository": "explicit",
    "submodule.recurse": "false",
    "fetch.recurseSubmodules": "false",
    "fetch.fsckObjects": "false",
    "push.recurseSubmodules": "no",
    "push.followTags": "false",
    "push.gpgSign": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "diff.renames": "false",
    "diff.ignoreSubmodules": "none",
    "diff.suppressBlankEmpty": "false",
    "diff.noprefix": "false",
    "diff.mnemonicPrefix": "false",
    "credential.helper": "",
    "commit.gpgSign": "false",
    "tag.gpgSign": "false",
    "gpg.program": "false",
    "log.showSignature": "false",
    "i18n.commitEncoding": "UTF-8",
    "index.threads": "1",
    "pack.threads": "1",
    "advice.detachedHead": "false",
    "color.ui": "false",
    "column.ui": "never",
    "help.autoCorrect": "never",
    "http.followRedirects": "false",
    "http.lowSpeedLimit": "100",
    "http.lowSpeedTime": "60",
    "protocol.allow": "never",
}
"""What every call sets, above whatever a repository says."""


class GitFailed(NotReady):
    """Do what the hint says; `kind` tells a program what went wrong."""

    default_code = "BW419"

    def __init__(self, kind: Kind, what: str, hint: str = "", *, code: str = "", place: Place | None = None) -> None:
        super().__init__(what, hint=hint, code=code, place=place)
        self.kind: Kind = kind


@dataclass(frozen=True, slots=True)
class GitOptions:
    """What one call of git gets besides its arguments; `hide` are texts that never appear in a message."""

    git_dir: Path | None = None
    work_tree: Path | None = None
    index: Path | None = None
    cwd: Path | None = None
    stdin: bytes = b""
    env: Mapping[str, str] = field(default_factory=dict)
    config: Mapping[str, str] = field(default_factory=dict)
    transports: tuple[str, ...] = ()
    keep: int = KEEP
    timeout: float = TIMEOUT
    hide: tuple[str, ...] = ()


PLAIN = GitOptions()


class Git:
    """The git program of this machine."""

    def __init__(self, path: str, cancel: asyncio.Event | None = None) -> None:
        self.path = path
        self.program = find_program(path)
        self.cancel = cancel or asyncio.Event()

    async def run(self, *args: str, call: GitOptions = PLAIN) -> Exit:
        """Run git to its end, whatever its exit code; raises `GitFailed` only when it couldn't run or was ended."""
        argv = (self.program, "--no-replace-objects", "--no-pager", *_place(call), *args)
        cwd = call.cwd or call.work_tree or call.git_dir or Path("/")
        command = Command(
            argv, env=self._environment(call), cwd=cwd, timeout=call.timeout, keep=call.keep, stdin=call.stdin
        )
        try:
            done = await run_process(command, cancel=self.cancel)
        except OSError as error:
            raise GitFailed("git", f"git can't be started: {error.strerror}", place=Place(str(cwd))) from error
        if done.cancelled:
            raise GitFailed("cancelled", f"git {args[0]} was cancelled")
        if done.timed_out:
            raise GitFailed("timeout", f"git {args[0]} did not end within {call.timeout:g} s", "try again later")
        return done

    async def out(self, *args: str, call: GitOptions = PLAIN) -> bytes:
        """The output of a call that has to succeed in full; else `GitFailed` with what git said."""
        done = await self.run(*args, call=call)
        if done.code != 0:
            raise failure(args[0], done, call)
        if done.truncated:
            raise GitFailed("git", f"git {args[0]} gave more than {call.keep} bytes")
        return done.stdout

    async def line(self, *args: str, call: GitOptions = PLAIN) -> str:
        """The output of a call that answers with one line."""
        return os.fsdecode((await self.out(*args, call=call)).rstrip(b"\n"))

    def _environment(self, call: GitOptions) -> dict[str, str]:
        env = {
            "PATH": self.path,
            "HOME": "/nonexistent",
            "LC_ALL": "C",
            "TZ": "UTC",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_ASKPASS": "",
            "GIT_SSH_COMMAND": "false",
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_ADVICE": "0",
            "GIT_LITERAL_PATHSPECS": "1",
            "GIT_PROTOCOL_FROM_USER": "0",
        }
        if call.index is not None:
            env["GIT_INDEX_FILE"] = str(call.index)
        settings = OFF | {f"protocol.{name}.allow": "always" for name in call.transports} | dict(call.config)
        env["GIT_CONFIG_COUNT"] = str(len(settings))
        for number, (key, value) in enumerate(settings.items()):
            env[f"GIT_CONFIG_KEY_{number}"] = key
            env[f"GIT_CONFIG_VALUE_{number}"] = value
        return env | dict(call.env)

    @property
    def serving(self) -> str:
        """The option with which a fetch has a repository of this machine served: any commit, quickly, nothing else.

        Whose repository it is was checked before. Small objects are sent as they are: looking for likenesses among
        them takes longer than to copy them.
        """
        settings = {
            "protocol.allow": "never",
            "safe.directory": "*",
            "uploadpack.allowAnySHA1InWant": "true",
            "pack.window": "0",
        }
        words = [self.program, "--no-replace-objects"]
        words += [word for key, value in settings.items() for word in ("-c", f"{key}={value}")]
        return f"--upload-pack={shlex.join([*words, 'upload-pack'])}"

    async def check_version(self) -> None:
        """Raise `NotReady` where git is too old to be run safely."""
        text = await self.line("version")
        match = re.search(r"(\d+)\.(\d+)", text)
        if match is None or (int(match[1]), int(match[2])) < OLDEST:
            raise NotReady(f"{text} is too old", hint=f"install git {OLDEST[0]}.{OLDEST[1]} or newer", code="BW410")


def file_url(path: Path) -> str:
    """The address of a repository on this machine."""
    return f"file://{quote(os.fsencode(path))}"


def find_program(path: str) -> str:
    """The absolute path of git on a search path."""
    import shutil

    found = shutil.which("git", path=path)
    if found is None:
        raise NotReady("git is not installed", hint=f"install git {OLDEST[0]}.{OLDEST[1]} or newer", code="BW410")
    return str(Path(found).absolute())


def _place(call: GitOptions) -> tuple[str, ...]:
    git_dir = () if call.git_dir is None else (f"--git-dir={call.git_dir}",)
    work_tree = () if call.work_tree is None else (f"--work-tree={call.work_tree}",)
    return (*git_dir, *work_tree)


def said(done: Exit, hide: tuple[str, ...] = ()) -> str:
    """What git said on its way out, as one line that is safe to show."""
    text = done.stderr
    for secret in hide:
        text = text.replace(secret.encode(), b"***") if secret else text
    lines = [plain_line(line, 400) for line in text.replace(b"\r", b"\n").split(b"\n")]
    lines = [line for line in lines if line and not line.startswith(("hint:", "Auto packing"))]
    first = [line for line in lines if line.startswith(("fatal:", "error:", "remote:"))] or lines
    return "; ".join(first[-3:]) or f"it exited with {done.code}"


_NETWORK = (
    r"Could not resolve|Failed to connect|Connection|timed out|error: [45]\d\d|HTTP [45]\d\d|SSL|TLS|certificate|"
    r"early EOF|hung up|RPC failed|unable to access|proxy"
)
_CAUSES: tuple[tuple[Kind, str, str, str], ...] = (
    (
        "declined",
        r"hook declined|protected branch|GH00\d",
        "the rules of the other side decline this",
        "see what they ask for",
    ),
    (
        "rejected",
        r"stale info|non-fast-forward|fetch first|\[(?:remote )?rejected\]",
        "the branch there is not where we left it",
        "look at it: someone else pushed there",
    ),
    (
        "auth",
        r"Authentication failed|could not read (?:User|Pass)|(?:error:|HTTP) 40[13]|denied",
        "the other side does not accept the login",
        "check the token: its scope, its expiry, and whether it may push there",
    ),
    (
        "missing",
        r"repository '.*' not found|(?:error:|HTTP) 404|couldn't find remote ref",
        "there is no such repository or branch, or the token can't see it",
        "check the address and the token",
    ),
    (
        "moved",
        r"(?:error:|HTTP) 30\d|unable to update url base",
        "the repository has moved",
        "use its new address",
    ),
    ("network", _NETWORK, "the other side could not be reached", "try again when the line is back"),
)


def failure(verb: str, done: Exit, call: GitOptions = PLAIN) -> GitFailed:
    """A failed call as an error with its kind, told from what git and the other side said."""
    text = (done.stderr + b"\n" + done.stdout[:4096]).decode("utf-8", "replace")
    words = said(done, call.hide)
    if call.transports and call.transports != ("file",):
        for kind, pattern, what, hint in _CAUSES:
            if re.search(pattern, text):
                return GitFailed(kind, f"{what}: {words}", hint)
    where = call.work_tree or call.git_dir
    return GitFailed("git", f"git {verb}: {words}", place=Place(str(where)) if where else None)
