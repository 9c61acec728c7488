"""Runs a project's tests on a copy of it: in the sandbox, without network, with the project's own tools.

A copy holds no ignored files, so what the project has installed for itself is shown from where it is, read-only:
`.venv`, `venv` and `node_modules` at its top. The copy is also shown at the project's own path, for what is installed
there says that path: scripts of a virtual environment, and packages that were installed to be edited.
"""

from __future__ import annotations

import asyncio
import os
import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from bailiwick.environments.recipes import VENVS
from bailiwick.errors import UsageError
from bailiwick.gate.backends.command import try_command
from bailiwick.gate.backends.pytest_command import PytestCommand, read_call
from bailiwick.gate.backends.pytest_run import PytestRequest, Runner
from bailiwick.gate.outcomes import PytestSession
from bailiwick.gate.port import CheckContext, Which
from bailiwick.gate.run import CommandResult
from bailiwick.gate.shown import shown_lines
from bailiwick.gate.spec import CheckSpec
from bailiwick.sandbox.spec import HOME, INNER, Bind
from bailiwick.sandbox.toolchain_trees import HiddenPaths, as_binds, is_system, program_trees
from bailiwick.sandbox.toolchains import install_hint, resolve_program
from bailiwick.skills.copies import Copies

if TYPE_CHECKING:
    from bailiwick.sandbox.service import Sandboxes

BAD_COMMAND = "BW292"
OUTPUT = 64 * 1024
SECONDS = 300.0
"""How long one run of the tests may take."""
INSTALLED = (*VENVS, "node_modules")
_SHELL = re.compile(r"[|&;<>()$`\n*?\[\]{}~#]|^\s*\w+=")
_TOLD = ("--tb=long", "--color=no", "--continue-on-collection-errors")
"""How pytest has to tell of failures for them to be read, all of them."""
_SYSTEM = tuple(map(Path, ("/etc", "/proc", "/dev", "/sys")))


@dataclass(frozen=True, slots=True)
class CheckRun:
    """One run of the tests. `code` is None where it was ended from outside; `session` is there for pytest only.

    `output` is the end of what was printed, without secrets, and then how it ended.
    """

    code: int | None
    output: str
    session: PytestSession | None = None
    missing: str = ""
    timed_out: bool = False

    @property
    def good(self) -> bool:
        """Whether the command succeeded."""
        return self.code == 0 and not self.missing and not self.timed_out


@dataclass(frozen=True, slots=True)
class CheckCommand:
    """What a caller's line means. `call` is there where it simply starts pytest, `argv` is what is run otherwise."""

    argv: tuple[str, ...]
    call: PytestCommand | None = None


def read_command(line: str, root: Path) -> CheckCommand:
    """A command line without a shell, or with one where it needs that; raises `UsageError` for one that is none.

    Paths below the project are made relative to it: the tests run on a copy.
    """
    if not line.strip() or "\0" in line:
        raise UsageError("test_cmd is empty", hint="such as: pytest -q", code=BAD_COMMAND)
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise UsageError(f"test_cmd can't be read: {error}", hint="close every quote", code=BAD_COMMAND) from error
    if _SHELL.search(_unquoted(line)):
        return CheckCommand(("sh", "-c", line))
    inside = tuple(_relative(word, root) for word in words)
    call = read_call(inside)
    return CheckCommand(inside, None if call is None else replace(call, args=(*call.args, *_TOLD)))


def _unquoted(line: str) -> str:
    """The line without what stands in quotes: a shell would leave that alone."""
    return re.sub(r"'[^']*'|\"[^\"$`]*\"|\\.", "", line)


def _relative(word: str, root: Path) -> str:
    return word.replace(f"{root}/", "", 1) if word.startswith(f"{root}/") else "." if word == str(root) else word


