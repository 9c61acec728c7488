"""Routing of a command, put together when the first call or node needs it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from bailiwick.config.variables import Environment

if TYPE_CHECKING:
    from bailiwick.agents.asking import TurnRunner
    from bailiwick.app.context import AppContext
    from bailiwick.gate.port import Judge
    from bailiwick.routing.ask import ModelAccess
    from bailiwick.routing.leads import NodeChains, SkillRoute
    from bailiwick.routing.models_file import Models
    from bailiwick.routing.service import Router
    from bailiwick.skills.service import Skills


@dataclass(slots=True)
class RoutingServices:
    """Chains, the router and the ways to models, one of each for a process."""

    app: AppContext
    turns: Callable[[], TurnRunner]
    purse: Callable[[str], tuple[str, Mapping[str, float | None]]]
    models_file: Path | None = None
    _access: ModelAccess | None = field(default=None)
    _leads: NodeChains | None = field(default=None)
    _router: Router | None = field(default=None)

    def models(self) -> Models:
        """What the models files say now. Raises `InputInvalid` with every mistake in them."""
        from bailiwick.routing.models_file import read_models

        return read_models(self.app.config, file=self.models_file)

    def leads(self) -> NodeChains:
        """The chains of agent nodes."""
        from bailiwick.routing.leads import NodeChains

        if self._leads is None:
            self._leads = NodeChains(models=self.models, discipline=self._discipline)
        return self._leads

    def _discipline(self, name: str) -> SkillRoute:
        from bailiwick.routing.leads import SkillRoute
        from bailiwick.skills.folders import find_skills

        skill = find_skills(self.app.config).get(name)
        return SkillRoute(skill.body, tuple(skill.chain or ()), skill.local_only)

    def router(self) -> Router:
        """Where skill calls go."""
        from bailiwick.routing.service import Router

        if self._router is None:
            self._router = Router(
                config=self.app.config,
                store=self.app.store,
                access=self.access(),
                models=self.models,
                clean=self.app.clean,
                purse=self.purse,
            )
        return self._router

    def skills(self) -> Skills:
        """The tools that a person, an editor or an agent can call."""
        from bailiwick.skills.service import Skills

        return Skills(
            config=self.app.config,
            store=self.app.store,
            clock=self.app.clock,
            by=self.app.by,
            router=self.router(),
            sandboxes=self.app.sandboxes,
            brain=self.app.brain,
            clean=self.app.clean,
        )

    def judge(self) -> Judge:
        """Asks models for their opinion of a change, as calls that are routed, paid for and on record like others."""
        from bailiwick.app.judging import RoutedJudge

        return RoutedJudge(self.router, self.app.config.paths.cache, self.app.by)

    def access(self) -> ModelAccess:
        """The ways to models."""
        from bailiwick.routing.ask import ModelAccess
        from bailiwick.routing.cooldown import Cooldowns
        from bailiwick.routing.endpoints import Endpoints
        from bailiwick.routing.slots import Slots

        if self._access is None:
            config, clock = self.app.config, self.app.clock
            self._access = ModelAccess(
                turns=self.turns(),
                clock=clock,
                endpoints=Endpoints.of(config),
                queue=Slots(self.app.store.slot),
                cooldowns=Cooldowns(self.app.store, clock),
                environment=environment,
            )
        return self._access


def environment() -> Mapping[str, str]:
    """What programs of agents are given of the operator's environment."""
    return Environment().child_environment({})
