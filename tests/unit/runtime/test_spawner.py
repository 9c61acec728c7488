"""The spawner: nothing that an effect starts gets away, however it hides, and whoever is killed."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from bailiwick.config.service import load_config
from bailiwick.config.variables import Environment
from bailiwick.doctor.service import examine
from bailiwick.processes import children, guards, proc, spawning
from bailiwick.processes.children import ChildProcess, end_children, is_alive, read_stat
from bailiwick.processes.command import Command, Exit
from bailiwick.processes.proc import run_process
from bailiwick.processes.spawning import spawner
from bailiwick.testing.polling import until

LONG = 120.0
HIDE = textwrap.dedent(
    """\
    import os, signal, sys
    # leave the session, lose the parent, start again without an environment
    if os.fork():
        os.wait() if "stay" in sys.argv else None
        print("left", flush=True)
        signal.pause() if "stay" in sys.argv else os._exit(0)
    os.setsid()
    if os.fork():
        os._exit(0)
    code = "import os, signal, sys; signal.signal(15, signal.SIG_IGN) if sys.argv[2] == 'deaf' else 0; " \\
        "open(sys.argv[1] + '.new', 'w').write(str(os.getpid())); os.rename(sys.argv[1] + '.new', sys.argv[1]); " \\
        "signal.pause()"
    null = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(null, number)
    os.execve(sys.executable, [sys.executable, "-I", "-S", "-c", code, sys.argv[1], sys.argv[2]], {})
    """
)


@pytest.fixture(autouse=True)
def _usable() -> None:
    if not spawner.usable:
        pytest.skip("no subreapers or no pidfds on this system")


@pytest.fixture
def left(tmp_path: Path) -> Iterator[Path]:
    """The file into which a hidden process writes its number; that process does not outlive the test."""
    file = tmp_path / "pid"
    yield file
    if file.exists() and is_alive(_child(file)):
        os.kill(int(file.read_text()), signal.SIGKILL)


def _child(file: Path) -> ChildProcess:
    pid = int(file.read_text())
    stat = read_stat(pid)
    return ChildProcess(pid, stat.start if stat else 0)


def _command(folder: Path, *argv: str, **env: str) -> Command:
    return Command(argv, {"PATH": os.environ["PATH"], **env}, folder, timeout=LONG)


def _hide(file: Path, how: str, *more: str, **env: str) -> Command:
    script = file.with_suffix(".py")
    script.write_text(HIDE)
    return _command(file.parent, sys.executable, "-I", "-S", str(script), str(file), how, *more, **env)


async def _until(file: Path, task: asyncio.Task[Exit]) -> None:
    await asyncio.to_thread(until, lambda: file.exists() or task.done(), LONG, "the hidden process")
    assert not task.done(), task


@pytest.mark.parametrize("how", ["plain", "deaf"])
def test_what_hides_ends_with_its_effect(left: Path, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No mark, no session, no parent: only the guard knows whose it is."""
    monkeypatch.setattr(proc, "PIPE_GRACE", LONG)
    monkeypatch.setattr(children, "GRACE", 0.2)

    async def go() -> None:
        task = asyncio.ensure_future(run_process(_hide(left, how), cancel=asyncio.Event()))
        await _until(left, task)
        hidden = _child(left)
        assert is_alive(hidden)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not is_alive(hidden)

    asyncio.run(go())


