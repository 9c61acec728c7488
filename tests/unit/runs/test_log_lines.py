"""The log in plain words."""

from __future__ import annotations

import pytest

from bailiwick.engine import events as ev
from bailiwick.engine.state import Deferred
from bailiwick.ids import Json
from bailiwick.runs.log_lines import LogFormatter
from tests.unit.runs.tales import NOW, Tale


def _nothing(digest: str) -> Json:
    raise KeyError(digest)


def test_an_effect_is_told_with_what_its_script_printed() -> None:
    """The kept output is why people open the log."""
    chronicle = LogFormatter(lambda digest: f"from {digest}\n")
    chronicle.tell((2, NOW, ev.EffectStarted("fan.a", "left", 1, 1, 2, "k")))
    log: dict[str, Json] = {"stdout": "one\ntwo\n", "stderr": Deferred("blob")}
    line = chronicle.tell((3, NOW, ev.EffectFinished("fan.a", "k", log=log, seconds=1.5)))
    assert line is not None
    assert (line.place, line.text) == ("fan.a/left", "succeeded in 1.5 s")
    assert line.output == (("stdout", "one"), ("stdout", "two"), ("stderr", "from blob"))


def test_a_further_attempt_and_a_re_entry_are_told_apart() -> None:
    """Both begin a node again, for different reasons."""
    chronicle = LogFormatter(_nothing)
    again = chronicle.tell((2, NOW, ev.EffectStarted("", "build", 1, 1, 2, "k")))
    entered = chronicle.tell((3, NOW, ev.EffectStarted("", "build", 2, 1, 1, "k", 2)))
    assert again is not None
    assert entered is not None
    assert (again.text, entered.text) == ("begins (attempt 2)", "begins (visit 2, entered again)")


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (
            ev.WaitOpened("", "ask", 1, "w", "ask", body={"question": "Deploy?", "choices": ["a", "b"]}),
            "Deploy? (a, b)",
        ),
        (ev.StepFailed("", "build", 1, {"message": "no"}, "fix"), "failed for good: no → fix"),
        (ev.StepPassed("", "set", 1, "done", {"a": 1}), "sets a → done"),
        (ev.SignalRejected("stop", "the run is done"), "refused 'stop': the run is done"),
        (ev.RunFinished("done", "end", degraded=["ask"]), "finished at end, degraded by ask"),
        (ev.Rewound(3, "build", 1, "ann"), "ann goes back to build, visit 1"),
    ],
)
def test_each_turn_has_its_words(event: ev.Event, words: str) -> None:
    """A log of event names would be a log for us, not for people."""
    line = LogFormatter(_nothing).tell((2, NOW, event))
    assert line is not None
    assert words in line.text


def test_a_timer_that_is_due_says_nothing() -> None:
    """The step that follows says it."""
    assert LogFormatter(_nothing).tell((2, NOW, ev.WaitClosed("", "w", "due"))) is None


def test_every_line_of_a_whole_run_is_in_order() -> None:
    """The log follows the journal."""
    tale = Tale().done("build", "done").tell(ev.RunFinished("done", "done"))
    told = [LogFormatter(_nothing).tell(entry) for entry in tale.entries]
    assert [line.seq for line in told if line] == [1, 2, 3, 4, 5]


def test_a_long_text_that_is_kept_as_a_blob_is_told_all_the_same() -> None:
    """Where a value lies is our business, not the reader's."""
    chronicle = LogFormatter({"q": "a long question", "v": "x" * 5000, "m": "a long message"}.__getitem__)
    asked = chronicle.tell((2, NOW, ev.WaitOpened("", "ask", 1, "w", "ask", body={"question": Deferred("q")})))
    answered = chronicle.tell((3, NOW, ev.WaitClosed("", "w", "answered", Deferred("v"), "ann")))
    failed = chronicle.tell((4, NOW, ev.StepFailed("", "ask", 1, {"kind": "x", "message": Deferred("m")})))
    assert asked is not None
    assert answered is not None
    assert failed is not None
    assert "a long question" in asked.text
    assert answered.text.startswith("answered by ann: 'xxx")
    assert len(answered.text) < 300
    assert failed.text == "failed for good: a long message"
