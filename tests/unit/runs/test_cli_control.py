"""Steering runs from the command line."""

from __future__ import annotations

import pytest

from bailiwick.app.service import App
from bailiwick.runs.find import find_run
from tests.unit.runs.house import ASKS, Machine
from tests.unit.runs.test_cli_query import PURE, SLEEPS

TWO = """
version: 1
name: two
start: fan
nodes:
  - {id: fan, type: parallel, branches: {a: one, b: other}, join: done}
  - {id: one, type: ask, question: "First?", next: done}
  - {id: other, type: ask, question: "Second?", next: done}
  - {id: done, type: terminal}
"""


def _context(house: Machine, name: str) -> dict[str, object]:
    async def read(app: App) -> dict[str, object]:
        row = await find_run(app.runtime.store, name)
        return (await app.runtime.library.state(row.id)).context()

    context: dict[str, object] = house.inside(read)
    return context


def test_an_answer_lets_the_run_go_on(house: Machine) -> None:
    """And says how."""
    house.run(house.write())
    answer = house.say("runs", "answer", "flow", "no")
    assert answer.code == 0
    assert "go on with: bailiwick resume flow-default" in answer.out
    house.walk()
    assert _context(house, "flow")["ask"] == "no"


def test_a_wrong_answer_is_refused_with_the_choices(house: Machine) -> None:
    """Before anything is sent: the journal keeps no trace of a typing error."""
    house.run(house.write())
    answer = house.say("runs", "answer", "flow", "perhaps")
    assert (answer.code, "one of: yes, no" in answer.err) == (2, True)
    assert "refused" not in house.say("why", "flow").out


def test_no_answer_and_no_terminal_shows_the_question(house: Machine) -> None:
    """Never a prompt without a terminal."""
    house.run(house.write())
    answer = house.say("runs", "answer", "flow")
    assert answer.code == 2
    assert "Deploy 12?" in answer.err


def test_several_questions_need_a_name(house: Machine) -> None:
    """The node's name will do."""
    house.run(house.write(TWO, "two"))
    answer = house.say("runs", "answer", "two", "x")
    assert (answer.code, "--question with one of:" in answer.err) == (2, True)
    assert house.say("runs", "answer", "two", "x", "--question", "other").code == 0
    assert "First?" in house.say("status").out
    assert "Second?" not in house.say("status").out


def test_an_answer_is_text_unless_it_is_said_to_be_json(house: Machine) -> None:
    """`12` typed by a person is the text they typed."""
    text = 'version: 1\nname: q\nstart: ask\nnodes:\n  - {id: ask, type: ask, question: "How many?", next: done}\n'
    folder = house.write(text + "  - {id: done, type: terminal}\n", "q")
    house.run(folder, "a")
    house.run(folder, "b")
    house.say("runs", "answer", "q-a", "12")
    house.say("runs", "answer", "q-b", "12", "--json-value")
    house.walk()
    assert (_context(house, "q-a")["ask"], _context(house, "q-b")["ask"]) == ("12", 12)
    assert house.say("runs", "answer", "q-b", "{", "--json-value").code == 2


def test_a_run_that_asks_nothing_takes_no_answer(house: Machine) -> None:
    """Exit 2, and where to look."""
    house.run(house.write(SLEEPS, "nap"))
    assert house.say("runs", "answer", "nap", "x").code == 2


def test_a_budget_is_raised_by_an_answer(house: Machine) -> None:
    """`wall=4h` sets the ceiling in seconds; nonsense is refused."""
    house.run(house.write(SLEEPS, "nap"))
    assert "may use wall up to 4h" in house.say("runs", "answer", "nap", "wall=4h").out
    assert "set the budget for wall to 4h" in house.say("why", "nap").out
    for bad in ("wall=soon", "agent_calls=-1", "usd=nan"):
        assert house.say("runs", "answer", "nap", bad).code == 2


def test_stop_and_what_is_next(house: Machine) -> None:
    """A stopped run says how it goes on; a second stop is refused."""
    house.run(house.write(SLEEPS, "nap"))
    answer = house.say("stop", "nap")
    assert "go on with: bailiwick resume nap-default" in answer.out
    again = house.say("runs", "stop", "nap")
    assert (again.code, "the run is stopped" in again.err) == (2, True)


def test_stop_all_stops_every_run_that_is_not_over(house: Machine) -> None:
    """One command before the machine goes down."""
    house.run(house.write())
    house.run(house.write(SLEEPS, "nap"))
    house.run(house.write(PURE, "pure"))
    stopped = house.say("stop", "--all", "--json").document["stopped"]
    assert {(run["run"], run["state"]) for run in stopped} == {("flow-default", "stopped"), ("nap-default", "stopped")}
    assert "No run is going on." in house.say("stop", "--all").out


