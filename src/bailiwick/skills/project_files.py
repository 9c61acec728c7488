"""Where a call works on a project: each attempt in a copy of its own, and only an accepted one reaches the project.

What is checked is what is brought: after an attempt its copy is taken once, tests run on further copies of that, and
the project gets the bytes that were taken.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from bailiwick.config.paths import Paths, make_private
from bailiwick.errors import BailiwickError, InternalBug
from bailiwick.git.names import shown
from bailiwick.git.objects import FILE, PROGRAM, TreeChange
from bailiwick.ids import digest
from bailiwick.locks import held
from bailiwick.routing.model import CheckOutcome, FileOut, Result
from bailiwick.sandbox.toolchain_trees import HiddenPaths
from bailiwick.skills.copies import Copies
from bailiwick.skills.delivery import FileDelivery, change_fault, deliver, path_fault, write_files
from bailiwick.skills.site import Check, CheckArguments, Which, refused
from bailiwick.skills.text_form import in_the_form_of
from bailiwick.skills.trials import CheckRun, ProjectChecks

if TYPE_CHECKING:
    from bailiwick.sandbox.service import Sandboxes

MOST_FILES = 200
LARGEST_FILE = 2 << 20
LOCKS = "locks"


@dataclass(frozen=True, slots=True)
class CallSetting:
    """What benches of one process share: a way to the sandbox, our directories, a way to take secrets out of texts."""

    sandboxes: Callable[[], Awaitable[Sandboxes]]
    paths: Paths
    home: Path
    clean: Callable[[str], str] = lambda text: text


@dataclass(frozen=True, slots=True)
class Watching:
    """Who watches a call, and what ends it."""

    cancel: asyncio.Event
    show: Callable[[str], None] = lambda _: None


@dataclass(frozen=True, slots=True)
class AttemptFiles:
    """What one attempt left: the site of its checks."""

    copies: Copies
    trials: ProjectChecks
    tree: str
    changes: tuple[TreeChange, ...] = ()
    known: dict[str, CheckRun] = field(default_factory=dict)
    """What the tests said before anything was done, by command: they are run once for all attempts."""

    @property
    def root(self) -> Path:
        """Where the project is."""
        return self.copies.root

    async def read(self, which: Which, path: str) -> bytes | None:
        """The bytes of a file before or after."""
        return await self.copies.read(self._tree(which), path)

    async def sources(self, paths: Iterable[str]) -> dict[str, bytes]:
        """Several files as they were before, for a look at what is in them."""
        return await self.copies.read_some(self.copies.base, paths)

    async def files(self, which: Which) -> tuple[str, ...]:
        """Every path before or after."""
        return await self.copies.files(self._tree(which))

    async def run(self, which: Which, command: str) -> CheckRun:
        """Run the tests once."""
        tree = self._tree(which)
        if tree == self.copies.base and command in self.known:
            return self.known[command]
        tried = await self.trials.run(tree, command)
        if tree == self.copies.base:
            self.known[command] = tried
        return tried

    def _tree(self, which: Which) -> str:
        return self.copies.base if which == "before" else self.tree


@dataclass(slots=True)
class ProjectFiles:
    """The bench of one call on one project. `check` None: nothing can be checked; `writes` False: nothing is brought.

    `open` comes first. It takes the project as it is, and raises where that can't be done.
    """

    project: Path
    setting: CallSetting
    watching: Watching
    check_with: Check | None = None
    asked: CheckArguments = field(default_factory=CheckArguments)
    writes: bool = False
    _copies: Copies | None = None
    _trials: ProjectChecks | None = None
    _work: Path | None = None
    _given: tuple[str, ...] = ()
    _left: AttemptFiles | None = None
    _known: dict[str, CheckRun] = field(default_factory=dict)

    async def open(self) -> AttemptFiles:
        """Take the project; what was there before anything was done is the site given back."""
        sandboxes = await self.setting.sandboxes()
        paths = self.setting.paths
        copies = await Copies.take(self.project, paths.state, sandboxes.scratch, self.watching.cancel)
        self._copies = copies
        self._trials = ProjectChecks(
            sandboxes,
            copies=copies,
            cancel=self.watching.cancel,
            clean=self.setting.clean,
            show=self.watching.show,
            grounds=HiddenPaths(self.setting.home, (paths.state, paths.config, paths.cache, paths.run)),
        )
        return AttemptFiles(copies, self._trials, copies.base, known=self._known)

    async def begin(self) -> Path:
        """A fresh copy for the next attempt."""
        copies = self._opened()
        await self._end_attempt()
        self._work = await copies.checkout(copies.base)
        return self._work

    async def put(self, files: Sequence[FileOut]) -> str:
        """Write a model's files into the copy: all of them, or none with the reason."""
        if not files:
            return ""
        if not self.writes:
            return "this skill writes no files: leave `files` empty"
        found, why = self._sorted_out(files)
        if why:
            return why
        if self._work is None:
            raise InternalBug("files were given before an attempt began")
        self._given = tuple(found)
        return await asyncio.to_thread(write_files, self._work, [(path, data) for path, data in found.items()])

    def _sorted_out(self, files: Sequence[FileOut]) -> tuple[dict[str, bytes], str]:
        """The files by path relative to the project, or why they can't be taken."""
        if len(files) > MOST_FILES:
            return {}, f"{len(files)} files are more than the {MOST_FILES} that a call may write"
        found: dict[str, bytes] = {}
        for file in files:
            path = file.path.removeprefix(f"{self.project}/").removeprefix("./")
            data = file.content.encode("utf-8", "replace")
            if fault := path_fault(path):
                return {}, fault
            if path in found:
                return {}, f"'{shown(path)}' is given twice"
            if len(data) > LARGEST_FILE:
                return {}, f"'{shown(path)}' has more than {LARGEST_FILE >> 20} MB"
            found[path] = data
        return found, ""

    async def check(self, result: Result) -> CheckOutcome:
        """Take what the attempt left, and run the skill's checks on it."""
        try:
            left = await self._take()
        except BailiwickError as error:
            return refused(error.sentence)
        if fault := await self._fault(left):
            return refused(fault)
        if self.check_with is None:
            return CheckOutcome(ok=True, ran=False)
        if result.status != "pass":
            return CheckOutcome(
                ok=False, ran=False, feedback=f"it could not be done ({result.status}): {result.message}"
            )
        try:
            checked = await self.check_with(result, left, self.asked)
        except BailiwickError as error:
            return refused(f"the checks could not be run: {error.sentence}")
        clean = self.setting.clean
        found = {key: clean(part) if isinstance(part, str) else part for key, part in checked.details.items()}
        return replace(checked, output=clean(checked.output), feedback=clean(checked.feedback), details=found)

    async def _take(self) -> AttemptFiles:
        copies, trials = self._opened(), self._trials
        if self._work is None or trials is None:
            raise InternalBug("an attempt was checked before it began")
        self._left = AttemptFiles(copies, trials, await self._surveyed(copies, self._work), known=self._known)
        self._left = replace(self._left, changes=await copies.changes(self._left.tree))
        return self._left

    async def _surveyed(self, copies: Copies, work: Path) -> str:
        """The tree of a copy, after each changed text was written as it was before: its encoding, its line endings."""
        tree = await copies.survey(work)
        texts: list[tuple[str, bytes]] = []
        for change in await copies.changes(tree):
            if change.status != "M" or not {change.old_mode, change.new_mode} <= {FILE, PROGRAM}:
                continue
            if path_fault(change.path):
                continue
            old, new = await copies.read(copies.base, change.path), await copies.read(tree, change.path)
            if old is not None and new is not None and (kept := in_the_form_of(old, new, change.path)) != new:
                texts.append((change.path, kept))
        if texts and not await asyncio.to_thread(write_files, work, texts):
            return await copies.survey(work)
        return tree

    async def _fault(self, left: AttemptFiles) -> str:
        """What no skill may do, whatever its checks say."""
        if left.changes and not self.writes:
            return f"this skill changes no files, but {shown(left.changes[0].path)} was changed"
        if len(left.changes) > MOST_FILES:
            return f"{len(left.changes)} files were changed, more than {MOST_FILES}"
        if fault := change_fault(left.changes):
            return fault
        there = frozenset(await left.files("after"))
        ignored = [path for path in self._given if path not in there]
        return f"'{shown(ignored[0])}' is ignored by the project, so it can't be kept" if ignored else ""

    async def keep(self) -> str:
        """Bring what was checked into the project, if each file there still is as it was."""
        left = self._left
        if left is None or not left.changes:
            return ""
        if not self.writes or change_fault(left.changes):
            return "nothing was written: this skill may not change these files"
        parcels = [await self._parcel(left, change) for change in left.changes]
        lock = make_private(make_private(self.setting.paths.state) / LOCKS) / f"{digest(str(self.project))[:24]}.lock"
        async with held(lock):
            return await asyncio.to_thread(deliver, self.project, parcels)

    async def _parcel(self, left: AttemptFiles, change: TreeChange) -> FileDelivery:
        old = await left.read("before", change.path) if change.status != "A" else None
        new = await left.read("after", change.path) if change.status != "D" else None
        return FileDelivery(change.path, old, new, program=change.new_mode == PROGRAM)

    async def drop(self) -> None:
        """Remove every copy; the project stays as it is."""
        self._work, self._left, self._given = None, None, ()
        copies, self._copies = self._copies, None
        if copies is not None:
            await copies.close()

    async def _end_attempt(self) -> None:
        work, self._work, self._left, self._given = self._work, None, None, ()
        if work is not None:
            await self._opened().discard(work)

    def _opened(self) -> Copies:
        if self._copies is None:
            raise InternalBug("the copy of the project is not open")
        return self._copies
