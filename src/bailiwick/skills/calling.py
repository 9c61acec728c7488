"""One call of a tool, and what all calls of a process share: its arguments, its session, its way to the router."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from bailiwick.clock import Clock
from bailiwick.config.service import Config, load_config
from bailiwick.ids import Json
from bailiwick.journal.port import Store
from bailiwick.routing.call_log import check_session, read_calls, sessions_folder
from bailiwick.routing.model import Job, Outcome
from bailiwick.skills.folders import SkillSet
from bailiwick.skills.model import Skill, Tool
from bailiwick.skills.roots import check_root, private_places
from bailiwick.skills.schemas import answer_schema
from bailiwick.skills.tasks import with_history

if TYPE_CHECKING:
    from bailiwick.brain.service import Brain
    from bailiwick.routing.models_file import Models
    from bailiwick.routing.port import CallFiles
    from bailiwick.sandbox.service import Sandboxes

Arguments = dict[str, Json]


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls, from where, who watches, what ends it; `roots` are where their projects may lie."""

    by: str
    origin: str
    show: Callable[[str], None]
    cancel: asyncio.Event
    models_file: Path | None = None
    roots: tuple[Path, ...] = ()


class Routes(Protocol):
    """Routes a call; see `routing.service.Router`."""

    async def call(
        self,
        job: Job,
        bench: CallFiles | None,
        *,
        show: Callable[[str], None],
        cancel: asyncio.Event,
        models: Models | None = None,
    ) -> Outcome:
        """Carry a call out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillServices:
    """What the calls of a process share. `clean` takes every known secret out of a text."""

    config: Config
    store: Store
    clock: Clock
    by: str
    router: Routes
    sandboxes: Callable[[], Awaitable[Sandboxes]]
    brain: Callable[[], Brain]
    clean: Callable[[str], str]
    library: SkillSet


@dataclass(frozen=True, slots=True)
class SkillCall:
    """One call of a tool, its arguments checked."""

    shared: SkillServices
    tool: Tool
    given: Arguments
    caller: Caller

    @property
    def skill(self) -> Skill:
        """The discipline."""
        return self.shared.library.get(self.tool.skill)

    def text(self, name: str) -> str:
        """An argument that is a text, "" where it is not given."""
        return str(self.given.get(name) or "")

    def root(self) -> Path | None:
        """The project, where the call names one: inside the caller's roots, apart from our own files."""
        named = self.text("project_root")
        return check_root(named, self.caller.roots, private_places(self.shared.config)) if named else None

    def job(self, task: str, phase: str = "", root: Path | None = None) -> Job:
        """The call as the router takes it; what a session did before goes before the task by `with_past`."""
        skill, caller = self.skill, self.caller
        return Job(
            skill=skill.name,
            phase=phase or self.tool.phase,
            discipline=skill.discipline(phase or self.tool.phase),
            task=task,
            root="" if root is None else str(root),
            model=self.text("model") or None,
            session_id=self.text("session_id") or None,
            writes=self.tool.writes,
            schema=answer_schema(skill, phase or self.tool.phase),
            by=caller.by or self.shared.by,
            origin=caller.origin,
            chain=skill.chain or (),
            local_only=skill.local_only,
        )

    async def route(self, job: Job, bench: CallFiles | None) -> Outcome:
        """Have it routed, by the models of the project that it is about. A person's chain goes before a skill's own."""
        models = await asyncio.to_thread(self.models, job.root)
        named = models.skills.get(job.skill)
        if named is not None and named.chain:
            job = replace(job, chain=())
        caller = self.caller
        return await self.shared.router.call(job, bench, show=caller.show, cancel=caller.cancel, models=models)

    def models(self, root: str) -> Models:
        """The chains that count for a project; raises `InputInvalid`. Blocks."""
        from bailiwick.routing.models_file import read_models

        return read_models(self._config_for(root), file=self.caller.models_file)

    def _config_for(self, root: str) -> Config:
        """The configuration that counts for a project: ours, unless it lies in another repository."""
        config = self.shared.config
        ours = config.repository.root if config.repository is not None else None
        if not root or (ours is not None and Path(root).is_relative_to(ours.resolve())):
            return config
        return load_config(Path(root), {})

    async def entries(self) -> list[dict[str, Json]]:
        """The call log of the session that the call names; empty where it names none."""
        session = self.text("session_id")
        if not session:
            return []
        return await asyncio.to_thread(read_calls, sessions_folder(self.shared.config), check_session(session))

    async def with_past(self, task: str) -> str:
        """The task after what the session did before."""
        return with_history(task, await self.entries(), self.tool.phase)
