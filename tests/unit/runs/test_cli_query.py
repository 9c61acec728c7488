"""What people see when they ask."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

import pytest

from bailiwick.app.service import App
from bailiwick.journal.rows import ClaimFilter
from bailiwick.processes.owner import current_owner
from tests.unit.runs.house import Machine

SLEEPS = """
version: 1
name: nap
start: rest
nodes:
  - {id: rest, type: wait, for: 1h, next: done}
  - {id: done, type: terminal}
"""
PURE = """
version: 1
name: pure
start: put
nodes:
  - {id: put, type: set, values: {a: 1}, next: done}
  - {id: done, type: terminal}
"""


def test_status_says_what_to_do_where_there_is_nothing(house: Machine) -> None:
    """An empty screen teaches nobody."""
    answer = house.say("status")
    assert answer.code == 0
    assert "bailiwick demo" in answer.out
    assert "bailiwick new hello" in answer.out


def test_status_puts_the_question_first_with_the_command_that_answers_it(house: Machine) -> None:
    """What waits for a person is the one thing only they can move."""
    house.run(house.write())
    house.run(house.write(SLEEPS, "nap"), "n")
    answer = house.say("status")
    lines = answer.out.splitlines()
    assert lines[0] == "Waits for you"
    assert "Deploy 12?" in lines[1]
    assert lines[2].strip() == "bailiwick runs answer flow-default yes | no"
    assert "nap-n" in answer.out[answer.out.index("Sleeping") :]


def test_bare_bailiwick_is_status(house: Machine) -> None:
    """The shortest command answers the most frequent question."""
    assert house.say().out == house.say("status").out


def test_status_says_that_nobody_walks_a_ready_run(house: Machine) -> None:
    """A run that could go on and does not is told with what to do."""
    house.start(house.write())
    answer = house.say("status")
    assert "no worker is running it: bailiwick worker, or bailiwick resume flow-default" in answer.out
    assert house.say("status", "--json").document["queued"][0]["orphaned"] is True


def test_status_names_who_walks_a_run(house: Machine) -> None:
    """Two terminals, one machine: which one is it?"""
    row = house.start(house.write())

    async def hold(app: App) -> None:
        now = app.runtime.clock.now()
        await app.runtime.store.claim(current_owner("a test"), now, now + 60, 1, ClaimFilter(run_id=row.id))

    house.inside(hold)
    assert f"by pid {os.getpid()} on this host (a test)" in house.say("status").out


def test_status_as_json_is_one_document(house: Machine) -> None:
    """Scripts read it; nothing else may be on standard output."""
    house.run(house.write())
    found = house.say("status", "--json").document
    assert found["waiting"][0]["commands"] == [
        "bailiwick runs answer flow-default yes",
        "bailiwick runs answer flow-default no",
    ]
    assert found["finished"] == []


def test_list_filters_by_state_and_workflow(house: Machine) -> None:
    """A hundred runs are only useful in parts."""
    house.run(house.write())
    house.run(house.write(PURE, "pure"))
    names = [run["run"] for run in house.say("runs", "list", "--json").document["runs"]]
    assert names == ["pure-default", "flow-default"]
    assert "pure-default" not in house.say("runs", "list", "--status", "waiting").out
    only = house.say("runs", "list", "--workflow", "pure", "--json").document["runs"]
    assert [(run["run"], run["state"]) for run in only] == [("pure-default", "done")]


def test_bare_runs_is_the_list(house: Machine) -> None:
    """`bailiwick runs` alone lists."""
    house.run(house.write(PURE, "pure"))
    assert "pure-default" in house.say("runs").out


def test_an_unknown_command_of_the_group_names_the_nearest(house: Machine) -> None:
    """The group helps as the root does."""
    answer = house.say("runs", "lst")
    assert answer.code == 2
    assert "did you mean 'list'?" in answer.err


def test_show_has_facts_questions_and_visits(house: Machine) -> None:
    """One page for one run."""
    house.run(house.write())
    answer = house.say("runs", "show", "flow")
    assert "bailiwick runs answer flow-default yes | no" in answer.out
    found = house.say("runs", "show", "flow", "--json").document
    assert [(visit["node"], visit["result"]) for visit in found["visits"]] == [
        ("build", "done"),
        ("check", "done"),
        ("ask", "waiting"),
    ]
    assert found["waits"][0]["choices"] == ["yes", "no"]


def test_a_run_that_is_not_there_is_a_usage_error(house: Machine) -> None:
    """With the nearest name, exit 2."""
    house.run(house.write(PURE, "pure"))
    answer = house.say("runs", "show", "pur-default")
    assert answer.code == 2
    assert "pure-default" in answer.err


def test_logs_show_the_kept_output_without_terminal_escapes(house: Machine) -> None:
    """What a script printed is data: it must not colour or clear the reader's terminal."""
    house.run(house.write())
    house.say("runs", "answer", "flow", "yes")
    house.walk()
    answer = house.say("logs", "flow")
    assert "! bad news" in answer.out
    assert "\x1b" not in answer.out
    assert '| {"count": 12}' in answer.out


def test_logs_of_one_node_leave_the_others_out(house: Machine) -> None:
    """A long run has many nodes."""
    house.run(house.write())
    places = {line["node"] for line in house.say("logs", "flow", "build", "--json").document["lines"]}
    assert places == {"build"}


