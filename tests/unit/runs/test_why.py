"""`why` tells from the journal alone, in sentences."""

from __future__ import annotations

from dataclasses import replace

from bailiwick.engine import events as ev
from bailiwick.engine.state import State
from bailiwick.engine.visits import visits
from bailiwick.runs.why import Explanation, RunHistory, branch_sentence, explain, explain_node
from tests.unit.runs.tales import CHECK, NOW, Tale


def _topic(reasons: list[Explanation], topic: str) -> list[Explanation]:
    return [reason for reason in reasons if reason.topic == topic]


def _sentence(event: ev.StepPassed) -> str:
    (visit,) = visits([(1, NOW, event)])
    return branch_sentence(CHECK, visit)


def _passed(value: object, to: str, notes: list[str] | None = None) -> ev.StepPassed:
    return ev.StepPassed("", "check", 1, to, value=value, notes=notes or [])


def test_a_branch_names_the_case_that_matched() -> None:
    """People ask why it went there; the case is the answer."""
    assert "is 'few', which is the case 'few'" in _sentence(_passed("few", "done"))


def test_a_branch_names_the_condition_that_held() -> None:
    """A number that passed a threshold is told with the threshold."""
    assert "result.count is 12, and 12 >= 10, so it went to 'ask'" in _sentence(_passed(12, "ask"))


def test_a_branch_says_that_nothing_fitted() -> None:
    """A default is taken for want of anything else, and that is said."""
    assert "matches no case and no condition, so by default" in _sentence(_passed(3, "done"))


def test_a_branch_says_that_its_path_is_not_there() -> None:
    """A misspelt path looks like a default; the difference is what people search for."""
    sentence = _sentence(_passed(None, "done", ["path result.count is not in the context"]))
    assert "path 'result.count' is not in the context, so by default it went to 'done'" in sentence


def test_an_open_question_is_told_with_its_choices() -> None:
    """Waiting for a person is the most frequent answer; it needs the question and how to answer."""
    tale = Tale().done("build", "check").tell(_passed(12, "ask"))
    tale.tell(ev.WaitOpened("", "ask", 1, "w1", "ask", body={"question": "Deploy?", "choices": ["yes", "no"]}))
    (reason,) = _topic(explain(tale.history()), "waits")
    assert "'ask' waits for a person since" in reason.text
    assert "Deploy?" in reason.text
    assert reason.lines == ("choices: yes, no", "wait id: w1")


def test_a_failure_tells_every_attempt_and_the_last_words() -> None:
    """Whoever looks at a failed run wants the error and whether trying again was considered."""
    tale = Tale().effect("build", failure="boom 1")
    tale.tell(
        ev.WaitOpened("", "build", 1, "w", "retry", due_at=tale.entries[-1][1] + 3.0), ev.WaitClosed("", "w", "due")
    )
    tale.effect("build", attempt=2, failure="boom 2")
    tale.tell(ev.StepFailed("", "build", 1, {"kind": "exit", "message": "boom 2"}))
    tale.tell(ev.RunFinished("failed", "build", "boom 2", ended=False))
    (reason,) = _topic(explain(tale.history()), "failed")
    assert reason.text == "'build' failed after 2 attempts: boom 2"
    assert reason.lines == (
        "attempt 1: boom 1 (0.5 s) → tried again after 2 s",
        "attempt 2: boom 2 (0.5 s)",
        "not tried again: retry allows 2 more after the first",
        "stderr: boom 2",
    )


def test_a_failure_that_trying_again_cannot_help_says_so() -> None:
    """A missing script is not retried although the node has a retry; that must not look like a bug."""
    tale = Tale().effect("build", failure="gone")
    tale.tell(ev.StepFailed("", "build", 1, {"kind": "not_found", "message": "gone"}))
    tale.tell(ev.RunFinished("failed", "build", "gone", ended=False))
    (reason,) = _topic(explain(tale.history()), "failed")
    assert "not tried again: 'not_found' is not helped by trying again" in reason.lines


def test_a_fail_node_is_no_failed_node() -> None:
    """A workflow that ended in `fail` did what its author wrote."""
    tale = Tale().effect("build").tell(ev.StepDone("", "build", 1, "bad"), ev.RunFinished("failed", "bad", "no luck"))
    assert explain(tale.history())[0].text == "the fail node 'bad' ended it: no luck"


