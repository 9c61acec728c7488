"""Codex: models and profiles, its own provider on the command line, and what its lines mean."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bailiwick.agents.backends.codex import CodexBackend, CodexStream, is_strict
from bailiwick.agents.port import AgentEvent, Compacted, Said, ToolBegan, ToolEnded, Trouble
from bailiwick.agents.profiles import CodexProfile, choose_model
from tests.unit.agents.recordings import cases, hostile_lines, summary
from tests.unit.agents.stage import Call, FakeIo, ask, make_turn, play

if TYPE_CHECKING:
    from bailiwick.ids import Json

ROWS = cases("codex")
THREAD = "01a1e0d8-e364-7c13-8de3-7918a90771ac"
STRICT = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": False}


def _call(tmp_path: Path, **fields: Any) -> Call:
    io = FakeIo()
    play(CodexBackend().turn, make_turn(tmp_path, **fields), io)
    return io.calls[0]


def _refused(tmp_path: Path, **fields: Any) -> Trouble:
    io = FakeIo()
    (event,) = play(CodexBackend().turn, make_turn(tmp_path, **fields), io)
    assert io.calls == []
    assert isinstance(event, Trouble)
    return event


def _settings(call: Call) -> dict[str, Any]:
    given = [value for flag, value in zip(call.argv, call.argv[1:], strict=False) if flag == "-c"]
    return tomllib.loads("\n".join(given))


@pytest.mark.parametrize("row", ROWS, ids=[row["case"] for row in ROWS])
def test_a_recording_means_what_it_was_found_to_mean(row: dict[str, str]) -> None:
    """Every way to end that was seen: last event, class, thread, use, tools."""
    assert summary("codex", CodexStream, row) == row


@pytest.mark.parametrize(
    ("model", "default", "choice"),
    [
        ("local", "", CodexProfile("local", "")),
        ("openrouter@x/y", "", CodexProfile("openrouter", "x/y")),
        ("openrouter@", "", CodexProfile("openrouter", "")),
        ("@slug", "", CodexProfile("", "slug")),
        ("@slug", "work", CodexProfile("work", "slug")),
        ("own@slug", "work", CodexProfile("own", "slug")),
        (None, "work", CodexProfile("work", "")),
        (None, "", CodexProfile("", "")),
        ("p@a@b", "", CodexProfile("p", "a@b")),
    ],
)
def test_a_model_is_a_profile_and_a_slug(model: str | None, default: str, choice: CodexProfile) -> None:
    """A profile that is named wins over the default one."""
    assert choose_model(model, default) == choice


def test_the_command_line_of_a_fresh_turn(tmp_path: Path) -> None:
    """The sandbox is named, as codex would be read-only; the dash makes it read its standard input."""
    call = _call(tmp_path, model="@slug")
    assert call.argv[:8] == ("codex", "exec", "--json", "--skip-git-repo-check", "-s", "workspace-write", "-m", "slug")
    assert call.argv[-1] == "-"
    assert call.stdin == b"Do {it}"
    assert _settings(call)["analytics"] == {"enabled": False}
    assert "model_provider" not in _settings(call)


def test_a_thread_is_resumed_with_the_flags_before(tmp_path: Path) -> None:
    """After `resume` the sandbox would be read-only again."""
    argv = _call(tmp_path, session=THREAD).argv
    assert argv[-3:] == ("resume", THREAD, "-")
    assert argv.index("-s") < argv.index("resume")


def test_a_session_that_is_no_thread_is_refused(tmp_path: Path) -> None:
    """Codex would take it for a name and silently begin a new thread."""
    assert _refused(tmp_path, session="yesterday").message.startswith("'yesterday' is not an id of a codex thread")


@pytest.mark.parametrize("place", ["CODEX_HOME", "HOME"])
def test_a_profile_that_exists_is_used(tmp_path: Path, place: str) -> None:
    """Operators keep theirs in the home of codex."""
    home = tmp_path / "home"
    folder = home if place == "CODEX_HOME" else home / ".codex"
    folder.mkdir(parents=True)
    (folder / "work.config.toml").touch()
    call = _call(tmp_path, model="work", env={"PATH": "", place: str(home)})
    assert call.after("--profile") == "work"
    assert "-m" not in call.argv


def test_the_default_profile_comes_from_the_environment(tmp_path: Path) -> None:
    """`CODEX_PROFILE` is for models that name none."""
    (tmp_path / "team.config.toml").touch()
    env = {"PATH": "", "CODEX_HOME": str(tmp_path), "CODEX_PROFILE": "team"}
    call = _call(tmp_path, model="@slug", env=env)
    assert (call.after("--profile"), call.after("-m")) == ("team", "slug")


def test_a_profile_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    """Codex would pass over it and ask somebody else's model."""
    trouble = _refused(tmp_path, model="nosuch")
    assert trouble.type == "spawn"
    assert str(tmp_path / ".codex" / "nosuch.config.toml") in trouble.message
    assert "is not the name of a codex profile" in _refused(tmp_path, model="../etc/x@y").message


