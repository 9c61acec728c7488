"""The node kind `worktree`: a tree of its own for a run. It is claimed, looked at, kept as a branch, or released.

Each deed can be done again after a crash: a claim finds the worktree it made, a branch that is there stays.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from bailiwick import crashpoints
from bailiwick.clock import Clock
from bailiwick.config.service import Config
from bailiwick.engine.events import Failure
from bailiwick.engine.graph import Node
from bailiwick.engine.graph import Work as WorkNode
from bailiwick.engine.render import Lookup, Rendered, Renderer, RenderFailed
from bailiwick.errors import BailiwickError
from bailiwick.gate.nodes import told_of
from bailiwick.git.names import shown
from bailiwick.git.objects import TreeChange
from bailiwick.git.store import GitStore
from bailiwick.git.worktrees import Worktree, Worktrees
from bailiwick.ids import Json
from bailiwick.pipelines.briefing import gate_commands
from bailiwick.pipelines.model import CONVENTIONS_KEPT, WorktreeInfo, branch_name, choose_conventions
from bailiwick.proposals.message import UNFINISHED
from bailiwick.runtime.kinds import AttemptRequest, Done, Failed, Io, declared
from bailiwick.sandbox.service import Sandboxes

NO_TREE = "BW485"
_TEXTS = ("repository", "base", "title", "branch")
_MARK = 12
NAMED = 4
"""Changed files that are told one by one."""
GIVEN = 200
"""Changed paths that a workflow gets, of very many the first."""


@dataclass(frozen=True, slots=True)
class WorktreeRequest:
    """One deed, rendered."""

    do: str
    repository: Path
    base: str
    title: str
    branch: str
    heal: bool
    known_red: tuple[str, ...]


@dataclass(slots=True)
class WorktreeKind:
    """Does what a `worktree` node says. `fence` opens the sandbox in which a claim looks at its base."""

    config: Config
    clock: Clock
    sandboxes: Callable[[], Awaitable[Sandboxes]]

    def prepare(self, node: Node, lookup: Lookup, renderer: Renderer) -> Rendered:
        """The node's fields as plain values."""
        if not isinstance(node, WorkNode):
            raise RenderFailed("not a worktree node")
        spec, missing = node.spec, dict[str, None]()
        value: dict[str, Json] = {"do": spec["do"], "heal": bool(spec.get("heal"))}
        for name in _TEXTS:
            made = renderer.text(str(spec.get(name) or ""), lookup)
            value[name] = made.value
            missing.update(dict.fromkeys(made.missing))
        listed = renderer.value(spec.get("known_red") or [], lookup)
        missing.update(dict.fromkeys(listed.missing))
        value["known_red"] = listed.value if isinstance(listed.value, list) else []
        return Rendered(value, tuple(missing))

    async def attempt(self, request: AttemptRequest, io: Io) -> Done | Failed:
        """One deed."""
        asked = _read(request.prepared)
        deeds: dict[str, Callable[[WorktreeRequest, GitStore, AttemptRequest, Io], Awaitable[dict[str, Json]]]] = {
            "claim": self._claim,
            "changes": self._changes,
            "keep": self._keep,
            "release": self._release,
        }
        try:
            git_store = await GitStore.open(self.config.paths.state, asked.repository, cancel=io.cancel)
            return Done(declared(request.node, await deeds[asked.do](asked, git_store, request, io)))
        except BailiwickError as error:
            kind = "cancelled" if io.cancel.is_set() else "not_ready"
            hint = f" ({error.hint})" if error.hint else ""
            return Failed(Failure(kind, f"{error.what}{hint}", {"code": error.code}))

    @property
    def _worktrees(self) -> Worktrees:
        return Worktrees(self.config.paths.state, self.clock)

    async def _claim(
        self, asked: WorktreeRequest, git_store: GitStore, request: AttemptRequest, io: Io
    ) -> dict[str, Json]:
        from bailiwick.pipelines.basis import BaseInspector

        commit = await git_store.resolve(asked.base or "HEAD")
        sandboxes = await self.sandboxes()
        lookout = BaseInspector(
            self.config, git_store=git_store, sandboxes=sandboxes, clock=self.clock, cancel=io.cancel, show=io.show
        )
        basis = await lookout.look(commit, await lookout.spec(commit))
        if not asked.heal:
            basis.require_green(asked.known_red)
        branch = asked.branch or branch_name(asked.title, request.run)
        worktree = await self._worktrees.make(git_store, request.run, commit, branch, prepared=basis.names)
        io.show(f"worktree {worktree.tree} on {worktree.branch} from {commit[:12]}")
        name, text = await self._conventions(git_store, commit)
        work = WorktreeInfo(
            tree=str(worktree.tree),
            base=commit,
            base_tree=await git_store.tree_of(commit),
            branch=worktree.branch,
            repository=str(git_store.repository),
            environment=basis.environment,
            marker=_marker(text),
            conventions_file=name,
            conventions=text,
            checks=gate_commands(basis.spec),
            can_try=sandboxes.sandbox.name != "none",
        )
        if not asked.heal:
            io.observe({"told": f"{worktree.branch} from {commit[:12]}, whose gate is green"})
            return {"work": work.to_json()}
        io.observe(told_of(basis.report))
        return {"work": work.to_json(), **basis.outputs()}

    async def _conventions(self, git_store: GitStore, commit: str) -> tuple[str, str]:
        """The conventions file of the base commit, and as much of its text as a brief may hold."""
        from bailiwick.terminal.output import clean

        name = choose_conventions(await git_store.files(commit), self.config.get("conventions"))
        raw = await git_store.blob(commit, name) if name else None
        if name is None or raw is None:
            return "", ""
        return name, clean(raw[:CONVENTIONS_KEPT].decode("utf-8", "replace"), lines=True).strip()

    async def _changes(
        self, asked: WorktreeRequest, git_store: GitStore, request: AttemptRequest, io: Io
    ) -> dict[str, Json]:
        worktree = await self._found(request)
        tree, changes = await _changes(git_store, worktree)
        io.observe({"told": changes_told(changes), "good": bool(changes)})
        paths = [change.path for change in changes[:GIVEN]]
        return {"change": {"tree": tree, "count": len(changes), "paths": paths}}

    async def _keep(
        self, asked: WorktreeRequest, git_store: GitStore, request: AttemptRequest, io: Io
    ) -> dict[str, Json]:
        """What there is of the work becomes a commit on its branch; then the worktree can go."""
        worktree = await self._worktrees.find(request.run)
        if worktree is None:
            await self._worktrees.clear(request.run)
            return {"kept": await _kept_before(git_store, request.run)}
        tree, changes = await _changes(git_store, worktree)
        kept = {"branch": "", "commit": "", "base": worktree.base}
        if changes:
            commit = await git_store.commit(
                tree,
                (worktree.base,),
                f"{UNFINISHED}\n\nRun: {request.run}\n",
                self._author(),
                when=worktree.created,
            )
            there = await git_store.branch_value(worktree.branch)
            if there != commit:
                await git_store.branch(worktree.branch, commit, expect=there if there == worktree.base else None)
            await git_store.keep(request.run, commit)
            io.observe({"told": f"{worktree.branch} holds what there is"})
            kept |= {"branch": worktree.branch, "commit": commit}
            crashpoints.reach("work.kept")
        await self._worktrees.clear(request.run)
        git_store.forget(worktree.tree)
        return {"kept": kept}

    def _author(self) -> str:
        from bailiwick.proposals.message import DEFAULT_AUTHOR

        return str(self.config.get("commit.author") or DEFAULT_AUTHOR)

    async def _release(
        self, asked: WorktreeRequest, git_store: GitStore, request: AttemptRequest, io: Io
    ) -> dict[str, Json]:
        worktree = await self._worktrees.find(request.run)
        await self._worktrees.clear(request.run)
        if worktree is not None:
            git_store.forget(worktree.tree)
        return {}

    async def _found(self, request: AttemptRequest) -> Worktree:
        from bailiwick.errors import NotReady

        worktree = await self._worktrees.find(request.run)
        if worktree is None:
            raise NotReady("the worktree of this run is gone", hint="start the work again with --fresh", code=NO_TREE)
        return worktree


