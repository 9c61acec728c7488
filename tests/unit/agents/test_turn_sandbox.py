"""What an agent's program sees behind the sandbox."""

from __future__ import annotations

import asyncio
import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from bailiwick.agents.broker_access import TurnAccess
from bailiwick.agents.classify import classify
from bailiwick.agents.invoke import ended
from bailiwick.agents.launch import Launcher
from bailiwick.agents.port import Turn
from bailiwick.agents.settings import TurnTimeouts
from bailiwick.agents.turn_sandbox import TurnSandbox, TurnSandboxRequest
from bailiwick.config.service import load_config
from bailiwick.config.variables import Environment
from bailiwick.engine.failures import FailureKind
from bailiwick.processes.command import Exit
from bailiwick.sandbox.service import Sandboxes, open_sandboxes
from bailiwick.sandbox.spec import SandboxLimits
from tests.needs import need

LOOK = "import json, os; print(json.dumps({'env': dict(os.environ)}))"


@pytest.fixture
def turn_sandbox(tmp_path: Path) -> TurnSandbox:
    """A fence with a state directory of its own."""
    environment = Environment(
        {"BAILIWICK_HOME": str(tmp_path / "home"), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    )
    config = load_config(tmp_path, {}, environment=environment)
    sandboxes: Sandboxes = asyncio.run(open_sandboxes(config, attended=True, environment=environment))
    need("sandbox")
    return TurnSandbox(sandboxes, config.paths.make_state(), config.paths.cache)


def asked(tmp_path: Path, turn_sandbox: TurnSandbox, *, exposed: bool = False) -> TurnAccess:
    """A turn of somebody whose environment is full of secrets, in a workspace of its run."""
    workspace = turn_sandbox.state / "workspaces" / "run"
    workspace.mkdir(parents=True, exist_ok=True)
    env = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(tmp_path),
        "ANTHROPIC_API_KEY": "sk-real",
        "AWS_SECRET_ACCESS_KEY": "aws",
        "CLAUDE_CODE_MESSAGING_TOKEN": "outer",
        "CLAUDE_CODE_SESSION_ID": "outer",
        "CLAUDE_CODE_SSE_PORT": "9",
        "GITHUB_TOKEN": "gh",
        "CLAUDE_CODE_EFFORT": "high",
        "BAILIWICK_RUN": "run",
        "BAILIWICK_WORKFLOW_DIR": "/pins",
    }
    return TurnAccess(Turn(key="k", prompt="p", model=None, cwd=workspace, env=env), "claude", exposed=exposed)


def run(
    turn_sandbox: TurnSandbox, access: TurnAccess, sandbox_request: TurnSandboxRequest, *argv: str
) -> tuple[Exit, str, Turn]:
    """Run a program of a turn behind the sandbox; how it ended, what it printed, the turn as seen from inside."""

    async def main() -> tuple[Exit, str, Turn]:
        lines: list[bytes] = []
        dressed = turn_sandbox.dress(access, "claude", sandbox_request)
        with Launcher(TurnTimeouts(), asyncio.Event(), marks={"BAILIWICK_EFFECT_KEY": "k"}) as launcher:
            async with turn_sandbox.around(dressed, sandbox_request, (), None) as (seen, sandbox):
                launcher.enter(sandbox)
                end = await launcher.spawn(argv, seen.env, seen.cwd, b"", lines.append)
        return end, b"\n".join(lines).decode(), seen

    return asyncio.run(main())


def test_none_of_the_operators_secrets_is_inside(turn_sandbox: TurnSandbox, tmp_path: Path) -> None:
    """What is not there can't be smuggled out; what a CLI is told by its own variables is carried in."""
    access = asked(tmp_path, turn_sandbox)
    end, text, _ = run(turn_sandbox, access, TurnSandboxRequest("root", access.turn.cwd), "python3", "-I", "-c", LOOK)
    env = json.loads(text)["env"]
    assert end.code == 0
    assert {"ANTHROPIC_API_KEY", "AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "BAILIWICK_WORKFLOW_DIR"}.isdisjoint(env)
    assert {name for name in env if name.startswith("CLAUDE_CODE_")} == {"CLAUDE_CODE_EFFORT"}
    assert (env["CLAUDE_CODE_EFFORT"], env["BAILIWICK_RUN"]) == ("high", "run")
    assert env["HOME"] == str(turn_sandbox.state / "homes" / "root")


def test_an_exposed_credential_is_carried_in_and_no_other(turn_sandbox: TurnSandbox, tmp_path: Path) -> None:
    """The operator has allowed exactly that."""
    access = asked(tmp_path, turn_sandbox, exposed=True)
    dressed = turn_sandbox.dress(access, "claude", TurnSandboxRequest("root", access.turn.cwd))
    assert dressed.turn.env["ANTHROPIC_API_KEY"] == "sk-real"
    assert "AWS_SECRET_ACCESS_KEY" not in dressed.turn.env
    assert "api.anthropic.com" in dressed.turn.options["hosts"]


def test_the_home_stays_for_the_next_turn_and_the_temporary_files_go(turn_sandbox: TurnSandbox, tmp_path: Path) -> None:
    """A session can only be resumed where it was kept."""
    access = asked(tmp_path, turn_sandbox)
    sandbox_request = TurnSandboxRequest("root", access.turn.cwd)
    run(turn_sandbox, access, sandbox_request, "sh", "-c", "echo kept > $HOME/session; echo gone > $TMPDIR/file")
    end, text, _ = run(turn_sandbox, access, sandbox_request, "sh", "-c", "cat $HOME/session; ls $TMPDIR")
    assert (end.code, text) == (0, "kept")
    assert not list(turn_sandbox.sandboxes.scratch.glob("turn-*"))


def test_a_persons_own_directory_is_theirs_again_after_the_turn(turn_sandbox: TurnSandbox, tmp_path: Path) -> None:
    """As root the sandbox's user owns it for a while: nobody should find their files owned by a stranger."""
    access = asked(tmp_path, turn_sandbox)
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "old").write_text("old")
    access = replace(access, turn=replace(access.turn, cwd=mine))
    end, _, _ = run(
        turn_sandbox,
        access,
        TurnSandboxRequest("root", turn_sandbox.state / "workspaces" / "run"),
        "sh",
        "-c",
        "echo > new; cat old",
    )
    assert end.code == 0
    assert {path.name: path.stat().st_uid for path in mine.iterdir()} == {"old": os.geteuid(), "new": os.geteuid()}


