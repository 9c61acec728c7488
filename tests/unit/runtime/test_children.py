"""Finding the processes of an effect by their marks, and ending them."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bailiwick.processes import children
from bailiwick.processes.children import ChildProcess, end_children, find_children, is_alive, read_stat

PATIENCE = 30.0
READY = "import sys; sys.stdout.write('ready\\n'); sys.stdout.flush(); "
WAIT = READY + "import signal; signal.pause()"
DEAF = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); " + WAIT
COUNT = """
import os, signal
signal.signal(signal.SIGTERM, lambda *_: os.write(1, b"term\\n"))
os.write(1, b"ready\\n")
while True:
    signal.pause()
"""

Start = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts Python code with marks in a session of its own and waits until it says that it runs."""
    started: list[subprocess.Popen[bytes]] = []

    def begin(code: str, *, alone: bool = True, **marks: str) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", code],
            env={**os.environ, **marks},
            stdout=subprocess.PIPE,
            start_new_session=alone,
        )
        started.append(process)
        assert process.stdout is not None
        assert process.stdout.readline().strip() == b"ready"
        return process

    yield begin
    for process in started:
        process.kill()
        process.wait(PATIENCE)
        assert process.stdout is not None
        process.stdout.close()


@pytest.fixture
def mark(tmp_path: Path) -> str:
    """A value that no other process on this machine carries."""
    return f"mark-{tmp_path.name}-{os.getpid()}-{tmp_path.stat().st_ino}"


def _wait_until_dead(pid: int) -> None:
    """Wait, without reaping, until a process has ended."""
    handle = os.pidfd_open(pid)
    try:
        assert select.select([handle], [], [], PATIENCE)[0], f"process {pid} did not end"
    finally:
        os.close(handle)


def _child(process: subprocess.Popen[bytes]) -> ChildProcess:
    stat = read_stat(process.pid)
    assert stat is not None
    return ChildProcess(process.pid, stat.start)


def test_a_process_is_found_by_the_variable_it_was_started_with(start: Start, mark: str) -> None:
    """After a crash the environment is the only thing that ties an orphan to its effect."""
    process = start(WAIT, BAILIWICK_EFFECT_KEY=mark)
    assert find_children({"BAILIWICK_EFFECT_KEY": mark}) == [_child(process)]


def test_all_marks_have_to_be_there_and_in_full(start: Start, mark: str) -> None:
    """The key of one effect may be the beginning of another's: a partial match would end a stranger."""
    process = start(WAIT, BAILIWICK_EFFECT_KEY=mark + "-longer", BAILIWICK_RUN="r1")
    assert find_children({"BAILIWICK_EFFECT_KEY": mark}) == []
    assert find_children({"EFFECT_KEY": mark + "-longer"}) == []
    assert find_children({"BAILIWICK_EFFECT_KEY": mark + "-longer", "BAILIWICK_RUN": "r2"}) == []
    found = find_children({"BAILIWICK_EFFECT_KEY": mark + "-longer", "BAILIWICK_RUN": "r1"})
    assert found == [_child(process)]


def test_a_mark_that_is_an_argument_does_not_count(start: Start, mark: str) -> None:
    """Somebody who greps for a key is not a child of the effect."""
    start(WAIT + f" # BAILIWICK_EFFECT_KEY={mark}")
    assert find_children({"BAILIWICK_EFFECT_KEY": mark}) == []


def test_a_zombie_is_not_found(start: Start, mark: str) -> None:
    """A process that has ended does nothing more, whoever forgot to wait for it."""
    process = start(READY, BAILIWICK_EFFECT_KEY=mark)
    _wait_until_dead(process.pid)
    stat = read_stat(process.pid)
    assert stat is not None
    assert stat.dead
    assert find_children({"BAILIWICK_EFFECT_KEY": mark}) == []
    assert not is_alive(ChildProcess(process.pid, stat.start))