def changes_told(changes: Sequence[TreeChange]) -> str:
    """The changed files with the lines added and removed, in one sentence."""
    if not changes:
        return "nothing"
    parts = [f"{shown(one.path)} {_lines(one)}" for one in changes[:NAMED]]
    more = [f"{len(changes) - NAMED} more files"] if len(changes) > NAMED else []
    return ", ".join(parts + more)


def _lines(change: TreeChange) -> str:
    if change.added is None or change.deleted is None:
        return "(binary)"
    return f"+{change.added} −{change.deleted}"


class PipelineServices(Protocol):
    """What this kind needs of the process it runs in."""

    config: Config
    clock: Clock

    async def sandboxes(self) -> Sandboxes:
        """The sandbox in which a claim looks at its base."""


def make_kind(shared: PipelineServices) -> WorktreeKind:
    """The kind, for the table of kinds."""
    return WorktreeKind(shared.config, shared.clock, shared.sandboxes)


async def _kept_before(git_store: GitStore, run: str) -> dict[str, str]:
    """What an attempt that a crash cut off has kept of a run: the branch that holds its unfinished work."""
    for commit in await git_store.kept(run):
        said = await git_store.git.line("show", "-s", "--format=%P%x00%s", commit, call=git_store.call())
        parents, _, subject = said.partition("\0")
        branches = await git_store.branches_at(commit) if subject == UNFINISHED else ()
        if branches:
            return {"branch": branches[0], "commit": commit, "base": parents}
    return {"branch": "", "commit": "", "base": ""}


async def _changes(git_store: GitStore, worktree: Worktree) -> tuple[str, tuple[TreeChange, ...]]:
    """The tree of a worktree as it is now, and what differs from its base."""
    tree = await git_store.snapshot(worktree.tree, exclude=worktree.prepared)
    return tree, await git_store.changes(worktree.base, tree)


def _read(prepared: Json) -> WorktreeRequest:
    return WorktreeRequest(
        prepared["do"],
        repository=Path(prepared["repository"]),
        base=prepared["base"],
        title=prepared["title"],
        branch=prepared["branch"],
        heal=prepared["heal"],
        known_red=tuple(str(item) for item in prepared["known_red"]),
    )


def _marker(text: str) -> str:
    """A mark that nobody could have written beforehand."""
    while (made := secrets.token_hex(_MARK)) in text:
        pass
    return made