def test_a_missing_program_is_an_error_of_the_start(turn_sandbox: TurnSandbox, tmp_path: Path) -> None:
    """The ladder tells a program that is not there from an agent that failed."""
    access = asked(tmp_path, turn_sandbox)
    with pytest.raises(FileNotFoundError):
        run(turn_sandbox, access, TurnSandboxRequest("root", access.turn.cwd), "no-such-program")


BOMB = "mkdir -p $HOME/b; for i in 1 2 3 4 5 6 7 8 9; do dd if=/dev/zero of=$1 bs=1M count=2 status=none; sleep 9; done"


@pytest.mark.parametrize("where", ["$HOME/b/$i", "$PWD/$i", "$TMPDIR/$i"])
def test_a_turn_that_fills_the_disk_ends_as_that_and_leaves_nothing(
    where: str, turn_sandbox: TurnSandbox, tmp_path: Path
) -> None:
    """Wherever it writes: it is told as the disk and not as a timeout, and the next one finds the space free again."""
    turn_sandbox.sandboxes = replace(turn_sandbox.sandboxes, limits=SandboxLimits(disk=1_500_000))
    access = asked(tmp_path, turn_sandbox)
    (access.turn.cwd / "before").write_text("kept")
    shown: list[str] = []

    async def main() -> Exit:
        with Launcher(TurnTimeouts(), asyncio.Event(), marks={"BAILIWICK_EFFECT_KEY": "k"}) as launcher:
            sandbox_request = TurnSandboxRequest(
                "root", access.turn.cwd, show=shown.append, over=lambda why: launcher.end("disk", why)
            )
            dressed = turn_sandbox.dress(access, "claude", sandbox_request)
            async with turn_sandbox.around(dressed, sandbox_request, (), None) as (seen, sandbox):
                launcher.enter(sandbox)
                script = f"echo small > work; {BOMB.replace('$1', where)}"
                return await launcher.spawn(("sh", "-c", script), seen.env, seen.cwd, b"", lambda _line: None)

    end = asyncio.run(main())
    found = classify([ended(end)], expects_answer=True, now=0.0, zone=None)
    assert found is not None
    assert (found.kind, end.timed_out) == (FailureKind.DISK, False)
    assert "1.5 MB" in found.message
    assert shown[0].startswith("the turn is ended: it wrote")
    assert "were removed" in shown[-1]
    files = [path for path in turn_sandbox.state.rglob("*") if path.is_file() and path.stat().st_size > 1_000_000]
    assert files == []
    assert {path.name for path in access.turn.cwd.iterdir()} == {"before", "work"}


def test_a_persons_own_directory_is_not_cleared(turn_sandbox: TurnSandbox, tmp_path: Path) -> None:
    """What lies there may be theirs: they are told, and nothing of it is removed."""
    turn_sandbox.sandboxes = replace(turn_sandbox.sandboxes, limits=SandboxLimits(disk=1_500_000))
    access = asked(tmp_path, turn_sandbox)
    mine = tmp_path / "mine"
    mine.mkdir()
    access = replace(access, turn=replace(access.turn, cwd=mine))
    told: list[str] = []

    async def main() -> None:
        with Launcher(TurnTimeouts(), asyncio.Event(), marks={"BAILIWICK_EFFECT_KEY": "k"}) as launcher:

            def over(why: str) -> None:
                told.append(why)
                launcher.end("disk", why)

            sandbox_request = TurnSandboxRequest("root", turn_sandbox.state / "workspaces" / "run", over=over)
            dressed = turn_sandbox.dress(access, "claude", sandbox_request)
            async with turn_sandbox.around(dressed, sandbox_request, (), None) as (seen, sandbox):
                launcher.enter(sandbox)
                script = "dd if=/dev/zero of=big bs=1M count=3 status=none; sleep 60"
                await launcher.spawn(("sh", "-c", script), seen.env, seen.cwd, b"", lambda _line: None)

    asyncio.run(main())
    assert len(told) == 1
    assert (mine / "big").stat().st_size == 3 << 20
