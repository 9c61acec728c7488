"""Starting and ending the programs of a turn: clocks, bounds, leftovers."""

from __future__ import annotations

import asyncio
import errno
import hashlib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bailiwick.agents import launch
from bailiwick.agents.launch import Launcher
from bailiwick.agents.port import AgentEvent, ToolBegan, ToolEnded
from bailiwick.agents.settings import TurnTimeouts
from bailiwick.agents.streams import CUT, OutputBounds
from bailiwick.processes import children, proc
from tests.memory import peak_memory

if TYPE_CHECKING:
    from bailiwick.processes.command import Exit

PATIENT = TurnTimeouts(60.0, 60.0)
HANG = "import os, signal; os.write(1, b'ready\\n'); signal.pause()"
OnLine = Callable[[bytes], None]
MIB = 1 << 20


def _env() -> dict[str, str]:
    return {"PATH": os.environ["PATH"]}


def _run(
    argv: tuple[str, ...],
    cwd: Path,
    *,
    clocks: TurnTimeouts = PATIENT,
    stdin: bytes = b"",
    bounds: OutputBounds | None = None,
    on_line: Callable[[Launcher, bytes], None] = lambda _launcher, _line: None,
) -> Exit:
    """Run a program; `on_line` may use the launcher and the event that cancels it."""

    async def go() -> Exit:
        marks = {proc.EFFECT_MARK: f"{cwd.name}-{os.getpid()}"}
        with Launcher(clocks, asyncio.Event(), marks=marks, bounds=bounds) as launcher:
            return await launcher.spawn(argv, _env(), cwd, stdin, lambda line: on_line(launcher, line))

    return asyncio.run(go())


def _python(code: str) -> tuple[str, ...]:
    return (sys.executable, "-I", "-S", "-c", code)


def _is_gone(pid: int) -> bool:
    stat = children.read_stat(pid)
    return stat is None or stat.dead


