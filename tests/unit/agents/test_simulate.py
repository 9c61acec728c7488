"""The simulated agent does what its script says, the same each time, and says what is wrong with a script."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from typing import TYPE_CHECKING

import pytest

from bailiwick.agents.backends.simulate import SimulateBackend
from bailiwick.agents.classify import classify
from bailiwick.agents.extract import Bad, Extracted, extract
from bailiwick.agents.launch import Launcher
from bailiwick.agents.port import (
    AgentEvent,
    Answered,
    Compacted,
    LimitSeen,
    ProcessEnded,
    Said,
    SessionKnown,
    ToolBegan,
    ToolEnded,
    Trouble,
    Turn,
    Used,
)
from bailiwick.agents.settings import AgentSettings, TurnTimeouts
from bailiwick.clock import ManualClock
from bailiwick.engine.failures import FailureKind
from bailiwick.engine.graph import Output
from bailiwick.processes import children
from bailiwick.processes.command import Exit
from tests.unit.agents.asking import script_of, turn

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from bailiwick.agents.simulation import Script
    from bailiwick.ids import Json

NAME = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
OUTPUTS = (Output("name", {"type": "string"}),)
NOW = 1_900_000_000.0


class RecordingIo:
    """Notes what is started; nothing is."""

    def __init__(self, end: Exit | None = None) -> None:
        self.started: list[tuple[str, ...]] = []
        self._end = end or Exit(0, b"", b"", 0.0)

    async def spawn(
        self, argv: tuple[str, ...], env: Mapping[str, str], cwd: Path, stdin: bytes, on_line: Callable[[bytes], None]
    ) -> Exit:
        self.started.append(argv)
        on_line(b"said by " + argv[0].encode())
        return self._end

    def note(self, path: Path) -> None:
        raise AssertionError("there is no file to note")


def play(script: Script | None, asked: Turn, io: RecordingIo | None = None) -> list[AgentEvent]:
    """Every event of a turn."""
    events: list[AgentEvent] = []
    backend = SimulateBackend(script, clock=ManualClock(NOW))
    asyncio.run(backend.turn(asked, io or RecordingIo(), events.append))
    return events


def behave(tmp_path: Path, behaviour: str, **fields: Json) -> list[AgentEvent]:
    """Every event of a turn at a node with one behaviour."""
    script = script_of(tmp_path, f"nodes:\n  step:\n    - {behaviour}\n")
    return play(script, turn(**{"node": "step", "cwd": tmp_path, "schema": NAME, **fields}))


def kind_of(events: list[AgentEvent]) -> FailureKind | None:
    """The class that the classifier gives these events."""
    found = classify(events, expects_answer=True, now=NOW, zone="UTC")
    return found.kind if found else None


def answer_of(events: list[AgentEvent]) -> Answered:
    """The answer in which a turn ended."""
    assert isinstance(events[-1], Answered), events
    return events[-1]


def test_without_a_script_every_declared_output_is_answered() -> None:
    """Any workflow can be run with `--simulate`, before a script is written for it."""
    schema = {
        "type": "object",
        "properties": {"status": {"enum": ["ok", "bad"]}, "rows": {"type": "array", "minItems": 2}, "free": {}},
        "required": ["status", "rows", "free"],
    }
    answer = answer_of(play(None, turn(schema=schema)))
    outputs = [
        Output("status", {"enum": ["ok", "bad"]}),
        Output("rows", {"type": "array", "minItems": 2}),
        Output("free"),
    ]
    assert isinstance(extract(answer.text, outputs), Extracted)
    assert answer.structured is not None
    assert answer.structured["status"] == "ok"


def test_a_declared_default_is_answered_before_an_invented_value() -> None:
    """The author's example is a better stand-in than ours."""
    events = play(None, turn(schema=NAME, options={"defaults": {"name": "declared"}}))
    assert answer_of(events).structured == {"name": "declared"}


def test_without_outputs_it_just_says_that_it_is_done() -> None:
    """The work tree is the result."""
    assert answer_of(play(None, turn())) == Answered("Done.", None, "end_turn")


def test_the_answer_of_the_script_wins_and_is_found_in_the_text(tmp_path: Path) -> None:
    """Text and structured answer say the same."""
    answer = answer_of(behave(tmp_path, "answer: {name: given}"))
    assert answer.structured == {"name": "given"}
    assert extract(answer.text, OUTPUTS) == Extracted({"name": "given"})


