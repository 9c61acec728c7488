"""Runs over MCP: only what the operator listed, within the budget for clients, on record, and never a decision."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bailiwick.app.service import App, open_app
from bailiwick.audit.service import entries
from bailiwick.config.variables import Environment
from bailiwick.errors import BailiwickError, NotFound, NotReady, UsageError
from bailiwick.ids import Json
from bailiwick.journal.rows import ClaimFilter, RunRow
from bailiwick.lang.load import load
from bailiwick.processes.owner import current_owner
from bailiwick.runs.start import StartRequest, start
from bailiwick.runtime.worker import Worker
from bailiwick.service.mcp_tools import ToolRequest
from bailiwick.service.run_tools import RunPermissions, RunTools
from bailiwick.skills.tools import find_tool

FLOW = """
version: 1
name: flow
params: {who: {default: you}}
start: ask
nodes:
  - {id: ask, type: ask, question: "Greet {{ who }}?", choices: ["yes", "no"], next: done}
  - {id: done, type: terminal}
"""
QUICK = "version: 1\nname: quick\nstart: done\nnodes:\n  - {id: done, type: terminal}\n"


@dataclass
class Counter:
    """Somebody who calls the tools of one session."""

    app: App
    tools: RunTools
    walked: list[str]

    async def call(self, name: str, **arguments: Json) -> dict[str, Json]:
        tool = find_tool(name)
        assert tool is not None
        return await self.tools(ToolRequest(tool, arguments, "mcp:editor", lambda _line: None, asyncio.Event()))

    async def walk(self) -> None:
        async def finished() -> bool:
            return True

        await Worker(self.app.runtime, current_owner("test"), ClaimFilter(), 4).run(finished)


@dataclass
class Place:
    """A machine with workflows of the person and of a repository."""

    root: Path
    licence: RunPermissions = field(default_factory=lambda: RunPermissions(("flow", "quick", "gone"), 5.0))
    environment: dict[str, str] = field(default_factory=dict)
    sandbox: str = "bwrap"

    def write(self, shelf: str, name: str, text: str) -> Path:
        folder = self.root / shelf / name
        folder.mkdir(parents=True)
        (folder / "workflow.yaml").write_text(text)
        return folder

    def at(self, use: Callable[[Counter], Awaitable[Any]]) -> Any:
        async def go() -> Any:
            async with open_app() as app:
                walked: list[str] = []
                sandboxes: Any = SimpleNamespace(sandbox=SimpleNamespace(name=self.sandbox))
                app._sandboxes = sandboxes
                walk: Callable[[RunRow], None] = lambda row: walked.append(row.id)  # noqa: E731
                tools = RunTools(app, self.licence, walk, Environment(self.environment))
                return await use(Counter(app, tools, walked))

        return asyncio.run(go())


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setenv("BAILIWICK_HOME", str(tmp_path / "home"))
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    made = Place(tmp_path)
    made.write("home/config/workflows", "flow", FLOW)
    made.write("home/config/workflows", "quick", QUICK)
    return made


def test_a_listed_workflow_starts_at_once_within_the_clients_budget_and_on_record(place: Place) -> None:
    """Whoever pays has to find out later who started what."""

    async def use(counter: Counter) -> None:
        begun = await counter.call("run_start", workflow="flow", params={"who": "me"})
        assert counter.walked == [begun["run_id"]]
        assert begun["limits"]["usd"] == 5.0
        status = await counter.call("run_status", run_id=begun["run_id"])
        assert status["started_by"] == "mcp:editor"
        assert status["status"] == "queued"
        assert status["spent"] == {}

    place.at(use)
    noted = [one for one in entries(place.root / "home" / "state") if one.kind == "run.started"]
    assert [(one.actor, one.data["workflow"]) for one in noted] == [("mcp:editor", "flow")]


def test_a_run_is_followed_to_its_end(place: Place) -> None:
    """A client that gets only an id needs to know when it is over and what came of it."""

    async def use(counter: Counter) -> None:
        begun = await counter.call("run_start", workflow="quick")
        assert not (await counter.call("run_result", run_id=begun["run_id"]))["over"]
        await counter.walk()
        result = await counter.call("run_result", run_id=begun["run_id"])
        assert (result["over"], result["status"], result["context"]) == (True, "done", {})
        assert result["files"] == f"bailiwick://runs/{begun['run_id']}"
        again = await counter.call("run_result", run_id=begun["run"])
        assert again["run_id"] == begun["run_id"]

    place.at(use)


def test_each_start_is_a_run_of_its_own(place: Place) -> None:
    """Yesterday's finished run is no answer to today's start."""

    async def use(counter: Counter) -> None:
        first, second = [await counter.call("run_start", workflow="quick") for _ in range(2)]
        assert first["run_id"] != second["run_id"]

    place.at(use)


@pytest.mark.parametrize("name", ["other", "../flow", "/etc", "home/config/workflows/flow", "issue-to-pr", ""])
def test_what_is_not_listed_is_not_started(place: Place, name: str) -> None:
    """A path would let a client run whatever it can write."""

    async def use(counter: Counter) -> None:
        with pytest.raises(NotFound, match="not a workflow that clients may start"):
            await counter.call("run_start", workflow=name)
        assert await counter.app.runtime.store.runs() == []

    place.at(use)


def test_a_workflow_of_the_repository_is_never_meant(place: Place) -> None:
    """The agent that calls works in that tree: it could have written the workflow itself."""
    place.write("work/.bailiwick/workflows", "gone", QUICK.replace("quick", "gone"))
    place.write("work/.bailiwick/workflows", "flow", QUICK.replace("quick", "flow"))

    async def use(counter: Counter) -> None:
        with pytest.raises(NotFound, match="no workflow 'gone'"):
            await counter.call("run_start", workflow="gone")
        begun = await counter.call("run_start", workflow="flow")
        row = await counter.app.runtime.store.run(begun["run_id"])
        assert row is not None
        assert row.source == str(place.root / "home" / "config" / "workflows" / "flow")

    place.at(use)


def test_without_a_sandbox_nothing_is_started(place: Place) -> None:
    """Nobody watches a run that a program started."""
    place.sandbox = "none"

    async def use(counter: Counter) -> None:
        with pytest.raises(NotReady, match="only with a sandbox"):
            await counter.call("run_start", workflow="quick")

    place.at(use)


def test_a_run_starts_no_other_over_mcp(place: Place) -> None:
    """An agent could get a new budget that way, over and over."""
    place.environment = {"BAILIWICK_RUN": "abc"}

    async def use(counter: Counter) -> None:
        with pytest.raises(UsageError, match="starts no other runs"):
            await counter.call("run_start", workflow="quick")

    place.at(use)


def test_params_that_do_not_fit_are_told(place: Place) -> None:
    """The client can correct them."""

    async def use(counter: Counter) -> None:
        with pytest.raises(BailiwickError, match="wrong"):
            await counter.call("run_start", workflow="flow", params={"wrong": 1})

    place.at(use)


def test_a_client_cancels_what_a_client_started(place: Place) -> None:
    """The operator's own runs are not a client's to end."""

    async def use(counter: Counter) -> None:
        begun = await counter.call("run_start", workflow="flow")
        await counter.walk()
        assert (await counter.call("run_cancel", run_id=begun["run_id"]))["status"] == "stopped"
        own = await start(counter.app.runtime, StartRequest(load(place.root / "home/config/workflows/flow"), {}, "own"))
        with pytest.raises(UsageError, match="not started over MCP"):
            await counter.call("run_cancel", run_id=own.row.id)

    place.at(use)


def test_what_waits_for_people_is_shown_and_not_decided(place: Place) -> None:
    """A tool that answered for a person would make the question pointless."""

    async def use(counter: Counter) -> None:
        begun = await counter.call("run_start", workflow="flow", params={"who": "me"})
        await counter.walk()
        listed = (await counter.call("approvals_list"))["approvals"]
        assert [(one["run"], one["question"]) for one in listed] == [(begun["run"], "Greet me?")]
        status = await counter.call("run_status", run_id=begun["run_id"])
        assert status["status"] == "waiting"
        assert status["waits"][0]["choices"] == ["yes", "no"]
        assert await counter.call("proposals_list") == {"proposals": []}

    place.at(use)


@pytest.mark.parametrize("name", ["nope", "../x", "", "a" * 500])
def test_an_unknown_run_is_told(place: Place, name: str) -> None:
    """Ids are copied by models, and sometimes made up."""

    async def use(counter: Counter) -> None:
        with pytest.raises(NotFound, match="no run"):
            await counter.call("run_status", run_id=name)

    place.at(use)
