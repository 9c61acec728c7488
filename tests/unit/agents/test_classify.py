"""The class of a failed turn: recordings of real tools, the rules one by one, and sentences that are no failure."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bailiwick.agents import port
from bailiwick.agents.classify import Classified, classify
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
)
from bailiwick.agents.rules import FailureRule, Where, rules
from bailiwick.engine.failures import FailureKind

if TYPE_CHECKING:
    from bailiwick.ids import Json

EVENTS = Path(__file__).parents[2] / "transcripts" / "events"
TOOLS = ("claude", "claude-2.1.197", "codex", "copilot")
MENTIONS: list[str] = json.loads((EVENTS / "mentions.json").read_text("utf-8"))
NOW = 1_794_770_000.0  # 2026-11-15 19:13:20 UTC, shortly before the recordings
GOOD = ProcessEnded(0)


def _cases() -> list[dict[str, Json]]:
    return [case for tool in TOOLS for case in json.loads((EVENTS / f"{tool}.json").read_text("utf-8"))]


def _events(rows: list[dict[str, Json]]) -> list[AgentEvent]:
    return [getattr(port, row["event"])(**{key: row[key] for key in row if key != "event"}) for row in rows]


def _of(*events: AgentEvent, expects: bool = True, zone: str = "UTC") -> Classified | None:
    return classify(events, expects_answer=expects, now=NOW, zone=zone)


def _kind(*events: AgentEvent, expects: bool = True) -> FailureKind | None:
    found = _of(*events, expects=expects)
    return found.kind if found else None


@pytest.mark.parametrize("case", _cases(), ids=lambda case: str(case["case"]))
def test_a_recorded_turn_gets_its_class(case: dict[str, Json]) -> None:
    """What real tools said in a known situation is the only proof that the rules know them."""
    found = classify(_events(case["events"]), expects_answer=True, now=NOW, zone="UTC")
    assert (found.kind.value if found else "good") == case["expect"], found


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: str(rule.name))
def test_each_rule_knows_the_message_it_was_made_from(rule: FailureRule) -> None:
    """A rule without a real message behind it is a guess, and one that misses its own message is dead."""
    assert rule.source
    events: dict[Where, tuple[AgentEvent, ...]] = {
        Where.STATUS: (Trouble("said nothing that is known", status=int(rule.quote) if rule.quote.isdigit() else 0),),
        Where.TYPE: (Trouble("said nothing that is known", type=rule.quote),),
        Where.TEXT: (Trouble(rule.quote),),
        Where.ANSWER: (Answered(rule.quote), GOOD),
        Where.EXIT: (ProcessEnded(int(rule.quote) if rule.quote.lstrip("-").isdigit() else 0),),
    }
    found = _of(*events[rule.where])
    assert found is not None
    assert found.kind is rule.kind
    assert found.detail.transient is rule.transient


def test_rule_names_are_told_apart() -> None:
    """The name is the evidence in the attempt log: two rules of one name could not be told apart there."""
    names = [rule.name for rule in rules()]
    assert sorted(set(names)) == sorted(names)


@pytest.mark.parametrize("sentence", MENTIONS)
def test_a_sentence_that_mentions_a_failure_is_none(sentence: str) -> None:
    """Agents write about errors all day; a turn must not be lost, parked or waited out because of their words."""
    talk = (Said(sentence), ToolBegan("1", "bash"), ToolEnded("1", text=sentence))
    assert _of(*talk, Answered("done"), GOOD) is None
    assert _of(Answered(sentence), GOOD) is None
    assert _kind(*talk, ProcessEnded(1, stderr=sentence)) is FailureKind.CRASH
    unknown = _of(Trouble(sentence))
    assert unknown is not None
    assert unknown.detail.evidence.startswith("unknown trouble")


def test_the_corpus_of_mentions_is_large() -> None:
    """A small corpus proves little; a file that was emptied by accident proves nothing."""
    assert len(set(MENTIONS)) >= 40


def test_the_first_class_in_the_order_wins() -> None:
    """A 429 that means an empty account must park, not hammer the endpoint."""
    both = Trouble("429 You exceeded your current quota, please check your plan and billing details.", status=429)
    assert _kind(both) is FailureKind.BILLING
    assert _kind(Trouble("The usage limit has been reached", status=429, type="rate_limit")) is FailureKind.CAP
    assert _kind(Trouble("x", status=401), Trouble("y", status=429)) is FailureKind.AUTH


def test_a_server_error_whose_words_name_an_overflow_is_one() -> None:
    """Local servers answer 500 to a prompt that is too long; waiting for them would never end."""
    said = '{"error":{"code":500,"message":"Context size has been exceeded.","type":"server_error"}}'
    assert _kind(Trouble(said, status=500)) is FailureKind.OVERFLOW
    assert _kind(Trouble("oops", status=500)) is FailureKind.OVERLOADED


def test_a_good_answer_is_good_whatever_came_before_it() -> None:
    """Retries that worked, warnings and denied tools are no failure once the answer is there."""
    noise = (
        Trouble("overloaded", status=529, final=False),
        LimitSeen(hit=False, window="five_hour", used=0.93),
        ToolEnded("1", denied=True),
    )
    assert _of(*noise, Answered("hello"), GOOD) is None
    assert _of(Answered("", structured={"a": 1}), GOOD) is None
    assert _of(Answered("hello"), ProcessEnded(-15, why="silence")) is None


def test_an_error_in_a_success_envelope_is_the_error() -> None:
    """Tools answer with the words of an error and exit 0; taken for an answer they would become data."""
    assert _kind(Answered("hello"), Trouble("Credit balance is too low"), GOOD) is FailureKind.BILLING
    assert _kind(Answered("Claude AI usage limit reached|1794790000"), GOOD) is FailureKind.CAP
    assert _kind(Answered("hello", stop="refusal"), GOOD) is FailureKind.REFUSED


def test_a_denied_tool_counts_only_without_an_answer() -> None:
    """With an answer it is a warning; without one it is why there is none."""
    denied = ToolEnded("1", denied=True)
    assert _kind(denied, Answered(""), GOOD) is FailureKind.TOOL_DENIED
    assert _kind(denied, ProcessEnded(-15, why="total")) is FailureKind.TOOL_DENIED
    assert _kind(denied, GOOD, expects=False) is FailureKind.TOOL_DENIED


def test_a_notice_counts_only_until_the_agent_goes_on() -> None:
    """A retry that worked an hour ago does not explain why the agent hangs now."""
    notice = Trouble("", status=429, final=False)
    hung = ProcessEnded(-15, why="silence")
    assert _kind(notice, hung) is FailureKind.RATE_LIMIT
    assert _kind(notice, ToolBegan("1", "bash"), hung) is FailureKind.TIMEOUT


def test_without_an_expected_answer_exit_0_is_success() -> None:
    """Where the work tree is the result, silence at the end is no failure."""
    assert _kind(GOOD, expects=False) is None
    assert _kind(GOOD) is FailureKind.EMPTY
    assert _kind(ProcessEnded(3), expects=False) is FailureKind.CRASH
    assert _kind(expects=False) is FailureKind.EMPTY


def test_a_budget_that_ended_the_turn_is_told_before_its_consequences() -> None:
    """The broker cuts the connection at the budget: what the tool then complains about is not the cause."""
    dropped = Trouble("API Error: Connection dropped (ECONNRESET).", type="connection_failed")
    assert _kind(dropped, ProcessEnded(-15, why="budget")) is FailureKind.BUDGET


def test_a_crash_is_transient_only_when_others_ended_it() -> None:
    """Somebody's SIGTERM or the OOM killer says nothing about the turn; a segmentation fault does."""
    for code, transient in ((-15, True), (137, True), (-9, True), (-11, False), (1, False)):
        found = _of(ProcessEnded(code))
        assert found is not None
        assert (found.kind, found.detail.transient) == (FailureKind.CRASH, transient)
    busy = _of(Trouble("[Errno 26] Text file busy: 'claude'"))
    assert busy is not None
    assert busy.detail.transient


