"""GitHub Copilot CLI: what it is told, and what its lines and its usage file mean."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bailiwick.agents.backends.copilot import CopilotBackend, CopilotStream
from bailiwick.agents.invoke import session_id
from bailiwick.agents.port import AgentEvent, Answered, Compacted, SessionKnown, Trouble, Used
from tests.unit.agents.recordings import FOLDER, cases, hostile_lines, lines_of, summary
from tests.unit.agents.stage import Call, FakeIo, ask, make_turn, play

if TYPE_CHECKING:
    from bailiwick.ids import Json

ROWS = cases("copilot")


def _call(tmp_path: Path, **fields: Any) -> Call:
    io = FakeIo()
    env = {"PATH": "", "TMPDIR": str(tmp_path), **fields.pop("env", {})}
    play(CopilotBackend().turn, make_turn(tmp_path, env=env, **fields), io)
    return io.calls[0]


@pytest.mark.parametrize("row", ROWS, ids=[row["case"] for row in ROWS])
def test_a_recording_means_what_it_was_found_to_mean(row: dict[str, str]) -> None:
    """Every way to end that was seen: last event, class, session, tools."""
    assert summary("copilot", CopilotStream, row) == row


def test_the_command_line_of_a_fresh_turn(tmp_path: Path) -> None:
    """The prompt goes to standard input: an argument has a longest length."""
    call = _call(tmp_path, model="gpt-6")
    assert call.argv[:-1] == (
        "copilot",
        "--output-format",
        "json",
        f"--session-id={session_id(make_turn(tmp_path))}",
        "--model",
        "gpt-6",
    )
    assert call.argv[-1].startswith(f"--usage-output-file={tmp_path}")
    assert call.stdin == b"Do {it}"
    assert call.env["COPILOT_AUTO_UPDATE"] == "false"
    assert "COPILOT_OFFLINE" not in call.env


def test_a_known_session_is_resumed(tmp_path: Path) -> None:
    """An unknown one is an error of copilot's, not a new session."""
    argv = _call(tmp_path, session="s-1").argv
    assert "--resume=s-1" in argv
    assert not any(word.startswith("--session-id") for word in argv)


def test_permissions_come_from_the_options(tmp_path: Path) -> None:
    """Nothing is granted by itself."""
    options = {"skip_permissions": True, "allowed_tools": ["write"], "disallowed_tools": ["shell(git push)"]}
    argv = _call(tmp_path, options=options).argv
    assert argv[4:7] == ("--allow-all-tools", "--allow-tool=write", "--deny-tool=shell(git push)")
    assert not any("allow" in word for word in _call(tmp_path).argv)


def test_a_provider_of_ours_replaces_every_login(tmp_path: Path) -> None:
    """With the broker nothing else is reachable, and no real token is there to be stolen."""
    real = {"GH_TOKEN": "real", "GITHUB_TOKEN": "real", "COPILOT_GITHUB_TOKEN": "real"}
    call = _call(tmp_path, base_url="http://127.0.0.1:1/v1", token="ours", model="m", env=real)
    assert {name: value for name, value in call.env.items() if name not in ("PATH", "TMPDIR")} == {
        "COPILOT_AUTO_UPDATE": "false",
        "COPILOT_OFFLINE": "true",
        "COPILOT_PROVIDER_BASE_URL": "http://127.0.0.1:1/v1",
        "COPILOT_PROVIDER_TYPE": "openai",
        "COPILOT_PROVIDER_WIRE_API": "completions",
        "COPILOT_PROVIDER_API_KEY": "ours",
        "COPILOT_MODEL": "m",
    }


def test_a_token_without_a_provider_is_the_login(tmp_path: Path) -> None:
    """For operators whose copilot can't be brokered."""
    assert _call(tmp_path, token="mine").env["COPILOT_GITHUB_TOKEN"] == "mine"


def test_the_session_is_known_as_soon_as_copilot_speaks(tmp_path: Path) -> None:
    """A turn that is cut off can be resumed; copilot itself names the session only at the end."""
    lines = lines_of("copilot", "sig.SIGKILL.tool")[:1]
    turn = make_turn(tmp_path)
    assert play(CopilotBackend().turn, turn, FakeIo(lines))[0] == SessionKnown(session_id(turn))


