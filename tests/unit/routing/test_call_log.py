"""The call log: nothing lost, nothing torn, nothing outside its folder."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from bailiwick.config.service import load_config
from bailiwick.errors import NotReady, UsageError
from bailiwick.ids import Json
from bailiwick.routing.call_log import (
    LONGEST_TEXT,
    append_call,
    check_session,
    entry_of,
    read_calls,
    sessions_folder,
)
from bailiwick.routing.model import Attempt, Job, Outcome, Result

WHEN = 1_700_000_000.0
FIELDS = [
    "session_id", "timestamp", "skill", "phase", "project_root", "attempts", "final_status", "file_path", "model_used",
    "duration_ms", "message",
]  # fmt: skip


def entry(number: int = 0, session: str = "s1") -> dict[str, Json]:
    return {"session_id": session, "number": number, "message": "é\u2028" + "x" * 300}


def job(session: str | None = "s1") -> Job:
    return Job("tdd", "red", "discipline", "task", root="/p", session_id=session)


def numbers(folder: Path, session: str = "s1") -> list[int]:
    return [one["number"] for one in read_calls(folder, session)]


def test_an_entry_has_exactly_the_fields_that_others_read() -> None:
    """Scripts that were written for the supervisor's logs go on working."""
    tried = Attempt(1, "small", "local", 900, "error", feedback="refused")
    outcome = Outcome("c-1", Result("error", "red", "tdd", "all tiers exhausted", attempts=(tried,)), "why", "error")
    made = entry_of(job(), outcome, WHEN, duration_ms=1200)
    assert list(made) == FIELDS
    assert made["timestamp"] == "2023-11-14T22:13:20.000Z"
    assert (made["final_status"], made["project_root"], made["duration_ms"]) == ("error", "/p", 1200)
    assert made["attempts"] == [tried.to_json()]


def test_long_texts_are_cut_where_it_hurts_least() -> None:
    """A runner's last lines say what failed; a line of a hundred megabytes would end every reader."""
    long = "a" * LONGEST_TEXT + "z"
    tried = Attempt(1, "m", "local", 1, "escalate", feedback=long, output_summary=long, runner_output=long)
    outcome = Outcome("c-1", Result("fail", "red", "tdd", long, attempts=(tried,)), "")
    made = entry_of(job(), outcome, WHEN, duration_ms=1)
    (kept,) = made["attempts"]
    assert {len(kept[name]) for name in ("feedback", "output_summary", "runner_output")} == {LONGEST_TEXT}
    assert (kept["runner_output"][-1], kept["feedback"][-1], made["message"][-1]) == ("z", "a", "a")


def test_entries_are_read_back_in_order(tmp_path: Path) -> None:
    """A retrospective tells what happened first to last; whatever is in a text stays in its line."""
    folder = tmp_path / "deep" / "sessions"
    for number in range(3):
        append_call(folder, entry(number))
    assert numbers(folder) == [0, 1, 2]
    assert read_calls(folder, "s1")[0]["message"].startswith("é\u2028")
    assert read_calls(folder, "other") == []
    assert (folder / "s1.jsonl").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "name", ["", ".", "..", "../x", "a/b", "/etc/passwd", ".hidden", "a\0b", "a\n", "ä", "a b", "x" * 129, "~root"]
)
def test_a_session_can_not_name_a_file_elsewhere(tmp_path: Path, name: str) -> None:
    """The id comes from a model's tool call and becomes a file's name."""
    with pytest.raises(UsageError, match="session_id"):
        append_call(tmp_path, entry(session=name))
    with pytest.raises(UsageError, match="session_id"):
        read_calls(tmp_path, name)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["s", "2026-11-16_a.b", "x" * 128, "-", "__"])
def test_ordinary_ids_are_taken(name: str) -> None:
    """Clients make up ids of dates, digests and names."""
    assert check_session(name) == name


def test_half_a_line_at_the_end_is_skipped_and_taken_off_by_the_next_writer(tmp_path: Path) -> None:
    """A crash in the middle of a write must not damage the entry that comes after it."""
    append_call(tmp_path, entry(1))
    file = tmp_path / "s1.jsonl"
    for torn in (b'{"session_id": "s1", "num', b"{" * 200_000):
        with file.open("ab") as log:
            log.write(torn)
        before = numbers(tmp_path)
        append_call(tmp_path, entry(len(before) + 1))
        assert numbers(tmp_path) == [*before, len(before) + 1]
        assert torn not in file.read_bytes()


def test_a_whole_line_without_its_end_is_kept(tmp_path: Path) -> None:
    """Everything of it is there; only the last byte did not make it."""
    append_call(tmp_path, entry(1))
    file = tmp_path / "s1.jsonl"
    file.write_bytes(file.read_bytes()[:-1])
    assert numbers(tmp_path) == [1]
    append_call(tmp_path, entry(2))
    assert numbers(tmp_path) == [1, 2]


def test_a_log_that_is_only_half_a_line_starts_anew(tmp_path: Path) -> None:
    """The first write of a session may be the one that was cut off."""
    (tmp_path / "s1.jsonl").write_bytes(b'{"session_id"')
    assert read_calls(tmp_path, "s1") == []
    append_call(tmp_path, entry(1))
    assert numbers(tmp_path) == [1]


def test_lines_that_are_no_entries_are_left_out(tmp_path: Path) -> None:
    """Another program's damage in the middle does not hide what is before and after it."""
    append_call(tmp_path, entry(1))
    with (tmp_path / "s1.jsonl").open("ab") as log:
        log.write(b'\xff\xfe\n[1]\n\n"text"\n' + b"[" * 100_000 + b"\n")
    append_call(tmp_path, entry(2))
    assert numbers(tmp_path) == [1, 2]


