"""Codex profiles: which there are, where their prompts go, and what of them an agent sees."""

from __future__ import annotations

import asyncio
import tomllib
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bailiwick.agents.backends.codex import CodexBackend
from bailiwick.agents.broker_access import BrokerAccess, TurnAccess
from bailiwick.agents.port import Turn
from bailiwick.agents.profiles import carry_profiles, read_profiles
from bailiwick.clock import ManualClock
from bailiwick.config.service import load_config
from bailiwick.errors import NotReady, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

HOUSE = "http://127.0.0.1:8081/v1"
MINE = f"""
model_provider = "house"
model = "qwen"
[model_providers.house]
name = "house"
base_url = "{HOUSE}"
env_key = "HOUSE_KEY"
wire_api = "responses"
"""
SECRET = "key-of-the-house"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The operator's codex home."""
    folder = tmp_path / "own" / ".codex"
    folder.mkdir(parents=True)
    return folder


def _env(home: Path, **more: str) -> dict[str, str]:
    return {"HOME": str(home.parent), "PATH": "/usr/bin:/bin", **more}


def _open(tmp_path: Path, env: Mapping[str, str], model: str | None) -> TurnAccess:
    """How a turn reaches its model when exactly these variables are set."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "CODEX_API_KEY", "CODEX_HOME", "CODEX_PROFILE"):
            patch.delenv(name, raising=False)
        for name, value in {"BAILIWICK_HOME": str(tmp_path / "bw"), **env}.items():
            patch.setenv(name, value)
        broker_access = BrokerAccess(load_config(tmp_path, {}), ManualClock())

        async def go() -> TurnAccess:
            try:
                turn = Turn("key", "hello", model, tmp_path, dict(env), max_usd=1.0)
                return await broker_access.open(CodexBackend(), turn, lambda: None)
            finally:
                await broker_access.close()

        return asyncio.run(go())


def test_a_profile_goes_to_its_provider_with_its_key(tmp_path: Path, home: Path) -> None:
    """Whatever else is set: what was meant to stay in the house stays there."""
    (home / "local.config.toml").write_text(MINE)
    other = {"OPENAI_API_KEY": "sk-vendor", "OPENAI_BASE_URL": "http://127.0.0.1:8082/v1"}
    for more in ({}, other):
        access = _open(tmp_path, _env(home, HOUSE_KEY=SECRET, **more), "local")
        assert access.grant is not None
        assert access.grant.upstream.base_url == HOUSE
        assert access.grant.upstream.headers == {"authorization": f"Bearer {SECRET}"}
        assert access.grant.upstream.target("/v1/responses") == "/v1/responses"
        assert not access.exposed
        assert SECRET not in access.turn.env.values()
        assert access.turn.options["profile"] == "local"


VARIABLES = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "CODEX_API_KEY", "CODEX_OSS_BASE_URL", "CODEX_PROFILE", "HTTPS_PROXY")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=40)
@given(
    names=st.sets(st.sampled_from(VARIABLES)),
    model=st.sampled_from(["local", "local@other/model", "local@", "plain"]),
    provider=st.booleans(),
)
def test_no_variable_sends_a_profile_elsewhere(
    tmp_path: Path, home: Path, names: set[str], model: str, provider: bool
) -> None:
    """The address and the key are the profile's, or nothing is sent at all."""
    (home / "local.config.toml").write_text(MINE)
    (home / "plain.config.toml").write_text('model = "x"\n')
    (home / "config.toml").write_text('model_provider = "house"\n' + MINE[MINE.index("[") :] if provider else "")
    values = {name: "local" if name == "CODEX_PROFILE" else "http://127.0.0.1:9/elsewhere" for name in names}
    if model == "plain" and not provider:
        return  # it names no provider: the vendor's credential holds
    access = _open(tmp_path, _env(home, HOUSE_KEY=SECRET, **values), model)
    assert access.grant is not None
    assert access.grant.upstream.base_url == HOUSE
    assert access.grant.upstream.headers == {"authorization": f"Bearer {SECRET}"}


