"""Walks the bundled workflows with parts that do as they are told: what is tested is the graph, nothing else."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from bailiwick.clock import SystemClock
from bailiwick.engine.graph import Node, Work
from bailiwick.engine.render import Lookup, Rendered, Renderer
from bailiwick.ids import Json
from bailiwick.journal.rows import WaitFilter
from bailiwick.journal.sqlite import SqliteStore
from bailiwick.lang.load import load
from bailiwick.pipelines.model import Pattern
from bailiwick.processes.owner import current_owner
from bailiwick.runs.control import Control
from bailiwick.runs.foreground import Foreground, RunExit
from bailiwick.runs.start import StartRequest, start
from bailiwick.runtime.assemble import KINDS, Runtime
from bailiwick.runtime.effects import KindTable
from bailiwick.runtime.kinds import AttemptRequest, Done, Failed, Io
from bailiwick.testing.harness import Quiet
from bailiwick.workflows.service import BUNDLED

T = TypeVar("T")
ISSUE = {"ref": "/x.md", "stem": "x", "title": "Round to cents", "text": "Please {{ run.id }}.", "digest": "d"}
WORK = {
    "tree": "/tree", "base": "c0", "base_tree": "t0", "branch": "agent/x-1", "repository": "/repo", "environment": "",
    "marker": "MARK", "conventions_file": "AGENTS.md", "conventions": "Be brief.", "can_try": True,
    "checks": [{"name": "tests", "command": "pytest -q"}],
}  # fmt: skip


def gate(verdict: str, tree: str = "t1", **more: Json) -> dict[str, Json]:
    """What a gate node gives."""
    failed = "failed" if verdict == "red" else "environment" if verdict == "environment" else "passed"
    check = {"name": "tests", "outcome": failed, "findings": [{"what": "the disk is full"}], "hint": ""}
    doubts = more.pop("doubts", [])
    report = {"checks": [check], "taken": more.pop("taken", []), "weakening": [], "doubts": doubts}
    doubted = [{"path": doubt["path"], "name": f"{doubt['path']}: {doubt['what']}"} for doubt in doubts]
    return {
        "verdict": verdict,
        "headline": f"{verdict}: {tree}",
        "report": report,
        "failing": f"{tree} fails",
        "signature": f"{verdict} {tree}",
        "tree_id": tree,
        "wanted": [],
        "doubted": doubted,
        **more,
    }


def doubted(tree: str = "t1", what: str = "reads sys.modules") -> dict[str, Json]:
    """What a gate node gives for a change that a person has to look at although nothing is red."""
    doubt = {"path": "shop/prices.py", "what": what, "line": 3, "patch": "@@ -1 +1 @@\n+import sys"}
    return gate("needs_person", tree, doubts=[doubt], wanted=["shop/prices.py"])


def taken(path: str) -> dict[str, Json]:
    """A change to a protected path."""
    return {"path": path, "change": "changed", "patch": f"--- {path}\n+1", "allowed": False, "rule": "tests/**"}


def answer(outcome: str = "done", **more: Json) -> dict[str, Json]:
    """What an agent gives."""
    return {"outcome": outcome, "reason": "", "summary": "did it", "wants": [], **more}


@dataclass
class Stand:
    """What the parts give, in order (the last one again and again), and what was asked of them."""

    agents: list[dict[str, Json]] = field(default_factory=lambda: [answer()])
    gates: list[dict[str, Json]] = field(default_factory=lambda: [gate("green")])
    changes: list[int] = field(default_factory=lambda: [1])
    first: dict[str, Json] = field(default_factory=lambda: gate("red", "t0"))
    asked: list[tuple[str, dict[str, Json]]] = field(default_factory=list)

    def calls(self, name: str) -> list[dict[str, Json]]:
        """What a node, or the nodes of a kind, were asked."""
        return [spec for node, spec in self.asked if node == name]

    def made(self, node: Work, spec: dict[str, Json]) -> dict[str, Json]:
        """The result of one effect."""
        self.asked.append((node.id, spec))
        match node.type:
            case "agent":
                return _next(self.agents)
            case "gate":
                return _next(self.gates)
            case "propose":
                return {"proposal": {"id": "p1", "text": "gate passed, proposing, NOT merging", "branch": "agent/x-1"}}
            case _:
                return self._worktree(spec)

    def _worktree(self, spec: dict[str, Json]) -> dict[str, Json]:
        match spec["do"]:
            case "claim":
                return {"work": WORK, **(self.first if spec.get("heal") else {})}
            case "changes":
                return {"change": {"tree": "t1", "count": _next(self.changes), "paths": []}}
            case "keep":
                return {"kept": {"branch": "agent/x-1", "commit": "c1", "base": "c0"}}
            case _:
                return {}


def _next(left: list[T]) -> T:
    return left.pop(0) if len(left) > 1 else left[0]


@dataclass
class ScriptedKind:
    """A node kind that renders everything and does what the stand says."""

    stand: Stand

    def prepare(self, node: Node, lookup: Lookup, renderer: Renderer) -> Rendered:
        """Every field as a value; an agent's prompt as text."""
        assert isinstance(node, Work)
        own = {name: value for name, value in node.spec.items() if name != "prompt"}
        made = renderer.value(own, lookup)
        prompt = renderer.file(str(node.spec["prompt"]), lookup).value if "prompt" in node.spec else ""
        return Rendered({**made.value, "prompt": prompt}, made.missing)

    async def attempt(self, request: AttemptRequest, io: Io) -> Done | Failed:
        """The next result."""
        assert isinstance(request.node, Work)
        return Done(self.stand.made(request.node, request.prepared))


@dataclass(frozen=True)
class End:
    """How a walk ended: exit code, the node it ended in, the reason, what is in the context."""

    code: int
    node: str
    reason: str
    context: dict[str, Json]
    questions: list[str]


async def walk(home: Path, pattern: Pattern, stand: Stand, answers: tuple[str, ...] = (), **params: Json) -> End:
    """Walk a pattern to its end, with these answers to its questions in turn; without an answer left it stays open."""
    clock = SystemClock()
    store = await SqliteStore.open(home / "bailiwick.db", now=clock.now)
    kinds = KindTable({**KINDS, **dict.fromkeys(("agent", "gate", "propose", "worktree"), lambda: ScriptedKind(stand))})
    runtime = Runtime(store, clock, home, dict, kinds=kinds)
    given = {"repository": "/repo", **({"issue": ISSUE} if pattern == "issue-to-pr" else {}), **params}
    try:
        row = (await start(runtime, StartRequest(load(BUNDLED / pattern), given, "x"))).row
        verdict, questions = await _answered(runtime, Foreground(runtime, current_owner("test")), row.id, answers)
        state = await runtime.library.state(row.id)
        context = {name: state.lookup("", name) for name in state.names("")}
        return End(verdict.code, str((verdict.row.summary or {}).get("node")), state.reason, context, questions)
    finally:
        await runtime.close()


async def _answered(
    runtime: Runtime, foreground: Foreground, run: str, answers: tuple[str, ...]
) -> tuple[RunExit, list[str]]:
    questions: list[str] = []
    for given in (*answers, None):
        row = await runtime.store.run(run)
        assert row is not None
        verdict = await foreground.walk(row, Quiet())
        waits = await runtime.store.waits(WaitFilter(run_id=run))
        questions += [str(wait.body["question"]) for wait in waits]
        if not waits or given is None:
            break
        await Control(runtime, "test").answer(verdict.row, given, waits[0].id)
    return verdict, questions