@pytest.mark.parametrize("words", [("stop",), ("stop", "nap", "--all")])
def test_stop_needs_one_run_or_all(house: Machine, words: tuple[str, ...]) -> None:
    """Neither and both are typing errors with consequences."""
    assert house.say(*words).code == 2


def test_stopping_a_caller_stops_what_it_called(house: Machine) -> None:
    """Also where nobody walks either of them."""
    house.write(SLEEPS, "nap")
    caller = "version: 1\nname: top\nstart: go\nnodes:\n  - {id: go, type: call, workflow: nap, next: done}\n"
    house.run(house.write(caller + "  - {id: done, type: terminal}\n", "top"))
    house.say("stop", "top")
    states = {run["workflow"]: run["state"] for run in house.say("runs", "list", "--all", "--json").document["runs"]}
    assert states == {"top": "stopped", "nap": "stopped"}


def test_rewind_past_effects_needs_a_yes(house: Machine) -> None:
    """They are not undone, so they are listed and confirmed."""
    house.run(house.write())
    answer = house.say("runs", "rewind", "flow", "build")
    assert (answer.code, "build" in answer.err, "--yes" in answer.err) == (2, True, True)
    assert house.say("runs", "rewind", "flow", "build", "--yes").code == 0
    house.walk()
    visits = house.say("runs", "show", "flow", "--json").document["visits"]
    assert [(v["node"], v["visit"], v["undone"]) for v in visits if v["node"] == "build"] == [
        ("build", 1, True),
        ("build", 2, False),
    ]


def test_rewind_past_nothing_asks_nothing(house: Machine) -> None:
    """A question put again is no effect."""
    house.run(house.write())
    assert house.say("runs", "rewind", "flow", "ask").code == 0


def test_rewind_to_an_unknown_node_is_refused(house: Machine) -> None:
    """Exit 2; nothing was changed."""
    house.run(house.write())
    assert house.say("runs", "rewind", "flow", "nope", "--yes").code == 2


def test_a_fork_goes_its_own_way(house: Machine) -> None:
    """The original stays as it is; values are JSON, else text."""
    house.run(house.write())
    answer = house.say(
        "runs", "fork", "flow", "--at", "check", "--set", "count=3", "--set", "note=hi", "--run-id", "less"
    )
    assert "flow-less is a fork of flow-default before 'check', visit 1" in answer.out
    house.walk()
    context = _context(house, "flow-less")
    assert (context["count"], context["note"]) == (3, "hi")
    states = {run["run"]: run["state"] for run in house.say("runs", "list", "--json").document["runs"]}
    assert states == {"flow-less": "done", "flow-default": "waiting"}


def test_a_fork_finds_a_free_name_and_the_point_where_the_run_stands(house: Machine) -> None:
    """`fork RUN` alone is a copy that asks the same question."""
    house.run(house.write())
    assert "flow-default-fork " in house.say("runs", "fork", "flow-default").out
    assert "flow-default-fork2 " in house.say("runs", "fork", "flow-default").out
    house.walk()
    assert house.say("status").out.count("Deploy 12?") == 3


@pytest.mark.parametrize(
    "words", [("--set", "novalue"), ("--run-id", "../x"), ("--at", "ask@zero"), ("--run-id", "default")]
)
def test_a_fork_refuses_bad_words(house: Machine, words: tuple[str, ...]) -> None:
    """Exit 2, no run made."""
    house.run(house.write())
    assert house.say("runs", "fork", "flow", *words).code == 2
    assert len(house.say("runs", "list", "--json").document["runs"]) == 1


def test_reload_adopts_what_fits(house: Machine) -> None:
    """A changed text is adopted; the run still stands at its question."""
    house.run(house.write())
    assert "has these files already" in house.say("runs", "reload", "flow").out
    house.write(ASKS.replace("default: done", "default: boom"))
    answer = house.say("runs", "reload", "flow")
    assert (answer.code, "goes on with the files" in answer.out) == (0, True)


def test_reload_refuses_what_loses_a_live_node(house: Machine) -> None:
    """The node it stands at is gone: exit 1 with its name, and the old definition stays."""
    house.run(house.write())
    house.write(
        ASKS.replace("next: ask}", "next: done}").replace("id: ask,", "id: query,").replace("path: ask", "path: query")
    )
    answer = house.say("runs", "reload", "flow")
    assert (answer.code, "ask" in answer.out) == (1, True)


def test_reload_of_a_broken_file_lists_its_problems(house: Machine) -> None:
    """As `validate` would; nothing is adopted."""
    folder = house.write()
    house.run(folder)
    (folder / "workflow.yaml").write_text(ASKS.replace("next: check", "next: chekc"))
    answer = house.say("runs", "reload", "flow")
    assert answer.code == 2
    assert "chekc" in answer.err