@pytest.mark.parametrize(
    ("behaviour", "kind"),
    [
        ("rate_limit: {retry_after: 30s}", FailureKind.RATE_LIMIT),
        ("rate_limit: true", FailureKind.RATE_LIMIT),
        ('cap: "You\'ve hit your 5-hour limit · resets 3pm (UTC)"', FailureKind.CAP),
        ("cap: {resets_in: 2h}", FailureKind.CAP),
        ("overflow: true", FailureKind.OVERFLOW),
        ("outage: true", FailureKind.OVERLOADED),
        ("outage: {kind: unreachable}", FailureKind.UNREACHABLE),
        ("crash: true", FailureKind.CRASH),
        ("crash: {code: 137}", FailureKind.CRASH),
        ("refusal: true", FailureKind.REFUSED),
        ("empty: true", FailureKind.EMPTY),
        ("denied: Bash", FailureKind.TOOL_DENIED),
        ("auth: true", FailureKind.AUTH),
        ("billing: true", FailureKind.BILLING),
        ("{denied: Bash, answer: {name: x}}", None),
        ("cheat: claim", None),
        ("two_objects: true", None),
        ("bad_json: true", None),
    ],
)
def test_each_behaviour_is_classified_as_what_it_imitates(
    tmp_path: Path, behaviour: str, kind: FailureKind | None
) -> None:
    """A simulation that the classifier reads otherwise shows a ladder that nobody will climb."""
    assert kind_of(behave(tmp_path, behaviour)) == kind


def test_bad_json_cannot_be_repaired_and_two_objects_can_be_told_apart(tmp_path: Path) -> None:
    """The first has to be asked for again, the second is settled by the declared outputs."""
    assert isinstance(extract(answer_of(behave(tmp_path, "bad_json: true")).text, OUTPUTS), Bad)
    both = answer_of(behave(tmp_path, "{two_objects: true, answer: {name: right}}"))
    assert both.structured is None
    assert extract(both.text, OUTPUTS) == Extracted({"name": "right"})


def test_waits_are_told_as_the_script_has_them(tmp_path: Path) -> None:
    """The ladder waits by these numbers."""
    limited = behave(tmp_path, "rate_limit: {retry_after: 30s}")[-1]
    assert isinstance(limited, Trouble)
    assert limited.retry_after == 30.0
    *_, seen, capped = behave(tmp_path, "cap: {resets_in: 2h, window: week}")
    assert seen == LimitSeen(hit=True, window="week", resets_at=NOW + 7200, text="You've hit your 5-hour limit")
    assert isinstance(capped, Trouble)
    assert capped.resets_at == NOW + 7200


def test_attempts_are_played_in_order_and_the_last_repeats(tmp_path: Path) -> None:
    """Three failures and then an answer is how every rung of the ladder is shown."""
    script = script_of(tmp_path, "nodes: {step: [{outage: true, repeat: 2}, {empty: true}, {answer: {name: x}}]}")
    kinds = [kind_of(play(script, turn(node="step", attempt=number, schema=NAME))) for number in (1, 2, 3, 4, 9)]
    assert kinds == [FailureKind.OVERLOADED, FailureKind.OVERLOADED, FailureKind.EMPTY, None, None]


def test_visits_may_have_lists_of_their_own(tmp_path: Path) -> None:
    """A review that rejects once and then accepts is a loop."""
    script = script_of(tmp_path, "nodes: {step: [[{answer: {name: no}}], [{answer: {name: yes}}]]}")
    said = [
        answer_of(play(script, turn(node="step", schema=NAME, options={"visit": visit}))).structured
        for visit in (1, 2, 3)
    ]
    assert said == [{"name": "no"}, {"name": "yes"}, {"name": "yes"}]


def test_nodes_without_an_entry_behave_like_the_star_or_well(tmp_path: Path) -> None:
    """A script names only what is special."""
    script = script_of(tmp_path, 'nodes: {other: [{empty: true}], "*": [{text: star}]}')
    assert answer_of(play(script, turn(node="step"))).text == "star"
    assert answer_of(play(script_of(tmp_path, "seed: 1"), turn(node="step"))).text == "Done."


def test_files_are_written_and_removed_in_the_working_directory(tmp_path: Path) -> None:
    """The work of a coding agent is files."""
    (tmp_path / "old.txt").write_text("x")
    events = behave(tmp_path, '{say: [Look., Done.], edit: {"a/b.txt": "hi\\n", old.txt: null}, answer: {name: x}}')
    assert (tmp_path / "a" / "b.txt").read_text() == "hi\n"
    assert not (tmp_path / "old.txt").exists()
    assert [event for event in events if isinstance(event, Said)] == [Said("Look."), Said("Done.")]
    assert [event.name for event in events if isinstance(event, ToolBegan)] == ["edit", "edit"]