def test_a_process_in_the_middle_of_an_exec_is_never_taken_for_gone(start: Start, mark: str) -> None:
    """For some microseconds a process has no environment to read; a recovery that looks just then would miss it."""
    loop = "import os; os.write(1, b'ready\\n'); os.execvp('sh', ['sh', '-c', os.environ['AGAIN']])"
    start(loop, BAILIWICK_RUN=mark, AGAIN='exec sh -c "$AGAIN"')
    looks = [children._look({"BAILIWICK_RUN": mark}, None) for _ in range(100)]
    assert [look for look in looks if not look.found and not look.unsettled] == []
    assert asyncio.run(end_children({"BAILIWICK_RUN": mark})) == []
    assert find_children({"BAILIWICK_RUN": mark}) == []


def test_we_do_not_find_ourselves(mark: str) -> None:
    """A Bailiwick inside a script of another run carries the outer marks; it must not end itself."""
    code = (
        f"from bailiwick.processes.children import find_children; print(find_children({{'BAILIWICK_RUN': {mark!r}}}))"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "BAILIWICK_RUN": mark},
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE,
    )
    assert answer.stdout.strip() == "[]"


def test_no_mark_is_refused() -> None:
    """An empty set of marks would match, and end, every process of the person."""
    with pytest.raises(ValueError, match="every process"):
        find_children({})
    with pytest.raises(ValueError, match="every process"):
        asyncio.run(end_children({}))


