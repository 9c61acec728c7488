"""The real copilot through our backend, launcher and classifier, against a scripted model."""

from __future__ import annotations

import json

import pytest

from bailiwick.agents.port import ProcessEnded, ToolBegan, ToolEnded
from bailiwick.agents.settings import TurnTimeouts
from bailiwick.engine.failures import FailureKind
from bailiwick.testing.model_server.script import SCENARIOS, Fail, Say
from tests.agents.desk import RING, CliUnderTest, Running

pytestmark = pytest.mark.nightly


def test_a_plain_answer_is_one_request_and_its_tokens_are_known(copilot: CliUnderTest) -> None:
    """The tokens stand only in a file that is gone afterwards."""
    told = copilot.ask(SCENARIOS["plain"])
    assert told.kind is None
    assert told.answer.text == "Hello from the script."
    assert told.asked == 1
    assert (told.used.input, told.used.output, told.used.cached, told.used.usd) == (1200, 50, 1000, None)
    assert list((copilot.folder / "tmp").glob("bailiwick-*")) == []


def test_it_runs_a_tool_and_tells_every_step(copilot: CliUnderTest) -> None:
    """The session, the tool call, the answer."""
    told = copilot.ask(SCENARIOS["tool"])
    assert told.kind is None
    assert (copilot.work / "scripted.txt").read_text() == "from-the-script\n"
    assert [began.id for began in told.of(ToolBegan)] == [ended.id for ended in told.of(ToolEnded)]
    assert told.answer.text == "The command ran."


@pytest.mark.parametrize(
    ("scenario", "kind"),
    [
        ("401", FailureKind.AUTH),
        ("empty", FailureKind.EMPTY),
        ("refusal", FailureKind.REFUSED),
        ("overflow", FailureKind.OVERFLOW),
    ],
)
def test_each_failure_gets_its_class(copilot: CliUnderTest, scenario: str, kind: FailureKind) -> None:
    """The ladder climbs by the class."""
    told = copilot.ask(SCENARIOS[scenario])
    assert told.kind is kind, told.events


def test_a_rate_limit_is_told_and_the_own_tries_are_seen(copilot: CliUnderTest) -> None:
    """Copilot can't be told not to try again; for a long wait it gives up at once."""
    told = copilot.ask([Fail(429, headers={"retry-after": "3600"})])
    assert (told.kind, told.asked) == (FailureKind.RATE_LIMIT, 1)


def test_a_silent_model_ends_with_our_clock(copilot: CliUnderTest) -> None:
    """By itself it said nothing for seven minutes."""
    told = copilot.ask(SCENARIOS["hang"], clocks=TurnTimeouts(silence=5.0, total=60.0))
    assert told.kind is FailureKind.TIMEOUT


def test_killed_it_leaves_no_tool(copilot: CliUnderTest) -> None:
    """An out-of-memory kill takes the CLI and not its tools; so early it takes the session too."""
    told = copilot.ask([RING], bell=Running.kill)
    assert told.kind is FailureKind.CRASH
    assert isinstance(told.events[-1], ProcessEnded)
    assert told.events[-1].code == -9


def test_stopped_with_a_tool_running_it_goes_on_in_its_session(copilot: CliUnderTest) -> None:
    """Stop ends the tool's processes too; the session has the first prompt."""
    told = copilot.ask([RING], copilot.turn(prompt="Remember the lighthouse."), bell=Running.cancel)
    assert isinstance(told.events[-1], ProcessEnded)
    assert told.events[-1].why == "cancelled"
    again = copilot.ask([Say("Yes.")], copilot.turn(prompt="Go on.", session=told.session))
    assert again.kind is None
    assert "Remember the lighthouse." in json.dumps(again.requests[-1].body["messages"])
