"""Creating a run is one function of (definition, params), whichever way the run begins."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bailiwick.engine import events as ev
from bailiwick.engine import graph as g
from bailiwick.engine.state import State
from bailiwick.errors import UsageError
from bailiwick.ids import Json
from bailiwick.journal.rows import RunFilter, RunRow
from bailiwick.lang.load import Loaded
from bailiwick.lang.params import check_params, first_context
from bailiwick.processes.owner import current_owner
from bailiwick.runs.control import Control
from bailiwick.runs.foreground import Foreground
from bailiwick.runs.start import StartRequest, start
from bailiwick.runtime.assemble import Runtime
from bailiwick.runtime.facts import RunFacts
from bailiwick.runtime.projector import rebuild
from tests.unit.runtime.journals import files_of
from tests.unit.runtime.stage import Calm, RuntimeSetup, Scripted, at_once, work

NAMES = ("level", "name", "extra")
VALUES = st.one_of(st.none(), st.integers(-3, 3), st.sampled_from(["", "x", "{{ y }}"]))
SCHEMAS = st.fixed_dictionaries(
    {}, optional={"default": VALUES, "type": st.sampled_from(["integer", "string", ["integer", "null"]])}
)


@st.composite
def definitions(draw: st.DrawFn) -> g.Graph:
    """A workflow with typed params, vars, or both, that ends at once."""
    params = draw(st.one_of(st.none(), st.dictionaries(st.sampled_from(NAMES), SCHEMAS, max_size=3)))
    found = draw(st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=2))
    nodes: dict[str, g.Node] = {"mark": g.Set(id="mark", values={}, next="done"), "done": g.End(id="done")}
    return g.Graph(name="callee", start="mark", nodes=nodes, vars=found, params=params)


GIVEN = st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=3)


def _caller(stage: RuntimeSetup, callee: g.Graph, params: dict[str, Json]) -> Loaded:
    """A workflow that calls another one with these params, taken as data."""
    root, beside = stage.home / "caller", stage.home / "callee"
    root.mkdir(exist_ok=True)
    beside.mkdir(exist_ok=True)
    call = g.Call(id="sub", workflow="callee", params=params, next="done", on_error="done")
    nodes: dict[str, g.Node] = {"sub": call, "done": g.End(id="done")}
    loaded = Loaded(g.Graph(name="caller", start="sub", nodes=nodes), [], root, {})
    loaded.calls = {"callee": Loaded(callee, [], beside, {})}
    return loaded


async def _walked(runtime: Runtime, loaded: Loaded, params: dict[str, Json], key: str) -> RunRow:
    row = (await start(runtime, StartRequest(loaded, params, key))).row
    return (await Foreground(runtime, current_owner("test")).walk(row, Calm())).row


async def _first(runtime: Runtime, row: RunRow) -> ev.RunCreated:
    event = (await runtime.library.history(row.id))[0][2]
    assert isinstance(event, ev.RunCreated)
    return event


async def _started(runtime: Runtime, loaded: Loaded, params: dict[str, Json]) -> tuple[RunRow | None, str]:
    try:
        return await _walked(runtime, loaded, params, "alone"), ""
    except UsageError as error:
        return None, error.what


async def _called(runtime: Runtime, caller: Loaded) -> tuple[RunRow | None, State]:
    parent = await _walked(runtime, caller, {}, "parent")
    children = [row for row in await runtime.store.runs(RunFilter(root_id=parent.id)) if row.parent]
    return (children[0] if children else None), await runtime.library.state(parent.id)


@settings(max_examples=40, deadline=None)
@given(callee=definitions(), params=GIVEN)
def test_a_run_begins_the_same_whether_started_called_or_forked(callee: g.Graph, params: dict[str, Json]) -> None:
    """Same definition and params: same first context and params, or the same refusal."""

    async def scene(runtime: Runtime) -> None:
        caller = _caller(stage, callee, {k: v for k, v in params.items() if v != "{{ y }}"})
        plain = dict(caller.graph.nodes["sub"].params)  # type: ignore[union-attr]
        alone, refusal = await _started(runtime, caller.calls["callee"], plain)
        child, parent = await _called(runtime, caller)
        assert (alone is None) == bool(check_params(callee, plain))
        assert (alone is None) == (child is None)
        if alone is None or child is None:
            assert refusal in parent.context()["error"]["message"]
            return
        own, theirs = await _first(runtime, alone), await _first(runtime, child)
        assert own.context == theirs.context == first_context(callee, plain)
        assert own.params == theirs.params == plain
        control = Control(runtime, "tester")
        fork = await control.fork(alone, await control.point(alone, "mark", None), {}, "forked")
        assert (await runtime.library.state(fork.id)).context() == own.context

    with tempfile.TemporaryDirectory() as folder:
        stage = RuntimeSetup(Path(folder), Scripted(at_once))
        stage.play(scene)


def test_a_called_workflow_has_the_defaults_of_its_params(tmp_path: Path) -> None:
    """As when it is run alone."""
    stage = RuntimeSetup(tmp_path, Scripted(at_once))
    nodes: dict[str, g.Node] = {
        "say": g.Set(id="say", values={"said": "level {{ level }}"}, next="done"),
        "done": g.End(id="done"),
    }
    callee = g.Graph(
        name="callee", start="say", nodes=nodes, params={"level": {"type": "integer", "default": 3}}, returns=("said",)
    )

    async def scene(runtime: Runtime) -> None:
        _, parent = await _called(runtime, _caller(stage, callee, {}))
        assert parent.context()["sub"] == {"said": "level 3"}

    stage.play(scene)


def test_a_fork_checks_its_values_and_has_ceilings_of_its_own(tmp_path: Path) -> None:
    """A value that does not fit the param of its name is refused; a fork of a called run is not without a budget."""
    stage = RuntimeSetup(tmp_path, Scripted(at_once))
    nodes: dict[str, g.Node] = {"mark": g.Set(id="mark", values={}, next="done"), "done": g.End(id="done")}
    callee = g.Graph(name="callee", start="mark", nodes=nodes, params={"level": {"type": "integer", "default": 3}})

    async def scene(runtime: Runtime) -> None:
        child, _ = await _called(runtime, _caller(stage, callee, {}))
        assert child is not None
        control = Control(runtime, "tester")
        point = await control.point(child, "mark", None)
        with pytest.raises(UsageError, match="param 'level'"):
            await control.fork(child, point, {"level": "high"}, "bad")
        fork = await control.fork(child, point, {"level": 4, "other": "x"}, "good", {"usd": 2.0})
        state = await runtime.library.state(fork.id)
        assert state.context() == {"level": 4, "other": "x"}
        assert state.limits == {"usd": 2.0}

    stage.play(scene)


def test_a_run_that_waits_for_its_children_is_not_read_again_for_each(tmp_path: Path) -> None:
    """What its end costs a child must not grow with the children before it."""
    stage = RuntimeSetup(tmp_path, Scripted(at_once))
    callee = g.Graph(name="callee", start="a", nodes={"a": work("a", next="done"), "done": g.End(id="done")})
    nodes: dict[str, g.Node] = {
        "each": g.Map(id="each", over="items", body="sub", join="done", max=2),
        "sub": g.Call(id="sub", workflow="callee", next="done"),
        "done": g.End(id="done"),
    }
    caller = replace(
        _caller(stage, callee, {}), graph=g.Graph(name="caller", start="each", nodes=nodes, vars={"items": [1] * 30})
    )
    read: list[str] = []

    async def scene(runtime: Runtime) -> None:
        plain = runtime.library.history

        async def noted(run_id: str, upto: int | None = None) -> list[ev.Entry]:
            read.append(run_id)
            return await plain(run_id, upto)

        runtime.library.history = noted  # type: ignore[method-assign]
        row = await _walked(runtime, caller, {}, "parent")
        assert row.status == "done"
        assert read.count(row.id) <= 2
        await runtime.settle()
        folder = runtime.run_dir(row)
        library, facts = runtime.library, RunFacts(row.workflow, row.run_key, row.id)
        rebuild(tmp_path / "again", await plain(row.id), library.definitions.graph, library.fetch, run=facts)
        assert files_of(folder) == files_of(tmp_path / "again")

    stage.play(scene)