def test_a_name_with_brackets_and_spaces_does_not_confuse_the_start_time(tmp_path: Path) -> None:
    """The kernel writes a process's name unescaped among the numbers."""
    odd = tmp_path / "a) R 1 (b"
    odd.symlink_to("/bin/cat")
    with subprocess.Popen([odd], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"x\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"x\n"
        stat, own = read_stat(process.pid), read_stat(os.getpid())
    assert stat is not None
    assert own is not None
    assert (stat.group, stat.session) == (own.group, own.session)
    assert stat.start >= own.start


def test_no_such_process_has_no_stat() -> None:
    """A pid beyond the system's limit never exists."""
    assert read_stat(1 << 30) is None
    assert not is_alive(ChildProcess(1 << 30, 1))


def test_marked_processes_are_ended_and_proved_gone(start: Start, mark: str) -> None:
    """An effect may be entered again only after its former processes can do nothing more."""
    processes = [start(WAIT, BAILIWICK_RUN=mark) for _ in range(3)]
    assert asyncio.run(end_children({"BAILIWICK_RUN": mark})) == []
    assert find_children({"BAILIWICK_RUN": mark}) == []
    for process in processes:
        _wait_until_dead(process.pid)


def test_a_process_that_ignores_term_is_killed_after_the_grace(start: Start, mark: str) -> None:
    """A deaf child would otherwise block the run for ever."""
    process = start(DEAF, BAILIWICK_RUN=mark)
    assert asyncio.run(end_children({"BAILIWICK_RUN": mark}, grace=0.05)) == []
    _wait_until_dead(process.pid)


def test_a_process_hears_term_once_however_often_we_look(start: Start, mark: str) -> None:
    """Many tools take the second TERM as: drop everything."""
    process = start(COUNT, BAILIWICK_RUN=mark)
    assert asyncio.run(end_children({"BAILIWICK_RUN": mark}, grace=0.5)) == []
    assert process.stdout is not None
    assert process.stdout.read() == b"term\n"


def test_members_of_the_group_without_the_mark_are_ended_too(start: Start, mark: str) -> None:
    """A child that cleared its environment is still a child."""
    bare = [sys.executable, "-I", "-S", "-c", WAIT]
    process = start(
        f"import os, signal\nif os.fork() == 0:\n    os.execve({bare[0]!r}, {bare!r}, {{}})\nsignal.pause()",
        BAILIWICK_RUN=mark,
    )
    members = [child for child, _ in children._look({}, process.pid).found]
    assert len(members) == 2
    assert asyncio.run(end_children({"BAILIWICK_RUN": mark}, group=process.pid)) == []
    assert not any(map(is_alive, members))


def test_nothing_to_end_is_proof_enough(mark: str) -> None:
    """The usual case of a recovery: the children went down with their parent."""
    assert asyncio.run(end_children({"BAILIWICK_RUN": mark})) == []


def test_what_can_not_be_ended_is_given_back(start: Start, mark: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that survives (here: because signals reach nobody) parks the run instead of being taken for gone."""
    process = start(WAIT, BAILIWICK_RUN=mark)
    monkeypatch.setattr(children, "_signal_all", lambda *_: None)
    monkeypatch.setattr(children, "KILL_WAIT", 0.05)
    assert asyncio.run(end_children({"BAILIWICK_RUN": mark}, grace=0.01)) == [_child(process)]


def test_a_reused_pid_is_left_alone(start: Start) -> None:
    """Between the look and the signal a pid may have gone to a stranger; the start time tells."""
    process = start(COUNT)
    seen = _child(process)
    children._signal(ChildProcess(seen.pid, seen.start + 1), signal.SIGKILL)
    assert is_alive(seen)
    children._signal(seen, signal.SIGKILL)
    _wait_until_dead(process.pid)


def test_a_marked_process_in_our_own_group_is_ended_without_us(start: Start, mark: str) -> None:
    """Signalling our own group would end the orchestrator."""
    process = start(WAIT, alone=False, BAILIWICK_RUN=mark)
    assert asyncio.run(end_children({"BAILIWICK_RUN": mark})) == []
    _wait_until_dead(process.pid)


def test_without_proc_a_search_by_mark_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing can be seen, nothing is proved: the person has to say so."""
    from bailiwick.errors import NotReady

    with pytest.raises(NotReady, match="no /proc"):
        children._look_without_proc({"BAILIWICK_RUN": "r"}, None)


ORPHANS = textwrap.dedent(
    """
    import atexit, contextlib, os, select, subprocess, sys
    from bailiwick.processes import children
    from bailiwick.processes.proc import become_subreaper
    assert become_subreaper()

    def wait_dead(pid):
        handle = os.pidfd_open(pid)
        assert select.select([handle], [], [], 30)[0]
        os.close(handle)

    def end(pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, 9)

    def orphan(script, **options):
        parent = subprocess.Popen(["sh", "-c", script], stdout=subprocess.PIPE, start_new_session=True, **options)
        pid = int(parent.stdout.readline())
        atexit.register(end, pid)
        parent.wait()
        return parent.pid, pid

    group, pid = orphan("sleep 600 >&- & echo $!")
    os.kill(pid, 9)
    wait_dead(pid)
    assert children.read_stat(pid).dead
    assert not children.has_orphans({"M": "1"}, group)
    assert children.read_stat(pid) is None, "a dead member of the group is reaped"

    group, pid = orphan("setsid sh -c 'echo $$; exec sleep 600 >&-' &", env={**os.environ, "M": "1"})
    assert children.has_orphans({"M": "1"}, group)
    assert not children.has_orphans({"M": "2"}, group)
    os.kill(pid, 9)
    wait_dead(pid)
    assert not children.has_orphans({"M": "1"}, group)
    assert children.read_stat(pid).dead, "whose it is is not known yet"
    children.ZOMBIE_AGE = 0.0
    assert not children.has_orphans({"M": "1"}, group)
    assert children.read_stat(pid) is None, "nobody waited for it, so it was handed to us"

    other = subprocess.Popen(["true"])
    wait_dead(other.pid)
    assert not children.has_orphans({"M": "1"}, other.pid + 1)
    assert other.wait() == 0
    claimed = subprocess.Popen(["false"], start_new_session=True)
    children.claim(claimed.pid)
    wait_dead(claimed.pid)
    assert not children.has_orphans({"M": "1"}, claimed.pid)
    assert claimed.wait() == 1, "its exit code was not taken by another"
    atexit.unregister(end)
    print("fine")
    """
)


def test_orphans_in_our_care_are_noticed_and_reaped_but_never_another_ones_child() -> None:
    """Unreaped orphans fill the process table of a week-long run; a stolen exit code turns a failure into a success."""
    answer = subprocess.run(
        [sys.executable, "-c", ORPHANS], capture_output=True, text=True, check=False, timeout=PATIENCE
    )
    assert (answer.stdout.strip(), answer.stderr) == ("fine", "")
