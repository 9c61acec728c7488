"""Evidence, directories, disk space."""

from __future__ import annotations

import json
import os
import shutil
import tarfile
from pathlib import Path

from bailiwick.app.service import App
from bailiwick.ids import digest
from bailiwick.runs.prune import YOUNG_PIN, sweep_pins
from tests.unit.runs.house import Machine
from tests.unit.runs.test_cli_query import PURE, SLEEPS

BIG = """
version: 1
name: big
start: make
nodes:
  - {id: make, type: script, script: scripts/make.sh, outputs: [{key: text}], next: done}
  - {id: done, type: terminal}
"""
MAKES = {"make.sh": 'printf \'{"text": "%9000s"}\' x\n'}


def _files(archive: Path) -> dict[str, bytes]:
    with tarfile.open(archive) as tar:
        out = {}
        for member in tar.getmembers():
            file = tar.extractfile(member)
            assert file is not None
            out[member.name.partition("/")[2]] = file.read()
        return out


def test_the_manifest_vouches_for_every_file(house: Machine) -> None:
    """Evidence is only worth what can be checked."""
    house.run(house.write())
    assert house.say("runs", "export", "flow", "-o", "e.tar.gz").code == 0
    files = _files(Path("e.tar.gz"))
    lines = files.pop("manifest.sha256").decode().splitlines()
    assert {line.partition("  ")[2]: line.partition("  ")[0] for line in lines} == {
        name: digest(data) for name, data in files.items()
    }
    assert {"journal.ndjson", "definition.json", "meta.json", "run/run.json"} <= set(files)
    assert any(name.startswith("pinned/") and name.endswith("scripts/build.sh") for name in files)


def test_the_same_run_gives_the_same_bytes(house: Machine) -> None:
    """Two archives of one run compare equal, so one that differs says something."""
    house.run(house.write())
    house.say("runs", "export", "flow", "-o", "1.tar.gz")
    house.say("runs", "export", "flow", "-o", "2.tar.gz")
    assert Path("1.tar.gz").read_bytes() == Path("2.tar.gz").read_bytes()
    with tarfile.open("1.tar.gz") as tar:
        assert {(member.uid, member.gid, member.uname) for member in tar.getmembers()} == {(0, 0, "")}


def test_big_values_are_in_the_archive_by_their_digest(house: Machine) -> None:
    """A journal with dangling references is half a journal."""
    house.run(house.write(BIG, "big", MAKES))
    house.say("runs", "export", "big", "-o", "e.tar.gz")
    files = _files(Path("e.tar.gz"))
    blobs = {name.removeprefix("blobs/"): data for name, data in files.items() if name.startswith("blobs/")}
    assert blobs
    assert all(digest(data) == name and name in files["journal.ndjson"].decode() for name, data in blobs.items())


def test_a_fork_brings_the_events_it_inherited(house: Machine) -> None:
    """Its own events begin at 1; what it shares comes before."""
    house.run(house.write())
    house.say("runs", "fork", "flow", "--at", "check", "--run-id", "f")
    house.walk()
    house.say("runs", "export", "flow-f", "-o", "e.tar.gz")
    events = [json.loads(line) for line in _files(Path("e.tar.gz"))["journal.ndjson"].splitlines()]
    first = next(event for event in events if event["type"] == "Forked")
    assert first["seq"] == 1
    assert events[0]["type"] == "RunCreated"
    assert [event["seq"] for event in events] == list(range(events[0]["seq"], events[-1]["seq"] + 1))
    assert len({event["run"] for event in events}) == 2


def test_called_runs_are_in_the_archive(house: Machine) -> None:
    """A tree is evidence as a whole."""
    house.write(SLEEPS, "nap")
    caller = "version: 1\nname: top\nstart: go\nnodes:\n  - {id: go, type: call, workflow: nap, next: done}\n"
    house.run(house.write(caller + "  - {id: done, type: terminal}\n", "top"))
    house.say("runs", "export", "top", "-o", "e.tar.gz")
    names = [name for name in _files(Path("e.tar.gz")) if name.startswith("children/nap-default")]
    assert any(name.endswith("/journal.ndjson") for name in names)


def test_links_in_a_run_directory_are_not_followed(house: Machine) -> None:
    """A script could plant a link to a secret; it is left out and named."""
    house.run(house.write())
    (house.root / "secret").write_text("s3cret")
    (house.root / "home/state/runs/flow-default/link").symlink_to(house.root / "secret")
    answer = house.say("runs", "export", "flow", "-o", "e.tar.gz", "--json").document
    assert answer["skipped"] == ["run/link"]
    assert b"s3cret" not in b"".join(_files(Path("e.tar.gz")).values())