def test_a_command_is_classed_by_its_code_and_its_last_words() -> None:
    """Any program can be an agent; its exit code and what it wrote to standard error are all there is to go by."""
    assert _kind(Trouble("the command ended with code 127", type="exit")) is FailureKind.SPAWN
    assert _kind(Trouble("the command ended with code 3", type="exit")) is FailureKind.CRASH
    spoken = Trouble("the command ended with code 1: loading\nRequest timed out\n", type="exit")
    assert _kind(spoken) is FailureKind.UNREACHABLE
    ended = _of(Trouble("the command ended with code -15: working on it", type="exit"))
    assert ended is not None
    assert (ended.kind, ended.detail.transient) == (FailureKind.CRASH, True)


def test_a_program_that_is_being_replaced_is_no_missing_program() -> None:
    """Tools update themselves: busy now is there again in a moment, not there stays so."""
    busy = _of(Trouble("'claude' could not be started: Text file busy", type="spawn"))
    assert busy is not None
    assert (busy.kind, busy.detail.transient) == (FailureKind.CRASH, True)
    assert _kind(Trouble("'claude' could not be started: No such file or directory", type="spawn")) is FailureKind.SPAWN


def test_a_cancelled_turn_is_a_transient_crash() -> None:
    """Cancelling is ours: the node is not to blame and may go again."""
    found = _of(ProcessEnded(-15, why="cancelled"))
    assert found is not None
    assert (found.kind, found.detail.transient) == (FailureKind.CRASH, True)


