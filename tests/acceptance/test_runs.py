"""The life of a run from the command line: killed, resumed, stopped, answered, rewound, forked, reloaded."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from bailiwick.testing.polling import until
from tests.acceptance.command import EXAMPLES, Person, end

SLOW = """version: 1
name: slow
start: first
nodes:
  - {id: first, type: script, script: scripts/note.sh, args: [first], next: second}
  - {id: second, type: script, script: scripts/slow.sh, args: [second], next: third}
  - {id: third, type: script, script: scripts/note.sh, args: [third], next: done}
  - {id: done, type: terminal}
"""
NOTE = 'echo "$1 $BAILIWICK_EFFECT_KEY" >> "$BAILIWICK_WORKSPACE/log"\n'
HOLD = NOTE + 'while [ ! -e "$BAILIWICK_WORKSPACE/go" ]; do sleep 0.02; done\n'


def _slow(person: Person) -> Path:
    return person.workflow("slow", SLOW, note_sh=NOTE, slow_sh=HOLD)


def _log(person: Person) -> list[str]:
    logs = list((person.home / "state" / "workspaces").glob("*/log"))
    return [line.split()[0] for log in logs for line in log.read_text().splitlines()]


def _go(person: Person) -> None:
    for log in (person.home / "state" / "workspaces").glob("*/log"):
        (log.parent / "go").touch()


def test_killed_in_the_middle_it_goes_on_where_it_was(person: Person) -> None:
    """The promise: kill -9, the same command again, done nodes are not repeated, the cut off one has the same key."""
    flow = _slow(person)
    process = person.starts("run", flow)
    try:
        until(lambda: _log(person) == ["first", "second"])
    finally:
        end(process)
    _go(person)
    again = person.runs("run", flow, "--json")
    assert again.code == 0, again.err
    assert _log(person) == ["first", "second", "second", "third"]
    keys = [
        line.split()[1] for line in next((person.home / "state" / "workspaces").glob("*/log")).read_text().splitlines()
    ]
    assert keys[1] == keys[2]
    assert again.json()["reentered"] == 1


def test_a_second_process_is_refused_by_name(person: Person) -> None:
    """Two walkers of one run would do everything twice."""
    flow = _slow(person)
    process = person.starts("run", flow)
    try:
        until(lambda: "second" in _log(person))
        second = person.runs("run", flow)
        assert second.code == 8
        assert f"pid {process.pid}" in second.err
    finally:
        _go(person)
        out, err = process.communicate(timeout=600)
    assert process.returncode == 0, out + err


def test_sigterm_leaves_it_resumable(person: Person) -> None:
    """A machine that shuts down in order: code 143, children gone, the next run goes on."""
    flow = _slow(person)
    process = person.starts("run", flow)
    try:
        until(lambda: "second" in _log(person))
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=600)
    finally:
        end(process)
    assert process.returncode == 143, out + err
    listed = person.runs("runs", "list", "--json").json()
    assert "stopped" in json.dumps(listed)
    _go(person)
    assert person.runs("run", flow).code == 0
    assert _log(person)[0] == "first"
    assert _log(person).count("first") == 1


def test_stop_lands_at_the_next_node_and_resume_goes_on(person: Person) -> None:
    """`stop` waits for the node that runs; `--now` would not."""
    flow = _slow(person)
    process = person.starts("run", flow)
    try:
        until(lambda: "second" in _log(person))
        stopped = person.runs("stop", "slow")
        assert stopped.code == 0, stopped.err
        _go(person)
        process.communicate(timeout=600)
    finally:
        end(process)
    assert process.returncode == 130
    assert _log(person) == ["first", "second"]
    resumed = person.runs("resume", "slow")
    assert resumed.code == 0, resumed.err
    assert _log(person) == ["first", "second", "third"]


def test_stop_now_ends_the_children(person: Person) -> None:
    """The process group of the running script is ended; the run can be resumed."""
    flow = _slow(person)
    process = person.starts("run", flow)
    try:
        until(lambda: "second" in _log(person))
        assert person.runs("runs", "stop", "slow", "--now").code == 0
        process.communicate(timeout=600)
    finally:
        end(process)
    _go(person)
    assert person.runs("resume", "slow").code == 0
    assert _log(person) == ["first", "second", "second", "third"]


def test_a_failed_node_is_tried_again_with_a_new_visit(person: Person) -> None:
    """`run` after a failure goes on at the failed node, not from the start."""
    flow = person.workflow(
        "shaky",
        "version: 1\nstart: a\nnodes:\n"
        "  - {id: a, type: script, script: scripts/note.sh, args: [a], next: b}\n"
        "  - {id: b, type: script, script: scripts/shaky.sh, next: done}\n"
        "  - {id: done, type: terminal}\n",
        note_sh=NOTE,
        shaky_sh='[ -e "$BAILIWICK_WORKSPACE/ok" ] || { echo no >&2; exit 4; }\n',
    )
    first = person.runs("run", flow)
    assert first.code == 1
    assert "exit" in person.runs("why", "shaky").out
    workspace = next((person.home / "state" / "workspaces").iterdir())
    (workspace / "ok").touch()
    second = person.runs("run", flow)
    assert second.code == 0, second.err
    assert _log(person) == ["a"]
    shown = (person.home / "state" / "runs" / "shaky-default" / "b" / "visits" / "1" / "output.json").read_text()
    assert "exit" in shown


def test_an_answer_lets_a_parked_run_go_on(person: Person) -> None:
    """Waiting for a person costs nothing; a wrong answer is refused with the choices."""
    flow = EXAMPLES / "ask-choices"
    assert person.runs("run", flow).code == 3
    wrong = person.runs("runs", "answer", "ask-choices", "blue")
    assert wrong.code == 2
    assert "green" in wrong.err
    assert person.runs("runs", "answer", "ask-choices", "green").code == 0
    assert person.runs("run", flow).code == 0


def test_rewind_goes_back_and_says_what_is_not_undone(person: Person) -> None:
    """Without a terminal it needs --yes; the visit numbers go on."""
    flow = EXAMPLES / "linear"
    assert person.runs("run", flow).code == 0
    asked = person.runs("runs", "rewind", "linear", "show")
    assert asked.code == 2
    assert "--yes" in asked.err
    assert person.runs("runs", "rewind", "linear", "show", "--yes").code == 0
    assert person.runs("run", flow).code == 0
    assert (person.home / "state" / "runs" / "linear-default" / "show" / "visits" / "1").is_dir()


@pytest.mark.nightly
def test_a_fork_shares_the_past_and_goes_its_own_way(person: Person) -> None:
    """`fork --set` is how one asks: what if."""
    flow = EXAMPLES / "set-arithmetic"
    assert person.runs("run", flow).code == 0
    forked = person.runs("runs", "fork", "set-arithmetic", "--at", "right", "--set", "total=56", "--run-id", "what-if")
    assert forked.code == 0, forked.err
    result = person.runs("resume", "set-arithmetic-what-if", "--json")
    assert result.code == 1, result.out
    assert person.runs("run", flow).code == 0


@pytest.mark.nightly
def test_reload_adopts_changed_files_or_says_why_not(person: Person) -> None:
    """A run keeps what it was pinned to until somebody says otherwise."""
    flow = _slow(person)
    process = person.starts("run", flow)
    try:
        until(lambda: "second" in _log(person))
    finally:
        end(process)
    text = (flow / "workflow.yaml").read_text()
    (flow / "workflow.yaml").write_text(text.replace("args: [third]", "args: [changed]"))
    _go(person)
    assert person.runs("runs", "reload", "slow").code == 0
    assert person.runs("run", flow).code == 0
    assert _log(person)[-1] == "changed"


def test_reload_is_refused_when_a_live_node_is_gone(person: Person) -> None:
    """The list of what is missing is the message."""
    flow = _slow(person)
    process = person.starts("run", flow)
    try:
        until(lambda: "second" in _log(person))
    finally:
        end(process)
    text = (
        (flow / "workflow.yaml").read_text().replace("id: second", "id: other").replace("next: second", "next: other")
    )
    (flow / "workflow.yaml").write_text(text)
    refused = person.runs("runs", "reload", "slow")
    assert refused.code != 0
    assert "second" in refused.err + refused.out


def test_detached_it_goes_on_without_the_terminal(person: Person) -> None:
    """`--detach` returns at once; a background worker finishes the run."""
    flow = _slow(person)
    assert person.runs("run", flow, "--detach").code == 0
    until(lambda: "second" in _log(person))
    _go(person)
    waited = person.runs("runs", "wait", "slow")
    assert waited.code == 0, waited.err
    assert _log(person) == ["first", "second", "third"]


def test_a_worker_takes_ready_runs(person: Person) -> None:
    """A run that nobody walks is picked up."""
    assert person.runs("run", EXAMPLES / "ask-choices").code == 3
    assert person.runs("runs", "answer", "ask-choices", "green").code == 0
    assert "bailiwick worker" in person.runs("status").out
    assert person.runs("worker", "--until-idle").code == 0
    assert person.runs("runs", "wait", "ask-choices").code == 0


@pytest.mark.nightly
def test_a_run_directory_is_rebuilt_from_the_journal(person: Person) -> None:
    """Deleted by hand, made again, byte for byte."""
    assert person.runs("run", EXAMPLES / "nested-scopes").code == 0
    root = person.home / "state" / "runs" / "nested-scopes-default"
    before = {p.relative_to(root): p.read_bytes() for p in root.rglob("*") if p.is_file()}
    for path in sorted(root.rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()
    root.rmdir()
    assert person.runs("runs", "rebuild", "nested-scopes").code == 0
    after = {p.relative_to(root): p.read_bytes() for p in root.rglob("*") if p.is_file()}
    assert after == before


def test_fresh_sets_the_old_run_aside(person: Person) -> None:
    """The name is free again; the old evidence stays."""
    flow = EXAMPLES / "linear"
    first = person.runs("run", flow, "--json").json()
    second = person.runs("run", flow, "--fresh", "--json").json()
    assert first["uid"] != second["uid"]
    listed = person.runs("runs", "list", "--all", "--json").out
    assert first["uid"] in listed
    assert second["uid"] in listed


def test_the_same_name_from_another_path_is_refused(person: Person) -> None:
    """Both paths are named; nothing is mixed up."""
    one = _slow(person)
    (person.cwd / "other").mkdir()
    other = Person(person.home, person.cwd / "other")
    two = other.workflow("slow", SLOW, note_sh=NOTE, slow_sh="true\n")
    process = person.starts("run", one)
    try:
        until(lambda: "second" in _log(person))
    finally:
        end(process)
    refused = other.runs("run", two)
    assert refused.code == 2
    assert str(one) in refused.err
    assert str(two) in refused.err


def test_params_on_a_resume_are_refused_if_they_differ(person: Person) -> None:
    """A resumed run can't change its inputs behind its own back."""
    flow = EXAMPLES / "params-schema"
    args = ("run", flow, "--run-id", "x", "--params")
    assert person.runs(*args, '{"release": "1.2.0"}').code == 0
    assert person.runs(*args, '{"release": "1.3.0"}').code == 2


