"""The real codex through our backend, launcher and classifier, against a scripted model."""

from __future__ import annotations

import json

import pytest

from bailiwick.agents.port import ProcessEnded, Said, ToolBegan, ToolEnded, Trouble
from bailiwick.agents.settings import TurnTimeouts
from bailiwick.clock import SystemClock
from bailiwick.engine.failures import FailureKind
from bailiwick.testing.model_server.script import SCENARIOS, Fail, Say, ScriptedUsage, UseTool
from tests.agents.desk import RING, SCHEMA, CliUnderTest, Running


def test_it_edits_a_file_and_tells_every_step(codex: CliUnderTest) -> None:
    """The way of a good turn, in codex's own sandbox: the thread, the tool call, the answer, what it used."""
    tokens = ScriptedUsage(input=1200, output=50, cached=1000)
    edit = UseTool("write", path="written.txt", content="by the script\n", tokens=tokens)
    told = codex.ask([edit, Say("The file is written.", tokens=tokens)])
    assert told.kind is None
    assert (codex.work / "written.txt").read_text() == "by the script\n"
    assert told.session
    assert len(told.of(ToolBegan)) == 1
    assert [(ended.id, ended.denied) for ended in told.of(ToolEnded)] == [(told.of(ToolBegan)[0].id, False)]
    assert [said.text for said in told.of(Said)] == [told.answer.text] == ["The file is written."]
    assert (told.used.input, told.used.output, told.used.cached, told.used.usd) == (2400, 100, 2000, None)
    assert told.used.cumulative


def test_a_rate_limit_is_told_at_the_first_request(codex: CliUnderTest) -> None:
    """By itself it would try six times, and sleep for as long as the server says without a word."""
    told = codex.ask([Fail(429, headers={"retry-after": "3600"})])
    assert (told.kind, told.asked) == (FailureKind.RATE_LIMIT, 1)


def test_killed_it_leaves_no_tool_and_its_thread_goes_on(codex: CliUnderTest) -> None:
    """An out-of-memory kill takes the CLI and not its tools; the thread still has the first prompt."""
    told = codex.ask([RING], codex.turn(prompt="Remember the lighthouse."), bell=Running.kill)
    assert told.kind is FailureKind.CRASH
    assert isinstance(told.events[-1], ProcessEnded)
    assert told.events[-1].code == -9
    again = codex.ask([Say("It was the lighthouse.")], codex.turn(prompt="Go on.", session=told.session))
    assert again.kind is None
    assert again.session == told.session
    sent = json.dumps(again.requests[-1].body["input"])
    assert "Remember the lighthouse." in sent
    assert "Go on." in sent


@pytest.mark.nightly
def test_a_plain_answer_is_one_request(codex: CliUnderTest) -> None:
    """Whatever else a CLI would ask on the side is spent money."""
    told = codex.ask(SCENARIOS["plain"])
    assert told.kind is None
    assert told.answer.text == "Hello from the script."
    assert [seen.path for seen in told.requests if seen.method == "POST"] == ["/v1/responses"]
    assert [seen.headers.get("authorization") for seen in told.requests] == ["Bearer made-up"] * len(told.requests)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("scenario", "kind"),
    [
        ("429", FailureKind.RATE_LIMIT),
        ("500", FailureKind.OVERLOADED),
        ("503", FailureKind.OVERLOADED),
        ("529", FailureKind.OVERLOADED),
        ("502-html", FailureKind.OVERLOADED),
        ("401", FailureKind.AUTH),
        ("403", FailureKind.AUTH),
        ("quota", FailureKind.BILLING),
        ("overflow", FailureKind.OVERFLOW),
        ("overflow-midway", FailureKind.OVERFLOW),
        ("refusal", FailureKind.EMPTY),
        ("empty", FailureKind.EMPTY),
        ("drop", FailureKind.UNREACHABLE),
        ("drop-midway", FailureKind.UNREACHABLE),
        ("garbage", FailureKind.UNREACHABLE),
    ],
)
def test_each_failure_gets_its_class(codex: CliUnderTest, scenario: str, kind: FailureKind) -> None:
    """The ladder climbs by the class; codex says nothing of a refusal, so that one looks empty."""
    told = codex.ask(SCENARIOS[scenario])
    assert told.kind is kind, told.events
    assert told.asked == 1
    assert told.session


