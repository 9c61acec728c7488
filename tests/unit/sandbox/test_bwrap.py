"""The sandbox made by bubblewrap, beyond what every sandbox promises."""

from __future__ import annotations

import asyncio
import os
import secrets
import subprocess
import sys
from pathlib import Path

import pytest

from bailiwick.errors import NotReady
from bailiwick.processes import children
from bailiwick.processes.command import Command
from bailiwick.processes.proc import EFFECT_MARK
from bailiwick.sandbox.backends.bwrap import BwrapBackend
from bailiwick.sandbox.backends.bwrap_options import BwrapFeatures, describe, options, rlimits, unprotected
from bailiwick.sandbox.cgroups import CgroupRoots
from bailiwick.sandbox.spec import HOME, INNER, Bind, SandboxSpec
from bailiwick.sandbox.system_view import inner_path
from bailiwick.testing.polling import until
from tests.needs import need

HOST = """
import asyncio, sys
from pathlib import Path
from bailiwick.sandbox.backends.bwrap import BwrapBackend
from bailiwick.sandbox.cgroups import CgroupRoots
from bailiwick.sandbox.spec import INNER, Bind, SandboxSpec
from bailiwick.processes.proc import EFFECT_MARK, run_process

async def main():
    tree, mark = sys.argv[1:]
    spec = SandboxSpec("agent", (Bind(Path(tree), INNER, write=True),))
    async with BwrapBackend(ground=CgroupRoots()).enter(spec) as room:
        env = {"PATH": "/usr/bin:/bin", EFFECT_MARK: mark}
        await run_process(room.command(("sh", "-c", "touch here; setsid sleep 300"), env), cancel=asyncio.Event())

asyncio.run(main())
"""


def _means(
    *, as_root: bool = True, ground: CgroupRoots | None = None, seccomp: bytes | None = b"filter"
) -> BwrapFeatures:
    flags = frozenset({"--disable-userns"})
    return BwrapFeatures(
        "/usr/bin/bwrap", "0.8.0", flags, "/usr/bin/setpriv", ground or CgroupRoots(), seccomp, as_root
    )


def _words(sandbox_spec: SandboxSpec, means: BwrapFeatures | None = None, *, terminal: bool = False) -> str:
    return " ".join(options(means or _means(), sandbox_spec, 5, lambda _: 9, terminal=terminal))


def test_a_killed_host_takes_its_sandboxes_with_it(tmp_path: Path) -> None:
    """Nobody else would: a worker that was killed can't end its children."""
    need("sandbox")
    mark = f"killed-{secrets.token_hex(8)}"
    host = subprocess.Popen([sys.executable, "-c", HOST, str(tmp_path), mark], env={"PATH": "/usr/bin:/bin"})
    until((tmp_path / "here").exists)
    assert children.find_children({EFFECT_MARK: mark})
    host.kill()
    host.wait()
    until(lambda: not children.find_children({EFFECT_MARK: mark}))


def test_no_variable_is_in_an_argument_or_in_the_environment_of_bwrap(tmp_path: Path) -> None:
    """Both can be read by others on the host; tokens are among the variables."""
    need("sandbox")

    async def go() -> Command:
        async with BwrapBackend().enter(SandboxSpec("agent", (Bind(tmp_path, INNER, write=True),))) as sandbox:
            return sandbox.command(("true",), {"TOKEN": "s3cr3t", EFFECT_MARK: "mark"})

    command = asyncio.run(go())
    assert not any("s3cr3t" in word for word in command.argv)
    assert command.env == {EFFECT_MARK: "mark"}


def test_the_tree_of_another_is_not_needed_to_say_that_bwrap_is_missing() -> None:
    """The person is told what to install; nothing is tried in its place."""
    standing = asyncio.run(BwrapBackend(program="no-such-bwrap").check())
    assert not standing.ok
    assert "not installed" in standing.found
    assert "bubblewrap" in standing.fix


def test_a_bwrap_that_is_too_old_is_said_to_be(tmp_path: Path) -> None:
    """An option it does not know would be an error in the middle of a run."""
    old = tmp_path / "bwrap"
    old.write_text("#!/bin/sh\necho '    --args FD   --seccomp FD --file FD DEST --die-with-parent'\n")
    old.chmod(0o755)
    standing = asyncio.run(BwrapBackend(program=str(old)).check())
    assert not standing.ok
    assert "too old: it has no --size, --perms" in standing.found


def test_a_bwrap_that_fails_is_said_to_fail_with_its_own_words(tmp_path: Path) -> None:
    """Some systems forbid user namespaces; the fix is theirs."""
    known = "--args --size --perms --seccomp --file --die-with-parent"
    bad = tmp_path / "bwrap"
    bad.write_text(
        f'#!/bin/sh\ncase "$1" in --help) echo "{known}";; --version) echo bubblewrap 9.9;;\n'
        '*) echo "bwrap: setting up uid map: Permission denied" >&2; exit 1;; esac\n'
    )
    bad.chmod(0o755)
    standing = asyncio.run(BwrapBackend(program=str(bad)).check())
    assert not standing.ok
    assert "bwrap 9.9 does not work here: bwrap: setting up uid map" in standing.found
    assert "user namespaces" in standing.fix


def test_it_is_found_out_once() -> None:
    """A gate asks before each report."""
    need("sandbox")
    box = BwrapBackend()

    async def go() -> bool:
        return await box.check() is await box.check()

    assert asyncio.run(go())


