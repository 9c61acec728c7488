"""Hosting walks in this process: signals, questions on the terminal, the background, becoming a new version."""

from __future__ import annotations

import asyncio
import signal
import sys
from dataclasses import dataclass, field, replace
from typing import Self

from bailiwick.app.night import NIGHT, Sleep, night_is_over
from bailiwick.app.service import App
from bailiwick.cli.view.port import Leaving, RunView
from bailiwick.clock import local
from bailiwick.journal.rows import ClaimFilter, Message, RunFilter, RunRow, WaitFilter
from bailiwick.processes.owner import current_owner
from bailiwick.processes.proc import become_subreaper
from bailiwick.runs.control import Control
from bailiwick.runs.find import name_of
from bailiwick.runs.foreground import BUDGET, TIME, WAITS, Foreground, RunExit
from bailiwick.runtime.supervise import Supervisor
from bailiwick.runtime.upgrade import execute_again
from bailiwick.runtime.worker import Worker

INTERRUPTED, TERMINATED = 130, 143
CODES = {"SIGINT": INTERRUPTED, "SIGTERM": TERMINATED, "SIGHUP": 129, NIGHT: TIME}
HEARD = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
DETACH = "detach"


@dataclass(frozen=True, slots=True)
class ForegroundOptions:
    """How a foreground run behaves towards the person."""

    wait: bool = False
    no_wait: bool = False
    ask: bool = False
    detach: bool = False
    leaving: Leaving = field(default_factory=Leaving)

    @property
    def attended(self) -> bool:
        """Whether somebody watches who could end it."""
        return self.ask and not self.detach


class Signals:
    """Turns SIGINT, SIGTERM and SIGHUP into a drained worker. On a terminal the first Ctrl-C offers a choice.

    `stays`: the run is still there when this process has ended, so that another one may go on with it.
    """

    def __init__(self, app: App, row: RunRow | None = None, view: RunView | None = None, *, stays: bool = True) -> None:
        self._app = app
        self._row = row
        self._view = view
        self._supervisor = Supervisor(lambda name, error: app.runtime.on_trouble("", f"{name}: {error}"))
        self._asked = False
        self.terminal = asyncio.Lock()
        self._stays = stays
        self.worker: Worker | None = None
        self.caught = ""

    def __enter__(self) -> Self:
        loop = asyncio.get_running_loop()
        for number in HEARD:
            loop.add_signal_handler(number, self._on, number.name)
        return self

    def __exit__(self, *_: object) -> None:
        loop = asyncio.get_running_loop()
        for number in HEARD:
            loop.remove_signal_handler(number)

    @property
    def hands_over(self) -> bool:
        """Whether the run goes on in the background: the terminal was closed, or the person chose so."""
        return self._stays and self.caught in ("SIGHUP", DETACH)

    def _on(self, name: str) -> None:
        if name == "SIGINT" and self._view is not None and not self._asked:
            self._asked = True
            self._supervisor.start(self._offer(self._view), "Ctrl-C")
            return
        self._leave(name, now=True)

    async def end_with_night(self, sleep: Sleep = asyncio.sleep) -> None:
        """Start nothing new once the night is over; what runs may finish. Nothing where `night.until` is not set."""
        if await night_is_over(self._app, sleep):
            self._leave(NIGHT, now=False)

    def _leave(self, why: str, *, now: bool) -> None:
        self.caught = self.caught or why
        if self.worker is not None:
            self.worker.drain(why, now=now)

    async def _offer(self, view: RunView) -> None:
        from bailiwick.cli.prompt import ask_interrupt

        async with self.terminal:
            view.pause()
            choice = await ask_interrupt()
            view.resume()
        self._asked = False
        match choice:
            case "node":
                self.caught = "SIGINT"
                await self._stop_after_node()
            case "now":
                self._leave("SIGINT", now=True)
            case "detach":
                self._leave(DETACH, now=False)
            case _:
                pass

    async def _stop_after_node(self) -> None:
        if self._row is None or self.worker is None:
            return
        now = self._app.runtime.clock.now()
        body = {"now": False, "by": self._app.by}
        await self._app.runtime.store.send(
            Message(self._row.id, kind="stop", dedupe=f"ctrl-c:{now!r}", body=body, at=now)
        )
        self.worker.nudge()


async def host(app: App, row: RunRow, view: RunView, options: ForegroundOptions, notices: tuple[str, ...]) -> int:
    """Walk a run in the foreground, with the person's questions; gives the exit code."""
    owner = current_owner("bailiwick run")
    foreground = Foreground(app.runtime, owner, wait=options.wait, no_wait=options.no_wait)
    foreground.refuse_if_held(row)
    view.begin(row, notices)
    try:
        row = await foreground.prepare(row, app.by)
        if options.detach and row.status == "ready":
            return _detach(row, view)
        return await _walk(app, foreground, row=row, view=view, options=options)
    finally:
        view.close()


