"""The sandbox as others use it: which sandbox is taken, what a cage shows, how a command ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from bailiwick.config.service import Config, load_config
from bailiwick.config.variables import Environment
from bailiwick.errors import NotReady, UsageError
from bailiwick.ids import Json
from bailiwick.processes.command import Command
from bailiwick.processes.proc import EFFECT_MARK
from bailiwick.sandbox import service
from bailiwick.sandbox.backends.none import NoSandboxBackend
from bailiwick.sandbox.disk import disk_words
from bailiwick.sandbox.port import OnDoor, Sandbox, SandboxBackend
from bailiwick.sandbox.service import Sandboxes, open_sandboxes
from bailiwick.sandbox.spec import HOME, INNER, MB, Bind, Role, SandboxLimits, SandboxSpec, SandboxStatus
from bailiwick.sandbox.toolchains import Toolchains

WORKS = SandboxStatus(ok=True, found="works")
BROKEN = SandboxStatus(ok=False, found="broken", fix="mend it")


class Pretended:
    """A sandbox that stands as a test wants, and whose programs are never reached."""

    def __init__(self, name: str, standing: SandboxStatus = WORKS) -> None:
        self.name = name
        self._standing = standing

    async def check(self) -> SandboxStatus:
        return self._standing

    @asynccontextmanager
    async def enter(self, sandbox_spec: SandboxSpec, on_door: OnDoor | None = None) -> AsyncIterator[Sandbox]:
        yield LockedSandbox()


class LockedSandbox:
    """A room that nobody gets into."""

    def command(
        self,
        argv: tuple[str, ...],
        env: Mapping[str, str],
        *,
        timeout: float | None = None,
        keep: int = 1 << 20,
        stdin: bytes = b"",
        pass_fds: tuple[int, ...] = (),
    ) -> Command:
        return Command(("sh", "-c", "echo 'no mount for you' >&2; exit 1"), {"PATH": "/usr/bin:/bin"}, Path("/"))

    def hand_over(self, path: Path) -> None:
        """Nothing to give."""

    def inner(self, path: Path) -> Path:
        return path

    def entered(self, command: Command) -> bool:
        """Never."""
        return False

    def exceeded(self) -> tuple[str, ...]:
        """Nothing."""
        return ()


def _environment(tmp_path: Path) -> Environment:
    (tmp_path / "person").mkdir(exist_ok=True)
    names = {"BAILIWICK_HOME": str(tmp_path / "own"), "HOME": str(tmp_path / "person"), "PATH": "/usr/bin:/bin"}
    return Environment(names)


def _config(tmp_path: Path, **flags: Json) -> Config:
    named = {f"sandbox.{name}": value for name, value in flags.items()}
    return load_config(tmp_path, named, environment=_environment(tmp_path), machine=tmp_path / "machine")


def _open(tmp_path: Path, *, attended: bool, **flags: Json) -> Sandboxes:
    config = _config(tmp_path, **flags)
    return asyncio.run(open_sandboxes(config, attended=attended, environment=_environment(tmp_path)))


@pytest.fixture
def standings(monkeypatch: pytest.MonkeyPatch) -> dict[str, SandboxStatus]:
    """How each profile stands on the machine of a test."""
    there = {"bwrap": WORKS, "container": WORKS, "none": WORKS}

    def make(name: str, scratch: Path | None = None, *, terminal: bool = False) -> SandboxBackend:
        return Pretended(name, there[name])

    monkeypatch.setattr(service, "make_sandbox", make)
    return there


def test_the_best_that_works_is_taken(tmp_path: Path, standings: dict[str, SandboxStatus]) -> None:
    """`auto` is the default: whoever installs bubblewrap has it used."""
    assert _open(tmp_path, attended=False).sandbox.name == "bwrap"
    standings["bwrap"] = BROKEN
    assert _open(tmp_path, attended=False).sandbox.name == "container"


def test_unattended_nothing_runs_without_a_sandbox(tmp_path: Path, standings: dict[str, SandboxStatus]) -> None:
    """Nobody would see what it does; the person is told what to mend."""
    standings.update(bwrap=BROKEN, container=BROKEN)
    with pytest.raises(NotReady) as raised:
        _open(tmp_path, attended=False)
    assert (raised.value.code, raised.value.exit_code, raised.value.hint) == ("BW401", 8, "mend it")
    assert _open(tmp_path, attended=True).sandbox.name == "none"


def test_a_profile_that_was_asked_for_is_never_replaced(tmp_path: Path, standings: dict[str, SandboxStatus]) -> None:
    """Also not by a better one, and also not when somebody watches."""
    standings["container"] = BROKEN
    with pytest.raises(NotReady) as raised:
        _open(tmp_path, attended=True, profile="container")
    assert raised.value.code == "BW401"


@pytest.mark.usefixtures("standings")
def test_none_unattended_is_the_operator_s_own_word(tmp_path: Path) -> None:
    """Said twice: which profile, and that it may go unwatched."""
    with pytest.raises(NotReady) as raised:
        _open(tmp_path, attended=False, profile="none")
    assert raised.value.code == "BW402"
    assert "sandbox.unattended_none" in raised.value.hint
    assert _open(tmp_path, attended=False, profile="none", unattended_none=True).sandbox.name == "none"
    assert _open(tmp_path, attended=True, profile="none").sandbox.name == "none"


@pytest.mark.usefixtures("standings")
def test_mounts_are_shown_read_only_where_they_are(tmp_path: Path) -> None:
    """The operator named them: a directory of documents, say."""
    (tmp_path / "docs").mkdir()
    sandboxes = _open(tmp_path, attended=True, mounts=[str(tmp_path / "docs")])
    assert sandboxes.mounts == (Bind(tmp_path / "docs", tmp_path / "docs"),)
    assert sandboxes.mounts[0] in sandboxes.sandbox_spec("agent", None).binds


@pytest.mark.usefixtures("standings")
@pytest.mark.parametrize(
    "place", ["/", ".", "own", "own/state", "own/state/runs", "own/config", "own/cache/x", "person", "gone"]
)
def test_mounts_that_would_show_too_much_are_refused(tmp_path: Path, place: str) -> None:
    """The state directory, the configuration, a whole home: keys are in all of them. Nothing missing is passed by."""
    for name in ("own/state/runs", "own/config", "own/cache/x"):
        (tmp_path / name).mkdir(parents=True)
    with pytest.raises(UsageError) as raised:
        _open(tmp_path, attended=True, mounts=[str(tmp_path / place)])
    assert raised.value.code == "BW405"


def _sandboxes(tmp_path: Path, sandbox: SandboxBackend | None = None) -> Sandboxes:
    return Sandboxes(sandbox or NoSandboxBackend(tmp_path), Toolchains(path="/usr/bin:/bin"), tmp_path)


def _tree(tmp_path: Path) -> Path:
    tree = tmp_path / "tree"
    tree.mkdir()
    return tree


def test_a_cage_shows_the_tree_with_its_environment_on_top(tmp_path: Path) -> None:
    """What was prepared for one path fits at that path only."""
    sandboxes = _sandboxes(tmp_path, Pretended("bwrap"))
    venv = Bind(tmp_path / "venv", INNER / ".venv")
    sandbox_spec = sandboxes.sandbox_spec(
        "gate", tmp_path / "tree", environment=(venv,), limits=SandboxLimits(memory=MB)
    )
    assert sandbox_spec.binds == (Bind(tmp_path / "tree", INNER, write=True), venv)
    assert (sandbox_spec.cwd, sandbox_spec.limits.memory, sandbox_spec.doors) == (INNER, MB, ())
    assert sandboxes.sandbox_spec("agent", None).cwd == HOME


def test_without_a_sandbox_the_tree_is_where_it_is(tmp_path: Path) -> None:
    """Nothing is mounted, so no path of the inside exists."""
    sandbox_spec = _sandboxes(tmp_path).sandbox_spec("gate", tmp_path / "tree")
    assert (sandbox_spec.cwd, sandbox_spec.binds[-1].target) == (tmp_path / "tree", tmp_path / "tree")


def test_the_environment_holds_nothing_of_the_operator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever their shell exports."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "secret")
    sandboxes = Sandboxes(NoSandboxBackend(tmp_path), Toolchains(path="/tools"), tmp_path, marks={"BAILIWICK_RUN": "r"})
    env = sandboxes.env({"CI": "true"})
    assert (env["PATH"], env["HOME"], env["BAILIWICK_RUN"], env["CI"]) == ("/tools", str(HOME), "r", "true")
    assert set(env) - {"BAILIWICK_RUN", "CI"} == {
        "PATH",
        "HOME",
        "TMPDIR",
        "USER",
        "LOGNAME",
        "LANG",
        "TERM",
        "SHELL",
    }


def test_a_command_runs_to_its_end(tmp_path: Path) -> None:
    """With a mark of its own, so that nothing of it can hide."""
    sandboxes = _sandboxes(tmp_path)
    sandbox_spec = sandboxes.sandbox_spec("gate", _tree(tmp_path))
    lines: list[str] = []
    argv = ("sh", "-c", f"cat; echo ${EFFECT_MARK} >&2; exit 4")
    end = asyncio.run(
        sandboxes.run(
            sandbox_spec, argv, stdin=b"given\n", on_line=lambda stream, text: lines.append(f"{stream} {text}")
        )
    )
    assert (end.code, end.stdout) == (4, b"given\n")
    assert len(end.stderr.strip()) > 8
    assert "stdout given" in lines


def test_a_sandbox_that_can_t_be_entered_is_no_exit_code(tmp_path: Path) -> None:
    """A red gate because of a mount that failed would send an agent after a bug that isn't there."""
    sandboxes = _sandboxes(tmp_path, Pretended("bwrap"))
    with pytest.raises(NotReady, match="no mount for you") as raised:
        asyncio.run(sandboxes.run(sandboxes.sandbox_spec("gate", None), ("true",)))
    assert raised.value.code == "BW403"


