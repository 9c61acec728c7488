"""`bailiwick agents`, `login` and `limits` as a person meets them."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner, Result

from bailiwick.agents.backends.claude import ClaudeBackend
from bailiwick.agents.broker.windows import VendorLimits
from bailiwick.agents.broker_access import BrokerAccess
from bailiwick.agents.port import LimitSeen, Turn
from bailiwick.cli.commands import agents as cli
from bailiwick.clock import ManualClock
from bailiwick.config.service import load_config
from bailiwick.config.variables import Environment
from bailiwick.errors import NotReady, UsageError
from bailiwick.journal.opening import opened_store

if TYPE_CHECKING:
    from click import Command

    from bailiwick.ids import Json

CLAUDE = "#!/bin/sh\necho '2.1.325 (Claude Code)'\n"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A person's home with one agent program on the path and nothing else."""
    monkeypatch.setenv("BAILIWICK_HOME", str(tmp_path / "home"))
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "claude").write_text(CLAUDE)
    (programs / "claude").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "CLAUDE_CODE_OAUTH_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OLLAMA_HOST", "http://127.0.0.1:9")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "home"


def run(command: Command, *words: str) -> Result:
    done = CliRunner().invoke(command, words)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done


def test_agents_tells_what_is_found_and_how_it_is_paid(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line per backend; a key is named by its variable and never printed."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-never-shown")
    done = run(cli.agents)
    lines = {line[2:].split()[0]: line for line in done.stdout.splitlines() if line.startswith(("✓", "✗"))}
    assert "✓*claude" in done.stdout
    assert "2.1.325" in lines["claude"]
    assert "model sonnet · API key (ANTHROPIC_API_KEY), metered, brokered" in lines["claude"]
    assert lines["codex"].startswith("✗ ")
    assert "no credential" in lines["codex"]
    assert {"claude", "codex", "copilot", "openai", "ollama", "command", "simulate"} <= set(lines)
    assert "sk-never-shown" not in done.stdout