def test_events_are_one_json_line_each(person: Person) -> None:
    """`--events` is for programs: every durable event, in order, and an end."""
    result = person.runs("run", EXAMPLES / "linear", "--events")
    lines = [json.loads(line) for line in result.out.splitlines()]
    assert lines[-1]["type"] == "End"
    seqs = [line["seq"] for line in lines[:-1]]
    assert seqs == sorted(seqs)
    assert {"EffectStarted", "EffectFinished", "RunFinished"} <= {line["type"] for line in lines}


@pytest.mark.nightly
def test_export_is_a_tarball_with_the_journal(person: Person) -> None:
    """Evidence to hand to somebody else."""
    assert person.runs("run", EXAMPLES / "linear").code == 0
    target = person.cwd / "evidence.tar.gz"
    assert person.runs("runs", "export", "linear", "-o", target).code == 0
    assert target.stat().st_size > 500
    assert person.runs("runs", "export", "linear", "-o", target).code == 2


@pytest.mark.nightly
def test_prune_takes_only_what_is_over(person: Person) -> None:
    """What waits for a person is never pruned."""
    assert person.runs("run", EXAMPLES / "linear").code == 0
    assert person.runs("run", EXAMPLES / "ask-choices").code == 3
    assert person.runs("runs", "prune", "--older-than", "0s", "--yes").code == 0
    names = person.runs("runs", "list", "--json").out
    assert "ask-choices" in names
    assert "linear" not in names