def test_an_archive_is_not_overwritten_without_force(house: Machine) -> None:
    """Evidence of yesterday must not be lost to a repeated command."""
    house.run(house.write())
    Path("e.tar.gz").write_text("old")
    assert house.say("runs", "export", "flow", "-o", "e.tar.gz").code == 2
    assert Path("e.tar.gz").read_text() == "old"
    assert house.say("runs", "export", "flow", "-o", "e.tar.gz", "--force").code == 0


def test_an_archive_that_cannot_be_written_leaves_nothing(house: Machine) -> None:
    """Exit 2 with the place; no half file."""
    house.run(house.write())
    answer = house.say("runs", "export", "flow", "-o", "nowhere/e.tar.gz")
    assert (answer.code, "nowhere/e.tar.gz" in answer.err) == (2, True)


def test_rebuild_makes_the_same_directory_from_the_journal(house: Machine) -> None:
    """A deleted directory is no loss."""
    house.run(house.write())
    directory = house.root / "home/state/runs/flow-default"
    before = {path.relative_to(directory): path.read_bytes() for path in directory.rglob("*") if path.is_file()}
    shutil.rmtree(directory)
    assert house.say("runs", "rebuild", "flow").code == 0
    after = {path.relative_to(directory): path.read_bytes() for path in directory.rglob("*") if path.is_file()}
    assert after == before
    assert house.say("runs", "rebuild", "--all", "--json").document["rebuilt"][0]["run"] == "flow-default"


def test_prune_needs_a_yes_and_then_leaves_nothing_of_the_run(house: Machine) -> None:
    """Journal, directory and workspace go; what is not over stays."""
    house.run(house.write(PURE, "pure"))
    house.run(house.write())
    state = house.root / "home/state"
    assert house.say("runs", "prune", "--older-than", "0s").code == 2
    assert "pure-default" in house.say("runs", "prune", "--older-than", "0s", "--dry-run").out
    gone = house.say("runs", "prune", "--older-than", "0s", "--yes", "--json").document
    assert gone["gone"] == ["pure-default"]
    assert [path.name for path in (state / "runs").iterdir()] == ["flow-default"]
    assert len(list((state / "workspaces").iterdir())) == 1
    assert [run["run"] for run in house.say("runs", "list", "--json").document["runs"]] == ["flow-default"]


def test_prune_keeps_what_the_configuration_says(house: Machine) -> None:
    """Without a time of its own it goes by retention.runs: thirty days."""
    house.run(house.write(PURE, "pure"))
    assert "No run is old enough to go." in house.say("runs", "prune", "--yes").out


def test_a_run_that_a_fork_leans_on_stays_with_the_reason(house: Machine) -> None:
    """The fork reads its journal; when both are old, both go."""
    house.run(house.write())
    house.say("runs", "answer", "flow", "no")
    house.walk()
    house.say("runs", "fork", "flow", "--at", "ask", "--run-id", "f")
    house.walk()
    kept = house.say("runs", "prune", "--older-than", "0s", "--yes", "--json").document
    assert [(item["run"], "forked" in item["reason"]) for item in kept["kept"]] == [("flow-default", True)]
    house.say("runs", "answer", "flow-f", "no")
    house.walk()
    gone = house.say("runs", "prune", "--older-than", "0s", "--yes", "--json").document
    assert gone["gone"] == ["flow-f", "flow-default"]


def test_a_directory_of_the_same_name_that_is_another_runs_stays(house: Machine) -> None:
    """A `--fresh` start took the name: pruning the archived run must not take the new one's directory."""
    folder = house.write(PURE, "pure")
    house.run(folder)
    house.start(folder, fresh=True)
    house.run(house.write(SLEEPS, "nap"))
    answer = house.say("runs", "prune", "--older-than", "0s", "--keep", "1", "--yes", "--json").document
    assert answer["gone"] == ["pure-default"]
    names = sorted(path.name for path in (house.root / "home/state/runs").iterdir())
    assert names == ["nap-default", "pure-default"]


def test_pins_go_when_no_run_uses_them_and_are_not_young(house: Machine) -> None:
    """A young pin may belong to a run that is being started this moment."""
    house.run(house.write(PURE, "pure"))
    house.run(house.write())
    pins = house.root / "home/state/pins"
    assert len(list(pins.iterdir())) == 2
    assert house.say("runs", "prune", "--older-than", "0s", "--yes", "--json").document["pins"] == 0

    async def later(app: App) -> tuple[int, int]:
        old = app.runtime.clock.now() - YOUNG_PIN - 60
        for path in pins.iterdir():
            os.utime(path, (old, old))
        return await sweep_pins(app.runtime)

    count, size = house.inside(later)
    assert (count, size > 0) == (1, True)
    assert len(list(pins.iterdir())) == 1