def test_a_bare_limit_notice_does_not_turn_a_rate_limit_into_a_cap() -> None:
    """The notice says `rejected` for any 429; waiting hours for one of seconds would be wrong."""
    assert _kind(LimitSeen(hit=True), Trouble("429", status=429)) is FailureKind.RATE_LIMIT
    assert _kind(LimitSeen(hit=True)) is FailureKind.CAP
    assert _kind(LimitSeen(hit=True, window="five_hour"), Trouble("429", status=429)) is FailureKind.CAP


def test_a_reset_comes_as_a_number_first_and_from_words_else() -> None:
    """The number is exact, the words are said to the minute."""
    words = Trouble("You've hit your 5-hour limit · resets 10:49pm (UTC)", status=429)
    exact = _of(LimitSeen(hit=True, window="five_hour", resets_at=1_794_782_952), words)
    told = _of(words)
    assert exact is not None
    assert told is not None
    assert exact.detail.resets_at == 1_794_782_952
    assert told.detail.resets_at == 1_794_782_940


def test_a_reset_that_is_over_is_not_believed() -> None:
    """Waiting until yesterday is no wait: the next try would come at once, again and again."""
    found = _of(LimitSeen(hit=True, window="five_hour", resets_at=NOW - 60))
    assert found is not None
    assert (found.kind, found.detail.resets_at) == (FailureKind.CAP, None)


SEVEN = 1_794_726_180.0  # 2026-11-15 07:03 UTC


@pytest.mark.parametrize(
    ("words", "hours"),
    [
        ("You've hit your session limit · resets 1:10am (UTC)", 18 + 7 / 60),
        ("5-hour limit reached ∙ resets 9pm", 13 + 57 / 60),
        ("SESSION LIMIT REACHED · RESETS 9PM", 13 + 57 / 60),
    ],
)
def test_a_session_limit_further_away_than_its_window_is_waited_for(words: str, hours: float) -> None:
    """The vendor says when it ends; asking each hour until then only costs."""
    found = classify([Trouble(words)], expects_answer=True, now=SEVEN, zone="UTC")
    assert found is not None
    assert (found.kind, found.detail.resets_at) == (FailureKind.CAP, SEVEN + round(hours * 3600))


def test_a_session_limit_that_is_just_over_is_not_waited_for_until_tomorrow() -> None:
    """Its time of day was three minutes ago: the clocks differ a little, or the message is late."""
    found = _of(Trouble("You've hit your session limit · resets 7:10pm (UTC)"))
    weekly = _of(Trouble("You've hit your weekly limit · resets 7:10pm (UTC)"))
    assert found is not None
    assert weekly is not None
    assert found.detail.resets_at is None, "it was over three minutes ago"
    assert weekly.detail.resets_at == NOW - 200 + 86400


def test_a_tier_limit_resets_with_the_month() -> None:
    """The vendor names no time for it, but the rule is known: midnight UTC on the first."""
    found = _of(Trouble("Spend limit reached.", status=429, type="enforced_spend_limit_reached"))
    assert found is not None
    assert (found.kind, found.detail.resets_at) == (FailureKind.CAP, 1_796_083_200)