@pytest.mark.slow
def test_the_demo_keeps_its_promise(person: Person) -> None:
    """`make demo` is the first thing people see: killed half way, nothing done twice."""
    document = person.runs("demo", "--json").json()
    assert document["ok"], document
    assert document["repeated"] == []
    assert document["reentered"] == 1
    assert document["effects"]["collect"] == 1


def test_stop_all_leaves_no_process_even_of_a_holder_that_hangs(person: Person) -> None:
    """The red button: a worker that was stopped in its tracks can't end its children, so the command does."""
    flow = _slow(person)
    process = person.starts("run", flow)
    try:
        until(lambda: "second" in _log(person))
        process.send_signal(signal.SIGSTOP)
        stopping = person.starts("stop", "--all")
        uid = person.runs("runs", "list", "--json").json()
        assert "slow" in json.dumps(uid)
        until(lambda: not _scripts(person))
        process.send_signal(signal.SIGCONT)
        stopping.communicate(timeout=600)
    finally:
        end(process)
    assert not _scripts(person)


@pytest.mark.nightly
def test_a_long_wait_says_that_it_waits(person: Person) -> None:
    """Nobody should take a cap wait of hours for a hang: `AGENT_CAP_TICK_S` sets how often it speaks."""
    flow = person.workflow(
        "nap",
        "version: 1\nstart: a\nnodes:\n  - {id: a, type: wait, for: 2s, next: d}\n  - {id: d, type: terminal}\n",
    )
    person.extra["AGENT_CAP_TICK_S"] = "0.2"
    result = person.runs("run", flow)
    assert result.code == 0
    assert "still waits at 'a'; resumes at" in result.out + result.err


def _scripts(person: Person) -> list[int]:
    """Processes that run a script of this person."""
    mark = f"BAILIWICK_WORKSPACE={person.home}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if mark in (entry / "environ").read_bytes():
                    found.append(int(entry.name))
            except OSError:
                continue
    return found
