"""What every part of an opened state directory may ask for: configuration, store, secrets, notes, the sandbox."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bailiwick.clock import Clock
from bailiwick.config.service import Config
from bailiwick.ids import Json
from bailiwick.journal.port import Store
from bailiwick.runtime.kinds import NodeKind

if TYPE_CHECKING:
    from bailiwick.brain.service import Brain
    from bailiwick.sandbox.service import Sandboxes
    from bailiwick.secrets.service import KnownSecrets


@dataclass(slots=True)
class AppContext:
    """What every part of a process may ask for. What few need is opened by the first that does, once."""

    config: Config
    store: Store
    clock: Clock
    by: str
    attended: bool = False
    _sandboxes: Sandboxes | None = field(default=None)
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

    def brain(self) -> Brain:
        """The person's notes. Raises `NotReady` where they are switched off."""
        from bailiwick.brain.service import Brain

        found = Brain.open(self.config, self.clock)
        found.redact = self.coverage.text
        return found

    async def sandboxes(self) -> Sandboxes:
        """The sandbox around what is not trusted. Raises `NotReady` where it can't be had."""
        if self._sandboxes is None:
            from bailiwick.sandbox.service import open_sandboxes

            self._sandboxes = await open_sandboxes(self.config, attended=self.attended)
        return self._sandboxes