def test_a_stop_names_who_asked() -> None:
    """A run that stands still because somebody stopped it should not be debugged."""
    tale = Tale().done("build", "check").tell(ev.StopRequested(now=True, by="ann"), ev.RunStopped())
    reason = explain(tale.history())[0]
    assert reason.text == "stopped at once, asked for by ann"
    assert reason.lines == ("go on with: bailiwick resume flow-default",)


def test_a_stop_on_its_way_says_what_it_waits_for() -> None:
    """Between asking and stopping a node may run for an hour."""
    tale = Tale().tell(ev.EffectStarted("", "build", 1, 1, 1, "k"), ev.StopRequested(by="ann"))
    reasons = explain(tale.history())
    assert reasons[0].text == "ann asked it to stop; it does when the running node is done"
    assert _topic(reasons, "running")[0].text.startswith("'build' runs since")


def test_a_crash_is_told_with_the_key_and_how_often() -> None:
    """Whoever looks for a double effect needs the key that stayed the same."""
    tale = Tale()
    for entry in (1, 2):
        tale.tell(ev.EffectStarted("", "build", 1, 1, 1, "k1", entry), ev.EffectLost("", "k1", "crash"))
    (reason,) = _topic(explain(tale.history()), "reentered")
    assert "'build' was cut off 2 times (its process died)" in reason.text
    assert "the same key k1" in reason.text


def test_budgets_refusals_and_defaults_are_told() -> None:
    """What limited, refused or degraded a run is never left out."""
    tale = Tale().tell(ev.BudgetReached("wall", 60.0), ev.BudgetRaised("wall", 120.0, "ann"))
    tale.tell(ev.SignalRejected("answer", "no question of that name is open"))
    tale.done("build", "check").tell(
        _passed(12, "ask"), ev.StepDone("", "ask", 1, "done", {"ask": "no"}, defaulted=True)
    )
    texts = [reason.text for reason in explain(tale.history())]
    assert "the budget for wall (1m) was used up" in texts
    assert "ann set the budget for wall to 2m" in texts
    assert "a message 'answer' was refused: no question of that name is open" in texts
    assert "'ask' went on with a default or with a degraded child, so the result is degraded" in texts


def test_failed_members_are_data_but_are_told() -> None:
    """A branch that failed as data is easy to overlook."""
    tale = Tale("fan").tell(ev.ScopesForked("", "fan", 1, ["a", "b"]), ev.ScopeStarted("fan.a"))
    tale.tell(ev.ScopeEnded("fan.a", "failed", {"message": "left broke"}))
    (reason,) = _topic(explain(tale.history()), "members")
    assert reason.lines == ("fan.a: left broke",)


def test_a_node_says_how_it_was_reached_and_left() -> None:
    """`why NODE` is about one node: what led there and what came of it."""
    tale = Tale().done("build", "check").tell(_passed(12, "ask"))
    texts = [reason.text for reason in explain_node(tale.history(), "check")]
    assert texts[0] == "'check' was reached because 'build' leads there"
    assert texts[1].startswith("branch 'check': result.count is 12")


def test_a_node_that_was_not_visited_is_said_to_be_so() -> None:
    """An empty answer would leave open whether the name was wrong."""
    tale = Tale()
    assert explain_node(tale.history(), "ask")[0].text == "'ask' has not been visited by flow-default"
    assert "has no node 'nope' now" in explain_node(tale.history(), "nope")[0].text


def test_a_branch_is_explained_by_the_graph_of_its_time() -> None:
    """After a reload the old decision must not be explained by the new cases."""
    tale = Tale().done("build", "check").tell(_passed("few", "done"), ev.DefinitionAdopted("d2", "ann"))
    old, new = tale.state().graphs("d1"), Tale("fan").state().graphs("d1")
    nodes = {name: node for name, node in new.nodes.items() if name != "check"}
    later = type(new)(name="flow", start="build", nodes=nodes)
    state = State(graphs=lambda name: old if name == "d1" else later)
    state.graph, state.status, state.scopes = later, "running", tale.state().scopes
    reasons = explain(RunHistory("flow-default", tale.entries, state))
    assert "which is the case 'few'" in _topic(reasons, "branch")[0].text


