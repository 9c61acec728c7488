"""A disk that loses, changes or refuses what was written: said in words, and nothing is done twice in silence."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from bailiwick.testing.polling import until
from tests.acceptance.command import BAILIWICK, Person, Result, end
from tests.needs import need

pytestmark = pytest.mark.slow

FLOW = """version: 1
name: pay
start: first
nodes:
  - {id: first, type: script, script: scripts/note.sh, args: [first], next: pay}
  - {id: pay, type: script, script: scripts/note.sh, args: [pay], next: hold}
  - {id: hold, type: script, script: scripts/hold.sh, next: done}
  - {id: done, type: terminal}
"""
NOTE = 'echo "$1" >> "$BAILIWICK_WORKSPACE/log"\n'
HOLD = 'echo hold >> "$BAILIWICK_WORKSPACE/log"\nwhile [ ! -e "$BAILIWICK_WORKSPACE/go" ]; do sleep 0.02; done\n'


def _log(person: Person) -> list[str]:
    logs = (person.home / "state" / "workspaces").glob("*/log")
    return [word for log in logs for word in log.read_text().split()]


def _database(person: Person) -> Path:
    return person.home / "state" / "bailiwick.db"


def _killed(person: Person, *, checkpointed: bool) -> Path:
    """A run that was killed at its last script; with `checkpointed` its creation is in the database file itself."""
    flow = person.workflow("pay", FLOW, note_sh=NOTE, hold_sh=HOLD)
    if checkpointed:
        person.runs("status", timeout=600)
    process = person.starts("run", flow)
    try:
        if checkpointed:
            until(lambda: _log(person)[:1] == ["first"])
            with sqlite3.connect(_database(person)) as db:
                db.execute("PRAGMA wal_checkpoint(PASSIVE)")
            db.close()
        until(lambda: _log(person) == ["first", "pay", "hold"])
    finally:
        end(process)
    for workspace in (person.home / "state" / "workspaces").iterdir():
        (workspace / "go").touch()
    return flow


def _delete(wal: Path) -> None:
    wal.unlink()


def _break_in_the_middle(wal: Path) -> None:
    """Damage it where the first script ended: SQLite takes what is whole before it and forgets the rest."""
    data = bytearray(wal.read_bytes())
    middle = data.index(b"EffectFinished")
    data[middle : middle + 500] = os.urandom(500)
    wal.write_bytes(data)


@pytest.mark.parametrize("harm", [_delete, _break_in_the_middle])
def test_a_lost_write_ahead_log_is_told_and_nothing_is_done_again_unasked(
    person: Person, harm: Callable[[Path], None]
) -> None:
    """Going back in silence would pay twice: the run stops, says what was lost, and a person decides."""
    flow = _killed(person, checkpointed=harm is _delete)
    harm(_database(person).with_name("bailiwick.db-wal"))
    again = person.runs("run", flow, timeout=600)
    assert "warning[BW305]" in again.err
    assert "run pay-default went back by " in again.err
    assert _log(person) == ["first", "pay", "hold"], "nothing was done again"
    assert person.runs("runs", "show", "pay", "--json").json()["state"] == "stopped"
    second = person.runs("status", timeout=600)
    assert "BW305" not in second.err, "it is told once"
    checks = {one["name"]: one for one in json.loads(person.runs("doctor", "--json", timeout=600).out)["checks"]}
    assert "pay-default went back by" in checks["journal"]["found"]
    assert person.runs("resume", "pay-default", timeout=600).code == 0
    assert _log(person)[-1] == "hold"


def test_a_run_that_is_gone_with_the_log_is_named(person: Person) -> None:
    """Everything was in the log: without its mark there would be no trace of the run at all."""
    _killed(person, checkpointed=False)
    _database(person).with_name("bailiwick.db-wal").unlink()
    told = person.runs("runs", "list", "--json", timeout=600)
    assert told.json()["runs"] == []
    assert "run pay-default is gone with its " in told.err


def test_an_unharmed_journal_says_nothing_after_a_kill(person: Person) -> None:
    """A warning that comes after every crash is a warning that nobody reads."""
    flow = _killed(person, checkpointed=False)
    again = person.runs("run", flow, timeout=600)
    assert (again.code, again.err) == (0, "")


def _finished(person: Person) -> None:
    flow = person.workflow(
        "one", FLOW.replace("next: hold", "next: done").replace("name: pay", "name: one"), note_sh=NOTE, hold_sh=NOTE
    )
    assert person.runs("run", flow, timeout=600).code == 0
    with sqlite3.connect(_database(person)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()


def _doctor(person: Person) -> tuple[int, dict[str, object]]:
    done = person.runs("doctor", "--json", timeout=600)
    return done.code, next(one for one in done.json()["checks"] if one["name"] == "journal")


@pytest.mark.parametrize("what", [b'"node":"pay"', b"EffectFinished", b'"workflow":"one"'])
def test_flipped_bytes_make_doctor_red(person: Person, what: bytes) -> None:
    """The change is inside a text, where SQLite itself sees nothing wrong."""
    _finished(person)
    assert _doctor(person)[1]["ok"] is True
    data = bytearray(_database(person).read_bytes())
    at = data.index(what) + len(what) - 2
    data[at] ^= 1
    _database(person).write_bytes(data)
    code, journal = _doctor(person)
    assert (code, journal["ok"]) == (8, False)
    assert "is not what was written" in str(journal["found"]) or "damaged" in str(journal["found"])


def test_a_broken_page_makes_doctor_red(person: Person) -> None:
    """The structure of the file itself."""
    _finished(person)
    data = bytearray(_database(person).read_bytes())
    for page in range(2, len(data) // 4096):
        data[page * 4096 : page * 4096 + 8] = b"\xff" * 8
    _database(person).write_bytes(data)
    code, journal = _doctor(person)
    assert (code, journal["ok"]) == (8, False)


def _with_errors(person: Person, when: str) -> Result:
    need("strace")
    tracer = [
        "strace",
        "-qq",
        "-f",
        "-b",
        "execve",
        "-o",
        "/dev/null",
        "-P",
        str(_database(person)),
        "-e",
        "trace=pread64,read",
        "-e",
        f"inject=pread64,read:error=EIO:when={when}",
    ]
    command = [*tracer, str(BAILIWICK), "runs", "list", "--json"]
    quiet = subprocess.DEVNULL
    done = subprocess.run(
        command, cwd=person.cwd, env=person.env(), capture_output=True, text=True, stdin=quiet, timeout=600, check=False
    )
    return Result(done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize("nth", [1, 4, 7])
def test_one_read_that_fails_is_tried_again(person: Person, nth: int) -> None:
    """A cable, a controller, a moment: the next read is fine, and so is the command."""
    _finished(person)
    done = _with_errors(person, str(nth))
    assert (done.code, done.err) == (0, "")
    assert [one["run"] for one in done.json()["runs"]] == ["one-default"]


@pytest.mark.parametrize("first", [1, 4])
def test_reads_that_go_on_failing_are_no_damage(person: Person, first: int) -> None:
    """`restore from a backup` for a loose cable costs somebody their data."""
    _finished(person)
    done = _with_errors(person, f"{first}+")
    assert done.code == 8, done.err
    assert "BW302" in done.err
    assert "backup" not in done.err


def _without_pins(person: Person) -> None:
    pins = person.home / "state" / "pins"
    subprocess.run(["chmod", "-R", "u+w", str(pins)], check=True)
    shutil.rmtree(pins)


def _kept_files(person: Person, *, forget: bool = False) -> int:
    """How many files of workflows the database holds; `forget`: as an older version left it."""
    with closing(sqlite3.connect(person.home / "state" / "bailiwick.db")) as db, db:
        if forget:
            db.execute("DELETE FROM definition_file")
        return int(db.execute("SELECT count(*) FROM definition_file").fetchone()[0])


def test_pins_that_are_gone_are_laid_out_again(person: Person) -> None:
    """The store has the files that a run was started with: another machine has never seen them."""
    flow = _killed(person, checkpointed=False)
    _without_pins(person)
    assert person.runs("run", flow, timeout=600).code == 0


def test_pins_of_an_older_version_come_into_the_store(person: Person) -> None:
    """A run that goes on from there can go on anywhere afterwards."""
    flow = _killed(person, checkpointed=False)
    kept = _kept_files(person)
    assert (kept > 0, _kept_files(person, forget=True)) == (True, 0)
    assert person.runs("run", flow, timeout=600).code == 0
    assert _kept_files(person) == kept


def test_a_pin_that_is_nowhere_is_named_with_what_makes_it_anew(person: Person) -> None:
    """`not in the workflow directory` sends people to look where nothing is wrong."""
    flow = _killed(person, checkpointed=False)
    _kept_files(person, forget=True)
    _without_pins(person)
    failed = person.runs("run", flow, timeout=600)
    assert failed.code == 1
    assert "the pinned copy of 'scripts/hold.sh', with which the run was started, is gone" in failed.out
    command = failed.out.partition("`bailiwick ")[2].partition("`")[0].split()
    assert person.runs(*command, timeout=600).code == 0, command
    assert person.runs("resume", "pay-default", timeout=600).code == 0
