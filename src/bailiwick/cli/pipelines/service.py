"""Carrying out a pattern: which run is meant, whether it can start, walking it, and what is said at the end."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bailiwick.app.service import App, open_app
from bailiwick.cli.hosting import ForegroundOptions, host
from bailiwick.cli.view.port import RunView
from bailiwick.config.repository import find_remote
from bailiwick.engine.state import State
from bailiwick.errors import NotReady, Place, StoreError
from bailiwick.gate.headline import details
from bailiwick.gate.model import read_report
from bailiwick.git.repository import BARE
from bailiwick.ids import Json
from bailiwick.journal.rows import RunRow
from bailiwick.lang.load import Loaded, load
from bailiwick.pipelines.closing import Ended, PipelineSummary, closing
from bailiwick.pipelines.issues import Reference, fetched_issue, hidden_parts, parse_reference, read_issue
from bailiwick.pipelines.model import (
    ISSUE_TO_PR,
    NOTES,
    BaseCommit,
    IssueText,
    Pattern,
    PipelineRequest,
    PreflightLine,
    choose_conventions,
    params_of,
    run_key,
)
from bailiwick.pipelines.preflight import Preflight
from bailiwick.proposals.forges.port import Issue as ForgeIssue
from bailiwick.proposals.repository import RepositoryProposals, open_repository
from bailiwick.runs.find import name_of
from bailiwick.runs.start import StartRequest, chosen_agents, start, starting_limits
from bailiwick.terminal.output import Printer, clean, counted
from bailiwick.workflows.service import named, own_shelves

if TYPE_CHECKING:
    from bailiwick.pipelines.basis import BaseCheck

NO_REPOSITORY = "BW483"
Started = Callable[[], Awaitable[object]]
"""Called when a run is durable and before anything of it is done."""


@dataclass(frozen=True, slots=True)
class PipelineCommand:
    """A command line of a pattern, read. `quiet`: standard output belongs to a program, people read standard error."""

    pattern: Pattern
    issue: str = ""
    base: str | None = None
    attempts: int | None = None
    allow: tuple[str, ...] = ()
    known_red: bool = False
    fresh: bool = False
    flags: dict[str, Json] = field(default_factory=dict)
    simulate: Path | bool | None = None
    options: ForegroundOptions = field(default_factory=ForegroundOptions)
    quiet: bool = False

    def say(self, text: str) -> None:
        """Tell the person something."""
        click.echo(clean(text, lines=True), err=self.quiet)

    def tell(self, line: PreflightLine) -> None:
        """Tell one of the first lines."""
        Printer.on(sys.stderr if self.quiet else sys.stdout).line(f"{line.label:<8}  {line.text}", indent=10)


async def carry_out(request: PipelineCommand, view: RunView) -> int:
    """Find the run that is meant and go on with it, or start it; gives the exit code."""
    async with open_app(request.flags, view.watch(), request.simulate, attended=request.options.attended) as app:
        repository = app.config.repository
        if repository is None or not repository.git:
            raise _no_work_tree(Path.cwd())
        repo = await open_repository(app.config, repository.root, app.store, app.clock, by=app.by)
        return await PipelineRunner(request, app, view, repo).run()


def _no_work_tree(cwd: Path) -> NotReady:
    if any((folder / "HEAD").is_file() and (folder / "objects").is_dir() for folder in (cwd, *cwd.parents)):
        what, hint = "this is a bare repository: there is no work tree to start from", "clone it and start there"
        return NotReady(what, hint=hint, place=Place(str(cwd)), code=BARE)
    return NotReady(
        "this directory is in no git repository",
        hint="go into one, or see it work anywhere: --simulate good",
        code=NO_REPOSITORY,
    )


def pattern_workflow(pattern: Pattern, person: Path) -> Loaded:
    """The workflow of a pattern: the person's own of that name, else the bundled one; never the repository's."""
    return load(named(own_shelves(person))[pattern][1])


@dataclass(slots=True)
class PipelineRunner:
    """One command, from what was asked to the last words."""

    request: PipelineCommand
    app: App
    view: RunView
    repo: RepositoryProposals

    async def run(self) -> int:
        """Do it."""
        if self.request.pattern == ISSUE_TO_PR:
            return await self._issue_to_pr()
        return await self._self_heal()

    async def _issue_to_pr(self) -> int:
        root = self.repo.git_store.repository
        reference = parse_reference(self.request.issue, Path.cwd())
        reference = reference.on(find_remote(root)) if reference.kind == "forge" else reference
        read = None if reference.kind == "forge" else read_issue(reference)
        identity = read.ref if read is not None else reference.identity
        key = run_key(str(root), read.stem if read else f"issue-{reference.issue.number}", identity)
        known = await self._known(key)
        if known is not None:
            return await self.walk(known, await self._news(known, reference, read))
        issue = read or fetched_issue(reference, await self._fetched(reference))
        if hidden := hidden_parts(issue):
            self.request.say(
                f"note: the issue holds {counted(hidden, 'HTML comment')}: agents read them, browsers hide them"
            )
        return await self.begin(self._order(issue), await self._ground(), key)

    async def _self_heal(self) -> int:
        git_store = self.repo.git_store
        head = await git_store.resolve("HEAD")
        tree = await git_store.snapshot(git_store.repository)
        key = run_key(str(git_store.repository), "heal", tree)
        known = await self._known(key)
        if known is not None:
            return await self.walk(known, ())
        ground = BaseCommit(head, tree, "HEAD")
        if tree != await git_store.tree_of(head):
            commit = await git_store.commit(
                tree,
                (head,),
                "The work tree as it was, before it was healed\n",
                self.repo.settings.author,
                when=self.app.runtime.clock.now(),
            )
            ground = BaseCommit(commit, tree, "your work tree", "with what is not committed yet")
        return await self.begin(self._order(None), ground, key)

    def _order(self, issue: IssueText | None) -> PipelineRequest:
        request = self.request
        attempts = self.app.config.get("attempts") if request.attempts is None else request.attempts
        return PipelineRequest(
            request.pattern,
            repository=str(self.repo.git_store.repository),
            issue=issue,
            base=request.base,
            attempts=int(attempts),
            allow=request.allow,
            known_red=request.known_red,
        )

    async def _known(self, key: str) -> RunRow | None:
        if self.request.fresh:
            return None
        return await self.app.runtime.store.find(self.request.pattern, key)

    async def _news(self, row: RunRow, reference: Reference, read: IssueText | None) -> tuple[str, ...]:
        """What changed about the issue since its run was started."""
        params = (await self.app.runtime.library.state(row.id)).params
        before = params.get("issue", {}).get("digest")
        try:
            now = read or fetched_issue(reference, await self._fetched(reference))
        except NotReady as error:
            return (f"the issue could not be looked at again: {error.what}",)
        if before is None or now.digest == before:
            return ()
        return ("the text of the issue has changed since; this run goes on with the old one (start over: --fresh)",)

    async def _fetched(self, reference: Reference) -> ForgeIssue:
        forge = self.repo.settings.open_forge()
        try:
            return await forge.fetch_issue(reference.issue)
        finally:
            await forge.close()

    async def _ground(self) -> BaseCommit:
        """Where the work starts: what the person names, else the forge's default branch as it is now, else HEAD."""
        git_store = self.repo.git_store
        chosen = self.request.base or self.app.config.get("base")
        note = ""
        if not chosen and self.repo.settings.site is not None and self.repo.settings.mode != "never":
            try:
                return await self._forges_branch()
            except NotReady as error:
                note = f"the forge's default branch could not be fetched: {error.what}"
        name = str(chosen or "HEAD")
        commit = await git_store.resolve(name)
        return BaseCommit(commit, await git_store.tree_of(commit), name, note)

    async def _forges_branch(self) -> BaseCommit:
        settings, git_store = self.repo.settings, self.repo.git_store
        if settings.site is None:
            raise NotReady("no forge is configured")
        forge = replace(settings, site=replace(settings.site, fork=False)).open_forge()
        try:
            name = await forge.default_branch()
            target = await forge.push_target()
        finally:
            await forge.close()
        commit = await git_store.fetch_remote(self.repo.remote(target), name)
        return BaseCommit(commit, await git_store.tree_of(commit), name, f"fetched from {settings.site.full_name} now")

    async def begin(
        self, order: PipelineRequest, ground: BaseCommit, key: str, on_started: Started | None = None
    ) -> int:
        """Look whether everything is there, start the run, say so, and walk it."""
        app, request = self.app, self.request
        loaded = pattern_workflow(order.pattern, app.config.paths.config)
        if order.issue is not None:
            request.tell(PreflightLine("issue", order.issue.title))
        request.tell(PreflightLine("base", ground.shown))
        start_request = StartRequest(
            loaded,
            params={},
            key=key,
            runs_dir=str(app.config.runs_dir),
            fresh=request.fresh,
            limits=starting_limits(app.config, loaded.graph.budget),
            agents=chosen_agents(request.flags, request.simulate),
        )
        basis = await self._preflight(order, ground, start_request)
        if order.pattern != ISSUE_TO_PR and basis.report.verdict == "green":
            request.say("nothing to heal")
            return 0
        known_red = basis.failing if order.known_red and order.pattern == ISSUE_TO_PR else ()
        params = params_of(order, ground, known_red)
        if NOTES in (loaded.graph.params or {}):
            params |= await self._notes(order, str(basis.outputs()["failing"]))
        started = await start(app.runtime, replace(start_request, params=params))
        if on_started is not None:
            await on_started()
        notices = tuple(str(problem) for problem in app.config.notices)
        return await self.walk(started.row, (*notices, *started.notices))

    async def _preflight(self, order: PipelineRequest, ground: BaseCommit, start_request: StartRequest) -> BaseCheck:
        """Everything that the run will need, or `NotReady`: what is cheap first, the gate on the base last."""
        from bailiwick.pipelines.basis import BaseInspector, gate_line

        app, request, git_store = self.app, self.request, self.repo.git_store
        flight = Preflight(app.config, app.runtime, order, request.tell)
        flight.disk()
        await flight.waiting()
        await git_store.check(ground.commit)
        sandboxes = await app.sandboxes()
        standing = await sandboxes.look()
        flight.note("sandbox", standing.found)
        for part in standing.unprotected:
            flight.note("", f"not protected: {part}")
        await flight.publishing(self.repo)
        if order.pattern == ISSUE_TO_PR:
            await self._affordable(flight, start_request)
        lookout = BaseInspector(
            app.config, git_store, sandboxes, app.runtime.clock, show=lambda text: flight.note("", text)
        )
        spec = await lookout.spec(ground.commit)
        request.tell(gate_line(spec))
        for note in spec.notes:
            request.say(str(note))
        await self._conventions(ground)
        basis = await lookout.look(ground.commit, spec)
        basis.require_known()
        if order.pattern == ISSUE_TO_PR and not order.known_red:
            basis.require_green((), f"bailiwick issue-to-pr {request.issue}")
        if order.pattern != ISSUE_TO_PR and basis.report.verdict != "green":
            await self._affordable(flight, start_request)
        return basis

    async def _affordable(self, flight: Preflight, start_request: StartRequest) -> None:
        """Every agent can be asked and there is money for it, or `NotReady` with all that is in the way."""
        flight.agent(start_request.loaded.graph, start_request.agents, self.request.simulate)
        await flight.limits(start_request.limits)
        flight.verdict()

    async def _conventions(self, ground: BaseCommit) -> None:
        """Name the conventions file that the agent is given, or say that the configured one is not there."""
        wanted = self.app.config.get("conventions")
        found = choose_conventions(await self.repo.git_store.files(ground.commit), wanted)
        if found or wanted:
            text = f"with {found}" if found else f"{wanted} is not in the base commit"
            self.request.tell(PreflightLine("brief", text))

    async def _notes(self, order: PipelineRequest, failing: str) -> dict[str, Json]:
        """The param with approved notes about the issue, or about what is red; nothing where there are none."""
        from bailiwick.pipelines.briefing import notes_about

        about = f"{order.issue.title}\n{order.issue.text}" if order.issue else failing
        notes = await notes_about(
            about,
            self.repo.git_store.repository,
            config=self.app.config,
            clock=self.app.runtime.clock,
            tell=self.request.tell,
        )
        return {NOTES: notes} if notes else {}

    async def walk(self, row: RunRow, notices: tuple[str, ...] = ()) -> int:
        """Walk a run, and say the last words."""
        code = await host(self.app, row, view=self.view, options=self.request.options, notices=notices)
        if self.request.options.detach:
            return code
        state = await self.app.runtime.library.state(row.id)
        ended = Ended(
            name_of(row),
            workflow=row.workflow,
            status=state.status,
            proposal=_value(state, "proposal"),
            kept=_value(state, "kept"),
            found=_found(_value(state, "report")),
        )
        last = closing(ended, code, await self._standing(ended), gone=self.request.options.leaving.gone)
        for line in last.lines:
            self.request.say(line)
        return await self._consent(last) if last.consent and self.request.options.ask else last.code

    async def _standing(self, ended: Ended) -> str | None:
        """How the proposal of a run stands now; None where there is none."""
        if ended.status != "done" or not isinstance(ended.proposal, dict):
            return None
        found = await self.repo.store.get(str(ended.proposal.get("id", "")))
        return found.status if found is not None else None

    async def _consent(self, last: PipelineSummary) -> int:
        """The person is here: ask the one time whether proposals of this repository may leave this machine."""
        from bailiwick.cli.prompt import read_line
        from bailiwick.proposals.nodes import spoken
        from bailiwick.proposals.service import publish

        site = self.repo.settings.site
        where = site.full_name if site is not None else "the forge"
        try:
            answer = await read_line(f"Open draft pull requests at {where}, now and for the next 90 days? [y/N] ")
        except EOFError:
            return last.code
        if answer.strip().lower() not in ("y", "yes"):
            return last.code
        outcome = await publish(last.consent, self.repo, consent=True)
        self.request.say(spoken(outcome))
        return 0


def _found(report: Json) -> tuple[str, ...]:
    """What the gate report of a run lists, a line each; nothing where it is no report that can be read."""
    try:
        return details(read_report(report)) if isinstance(report, dict) else ()
    except (KeyError, TypeError, ValueError, AttributeError):
        return ()


def _value(state: State, name: str) -> Json:
    """A value of a run's context; None where there is none, or it can't be read any more."""
    try:
        return state.lookup("", name) if "" in state.scopes else None
    except (KeyError, StoreError):
        return None