async def _walk(app: App, foreground: Foreground, row: RunRow, view: RunView, options: ForegroundOptions) -> int:
    settled = row.status != "ready"
    become_subreaper()
    ticking = Supervisor(lambda _name, _error: None)
    ticking.start(_tick(app, row.root_id, float(app.config.get("agents.cap_tick"))), "ticks")
    stays = not options.leaving.gone
    with Signals(app, row, view if options.ask and stays else None, stays=stays) as signals:
        if not options.ask:
            ticking.start(signals.end_with_night(), "night")
        while True:
            verdict = await foreground.walk(row, signals)
            if foreground.replaced:
                view.close()
                await app.runtime.close()
                execute_again(again())
            if verdict.code != WAITS or not options.ask or signals.caught:
                break
            async with signals.terminal:
                answered = await _ask(app, verdict, view)
            if not answered:
                break
            row = verdict.row
    await ticking.close()
    if signals.hands_over and verdict.row.status == "ready":
        return _detach(row, view)
    code = CODES.get(signals.caught, verdict.code) if verdict.row.status in ("ready", "stopped") else verdict.code
    waits = verdict.code in (WAITS, BUDGET, TIME)
    state = await app.runtime.library.state(row.id) if settled or waits else None
    leaving = replace(options.leaving, already=settled, usd=await _spent(app, row.root_id))
    view.end(verdict.row, code, state, leaving)
    return code


async def _spent(app: App, root_id: str) -> float | None:
    """The dollars that a tree has spent so far; None where it asked no agent."""
    rows = [row for row in await app.runtime.store.spend(f"run:{root_id}") if row.unit == "usd"]
    return sum(row.settled or 0.0 for row in rows) if rows else None


async def _tick(app: App, root_id: str, every: float) -> None:
    """A line now and then while a tree only waits for time, so that a long wait is not taken for a hang."""
    while True:
        await asyncio.sleep(every)
        for row in await app.runtime.store.runs(RunFilter(root_id=root_id, status=("ready",))):
            facts = row.summary or {}
            if facts.get("state") == "sleeping" and facts.get("due_at"):
                due = local(float(facts["due_at"]))
                text = f"{name_of(row)} still waits at '{facts.get('node')}'; resumes at {due}"
                app.runtime.on_trouble(row.id, text)


async def _ask(app: App, verdict: RunExit, view: RunView) -> bool:
    """Put an open question to the person at the terminal; False when there is none or they decline."""
    from bailiwick.cli.prompt import ask_person

    tree = await app.runtime.store.runs(RunFilter(root_id=verdict.row.root_id))
    for row in tree:
        for wait in await app.runtime.store.waits(WaitFilter(run_id=row.id)):
            if isinstance(wait.body, dict) and "choices" in wait.body:
                view.pause()
                value = await ask_person(wait)
                view.resume()
                if value is None:
                    return False
                await Control(app.runtime, app.by).answer(row, value, wait.id)
                return True
    return False


def again() -> list[str]:
    """The command line to execute again: the same, but the run it began is not to be set aside."""
    return [sys.executable, "-m", "bailiwick", *(word for word in sys.argv[1:] if word != "--fresh")]


def _detach(row: RunRow, view: RunView) -> int:
    from bailiwick.processes.forked import start_background

    pid = start_background([sys.executable, "-m", "bailiwick", "worker", "--until-idle", "--run", row.id])
    view.end(row, 0, None, Leaving(worker=pid))
    return 0


async def serve(app: App, concurrency: int, root_id: str | None, *, until_idle: bool) -> int:
    """Be a worker until told to stop, or until nothing can go on."""
    owner = current_owner("bailiwick worker")
    become_subreaper()
    if root_id is None:
        from bailiwick.app.retention import keep_to_retention

        await keep_to_retention(app)
    worker = Worker(app.runtime, owner, ClaimFilter(root_id=root_id), concurrency)

    async def finished() -> bool:
        if not until_idle:
            return False
        if root_id is None:
            return await app.runtime.store.next_wake() is None
        rows = await app.runtime.store.runs(RunFilter(root_id=root_id))
        return not any(r.status == "ready" and r.wake_at is not None for r in rows)

    beside = Supervisor(lambda name, error: app.runtime.on_trouble("", f"{name}: {error}"))
    with Signals(app) as signals:
        signals.worker = worker
        beside.start(signals.end_with_night(), "night")
        await worker.run(finished)
        await beside.close()
    if worker.draining == "upgrade":
        await app.runtime.close()
        execute_again(again())
    return CODES.get(signals.caught, 0) if until_idle else 0