def test_without_its_key_nothing_is_sent(tmp_path: Path, home: Path) -> None:
    """Another key would tell a stranger; no key is named as what it is."""
    (home / "local.config.toml").write_text(MINE)
    with pytest.raises(NotReady, match="takes its key from HOUSE_KEY, which is not set"):
        _open(tmp_path, _env(home, OPENAI_API_KEY="sk-vendor"), "local")


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ('query_params = {api-version = "1"}', "query_params"),
        ('wire_api = "chat"', "wire_api chat"),
        ("requires_openai_auth = true", "requires_openai_auth"),
        ("", "names no base_url"),
    ],
)
def test_a_provider_that_can_not_be_brokered_is_refused_by_name(
    tmp_path: Path, home: Path, more: str, words: str
) -> None:
    """Before the turn, whatever other credential is there."""
    address = f'base_url = "{HOUSE}"\n' if more else ""
    (home / "odd.config.toml").write_text(f'model_provider = "odd"\n[model_providers.odd]\n{address}{more}\n')
    with pytest.raises(NotReady, match=words):
        _open(tmp_path, _env(home, OPENAI_API_KEY="sk-vendor"), "odd@m")


def test_a_provider_without_a_key_is_reached_without_one(tmp_path: Path, home: Path) -> None:
    """Most local servers want none; the vendor's key is not offered to them."""
    text = MINE.replace(
        'env_key = "HOUSE_KEY"\n', 'http_headers = {X-Team = "blue"}\nenv_http_headers = {X-Me = "ME"}\n'
    )
    (home / "local.config.toml").write_text(text)
    access = _open(tmp_path, _env(home, OPENAI_API_KEY="sk-vendor", ME="you"), "local")
    assert access.grant is not None
    assert access.grant.upstream.headers == {"x-team": "blue", "x-me": "you"}


def test_an_unknown_profile_names_the_known_ones(tmp_path: Path, home: Path) -> None:
    """Codex itself would pass it over and ask whichever model is its default."""
    (home / "local.config.toml").write_text(MINE)
    (home / "config.toml").write_text('[profiles.older]\nmodel = "y"\n')
    (home / "torn.config.toml").write_text("model = [\n")
    profiles = read_profiles(_env(home))
    with pytest.raises(UsageError, match="no codex profile 'nosuch'") as error:
        profiles.choose("nosuch@x")
    assert "known: local, older" in error.value.hint
    with pytest.raises(UsageError, match=r"torn\.config\.toml can't be read"):
        profiles.choose("torn")
    assert profiles.choose("@slug").profile == ""
    assert profiles.choose("@slug", "local").profile == "local"


def test_an_agent_sees_the_profiles_and_none_of_the_providers(tmp_path: Path, home: Path) -> None:
    """A profile is how codex works; where it goes and what opens that is the broker's."""
    (home / "local.config.toml").write_text(MINE + 'http_headers = {x-key = "in the file"}\n')
    base = (
        'profile = "older"\nsandbox_mode = "read-only"\nlist = [1, 2.5, true, "ü\\n"]\n[profiles.older]\nmodel = "y"\n'
    )
    (home / "config.toml").write_text(base + '[a.b]\nc = 2020-01-01\n"d e" = [{f = 1}]\n')
    env = _env(home, HOUSE_KEY=SECRET)
    given_env = carry_profiles(env, tmp_path / "agent")
    there = tmp_path / "agent" / ".codex"
    assert given_env == {"CODEX_HOME": str(there)}
    assert {file.name for file in there.iterdir()} == {"config.toml", "local.config.toml", "older.config.toml"}
    assert tomllib.loads((there / "local.config.toml").read_text()) == {"model": "qwen", "model_provider": "house"}
    assert tomllib.loads((there / "older.config.toml").read_text()) == {"model": "y"}
    kept = tomllib.loads((home / "config.toml").read_text())
    assert tomllib.loads((there / "config.toml").read_text()) == {
        key: value for key, value in kept.items() if key not in ("profile", "profiles")
    }
    assert "in the file" not in "".join(file.read_text() for file in there.iterdir())


def test_a_home_that_codex_needs_is_made_for_it(tmp_path: Path) -> None:
    """Without one it does not start; somebody who never ran it has none."""
    env = carry_profiles({"HOME": str(tmp_path / "nobody")}, tmp_path / "agent")
    assert (tmp_path / "agent" / ".codex").is_dir()
    assert env["CODEX_HOME"] == str(tmp_path / "agent" / ".codex")