def test_a_branch_that_a_rewind_took_back_explains_nothing() -> None:
    """It does not say where the run is now."""
    tale = Tale().done("build", "check").tell(_passed("few", "done"))
    assert _topic(explain(tale.history()), "branch")
    tale.tell(ev.Rewound(1, "build", 1))
    assert _topic(explain(tale.history()), "branch") == []


def _gate(visit: int, text: str, *, good: bool) -> list[ev.Event]:
    key = f"k{visit}"
    said = {"told": text, "good": good, "lines": ["t.py::test_a fails: t.py:3: assert 1 == 2"]}
    return [
        ev.EffectStarted("", "build", visit, 1, 1, key),
        ev.EffectObserved("", key, said),
        ev.EffectFinished("", key, seconds=0.5),
        ev.StepDone("", "build", visit, "check"),
    ]


def test_what_a_gate_found_last_is_told_with_the_failing_test() -> None:
    """Whoever asks why after a red gate wants the test, not the path through the graph."""
    tale = Tale().tell(*_gate(1, "red: first", good=False))
    tale.tell(ev.StepPassed("", "check", 1, "build"), *_gate(2, "red: t.py::test_a fails", good=False))
    (reason,) = _topic(explain(tale.history()), "found")
    assert reason.text == "'build', visit 2 found: red: t.py::test_a fails"
    assert reason.lines == ("t.py::test_a fails: t.py:3: assert 1 == 2",)
    assert len(_topic(explain_node(tale.history(), "build"), "found")) == 2


def test_a_green_gate_at_the_end_leaves_nothing_to_explain() -> None:
    """What was red before and is green now is no answer to why."""
    tale = Tale().tell(*_gate(1, "red: first", good=False), ev.StepPassed("", "check", 1, "build"))
    tale.tell(*_gate(2, "green", good=True))
    assert _topic(explain(tale.history()), "found") == []


def test_a_step_whose_process_is_gone_was_interrupted() -> None:
    """After kill -9 nothing runs: saying "runs since" would be wrong, and the way on is named."""
    tale = Tale().tell(ev.OwnerChanged(1, "pid 7 on host h"), ev.EffectStarted("", "build", 1, 1, 1, "k"))
    history = tale.history()
    (running,) = _topic(explain(history), "running")
    assert "'build' runs since" in running.text
    gone = replace(history, holder="")
    (reason,) = _topic(explain(gone), "interrupted")
    assert "'build' was interrupted" in reason.text
    assert reason.text.endswith("and its process is gone")
    assert reason.lines == ("go on with: bailiwick resume flow-default",)
    assert not _topic(explain(gone), "running")
    assert _topic(explain(replace(history, holder="pid 8")), "running")


def test_a_wait_after_failed_attempts_says_what_was_wrong_with_them() -> None:
    """An answer that was rejected for its keys is told with the keys, not only with its class."""
    tale = Tale().effect("build", failure="the answer lacks 'title'")
    tale.tell(ev.WaitOpened("", "build", 1, "w1", "exhausted", body={"question": "What now?", "choices": ["retry"]}))
    (reason,) = _topic(explain(tale.history()), "waits")
    assert reason.lines[0] == "attempt 1: the answer lacks 'title' (0.5 s)"


def test_what_a_gate_found_is_told_although_other_nodes_spoke_after_it() -> None:
    """The failing test is the reason; that the work was kept in a branch is not."""
    tale = Tale()
    for node, said in (
        ("build", {"told": "red: t.py::test_a fails", "good": False, "lines": ["t.py:3: assert 1 == 2"]}),
        ("left", {"told": "agent/x holds what there is"}),
    ):
        key = f"key-{node}-1"
        tale.tell(ev.EffectStarted("", node, 1, 1, 1, key), ev.EffectObserved("", key, said))
        tale.tell(
            ev.EffectFinished("", key, seconds=0.5), ev.StepDone("", node, 1, "left" if node == "build" else "done")
        )
    (reason,) = _topic(explain(tale.history()), "found")
    assert (reason.text, reason.lines) == ("'build' found: red: t.py::test_a fails", ("t.py:3: assert 1 == 2",))