@pytest.mark.parametrize("size", [1, 65_536, 65_537, 3_000_000])
def test_a_prompt_of_any_size_arrives_and_ends(tmp_path: Path, size: int) -> None:
    """A pipe holds 64 KiB; some agents hang on an input that is never closed."""
    prompt = (b'{"x": "\xc3\xbc"}\n' * (size // 10 + 1))[:size]
    said: list[bytes] = []
    code = "import hashlib, sys; print(hashlib.sha256(sys.stdin.buffer.read()).hexdigest())"
    _run(_python(code), tmp_path, stdin=prompt, on_line=lambda _launcher, line: said.append(line))
    assert said == [hashlib.sha256(prompt).hexdigest().encode()]


@pytest.mark.parametrize("script", ["true", "exec 0<&-; echo done", "head -c 1 >/dev/null; echo done"])
def test_a_program_that_does_not_read_its_prompt_is_no_problem(tmp_path: Path, script: str) -> None:
    """A closed pipe neither raises nor hangs."""
    assert _run(("sh", "-c", script), tmp_path, stdin=b"x" * 3_000_000).code == 0


def test_a_program_gets_exactly_its_environment_and_the_marks(tmp_path: Path) -> None:
    """Nothing of ours leaks in; the marks find its descendants."""
    said: list[bytes] = []
    _run(("env",), tmp_path, on_line=lambda _launcher, line: said.append(line))
    names = {line.partition(b"=")[0] for line in said}
    assert names == {b"PATH", b"BAILIWICK_EFFECT_KEY"}


def test_it_runs_in_its_own_session(tmp_path: Path) -> None:
    """Ctrl-C in our terminal is ours, and the whole group can be ended."""
    said: list[bytes] = []
    code = "import os; print(os.getsid(0) == os.getpid())"
    _run(_python(code), tmp_path, on_line=lambda _launcher, line: said.append(line))
    assert said == [b"True"]


def test_silence_ends_a_program(tmp_path: Path) -> None:
    """An agent that hangs must not hang the run."""
    end = _run(_python(HANG), tmp_path, clocks=TurnTimeouts(0.3, 60.0))
    assert (end.why, end.timed_out, end.code) == ("silence", True, -15)


def test_an_open_tool_call_stops_the_silence_clock(tmp_path: Path) -> None:
    """A test suite may run for an hour without a word; only the total clock still runs."""

    async def go() -> Exit:
        marks = {proc.EFFECT_MARK: f"{tmp_path.name}-{os.getpid()}"}
        with Launcher(TurnTimeouts(0.1, 0.8), asyncio.Event(), marks=marks) as launcher:
            launcher.watching(lambda _event: None)(ToolBegan("t", "Bash"))  # before the program begins, however slowly
            return await launcher.spawn(_python(HANG), _env(), tmp_path, b"", lambda _line: None)

    assert asyncio.run(go()).why == "total"


def test_the_silence_clock_runs_again_after_the_tool(tmp_path: Path) -> None:
    """Then it is the model that is silent."""

    def on_line(launcher: Launcher, _line: bytes) -> None:
        emit = launcher.watching(lambda _event: None)
        emit(ToolBegan("t", "Bash"))
        emit(ToolEnded("t"))

    assert _run(_python(HANG), tmp_path, clocks=TurnTimeouts(0.1, 60.0), on_line=on_line).why == "silence"


def test_events_pass_through_the_watch() -> None:
    """The launcher only listens."""

    async def go() -> list[AgentEvent]:
        seen: list[AgentEvent] = []
        emit = Launcher(PATIENT, asyncio.Event()).watching(seen.append)
        emit(ToolBegan("t", "Bash"))
        emit(ToolEnded("t", denied=True))
        return seen

    assert asyncio.run(go()) == [ToolBegan("t", "Bash"), ToolEnded("t", denied=True)]


@pytest.mark.parametrize(
    "script",
    ["while :; do echo noise >&2; done", "while :; do printf x; done"],
    ids=["standard error", "a line without an end"],
)
def test_noise_is_no_sign_of_life(tmp_path: Path, script: str) -> None:
    """An event is a line; a retry loop that complains for hours is as dead as a silent one."""
    assert _run(("sh", "-c", script), tmp_path, clocks=TurnTimeouts(0.3, 60.0)).why == "silence"


def test_the_total_clock_ends_a_program_that_talks(tmp_path: Path) -> None:
    """However busy it is."""
    assert _run(("yes",), tmp_path, clocks=TurnTimeouts(60.0, 0.3)).why == "total"


def test_the_total_is_that_of_the_turn_not_of_each_program(tmp_path: Path) -> None:
    """A compaction before the question uses up the same time."""

    async def go() -> Exit:
        with Launcher(TurnTimeouts(3600.0, 3600.0), asyncio.Event()) as launcher:
            await launcher.spawn(("true",), _env(), tmp_path, b"", lambda _line: None)
            launcher._deadline -= 3600.0  # the first one took an hour
            return await launcher.spawn(_python(HANG), _env(), tmp_path, b"", lambda _line: None)

    assert asyncio.run(go()).why == "total"


def test_a_cancel_ends_it(tmp_path: Path) -> None:
    """`stop --now`, or a sibling that failed."""

    async def go() -> Exit:
        cancel = asyncio.Event()
        with Launcher(PATIENT, cancel) as launcher:
            return await launcher.spawn(_python(HANG), _env(), tmp_path, b"", lambda _line: cancel.set())

    assert asyncio.run(go()).why == "cancelled"


def test_whoever_counts_the_money_can_end_it(tmp_path: Path) -> None:
    """And nothing of the turn is started after that."""

    async def go() -> tuple[Exit, Exit]:
        with Launcher(PATIENT, asyncio.Event()) as launcher:
            first = await launcher.spawn(_python(HANG), _env(), tmp_path, b"", lambda _line: launcher.end("budget"))
            second = await launcher.spawn(("touch", "started"), _env(), tmp_path, b"", lambda _line: None)
        return first, second

    first, second = asyncio.run(go())
    assert (first.why, second.why) == ("budget", "budget")
    assert not (tmp_path / "started").exists()


def test_nobody_is_left_not_even_the_deaf_and_the_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A child that ignores TERM and a grandchild in a session of its own are gone when the turn is over."""
    monkeypatch.setattr(children, "GRACE", 0.2)
    code = (
        "import os, signal, subprocess\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "hidden = subprocess.Popen(['sleep', '600'], start_new_session=True)\n"
        "os.write(1, f'{os.getpid()} {hidden.pid}\\n'.encode())\n"
        "while True: signal.pause()\n"
    )
    pids: list[int] = []
    end = _run(
        _python(code),
        tmp_path,
        clocks=TurnTimeouts(0.3, 60.0),
        on_line=lambda _launcher, line: pids.extend(map(int, line.split())),
    )
    assert end.code == -9
    assert [_is_gone(pid) for pid in pids] == [True, True]


def test_a_program_that_is_being_replaced_is_tried_again(tmp_path: Path) -> None:
    """Agents update themselves: for a moment the file is busy, or not there."""
    busy = tmp_path / "busy"
    busy.write_bytes(Path("/bin/true").read_bytes())
    busy.chmod(0o755)

    async def go() -> list[int]:
        loop = asyncio.get_running_loop()
        with Launcher(PATIENT, asyncio.Event()) as launcher:
            writer = os.open(busy, os.O_WRONLY)
            loop.call_later(launch.SPAWN_PAUSE / 2, os.close, writer)
            first = await launcher.spawn((str(busy),), _env(), tmp_path, b"", lambda _line: None)
            busy.rename(tmp_path / "away")
            loop.call_later(launch.SPAWN_PAUSE / 2, (tmp_path / "away").rename, busy)
            second = await launcher.spawn((str(busy),), _env(), tmp_path, b"", lambda _line: None)
        return [first.code, second.code]

    assert asyncio.run(go()) == [0, 0]


def test_a_program_that_stays_away_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three more tries, no more."""
    monkeypatch.setattr(launch, "SPAWN_PAUSE", 0.001)
    with pytest.raises(FileNotFoundError):
        _run((str(tmp_path / "nosuch"),), tmp_path)


@pytest.mark.parametrize("what", ["directory", "permission"])
def test_what_will_not_pass_is_not_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    """With a pause of an hour a second try would run into the timeout of this test."""
    monkeypatch.setattr(launch, "SPAWN_PAUSE", 3600.0)
    argv, cwd = (("true",), tmp_path / "gone") if what == "directory" else ((str(tmp_path),), tmp_path)
    with pytest.raises(OSError) as raised:
        _run(argv, cwd)
    assert raised.value.errno == (errno.ENOENT if what == "directory" else errno.EACCES)


@pytest.mark.parametrize("error", [KeyError("ours"), FileNotFoundError(errno.ENOENT, "ours")])
def test_an_error_while_reading_ends_the_program_and_is_raised_once(tmp_path: Path, error: Exception) -> None:
    """It is our bug: it must not be lost in the event loop, nor be taken for a program that is not there."""
    starts: list[bytes] = []

    def on_line(_launcher: Launcher, line: bytes) -> None:
        starts.append(line)
        raise error

    with pytest.raises(type(error), match="ours"):
        _run(_python(HANG), tmp_path, on_line=on_line)
    assert starts == [b"ready"]


def test_temporary_files_are_gone_after_the_turn(tmp_path: Path) -> None:
    """Also when it fails, and also those that somebody else removed."""
    file, folder, link = tmp_path / "prompt.md", tmp_path / "home", tmp_path / "link"
    kept = tmp_path / "kept"
    for path in (folder, kept):
        path.mkdir()
        (path / "inside").touch()
    file.touch()
    link.symlink_to(kept)

    async def go() -> None:
        with Launcher(PATIENT, asyncio.Event()) as launcher:
            for path in (file, folder, link, tmp_path / "never"):
                launcher.note(path)
            raise KeyError("the turn failed")

    with pytest.raises(KeyError):
        asyncio.run(go())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kept"]
    assert (kept / "inside").exists()


def test_lines_are_bounded_and_bytes_stay_bytes(tmp_path: Path) -> None:
    """Broken UTF-8 is for whoever reads the line to judge."""
    said: list[bytes] = []
    script = r"printf 'short\n\377\376\n'; head -c 100 /dev/zero | tr '\0' x; printf '\nlast'"
    _run(
        ("sh", "-c", script), tmp_path, bounds=OutputBounds(line=10), on_line=lambda _launcher, line: said.append(line)
    )
    assert said == [b"short", b"\xff\xfe", b"x" * 10 + CUT, b"last"]


FLOODS = {
    "an endless line": "head -c {size} /dev/zero",
    "short lines": "yes | head -c {size}",
    "broken text on both streams": "yes $'\\xff\\xfe' | head -c {size} | tee /dev/stderr",
    "long lines": "yes {line} | head -c {size}",
}


def _peak_of(flood: str, size: int, cwd: Path) -> tuple[Exit, list[bytes], int]:
    said: list[bytes] = []

    def on_line(_launcher: Launcher, line: bytes) -> None:
        said[:] = [line[:100]]

    script = FLOODS[flood].format(size=size, line="x" * 100_000) + "; printf '\\nanswer\\n'"
    with peak_memory() as peak:
        end = _run(("bash", "-c", script), cwd, clocks=TurnTimeouts(600.0, 600.0), on_line=on_line)
    return end, said, peak.bytes


@pytest.mark.parametrize("flood", FLOODS)
def test_a_flood_costs_little_memory_and_the_answer_after_it_arrives(tmp_path: Path, flood: str) -> None:
    """An agent that prints 200 MB must not take the orchestrator down."""
    end, said, peak = _peak_of(flood, 200 * MIB, tmp_path)
    assert (end.code, said) == (0, [b"answer"])
    assert peak < 64 * MIB


@pytest.mark.nightly
@pytest.mark.parametrize("flood", FLOODS)
def test_ten_gigabytes_cost_no_more(tmp_path: Path, flood: str) -> None:
    """The same with the size that people have met."""
    end, said, peak = _peak_of(flood, 10_000 * MIB, tmp_path)
    assert (end.code, said) == (0, [b"answer"])
    assert peak < 64 * MIB
