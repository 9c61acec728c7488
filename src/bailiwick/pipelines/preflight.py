"""Before the first paid call: everything that a run's last step will need, so that nothing is spent in vain.

What is cheap to look at is looked at first and told all at once; the gate on the base comes last.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bailiwick.clock import day, local
from bailiwick.config.room import require_room
from bailiwick.config.service import Config
from bailiwick.engine.graph import Graph, Work
from bailiwick.errors import BailiwickError, NotReady, Place, Problem, UsageError
from bailiwick.ids import Json
from bailiwick.pipelines.model import PipelineRequest, PreflightLine
from bailiwick.runtime.assemble import Runtime
from bailiwick.terminal.output import counted, duration

if TYPE_CHECKING:
    from pathlib import Path

    from bailiwick.proposals.repository import RepositoryProposals

NO_MONEY = "BW487"
TOO_MANY = "BW495"
NOT_THERE = "BW488"
RED_BASE = "BW489"
_SHOWN = 20
Say = Callable[[PreflightLine], None]


class Unready(NotReady):
    """Do what each of the problems says, then run the same command again; nothing was spent."""

    def __init__(self, found: Sequence[Problem]) -> None:
        super().__init__(found[0].what, hint=found[0].hint, code=found[0].code, place=found[0].place)
        self.found = list(found)

    def problems(self) -> list[Problem]:
        return list(self.found)


@dataclass(slots=True)
class Preflight:
    """One preflight: `say` gets each line as it is known, problems are kept until `verdict`."""

    config: Config
    runtime: Runtime
    order: PipelineRequest
    say: Say
    found: list[Problem] = field(default_factory=list)

    def verdict(self) -> None:
        """Raise `Unready` with everything that is in the way."""
        if self.found:
            raise Unready(self.found)

    def note(self, label: str, text: str) -> None:
        """Tell one of the first lines."""
        self.say(PreflightLine(label, text))

    def trouble(self, error: BailiwickError) -> None:
        """Keep what is in the way."""
        self.found += error.problems()

    def agent(self, graph: Graph, chosen: dict[str, Json], simulate: Path | bool | None) -> None:
        """Every agent of the workflow can be used, and has its credential."""
        from bailiwick.agents.broker_access import BrokerAccess
        from bailiwick.agents.ready import cost_words, require_credential, require_model
        from bailiwick.agents.registry import require
        from bailiwick.agents.settings import read_settings
        from bailiwick.config.variables import Environment

        config = self.config
        settings = read_settings(config, simulate).for_run(chosen)
        choices = {settings.choose(n) for n in graph.nodes.values() if isinstance(n, Work) and n.type == "agent"}
        for choice in sorted(choices, key=lambda one: one.backend):
            models = ", ".join(model or "its default model" for model in choice.models)
            try:
                require(choice.backend, settings)
                if choice.backend == "simulate":
                    script = f" by {settings.script}" if settings.script else ""
                    self.note("agent", f"simulated{script}: no key, no network, no cost")
                    continue
                for model in choice.models:
                    require_model(choice.backend, model, settings)
                credential = BrokerAccess(config, self.runtime.clock).credential(choice.backend, choice.models[0])
                require_credential(choice.backend, credential, config, Environment().child_environment({}))
                self.note("agent", f"{choice.backend}, {models}; credential {credential.name} ({credential.kind})")
                for words in cost_words([choice.backend], settings):
                    self.note("", words)
            except (NotReady, UsageError) as error:
                self.trouble(error)

    def disk(self) -> None:
        """There is room for a worktree, an environment and a gate."""
        try:
            require_room(self.config)
        except NotReady as error:
            self.trouble(error)

    async def waiting(self) -> None:
        """People have not more proposals to look at than they want to."""
        from bailiwick.proposals.store import ProposalStore

        config = self.config
        most = config.get("night.max_open")
        live = [one for one in await ProposalStore(self.runtime.store, config.paths.state).all() if one.live]
        if most is not None and len(live) >= int(most):
            what = f"{counted(len(live), 'proposal')} waiting for a person, and night.max_open is {most}"
            hint = "look at them: bailiwick proposals list; then start again, or raise night.max_open"
            self.found.append(Problem(TOO_MANY, what, Place(str(config.origin("night.max_open"))), hint))

    async def limits(self, limits: dict[str, Json]) -> None:
        """There is money left, and the person sees how much the run may use."""
        runtime, config = self.runtime, self.config
        words = [counted(self.order.attempts, "fix call")]
        daily = config.get("budget.day.usd")
        today = await runtime.store.spend(f"day:{day(runtime.clock.now())}")
        spent = sum(
            (row.settled if row.settled is not None else row.reserved) or 0.0 for row in today if row.unit == "usd"
        )
        if limits.get("usd") is not None:
            words.append(f"${limits['usd']:g} for the run")
        if daily is not None:
            words.append(f"${max(0.0, daily - spent):.2f} of ${daily:g} left today")
        if limits.get("wall") is not None:
            words.append(f"{duration(limits['wall'])} at most")
        self.note("limits", ", ".join(words))
        if (daily is not None and spent >= daily) or limits.get("usd") == 0:
            self.found.append(
                Problem(NO_MONEY, "there is no money left for this", None, "raise budget.day.usd or --budget-usd")
            )

    async def publishing(self, repo: RepositoryProposals) -> None:
        """What the last step needs of the forge, where the proposal is meant to leave this machine."""
        settings = repo.settings
        if settings.site is None or settings.mode == "never":
            why = settings.why_local or "publish.mode is never"
            self.note("publish", f"the proposal stays on this machine: {why}")
            return
        consent = await repo.consent()
        where = settings.site.full_name
        if settings.mode == "ask" and consent is None:
            self.note("publish", f"{where}: you will be asked before anything leaves this machine")
            return
        try:
            forge = settings.open_forge()
        except NotReady as error:
            self.trouble(error)
            return
        try:
            access = await forge.check_access()
        except NotReady as error:
            self.trouble(error)
            return
        finally:
            await forge.close()
        if access.can_push is False:
            hint = "give the token the right to push, or set publish.push_to to fork"
            self.found.append(Problem(NOT_THERE, f"{access.user} may not push to {where}", None, hint))
        if access.expires is not None and access.expires <= self.runtime.clock.now() + 86400:
            hint = "renew it: the run may take longer than that"
            self.found.append(Problem(NOT_THERE, f"the token for {where} ends {local(access.expires)}", None, hint))
        merge = {True: "could merge", False: "can't merge", None: "it is not known whether it could merge"}
        self.note("publish", f"draft pull request at {where} as {access.user} ({merge[access.can_merge]})")


def red_base(failing: Sequence[str], issue: str) -> NotReady:
    """The refusal to start on a base whose gate is red."""
    listed = "".join(f"\n  {name}" for name in failing[:_SHOWN])
    more = f"\n  and {len(failing) - _SHOWN} more" if len(failing) > _SHOWN else ""
    return NotReady(
        f"the gate is red on the base, before anything was changed:{listed}{more}",
        hint=f"heal it first: bailiwick self-heal; or let exactly these stay red: {issue} --known-red",
        code=RED_BASE,
    )
