"""Claude Code: what it is told, and what its lines mean."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bailiwick.agents.backends.claude import ClaudeBackend, ClaudeStream
from bailiwick.agents.invoke import session_id
from bailiwick.agents.port import (
    AgentEvent,
    Answered,
    Compacted,
    LimitSeen,
    ProcessEnded,
    Said,
    SessionKnown,
    ToolBegan,
    Trouble,
    Used,
)
from bailiwick.processes.command import Exit
from tests.unit.agents.recordings import cases, hostile_lines, lines_of, summary
from tests.unit.agents.stage import Call, FakeIo, ask, make_turn, play

if TYPE_CHECKING:
    from pathlib import Path

    from bailiwick.ids import Json

ROWS = cases("claude")
MISSING = "No such file or directory"
INSTALL = "npm install -g @anthropic-ai/claude-code"
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}}


def _call(tmp_path: Path, **fields: Any) -> Call:
    io = FakeIo()
    play(ClaudeBackend().turn, make_turn(tmp_path, **fields), io)
    return io.calls[0]


def _compaction(tmp_path: Path, case: str) -> AgentEvent:
    turn = make_turn(tmp_path, session="aaaaaaaa-0000-4000-8000-000000000001")
    io = FakeIo(lines_of("claude", case))
    event = play(ClaudeBackend().compact, turn, io)[-1]
    assert io.calls[0].stdin == b"/compact"
    assert io.calls[0].after("--resume") == turn.session
    return event


@pytest.mark.parametrize("row", ROWS, ids=[row["case"] for row in ROWS])
def test_a_recording_means_what_it_was_found_to_mean(row: dict[str, str]) -> None:
    """Both versions, every way to end that was seen: last event, class, session, use, tools, limits."""
    assert summary("claude", ClaudeStream, row) == row


def test_a_structured_answer_is_handed_on() -> None:
    """What the tool call gave is better than its text."""
    events: list[AgentEvent] = []
    reader = ClaudeStream(events.append)
    for line in lines_of("claude", "schema.so_ok"):
        reader.see(json.loads(line))
    assert isinstance(reader.outcome, Answered)
    assert reader.outcome.structured == {"answer": "forty-two", "n": 42}


def test_the_command_line_of_a_fresh_turn(tmp_path: Path) -> None:
    """Each flag was seen to work; the prompt is no argument, since an argument has a longest length."""
    call = _call(tmp_path, max_usd=1.5, schema=SCHEMA)
    assert call.argv == (
        "claude",
        "-p",
        "--output-format",
        "stream-json",
        "--verbose",
        "--session-id",
        session_id(make_turn(tmp_path)),
        "--model",
        "sonnet",
        "--max-budget-usd",
        "1.5",
        "--json-schema",
        json.dumps(SCHEMA),
        "--setting-sources",
        "user",
        "--strict-mcp-config",
    )
    assert (call.stdin, call.cwd) == (b"Do {it}", tmp_path)


def test_a_session_begins_under_an_id_that_the_same_attempt_has_again(tmp_path: Path) -> None:
    """After a crash the session is found again; another attempt is another session."""
    first = session_id(make_turn(tmp_path))
    assert first == session_id(make_turn(tmp_path, prompt="other"))
    assert len({first, session_id(make_turn(tmp_path, attempt=2)), session_id(make_turn(tmp_path, key="k2"))}) == 3


def test_a_known_session_is_resumed(tmp_path: Path) -> None:
    """Both flags together are refused by claude."""
    argv = _call(tmp_path, session="s-1", model="opus").argv
    assert argv[argv.index("--resume") :][:2] == ("--resume", "s-1")
    assert "--session-id" not in argv
    assert argv[argv.index("--model") + 1] == "opus"


def test_a_schema_that_fits_no_argument_is_left_out(tmp_path: Path) -> None:
    """The program could not even be started with it; the answer is checked anyway."""
    big = {"type": "object", "description": "x" * 200_000}
    assert "--json-schema" not in _call(tmp_path, schema=big).argv


def test_permissions_come_from_the_options(tmp_path: Path) -> None:
    """What an agent may do is decided outside; nothing is granted by itself."""
    options = {
        "skip_permissions": True,
        "permission_mode": "acceptEdits",
        "allowed_tools": ["Bash(git *)", "Edit"],
        "disallowed_tools": ["WebFetch"],
        "repository_settings": True,
        "sandboxed": True,
    }
    call = _call(tmp_path, options=options)
    assert call.argv[-8:] == (
        "--dangerously-skip-permissions",
        "--permission-mode",
        "acceptEdits",
        "--allowedTools",
        "Bash(git *)",
        "Edit",
        "--disallowedTools",
        "WebFetch",
    )
    assert "--setting-sources" not in call.argv
    assert call.env["IS_SANDBOX"] == "1"
    plain = _call(tmp_path)
    assert "IS_SANDBOX" not in plain.env
    assert not any("skip" in word or "Tools" in word for word in plain.argv)


@pytest.mark.parametrize(
    ("auth", "name"),
    [("", "ANTHROPIC_API_KEY"), ("auth_token", "ANTHROPIC_AUTH_TOKEN"), ("oauth", "CLAUDE_CODE_OAUTH_TOKEN")],
)
def test_a_token_of_ours_replaces_every_other_credential(tmp_path: Path, auth: str, name: str) -> None:
    """A real key beside the broker's token would be in the agent's reach."""
    real = {"ANTHROPIC_API_KEY": "real", "ANTHROPIC_AUTH_TOKEN": "real", "CLAUDE_CODE_OAUTH_TOKEN": "real", "PATH": ""}
    call = _call(tmp_path, env=real, base_url="http://127.0.0.1:1", token="ours", options={"auth": auth})
    assert {key: value for key, value in call.env.items() if value in ("real", "ours")} == {name: "ours"}
    assert call.env["ANTHROPIC_BASE_URL"] == "http://127.0.0.1:1"


def test_its_own_retries_updates_and_side_traffic_are_off(tmp_path: Path) -> None:
    """The ladder decides; a program that replaces itself in mid-run is another program."""
    env = _call(tmp_path, env={"PATH": "", "KEPT": "1"}).env
    assert env["CLAUDE_CODE_MAX_RETRIES"] == "0"
    assert env["CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC"] == "1"
    assert env["DISABLE_AUTOUPDATER"] == "1"
    assert env["KEPT"] == "1"
    assert "ANTHROPIC_BASE_URL" not in env


def test_a_session_id_in_use_names_the_session_to_resume(tmp_path: Path) -> None:
    """It is ours from before a crash: the engine can go on with it."""
    said = b"Error: Session ID aaaaaaaa-0000-4000-8000-000000000001 is already in use.\n"
    events = play(ClaudeBackend().turn, make_turn(tmp_path), FakeIo(end=Exit(1, b"", said, 0.1)))
    assert events[0] == SessionKnown("aaaaaaaa-0000-4000-8000-000000000001")
    assert isinstance(events[1], Trouble)
    assert events[1].type == "session_in_use"


def test_a_compaction_that_worked_says_so(tmp_path: Path) -> None:
    """The boundary is the proof."""
    assert _compaction(tmp_path, "sess.7-compact") == Compacted(True)


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("sess.9c-compact-overflow", "Compaction failed · conversation could not be reduced below the context limit"),
        ("sess.9b-compact-error529", "Error during compaction: API Error: Repeated 529 Overloaded errors."),
    ],
)
def test_a_compaction_that_failed_is_told_from_its_words(tmp_path: Path, case: str, words: str) -> None:
    """Claude exits with 0 and calls it a success."""
    event = _compaction(tmp_path, case)
    assert isinstance(event, Compacted)
    assert (event.ok, event.text[: len(words)]) == (False, words)


def test_a_compaction_without_a_session_or_a_program_fails_plainly(tmp_path: Path) -> None:
    """There is nothing to compact, or nobody to do it."""
    alone = FakeIo()
    assert play(ClaudeBackend().compact, make_turn(tmp_path), alone)[-1] == Compacted(
        False, "there is no session to make shorter"
    )
    assert alone.calls == []
    missing = FakeIo(error=FileNotFoundError(2, MISSING))
    last = play(ClaudeBackend().compact, make_turn(tmp_path, session="s"), missing)[-1]
    assert isinstance(last, Compacted)
    assert "could not be started" in last.text


def test_a_compaction_that_was_cut_off_says_by_what(tmp_path: Path) -> None:
    """Who cancelled must not see a failed compaction only."""
    io = FakeIo(end=Exit(-15, b"", b"", 0.1, cancelled=True, why="cancelled"))
    events = play(ClaudeBackend().compact, make_turn(tmp_path, session="s"), io)
    assert events[0] == ProcessEnded(-15, "", "cancelled")
    assert isinstance(events[-1], Compacted)


def test_an_error_that_our_own_signal_caused_is_no_trouble(tmp_path: Path) -> None:
    """What ended the turn is the clock, not what claude says about being ended."""
    result = b'{"type":"result","is_error":true,"subtype":"error_during_execution","errors":["aborted"]}'
    io = FakeIo([result], Exit(0, b"", b"", 9.0, timed_out=True, why="total"))
    assert play(ClaudeBackend().turn, make_turn(tmp_path), io)[-1] == ProcessEnded(0, "", "total")


def test_an_invented_price_is_unknown() -> None:
    """Unknown is not zero, and not a guess either."""
    events: list[AgentEvent] = []
    use = {"inputTokens": 5, "cacheReadInputTokens": 3, "outputTokens": 2, "costBasis": "unknown"}
    ClaudeStream(events.append).see(
        {"type": "result", "is_error": False, "modelUsage": {"m": use}, "total_cost_usd": 3}
    )
    assert events == [Used(8, 2, 3, None, cumulative=True, model="m")]


def test_the_order_of_the_fields_of_a_line_does_not_matter() -> None:
    """The type is not always first."""
    events: list[AgentEvent] = []
    reader = ClaudeStream(events.append)
    line = {"message": {"content": [{"text": "hi", "type": "text"}]}, "session_id": "s", "type": "assistant"}
    reader.see(line)
    assert events == [SessionKnown("s"), Said("hi")]


def test_what_a_subagent_says_is_not_the_agents_word() -> None:
    """Its tools count for the silence clock all the same."""
    events: list[AgentEvent] = []
    blocks = [{"type": "text", "text": "inner"}, {"type": "tool_use", "id": "t", "name": "Bash"}]
    ClaudeStream(events.append).see({"type": "assistant", "parent_tool_use_id": "p", "message": {"content": blocks}})
    assert events == [ToolBegan("t", "Bash")]


def test_a_limit_without_numbers_is_no_news() -> None:
    """Claude sends an empty one with each answer."""
    events: list[AgentEvent] = []
    reader = ClaudeStream(events.append)
    reader.see({"type": "rate_limit_event", "rate_limit_info": {"status": "allowed", "isUsingOverage": False}})
    assert events == []
    info = {"status": "rejected", "rateLimitType": "seven_day", "resetsAt": 7}
    reader.see({"type": "rate_limit_event", "rate_limit_info": info})
    assert events == [LimitSeen(True, "week", None, 7)]


def test_a_missing_program_is_a_trouble_of_the_spawn(tmp_path: Path) -> None:
    """No exception leaves a backend."""
    io = FakeIo(error=FileNotFoundError(2, MISSING))
    (event,) = play(ClaudeBackend().turn, make_turn(tmp_path), io)
    assert event == Trouble("'claude' could not be started: " + MISSING, type="spawn")


def test_a_missing_directory_is_not_blamed_on_the_program(tmp_path: Path) -> None:
    """The system says the same of both."""
    io = FakeIo(error=FileNotFoundError(2, MISSING))
    (event,) = play(ClaudeBackend().turn, make_turn(tmp_path / "gone"), io)
    assert event == Trouble(f"the directory {tmp_path / 'gone'} does not exist", type="spawn")


@pytest.mark.parametrize(
    ("io", "answer"),
    [
        (FakeIo([b"2.1.325 (Claude Code)"]), (True, "claude 2.1.325 at claude")),
        (FakeIo([b"9.9.9"]), (True, "claude 9.9.9 at claude (untested: 2.1.325 was tested)")),
        (FakeIo([b"?"]), (False, "claude: claude --version ended with code 0 and named no version")),
        (
            FakeIo(error=FileNotFoundError(2, MISSING)),
            (False, f"claude: 'claude' could not be started: {MISSING}; install it with: {INSTALL}"),
        ),
    ],
)
def test_a_check_asks_for_the_version_only(io: FakeIo, answer: tuple[bool, str]) -> None:
    """A check is free: it asks no model."""
    assert ask(ClaudeBackend().check, io) == answer
    assert [call.argv[1:] for call in io.calls] == [("--version",)]


@given(st.lists(hostile_lines("claude"), max_size=8))
def test_no_line_of_any_shape_breaks_the_reader(lines: list[dict[str, Json]]) -> None:
    """The next version may print anything; a turn then fails, the orchestrator doesn't."""
    reader = ClaudeStream(lambda _event: None)
    for line in lines:
        reader.see(line)
