"""What proposals of one repository are made with: state, clock, settings, vault, audit, and a cover for secrets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from bailiwick.clock import Clock
from bailiwick.config.service import Config
from bailiwick.config.variables import Environment
from bailiwick.errors import NotFound, NotReady
from bailiwick.gate.model import GateReport
from bailiwick.gate.report import load_report
from bailiwick.git.names import shown
from bailiwick.git.publish import PushRemote
from bailiwick.git.store import GitStore
from bailiwick.ids import Json
from bailiwick.journal.port import Store
from bailiwick.proposals.consent import Consent, Consents, scope_of
from bailiwick.proposals.document import ProposalFacts, render
from bailiwick.proposals.forges.port import ForgeAccess, PushTarget
from bailiwick.proposals.model import Proposal
from bailiwick.proposals.settings import ProposalSettings, read_settings
from bailiwick.proposals.store import ProposalStore
from bailiwick.redaction.redact import Redactor
from bailiwick.secrets.service import known_secrets

SWITCHED_OFF = "BW607"
NO_REPORT = "BW467"
DIGEST = 64


@dataclass(slots=True)
class RepositoryProposals:
    """The place where proposals of one repository are made and kept. `by`: who acts, for the audit."""

    state: Path
    journal: Store
    clock: Clock
    settings: ProposalSettings
    git_store: GitStore
    by: str = "bailiwick"
    redact: Callable[[str], str] = str
    store: ProposalStore = field(init=False)
    consents: Consents = field(init=False)

    def __post_init__(self) -> None:
        self.store = ProposalStore(self.journal, self.state)
        self.consents = Consents(self.journal, self.state, self.clock)

    def audit(self, kind: str, data: dict[str, Json]) -> None:
        """Enter an action before it is done; raises `AuditUnavailable`, and then it is not done."""
        from bailiwick.audit.service import append

        append(self.state, kind, data, actor=self.by, clock=self.clock)

    async def consent(self) -> Consent | None:
        """The consent that holds now for what would be published."""
        site = self.settings.site
        if site is None:
            return None
        return await self.consents.find(site.full_name, site.forge, scope_of(draft=self.settings.draft))

    def remote(self, target: PushTarget) -> PushRemote:
        """A push target as git reaches it."""
        network = self.settings.network
        return PushRemote(target.url, target.token, target.user, ca_file=network.ca_file, proxy=network.proxy)

    def report(self, digest: str) -> GateReport:
        """A gate report as the gate stored it; raises `NotReady` where it is not there or is another."""
        if len(digest) != DIGEST:
            raise _no_report(digest)
        try:
            return load_report(self.state, digest)
        except NotFound as error:
            raise _no_report(digest) from error

    async def document(self, proposal: Proposal, access: ForgeAccess | None = None) -> str:
        """The document of a proposal, with known secrets covered."""
        changes = await self.git_store.changes(proposal.base, proposal.commit)
        files = tuple(replace(one, path=shown(one.path)) for one in changes)
        found = self.report(proposal.report)
        merge, who = (access.can_merge, access.user) if access else (None, "")
        facts = ProposalFacts(
            proposal, report=found, changes=files, can_merge=merge, identity=who, notes=proposal.notes
        )
        return self.redact(render(facts))


def _no_report(digest: str) -> NotReady:
    return NotReady(
        f"there is no gate report '{digest[:DIGEST]}' as the gate itself stored it",
        hint="run the gate again: no other report counts",
        code=NO_REPORT,
    )


async def open_repository(
    config: Config, repository: Path, store: Store, clock: Clock, *, by: str, environment: Environment | None = None
) -> RepositoryProposals:
    """The desk of a repository; raises `NotReady` where git can't use it, or proposals are switched off."""
    if not config.get("features.proposals"):
        what = f"proposals are switched off ({config.origin('features.proposals')})"
        raise NotReady(what, hint="the person who set it can change it: features.proposals: true", code=SWITCHED_OFF)
    state = config.paths.make_state()
    git_store = await GitStore.open(state, repository, environment=environment)
    settings = read_settings(config, git_store.repository, clock, environment)
    return RepositoryProposals(
        state,
        journal=store,
        clock=clock,
        settings=settings,
        git_store=git_store,
        by=by,
        redact=Redactor(known_secrets(config, environment)).text,
    )
