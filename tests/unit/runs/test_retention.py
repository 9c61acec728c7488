"""What is kept no longer goes; what waits for a person or is the only copy stays."""

from __future__ import annotations

import asyncio
import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from bailiwick.clock import SystemClock
from bailiwick.git import packing
from bailiwick.journal.opening import opened_store
from bailiwick.journal.rows import Owner
from bailiwick.proposals.model import read_proposal
from bailiwick.proposals.store import ProposalStore
from tests.unit.config.probes import PROPOSAL
from tests.unit.runs.house import Machine
from tests.unit.runs.test_cli_query import PURE

if TYPE_CHECKING:
    import pytest


def _going(house: Machine, *words: str) -> list[tuple[str, str]]:
    found = house.say("du", "--json", *words).document
    return [(one["kind"], one["name"]) for one in found["would_go"]]


def test_a_git_dir_of_many_files_is_packed(house: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """`du` says so, `du --remove` does it, and every object can still be read."""
    store = house.root / "home/state/git/abc.git"
    store.parent.mkdir(parents=True)
    subprocess.run(["git", "init", "-q", "--bare", store], check=True)
    write = ["git", "-C", str(store), "hash-object", "-w", "--stdin"]
    made = [subprocess.run(write, input=text, capture_output=True, check=True).stdout.strip() for text in (b"a", b"b")]
    assert _going(house) == []
    monkeypatch.setattr(packing, "MOST_LOOSE", 1)
    assert _going(house) == [("git", "abc.git")]
    house.say("du", "--remove")
    assert _going(house) == []
    asked = subprocess.run(
        ["git", "-C", store, "cat-file", "--batch"], input=b"\n".join(made), capture_output=True, check=True
    )
    assert asked.stdout.count(b" blob 1\n") == 2


def _proposal(house: Machine, **changes: object) -> None:
    state, made = house.root / "home/state", read_proposal({**PROPOSAL, **changes})

    async def keep() -> None:
        async with opened_store(state, SystemClock()) as store:
            await ProposalStore(store, state).change(made.id, lambda _: made, new=made)

    asyncio.run(keep())


def test_du_says_what_takes_space_by_kind(house: Machine) -> None:
    """And with nothing old, that everything is kept."""
    house.run(house.write(PURE, "pure"))
    found = house.say("du", "--json").document
    sizes = {one["kind"]: one["bytes"] for one in found["kinds"]}
    assert sizes["journal"] > 0
    assert sizes["runs"] > 0
    assert (found["would_go"], found["bytes"]) == ([], sum(sizes.values()))
    assert "Everything is kept" in house.say("du").out


def test_runs_go_when_their_time_is_over(house: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only those that ended: what waits for an answer stays, however old."""
    house.run(house.write(PURE, "pure"))
    house.run(house.write())
    monkeypatch.setenv("BAILIWICK_RETENTION_RUNS", "0s")
    assert _going(house) == [("runs", "pure-default")]
    assert "bailiwick du --remove" in house.say("du").out
    house.say("du", "--remove")
    assert [run["run"] for run in house.say("runs", "list", "--json").document["runs"]] == ["flow-default"]


def test_a_run_whose_proposal_waits_stays(house: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A person may still ask how it came about."""
    row = house.start(house.write(PURE, "pure"))
    house.walk()
    monkeypatch.setenv("BAILIWICK_RETENTION_RUNS", "0s")
    _proposal(house, run=row.id)
    assert _going(house) == []
    _proposal(house, run=row.id, status="merged")
    assert _going(house) == [("runs", "pure-default")]


def test_transcripts_of_runs_that_ended_go_first(house: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are the largest and the most private part; the run itself stays."""
    row = house.start(house.write(PURE, "pure"))
    house.walk()
    folder = house.root / "home/state/runs/pure-default"
    (folder / "a").mkdir()
    (folder / "a" / "transcript.jsonl").write_text("{}\n")
    home = house.root / "home/state/homes" / row.id
    home.mkdir(parents=True)
    (home / "session").write_text("x")
    assert _going(house) == []
    monkeypatch.setenv("BAILIWICK_RETENTION_TRANSCRIPTS", "0s")
    assert _going(house) == [("transcripts", "pure-default")]
    house.say("du", "--remove")
    assert not (folder / "a" / "transcript.jsonl").exists()
    assert not home.exists()
    assert (folder / "run.json").exists()


def test_a_worktree_goes_only_after_its_proposal_ended(house: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a proposal it is the only copy of an agent's work, and with a live one a person may want it."""
    row = house.start(house.write(PURE, "pure"))
    house.walk()
    tree = _worktree(house.root / "home/state/worktrees/w1", row.id)
    monkeypatch.setenv("BAILIWICK_RETENTION_WORKTREES", "0s")
    assert _going(house) == []
    _proposal(house, run=row.id)
    assert _going(house) == []
    _proposal(house, run=row.id, status="merged")
    assert _going(house) == [("worktrees", "w1")]
    monkeypatch.setenv("BAILIWICK_RETENTION_WORKTREES", "90000d")
    assert _going(house) == []
    monkeypatch.setenv("BAILIWICK_RETENTION_WORKTREES", "0s")
    house.say("du", "--remove")
    assert not tree.exists()


def _worktree(path: Path, run: str) -> Path:
    (path / "tree").mkdir(parents=True)
    owner = Owner("h", "b", "n", 1, 1, "x")
    record: dict[str, object] = {
        "id": path.name,
        "path": None,
        "tree": None,
        "run": run,
        "branch": "agent/x",
        "base": "b",
        "repository": "/r",
        "owner": {name: getattr(owner, name) for name in ("host", "boot", "pidns", "pid", "start", "name")},
        "created": 1.0,
        "prepared": [],
    }
    (path / "owner.json").write_text(json.dumps(record))
    return path


def test_environments_that_nobody_used_go(house: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each can be made again."""
    path = house.root / "home/cache/environments" / ("a" * 40)
    path.mkdir(parents=True)
    (path / "last_used").write_text("1000.0")
    monkeypatch.setenv("BAILIWICK_RETENTION_ENVIRONMENTS", "90000d")
    assert _going(house) == []
    monkeypatch.setenv("BAILIWICK_RETENTION_ENVIRONMENTS", "14d")
    assert _going(house) == [("environments", "a" * 40)]
    house.say("du", "--remove")
    assert not path.exists()


def test_the_oldest_runs_go_while_it_is_too_much(house: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever their age; what is not over stays even then."""
    folder = house.write(PURE, "pure")
    for key in ("a", "b"):
        house.run(folder, key)
    house.run(house.write())
    assert _going(house) == []
    monkeypatch.setenv("BAILIWICK_RETENTION_MAX_DISK", "1")
    assert _going(house) == [("runs", "pure-a"), ("runs", "pure-b")]


def test_nothing_new_starts_where_too_little_is_free(house: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was begun goes on; a new run would fill what is left."""
    folder = house.write(PURE, "pure")
    house.run(folder)
    monkeypatch.setenv("BAILIWICK_RETENTION_MIN_FREE", "900 TB")
    answer = house.say("run", str(folder), "--run-id", "new")
    assert (answer.code, "retention.min_free" in answer.err) == (8, True)
    assert house.say("run", str(folder)).code == 0


def test_a_worker_keeps_to_it(house: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody has to remember a command."""
    house.run(house.write(PURE, "pure"))
    monkeypatch.setenv("BAILIWICK_RETENTION_RUNS", "0s")
    assert house.say("worker", "--until-idle").code == 0
    assert house.say("runs", "list", "--json").document["runs"] == []
