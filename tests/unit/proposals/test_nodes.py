"""The `propose` node on the real runtime: what it believes, what it gives, and what the engine hears of a failure."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from bailiwick.config.service import Config, load_config
from bailiwick.config.variables import Environment
from bailiwick.engine import graph as g
from bailiwick.engine.events import EffectFinished, Failure
from bailiwick.gate.model import CheckResult, GateReport
from bailiwick.gate.report import store_report
from bailiwick.git.runner import GitFailed
from bailiwick.git.store import GitStore
from bailiwick.ids import Json
from bailiwick.journal.codec import decode
from bailiwick.journal.sqlite import SqliteStore
from bailiwick.lang.delivery import PROPOSE_FIELDS as FIELDS
from bailiwick.proposals.forges.port import ForgeFailed
from bailiwick.proposals.model import Proposal
from bailiwick.proposals.nodes import ProposeKind, account, failure_of
from bailiwick.proposals.service import NotProposable
from bailiwick.proposals.store import ProposalStore
from bailiwick.runs.foreground import DONE, FAILED
from bailiwick.runtime.assemble import KINDS, Runtime
from bailiwick.runtime.effects import KindTable
from bailiwick.runtime.kinds import AttemptRequest, Done, Failed, Io
from tests.unit.proposals.stage import BRANCH, git, make_repository, run
from tests.unit.runtime.stage import RuntimeSetup, Scripted, at_once, chain, work

SPEC: dict[str, Json] = {
    "repository": "{{ repository }}", "report": "{{ report }}", "tree": "{{ tree }}", "base": "{{ base }}",
    "branch": BRANCH, "kind": "issue-to-pr", "title": "{{ issue.title }}", "issue": "{{ issue }}", "summary": "did it",
}  # fmt: skip
ISSUE = {"ref": "#7", "stem": "discount-is-wrong", "title": "Discount is wrong", "text": "It is {{ not a template }}."}


@dataclass
class ProposalNodeSetup:
    """A repository, a gated change, and the configuration that finds the state directory."""

    config: Config
    repository: Path
    context: dict[str, Json]
    report: GateReport
    proposals: tuple[Proposal, ...] = ()


@pytest.fixture
def repo(tmp_path: Path) -> ProposalNodeSetup:
    """A change that the gate passed."""
    repository = make_repository(tmp_path / "repo")
    config = load_config(repository, {}, environment=Environment({"BAILIWICK_HOME": str(tmp_path / "home")}))

    async def change() -> tuple[str, str]:
        git_store = await GitStore.open(config.paths.make_state(), repository)
        base = await git_store.resolve("HEAD")
        return base, await git_store.write(base, {"shop.py": b"fixed\n"})

    base, tree = run(change())
    checks = (CheckResult("tests", "pytest", "tests", "passed", code=0),)
    report = GateReport("green", tree, base, tree, "p", "e", "bwrap", checks)
    store_report(config.paths.state, report)
    context = {"repository": str(repository), "report": report.to_json(), "tree": tree, "base": base, "issue": ISSUE}
    return ProposalNodeSetup(config, repository, context, report)


class Priced(Scripted):
    """An agent that costs something."""

    async def attempt(self, request: AttemptRequest, io: Io) -> Done | Failed:
        """Say nothing, dearly."""
        usage = {"input": 10, "output": 10, "usd": 0.25}
        return Done({}, {"backend": "claude", "model": "opus", "usage": usage})


def _play(repo: ProposalNodeSetup, tmp_path: Path, *before: g.Node, **changes: Any) -> tuple[int, dict[str, Json]]:
    """Walk some nodes and then a `propose` node; the exit code, the context at the end, and what failed."""
    stage = RuntimeSetup(tmp_path, Priced(at_once))
    outputs = tuple(g.Output(key=key) for key in ("proposal", "published", "next_commands"))
    node = g.Work(id="propose", type="propose", spec={**SPEC, **changes.pop("spec", {})}, outputs=outputs)
    graph = chain(*before, node, vars={**repo.context, **changes})
    seen: list[tuple[int, dict[str, Json]]] = []

    async def scene(runtime: Runtime) -> None:
        kinds = {"propose": lambda: ProposeKind(repo.config, runtime.store, runtime.clock)}
        runtime.kinds = KindTable({**KINDS, "agent": lambda: stage.kind, **kinds})
        verdict = await stage.walk(runtime, graph)
        repo.proposals = tuple(await ProposalStore(runtime.store, repo.config.paths.state).all())
        state = await runtime.library.state(verdict.row.id)
        events = [decode(row) for row in await runtime.store.read(verdict.row.id)]
        failures = [e.failure for e in events if isinstance(e, EffectFinished) and e.failure]
        seen.append((verdict.code, {**state.context(), "failures": failures}))

    stage.play(scene)
    return seen[0]


def test_a_gated_tree_becomes_a_proposal_with_what_the_journal_knows(repo: ProposalNodeSetup, tmp_path: Path) -> None:
    """Models and cost come from the journal and the ledger, the commit's subject from the issue's stem."""
    code, context = _play(repo, tmp_path, work("think", "agent"))
    assert code == DONE
    (proposal,) = repo.proposals
    assert (proposal.models, str(proposal.cost), proposal.issue) == (("claude/opus",), "$0.25", "#7")
    assert proposal.asked == ISSUE["text"]
    assert git(repo.repository, "log", "-1", "--format=%s", BRANCH) == "Agent: implement discount-is-wrong"
    assert context["proposal"]["id"] == proposal.id
    assert context["proposal"]["text"].splitlines()[0] == "gate passed, proposing, NOT merging"
    assert (context["published"], context["next_commands"][0]) == (False, f"git show {BRANCH}")


def test_a_report_that_the_gate_did_not_store_is_not_believed(repo: ProposalNodeSetup, tmp_path: Path) -> None:
    """An agent's output can be named `report` too: what counts is out of its reach."""
    forged = {**repo.report.to_json(), "proof": ["tests/made_up.py::test"]}
    code, context = _play(repo, tmp_path, report=forged)
    assert (code, context["failures"][0]["kind"]) == (FAILED, "not_ready")
    assert git(repo.repository, "branch", "--list", "agent/*") == ""