def test_what_fills_the_disk_is_ended_with_the_reason(tmp_path: Path) -> None:
    """No quota of the file system is there to do it."""
    sandboxes = _sandboxes(tmp_path)
    sandbox_spec = sandboxes.sandbox_spec("agent", _tree(tmp_path), limits=SandboxLimits(inodes=20))
    script = "i=0; while [ $i -lt 40 ]; do : > f$i; i=$((i+1)); done; exec sleep 600"
    end = asyncio.run(sandboxes.run(sandbox_spec, ("sh", "-c", script), timeout=600))
    assert (end.why, end.cancelled, end.timed_out) == ("disk", False, False)
    assert b"bailiwick: it " in end.stderr
    assert b"20 files" in end.stderr


def test_what_a_check_wrote_too_much_is_gone_and_an_agents_tree_is_left_to_its_turn(tmp_path: Path) -> None:
    """A copy of ours that was filled must not stay full until somebody cleans up; it gets no time to go on either."""
    script = "trap '' TERM; dd if=/dev/zero of=bomb bs=1M count=12 status=none; echo > kept; while :; do sleep 1; done"
    sandboxes = replace(_sandboxes(tmp_path), limits=SandboxLimits(disk=8 * MB))
    roles: list[tuple[Role, bool]] = [("gate", False), ("agent", True)]
    for role, is_left in roles:
        tree = tmp_path / role
        tree.mkdir()
        end = asyncio.run(sandboxes.run(sandboxes.sandbox_spec(role, tree), ("sh", "-c", script), timeout=600))
        assert (end.why, end.code) == ("disk", -9)
        assert "8.39 MB" in disk_words(end)
        assert (tree / "bomb").exists() is is_left


def test_a_cancel_reaches_the_command(tmp_path: Path) -> None:
    """Whoever stops a run stops what it runs."""
    sandboxes = _sandboxes(tmp_path)
    sandbox_spec = sandboxes.sandbox_spec("agent", _tree(tmp_path))

    async def go() -> bool:
        cancel = asyncio.Event()
        argv = ("sh", "-c", "echo ready; exec sleep 600")
        end = await sandboxes.run(sandbox_spec, argv, cancel=cancel, on_line=lambda _stream, _text: cancel.set())
        return end.cancelled

    assert asyncio.run(go())
