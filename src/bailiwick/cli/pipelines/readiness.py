"""Puts a preflight together for a command: what is cheap first, the gate on the base last."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bailiwick.pipelines.model import ISSUE_TO_PR, BaseCommit, PipelineRequest, PreflightLine, choose_conventions
from bailiwick.pipelines.preflight import Preflight

if TYPE_CHECKING:
    from bailiwick.app.service import App
    from bailiwick.cli.pipelines.request import PipelineCommand
    from bailiwick.pipelines.basis import BaseCheck
    from bailiwick.proposals.repository import RepositoryProposals
    from bailiwick.runs.start import StartRequest


async def make_ready(
    request: PipelineCommand,
    app: App,
    repo: RepositoryProposals,
    order: PipelineRequest,
    ground: BaseCommit,
    start_request: StartRequest,
) -> BaseCheck:
    """Everything that the run will need, or `NotReady`; tells the first lines as they are known."""
    from bailiwick.pipelines.basis import BaseInspector, gate_line

    flight = Preflight(app.config, app.runtime, order, request.tell)
    flight.disk()
    flight.waiting()
    await repo.git_store.check(ground.commit)
    sandboxes = await app.sandboxes()
    standing = await sandboxes.look()
    request.tell(PreflightLine("sandbox", standing.found))
    for part in standing.unprotected:
        request.tell(PreflightLine("", f"not protected: {part}"))
    await flight.publishing(repo)
    if order.pattern == ISSUE_TO_PR:
        flight.agent(start_request.loaded.graph, start_request.agents, request.simulate)
        await flight.limits(start_request.limits)
        flight.verdict()
    lookout = BaseInspector(
        app.config,
        repo.git_store,
        sandboxes,
        app.runtime.clock,
        show=lambda text: request.tell(PreflightLine("", text)),
    )
    spec = await lookout.spec(ground.commit)
    request.tell(gate_line(spec))
    for note in spec.notes:
        request.say(str(note))
    await _conventions(request, app, repo, ground)
    basis = await lookout.look(ground.commit, spec)
    basis.require_known()
    if order.pattern == ISSUE_TO_PR and not order.known_red:
        basis.require_green((), f"bailiwick issue-to-pr {request.issue}")
    if order.pattern != ISSUE_TO_PR and basis.report.verdict != "green":
        flight.agent(start_request.loaded.graph, start_request.agents, request.simulate)
        await flight.limits(start_request.limits)
        flight.verdict()
    return basis


async def _conventions(request: PipelineCommand, app: App, repo: RepositoryProposals, ground: BaseCommit) -> None:
    """Name the conventions file that the agent is given, or say that the configured one is not there."""
    wanted = app.config.get("conventions")
    found = choose_conventions(await repo.git_store.files(ground.commit), wanted)
    if found or wanted:
        request.tell(PreflightLine("brief", f"with {found}" if found else f"{wanted} is not in the base commit"))