def test_a_refused_tree_starts_nothing_and_leaves_no_group(tmp_path: Path) -> None:
    """Trouble is known before the first process."""
    need("sandbox")
    (tmp_path / "a").write_text("in the way")
    sandbox_spec = SandboxSpec("agent", (Bind(tmp_path, INNER, write=True), Bind(Path("/usr"), INNER / "a")))

    async def go() -> None:
        async with BwrapBackend().enter(sandbox_spec):
            raise AssertionError("it was entered")

    with pytest.raises(NotReady, match="in the way"):
        asyncio.run(go())
    assert list(Path("/sys/fs/cgroup").rglob(f"bailiwick-{os.getpid()}-*")) == []


def test_root_keeps_only_the_rights_to_give_up_root() -> None:
    """Whatever runs before the program is as weak as it can be."""
    words = _words(SandboxSpec("agent"))
    assert "--cap-drop ALL" in words
    assert [word for word in words.split() if word.startswith("CAP_")] == ["CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP"]
    assert "--unshare-user" not in words


def test_anyone_else_gets_a_user_namespace_that_can_t_be_nested() -> None:
    """There is no other way for them, and no need for a second one inside."""
    words = _words(SandboxSpec("agent"), _means(as_root=False))
    assert "--unshare-user --disable-userns" in words
    assert "--cap-add" not in words


def test_every_namespace_is_its_own_and_the_session_too() -> None:
    """But for a person who opened a shell: it keeps their terminal, into which it can't type."""
    words = _words(SandboxSpec("agent"))
    for name in ("ipc", "pid", "net", "uts", "cgroup-try"):
        assert f"--unshare-{name}" in words
    assert "--new-session" in words
    assert "--die-with-parent" in words
    assert "--new-session" not in _words(SandboxSpec("agent"), terminal=True)
    assert "--share-net" not in words


def test_private_parts_of_etc_are_not_shown() -> None:
    """Keys of services lie beside the certificates that everybody needs."""
    words = _words(SandboxSpec("agent")).split()
    shown = {words[at + 1] for at, word in enumerate(words) if word == "--ro-bind"}
    private = ("/etc", "/etc/passwd", "/etc/shadow", "/etc/ssl", "/etc/ssl/private", "/etc/ssh", "/etc/pki", "/run")
    assert not shown.intersection(private)
    assert "/etc/passwd" in words, "it is there, and not the machine's"


def test_binds_lie_on_top_of_each_other_in_their_order(tmp_path: Path) -> None:
    """A prepared environment is on top of the tree, and the root directory is closed at last."""
    sandbox_spec = SandboxSpec(
        "agent", (Bind(tmp_path, INNER, write=True), Bind(Path("/opt"), INNER / ".venv")), home=tmp_path
    )
    words = _words(sandbox_spec)
    order = (f"--bind {tmp_path} {HOME}", f"--bind {tmp_path} {INNER}", f"--ro-bind /opt {INNER}/.venv")
    places = [words.index(part) for part in order]
    assert places == sorted(places)
    assert words.endswith("--remount-ro /")


def test_a_path_is_told_by_the_bind_that_really_shows_it(tmp_path: Path) -> None:
    """One that lies under another bind can't be seen, whatever the first one says."""
    tree, venv = tmp_path / "tree", tmp_path / "venv"
    for folder in (tree, venv):
        folder.mkdir()
    sandbox_spec = SandboxSpec(
        "agent", (Bind(tree, INNER, write=True), Bind(venv, INNER / ".venv")), home=tmp_path / "home"
    )
    assert inner_path(sandbox_spec, tree / "a") == INNER / "a"
    assert inner_path(sandbox_spec, venv / "bin") == INNER / ".venv/bin"
    assert inner_path(sandbox_spec, tmp_path / "home/x") == HOME / "x"
    assert inner_path(sandbox_spec, Path("/usr/bin")) == Path("/usr/bin")
    for hidden in (tree / ".venv/x", tmp_path, Path("/etc/shadow")):
        with pytest.raises(ValueError, match="can't be seen"):
            inner_path(sandbox_spec, hidden)


def test_what_control_groups_do_not_bound_rlimits_do() -> None:
    """A person's own uid has other processes, so that their number is bounded so only where nothing else does it."""
    sandbox_spec = SandboxSpec("agent")
    both = ("memory", "pids")
    assert [limit.split("=")[0] for limit in rlimits(_means(), sandbox_spec, both)] == [
        "nofile",
        "fsize",
        "core",
        "nproc",
    ]
    assert "nproc" not in " ".join(rlimits(_means(as_root=False), sandbox_spec, both))
    assert [limit.split("=")[0] for limit in rlimits(_means(as_root=False), sandbox_spec, ())][-2:] == ["nproc", "data"]


def test_what_is_missing_here_is_said() -> None:
    """Not in a footnote: `doctor` and the first lines of a run repeat it."""
    bare = _means(as_root=False, seccomp=None)
    assert "memory, processes limited by rlimits" in describe(bare)
    assert "no seccomp filter" in describe(bare)
    assert any("memory" in line for line in unprotected(bare))
    assert any("system calls" in line for line in unprotected(bare))
    full = _means(ground=CgroupRoots(2, {"memory": Path("/"), "pids": Path("/")}))
    assert "memory, processes limited by cgroup v2" in describe(full)
    assert len(unprotected(full)) == 2
