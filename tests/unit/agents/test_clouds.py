"""Claude by way of a cloud account: what of it reaches the program behind the sandbox, and what is refused by name."""

from __future__ import annotations

import asyncio
import json
import os
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bailiwick.agents.backends.claude import ClaudeBackend
from bailiwick.agents.broker_access import BrokerAccess, TurnAccess
from bailiwick.agents.clouds import CLOUDS, cloud_of
from bailiwick.agents.port import Turn
from bailiwick.agents.turn_sandbox import TurnSandboxRequest
from bailiwick.clock import ManualClock
from bailiwick.config.service import load_config
from bailiwick.errors import NotReady
from tests.unit.agents.test_turn_sandbox import asked, run, turn_sandbox

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from bailiwick.agents.turn_sandbox import TurnSandbox

__all__ = ["turn_sandbox"]

BEDROCK = {"CLAUDE_CODE_USE_BEDROCK": "1", "AWS_PROFILE": "work", "AWS_REGION": "eu-west-1"}
VERTEX = {"CLAUDE_CODE_USE_VERTEX": "1", "CLOUD_ML_REGION": "europe-west1", "ANTHROPIC_VERTEX_PROJECT_ID": "p"}
LOOK = """
import json, os, pathlib
def kept(path):
    try:
        return path.read_text()
    except OSError as error:
        return type(error).__name__
home = pathlib.Path.home()
seen = {name: kept(home / name) for name in (".aws/config", ".aws/sso/cache/t.json", ".config/gcloud/c.json")}
try:
    (home / ".aws" / "config").write_text("changed")
except OSError:
    pass
print(json.dumps({"env": dict(os.environ), "seen": seen}))
"""


def _access(tmp_path: Path, turn_sandbox: TurnSandbox, env: Mapping[str, str], *, exposed: bool = True) -> TurnAccess:
    access = asked(tmp_path, turn_sandbox, exposed=exposed)
    return replace(access, turn=replace(access.turn, env={**access.turn.env, **env}))


def _files(tmp_path: Path) -> None:
    for name in (".aws/config", ".aws/sso/cache/t.json", ".config/gcloud/c.json"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"the person's {name}")
        (tmp_path / name).chmod(0o600)


@pytest.mark.parametrize("given_env", [BEDROCK, VERTEX], ids=["bedrock", "vertex"])
def test_a_cloud_account_reaches_the_program_and_its_files_stay_as_they_are(
    turn_sandbox: TurnSandbox, tmp_path: Path, given_env: dict[str, str]
) -> None:
    """Variables, files and hosts of that cloud, and of no other; the files can be read and not changed."""
    _files(tmp_path)
    access = _access(tmp_path, turn_sandbox, given_env)
    sandbox_request = TurnSandboxRequest("root", access.turn.cwd)
    end, text, seen = run(turn_sandbox, access, sandbox_request, "python3", "-I", "-c", LOOK)
    assert end.code == 0, end.stderr
    told = json.loads(text)
    assert {name: told["env"].get(name) for name in given_env} == given_env
    own = (".aws/config", ".aws/sso/cache/t.json") if given_env is BEDROCK else (".config/gcloud/c.json",)
    for name, said in told["seen"].items():
        assert said == (f"the person's {name}" if name in own else "FileNotFoundError")
        assert (tmp_path / name).read_text() == f"the person's {name}"
    hosts = seen.options["hosts"]
    region = (
        "bedrock-runtime.eu-west-1.amazonaws.com" if given_env is BEDROCK else "europe-west1-aiplatform.googleapis.com"
    )
    assert region in hosts
    assert "api.anthropic.com" not in hosts
    home = turn_sandbox.state / "homes" / "root"
    assert not (home / ".aws").exists()
    assert not (home / ".config" / "gcloud").exists()


def test_keys_of_a_cloud_are_carried_only_for_that_cloud(turn_sandbox: TurnSandbox, tmp_path: Path) -> None:
    """An agent that is brokered gets neither them nor the switch that would send it there."""
    env = {**BEDROCK, "AWS_SECRET_ACCESS_KEY": "aws", "GOOGLE_APPLICATION_CREDENTIALS": "/g.json"}
    sandbox_request = TurnSandboxRequest("root", tmp_path)
    exposed = turn_sandbox.dress(_access(tmp_path, turn_sandbox, env), "claude", sandbox_request).turn.env
    assert (exposed["AWS_SECRET_ACCESS_KEY"], exposed["AWS_PROFILE"]) == ("aws", "work")
    assert "GOOGLE_APPLICATION_CREDENTIALS" not in exposed
    brokered = turn_sandbox.dress(
        _access(tmp_path, turn_sandbox, env, exposed=False), "claude", sandbox_request
    ).turn.env
    assert not [name for name in brokered if name.startswith("AWS_")]
    assert "CLAUDE_CODE_USE_BEDROCK" not in brokered


@pytest.mark.parametrize(
    ("env", "missing"),
    [
        ({"CLAUDE_CODE_USE_BEDROCK": "1"}, "AWS_REGION"),
        ({"CLAUDE_CODE_USE_BEDROCK": "1", "AWS_REGION": "eu/../west"}, "AWS_REGION is not a region"),
        ({"CLAUDE_CODE_USE_VERTEX": "true", "CLOUD_ML_REGION": "x"}, "ANTHROPIC_VERTEX_PROJECT_ID"),
    ],
)
def test_what_a_cloud_lacks_is_named_before_the_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, env: dict[str, str], missing: str
) -> None:
    """The program itself would only say that it failed."""
    for name in ("ANTHROPIC_API_KEY", "AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {
        "BAILIWICK_HOME": str(tmp_path),
        "BAILIWICK_AGENTS_ALLOW_EXPOSED_CREDENTIALS": "true",
        **env,
    }.items():
        monkeypatch.setenv(name, value)
    broker_access = BrokerAccess(load_config(tmp_path, {}), ManualClock())
    turn = Turn("k", "p", None, tmp_path, dict(os.environ))
    with pytest.raises(NotReady, match=missing):
        asyncio.run(broker_access.open(ClaudeBackend(), turn, lambda: None))


@given(region=st.text(max_size=20))
def test_a_region_never_opens_another_domain(region: str) -> None:
    """It becomes part of a host's name: what could change the domain is refused."""
    for cloud in CLOUDS.values():
        env = {name: "x" for group in cloud.needs for name in group} | {cloud.regions[0]: region}
        try:
            cloud.check(env)
        except NotReady:
            continue
        hosts = cloud.reached(env)
        assert all(host.endswith((".amazonaws.com", ".googleapis.com")) for host in hosts)


def test_a_switch_that_is_off_is_none() -> None:
    """As Claude Code reads it."""
    for value in ("0", "false", "off", ""):
        assert cloud_of({"CLAUDE_CODE_USE_BEDROCK": value}.get) is None
    found = cloud_of({"CLAUDE_CODE_USE_VERTEX": "1"}.get)
    assert found is not None
    assert found.name == "vertex"
