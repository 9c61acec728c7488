"""What a run directory shows, and that it depends on the journal alone."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest

from bailiwick.engine import events as ev
from bailiwick.engine.graph import Ask, Branch, Call, End, Map, Parallel, Set
from bailiwick.errors import JournalCorrupt
from bailiwick.ids import Json, canonical, digest
from bailiwick.runtime.layout import segment
from bailiwick.runtime.projector import Projection, RunFacts, rebuild
from tests.unit.runtime.journals import FACTS, Journal, every_kind, files_of, graph_of, projection, work

FILES = {"prompt.md", "output.json", "context_after.json", "attempts.jsonl", "stdout.txt", "stderr.txt"}
LOG: dict[str, Json] = {"command": ["bash", "s.sh", "a b"], "stdout": "out\n", "stderr": "err\n"}


def project(journal: Journal, root: Path, *, each: bool = False) -> Path:
    """Project a journal at once, or writing everything after each event."""
    live = projection(journal, root)
    for entry in journal.entries:
        live.apply(*entry)
        if each:
            live.flush(everything=True)
    live.close()
    assert live.problem is None
    return root


def read(path: Path) -> Json:
    return json.loads(path.read_text("utf-8"))


def steps(journal: Journal, *, failure: str = "", log: dict[str, Json] | None = None) -> Journal:
    """Let every attempt end in this way until the run is over."""
    while journal.state.status == "running":
        journal.turn(failure=failure, log=log)
    return journal


@pytest.mark.parametrize("seed", range(12))
def test_the_directory_is_the_same_whatever_the_batches_were(tmp_path: Path, seed: int) -> None:
    """Two people who compare a live directory with a rebuilt one must see no difference, not in one byte."""
    journal = Journal(every_kind(), {"start": 1, "huge": "h" * 9000}, seed).walk()
    dice, now = Random(seed), [0.0]
    live = projection(journal, tmp_path / "live", lambda: now[0])
    left = list(journal.entries)
    while left:
        size = dice.choice([1, 2, 5, 40, 300])
        for entry in left[:size]:
            live.apply(*entry)
        left = left[size:]
        now[0] += dice.choice([0, 0.3, 2])
        live.flush()
        if dice.random() < 0.1:
            live.close()
            live = projection(journal, tmp_path / "live", lambda: now[0])
    live.close()
    rebuild(tmp_path / "again", journal.deferred(), journal.graphs, journal.fetch, run=FACTS)
    assert files_of(tmp_path / "live") == files_of(tmp_path / "again")
    assert len(files_of(tmp_path / "live")) > 50


@pytest.mark.parametrize("seed", range(4))
def test_a_rewind_sets_the_later_visits_aside(tmp_path: Path, seed: int) -> None:
    """What was done after the point stays for people to see, and a rebuilt directory shows the same."""
    journal = Journal(every_kind(), seed=seed).walk(60)
    target = next(seq for seq, _, e in journal.entries if isinstance(e, ev.EffectStarted) and e.node == "visits")
    journal.add(ev.Rewound(target - 1, "visits", journal.state.scopes[""].visits["visits"] + 1))
    journal.walk(100)
    root = project(journal, tmp_path / "live")
    rebuild(tmp_path / "again", journal.deferred(), journal.graphs, journal.fetch, run=FACTS)
    assert files_of(root) == files_of(tmp_path / "again")
    assert (root / "visits~" / "visits" / "1" / "prompt.md").exists()


def test_an_effect_shows_what_was_run_and_what_came_of_it(tmp_path: Path) -> None:
    """The first thing a person looks for: the command, the answer, the context after it, each attempt."""
    journal = steps(Journal(graph_of(work("build", "done"), End(id="done")), {"a": 1}), log=LOG)
    root = project(journal, tmp_path / "run")
    node = root / "build"
    assert {path.name for path in node.iterdir()} == FILES
    assert (node / "prompt.md").read_text() == "bash s.sh 'a b'\n"
    assert read(node / "context_after.json") == {"a": 1, **read(node / "output.json")}
    assert [json.loads(line) for line in (node / "attempts.jsonl").read_text().splitlines()] == [
        {
            "number": 1,
            "entry": 1,
            "started_at": "2023-11-14T22:13:20.750Z",
            "seconds": 0.5,
            "result": "ok",
            "message": "",
        }
    ]


def test_a_prompt_and_a_transcript_are_shown_where_the_log_has_them(tmp_path: Path) -> None:
    """For an agent the question and the turns matter, not the command that carried them."""
    log: dict[str, Json] = {**LOG, "prompt": "Fix it.", "transcript": [{"say": "hi"}, "plain"]}
    journal = steps(Journal(graph_of(work("agent", "done", type="agent"), End(id="done"))), log=log)
    root = project(journal, tmp_path / "run")
    assert (root / "agent" / "prompt.md").read_text() == "Fix it.\n"
    assert (root / "agent" / "transcript.jsonl").read_text() == '{"say": "hi"}\n"plain"\n'
    assert read(root / "run.json")["cost"] == {"usd": 0, "agent_calls": 1, "unknown_calls": 1}


def test_a_failed_node_shows_its_error(tmp_path: Path) -> None:
    """A red node must say why in the place where its output would be."""
    journal = steps(Journal(graph_of(work("build", "done"), End(id="done"))), failure="exit")
    root = project(journal, tmp_path / "run")
    assert read(root / "build" / "output.json")["error"]["kind"] == "exit"
    run = read(root / "run.json")
    assert (run["state"], run["terminal"], run["reason"]) == ("failed", None, "no luck")


def test_earlier_visits_move_below_the_last_one(tmp_path: Path) -> None:
    """A loop shows its latest turn first and keeps the others by number."""
    journal = Journal(graph_of(work("again", "again")))
    for number in (1, 2, 3):
        journal.turn(log={"stdout": f"turn {number}\n"})
    root = project(journal, tmp_path / "run")
    assert sorted(path.name for path in (root / "again" / "visits").iterdir()) == ["1", "2", "3"]
    assert (root / "again" / "visits" / "2" / "stdout.txt").read_text() == "turn 2\n"
    assert not (root / "again" / "stdout.txt").exists()


def test_a_construct_seen_again_moves_all_its_members(tmp_path: Path) -> None:
    """The items of the first round must not be mixed with those of the second."""
    graph = graph_of(
        Map(id="fan", over="items", body="each", join="next"),
        work("each", "next"),
        Set(id="next", values={}, next="fan"),
    )
    journal = Journal(graph, {"items": [1, 2]})
    for _ in range(3):
        journal.turn(log=LOG)
    root = project(journal, tmp_path / "run")
    assert sorted(path.name for path in (root / "fan" / "visits").iterdir()) == ["1", "2", "3"]
    assert {path.name for path in (root / "fan" / "visits" / "1" / "1" / "each").iterdir()} == FILES
    assert list(read(root / "fan" / "visits" / "3" / "output.json")) == ["fan"]


def test_pure_nodes_show_their_last_visit(tmp_path: Path) -> None:
    """A branch that went wrong and later right shows the right turn only, and no archive."""
    graph = graph_of(
        Branch(id="pick", path="ready", cases={"yes": "done"}, on_error="make"),
        Set(id="make", values={"ready": "yes", "list": [1]}, next="pick"),
        End(id="done"),
    )
    journal = steps(Journal(graph))
    root = project(journal, tmp_path / "run", each=True)
    assert files_of(root) == files_of(project(journal, tmp_path / "at once"))
    assert files_of(root / "pick") == {"branch.json": (root / "pick" / "branch.json").read_bytes()}
    assert read(root / "pick" / "branch.json") == {"path": "ready", "value": "yes", "next": "done"}
    assert read(root / "make" / "output.json") == {"ready": "yes", "list": [1]}


def test_a_pure_node_that_goes_wrong_later_shows_only_that(tmp_path: Path) -> None:
    """The turn a branch took last time must not stand beside the reason why it could not turn this time."""
    graph = graph_of(
        Branch(id="pick", path="way", cases={"on": "spoil"}), Set(id="spoil", values={"way": "off"}, next="pick")
    )
    journal = steps(Journal(graph, {"way": "on"}))
    root = project(journal, tmp_path / "run", each=True)
    assert list(files_of(root / "pick")) == ["output.json"]
    assert files_of(root) == files_of(project(journal, tmp_path / "at once"))


def test_a_big_value_leaves_its_blob_even_if_it_is_replaced_at_once(tmp_path: Path) -> None:
    """Which blobs there are must not depend on whether somebody wrote the context in between."""
    graph = graph_of(
        Set(id="first", values={"big": "1" * 5000}, next="second"),
        Set(id="second", values={"big": "2" * 5000}, next="second", max_visits=1),
    )
    journal = Journal(graph)
    journal.add(ev.StepPassed("", "first", 1, "second", {"big": "0" * 5000}))
    journal.add(ev.StepPassed("", "second", 1, "second", {"big": "1" * 5000}))
    journal.add(ev.StepPassed("", "second", 2, "second", {"big": "2" * 5000}))
    root = project(journal, tmp_path / "run", each=True)
    assert files_of(root) == files_of(project(journal, tmp_path / "at once"))


def test_big_values_are_kept_once_by_digest(tmp_path: Path) -> None:
    """An unchanged megabyte costs its bytes once, however many nodes pass it by."""
    value = "ä" * 600_000
    journal = steps(Journal(graph_of(work("a", "b"), work("b", "done"), End(id="done")), {"big": value}), log={})
    root = project(journal, tmp_path / "run")
    name = digest(canonical(value))
    for file in (root / "context.json", root / "a" / "context_after.json", root / "b" / "context_after.json"):
        assert read(file)["big"] == {"$ref": f"blobs/{name}"}
    assert (root / "blobs" / name).read_text("utf-8") == canonical(value)


def test_a_long_text_is_cut_and_says_so(tmp_path: Path) -> None:
    """A run directory must not fill a disk because a script was chatty."""
    journal = steps(Journal(graph_of(work("a", "done"), End(id="done"))), log={"stdout": "é" * 800_000})
    data = (project(journal, tmp_path / "run") / "a" / "stdout.txt").read_bytes()
    assert len(data) <= 1 << 20
    assert "cut here: 1600000 bytes" in data.decode("utf-8").splitlines()[-1]


def test_attempts_without_end_stop_growing(tmp_path: Path) -> None:
    """A poll that looks every few seconds for a week leaves a file that can still be opened."""
    journal = Journal(graph_of(work("a", "done"), End(id="done")))
    journal.decide()
    live = projection(journal, tmp_path / "run")
    scope, flight = journal.state.flights()[0]
    lost = ev.EffectLost(scope.path, flight.key, "x" * 10_000)
    started = next(e for _, _, e in journal.entries if isinstance(e, ev.EffectStarted))
    for _ in range(120):
        journal.add(lost)
        journal.add(started)
    for entry in journal.entries:
        live.apply(*entry)
        live.flush(everything=True)
    lines = (tmp_path / "run" / "a" / "attempts.jsonl").read_text().splitlines()
    assert sum(map(len, lines)) <= 1 << 20
    assert "cut" in json.loads(lines[-1])
    assert all("result" in json.loads(line) for line in lines[:-1])


@pytest.mark.parametrize("name", ["a/b", "../up", ".hidden", "", "nul\0", "x" * 300, "\ud800"])
def test_a_name_that_could_leave_the_directory_is_refused(name: str) -> None:
    """File names come from a journal, which may come from anywhere."""
    with pytest.raises(JournalCorrupt):
        segment(name)


def test_names_never_meet_those_of_the_layout() -> None:
    """A node may be called `visits`; its directory must not be taken for an archive."""
    names = ["visits", "visits~", "visits~~", "blobs", "blobs~", "a"]
    made = [segment(name) for name in names]
    assert len(set(made)) == len(names)
    assert not {"visits", "blobs"}.intersection(made)


def test_what_a_run_waits_for_is_in_run_json(tmp_path: Path) -> None:
    """Somebody who finds a quiet directory learns there what it wants from them."""
    journal = Journal(graph_of(Ask(id="ask", question="Ship it?", next="done"), End(id="done")))
    journal.decide()
    run = read(project(journal, tmp_path / "run") / "run.json")
    assert (run["state"], run["ended_at"], run["host"], run["versions"]["app"]) == ("waiting", None, "atlas", "1.0")
    assert run["cost"] == {"usd": 0, "agent_calls": 0, "unknown_calls": 0}
    assert [(w["kind"], w["node"], w["question"]) for w in run["waits"]] == [("ask", "ask", "Ship it?")]


def test_a_called_workflow_makes_the_cost_unknown(tmp_path: Path) -> None:
    """What a child run spent is not in this journal, and unknown is not zero."""
    journal = Journal(graph_of(Call(id="call", workflow="other", next="done"), End(id="done"))).walk(20)
    assert read(project(journal, tmp_path / "run") / "run.json")["cost"]["unknown_calls"] == 1


def test_a_cancelled_member_says_what_ended_it(tmp_path: Path) -> None:
    """A node without an output looks as if it still ran."""
    graph = graph_of(
        Parallel(id="par", branches={"a": "one", "b": "two"}, join="done", fail_fast=True),
        work("one", "done"),
        work("two", "done"),
        End(id="done"),
    )
    journal = Journal(graph)
    journal.decide()
    scope, flight = journal.state.flights()[0]
    journal.finish(scope.path, flight.key, failure="exit")
    journal.decide()
    root = project(journal, tmp_path / "run")
    assert read(root / "par" / "b" / "two" / "output.json")["error"]["kind"] == "cancelled"
    assert read(root / "par" / "output.json")["error"]["kind"] == "member_failed"


def test_secrets_are_taken_out_of_every_file(tmp_path: Path) -> None:
    """A key of several lines looks different once JSON has escaped it; it must be gone there too."""
    secret = 'line "one"\nline two'
    graph = graph_of(
        work("a", "set"), Set(id="set", values={"copy": [secret], "big": secret * 500}, next="done"), End(id="done")
    )
    journal = steps(Journal(graph, {"token": secret, secret: 1}), log={"stdout": secret, "command": ["x", secret]})
    facts = RunFacts("flow", "default", "u1", redact=lambda text: text.replace(secret, "***"))
    rebuild(tmp_path / "run", journal.entries, journal.graphs, journal.fetch, run=facts)
    texts = {name: data for name, data in files_of(tmp_path / "run").items() if data is not None}
    assert [name for name, data in texts.items() if b"line two" in data or b'line \\"one' in data] == []
    assert read(tmp_path / "run" / "context.json")["token"] == "***"


def test_only_changed_values_are_encoded_again(tmp_path: Path) -> None:
    """A thousand keys in the context must not be paid for by each node that changes one."""
    seen: list[str] = []

    def watch(text: str) -> str:
        seen.append(text)
        return text

    journal = Journal(graph_of(work("again", "again")), {f"k{i}": f"v{i}" for i in range(1000)})
    live = Projection(
        tmp_path / "run",
        journal.graphs,
        journal.fetch,
        run=RunFacts("f", "k", "u1", redact=watch),
        history=journal.history,
    )
    taken = 0
    for _ in range(3):
        journal.turn(log={})
        seen.clear()
        for entry in journal.entries[taken:]:
            live.apply(*entry)
        taken = len(journal.entries)
    assert 0 < len(seen) < 60


@pytest.mark.parametrize(("failed", "word"), [(False, "terminal"), (True, "fail")])
def test_run_json_says_at_which_type_of_node_it_ended(tmp_path: Path, failed: bool, word: str) -> None:
    """As workhorse wrote it: `terminal`, `fail`, or null where no such node ended the run."""
    journal = steps(Journal(graph_of(work("a", "over"), End(id="over", failed=failed))))
    assert read(project(journal, tmp_path / "run") / "run.json")["terminal"] == word


def test_the_cost_and_the_backend_of_a_run_are_those_of_its_turns(tmp_path: Path) -> None:
    """A session that counts its whole cost is counted once; what nobody knows is counted as unknown."""
    agent = work("agent", "agent", type="agent")
    journal = Journal(graph_of(agent))
    usage: dict[str, Json] = {"usd": 0.25, "cumulative": True}
    journal.turn(log={**LOG, "backend": "claude", "usage": usage, "session": "s"})
    journal.turn(log={**LOG, "backend": "codex", "usage": {"usd": 0.5}})
    journal.turn(log={**LOG, "backend": "claude", "usage": {}})
    run = read(project(journal, tmp_path / "run") / "run.json")
    assert run["cost"] == {"usd": 0.75, "agent_calls": 3, "unknown_calls": 1}
    assert run["backend"] == "claude, codex"


def test_the_value_of_a_branch_stays_a_value(tmp_path: Path) -> None:
    """A list is a list, not its text."""
    branch = Branch(id="pick", path="found", cases={}, default="done")
    for number, found in enumerate(([1, "two"], {"a": None}, True, "text")):
        journal = Journal(graph_of(branch, End(id="done")), {"found": found})
        journal.decide()
        root = project(journal, tmp_path / str(number))
        assert read(root / "pick" / "branch.json") == {"path": "found", "value": found, "next": "done"}
