"""Control groups as different machines have them: each is laid out in a directory here."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from bailiwick.processes.children import read_stat
from bailiwick.sandbox.cgroups import AROUND, Cgroup, CgroupRoots, find_ground, make_group, sweep
from bailiwick.sandbox.spec import SandboxLimits

FIRST = "4:memory:/app/one\n3:pids:/\n2:cpu,cpuacct:/\n1:name=systemd:/\n"
SECOND = "0::/user.slice/app.slice/term.scope\n"


def _mount(point: Path, kind: str, options: str, root: str = "/") -> str:
    return f"30 20 0:26 {root} {point} rw,nosuid - {kind} cgroup rw,{options}\n"


def _first(top: Path) -> str:
    for name in ("memory/app/one", "pids", "cpu"):
        (top / name).mkdir(parents=True)
    names = (("memory", "memory"), ("pids", "pids"), ("cpu", "cpu,cpuacct"))
    return "".join(_mount(top / name, "cgroup", options) for name, options in names)


def _second(top: Path, handed_on: str = "cpu memory pids") -> str:
    own = top / "user.slice/app.slice/term.scope"
    own.mkdir(parents=True)
    for folder in (own, own.parent, own.parent.parent, top):
        (folder / "cgroup.procs").write_text("")
        (folder / "cgroup.subtree_control").write_text("")
    (own.parent / "cgroup.subtree_control").write_text(handed_on)
    return _mount(top, "cgroup2", "nsdelegate")


def test_version_1_is_used_below_our_own_group(tmp_path: Path) -> None:
    """Whoever bounded us still does."""
    ground = find_ground(_first(tmp_path), FIRST)
    assert (ground.version, ground.controllers) == (1, ("memory", "pids", "cpu"))
    assert ground.folders is not None
    assert ground.folders["memory"] == tmp_path / "memory/app/one"


def test_version_2_is_used_in_the_group_that_hands_controllers_on(tmp_path: Path) -> None:
    """A group with processes can't, so it is the one above ours, as systemd makes it for a person."""
    ground = find_ground(_second(tmp_path), SECOND)
    assert (ground.version, set(ground.controllers)) == (2, {"memory", "pids", "cpu"})
    assert ground.folders is not None
    assert ground.folders["memory"] == tmp_path / "user.slice/app.slice"


@pytest.mark.parametrize("handed_on", ["", "hugetlb", "memory"])
def test_version_2_without_what_is_needed_is_not_used(tmp_path: Path, handed_on: str) -> None:
    """A mixed machine has version 2 for nothing useful; then version 1 counts, or nothing does."""
    assert find_ground(_second(tmp_path / "2", handed_on), SECOND).controllers == ()
    both = _second(tmp_path / "3", handed_on) + _first(tmp_path / "1")
    assert find_ground(both, FIRST + SECOND).version == 1


def test_a_machine_without_control_groups_has_no_ground() -> None:
    """Then rlimits have to do."""
    assert find_ground("", "").controllers == ()
    assert make_group(CgroupRoots(), "x", SandboxLimits()) is None


def test_a_mount_of_a_part_is_understood(tmp_path: Path) -> None:
    """In a container the mount shows the container's group as if it were all."""
    (tmp_path / "memory/inner").mkdir(parents=True)
    mounts = _mount(tmp_path / "memory", "cgroup", "memory", root="/docker/abc")
    ground = find_ground(mounts, "4:memory:/docker/abc/inner\n")
    assert ground.folders == {"memory": tmp_path / "memory/inner"}


@pytest.mark.parametrize(
    ("version", "files"),
    [
        (1, {"memory.limit_in_bytes": "1000", "pids.max": str(7 + AROUND), "cpu.cfs_quota_us": "150000"}),
        (2, {"memory.max": "1000", "memory.swap.max": "0", "pids.max": str(7 + AROUND), "cpu.max": "150000 100000"}),
    ],
)
def test_a_group_is_bounded(
    tmp_path: Path, version: int, files: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Memory, swap included, processes and processors."""
    made = Path.mkdir

    def mkdir(self: Path) -> None:
        """The kernel's: a new group has its files at once."""
        made(self)
        for name in files:
            (self / name).write_text("")

    monkeypatch.setattr(Path, "mkdir", mkdir)
    ground = CgroupRoots(1 if version == 1 else 2, dict.fromkeys(("memory", "pids", "cpu"), tmp_path))
    group = make_group(ground, "x", SandboxLimits(memory=1000, processes=7, cpus=1.5))
    assert group is not None
    folder = group.folders["memory"]
    assert {name: (folder / name).read_text() for name in files} == files
    assert group.entries == (folder / "cgroup.procs",)


def test_what_was_met_is_told(tmp_path: Path) -> None:
    """So a person hears "memory" and not "killed"."""
    (tmp_path / "memory.oom_control").write_text("oom_kill_disable 0\nunder_oom 0\noom_kill 2\n")
    (tmp_path / "pids.events").write_text("max 0\n")
    assert Cgroup(1, {"memory": tmp_path, "pids": tmp_path}).exceeded() == ("memory",)
    (tmp_path / "memory.events").write_text("oom 0\noom_kill 0\n")
    (tmp_path / "pids.events").write_text("max 3\n")
    assert Cgroup(2, {"memory": tmp_path, "pids": tmp_path}).exceeded() == ("processes",)


def test_groups_of_the_dead_are_swept_and_those_of_the_living_are_not(tmp_path: Path) -> None:
    """Whoever is killed can't clean up, and their pid may be another's by now.

    An empty group of a living process may be about to be used.
    """
    own = read_stat(os.getpid())
    assert own
    living = f"bailiwick-{os.getpid()}-{own.start}-a"
    names = (
        living,
        f"bailiwick-{os.getpid()}-{own.start - 1}-a",
        "bailiwick-999999999-1-b",
        "bailiwick-999999999-1-full/inner",
        "other-999999999-1-c",
    )
    for name in names:
        (tmp_path / name).mkdir(parents=True)
    assert sweep(CgroupRoots(1, {"memory": tmp_path})) == 2
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {living, "bailiwick-999999999-1-full", "other-999999999-1-c"}


def test_a_real_group_comes_and_goes() -> None:
    """On a machine that lets us."""
    ground = find_ground()
    group = make_group(ground, "unit-test", SandboxLimits())
    if group is None:
        pytest.skip("no control groups can be made here")
    assert group.members() == set()
    assert asyncio.run(group.remove())
    assert not any(folder.exists() for folder in group.folders.values())
