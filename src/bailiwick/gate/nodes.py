"""The node kind `gate`: the files of a worktree go through the gate; what it found is data for the graph."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from bailiwick.clock import Clock
from bailiwick.config.service import Config
from bailiwick.engine.events import Failure
from bailiwick.engine.graph import Node, Work
from bailiwick.engine.render import Lookup, Rendered, Renderer, RenderFailed
from bailiwick.environments.prepared import EnvironmentFailed
from bailiwick.errors import BailiwickError, NotReady
from bailiwick.gate.from_config import gate_for, places_of
from bailiwick.gate.headline import details, headline, told
from bailiwick.gate.model import GateReport
from bailiwick.gate.port import Judge
from bailiwick.gate.report import failing_text, signature
from bailiwick.gate.service import GateInterrupted, GateOptions, GateRequest, environment_builder, run_gate, try_prepare
from bailiwick.git.store import GitStore
from bailiwick.ids import Json
from bailiwick.journal.port import Store
from bailiwick.runtime.authors import authors_of
from bailiwick.runtime.kinds import AttemptRequest, Done, Failed, Io, declared
from bailiwick.sandbox.service import Sandboxes

OUTPUTS = (
    "verdict", "headline", "report", "digest", "failing", "findings", "tree_id", "wanted", "doubted", "signature",
    "seconds",
)  # fmt: skip
"""What a `gate` node gives."""

_TEXTS = ("repository", "tree", "base", "reason", "title", "issue")
_LISTS = ("allow", "known_red", "wanted")


@dataclass(slots=True)
class GateKind:
    """Runs the gate once; each attempt starts from nothing. `fence` opens the sandbox that checks run in.

    `judge` makes who asks models for an opinion, `authors` says which models answered in a run so far.
    """

    config: Config
    clock: Clock
    sandboxes: Callable[[], Awaitable[Sandboxes]]
    judge: Callable[[], Judge] | None = None
    authors: Callable[[str], Awaitable[tuple[str, ...]]] | None = None

    def prepare(self, node: Node, lookup: Lookup, renderer: Renderer) -> Rendered:
        """The fields as plain values, each rendered once."""
        if not isinstance(node, Work):
            raise RenderFailed("not a gate node")
        missing: dict[str, None] = {}
        value: dict[str, Json] = {}
        for name in _TEXTS:
            made = renderer.text(str(node.spec.get(name) or ""), lookup)
            missing.update(dict.fromkeys(made.missing))
            value[name] = str(made.value).strip()
        for name in _LISTS:
            made = renderer.value(node.spec.get(name) or [], lookup)
            missing.update(dict.fromkeys(made.missing))
            value[name] = [str(item) for item in made.value] if isinstance(made.value, list) else []
        return Rendered(value, tuple(missing))

    async def attempt(self, request: AttemptRequest, io: Io) -> Done | Failed:
        """Take the files as they are now, and check them."""
        try:
            report = await self._run(request.prepared, request.run, io)
        except GateInterrupted:
            return Failed(Failure("cancelled", "the gate was ended before it was done"))
        except BailiwickError as error:
            kind = "cancelled" if io.cancel.is_set() else "not_ready"
            return Failed(Failure(kind, error.sentence, {"code": error.code}))
        text = failing_text(report)
        made = document_of(report)
        io.observe({"verdict": report.verdict, "report": report.digest, "tree": report.tree, **told_of(report)})
        io.show(f"gate: {headline(report)}")
        return Done(declared(request.node, made), {"stdout": text})

    async def _run(self, asked: dict[str, Json], run: str, io: Io) -> GateReport:
        sandboxes = await self.sandboxes()
        git_store = await GitStore.open(self.config.paths.state, Path(asked["repository"]), cancel=io.cancel)
        base = await git_store.resolve(asked["base"])
        spec = await gate_for(self.config, git_store, base, sandboxes)
        judged = any(check.kind == "judge" for check in spec.checks)
        judge = self.judge() if judged and self.judge is not None else None
        places = replace(places_of(self.config), judge=judge)
        tree = Path(asked["tree"])
        if not tree.is_dir():
            raise NotReady(f"there is no directory {tree}", hint="start the work again", code="BW452")
        how: GateOptions = {"cancel": io.cancel, "show": io.show, "clock": self.clock}
        prepared = await try_prepare(spec, base, environment_builder(git_store, sandboxes, places, **how))
        how["prepared"] = prepared
        names = () if isinstance(prepared, EnvironmentFailed) else prepared.names
        taken = await git_store.survey(tree, exclude=names)
        ask = GateRequest(
            base=base,
            tree=taken.tree,
            allow=tuple(asked["allow"]),
            known_red=tuple(asked["known_red"]),
            title=asked["title"],
            wanted=tuple(asked["wanted"]),
            reason=asked["reason"],
            issue=asked["issue"],
            authors=await self.authors(run) if judged and self.authors is not None else (),
        )
        return await run_gate(ask, spec, git_store=git_store, sandboxes=sandboxes, places=places, **how)


class GateServices(Protocol):
    """What this kind needs of the process it runs in."""

    config: Config
    clock: Clock

    store: Store

    async def sandboxes(self) -> Sandboxes:
        """The sandbox that checks run in."""

    def judge(self) -> Judge:
        """Who asks models for an opinion."""


def make_kind(shared: GateServices) -> GateKind:
    """The kind, for the table of kinds."""

    async def authors(run: str) -> tuple[str, ...]:
        return tuple(author.name for author in await authors_of(shared.store, run))

    return GateKind(shared.config, clock=shared.clock, sandboxes=shared.sandboxes, judge=shared.judge, authors=authors)


def document_of(report: GateReport) -> dict[str, Json]:
    """What a node gives: the verdict, the report with its digest, and what the next step needs of it."""
    listed = [*report.findings, *report.weakening, *(f for check in report.checks for f in check.findings)]
    return {
        "verdict": report.verdict,
        "headline": headline(report),
        "report": report.to_json(),
        "digest": report.digest,
        "failing": failing_text(report),
        "findings": [finding.to_json() for finding in listed],
        "tree_id": report.tree,
        "wanted": list(report.wanted),
        "doubted": _doubted(report),
        "signature": signature(report),
        "seconds": round(report.seconds, 3),
    }


def _doubted(report: GateReport) -> list[Json]:
    """What a person has to look at: the path that they would approve, and a name that stays when lines move."""
    return [{"path": doubt.path, "name": f"{doubt.path}: {doubt.what}"} for doubt in report.doubts]


def told_of(report: GateReport) -> dict[str, Json]:
    """What people are told of a gate that was run: whether it is green, one sentence, and lines that back it up."""
    return {"told": told(report), "good": report.verdict == "green", "lines": list(details(report))}