def test_a_wait_comes_from_the_header_else_from_the_words() -> None:
    """Retry-After is what the endpoint asks for; the words repeat it where the header was lost."""
    words = "Rate limit reached for m in organization o on tokens per min (TPM): Limit 1. Please try again in 2s."
    header = _of(Trouble(words, status=429, retry_after=30.0))
    spoken = _of(Trouble(words, status=429))
    assert header is not None
    assert spoken is not None
    assert (header.detail.retry_after, spoken.detail.retry_after) == (30.0, 2.0)


def test_an_error_body_is_read_in_any_envelope() -> None:
    """The same body comes bare, behind a status, and inside the sentence of the tool that got it."""
    body = '{"type":"error","error":{"type":"authentication_error","message":"OAuth token has expired."}}'
    for text in (body, f"401 {body}", f"API Error: 401 {body} · Please run /login", f"Error: API Error: 401 {body}"):
        assert _kind(Trouble(text)) is FailureKind.AUTH


def test_a_backend_may_name_the_class_itself() -> None:
    """A backend that knows why (truncation seen, program not found) need not invent a sentence for it."""
    for kind in (
        FailureKind.OVERFLOW,
        FailureKind.SPAWN,
        FailureKind.UNREACHABLE,
        FailureKind.TIMEOUT,
        FailureKind.EMPTY,
    ):
        assert _kind(Trouble("known to the backend", type=kind.value)) is kind


def test_a_failed_compaction_says_why() -> None:
    """It ends with exit 0 and has no answer: without this it would look like success."""
    assert _kind(Compacted(ok=True), GOOD, expects=False) is None
    assert _kind(Compacted(ok=False, text="no idea"), GOOD, expects=False) is FailureKind.OVERFLOW
    assert _kind(Compacted(ok=False, text="API Error: 529 Overloaded"), GOOD, expects=False) is FailureKind.OVERLOADED


def test_the_session_is_kept_for_the_next_attempt() -> None:
    """A compaction or a re-ask needs the session in which the turn failed."""
    found = _of(SessionKnown("s-1"), Trouble("Prompt is too long"))
    assert found is not None
    assert found.detail.session == "s-1"


def test_what_people_read_is_one_plain_line() -> None:
    """Messages come from outside: no terminal escape and no endless text may reach a person's screen."""
    found = _of(Trouble("\x1b[31mAPI Error:\x1b[0m Unable to connect to API (X)\n\n" + "y" * 10_000))
    assert found is not None
    assert found.kind is FailureKind.UNREACHABLE
    assert "\x1b" not in found.message
    assert "\n" not in found.message
    assert len(found.message) <= 500


_TEXTS = st.one_of(st.text(max_size=80), st.sampled_from(MENTIONS), st.sampled_from([rule.quote for rule in rules()]))
_NUMBERS = st.one_of(st.none(), st.floats(allow_nan=True, allow_infinity=True))
_ANY = st.one_of(
    st.builds(Said, _TEXTS),
    st.builds(ToolEnded, st.just("1"), st.booleans(), _TEXTS),
    st.builds(Answered, _TEXTS, st.none(), _TEXTS),
    st.builds(LimitSeen, st.booleans(), _TEXTS, st.none(), _NUMBERS, _TEXTS),
    st.builds(Trouble, _TEXTS, st.one_of(st.none(), st.integers()), _TEXTS, _NUMBERS, _NUMBERS, st.booleans()),
    st.builds(Compacted, st.booleans(), _TEXTS),
    st.builds(ProcessEnded, st.integers(-64, 255), _TEXTS, st.sampled_from(["exited", "silence", "total", "budget"])),
)


@given(events=st.lists(_ANY, max_size=6), expects=st.booleans())
def test_any_events_get_a_class_and_never_an_exception(events: list[AgentEvent], expects: bool) -> None:
    """Foreign output decides what arrives here; a turn whose class can't be told would stop the run."""
    found = classify(events, expects_answer=expects, now=NOW, zone="UTC")
    assert found is None or found.detail.resets_at is None or found.detail.resets_at > NOW
    assert found is None or found.detail.retry_after is None or 0 <= found.detail.retry_after < 1e9
    assert classify(events, expects_answer=expects, now=NOW, zone="UTC") == found