def test_following_ends_with_the_run(house: Machine) -> None:
    """`logs -f` of a run that another process walks tells everything up to the end, then leaves."""
    house.start(house.write(PURE, "pure"))
    walker = threading.Thread(target=house.walk)
    walker.start()
    answer = house.say("logs", "-f", "pure")
    walker.join()
    assert answer.code == 0
    assert "finished" in answer.out


def test_control_c_ends_following_cleanly(house: Machine) -> None:
    """Code 130 and no traceback: leaving is no failure."""
    house.run(house.write(SLEEPS, "nap"))
    with subprocess.Popen(
        [sys.executable, "-m", "bailiwick", "logs", "-f", "nap"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert "started: workflow nap" in process.stdout.readline()
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=600)
    assert (process.returncode, err.strip()) == (130, "")


@pytest.mark.parametrize(("text", "code"), [(SLEEPS, 7), (PURE, 0)])
def test_wait_gives_the_code_of_the_run(house: Machine, text: str, code: int) -> None:
    """A script that waits for a run branches on its code."""
    house.run(house.write(text, "x"), "k")
    assert house.say("runs", "wait", "k").code == code


def test_wait_for_a_question_gives_three_and_for_a_failure_one(house: Machine) -> None:
    """Parked for a person and failed are different codes."""
    house.run(house.write())
    assert house.say("runs", "wait", "flow").code == 3
    house.say("runs", "answer", "flow", "yes")
    house.walk()
    assert house.say("runs", "wait", "flow").code == 1


def test_wait_through_a_pause_ends_at_its_timeout(house: Machine) -> None:
    """`--through` stays while the run sleeps; the timeout bounds it, with the code for time."""
    house.run(house.write(SLEEPS, "nap"))
    answer = house.say("runs", "wait", "nap", "--through", "--timeout", "0s")
    assert (answer.code, "not over in time" in answer.out) == (7, True)


def test_wait_refuses_a_time_that_is_none(house: Machine) -> None:
    """Exit 2 with an example."""
    answer = house.say("runs", "wait", "x", "--timeout", "soon")
    assert (answer.code, "10m" in answer.err) == (2, True)


def test_why_finds_a_node_in_the_newest_run_that_has_it(house: Machine) -> None:
    """People remember the node, not the run."""
    house.run(house.write())
    house.run(house.write(PURE, "pure"))
    answer = house.say("why", "check", "--json").document
    assert (answer["run"], answer["node"]) == ("flow-default", "check")
    assert "12 >= 10" in answer["reasons"][1]["text"]


def test_why_of_a_failure_shows_the_last_words(house: Machine) -> None:
    """The error itself is the first thing to read."""
    house.run(house.write())
    house.say("runs", "answer", "flow", "yes")
    house.walk()
    answer = house.say("why", "flow")
    assert "'boom' failed: exited with 3" in answer.out
    assert "stderr: bad news" in answer.out
    assert "not tried again: the node has no retry" in answer.out


def test_why_nothing_known_is_a_usage_error(house: Machine) -> None:
    """Neither a run nor a node: exit 2."""
    house.run(house.write(PURE, "pure"))
    assert house.say("why", "nowhere").code == 2


def test_a_called_run_stands_below_its_caller(house: Machine) -> None:
    """The tree shows who waits for whom."""
    house.write(SLEEPS, "nap")
    caller = "version: 1\nname: top\nstart: go\nnodes:\n  - {id: go, type: call, workflow: nap, next: done}\n"
    house.run(house.write(caller + "  - {id: done, type: terminal}\n", "top"))
    found = house.say("runs", "tree", "top", "--json").document
    assert [(member["name"][:11], member["state"]) for member in found["members"]] == [("nap-default", "sleeping")]
    assert house.say("runs", "list", "--json").document["runs"][0]["state"] == "sleeping"
    child = found["members"][0]["name"]
    assert "called by top-default" in house.say("runs", "tree", child).out


def test_a_list_can_be_cut_by_number_state_and_time(house: Machine) -> None:
    """With a thousand runs, nobody wants all of them; what was cut off is named."""
    folder = house.write(PURE, "pure")
    for key in ("a", "b", "c"):
        house.run(folder, key)
    house.run(house.write())

    def names(*words: str) -> list[str]:
        return [run["run"] for run in house.say("runs", "list", "--json", *words).document["runs"]]

    assert names("--limit", "2") == ["flow-default", "pure-c"]
    assert house.say("runs", "list", "--limit", "2", "--json").document["more"] is True
    assert names("--limit", "2", "--before", "pure-c") == ["pure-b", "pure-a"]
    assert house.say("runs", "list", "--limit", "4", "--json").document["more"] is False
    assert names("--state", "done", "--limit", "2") == ["pure-c", "pure-b"]
    assert names("--state", "waiting") == ["flow-default"]
    assert len(names("--since", "1h")) == 4
    assert names("--since", "2999-01-01") == []
    assert len(names("--since", "1999-01-01T10:00")) == 4
    assert house.say("runs", "list", "--since", "yesterdayish").code == 2
    cut = house.say("runs", "list", "--limit", "1").out
    assert "more: --before " in cut
    assert names("--limit", "1", "--before", cut.rpartition("--before ")[2].strip()) == ["pure-c"]