def test_tokens_come_from_the_usage_file(tmp_path: Path) -> None:
    """They stand nowhere else; the counts are the session's."""

    def write(call: Call) -> None:
        target = Path(call.argv[-1].partition("=")[2])
        target.write_bytes((FOLDER / "copilot" / "usage.json").read_bytes())

    io = FakeIo(lines_of("copilot", "plain"), on_spawn=write)
    events = play(CopilotBackend().turn, make_turn(tmp_path, env={"PATH": "", "TMPDIR": str(tmp_path)}), io)
    assert Used(2468, 112, 2000, None, cumulative=True, model="foo") in events
    assert events[-1] == Answered("Hello from the stub.")
    assert [path.parent for path in io.notes] == [tmp_path]


@pytest.mark.parametrize("content", [b"", b"[]", b'{"modelMetrics": 3}', b"\xff", None])
def test_a_broken_usage_file_is_unknown_usage(tmp_path: Path, content: bytes | None) -> None:
    """Unknown is not zero."""

    def write(call: Call) -> None:
        if content is not None:
            Path(call.argv[-1].partition("=")[2]).write_bytes(content)

    io = FakeIo(lines_of("copilot", "plain"), on_spawn=write)
    events = play(CopilotBackend().turn, make_turn(tmp_path, env={"PATH": "", "TMPDIR": str(tmp_path)}), io)
    assert not any(isinstance(event, Used) for event in events)


def test_without_a_temporary_directory_the_turn_does_not_begin(tmp_path: Path) -> None:
    """No exception leaves a backend."""
    io = FakeIo()
    env = {"PATH": "", "TMPDIR": str(tmp_path / "gone")}
    (event,) = play(CopilotBackend().turn, make_turn(tmp_path, env=env), io)
    assert isinstance(event, Trouble)
    assert (event.type, io.calls) == ("spawn", [])


def test_the_time_of_a_reset_is_kept_from_the_failed_call() -> None:
    """The final error has lost it."""
    events: list[AgentEvent] = []
    reader = CopilotStream(events.append)
    body = '{"type":"usage_limit_reached","message":"The limit","resets_at":1794784645}'
    reader.see({"type": "model.call_failure", "data": {"statusCode": 429, "errorMessage": body}})
    reader.see({"type": "session.error", "data": {"errorType": "rate_limit", "message": "m", "statusCode": 429}})
    reader.see({"type": "result", "exitCode": 1})
    notice = Trouble("The limit", 429, "usage_limit_reached", resets_at=1794784645, final=False)
    assert events == [notice]
    assert reader.outcome == Trouble("m", 429, "rate_limit", resets_at=1794784645)


def test_an_interrupted_turn_is_no_answer() -> None:
    """Ended by a signal it may still report success, with what it said before its last tool call."""
    reader = CopilotStream(lambda _event: None)
    reader.see({"type": "assistant.message", "data": {"content": "Now I run the tests."}})
    reader.see({"type": "abort", "data": {"reason": "user_initiated"}})
    reader.see({"type": "result", "exitCode": 0})
    assert isinstance(reader.outcome, Trouble)


def test_it_cannot_compact(tmp_path: Path) -> None:
    """`/compact` is swallowed by copilot without a trace."""
    (event,) = play(CopilotBackend().compact, make_turn(tmp_path), FakeIo())
    assert isinstance(event, Compacted)
    assert not event.ok


def test_a_check_asks_for_the_version_only() -> None:
    """A check is free."""
    io = FakeIo([b"GitHub Copilot CLI 1.0.102.", b"Run 'copilot update' to check for updates."])
    assert ask(CopilotBackend().check, io) == (True, "copilot 1.0.102 at copilot")
    assert io.calls[0].argv == ("copilot", "--version")


@given(st.lists(hostile_lines("copilot"), max_size=8))
def test_no_line_of_any_shape_breaks_the_reader(lines: list[dict[str, Json]]) -> None:
    """The next version may print anything."""
    reader = CopilotStream(lambda _event: None)
    for line in lines:
        reader.see(line)
