"""The real claude through our backend, launcher and classifier, against a scripted model."""

from __future__ import annotations

import json

import pytest

from bailiwick.agents.invoke import session_id
from bailiwick.agents.port import LimitSeen, ProcessEnded, Said, ToolBegan, ToolEnded, Trouble
from bailiwick.agents.settings import TurnTimeouts
from bailiwick.clock import SystemClock
from bailiwick.engine.failures import FailureKind
from bailiwick.testing.model_server.script import SCENARIOS, Fail, Say, Scenario, ScriptedUsage, UseTool
from tests.agents.desk import RING, SCHEMA, CliUnderTest, Running


def test_it_edits_a_file_and_tells_every_step(claude: CliUnderTest) -> None:
    """The way of a good turn: a session we can name beforehand, the tool call, the answer, what it used."""
    tokens = ScriptedUsage(input=1200, output=50, cached=1000)
    edit = UseTool("write", path="written.txt", content="by the script\n", tokens=tokens)
    told = claude.ask([edit, Say("The file is written.", tokens=tokens)])
    assert told.kind is None
    assert (claude.work / "written.txt").read_text() == "by the script\n"
    assert told.session == session_id(claude.turn())
    assert [began.name for began in told.of(ToolBegan)] == ["Write"]
    assert [(ended.id, ended.denied) for ended in told.of(ToolEnded)] == [(told.of(ToolBegan)[0].id, False)]
    assert [said.text for said in told.of(Said)] == [told.answer.text] == ["The file is written."]
    assert (told.used.input, told.used.output, told.used.cached) == (4400, 100, 2000)
    assert told.used.cumulative
    assert told.used.usd is not None
    assert told.used.usd > 0


def test_a_schema_gives_a_structured_answer(claude: CliUnderTest) -> None:
    """What the CLI has checked against the schema needs no parsing of prose."""
    told = claude.ask(SCENARIOS["structured"], claude.turn(schema=SCHEMA))
    assert told.kind is None
    assert told.answer.structured == {"answer": "forty-two", "n": 42}


def test_a_cap_names_the_second_it_ends(claude: CliUnderTest) -> None:
    """The run sleeps until exactly then; with a subscription's token the CLI gives the number, not only words."""
    before = SystemClock().now()
    turn = claude.turn(options={"auth": "oauth"})
    told = claude.ask([Fail(429, "usage-limit", resets_in=3 * 3600)], turn)
    after = SystemClock().now()
    assert told.kind is FailureKind.CAP
    assert told.failed is not None
    assert told.failed.detail.resets_at is not None
    assert before - 1 <= told.failed.detail.resets_at - 3 * 3600 <= after + 1
    assert [limit.window for limit in told.of(LimitSeen) if limit.hit] == ["five_hour"]
    assert told.asked == 1


def test_a_rate_limit_is_told_at_the_first_request(claude: CliUnderTest) -> None:
    """By itself it would try eleven times for three minutes; the ladder is ours."""
    told = claude.ask(SCENARIOS["429"])
    assert (told.kind, told.asked) == (FailureKind.RATE_LIMIT, 1)


def test_stopped_with_a_tool_running_it_goes_on_in_its_session(claude: CliUnderTest) -> None:
    """Stop ends the tool's processes too; the session that was known in the middle has the first prompt."""
    told = claude.ask([RING], claude.turn(prompt="Remember the lighthouse."), bell=Running.cancel)
    assert isinstance(told.events[-1], ProcessEnded)
    assert told.events[-1].why == "cancelled"
    again = claude.ask([Say("It was the lighthouse.")], claude.turn(prompt="Go on.", session=told.session))
    assert again.kind is None
    assert again.session == told.session
    sent = json.dumps(again.requests[-1].body["messages"])
    assert "Remember the lighthouse." in sent
    assert "Go on." in sent


@pytest.mark.nightly
def test_a_plain_answer_is_one_request(claude: CliUnderTest) -> None:
    """Whatever else a CLI would ask on the side is spent money."""
    told = claude.ask(SCENARIOS["plain"])
    assert told.kind is None
    assert (told.answer.text, told.answer.stop) == ("Hello from the script.", "end_turn")
    assert [seen.path for seen in told.requests] == ["/v1/messages"]


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("scenario", "kind"),
    [
        ("529", FailureKind.OVERLOADED),
        ("500", FailureKind.OVERLOADED),
        ("503", FailureKind.OVERLOADED),
        ("502-html", FailureKind.OVERLOADED),
        ("401", FailureKind.AUTH),
        ("403", FailureKind.AUTH),
        ("credit", FailureKind.BILLING),
        ("429-long", FailureKind.RATE_LIMIT),
        ("429-bare", FailureKind.RATE_LIMIT),
        ("spend-cap", FailureKind.CAP),
        ("overflow", FailureKind.OVERFLOW),
        ("refusal", FailureKind.REFUSED),
        ("empty", FailureKind.EMPTY),
        ("drop", FailureKind.UNREACHABLE),
        ("garbage", FailureKind.UNREACHABLE),
    ],
)
def test_each_failure_gets_its_class(claude: CliUnderTest, scenario: str, kind: FailureKind) -> None:
    """The ladder climbs by the class; a wrong one waits for nothing or asks for ever."""
    told = claude.ask(SCENARIOS[scenario])
    assert told.kind is kind, told.events
    assert told.asked <= (6 if scenario == "spend-cap" else 2), "it tries a 400 again whatever it is told"
    assert told.session == session_id(claude.turn())


