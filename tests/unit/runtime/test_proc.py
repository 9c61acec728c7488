"""Running a process to its end: bounded output, nobody left behind."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from bailiwick.processes import children, pipes, proc, spawning
from bailiwick.processes.command import Command, Exit
from bailiwick.processes.proc import plain_line, run_process
from tests.memory import peak_memory

PATIENCE = 120.0
READY_THEN_WAIT = "import os, signal; os.write(1, b'ready\\n'); signal.pause()"
WAYS = ["spawner", "forked"]
DEAF = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); " + READY_THEN_WAIT


@pytest.fixture(autouse=True, params=WAYS)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """By the spawner, and as systems without one have it."""
    if request.param == "forked":
        monkeypatch.setattr(spawning.spawner, "_failures", spawning.TRIES)
    return str(request.param)


def _python(code: str, cwd: Path, **options: object) -> Command:
    return _command((sys.executable, "-I", "-S", "-c", code), cwd, **options)


def _sh(script: str, cwd: Path, **options: object) -> Command:
    return _command(("sh", "-c", script), cwd, **options)


def _command(argv: tuple[str, ...], cwd: Path, **options: object) -> Command:
    mark = f"effect-{cwd.name}-{os.getpid()}"
    env = {"PATH": os.environ["PATH"], "BAILIWICK_EFFECT_KEY": mark}
    return Command(argv, env, cwd, **options)  # type: ignore[arg-type]


def _run(command: Command, on_line: Callable[[str, str], None] | None = None) -> Exit:
    async def go() -> Exit:
        return await run_process(command, on_line=on_line, cancel=asyncio.Event())

    return asyncio.run(go())


def _run_until_ready(command: Command) -> Exit:
    """Cancel as soon as the process has said something."""

    async def go() -> Exit:
        cancel = asyncio.Event()
        return await run_process(command, on_line=lambda _stream, _text: cancel.set(), cancel=cancel)

    return asyncio.run(go())


def _is_gone(pid: int) -> bool:
    stat = children.read_stat(pid)
    return stat is None or stat.dead


def test_output_and_code_are_given_back(tmp_path: Path) -> None:
    """The plain case."""
    end = _run(_sh("echo out; echo err >&2; exit 3", tmp_path))
    assert (end.code, end.stdout, end.stderr) == (3, b"out\n", b"err\n")
    assert (end.timed_out, end.cancelled, end.truncated) == (False, False, False)
    assert end.seconds > 0


def test_a_signal_is_a_negative_code(tmp_path: Path) -> None:
    """Killed from outside (the kernel's memory killer, say) is told apart from an exit."""
    assert _run(_sh("kill -9 $$", tmp_path)).code == -9


def test_the_process_has_its_own_session_an_empty_stdin_and_no_other_files(tmp_path: Path) -> None:
    """A script must not read our terminal, get our Ctrl-C, or hold our database open."""
    code = (
        "import os, sys; print(os.getsid(0) == os.getpid(), len(sys.stdin.read()), sorted(os.listdir('/proc/self/fd')))"
    )
    inherited = os.open("/dev/null", os.O_RDONLY)
    try:
        os.set_inheritable(inherited, True)
        end = _run(_python(code, tmp_path))
    finally:
        os.close(inherited)
    assert end.stdout.decode().strip() == "True 0 ['0', '1', '2', '3']"  # 3 is the listing itself


def test_it_runs_where_and_with_what_it_was_told(tmp_path: Path) -> None:
    """Nothing of our own environment leaks in."""
    end = _run(Command(("/usr/bin/env",), {"ONLY": "this"}, tmp_path))
    assert end.stdout == b"ONLY=this\n"
    assert _run(_sh("pwd -P", tmp_path)).stdout.decode().strip() == str(tmp_path.resolve())


def test_the_pid_is_told_while_it_runs(tmp_path: Path) -> None:
    """The journal notes it, so that a recovery knows where to look."""
    seen: list[int] = []

    async def go() -> Exit:
        return await run_process(_sh("echo $$", tmp_path), on_pid=seen.append, cancel=asyncio.Event())

    assert [int(asyncio.run(go()).stdout)] == seen


def test_only_the_head_of_stdout_and_the_tail_of_stderr_are_kept(tmp_path: Path) -> None:
    """An answer is read from its beginning; why something failed stands at the end."""
    end = _run(_sh("echo head; seq 100000; { seq 100000; echo tail; } >&2", tmp_path, keep=10))
    assert (end.stdout, end.truncated) == (b"head\n1\n2\n3", True)
    assert len(end.stderr) == proc.STDERR_KEPT
    assert end.stderr.endswith(b"100000\ntail\n")


def test_output_that_just_fits_is_not_called_truncated(tmp_path: Path) -> None:
    """One byte decides between an answer and a failure."""
    assert not _run(_sh("printf 12345", tmp_path, keep=5)).truncated
    assert _run(_sh("printf 123456", tmp_path, keep=5)).truncated
    assert _run(_sh("true", tmp_path, keep=0)).stdout == b""


def test_an_endless_line_costs_no_memory(tmp_path: Path) -> None:
    """A script that prints 64 MB without a newline on each stream must not take the orchestrator down."""
    script = "head -c 67108864 /dev/zero; head -c 67108864 /dev/zero >&2"
    with peak_memory() as peak:
        end = _run(_sh(script, tmp_path, keep=1000), on_line=lambda _stream, _text: None)
    assert (len(end.stdout), end.truncated, end.code) == (1000, True, 0)
    assert peak.bytes < 4_000_000


def test_a_process_that_closes_its_output_is_waited_for(tmp_path: Path) -> None:
    """The end of the pipes is not the end of the process."""
    assert _run(_sh("exec >&- 2>&-; read nothing; exit 4", tmp_path)).code == 4


def test_bytes_that_are_no_text_are_kept_as_they_are(tmp_path: Path) -> None:
    """What is not UTF-8 is data too; only the lines for people are made readable."""
    lines: list[tuple[str, str]] = []
    end = _run(_sh(r"printf '\377\376ok\n'", tmp_path), on_line=lambda *line: lines.append(line))
    assert end.stdout == b"\xff\xfeok\n"
    assert lines == [("stdout", "\ufffd\ufffdok")]


def test_lines_come_from_both_streams_the_last_one_too(tmp_path: Path) -> None:
    """People see what a script says, even if it ends without a newline; a progress bar shows its states."""
    lines: list[tuple[str, str]] = []
    _run(_sh(r"printf 'one\n\n10%%\r20%%\rlast'; printf 'warn\n' >&2", tmp_path), lambda *line: lines.append(line))
    assert sorted(lines) == [
        ("stderr", "warn"),
        ("stdout", "10%"),
        ("stdout", "20%"),
        ("stdout", "last"),
        ("stdout", "one"),
    ]


def test_lines_are_few_however_fast_they_come_and_the_last_one_arrives(tmp_path: Path) -> None:
    """A live view can't show 200,000 lines; showing the newest is enough."""
    lines: list[str] = []
    end = _run(_sh("seq 200000", tmp_path), lambda _stream, text: lines.append(text))
    assert len(lines) <= (end.seconds + 2) * pipes.LINES_PER_SECOND
    assert lines[-1] == "200000"


def test_a_held_line_is_shown_while_the_process_is_silent(tmp_path: Path) -> None:
    """After a burst the newest line is shown a moment later, not only when the process speaks again."""
    assert _run_until("100", _sh("seq 100; exec sleep 600", tmp_path)).cancelled


def _run_until(wanted: str, command: Command) -> Exit:
    async def go() -> Exit:
        cancel = asyncio.Event()
        return await run_process(
            command, on_line=lambda _s, text: cancel.set() if text == wanted else None, cancel=cancel
        )

    return asyncio.run(go())


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"\x1b[31mred\x1b[0m", "red"),
        (b"\x1b]0;title\x07after", "after"),
        (b"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("a\u202eb\u2066c\x85d".encode(), "abcd"),
        (b"tab\tbed\x00\x08", "tab bed"),
        (b"\x1b", ""),
        ("\u00e4".encode() * 3, "äää"),
    ],
)
def test_a_line_for_people_carries_no_terminal_sequences(raw: bytes, text: str) -> None:
    """Output of a script is data: it must not move the cursor, set a title or turn the text around."""
    assert plain_line(raw) == text