def test_agents_as_json_is_one_document(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other programs read it; what holds a secret isn't in it."""
    monkeypatch.setenv("CLAUDE_CODE_OAUTH_TOKEN", "never-shown")
    done = run(cli.agents, "--json")
    found = {each["name"]: each for each in json.loads(done.stdout)["backends"]}
    claude = found["claude"]
    assert (claude["ok"], claude["chosen"], claude["model"]) == (True, True, "sonnet")
    assert (claude["kind"], claude["billing"], claude["access"]) == ("oauth", "subscription", "brokered")
    assert (found["codex"]["ok"], found["codex"]["access"]) == (False, "none")
    assert "never-shown" not in done.stdout


def test_agents_says_that_a_credential_is_exposed(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the agent's own process holds can be stolen by what the agent reads."""
    monkeypatch.setenv("CLAUDE_CODE_USE_BEDROCK", "1")
    claude = next(each for each in json.loads(run(cli.agents, "--json").stdout)["backends"] if each["name"] == "claude")
    assert (claude["kind"], claude["access"]) == ("bedrock", "exposed")


def test_a_backend_whose_turn_would_be_refused_has_no_check_mark(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The list and the turn ask the same function: installed is not yet usable, and the line says what to do."""

    def claude() -> dict[str, Json]:
        listed = json.loads(run(cli.agents, "--json").stdout)["backends"]
        return next(each for each in listed if each["name"] == "claude")

    def refused() -> str:
        broker_access = BrokerAccess(load_config(Path.cwd(), {}), ManualClock())
        turn = Turn("k", "p", None, home, dict(os.environ))
        try:
            asyncio.run(_opened(broker_access, turn))
        except NotReady as error:
            return error.sentence
        return ""

    exposed = {"CLAUDE_CODE_USE_BEDROCK": "1", "AWS_REGION": "eu-west-1"}
    allowed = {**exposed, "BAILIWICK_AGENTS_ALLOW_EXPOSED_CREDENTIALS": "true"}
    for env in ({}, exposed, allowed, {"CLAUDE_CODE_USE_BEDROCK": "1"}, {"ANTHROPIC_API_KEY": "k"}):
        with monkeypatch.context() as patch:
            for name, value in env.items():
                patch.setenv(name, value)
            why = refused()
            assert claude()["ok"] is not bool(why)
            assert why in claude()["said"]


async def _opened(broker_access: BrokerAccess, turn: Turn) -> None:
    try:
        broker_access.revoke(await broker_access.open(ClaudeBackend(), turn, lambda: None))
    finally:
        await broker_access.close()


def test_a_secret_that_can_not_be_read_spoils_one_line_only(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other backends can still be used."""
    (home / "config").mkdir(parents=True)
    text = "credentials: {x: {backend: codex, token: '${secret:env:NOT_SET}'}}\n"
    (home / "config" / "config.yaml").write_text(text)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-never-shown")
    found = {each["name"]: each for each in json.loads(run(cli.agents, "--json").stdout)["backends"]}
    assert "NOT_SET is not set" in found["codex"]["said"]
    assert found["claude"]["ok"]


@pytest.mark.parametrize(("backend", "code"), [("ollama", "BW265"), ("nosuch", "BW265"), ("claude", "BW266")])
def test_a_login_needs_a_program_that_has_one_and_a_terminal(home: Path, backend: str, code: str) -> None:
    """Without a person nobody could answer what the program asks."""
    with pytest.raises(UsageError) as caught:
        run(cli.login, backend)
    assert caught.value.code == code


def test_a_login_has_a_home_of_its_own_and_sees_no_key(home: Path, tmp_path: Path) -> None:
    """The person's own login is neither used nor changed, and a key would make the login pointless."""
    names = {"BAILIWICK_HOME": str(home), "PATH": os.environ["PATH"], "HOME": "/nobody", "ANTHROPIC_API_KEY": "k"}
    names |= {"CLAUDE_CODE_OAUTH_TOKEN": "t", "XDG_CONFIG_HOME": "/elsewhere"}
    config = load_config(tmp_path, {}, environment=Environment(names))
    argv, env = cli.login_command("claude", config, Environment(names))
    there = home / "state" / "logins" / "claude"
    assert argv == [str(tmp_path / "bin" / "claude"), "auth", "login"]
    assert (env["HOME"], env["CLAUDE_CONFIG_DIR"]) == (str(there), str(there / ".claude"))
    assert {"ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN", "XDG_CONFIG_HOME"}.isdisjoint(env)
    assert (there.stat().st_mode & 0o777, (there / ".claude").stat().st_mode & 0o777) == (0o700, 0o700)


def test_limits_says_what_to_do_when_nothing_was_seen(home: Path) -> None:
    """An empty table would look like a fault."""
    assert "no limits were seen yet" in run(cli.limits).stdout
    assert json.loads(run(cli.limits, "--json").stdout)["limits"] == []


def test_limits_shows_use_and_reset_per_credential(home: Path) -> None:
    """How much of a window is left decides whether to start something tonight."""
    state = home / "state"
    state.mkdir(parents=True)

    async def seen() -> None:
        async with opened_store(state, ManualClock()) as store:
            limits = VendorLimits(store, state)
            await limits.remember("work", [LimitSeen(False, "five_hour", 0.2, 4e9)], 1.7e9)
            more = [LimitSeen(True, "five_hour", 0.384, 4e9), LimitSeen(False, "week", None, 1e9)]
            await limits.remember("work", more, 1.8e9)
            await limits.remember("key", [LimitSeen(False, "requests", 0.5)], 1.8e9)

    asyncio.run(seen())
    key, five, week = run(cli.limits).stdout.splitlines()
    assert key.split("  ")[0] == "key"
    assert "five hour" in five
    assert "38% used, stops us" in five
    assert "resets 2096-10-0" in five
    assert "began again" in week
    shown = json.loads(run(cli.limits, "--json").stdout)["limits"]
    assert [(each["credential"], each["window"], each["used"]) for each in shown] == [
        ("key", "requests", 0.5),
        ("work", "five_hour", 0.384),
        ("work", "week", None),
    ]
