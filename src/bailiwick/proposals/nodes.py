"""The node kind `propose`: a gated tree becomes a proposal. It believes only reports that the gate itself stored."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from bailiwick.clock import Clock
from bailiwick.config.service import Config, load_config
from bailiwick.engine.events import Failure
from bailiwick.engine.failures import Detail, FailureKind
from bailiwick.engine.graph import Node, Work
from bailiwick.engine.render import Lookup, Rendered, Renderer, RenderFailed
from bailiwick.engine.state import Scope, State
from bailiwick.errors import BailiwickError
from bailiwick.gate.model import read_report
from bailiwick.git.runner import GitFailed
from bailiwick.ids import Json
from bailiwick.journal.port import Store
from bailiwick.proposals.forges.local import PASSED, next_commands
from bailiwick.proposals.forges.port import ForgeFailed
from bailiwick.proposals.model import ChangeCost, Proposal
from bailiwick.proposals.repository import RepositoryProposals, open_repository
from bailiwick.proposals.service import NotProposable, ProposalOutcome, ProposeAsk, propose
from bailiwick.runtime.authors import authors_of
from bailiwick.runtime.history import RunReader
from bailiwick.runtime.kinds import AttemptRequest, Done, Failed, Io

_TEXTS = ("repository", "branch", "base", "tree", "title", "kind", "summary", "proposal", "onto")
_FORGE = {
    "auth": FailureKind.AUTH, "permission": FailureKind.AUTH, "rate_limit": FailureKind.RATE_LIMIT,
    "unavailable": FailureKind.OVERLOADED, "unreachable": FailureKind.UNREACHABLE,
    "malformed": FailureKind.UNREACHABLE, "timeout": FailureKind.TIMEOUT,
}  # fmt: skip
_GIT = {"auth": FailureKind.AUTH, "network": FailureKind.UNREACHABLE, "timeout": FailureKind.TIMEOUT}


@dataclass(slots=True)
class ProposeKind:
    """Makes one proposal per run; doing it again changes nothing that is done. `subscribed`: is a backend prepaid."""

    config: Config
    store: Store
    clock: Clock
    by: str = "bailiwick"
    subscribed: Callable[[str], bool] = lambda _backend: False

    def prepare(self, node: Node, lookup: Lookup, renderer: Renderer) -> Rendered:
        """The fields, rendered once; what they hold is data from here on."""
        if not isinstance(node, Work):
            raise RenderFailed("not a propose node")
        missing: dict[str, None] = {}
        value: dict[str, Json] = {}
        for name in _TEXTS:
            made = renderer.text(str(node.spec.get(name) or ""), lookup)
            missing.update(dict.fromkeys(made.missing))
            value[name] = str(made.value).strip()
        for name in ("report", "issue"):
            made = renderer.value(node.spec.get(name), lookup)
            missing.update(dict.fromkeys(made.missing))
            value[name] = made.value
        value["report"] = _digest(value["report"])
        return Rendered(value, tuple(missing))

    async def attempt(self, request: AttemptRequest, io: Io) -> Done | Failed:
        """Propose once."""
        try:
            repo = await self._desk(Path(request.prepared["repository"]))
            report = repo.report(str(request.prepared["report"]))
            ask = await self._ask(request, report.tree)
            outcome = await propose(ask, report, repo)
        except (ForgeFailed, GitFailed, NotProposable) as error:
            return Failed(failure_of(error))
        except BailiwickError as error:
            return Failed(Failure("not_ready", error.sentence))
        told = await _told(outcome.proposal, repo)
        io.observe({"proposal": outcome.proposal.id, "number": outcome.proposal.number, "told": told})
        text = spoken(outcome)
        io.show(text)
        return Done(_outputs(request.node, document_of(outcome)), {"stdout": text})

    async def _desk(self, repository: Path) -> RepositoryProposals:
        here = self.config.repository
        same = here is not None and here.root == repository
        config = self.config if same else load_config(repository, {})
        return await open_repository(config, repository, self.store, self.clock, by=self.by)

    async def _ask(self, request: AttemptRequest, tree: str) -> ProposeAsk:
        asked: dict[str, Json] = request.prepared
        issue = asked["issue"] if isinstance(asked["issue"], dict) else {"ref": asked["issue"]}
        row = await self.store.run(request.run)
        models, cost = await account(self.store, request.run, request.root, self.subscribed)
        return ProposeAsk(
            run=request.run,
            branch=asked["branch"],
            base=asked["base"],
            tree=asked["tree"] or tree,
            title=str(issue.get("stem") or asked["title"]),
            kind=asked["kind"] or "issue-to-pr",
            when=row.created_at if row else self.clock.now(),
            asked=str(issue.get("text") or ""),
            issue=str(issue.get("ref") or ""),
            said=asked["summary"],
            models=models,
            cost=cost,
            degraded=await defaulted(self.store, request.run, request.scope),
            proposal=asked["proposal"],
            onto=asked["onto"],
        )


async def _told(proposal: Proposal, repo: RepositoryProposals) -> str:
    """The proposal in one sentence: its branch, how much it changes, and where it is open."""
    changes = await repo.git_store.changes(proposal.base, proposal.commit)
    added, deleted = sum(one.added or 0 for one in changes), sum(one.deleted or 0 for one in changes)
    where = f" → {proposal.url}" if proposal.url else ""
    return f"{proposal.branch}  +{added} −{deleted}{where}"


class ProposalServices(Protocol):
    """What this kind needs of the process it runs in."""

    config: Config
    store: Store
    clock: Clock
    by: str
    subscribed: Callable[[str], bool]


def make_kind(shared: ProposalServices) -> ProposeKind:
    """The kind, for the table of kinds."""
    return ProposeKind(
        shared.config, store=shared.store, clock=shared.clock, by=shared.by, subscribed=shared.subscribed
    )


def spoken(outcome: ProposalOutcome) -> str:
    """What a person is told: where it is, or how to look at what stayed here."""
    proposal = outcome.proposal
    if outcome.published:
        return f"{PASSED}\n{proposal.url}"
    lines = [PASSED, *next_commands(proposal)]
    if outcome.decision == "ask":
        lines.append(f"not published: {outcome.why}; to allow it: {outcome.commands[-1]}")
    return "\n".join(lines)


def document_of(outcome: ProposalOutcome) -> dict[str, Json]:
    """An outcome as a document."""
    proposal = outcome.proposal
    return {
        "id": proposal.id,
        "status": proposal.status,
        "branch": proposal.branch,
        "base": proposal.base,
        "commit": proposal.commit,
        "url": proposal.url,
        "published": outcome.published,
        "decision": outcome.decision,
        "needs_consent": outcome.decision == "ask",
        "why": outcome.why,
        "next_commands": list(outcome.commands),
        "text": spoken(outcome),
    }


def failure_of(error: ForgeFailed | GitFailed | NotProposable) -> Failure:
    """What the engine is told: a class it knows where waiting or another login may help."""
    words = error.sentence
    if isinstance(error, ForgeFailed):
        kind = str(_FORGE.get(error.kind, "forge"))
        return Failure(kind, words, Detail(evidence=words, retry_after=error.retry_after).to_json())
    if isinstance(error, GitFailed):
        return Failure(str(_GIT.get(error.kind, "git")), words, Detail(evidence=words).to_json())
    return Failure("not_proposable", words)


def _digest(report: Json) -> str:
    """The digest of a report that is given by its digest or whole."""
    if isinstance(report, str) and report.lstrip().startswith("{"):
        try:
            report = json.loads(report)
        except ValueError:
            return ""
    if isinstance(report, dict):
        try:
            return read_report(report).digest
        except (KeyError, TypeError, ValueError):
            return ""
    return report.strip() if isinstance(report, str) else ""


def _outputs(node: Node, made: dict[str, Json]) -> dict[str, Json]:
    """`proposal` is the whole document; other declared keys are its parts. Without declared ones: the document."""
    if not isinstance(node, Work) or not node.outputs:
        return {"proposal": made}
    return {out.key: made if out.key == "proposal" else made.get(out.key, out.default) for out in node.outputs}


async def account(
    store: Store, run: str, root: str, subscribed: Callable[[str], bool]
) -> tuple[tuple[str, ...], ChangeCost]:
    """The models that answered, each once, as `backend/model`, and the cost of the whole run tree.

    It is what the journal of the run and the ledger of its tree say; unknown is not zero.
    """
    authors = await authors_of(store, run)
    spent = [one for one in await store.spend(f"run:{root}") if one.unit == "usd"]
    known = [one.settled or 0.0 for one in spent if one.known and one.settled is not None]
    unknown = [one for one in spent if not one.known]
    usd = sum(known) if known or not unknown else None
    subscription = any(subscribed(backend) for backend in dict.fromkeys(author.backend for author in authors))
    cost = ChangeCost(usd, bool(unknown) and usd is not None, subscription)
    return tuple(author.name for author in authors), cost


async def defaulted(store: Store, run: str, scope: str) -> tuple[str, ...]:
    """The nodes whose defaults a scope rests on: its own, those of the scopes around it and of the runs that called."""
    library, names = RunReader(store), dict[str, None]()
    state = await library.state(run)
    found = _above(state.scopes.get(scope))
    while True:
        names.update(dict.fromkeys(found))
        if state.parent is None:
            return tuple(names)
        child, state = state.run, await library.state(state.parent)
        found = _caller(state, child)


def _above(scope: Scope | None) -> list[str]:
    names: list[str] = []
    while scope is not None:
        names += scope.defaulted
        scope = scope.parent
    return names


def _caller(state: State, child: str) -> list[str]:
    """The defaults of the scope that waits for a child; where none is found, of all."""
    waiting = [scope for scope, wait in state.waits() if wait.id == child]
    return [name for scope in waiting or state.scopes.values() for name in _above(scope)]
