"""From an MCP call to a model: finds the skill, checks where it may work, makes its task, and has it routed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bailiwick.clock import Clock
from bailiwick.config.service import Config
from bailiwick.config.variables import Environment
from bailiwick.errors import NotFound, NotReady, UsageError
from bailiwick.ids import Json
from bailiwick.journal.port import Store
from bailiwick.lang.wording import suggestion
from bailiwick.routing.model import Outcome, Result
from bailiwick.skills.arguments import bad_arguments, given
from bailiwick.skills.calling import Arguments, Caller, Routes, SkillCall, SkillServices
from bailiwick.skills.folders import find_skills
from bailiwick.skills.model import Tool
from bailiwick.skills.tasks import task_text
from bailiwick.skills.tools import RUN_TOOLS, tools_for

if TYPE_CHECKING:
    from bailiwick.brain.service import Brain
    from bailiwick.sandbox.service import Sandboxes

__all__ = ["Caller", "Skills"]

UNKNOWN_TOOL = "BW295"
BAD_ARGUMENTS = "BW296"
NO_LOG = "BW297"
OFF = "BW298"
FOUND = 8
"""Notes that an answer is made of, at most."""


@dataclass(slots=True, kw_only=True)
class Skills:
    """The tools of a process. `brain` opens the notes, and raises `NotReady` where they are switched off.

    `clean` takes secrets out of a text; those that the configuration knows where it is not given.
    """

    config: Config
    store: Store
    clock: Clock
    by: str
    router: Routes
    sandboxes: Callable[[], Awaitable[Sandboxes]]
    brain: Callable[[], Brain]
    clean: Callable[[str], str] | None = None

    async def call(self, tool: str, arguments: Mapping[str, Json], caller: Caller) -> Outcome | dict[str, Json]:
        """Do what a tool promises. Raises `UsageError` for arguments that can't be used, before anything is spent."""
        if not self.config.get("features.skills"):
            raise NotReady("skills are switched off", hint="set features.skills to true", code=OFF)
        library = await asyncio.to_thread(find_skills, self.config)
        chosen = _tool(tool, tools_for(library.skills.values()))
        if faults := bad_arguments(chosen, arguments):
            raise UsageError(f"{tool}: {'; '.join(faults)}", hint="change the arguments", code=BAD_ARGUMENTS)
        shared = SkillServices(
            config=self.config,
            store=self.store,
            clock=self.clock,
            by=self.by,
            router=self.router,
            sandboxes=self.sandboxes,
            brain=self.brain,
            clean=self._cleaner(),
            library=library,
        )
        return await _HANDLERS.get(chosen.name, _work)(SkillCall(shared, chosen, given(chosen, arguments), caller))

    def _cleaner(self) -> Callable[[str], str]:
        """Takes every known secret out of a text; looked up when the first text has to be cleaned."""

        def clean(text: str) -> str:
            if self.clean is None:
                from bailiwick.secrets.service import KnownSecrets

                self.clean = KnownSecrets.of(self.config).text
            return self.clean(text)

        return clean


def _tool(name: str, tools: Mapping[str, Tool]) -> Tool:
    if name in tools and name not in RUN_TOOLS:
        return tools[name]
    known = sorted(tools.keys() - RUN_TOOLS)
    hint = suggestion(name, known, f"one of {', '.join(known)}")
    raise NotFound(f"there is no tool '{name[:80]}' here", hint=hint, code=UNKNOWN_TOOL)


async def _work(call: SkillCall) -> Outcome:
    """A skill on a project, or, where it names none, on nothing but words."""
    root = call.root()
    if root is None:
        return await call.route(call.job(await call.with_past(task_text(call.tool, call.given))), None)
    from bailiwick.skills.project import ProjectCall

    return await ProjectCall(call, root).outcome()


async def _logged(call: SkillCall) -> list[dict[str, Json]]:
    entries = await call.entries()
    if not entries:
        raise NotFound(
            f"the session '{call.text('session_id')}' has no call log",
            hint="give the session_id of calls that were made with one",
            code=NO_LOG,
        )
    return entries


async def _retrospective(call: SkillCall) -> Outcome:
    from bailiwick.skills.lessons import told_entries

    entries = await _logged(call)
    more = {"session_id": call.text("session_id"), "entries": told_entries(entries)}
    return await call.route(call.job(task_text(call.tool, call.given, more)), None)


async def _trainer(call: SkillCall) -> Outcome:
    from bailiwick.skills.lessons import train

    entries = await _logged(call)
    return await train(call, entries, call.shared.brain())


async def _session_log(call: SkillCall) -> dict[str, Json]:
    return {"session_id": call.text("session_id"), "entries": list(await call.entries())}


async def _stats_models(call: SkillCall) -> dict[str, Json]:
    from bailiwick.routing.reports import models_report

    report = await models_report(call.shared.store, call.shared.clock.now())
    return {"models": [one.to_json() for one in report.models]}


async def _tier(call: SkillCall) -> dict[str, Json]:
    from bailiwick.agents.settings import read_settings
    from bailiwick.routing.cooldown import Cooldowns
    from bailiwick.routing.tiers import TierSurvey, tiers

    own = call.shared
    models = await asyncio.to_thread(call.models, "")
    survey = TierSurvey(
        own.config,
        settings=read_settings(own.config, None),
        models=models,
        cooldowns=Cooldowns(own.store, own.clock),
        environment=Environment(),
    )
    return {"tiers": [one.to_json() for one in await tiers(survey)]}


def _scope(call: SkillCall) -> str:
    from bailiwick.brain.service import scope_of

    return scope_of(call.root())


async def _brain_query(call: SkillCall) -> dict[str, Json]:
    limit = call.given.get("limit", FOUND)
    found = await call.shared.brain().query(call.text("query"), _scope(call), limit=limit)
    return {"notes": [one.to_json() for one in found]}


async def _brain_write(call: SkillCall) -> dict[str, Json]:
    session = call.text("session_id")
    source = f"session {session}" if session else f"{call.caller.origin} by {call.caller.by}"
    tags = call.given.get("tags", [])
    note = await call.shared.brain().write(
        call.text("note"), title=call.text("title"), tags=tags, scope=_scope(call), source=source, by_agent=True
    )
    return {"note": note.to_json()}


async def _brain_answer(call: SkillCall) -> Outcome:
    """An answer from notes; where none is found that is the answer, and no model is asked."""
    from bailiwick.skills.checks import CitationCheck
    from bailiwick.skills.lessons import told_notes

    found = await call.shared.brain().query(call.text("question"), _scope(call), limit=FOUND)
    notes = [one.note for one in found]
    if not notes:
        details: Arguments = {"answer": "", "cites": [], "not_told": [call.text("question")]}
        nothing = Result("fail", call.tool.phase, call.tool.skill, "no note is about this", details=details)
        return Outcome("", nothing, "no note was found, so no model was asked")
    task = task_text(call.tool, call.given, {"notes": told_notes(notes)})
    return await call.route(call.job(await call.with_past(task)), CitationCheck({note.id for note in notes}))


_HANDLERS: dict[str, Callable[[SkillCall], Awaitable[Outcome | dict[str, Json]]]] = {
    "retrospective": _retrospective,
    "trainer": _trainer,
    "brain_query": _brain_query,
    "brain_write": _brain_write,
    "brain_answer": _brain_answer,
    "tier": _tier,
    "session_log": _session_log,
    "stats_models": _stats_models,
}
"""Tools that do not simply follow a skill; all others do."""
