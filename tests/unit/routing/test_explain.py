"""Why a call went the way it did, in sentences, from the store alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bailiwick.errors import NotFound
from bailiwick.journal.port import Store
from bailiwick.routing.explain import CallExplanation, explain, is_call
from bailiwick.routing.reports import why_call
from tests.unit.routing.records import NOW, attempt, call, ended, routed, with_store


def test_a_tier_that_was_skipped_has_its_reason_told() -> None:
    """In the choice, in the attempts; and it is no attempt when they are counted."""
    row = ended(call(chain=("dead/x", "m/a"), why="the chain of review"))
    tries = [
        attempt(model="dead/x", verdict="error", feedback="not asked: left alone for 30 s (connection refused)"),
        attempt(number=2, model="m/a", verdict="accept", verified=True),
    ]
    told = explain(row, tries, "pass")
    assert told.choice.endswith("not asked: dead/x, left alone for 30 s (connection refused)")
    assert told.lines[0] == "attempt 1: dead/x (local) not asked: left alone for 30 s (connection refused)"
    assert "after 1 attempt" in told.ending


def test_each_choice_is_one_line_and_each_attempt_another() -> None:
    """Somebody asks why the expensive model was used, and reads the answer in a second."""
    row = ended(call(chain=("small", "middle", "big"), why="the chain of review; started at small"))
    tries = [
        attempt(feedback="no such line", warm_start=False, cost=0.0),
        attempt(number=2, model="big", tier="subagent", verdict="error", feedback="rate limit"),
        attempt(number=3, model="big", tier="subagent", verdict="accept", verified=True, cost=0.25),
    ]
    told = explain(row, tries, "pass")
    assert told.choice == (
        "the chain of review; started at small; chain: small → middle → big; not asked: middle, no reason is on record"
    )
    assert told.lines == (
        "attempt 1: small (local, 0.9 s, cold, $0.0000) rejected: no such line → big",
        "attempt 2: big (subagent, 0.9 s, cost unknown) failed: rate limit → tried again",
        "attempt 3: big (subagent, 0.9 s, $0.2500) accepted by a check or the verifier",
    )
    assert told.ending == "it passed with big after 3 attempts: done"
    assert json.loads(json.dumps(told.to_json())) == told.to_json()


def test_a_model_that_the_caller_named_is_said_to_be_so() -> None:
    """Nothing was escalated or verified, and that is why."""
    told = explain(ended(call(model="big", why="", chain=())), [], "pass")
    assert told.choice == "big was named by the caller: no escalation, no verifier"
    assert explain(ended(call(why="", chain=())), [], "pass").choice == "the chain of review"


@pytest.mark.parametrize(
    ("status", "words"),
    [("open", "being worked on"), ("interrupted", "its process ended"), ("error", "with an error after 1 attempt: m")],
)
def test_the_ending_says_how_it_stands(status: str, words: str) -> None:
    """Open, cut off and failed are three things."""
    row = call() if status != "error" else ended(call(), status="error", message="m")
    assert words in explain(row, [attempt()], status).ending


def test_a_models_words_can_not_break_the_line_or_the_terminal() -> None:
    """Feedback quotes outputs; outputs quote whatever they like."""
    told = explain(ended(call()), [attempt(feedback="a\nb\x1b]0;title\x07\u202ec" + "x" * 5000)], "fail")
    (line,) = told.lines
    assert "rejected: a bc" in line
    assert len(line) <= 300
    assert line.isprintable()


def test_calls_are_told_from_runs_by_their_ids() -> None:
    """`bailiwick why` takes both."""
    assert is_call("c-0f2a")
    assert not is_call("check")


def test_a_call_is_found_by_its_id_or_the_beginning_of_it(tmp_path: Path) -> None:
    """Ids are long; people copy a part."""

    async def look(store: Store) -> list[CallExplanation]:
        await routed(store, call("c-ab1"), [attempt("c-ab1")])
        await routed(store, call("c-ab"))
        await routed(store, call("c-x"))
        return [await why_call(store, name, NOW) for name in ("c-ab1", "c-ab")]

    first, second = with_store(tmp_path, look)
    assert (first.call.id, len(first.lines), second.call.id) == ("c-ab1", 1, "c-ab")


@pytest.mark.parametrize(("name", "words"), [("c-a", "2 calls"), ("c-9", "there is no call 'c-9'")])
def test_an_id_of_none_or_of_several_names_those_there_are(tmp_path: Path, name: str, words: str) -> None:
    """The next try succeeds."""

    async def look(store: Store) -> None:
        await routed(store, call("c-a1"))
        await routed(store, call("c-a2"))
        with pytest.raises(NotFound, match=words) as caught:
            await why_call(store, name, NOW)
        assert "c-a1" in caught.value.hint

    with_store(tmp_path, look)