def test_what_a_finished_script_leaves_behind_hidden_is_ended(left: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A daemon is not an effect's result."""
    monkeypatch.setattr(proc, "PIPE_GRACE", 0.0)
    monkeypatch.setattr(children, "GRACE", 0.2)
    waits = f"while [ ! -e {left} ]; do sleep 0.01; done"
    script = left.with_suffix(".py")
    script.write_text(HIDE)
    shell = _command(left.parent, "sh", "-c", f"{sys.executable} -I -S {script} {left} deaf; {waits}")
    end = asyncio.run(run_process(shell, cancel=asyncio.Event()))
    assert (end.code, end.stdout) == (0, b"left\n")
    assert not is_alive(_child(left))


def test_a_cancelled_effect_takes_what_hid_with_it(left: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stop, timeout and a failed sibling end everything, not only what kept its marks."""
    monkeypatch.setattr(children, "GRACE", 0.2)

    async def go() -> Exit:
        cancel = asyncio.Event()
        task = asyncio.ensure_future(run_process(_hide(left, "deaf", "stay"), cancel=cancel))
        await _until(left, task)
        cancel.set()
        return await task

    assert asyncio.run(go()).cancelled
    assert not is_alive(_child(left))


def test_others_go_on_while_one_effect_is_ended(left: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each effect has a guard of its own: ending one touches no other."""
    monkeypatch.setattr(children, "GRACE", 0.2)

    async def go() -> Exit:
        cancel = asyncio.Event()
        other = asyncio.ensure_future(
            run_process(_command(left.parent, "sh", "-c", f"read x <{left}.go; echo fine"), cancel=asyncio.Event())
        )
        os.mkfifo(f"{left}.go")
        task = asyncio.ensure_future(run_process(_hide(left, "deaf", "stay"), cancel=cancel))
        await _until(left, task)
        cancel.set()
        await task
        assert not other.done()
        await asyncio.to_thread(Path(f"{left}.go").write_text, "go\n")
        return await other

    assert asyncio.run(go()).stdout == b"fine\n"


def test_the_next_owner_ends_what_hides_by_the_name_of_its_run(left: Path) -> None:
    """The first owner is alive but late, so its guard is there: told by the next one, it ends its processes."""

    async def go() -> Exit:
        command = _hide(left, "plain", "stay", BAILIWICK_RUN=str(left), BAILIWICK_EFFECT_KEY="some key")
        task = asyncio.ensure_future(run_process(command, cancel=asyncio.Event()))
        await _until(left, task)
        assert len(guards.find_guards({"BAILIWICK_RUN": str(left)})) == 1
        assert len(guards.find_guards({"BAILIWICK_RUN": str(left), "BAILIWICK_EFFECT_KEY": "some key"})) == 1
        assert guards.find_guards({"BAILIWICK_RUN": str(left), "BAILIWICK_EFFECT_KEY": "another"}) == {}
        assert guards.find_guards({"OTHER": "mark"}) == {}
        assert await end_children({"BAILIWICK_RUN": str(left)}, 0.2) == []
        assert not is_alive(_child(left))
        return await task

    assert asyncio.run(go()).code == -signal.SIGTERM
    assert guards.find_guards({"BAILIWICK_RUN": str(left)}) == {}


WORKER = textwrap.dedent(
    """
    import asyncio, os, sys
    from pathlib import Path
    from bailiwick.processes import children
    from bailiwick.runtime.kinds import Command
    from bailiwick.processes.proc import run_process
    children.GRACE = 0.2
    env = {"PATH": os.environ["PATH"], "BAILIWICK_RUN": sys.argv[1], "BAILIWICK_EFFECT_KEY": "k"}
    argv = (sys.executable, "-I", "-S", sys.argv[2], sys.argv[3], "deaf", "stay")
    print(os.getpid(), flush=True)
    asyncio.run(run_process(Command(argv, env, Path("/")), cancel=asyncio.Event()))
    """
)


def test_a_killed_worker_takes_everything_with_it(left: Path) -> None:
    """kill -9 asks nobody; the pipe to the guard closes all the same."""
    _hide(left, "deaf")
    mark = str(left)
    argv = [sys.executable, "-c", WORKER, mark, str(left.with_suffix(".py")), str(left)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as worker:
        until(left.exists, LONG, "the hidden process")
        hidden = _child(left)
        assert is_alive(hidden)
        worker.kill()
    assert asyncio.run(end_children({"BAILIWICK_RUN": mark}, 0.2)) == []
    assert not is_alive(hidden), "the list of guards was empty although one had something to end"
    assert guards.find_guards({"BAILIWICK_RUN": mark}) == {}


def test_a_killed_guard_leaves_its_processes_to_the_spawner(left: Path) -> None:
    """The one that was to end them is gone: they become the spawner's, which kills them."""

    async def go() -> Exit:
        mark = {"BAILIWICK_RUN": str(left)}
        command = _hide(left, "deaf", "stay", BAILIWICK_EFFECT_KEY="k", **mark)
        task = asyncio.ensure_future(run_process(command, cancel=asyncio.Event()))
        await _until(left, task)
        (guard,) = guards.find_guards(mark)
        os.kill(guard, signal.SIGKILL)
        return await task

    assert asyncio.run(go()).code == -signal.SIGKILL
    hidden = _child(left)
    until(lambda: not is_alive(hidden), LONG, "the end of what the guard left")


def test_a_killed_spawner_is_replaced_and_running_processes_stay(tmp_path: Path) -> None:
    """Whatever ends it, the next effect starts; those that run have guards of their own."""

    async def go() -> list[Exit]:
        os.mkfifo(tmp_path / "go")
        first = asyncio.ensure_future(
            run_process(_command(tmp_path, "sh", "-c", "echo up >&2; read x <go; echo $x"), cancel=asyncio.Event())
        )
        done = await run_process(_command(tmp_path, "echo", "one"), cancel=asyncio.Event())
        os.kill(spawner._pid, signal.SIGKILL)
        again = [await run_process(_command(tmp_path, "echo", "two"), cancel=asyncio.Event()) for _ in range(2)]
        await asyncio.to_thread((tmp_path / "go").write_text, "on\n")
        return [done, *again, await first]

    assert [end.stdout for end in asyncio.run(go())] == [b"one\n", b"two\n", b"two\n", b"on\n"]
    assert spawner.usable


def test_a_process_gets_the_files_it_is_given_and_no_others(tmp_path: Path) -> None:
    """A file that leaks into a script keeps pipes open and locks held."""
    with (tmp_path / "given").open("w+") as given, (tmp_path / "kept").open("w+") as kept:
        os.set_inheritable(kept.fileno(), True)
        number = given.fileno()
        script = f"echo hello >/proc/self/fd/{number}; ls /proc/self/fd"
        command = Command(("sh", "-c", script), {"PATH": os.environ["PATH"]}, tmp_path, pass_fds=(number,))
        end = asyncio.run(run_process(command, cancel=asyncio.Event()))
        assert (tmp_path / "given").read_text() == "hello\n"
    shown = {int(name) for name in end.stdout.split()}
    assert shown - {0, 1, 2, number} in ({3}, {4}, set()), "the listing itself has one file open"


def test_a_big_environment_and_many_at_once(tmp_path: Path) -> None:
    """More than a socket's buffer holds, and more processes than guards that wait."""
    value = "x" * 100_000
    env = {f"V{number}": value for number in range(8)}

    async def go() -> list[Exit]:
        command = _command(tmp_path, "sh", "-c", "echo ${#V7}", **env)
        return await asyncio.gather(*(run_process(command, cancel=asyncio.Event()) for _ in range(20)))

    assert {end.stdout for end in asyncio.run(go())} == {b"100000\n"}


def test_signals_are_as_a_program_expects_them(tmp_path: Path) -> None:
    """Python ignores SIGPIPE; a script that inherits that goes on writing into a closed pipe."""
    end = asyncio.run(run_process(_command(tmp_path, "grep", "Sig[IB]", "/proc/self/status"), cancel=asyncio.Event()))
    fields = dict(line.split() for line in end.stdout.splitlines() if line.startswith((b"SigI", b"SigB")))
    assert int(fields[b"SigIgn:"], 16) & (1 << 12 | 1 << 24) == 0
    assert int(fields[b"SigBlk:"], 16) == 0


def test_whether_processes_are_guarded_is_tried_and_doctor_tells(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a spawner marks have to do, and that is not said by anything else."""
    config = load_config(tmp_path, {}, environment=Environment({"BAILIWICK_HOME": str(tmp_path), "PATH": "/bin"}))

    def told() -> tuple[bool, str]:
        (finding,) = (one for one in examine(config) if one.name == "processes")
        return finding.ok, finding.found

    assert told() == (True, "children of a dead worker are found and ended, even detached ones")
    monkeypatch.setattr(spawning, "PROGRAM", tmp_path / "no spawner here.py")
    monkeypatch.setattr(spawning, "spawner", spawning.Spawner())
    good, found = told()
    assert not good
    assert "one that clears it may outlive the worker" in found
