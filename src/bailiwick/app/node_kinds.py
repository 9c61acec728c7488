"""Which features bring node kinds, by name: nothing here is imported before a workflow uses it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING

from bailiwick.clock import Clock
from bailiwick.config.service import Config
from bailiwick.errors import InternalBug
from bailiwick.ids import Json
from bailiwick.journal.port import Store
from bailiwick.runtime.kinds import NodeKind

if TYPE_CHECKING:
    from bailiwick.brain.service import Brain
    from bailiwick.gate.port import Judge
    from bailiwick.sandbox.service import Sandboxes
    from bailiwick.secrets.service import KnownSecrets
    from bailiwick.skills.service import Skills

TABLE: dict[str, str] = {
    "worktree": "bailiwick.pipelines.nodes",
    "gate": "bailiwick.gate.nodes",
    "propose": "bailiwick.proposals.nodes",
}


@dataclass(slots=True)
class App:
    """What the kinds of one process share. The sandbox is opened when the first of them needs it, once."""

    config: Config
    store: Store
    clock: Clock
    by: str
    attended: bool = False
    subscribed: Callable[[str], bool] = lambda _backend: False
    _skills: Callable[[App], Skills] | None = field(default=None)
    _judge: Callable[[], Judge] | None = field(default=None)
    _fence: Sandboxes | None = field(default=None)
    _coverage: KnownSecrets | None = field(default=None)

    @property
    def coverage(self) -> KnownSecrets:
        """The secrets that this process knows, looked up when the first effect ends."""
        if self._coverage is None:
            from bailiwick.secrets.service import KnownSecrets

            self._coverage = KnownSecrets.of(self.config)
        return self._coverage

    def clean(self, value: Json) -> Json:
        """A value without any secret that is known."""
        return self.coverage.redactor.json(value)

    def script(self) -> NodeKind:
        """The script kind, with a way to its secrets."""
        from bailiwick.runtime.script import ScriptKind

        return ScriptKind(lambda text: self.coverage.filled(text))  # noqa: PLW0108  secrets are looked up when one is asked for

    def bring_skills(self, make: Callable[[App], Skills]) -> None:
        """Say how the skills are made; they are, when the first of them is called."""
        self._skills = make

    def skills(self) -> Skills:
        """The tools that a person, an editor or an agent can call."""
        if self._skills is None:
            raise InternalBug("skills were asked for without a session")
        return self._skills(self)

    def bring_judge(self, make: Callable[[], Judge]) -> None:
        """Say how models are asked for their opinion of a change; it is made when a gate wants one."""
        self._judge = make

    def judge(self) -> Judge:
        """Who asks models for their opinion of a change."""
        if self._judge is None:
            raise InternalBug("a judge was asked for without a session")
        return self._judge()

    def brain(self) -> Brain:
        """The person's notes. Raises `NotReady` where they are switched off."""
        from bailiwick.brain.service import Brain

        found = Brain.open(self.config, self.clock)
        found.redact = self.coverage.text
        return found

    async def fence(self) -> Sandboxes:
        """The sandbox around what is not trusted. Raises `NotReady` where it can't be had."""
        if self._fence is None:
            from bailiwick.sandbox.service import open_fence

            self._fence = await open_fence(self.config, attended=self.attended)
        return self._fence


def makers(household: App) -> dict[str, Callable[[], NodeKind]]:
    """The kinds of features, each made when a node needs it by its module's `make_kind`."""

    def maker(module: str) -> Callable[[], NodeKind]:
        def make() -> NodeKind:
            made: NodeKind = import_module(module).make_kind(household)
            return made

        return make

    return {name: maker(module) for name, module in TABLE.items()}
