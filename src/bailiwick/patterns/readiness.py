"""Puts a preflight together for a command: what is cheap first, the gate on the base last."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bailiwick.patterns.model import ISSUE_TO_PR, Ground, Line, Order, choose_conventions
from bailiwick.patterns.preflight import Preflight

if TYPE_CHECKING:
    from bailiwick.cli.session import Session
    from bailiwick.patterns.basis import Basis
    from bailiwick.patterns.request import Request
    from bailiwick.proposals.desk import Desk
    from bailiwick.runs.start import StartRequest


async def make_ready(
    request: Request, session: Session, desk: Desk, order: Order, ground: Ground, wish: StartRequest
) -> Basis:
    """Everything that the run will need, or `NotReady`; tells the first lines as they are known."""
    from bailiwick.patterns.basis import Lookout, gate_line

    flight = Preflight(session, order, request.tell)
    flight.disk()
    flight.waiting()
    await desk.vault.check(ground.commit)
    fence = await session.household.fence()
    standing = await fence.look()
    request.tell(Line("fence", standing.found))
    for part in standing.unprotected:
        request.tell(Line("", f"not protected: {part}"))
    await flight.publishing(desk)
    if order.pattern == ISSUE_TO_PR:
        flight.agent(wish.loaded.graph, wish.agents, request.simulate)
        await flight.limits(wish.limits)
        flight.verdict()
    lookout = Lookout(
        session.config, desk.vault, fence, session.assembly.clock, show=lambda text: request.tell(Line("", text))
    )
    spec = await lookout.spec(ground.commit)
    request.tell(gate_line(spec))
    for note in spec.notes:
        request.say(str(note))
    await _conventions(request, session, desk, ground)
    basis = await lookout.look(ground.commit, spec)
    basis.require_known()
    if order.pattern == ISSUE_TO_PR and not order.known_red:
        basis.require_green((), f"bailiwick issue-to-pr {request.issue}")
    if order.pattern != ISSUE_TO_PR and basis.report.verdict != "green":
        flight.agent(wish.loaded.graph, wish.agents, request.simulate)
        await flight.limits(wish.limits)
        flight.verdict()
    return basis


async def _conventions(request: Request, session: Session, desk: Desk, ground: Ground) -> None:
    """Name the conventions file that the agent is given, or say that the configured one is not there."""
    wanted = session.config.get("conventions")
    found = choose_conventions(await desk.vault.files(ground.commit), wanted)
    if found or wanted:
        request.tell(Line("brief", f"with {found}" if found else f"{wanted} is not in the base commit"))