def test_a_provider_of_ours_is_told_on_the_command_line(tmp_path: Path) -> None:
    """Nothing is written to the home of codex, and the token stands in no argument."""
    url = 'http://127.0.0.1:1/a"b/v1'
    call = _call(tmp_path, base_url=url, token="t0k3n", env={"PATH": "", "OPENAI_API_KEY": "real"})
    settings = _settings(call)
    assert settings["model_provider"] == "bailiwick"
    assert settings["model_providers"]["bailiwick"] == {
        "name": "bailiwick",
        "base_url": url,
        "wire_api": "responses",
        "request_max_retries": 0,
        "stream_max_retries": 0,
        "stream_idle_timeout_ms": 300_000,
        "env_key": "BAILIWICK_MODEL_TOKEN",
    }
    assert call.env == {"PATH": "", "BAILIWICK_MODEL_TOKEN": "t0k3n"}
    assert not any("t0k3n" in word for word in call.argv)


def test_permissions_come_from_the_options(tmp_path: Path) -> None:
    """An unknown sandbox is not passed on: codex has none that is looser than it is named."""
    assert _call(tmp_path, options={"sandbox": "read-only"}).after("-s") == "read-only"
    assert _call(tmp_path, options={"sandbox": "nosuch"}).after("-s") == "workspace-write"
    argv = _call(tmp_path, options={"skip_permissions": True}).argv
    assert "--dangerously-bypass-approvals-and-sandbox" in argv
    assert "-s" not in argv


def test_a_strict_schema_is_handed_over_in_a_file(tmp_path: Path) -> None:
    """Codex takes a file; it is there while codex runs and noted for removal."""
    read: list[Json] = []
    io = FakeIo(on_spawn=lambda call: read.append(json.loads(Path(call.after("--output-schema")).read_text())))
    play(CodexBackend().turn, make_turn(tmp_path, schema=STRICT, env={"PATH": "", "TMPDIR": str(tmp_path)}), io)
    assert read == [STRICT]
    assert [str(path) for path in io.notes] == [io.calls[0].after("--output-schema")]


def test_a_schema_that_cannot_be_written_is_a_trouble(tmp_path: Path) -> None:
    """A full or missing temporary directory is no exception of the backend."""
    trouble = _refused(tmp_path, schema=STRICT, env={"PATH": "", "TMPDIR": str(tmp_path / "gone")})
    assert trouble.type == "spawn"


@pytest.mark.parametrize(
    ("schema", "strict"),
    [
        (STRICT, True),
        ({"type": "string"}, True),
        ({"type": "array", "items": STRICT}, True),
        ({"anyOf": [STRICT, {"type": "null"}]}, True),
        ({**STRICT, "properties": {"n": STRICT}}, True),
        ({**STRICT, "additionalProperties": True}, False),
        ({**STRICT, "required": []}, False),
        ({"type": "object"}, False),
        ({**STRICT, "properties": {"n": {"type": "object"}}}, False),
        ({"type": "array", "items": {"type": "object"}}, False),
    ],
)
def test_only_a_schema_that_the_vendor_takes_is_handed_over(schema: Json, strict: bool) -> None:
    """Any other is answered with an error instead of an answer; it is left to the check of the answer."""
    assert is_strict(schema) is strict


def test_a_loose_schema_is_left_out(tmp_path: Path) -> None:
    """The same, on the command line."""
    assert "--output-schema" not in _call(tmp_path, schema={"type": "object"}).argv


def test_a_tool_without_a_beginning_still_begins_and_ends() -> None:
    """Some items are only shown when they are done."""
    events: list[AgentEvent] = []
    item = {"id": "item_1", "type": "file_change", "status": "completed"}
    CodexStream(events.append).see({"type": "item.completed", "item": item})
    assert events == [ToolBegan("item_1", "file_change"), ToolEnded("item_1")]


def test_thinking_and_plans_are_neither_tools_nor_answers() -> None:
    """Only a tool stops the silence clock."""
    events: list[AgentEvent] = []
    reader = CodexStream(events.append)
    for kind in ("reasoning", "todo_list", "error"):
        reader.see({"type": "item.started", "item": {"id": "i", "type": kind}})
        reader.see({"type": "item.completed", "item": {"id": "i", "type": kind, "text": "hm"}})
    reader.see({"type": "item.completed", "item": {"id": "i", "type": "agent_message", "text": "yes"}})
    assert events == [Said("yes")]


def test_it_cannot_compact(tmp_path: Path) -> None:
    """`/compact` is plain text to codex."""
    (event,) = play(CodexBackend().compact, make_turn(tmp_path), FakeIo())
    assert isinstance(event, Compacted)
    assert not event.ok


def test_a_check_asks_for_the_version_only() -> None:
    """A check is free."""
    io = FakeIo([b"codex-cli 0.166.0"])
    assert ask(CodexBackend().check, io) == (True, "codex 0.166.0 at codex")
    assert io.calls[0].argv == ("codex", "--version")


@given(st.lists(hostile_lines("codex"), max_size=8))
def test_no_line_of_any_shape_breaks_the_reader(lines: list[dict[str, Json]]) -> None:
    """The next version may print anything."""
    reader = CodexStream(lambda _event: None)
    for line in lines:
        reader.see(line)
