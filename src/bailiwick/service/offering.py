"""What one session of ours offers over MCP: its skills, its runs, its files."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from bailiwick.config.service import Config
from bailiwick.config.variables import Environment
from bailiwick.ids import Json
from bailiwick.journal.rows import RunRow
from bailiwick.routing.call_log import read_calls, sessions_folder
from bailiwick.runs.disk import directories
from bailiwick.service.mcp import Offer
from bailiwick.service.mcp_resources import Resources
from bailiwick.service.mcp_tools import Answerer, ToolRequest
from bailiwick.service.run_tools import RunPermissions, RunTools
from bailiwick.skills.display import document
from bailiwick.skills.folders import find_skills
from bailiwick.skills.model import Skill
from bailiwick.skills.tools import RUN_TOOLS

if TYPE_CHECKING:
    from bailiwick.app.service import App
    from bailiwick.skills.service import Skills


def skill_answerer(skills: Callable[[], Skills], roots: tuple[Path, ...]) -> Answerer:
    """Answers the tools of skills, for projects below `roots`."""

    async def answer(asked: ToolRequest) -> dict[str, Json]:
        from bailiwick.skills.service import Caller

        caller = Caller(by=asked.by, origin="mcp", show=asked.show, cancel=asked.cancel, roots=roots)
        return document(await skills().call(asked.tool.name, asked.arguments, caller))

    return answer


def licence_of(config: Config) -> RunPermissions:
    """What MCP clients may start, and for how much."""
    return RunPermissions(tuple(str(one) for one in config.get("mcp.workflows") or ()), config.get("mcp.budget"))


def make_offer(app: App, answer_skill: Answerer, walk: Callable[[RunRow], None]) -> Offer:
    """Everything that a client may use. `walk` sees to it that a started run is walked."""
    runs = RunTools(app, licence_of(app.config), walk, Environment())

    async def answer(asked: ToolRequest) -> dict[str, Json]:
        return await (runs(asked) if asked.tool.name in RUN_TOOLS else answer_skill(asked))

    async def skills() -> Mapping[str, Skill]:
        return (await asyncio.to_thread(find_skills, app.config)).skills

    def folder(row: RunRow) -> Path:
        return next(iter(directories(app.runtime, row)), app.runtime.run_dir(row))

    def tell(text: str) -> None:
        app.runtime.on_trouble("", text)

    return Offer(
        skills=skills,
        answer=answer,
        resources=Resources(app.runtime.store, sessions_folder(app.config), folder, read_calls),
        clean=app.clean,
        tell=tell,
    )
