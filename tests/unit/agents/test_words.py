"""The words of a failed turn: workhorse's own messages in every place they come in, in any case of letters."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bailiwick.agents.backends.claude import ClaudeBackend
from bailiwick.agents.backends.command import CommandBackend
from bailiwick.agents.classify import Classified, classify
from bailiwick.agents.port import AgentEvent, Answered, ProcessEnded, Said, ToolBegan, ToolEnded, Trouble
from bailiwick.agents.rules import Where, rules
from bailiwick.engine.failures import FailureKind
from bailiwick.processes.command import Exit
from tests.unit.agents.stage import FakeIo, make_turn, play
from tests.unit.agents.test_classify import MENTIONS, NOW

if TYPE_CHECKING:
    from pathlib import Path

WORKHORSE = {
    "Spending cap reached resets 3:50am": FailureKind.CAP,
    "Spending cap reached": FailureKind.CAP,
    "usage limit, resets 3:50am": FailureKind.CAP,
    "usage limit, resets at 11pm": FailureKind.CAP,
    "Weekly limit has been reached": FailureKind.CAP,
    "Rate limit exceeded": FailureKind.RATE_LIMIT,
    "Rate limit exceeded, retry in 20s": FailureKind.RATE_LIMIT,
    "503 Service Unavailable": FailureKind.OVERLOADED,
    "Network error: ECONNRESET": FailureKind.UNREACHABLE,
    "prompt is too long: 200000 tokens > 200000": FailureKind.OVERFLOW,
    "prompt is too long: 205,123 tokens > 200,000 maximum": FailureKind.OVERFLOW,
}
WRITTEN = ("as it is", "lower", "UPPER", "swapped")
PLACES = ("result", "stdout", "stderr", "body", "body in the result")


def _written(text: str, how: str) -> str:
    return {"as it is": text, "lower": text.lower(), "UPPER": text.upper(), "swapped": text.swapcase()}[how]


def _classed(*events: AgentEvent) -> Classified | None:
    return classify(events, expects_answer=True, now=NOW, zone="UTC")


def _body(text: str) -> str:
    said = {"type": "error", "error": {"type": "invalid_request_error", "message": text}}
    return f"API Error: 400 {json.dumps(said)}"


def _failed(place: str, text: str) -> FakeIo:
    """What a fake claude does that fails with these words."""
    if place == "stderr":
        return FakeIo(end=Exit(1, b"", f"loading\n{text}\n".encode(), 0.1))
    if place == "stdout":
        return FakeIo(lines=[b"loading", text.encode()], end=Exit(1, b"", b"", 0.1))
    words = text if place == "result" else _body(text)
    line = {"type": "result", "subtype": "success", "is_error": True, "result": words}
    if place == "body":
        line |= {"api_error_status": 400}
    return FakeIo(lines=[json.dumps(line).encode()], end=Exit(1, b"", b"", 0.1))


@pytest.mark.parametrize("how", WRITTEN)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("text", WORKHORSE)
def test_workhorse_messages_get_their_class_wherever_they_come(tmp_path: Path, text: str, place: str, how: str) -> None:
    """A cap that counts as a crash is tried twice and then answered with a default."""
    events = play(ClaudeBackend().turn, make_turn(tmp_path), _failed(place, _written(text, how)))
    found = _classed(*events)
    assert found is not None
    assert found.kind is WORKHORSE[text], found


@pytest.mark.parametrize("text", WORKHORSE)
def test_workhorse_messages_of_a_command_get_their_class_and_name_its_code(tmp_path: Path, text: str) -> None:
    """Any program can write them to standard error; the code it ended with is told all the same."""
    io = FakeIo(end=Exit(7, b"", f"loading\n{text}\n".encode(), 0.1))
    found = _classed(*play(CommandBackend("tool").turn, make_turn(tmp_path), io))
    assert found is not None
    assert found.kind is WORKHORSE[text], found
    assert "code 7" in found.message


@pytest.mark.parametrize("how", WRITTEN)
@pytest.mark.parametrize("text", WORKHORSE)
def test_a_transcript_that_mentions_them_is_no_failure(tmp_path: Path, text: str, how: str) -> None:
    """Agents write about limits all day: what they say, what their tools print and a good answer are no errors."""
    words = _written(text, how)
    talk = (Said(words), ToolBegan("1", "bash"), ToolEnded("1", text=words))
    assert _classed(*talk, Answered(f"I handle '{words}' now"), ProcessEnded(0)) is None
    assert _classed(*talk, Answered("done"), ProcessEnded(0, stderr=words)) is None
    crashed = _classed(*talk, ProcessEnded(3))
    assert crashed is not None
    assert crashed.kind is FailureKind.CRASH
    io = FakeIo(lines=[words.encode(), b'{"x": 1}'])
    assert _classed(*play(CommandBackend("tool").turn, make_turn(tmp_path), io)) is None


def test_a_workhorse_cap_names_its_reset() -> None:
    """The wait ends when the words say, not after the default."""
    for text in ("Spending cap reached resets 3:50am", "usage limit, resets 3:50am", "USAGE LIMIT, RESETS 3:50AM"):
        found = _classed(Trouble(text))
        assert found is not None
        assert found.detail.resets_at == NOW + 31_000, text  # 3:50 on the next day, UTC


QUOTES = [rule.quote for rule in rules() if rule.where is Where.TEXT]
TEXTS = st.one_of(st.sampled_from([*QUOTES, *WORKHORSE, *MENTIONS]), st.text(st.characters(codec="ascii"), max_size=60))
WRAPS = st.sampled_from(["{}", "Error: {}", "API Error: {}", "API Error: 529 {}", "unexpected status 500 Oops: {}"])


@given(
    text=TEXTS, wrap=WRAPS, how=st.sampled_from(WRITTEN), at=st.sampled_from(["trouble", "stderr", "command", "body"])
)
def test_case_never_changes_the_class(text: str, wrap: str, how: str, at: str) -> None:
    """Tools change how they write a sentence more often than what they say."""

    def kind(words: str) -> FailureKind:
        said = _body(words) if at == "body" else words
        event = ProcessEnded(1, stderr=said) if at == "stderr" else Trouble(said)
        if at == "command":
            event = Trouble(f"the command ended with code 1: {said}", type="exit")
        found = _classed(event)
        assert found is not None
        return found.kind

    whole = wrap.format(text)
    assert kind(_written(whole, how)) is kind(whole)


@given(name=st.sampled_from([rule for rule in rules() if rule.where is Where.TYPE]), how=st.sampled_from(WRITTEN))
def test_case_never_changes_what_an_error_type_means(name: object, how: str) -> None:
    """Vendors write `UNAUTHENTICATED` and `authentication_error` for the same."""
    quote = getattr(name, "quote")  # noqa: B009
    plain, other = _classed(Trouble("x", type=quote)), _classed(Trouble("x", type=_written(quote, how)))
    assert plain is not None
    assert other is not None
    assert other.kind is plain.kind