@pytest.mark.nightly
@pytest.mark.parametrize("scenario", ["hang", "hang-midway"])
def test_a_silent_model_ends_with_our_clock(claude: CliUnderTest, scenario: str) -> None:
    """By itself it was still waiting after a quarter of an hour."""
    told = claude.ask(SCENARIOS[scenario], clocks=TurnTimeouts(silence=3.0, total=60.0))
    assert told.kind is FailureKind.TIMEOUT
    assert isinstance(told.events[-1], ProcessEnded)
    assert told.events[-1].why == "silence"


@pytest.mark.nightly
def test_a_silent_tool_is_no_silent_model(claude: CliUnderTest) -> None:
    """A test suite may run for an hour without a word: only the total clock ends it."""
    told = claude.ask([RING], clocks=TurnTimeouts(silence=4.0, total=10.0))
    assert told.kind is FailureKind.TIMEOUT
    assert isinstance(told.events[-1], ProcessEnded)
    assert told.events[-1].why == "total"


@pytest.mark.nightly
def test_killed_it_leaves_no_tool_and_its_session_goes_on(claude: CliUnderTest) -> None:
    """An out-of-memory kill takes the CLI and not its tools; those end with the turn all the same."""
    told = claude.ask([RING], claude.turn(prompt="Remember the lighthouse."), bell=Running.kill)
    assert told.kind is FailureKind.CRASH
    assert isinstance(told.events[-1], ProcessEnded)
    assert told.events[-1].code == -9
    again = claude.ask([Say("Yes.")], claude.turn(prompt="Go on.", session=told.session))
    assert again.kind is None
    assert "Remember the lighthouse." in json.dumps(again.requests[-1].body["messages"])


@pytest.mark.nightly
def test_a_turn_entered_again_finds_the_session_it_began(claude: CliUnderTest) -> None:
    """A crash of ours before the id was journaled: the id is made from the turn, so it is still found."""
    began = claude.ask([Say("Hello.")])
    again = claude.ask([Say("Hello again.")])
    assert again.asked == 0
    assert again.session == began.session
    assert [(trouble.type, trouble.final) for trouble in again.of(Trouble)] == [("session_in_use", True)]


@pytest.mark.nightly
def test_a_tool_that_was_not_allowed_is_told_as_denied(claude: CliUnderTest) -> None:
    """The exit code is 0 and the answer may sound fine."""
    told = claude.ask(SCENARIOS["tool-write"], claude.turn(options={}))
    assert [ended.denied for ended in told.of(ToolEnded)] == [True]
    assert not (claude.work / "written.txt").exists()


@pytest.mark.nightly
def test_what_a_resumed_session_used_counts_from_its_start(claude: CliUnderTest) -> None:
    """The second total holds the first: adding them up would count twice."""
    first = claude.ask([Say("One.", tokens=ScriptedUsage(input=100, output=10, cached=0))])
    turn = claude.turn(session=first.session)
    second = claude.ask([Say("Two.", tokens=ScriptedUsage(input=300, output=30, cached=0))], turn)
    assert (first.used.input, first.used.output) == (100, 10)
    assert (second.used.input, second.used.output) == (400, 40)
    assert second.used.cumulative


@pytest.mark.nightly
def test_a_budget_ends_the_turn_in_the_cli(claude: CliUnderTest) -> None:
    """The reservation is the CLI's own ceiling: overshoot is at most one answer."""
    told = claude.ask(SCENARIOS["dear"], claude.turn(max_usd=1.0))
    assert told.kind is FailureKind.BUDGET, told.events
    assert told.asked <= 3


@pytest.mark.nightly
@pytest.mark.parametrize("scenario", ["json", "structured-never"])
def test_a_schema_that_the_model_passes_over_leaves_the_text(claude: CliUnderTest, scenario: str) -> None:
    """The CLI exits 0 without a structured answer; the text may still hold it."""
    told = claude.ask(SCENARIOS[scenario], claude.turn(schema=SCHEMA))
    assert told.kind is None
    assert told.answer.structured is None
    assert told.answer.text


@pytest.mark.nightly
def test_a_repository_cannot_run_hooks_in_the_agent(claude: CliUnderTest) -> None:
    """A cloned repository is data; its settings would run commands of their author."""
    settings = {"hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": "touch hooked"}]}]}}
    (claude.work / ".claude").mkdir()
    (claude.work / ".claude" / "settings.json").write_text(json.dumps(settings))
    script: Scenario = SCENARIOS["plain"]
    assert claude.ask(script).kind is None
    assert not (claude.work / "hooked").exists()
    claude.ask(script, claude.turn(attempt=2, options={"repository_settings": True}))
    assert (claude.work / "hooked").exists(), "the hook would have run"
