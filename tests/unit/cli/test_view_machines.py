"""Views for programs: NDJSON of durable events, one JSON document, and the choice between views."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from dataclasses import replace

import pytest

from bailiwick.cli.view.choose import choose_view
from bailiwick.cli.view.document import DocumentView
from bailiwick.cli.view.events import EventsView
from bailiwick.cli.view.live import LiveView
from bailiwick.cli.view.plain import PlainView
from bailiwick.engine import events as ev
from bailiwick.engine.state import Deferred
from bailiwick.errors import UsageError
from bailiwick.ids import Json
from bailiwick.journal.codec import encode
from bailiwick.runtime.record import row_status
from tests.unit.cli.view_stage import NOON, Ask, Set, ViewSetup, graph, lines, printer, row_of, work


def document(stage: ViewSetup, code: int, *, state: bool = True) -> dict[str, Json]:
    """The one document of a run, after nothing was heard but its end."""
    out = io.StringIO()
    view = DocumentView(printer(out), stage.clock, printer(io.StringIO()))
    view.end(stage.now_row(), code, stage.state if state else None)
    found: dict[str, Json] = json.loads(out.getvalue())
    return found


def test_each_durable_event_is_one_line_and_the_last_one_says_how_it_ended() -> None:
    """A program that reads line by line needs nothing but the lines."""
    stage = ViewSetup(graph(work("a", "end")))
    out, people = io.StringIO(), io.StringIO()
    view = EventsView(printer(out), printer(people))
    view.begin(stage.row, ["the files differ"])
    stage.happen(view, stage.started("a"), after=1)
    view.trouble("u1", "slow disk")
    stage.happen(view, stage.finished("a", 1), ev.StepDone("", "a", 1, "end"), ev.RunFinished("done", "end"))
    view.end(stage.now_row(), 0)
    found = [json.loads(line) for line in lines(out)]
    assert [line["type"] for line in found] == ["EffectStarted", "EffectFinished", "StepDone", "RunFinished", "End"]
    assert found[0] == {
        "run": "hello-default",
        "uid": "u1",
        "seq": 2,
        "at": "2023-11-15T12:00:01.000Z",
        "type": "EffectStarted",
        "scope": "",
        "node": "a",
        "visit": 1,
        "ordinal": 1,
        "attempt": 1,
        "key": stage.key("a"),
    }
    assert found[-1] == {"run": "hello-default", "uid": "u1", "type": "End", "state": "done", "code": 0}
    assert lines(people) == ["the files differ", "slow disk"]


def test_a_big_value_is_a_reference_in_the_event_stream() -> None:
    """A line stays short whatever a script printed; the value is in the store under its digest."""
    stage = ViewSetup(graph(Set(id="prep", values={}, next="prep")))
    out = io.StringIO()
    big = "x" * 5000
    writes = {"big": big, "small": {"$blobs": 1}, "kept": Deferred("d" * 64)}
    stage.happen(EventsView(printer(out), printer(out)), ev.StepPassed("", "prep", 1, "prep", writes))
    _, kept = encode(ev.StepPassed("", "prep", 1, "prep", {"big": big}), NOON)
    [line] = lines(out)
    assert json.loads(line)["writes"] == {
        "big": {"$ref": next(iter(kept))},
        "small": {"$blobs": 1},
        "kept": {"$ref": "d" * 64},
    }


def test_each_event_line_is_flushed_when_it_is_written() -> None:
    """Whoever follows a run through a pipe sees an event when it is durable, not when a buffer is full."""

    class Counting(io.StringIO):
        flushed = ""

        def flush(self) -> None:
            self.flushed = self.getvalue()

    stage = ViewSetup(graph(work("a", "end")))
    out = Counting()
    stage.happen(EventsView(printer(out), printer(io.StringIO())), stage.started("a"))
    assert out.flushed.endswith("\n")


def test_the_document_has_all_a_program_needs_to_go_on() -> None:
    """One run, one answer: state, code, result, where its files are and what to call next."""
    stage = ViewSetup(graph(work("a", "end")), context={"name": "world"})
    stage.happen(None, stage.started("a"))
    stage.happen(None, stage.finished("a", 2), ev.StepDone("", "a", 1, "end", {"got": [1]}), after=2)
    stage.happen(None, ev.RunFinished("failed", "a", "no luck", ended=False))
    assert document(stage, 1) == {
        "run": "hello-default",
        "workflow": "hello",
        "run_id": "default",
        "uid": "u1",
        "state": "failed",
        "code": 1,
        "meaning": "failed",
        "already": False,
        "worker": None,
        "degraded": [],
        "reason": "no luck",
        "steps": 1,
        "reentered": 0,
        "started_at": "2023-11-15T12:00:00.000Z",
        "ended_at": "2023-11-15T12:00:02.000Z",
        "context": {"got": [1], "name": "world"},
        "results": {},
        "waits": [],
        "run_dir": "runs/hello-default",
        "next": ["bailiwick why hello-default", "bailiwick resume hello-default"],
    }


def test_the_document_names_open_waits_of_the_whole_tree() -> None:
    """A question in a called run stops the tree as much as one of its own."""
    stage = ViewSetup(graph(Ask(id="ask", question="q", next="end")))
    child = ViewSetup(stage.graph, row=row_of("c1", "k", parent="u1"))
    out = io.StringIO()
    view = DocumentView(printer(out), stage.clock, printer(io.StringIO()))
    stage.happen(
        view, ev.WaitOpened("", "ask", 1, "w1", "ask", 0, NOON + 60, {"question": "A?", "choices": ["y", "n"]})
    )
    child.happen(view, ev.WaitOpened("", "ask", 1, "w2", "ask", body={"question": "B?", "choices": []}))
    view.end(stage.now_row(), 3)
    found = json.loads(out.getvalue())
    assert found["waits"] == [
        {
            "run": "hello-default",
            "id": "w1",
            "node": "ask",
            "kind": "ask",
            "question": "A?",
            "choices": ["y", "n"],
            "due_at": "2023-11-15T12:01:00.000Z",
        },
        {
            "run": "hello-k",
            "id": "w2",
            "node": "ask",
            "kind": "ask",
            "question": "B?",
            "choices": [],
            "due_at": None,
        },
    ]
    assert found["next"] == ["bailiwick runs answer hello-default y | n", "bailiwick runs answer hello-k VALUE"]


def test_a_workflow_that_returns_keys_gives_those_and_no_others() -> None:
    """What a workflow returns is its interface; the rest of its context is its own."""
    stage = ViewSetup(graph(work("a", "end"), returns=("result", "absent")), context={"result": 1, "secret": 2})
    assert document(stage, 0)["context"] == {"result": 1}


def test_a_context_over_the_limit_is_left_out() -> None:
    """The document stays readable; the context is in the run directory."""
    stage = ViewSetup(graph(work("a", "end")), context={"big": "x" * 65_536})
    assert "context" not in document(stage, 0)


def test_a_value_that_cannot_be_read_leaves_the_context_out() -> None:
    """A blob that is gone must not take the verdict with it."""
    stage = ViewSetup(graph(work("a", "end")), context={"big": Deferred("d" * 64)})
    found = document(stage, 0)
    assert ("context" in found, found["code"]) == (False, 0)


def test_the_document_of_a_run_that_was_not_walked_comes_from_its_row() -> None:
    """A run that was done before has no events to tell now."""
    stage = ViewSetup(graph(work("a", "end")))
    stage.row = replace(stage.row, status=row_status(stage.state))
    found = document(stage, 0, state=False)
    assert (found["state"], found["steps"], "context" in found) == ("running", 0, False)


@pytest.mark.parametrize(
    ("flags", "kind"),
    [
        ({"json": True, "is_terminal": True}, DocumentView),
        ({"events": True, "is_terminal": True}, EventsView),
        ({"is_terminal": True}, LiveView),
        ({"is_terminal": False}, PlainView),
        ({}, PlainView),
    ],
)
def test_a_view_fits_the_flags_and_the_terminal(flags: dict[str, bool], kind: type) -> None:
    """A program asked for gets JSON even on a terminal; a log gets lines."""
    assert isinstance(choose_view(**flags), kind)


def test_one_output_can_not_be_a_document_and_a_stream() -> None:
    """Both would be neither."""
    with pytest.raises(UsageError, match="exclude"):
        choose_view(json=True, events=True)


def test_choosing_a_view_loads_nothing_that_draws() -> None:
    """A run in a pipe must not pay for a terminal's library."""
    code = (
        "import sys; from bailiwick.cli.view.choose import choose_view; choose_view(json=True);"
        "choose_view(events=True); choose_view(is_terminal=False); print('rich' in sys.modules, 'click' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=600)
    assert done.stdout == "False False\n"
