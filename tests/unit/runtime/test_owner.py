"""Who owns a lease, and when an owner is proved dead."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from bailiwick.journal.rows import Owner
from bailiwick.processes.children import read_stat
from bailiwick.processes.owner import current_owner, host_id, is_dead, shown

PATIENCE = 30.0


@pytest.fixture
def me() -> Owner:
    """This process."""
    return current_owner("bailiwick run")


@pytest.fixture
def other(me: Owner) -> Iterator[tuple[subprocess.Popen[bytes], Owner]]:
    """Another process on this host that waits until it is let go, and itself as an owner."""
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", "input()"], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    stat = read_stat(process.pid)
    assert stat is not None
    yield process, replace(me, pid=process.pid, start=stat.start)
    process.communicate()


def test_an_owner_names_one_process_of_one_boot_of_one_host(me: Owner) -> None:
    """Each part is needed: a pid comes back after a while, and every container has a pid 1."""
    assert me == current_owner("bailiwick run")
    assert (me.pid, me.name) == (os.getpid(), "bailiwick run")
    assert all((me.host, me.boot, me.pidns, me.start))
    assert host_id() == me.host


def test_the_host_id_does_not_give_the_machine_id_away() -> None:
    """The machine id is confidential by its own manual page; journals are exported."""
    try:
        machine = Path("/etc/machine-id").read_text("utf-8").strip()
    except OSError:
        machine = ""
    assert len(host_id()) == 16
    assert not machine or host_id() not in machine


def test_a_running_process_is_alive(me: Owner, other: tuple[subprocess.Popen[bytes], Owner]) -> None:
    """A live owner is never robbed before its lease ends."""
    assert is_dead(me, me) is False
    assert is_dead(other[1], me) is False


def test_a_process_that_ended_is_dead_also_as_a_zombie(me: Owner, other: tuple[subprocess.Popen[bytes], Owner]) -> None:
    """A parent that never waits must not keep a run locked."""
    process, owner = other
    handle = os.pidfd_open(process.pid)
    try:
        process.kill()
        assert select.select([handle], [], [], PATIENCE)[0]
    finally:
        os.close(handle)
    assert is_dead(owner, me) is True
    process.wait(PATIENCE)
    assert is_dead(owner, me) is True


def test_a_reused_pid_is_not_the_old_owner(me: Owner, other: tuple[subprocess.Popen[bytes], Owner]) -> None:
    """The start time tells a stranger with the same pid apart."""
    assert is_dead(replace(other[1], start=other[1].start - 1), me) is True


def test_an_owner_of_an_earlier_boot_is_dead_whatever_its_pid_does(me: Owner) -> None:
    """After a power cut the run goes on at once, even if its pid is in use again."""
    assert is_dead(replace(me, boot="an-earlier-one"), me) is True
    assert is_dead(replace(me, boot="an-earlier-one", pidns="1"), me) is True


@pytest.mark.parametrize(
    "elsewhere",
    [{"host": "another"}, {"pidns": "1"}, {"host": "another", "boot": "another"}, {"boot": ""}],
    ids=["host", "pid namespace", "host and boot", "unknown boot"],
)
def test_an_owner_that_can_not_be_seen_is_neither_dead_nor_alive(me: Owner, elsewhere: dict[str, str]) -> None:
    """Its lease has to run out: a guess would let two processes walk one run."""
    assert is_dead(replace(me, **elsewhere), me) is None  # type: ignore[arg-type]


def test_without_start_times_a_pid_in_use_counts_as_its_owner(
    me: Owner, other: tuple[subprocess.Popen[bytes], Owner]
) -> None:
    """Systems without /proc: late is better than wrong."""
    process, owner = other
    assert is_dead(replace(owner, start=0), me) is False
    process.kill()
    process.wait(PATIENCE)
    assert is_dead(replace(owner, start=0), me) is True


def test_an_owner_is_shown_with_what_a_person_can_act_on(me: Owner) -> None:
    """`HeldByAnother` names the holder; the person looks it up by pid."""
    assert shown(me) == f"pid {me.pid} on this host (bailiwick run)"
    assert shown(replace(me, host="0123456789abcdef", name="")) == f"pid {me.pid} on host 0123456789ab"