def test_a_long_line_is_cut() -> None:
    """A line is for reading."""
    assert plain_line(b"x" * 100_000) == "x" * 1999 + "…"


def test_a_grandchild_that_holds_the_pipe_does_not_hold_us(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`server &` in a script: the script is done, so the effect is done, its leftovers included."""
    monkeypatch.setattr(proc, "PIPE_GRACE", 0.05)
    end = _run(_sh("sleep 600 & echo $!", tmp_path))
    assert end.code == 0
    assert _is_gone(int(end.stdout))


def test_a_quiet_grandchild_is_ended_as_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An effect that is journaled as finished does nothing more."""
    monkeypatch.setattr(proc, "PIPE_GRACE", 0.05)
    end = _run(_sh("sleep 600 >/dev/null 2>&1 & echo $!", tmp_path))
    assert _is_gone(int(end.stdout))


def test_what_a_grandchild_says_within_the_grace_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The end of a pipeline may lag behind the script."""
    monkeypatch.setattr(proc, "PIPE_GRACE", PATIENCE)
    (tmp_path / "late").write_text("while [ -d /proc/$1 ]; do :; done; echo late")
    end = _run(_sh("echo early; sh ./late $$ &", tmp_path))
    assert end.stdout == b"early\nlate\n"


@pytest.mark.parametrize("size", [1, 4096, 60_000])
def test_what_was_printed_before_the_end_is_kept_however_late_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    """A machine that stands still for a minute wakes up with all its clocks run out and the answer in the pipe."""
    monkeypatch.setattr(proc, "PIPE_GRACE", 0.0)
    monkeypatch.setattr(pipes, "_CHUNK", 1024)  # one look is not enough
    end = _run(_sh(f"head -c {size} /dev/zero | tr '\\0' x; head -c {size} /dev/zero | tr '\\0' y >&2", tmp_path))
    assert (end.stdout, end.stderr) == (b"x" * size, b"y" * size)


def test_nothing_waits_for_the_grace_when_the_pipes_close_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The usual script pays nothing; with a grace of an hour this test would run into its own timeout."""
    monkeypatch.setattr(proc, "PIPE_GRACE", 3600.0)
    assert _run(_sh("echo done", tmp_path)).stdout == b"done\n"


def test_a_timeout_ends_the_process_and_says_so(tmp_path: Path) -> None:
    """A script that hangs must not hang the run."""
    end = _run(_sh("exec sleep 600", tmp_path, timeout=0.05))
    assert (end.code, end.timed_out, end.cancelled) == (-15, True, False)


def test_a_process_may_clean_up_when_it_is_cancelled(tmp_path: Path) -> None:
    """TERM comes first, and what is said after it still counts."""
    code = (
        "import os, signal\n"
        "def leave(*_):\n    os.write(1, b'bye\\n')\n    os._exit(7)\n"
        "signal.signal(signal.SIGTERM, leave)\n" + READY_THEN_WAIT
    )
    end = _run_until_ready(_python(code, tmp_path))
    assert (end.code, end.stdout, end.cancelled, end.timed_out) == (7, b"ready\nbye\n", True, False)


def test_a_deaf_process_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """TERM may be ignored, KILL can't."""
    monkeypatch.setattr(children, "GRACE", 0.05)
    end = _run_until_ready(_python(DEAF, tmp_path))
    assert (end.code, end.cancelled) == (-9, True)


def test_a_descendant_that_left_the_session_is_ended_by_its_mark(tmp_path: Path) -> None:
    """A daemon escapes the process group; the environment it was started with tells whose it is."""
    pid_file = tmp_path / "pid"
    script = f"setsid sh -c 'echo $$ >{pid_file}; echo ready; exec sleep 600' & wait"
    end = _run_until_ready(_sh(script, tmp_path))
    assert end.cancelled
    assert _is_gone(int(pid_file.read_text()))


def test_a_process_without_a_mark_is_ended_by_its_group(tmp_path: Path) -> None:
    """Nothing is ever searched for with an empty mark."""
    end = _run(Command(("sleep", "600"), {"PATH": os.environ["PATH"]}, tmp_path, timeout=0.02))
    assert (end.code, end.timed_out) == (-15, True)


def test_a_cancel_that_came_first_starts_nothing(tmp_path: Path) -> None:
    """A stop between the decision and the start must not begin work; the command does not even exist."""

    async def go() -> Exit:
        cancel = asyncio.Event()
        cancel.set()
        return await run_process(_command(("/nowhere/to/be/found",), tmp_path), cancel=cancel)

    assert asyncio.run(go()).cancelled


def test_a_cancelled_task_leaves_no_process(tmp_path: Path) -> None:
    """However the walk ends, nobody stays behind."""
    pids: list[int] = []

    async def go() -> None:
        spoken = asyncio.Event()
        task = asyncio.create_task(
            run_process(
                _python(DEAF, tmp_path),
                on_line=lambda _stream, _text: spoken.set(),
                on_pid=pids.append,
                cancel=asyncio.Event(),
            )
        )
        await spoken.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(go())
    assert children.read_stat(pids[0]) is None


def test_what_can_not_be_started_is_an_os_error(tmp_path: Path) -> None:
    """One kind of error for the caller: no program, no directory, or a value that no process can be given."""
    with pytest.raises(FileNotFoundError):
        _run(_command(("/nowhere/to/be/found",), tmp_path))
    with pytest.raises(FileNotFoundError):
        _run(_sh("true", tmp_path / "missing"))
    with pytest.raises(OSError, match="can't be passed"):
        _run(_command(("echo", "a\0b"), tmp_path))
    with pytest.raises(OSError, match="can't be passed"):
        _run(_command(("echo", "\ud800"), tmp_path))
    with pytest.raises(OSError, match="can't be passed"):
        _run(Command(("echo",), {"A=B": "c"}, tmp_path))


def test_a_raising_listener_leaves_no_process(tmp_path: Path) -> None:
    """The pid could not be noted, so the process must not go on unnoted."""
    seen: list[int] = []

    def refuse(pid: int) -> None:
        seen.append(pid)
        raise RuntimeError("no")

    async def go() -> None:
        await run_process(_sh("exec sleep 600", tmp_path), on_pid=refuse, cancel=asyncio.Event())

    with pytest.raises(RuntimeError, match="no"):
        asyncio.run(go())
    assert children.read_stat(seen[0]) is None


def test_many_at_once_need_no_thread_and_leave_no_open_file(tmp_path: Path) -> None:
    """A hundred parallel scripts are a hundred rows for the event loop, nothing more."""
    threads: set[int] = set()

    async def go() -> list[Exit]:
        def note(_pid: int) -> None:
            threads.add(threading.active_count())

        runs = [run_process(_sh(f"exit {n}", tmp_path), on_pid=note, cancel=asyncio.Event()) for n in range(40)]
        return await asyncio.gather(*runs)

    _run(_sh("true", tmp_path))
    before = len(list(Path("/proc/self/fd").iterdir()))
    assert [end.code for end in asyncio.run(go())] == list(range(40))
    assert len(list(Path("/proc/self/fd").iterdir())) == before
    assert threads == {threading.active_count()}


def test_it_works_without_pidfds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Older kernels, other systems and some sandboxes have none."""

    def refuse(pid: int, flags: int = 0) -> int:
        raise OSError("not here")

    monkeypatch.setattr(os, "pidfd_open", refuse)
    assert _run(_sh("echo out; exit 5", tmp_path)).code == 5
    assert _run(_sh("exec sleep 600", tmp_path, timeout=0.02)).timed_out


DAEMON = textwrap.dedent(
    """
    import asyncio, os, sys
    from pathlib import Path
    from bailiwick.processes import children, pipes, proc
    from bailiwick.runtime.kinds import Command

    way = sys.argv[2]
    if way == "forked":
        proc.spawner._failures = 3
    proc.PIPE_GRACE = 0.05
    assert proc.become_subreaper()
    env = {"PATH": os.environ["PATH"], "BAILIWICK_EFFECT_KEY": f"daemon-{os.getpid()}"}
    script = "mkfifo up; setsid sh -c 'echo >up; exec sleep 600 >/dev/null 2>&1' & read up <up; echo $!"
    command = Command(("sh", "-c", script), env, Path(sys.argv[1]))
    end = asyncio.run(proc.run_process(command, cancel=asyncio.Event()))
    stat = children.read_stat(int(end.stdout))
    assert stat is None or stat.dead, stat
    children.ZOMBIE_AGE = 0.0
    asyncio.run(proc.run_process(Command(("true",), env, Path(sys.argv[1])), cancel=asyncio.Event()))
    left = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    assert left == [str(proc.spawner._pid)] * (way == "spawner"), left
    print("fine")
    """
)


def test_a_daemon_of_a_script_ends_with_it_and_leaves_no_zombie(tmp_path: Path, way: str) -> None:
    """An orphan in its own session is handed to us as the subreaper: we see it, end it and wait for it."""
    answer = subprocess.run(
        [sys.executable, "-c", DAEMON, tmp_path, way], capture_output=True, text=True, check=False, timeout=PATIENCE
    )
    assert (answer.stdout.strip(), answer.stderr) == ("fine", "")