def test_a_link_in_the_place_of_a_log_is_not_followed(tmp_path: Path) -> None:
    """What it points to may be a file that decides something."""
    target = tmp_path / "target"
    target.write_text("precious\n")
    (tmp_path / "s1.jsonl").symlink_to(target)
    with pytest.raises(NotReady, match="call log"):
        append_call(tmp_path, entry())
    with pytest.raises(NotReady, match="call log"):
        read_calls(tmp_path, "s1")
    assert target.read_text() == "precious\n"


def test_a_pipe_in_the_place_of_a_log_does_not_hang(tmp_path: Path) -> None:
    """Opening one waits for its other end, which never comes."""
    os.mkfifo(tmp_path / "s1.jsonl")
    with pytest.raises(NotReady, match="call log"):
        read_calls(tmp_path, "s1")
    with pytest.raises(NotReady, match="call log"):
        append_call(tmp_path, entry())


def test_a_write_that_does_not_fit_leaves_the_log_as_it_was(tmp_path: Path) -> None:
    """Half an entry would be taken for damage; the caller hears that nothing was kept."""
    append_call(tmp_path, entry(1))
    before = (tmp_path / "s1.jsonl").read_bytes()
    code = (
        "import resource, signal, sys; from pathlib import Path\n"
        "from bailiwick.routing.call_log import append_call\n"
        "from bailiwick.errors import NotReady\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({len(before) + 100}, resource.RLIM_INFINITY))\n"
        "try: append_call(Path(sys.argv[1]), {'session_id': 's1', 'x': 'y' * 5000})\n"
        "except NotReady as error: print(error.code)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, tmp_path], capture_output=True, text=True, check=True)
    assert done.stdout == "BW277\n"
    assert (tmp_path / "s1.jsonl").read_bytes() == before
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY


def test_the_folder_is_the_configured_one_or_below_the_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Logs of the existing supervisor are found where they are."""
    monkeypatch.setenv("BAILIWICK_HOME", str(tmp_path))
    monkeypatch.delenv("SUPERVISOR_SESSIONS_DIR", raising=False)
    assert sessions_folder(load_config(tmp_path, {})) == tmp_path / "state" / "sessions"
    monkeypatch.setenv("SUPERVISOR_SESSIONS_DIR", str(tmp_path / "theirs"))
    assert sessions_folder(load_config(tmp_path, {})) == tmp_path / "theirs"


CROWD = """
import sys
from pathlib import Path
from bailiwick.routing.call_log import append_call
print("ready", flush=True)
sys.stdin.readline()
for number in range(int(sys.argv[3])):
    text = "x" * (997 * (number % 7))
    append_call(Path(sys.argv[1]), {"session_id": "s1", "who": sys.argv[2], "number": number, "text": text})
"""
FORKED = """
import os, sys
from pathlib import Path
from bailiwick.routing.call_log import append_call
folder, writers, lines = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
gate, go = os.pipe()
pids = []
for who in range(writers):
    pid = os.fork()
    if not pid:
        os.close(go)
        os.read(gate, 1)
        for number in range(lines):
            text = "x" * (997 * (number % 7))
            append_call(folder, {"session_id": "s1", "who": who, "number": number, "text": text})
        os._exit(0)
    pids.append(pid)
os.close(go)
sys.exit(sum(os.waitpid(pid, 0)[1] != 0 for pid in pids))
"""


def check_crowd(folder: Path, writers: int, lines: int) -> None:
    """Let processes loose on one log at the same moment and look whether every line is there, whole and once."""
    subprocess.run([sys.executable, "-c", FORKED, folder, str(writers), str(lines)], check=True)
    found = [json.loads(line) for line in (folder / "s1.jsonl").read_bytes().splitlines()]
    assert sorted((one["who"], one["number"]) for one in found) == [
        (w, n) for w in range(writers) for n in range(lines)
    ]
    for who in range(writers):
        assert [one["number"] for one in found if one["who"] == who] == list(range(lines))
    assert all(len(one["text"]) == 997 * (one["number"] % 7) for one in found)


def test_fifty_processes_lose_and_tear_no_line(tmp_path: Path) -> None:
    """A session belongs to an editor, its agents and a terminal at once."""
    check_crowd(tmp_path, 50, 8)


@pytest.mark.nightly
def test_fifty_processes_lose_and_tear_no_line_for_long(tmp_path: Path) -> None:
    """The same, long enough for rare interleavings."""
    check_crowd(tmp_path, 50, 400)


def test_a_writer_that_is_killed_leaves_the_others_whole(tmp_path: Path) -> None:
    """Its lock goes with it, and its half line with the next writer."""
    children = [
        subprocess.Popen(
            [sys.executable, "-c", CROWD, tmp_path, str(who), "100000" if who == 0 else "60"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for who in range(3)
    ]
    for child in children:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
    for child in children:
        assert child.stdin is not None
        child.stdin.write("go\n")
        child.stdin.flush()
    for child in children[1:]:
        assert child.wait(600) == 0
    children[0].kill()
    for child in children:
        child.communicate()
    append_call(tmp_path, {"session_id": "s1", "who": "last", "number": 0, "text": ""})
    found = read_calls(tmp_path, "s1")
    assert len((tmp_path / "s1.jsonl").read_bytes().splitlines()) == len(found)
    for who in ("1", "2"):
        assert [one["number"] for one in found if one["who"] == who] == list(range(60))