def test_a_link_out_of_the_directory_is_not_written_through(tmp_path: Path) -> None:
    """A simulated agent harms nobody's files."""
    work = tmp_path / "work"
    work.mkdir()
    (work / "out").symlink_to(tmp_path)
    events = behave(tmp_path, '{edit: {"out/x.txt": "hi"}}', cwd=work)
    assert kind_of(events) == FailureKind.SPAWN
    assert not (tmp_path / "x.txt").exists()


def test_commands_are_run_by_the_launcher_and_told_as_tools(tmp_path: Path) -> None:
    """A command gets the clocks, the environment and the process group of the turn."""
    io = RecordingIo()
    script = script_of(tmp_path, "nodes: {step: [{run: [\"git commit -m 'two words'\"]}]}")
    events = play(script, turn(node="step", cwd=tmp_path), io)
    assert io.started == [("git", "commit", "-m", "two words")]
    assert ToolEnded("tool-1", text="said by git") in events


def test_a_command_that_a_clock_ends_ends_the_turn(tmp_path: Path) -> None:
    """What would follow was not reached."""
    script = script_of(tmp_path, "nodes: {step: [{run: [tail], answer: {name: x}}]}")
    events = play(script, turn(node="step", cwd=tmp_path), RecordingIo(Exit(-15, b"", b"", 1.0, why="total")))
    assert events[-1] == ProcessEnded(-15, why="total")


def test_an_overflow_is_over_when_the_session_was_compacted(tmp_path: Path) -> None:
    """The count is in the session's id: a restart in between changes nothing."""
    script = script_of(tmp_path, "nodes: {step: [{overflow: 2, answer: {name: x}}]}")
    backend = SimulateBackend(script)
    session: str | None = None
    kinds: list[FailureKind | None] = []
    for rung in ("first", "compact", "compact"):
        events: list[AgentEvent] = []
        at = turn(node="step", schema=NAME, session=session, options={"rung": rung})
        if rung == "compact":
            asyncio.run(backend.compact(at, RecordingIo(), events.append))
            assert Compacted(ok=True) in events
        asyncio.run(backend.turn(at, RecordingIo(), events.append))
        session = next(event.id for event in reversed(events) if isinstance(event, SessionKnown))
        kinds.append(kind_of(events))
    assert kinds == [FailureKind.OVERFLOW, FailureKind.OVERFLOW, None]


def test_a_compaction_may_fail(tmp_path: Path) -> None:
    """Then the ladder reframes."""
    script = script_of(tmp_path, "nodes: {step: [{overflow: true, compacts: false}]}")
    events: list[AgentEvent] = []
    asyncio.run(SimulateBackend(script).compact(turn(node="step", session="s"), RecordingIo(), events.append))
    assert [event.ok for event in events if isinstance(event, Compacted)] == [False]


def test_an_outage_ends_at_its_time_or_with_its_file(tmp_path: Path) -> None:
    """An outage that ends by itself shows the wait; one that ends with a file can be ended by hand."""
    assert kind_of(behave(tmp_path, 'outage: {until: "2029-01-01T00:00:00Z"}')) is None
    assert kind_of(behave(tmp_path, 'outage: {until: "2039-01-01T00:00:00Z"}')) == FailureKind.OVERLOADED
    assert kind_of(behave(tmp_path, "outage: {until_file: up}")) == FailureKind.OVERLOADED
    (tmp_path / "up").touch()
    assert kind_of(behave(tmp_path, "outage: {until_file: up}")) is None


def test_tokens_have_the_price_of_their_model(tmp_path: Path) -> None:
    """Budgets can be shown without spending."""
    text = 'models: {dear: {input_usd: 10, output_usd: 50}, "*": {input_usd: 1}}\n'
    script = script_of(tmp_path, text + "nodes: {step: [{tokens: {input: 1000, output: 200}}]}")
    spent = [next(e for e in play(script, turn(node="step", model=m)) if isinstance(e, Used)) for m in ("dear", "x")]
    assert [used.usd for used in spent] == [0.02, 0.001]
    assert [used.model for used in spent] == ["dear", "x"]
    assert next(e for e in play(None, turn()) if isinstance(e, Used)).usd == 0.0