@pytest.mark.parametrize("report", ["", "nonsense", {"verdict": "green"}, None, 7])
def test_a_report_that_is_none_is_a_failure_in_words(repo: ProposalNodeSetup, tmp_path: Path, report: Json) -> None:
    """A workflow of one's own may hand anything over."""
    code, context = _play(repo, tmp_path, report=report)
    assert code == FAILED
    assert "gate report" in context["failures"][0]["message"]


def test_a_report_may_be_given_by_its_digest(repo: ProposalNodeSetup, tmp_path: Path) -> None:
    """The digest is enough: the report is read from the state directory in any case."""
    code, _ = _play(repo, tmp_path, report=repo.report.digest)
    assert code == DONE


def test_a_scope_that_rests_on_a_default_proposes_nothing(repo: ProposalNodeSetup, tmp_path: Path) -> None:
    """The journal says which nodes defaulted; the failure names them."""
    asked = g.Ask(id="really", question="?", timeout=0.001, default="yes", declared=True)
    code, context = _play(repo, tmp_path, asked)
    assert (code, context["failures"][0]["kind"]) == (FAILED, "not_proposable")
    assert "really" in context["failures"][0]["message"]
    assert git(repo.repository, "branch", "--list", "agent/*") == ""


def test_a_default_that_is_accepted_holds_nothing_up(repo: ProposalNodeSetup, tmp_path: Path) -> None:
    """`accept_defaulted: true` is the author's word."""
    asked = g.Ask(id="really", question="?", timeout=0.001, default="yes", declared=True, accept_defaulted=True)
    code, _ = _play(repo, tmp_path, asked)
    assert code == DONE


def test_a_repository_that_is_none_is_a_failure_in_words(repo: ProposalNodeSetup, tmp_path: Path) -> None:
    """The node fails, the run tells why, nothing crashes."""
    empty = tmp_path / "empty"
    empty.mkdir()
    code, context = _play(repo, tmp_path, repository=str(empty))
    assert (code, context["failures"][0]["kind"]) == (FAILED, "not_ready")


@pytest.mark.parametrize(
    ("error", "kind", "wait"),
    [
        (ForgeFailed("auth", "w", hint="h"), "auth", None),
        (ForgeFailed("rate_limit", "w", retry_after=30.0), "rate_limit", 30.0),
        (ForgeFailed("unavailable", "w"), "overloaded", None),
        (ForgeFailed("unreachable", "w"), "unreachable", None),
        (ForgeFailed("timeout", "w"), "timeout", None),
        (ForgeFailed("conflict", "w"), "forge", None),
        (GitFailed("network", "w"), "unreachable", None),
        (GitFailed("auth", "w"), "auth", None),
        (GitFailed("rejected", "w"), "git", None),
        (NotProposable("w"), "not_proposable", None),
    ],
)
def test_the_engine_hears_a_class_it_knows(error: Any, kind: str, wait: float | None) -> None:
    """What may be tried again, when, and what never helps is the engine's to decide, by these names."""
    failure = failure_of(error)
    assert isinstance(failure, Failure)
    assert (failure.kind, (failure.detail or {}).get("retry_after")) == (kind, wait)


def test_the_fields_are_those_that_are_rendered() -> None:
    """A field that nobody reads would be a promise without a keeper."""
    rendered = {"report", "issue", *(name for name in SPEC), "proposal", "onto"}
    assert {field.name for field in FIELDS} == rendered


def test_a_run_without_agents_cost_nothing_and_names_no_model(repo: ProposalNodeSetup, tmp_path: Path) -> None:
    """Nothing spent is known to be nothing; that is not the same as unknown."""
    _play(repo, tmp_path)

    async def look() -> tuple[str, tuple[str, ...]]:
        store = await SqliteStore.open(tmp_path / "bailiwick.db", now=lambda: 0.0)
        try:
            row = (await store.runs())[0]
            models, cost = await account(store, row.id, row.root_id, lambda _backend: True)
            return str(cost), models
        finally:
            await store.close()

    assert run(look()) == ("$0.00", ())