@dataclass(frozen=True, slots=True)
class ProjectChecks:
    """Runs the tests of one project. `clean` takes secrets out of a text; `grounds` says what is never shown."""

    sandboxes: Sandboxes
    copies: Copies
    cancel: asyncio.Event
    clean: Callable[[str], str] = lambda text: text
    show: Callable[[str], None] = lambda _: None
    grounds: HiddenPaths = field(default_factory=HiddenPaths)
    seconds: float = SECONDS

    def check(self, line: str) -> None:
        """Raise `UsageError` for a command that can't be started here, before anything is spent on it."""
        command = read_command(line, self.copies.root)
        program = command.argv[0]
        if command.call is not None or "/" in program or program == "sh":
            return
        own = [self.copies.root / name / "bin" / program for name in VENVS]
        own.append(self.copies.root / "node_modules" / ".bin" / program)
        if resolve_program(program, self.sandboxes.toolchains) is None and not any(os.path.lexists(one) for one in own):
            raise UsageError(
                f"test_cmd starts '{program}', which is not there", hint=install_hint(program), code=BAD_COMMAND
            )

    async def run(self, tree: str, line: str) -> CheckRun:
        """Run a command line once on a fresh copy of a tree."""
        command = read_command(line, self.copies.root)
        self.show(f"running: {line}")
        work = await self.copies.checkout(tree)
        try:
            bench = await self._bench(tree, work)
            if command.call is not None:
                return await self._pytest(command.call, bench)
            spec = CheckSpec("tests", run=command.argv, timeout=self.seconds)
            return self._told(await try_command(spec, bench, "proposed"))
        finally:
            await self.copies.discard(work)

    async def _pytest(self, call: PytestCommand, bench: CheckContext) -> CheckRun:
        ran = await Runner(call, bench, self.seconds).run(PytestRequest("proposed"))
        if ran.missing:
            return CheckRun(127, f"{ran.missing} is not in the sandbox", missing=ran.missing)
        end = ran.end
        code = None if end.timed_out or end.cancelled else end.code
        lines = (*shown_lines(end.stdout, OUTPUT * 3 // 4), *shown_lines(end.stderr, OUTPUT // 4))
        return CheckRun(code, self._output(lines, code), ran.session, timed_out=end.timed_out)

    def _told(self, trial: CommandResult) -> CheckRun:
        if trial.missing:
            return CheckRun(127, f"{trial.missing} is not in the sandbox", missing=trial.missing)
        code = None if trial.timed_out else trial.code
        return CheckRun(code, self._output(trial.lines, code), timed_out=trial.timed_out)

    def _output(self, lines: tuple[str, ...], code: int | None) -> str:
        end = "ended before it was done" if code is None else f"exit code {code}"
        text = self.clean("\n".join(lines))
        if len(text.encode()) > OUTPUT:
            text = text.encode()[-OUTPUT:].decode("utf-8", "ignore")
        return f"{text}\n[{end}]".lstrip("\n")

    async def _bench(self, tree: str, work: Path) -> CheckContext:
        """What a check of the gate needs to run once on this copy."""

        async def fresh(_which: Which, _files: Mapping[str, bytes | None] | None = None, /) -> Path:
            return work

        async def read(_which: Which, path: str) -> bytes | None:
            return await self.copies.read(tree, path)

        async def files(_which: Which) -> tuple[str, ...]:
            return await self.copies.files(tree)

        sandboxes, binds = self.sandboxes, self._binds(work)
        if sandboxes.sandbox.name == "none":
            sandboxes, binds = replace(sandboxes, marks={**sandboxes.marks, **self._link(work)}), ()
        return CheckContext(
            sandboxes,
            environment=binds,
            changes=(),
            fresh=fresh,
            read=read,
            files=files,
            cancel=self.cancel,
            show=self.show,
        )

    def installed(self) -> tuple[str, ...]:
        """The names of what the project has installed for itself; never a link, never what its repository brings."""
        root = self.copies.root
        found = [name for name in INSTALLED if not self.copies.tracks((name,))]
        there = [name for name in found if (root / name).is_dir() and not (root / name).is_symlink()]
        return tuple(name for name in there if name not in VENVS or (root / name / "pyvenv.cfg").is_file())

    def _binds(self, work: Path) -> tuple[Bind, ...]:
        root = self.copies.root
        names = self.installed()
        pythons = [
            tree
            for name in names
            if name in VENVS
            for tree in program_trees(Path(os.path.realpath(root / name / "bin" / "python")), self.grounds)
        ]
        binds = [*as_binds(pythons)]
        if self._has_place(root):
            binds += [Bind(work, root, write=True), *(Bind(root / name, root / name) for name in names)]
        return (*binds, *(Bind(root / name, INNER / name) for name in names))

    def _has_place(self, root: Path) -> bool:
        """Whether the copy can be shown at the project's own path without hiding anything that is needed."""
        installed = tuple(root / name for name in INSTALLED)
        shown = [bind.target for bind in (*self.sandboxes.toolchains.binds, *self.sandboxes.mounts)]
        needed = [place for place in shown if not any(map(place.is_relative_to, installed))]
        hides = any(place.is_relative_to(root) for place in (*needed, INNER, HOME, *_SYSTEM))
        return not hides and not is_system(root) and not any(map(root.is_relative_to, (INNER, *_SYSTEM)))

    def _link(self, work: Path) -> dict[str, str]:
        """Without a sandbox nothing can be shown elsewhere: links in the copy, whose code goes before the project's."""
        for name in self.installed():
            if not os.path.lexists(work / name):
                (work / name).symlink_to(self.copies.root / name, target_is_directory=True)
        code = work / "src" if (work / "src").is_dir() else work
        return {"PYTHONPATH": str(code)} if self.installed() else {}
