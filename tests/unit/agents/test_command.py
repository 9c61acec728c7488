"""Any program as an agent: its template, its prompt, its answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bailiwick.agents.backends import command
from bailiwick.agents.backends.command import CommandBackend
from bailiwick.agents.port import AgentEvent, Answered, Compacted, ProcessEnded, Trouble
from bailiwick.agents.settings import AgentSettings
from bailiwick.processes.command import Exit
from tests.unit.agents.stage import Call, FakeIo, ask, make_turn, play


def _call(template: str, tmp_path: Path, **fields: Any) -> Call:
    io = FakeIo()
    play(CommandBackend(template).turn, make_turn(tmp_path, **fields), io)
    return io.calls[0]


def _last(tmp_path: Path, io: FakeIo) -> AgentEvent:
    (event,) = play(CommandBackend("agent").turn, make_turn(tmp_path), io)
    return event


def test_a_template_is_split_like_a_shell_line_and_filled_in_afterwards(tmp_path: Path) -> None:
    """A value with blanks, quotes or a semicolon stays within its argument: there is no shell."""
    call = _call("agent --model={model} 'two words' {cwd}", tmp_path, model="a b'; rm -rf / #", prompt="p")
    assert call.argv == ("agent", "--model=a b'; rm -rf / #", "two words", str(tmp_path))
    assert call.stdin == b"p"


def test_what_is_filled_in_is_no_template_again(tmp_path: Path) -> None:
    """Values are data."""
    assert _call("agent {model} {other} {}", tmp_path, model="{cwd}").argv == ("agent", "{cwd}", "{other}", "{}")


def test_without_a_model_the_word_is_empty(tmp_path: Path) -> None:
    """The word stays: the program counts its arguments."""
    assert _call("agent {model} x", tmp_path).argv == ("agent", "", "x")


def test_a_prompt_file_holds_the_prompt_and_is_noted_for_removal(tmp_path: Path) -> None:
    """The file is there while the program runs; standard input is then empty."""
    prompt = 'ünï {model} "quotes" \n' * 1000
    read: list[bytes] = []
    io = FakeIo(on_spawn=lambda call: read.append(Path(call.argv[1].removeprefix("@")).read_bytes()))
    turn = make_turn(tmp_path, prompt=prompt, env={"PATH": "", "TMPDIR": str(tmp_path)})
    play(CommandBackend("agent @{prompt_file}").turn, turn, io)
    assert read == [prompt.encode()]
    assert io.calls[0].stdin == b""
    assert [f"@{path}" for path in io.notes] == [io.calls[0].argv[1]]
    assert io.notes[0].stat().st_mode & 0o077 == 0


def test_the_output_is_the_answer(tmp_path: Path) -> None:
    """Line by line, blank lines and broken bytes included."""
    assert _last(tmp_path, FakeIo([b"one", b"", b"tw\xffo"])) == Answered("one\n\ntw\ufffdo")
    assert _last(tmp_path, FakeIo()) == Answered("")


def test_an_answer_has_a_longest_length(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest is read and dropped."""
    monkeypatch.setattr(command, "ANSWER_BOUND", 10)
    assert _last(tmp_path, FakeIo([b"12345", b"678901234", b"x"])) == Answered("12345\n6789")


@pytest.mark.parametrize(
    ("code", "stderr", "message"),
    [
        (3, b"", "the command ended with code 3"),
        (1, b"noise\nbroken\n", "the command ended with code 1: noise\nbroken"),
        (-9, b"", "the command ended with code -9"),
    ],
)
def test_a_non_zero_exit_fails_the_turn_with_the_code(tmp_path: Path, code: int, stderr: bytes, message: str) -> None:
    """Whatever it printed before is no answer."""
    io = FakeIo([b"looks like an answer"], Exit(code, b"", stderr, 0.1))
    assert _last(tmp_path, io) == Trouble(message, type="exit")


def test_what_ended_it_from_outside_is_said(tmp_path: Path) -> None:
    """A clock or a person, not the program."""
    io = FakeIo([b"half"], Exit(-15, b"", b"e", 0.1, timed_out=True, why="silence"))
    assert _last(tmp_path, io) == ProcessEnded(-15, "e", "silence")


@pytest.mark.parametrize(
    ("template", "words"),
    [("", "no command for the agent is set"), ("agent 'open", "can't be split into words"), ("  ", "no command")],
)
def test_a_template_that_is_none_is_a_trouble(tmp_path: Path, template: str, words: str) -> None:
    """Nothing is started."""
    io = FakeIo()
    (event,) = play(CommandBackend(template).turn, make_turn(tmp_path), io)
    assert isinstance(event, Trouble)
    assert (event.type, io.calls) == ("spawn", [])
    assert words in event.message


def test_a_program_that_cannot_be_started_is_a_trouble(tmp_path: Path) -> None:
    """No exception leaves a backend."""
    io = FakeIo(error=PermissionError(13, "Permission denied"))
    assert _last(tmp_path, io) == Trouble("'agent' could not be started: Permission denied", type="spawn")


def test_a_check_looks_for_the_program_and_runs_nothing(tmp_path: Path) -> None:
    """What an unknown program does with any flag nobody knows."""
    program = tmp_path / "agent"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    io = FakeIo()
    assert ask(CommandBackend(f"{program} {{model}}").check, io) == (True, f"command: {program}")
    assert ask(CommandBackend("nosuch-agent").check, io) == (
        False,
        "command: 'nosuch-agent' was not found on the PATH",
    )
    assert ask(CommandBackend("").check, io)[0] is False
    assert io.calls == []


def test_the_template_comes_from_the_settings() -> None:
    """`AGENT_CMD` and the configuration end up there."""
    assert ask(CommandBackend.for_settings(AgentSettings(command="/bin/sh -c")).check, FakeIo()) == (
        True,
        "command: /bin/sh",
    )


def test_it_cannot_compact(tmp_path: Path) -> None:
    """It has no session."""
    assert play(CommandBackend("x").compact, make_turn(tmp_path), FakeIo()) == [
        Compacted(False, "a command has no session")
    ]