@pytest.mark.nightly
@pytest.mark.parametrize("hours", [3, 96])
def test_a_cap_names_the_minute_it_ends(codex: CliUnderTest, hours: int) -> None:
    """Only words say when; they are read with their zone."""
    before = SystemClock().now()
    told = codex.ask([Fail(429, "usage-limit", resets_in=hours * 3600)])
    assert told.kind is FailureKind.CAP
    assert told.failed is not None
    assert told.failed.detail.resets_at is not None
    assert -61 <= told.failed.detail.resets_at - hours * 3600 - before <= 61


@pytest.mark.nightly
@pytest.mark.parametrize("scenario", ["hang", "hang-midway"])
def test_a_silent_model_ends_with_our_clock(codex: CliUnderTest, scenario: str) -> None:
    """By itself it said nothing for seven minutes."""
    told = codex.ask(SCENARIOS[scenario], clocks=TurnTimeouts(silence=2.0, total=60.0))
    assert told.kind is FailureKind.TIMEOUT
    assert isinstance(told.events[-1], ProcessEnded)
    assert told.events[-1].why == "silence"


@pytest.mark.nightly
def test_a_silent_tool_is_no_silent_model(codex: CliUnderTest) -> None:
    """A test suite may run for an hour without a word: only the total clock ends it."""
    told = codex.ask([RING, Say("It runs.")], clocks=TurnTimeouts(silence=2.0, total=4.5))
    assert isinstance(told.events[-1], ProcessEnded)
    assert told.events[-1].why == "total"


@pytest.mark.nightly
def test_stopped_with_a_tool_running_it_goes_on_in_its_thread(codex: CliUnderTest) -> None:
    """Stop ends the tool's processes too, sandbox and all; a resumed thread may still write."""
    told = codex.ask([RING], bell=Running.cancel)
    assert isinstance(told.events[-1], ProcessEnded)
    assert told.events[-1].why == "cancelled"
    again = codex.ask(SCENARIOS["tool-write"], codex.turn(prompt="Go on.", session=told.session))
    assert again.kind is None
    assert (codex.work / "written.txt").read_text() == "by the script\n"


@pytest.mark.nightly
def test_a_schema_reaches_the_model(codex: CliUnderTest) -> None:
    """Codex passes it on and checks nothing itself; the file it came from is gone afterwards."""
    told = codex.ask(SCENARIOS["json"], codex.turn(schema=SCHEMA))
    assert told.kind is None
    assert told.requests[-1].body["text"]["format"]["schema"] == SCHEMA
    assert list((codex.folder / "tmp").glob("bailiwick-*")) == []


@pytest.mark.nightly
def test_a_profile_that_does_not_exist_is_an_error(codex: CliUnderTest) -> None:
    """Codex itself would pass it over and ask whichever model is its default."""
    told = codex.ask(SCENARIOS["plain"], codex.turn(model="local"))
    assert told.kind is FailureKind.SPAWN
    assert told.asked == 0
    (codex.home / ".codex" / "local.config.toml").write_text('model = "from-the-profile"\n')
    told = codex.ask(SCENARIOS["plain"], codex.turn(model="local"))
    assert told.kind is None
    assert told.requests[-1].body["model"] == "from-the-profile"


@pytest.mark.nightly
def test_what_a_resumed_thread_used_counts_from_its_start(codex: CliUnderTest) -> None:
    """The second total holds the first: adding them up would count twice."""
    first = codex.ask([Say("One.", tokens=ScriptedUsage(input=100, output=10, cached=0))])
    turn = codex.turn(session=first.session)
    second = codex.ask([Say("Two.", tokens=ScriptedUsage(input=300, output=30, cached=0))], turn)
    assert (first.used.input, first.used.output) == (100, 10)
    assert (second.used.input, second.used.output) == (400, 40)
    assert second.used.cumulative


@pytest.mark.nightly
def test_an_unknown_session_is_told_and_begins_nothing_new(codex: CliUnderTest) -> None:
    """A thread that is gone must not look like one that goes on."""
    told = codex.ask(SCENARIOS["plain"], codex.turn(session="00000000-0000-4000-8000-000000000000"))
    assert told.kind is not None
    assert told.asked == 0
    assert isinstance(told.events[-1], ProcessEnded | Trouble)