def test_latency_passes_in_a_process_so_that_it_can_be_ended(tmp_path: Path) -> None:
    """`stop --now` does not wait for a slow model."""
    script = script_of(tmp_path, "models: {slow: {latency: 2s}}")
    io = RecordingIo()
    play(script, turn(model="slow"), io)
    assert io.started == [("sleep", "2")]
    ended = play(script, turn(model="slow"), RecordingIo(Exit(-15, b"", b"", 1.0, why="cancelled")))
    assert ended[-1] == ProcessEnded(-15, why="cancelled")


def test_choices_come_by_weight(tmp_path: Path) -> None:
    """Three to one is about three to one, and never the one without weight."""
    text = "nodes: {step: [{choose: [{weight: 3, text: a}, {weight: 1, text: b}, {weight: 0, text: c}]}]}"
    script = script_of(tmp_path, text)
    said = [answer_of(play(script, turn(node="step", key=f"k{number}"))).text for number in range(200)]
    assert 120 < said.count("a") < 180
    assert said.count("c") == 0


@pytest.mark.parametrize(
    ("cheat", "left"),
    [
        ("claim", {"test_a.py": "assert 0", "app.py": "x"}),
        ("delete", {"app.py": "x"}),
        ("exit", {"test_a.py": "assert 0", "app.py": "x", "conftest.py": "os._exit(0)"}),
        ("skip", {"test_a.py": "pytest.mark.skip", "app.py": "x"}),
        ("gate", {"test_a.py": "assert 0", "app.py": "x", ".bailiwick/gate.yaml": "checks: []"}),
    ],
)
def test_a_cheat_looks_done_and_is_not(tmp_path: Path, cheat: str, left: dict[str, str]) -> None:
    """Gates are shown to work by agents that try to get around them."""
    work = tmp_path / "work"
    work.mkdir()
    (work / "test_a.py").write_text("assert 0")
    (work / "app.py").write_text("x")
    answer_of(behave(tmp_path, f"cheat: {cheat}", cwd=work))
    found = {path.relative_to(work).as_posix(): path.read_text() for path in work.rglob("*") if path.is_file()}
    assert found.keys() == left.keys()
    assert all(text in found[name] for name, text in left.items())


def launched(tmp_path: Path, behaviour: str, clocks: TurnTimeouts) -> AgentEvent:
    """How a turn ends whose process is real."""
    script = script_of(tmp_path, f"nodes: {{step: [{{{behaviour}: true}}]}}")
    events: list[AgentEvent] = []

    async def go() -> None:
        with Launcher(clocks, asyncio.Event()) as launcher:
            asked = turn(node="step", cwd=tmp_path, env={"PATH": os.defpath})
            await SimulateBackend(script).turn(asked, launcher, events.append)

    asyncio.run(go())
    return events[-1]


@pytest.mark.parametrize(
    ("behaviour", "clocks", "why"),
    [
        ("hang", TurnTimeouts(0.2, 60.0), "silence"),
        ("hang", TurnTimeouts(60.0, 0.2), "total"),
        ("endless", TurnTimeouts(60.0, 0.2), "total"),
    ],
)
def test_what_never_ends_is_ended_by_the_clocks(tmp_path: Path, behaviour: str, clocks: TurnTimeouts, why: str) -> None:
    """They are real processes: what ends them is what would end an agent."""
    event = launched(tmp_path, behaviour, clocks)
    assert isinstance(event, ProcessEnded)
    assert event.why == why


def test_a_process_that_ignores_the_request_to_end_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some agents do not listen while a tool runs."""
    monkeypatch.setattr(children, "GRACE", 0.3)
    event = launched(tmp_path, "ignore_term", TurnTimeouts(60.0, 0.3))
    assert isinstance(event, ProcessEnded)
    assert (event.code, event.why) == (-signal.SIGKILL, "total")


def test_the_settings_bring_the_script(tmp_path: Path) -> None:
    """`--simulate SCRIPT` is all a person types."""
    path = tmp_path / "script.yaml"
    path.write_text("nodes: {}")
    ok, words = asyncio.run(SimulateBackend.for_settings(AgentSettings(script=path)).check({}, RecordingIo()))
    assert ok
    assert words.endswith(str(path))
    assert (
        "every declared output"
        in asyncio.run(SimulateBackend.for_settings(AgentSettings()).check({}, RecordingIo()))[1]
    )


def test_events_carry_plain_json(tmp_path: Path) -> None:
    """They go into the journal."""
    events = behave(tmp_path, "answer: {name: [1, {a: null}]}")
    assert json.loads(json.dumps(answer_of(events).structured)) == {"name": [1, {"a": None}]}
