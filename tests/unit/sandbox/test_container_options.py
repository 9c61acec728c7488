"""What an engine is told about a container, and who meets whom over its socket."""

from __future__ import annotations

import asyncio
import io
import os
import socket
import tarfile
from pathlib import Path

import pytest

from bailiwick.sandbox.backends import container_options as options
from bailiwick.sandbox.backends.container import ShimConnection
from bailiwick.sandbox.backends.container_engine import Engine
from bailiwick.sandbox.spec import HOME, INNER, Bind, SandboxLimits, SandboxSpec
from bailiwick.sandbox.system_view import inner_path
from bailiwick.testing.polling import until

WHO = options.Identity(70_001, 70_001, None)


def engine(kind: str = "docker", **can: bool) -> Engine:
    """An engine that is only described."""
    return Engine(f"/usr/bin/{kind}", kind, "1", {}, **can)


def words(sandbox_spec: SandboxSpec, made: Engine | None = None) -> list[str]:
    """The options of a container."""
    return list(options.options(made or engine(), sandbox_spec, WHO, "r1"))


def after(line: list[str], option: str) -> list[str]:
    """What follows each time an option is given."""
    return [line[place + 1] for place, word in enumerate(line) if word == option]


def test_a_container_has_no_network_no_rights_and_bounds() -> None:
    """Each of these is a wall; a change of this list is a decision."""
    line = words(SandboxSpec("agent", limits=SandboxLimits(memory=1000, processes=7, cpus=1.5)))
    assert after(line, "--network") == ["none"]
    assert after(line, "--cap-drop") == ["ALL"]
    assert after(line, "--security-opt")[:1] == ["no-new-privileges"]
    assert {"--read-only", "--rm"} <= set(line)
    assert after(line, "--user") == ["70001:70001"]
    assert after(line, "--memory") == after(line, "--memory-swap") == ["1000"]
    assert (after(line, "--pids-limit"), after(line, "--cpus")) == (["7"], ["1.5"])
    assert after(line, "--pull") == ["never"]
    assert not {"--privileged", "--cap-add", "--device", "--volume", "--publish"}.intersection(line)


def test_what_an_engine_can_t_bound_is_bounded_for_each_process() -> None:
    """Less, and said to be less."""
    sandbox_spec = SandboxSpec("agent", limits=SandboxLimits(memory=1000, processes=7))
    weak = engine(memory=False, processes=False)
    assert not {"--memory", "--memory-swap", "--pids-limit"}.intersection(words(sandbox_spec, weak))
    assert {"data=1000", "nproc=7"} <= set(options.rlimits(weak, sandbox_spec))
    assert not {"data=1000", "nproc=7"}.intersection(options.rlimits(engine(), sandbox_spec))
    assert any("memory" in text for text in options.unprotected(weak))


def test_uids_are_the_host_s_whatever_the_engine_does_to_them() -> None:
    """Files in the tree have to belong to who works with them, inside and outside."""
    sandbox_spec = SandboxSpec("agent")
    assert "--userns=host" in words(sandbox_spec, engine(remapped=True))
    assert "--userns=keep-id" in words(sandbox_spec, engine("podman", rootless=True))
    assert not any(word.startswith("--userns") for word in words(sandbox_spec))


def test_a_later_bind_lies_on_top() -> None:
    """Engines mount the outer ones first, whatever order they are given in, and refuse one place twice."""
    one, two, three = Path("/one"), Path("/two"), Path("/three")
    binds = (Bind(one, INNER / "a/b"), Bind(two, INNER / "a"), Bind(three, INNER), Bind(one, INNER / "c"))
    assert options.layout(binds) == (Bind(three, INNER), Bind(one, INNER / "c"))


def test_what_is_mounted_below_a_read_only_bind_is_read_only_too() -> None:
    """An engine makes only the outer mount read-only: /dev has other file systems below it on most machines."""
    mounted = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    inside = [Path(place) for place in mounted if place.startswith("/dev/")]
    if not inside:
        pytest.skip("nothing is mounted below /dev here")
    found = options.layout((Bind(Path("/dev"), Path("/seen")),))
    assert Bind(inside[0], Path("/seen") / inside[0].relative_to("/dev")) in found
    assert not any(bind.write for bind in found)
    writable = Bind(Path("/dev"), Path("/seen"), write=True)
    assert options.layout((writable,)) == (writable,)


def test_a_path_may_hold_a_comma_and_a_quote(tmp_path: Path) -> None:
    """A mount is a line of comma-separated values: a name of a branch must not become an option of the mount."""
    tree = tmp_path / 'a,readonly=false"b'
    tree.mkdir()
    sandbox_spec = SandboxSpec("agent", (Bind(tree, INNER),))
    line = list(options.mounts(engine(), sandbox_spec, WHO, tmp_path, tmp_path))
    quoted = str(tree).replace('"', '""')
    assert f'type=bind,"source={quoted}",target={INNER},readonly' in after(line, "--mount")


def test_a_home_is_empty_unless_one_is_given(tmp_path: Path) -> None:
    """In memory, or the directory of the host."""
    empty = list(options.mounts(engine(), SandboxSpec("agent"), WHO, tmp_path, tmp_path))
    given = list(options.mounts(engine(), SandboxSpec("agent", home=tmp_path), WHO, tmp_path, tmp_path))
    assert any(text.startswith(f"{HOME}:") for text in after(empty, "--tmpfs"))
    assert not any(text.startswith(f"{HOME}:") for text in after(given, "--tmpfs"))
    assert f"type=bind,source={tmp_path},target={HOME}" in after(given, "--mount")


def test_the_image_is_the_same_each_time_and_holds_no_program_of_the_machine() -> None:
    """Its name follows from its content: what is bound at the start is not in it."""
    content = options.image_content()
    assert options.image_name(content) == options.image_name(options.image_content())
    with tarfile.open(fileobj=io.BytesIO(content)) as tar:
        files = [entry.name for entry in tar if entry.isfile()]
    assert {".bailiwick/shim.py", ".bailiwick/guard.py"} <= set(files)
    assert all(name.startswith(".bailiwick/") for name in files)


def test_a_path_of_the_host_is_told_as_it_is_inside(tmp_path: Path) -> None:
    """By the innermost bind; what is covered or not shown can't be told."""
    (tmp_path / "tree/env").mkdir(parents=True)
    sandbox_spec = SandboxSpec("agent", (Bind(tmp_path / "tree", INNER), Bind(tmp_path / "tree/env", Path("/env"))))
    assert inner_path(sandbox_spec, tmp_path / "tree/x") == INNER / "x"
    assert inner_path(sandbox_spec, tmp_path / "tree/env/y") == Path("/env/y")
    assert inner_path(sandbox_spec, Path("/usr/bin/env")) == Path("/usr/bin/env").resolve()
    with pytest.raises(ValueError, match="can't be seen"):
        inner_path(sandbox_spec, tmp_path)


def meet(folder: Path) -> socket.socket:
    """Come to a meeting, as a shim does, however long the path is."""
    shim = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    at = os.open(folder, os.O_PATH)
    try:
        shim.connect(f"/proc/self/fd/{at}/link")
    finally:
        os.close(at)
    return shim


def test_a_shim_is_given_its_descriptors_and_finds_the_link_closed_at_the_end(tmp_path: Path) -> None:
    """That is how a container learns that its host is gone; nobody else can come to the meeting."""
    folder = tmp_path / ("deep" * 40)
    folder.mkdir()
    (folder / "letter").write_text("TOKEN=s3cret")
    reader, writer = os.pipe()
    doors: list[str] = []

    def on_door(name: str, listener: socket.socket) -> None:
        doors.append(name)
        listener.close()

    async def history() -> None:
        meeting = ShimConnection(folder, [writer], on_door)
        with await asyncio.to_thread(meet, folder) as shim, socket.create_server(("127.0.0.1", 0)) as door:
            data, given, _, _ = await asyncio.to_thread(socket.recv_fds, shim, 1, 4)
            os.write(given[0], b"through")
            os.close(given[0])
            socket.send_fds(shim, [b"model\n"], [door.fileno()])
            await asyncio.to_thread(until, lambda: bool(doors))
            assert (data, list(folder.iterdir())) == (b"1", []), "neither letter nor socket stays for the program"
            meeting.close()
            assert await asyncio.to_thread(shim.recv, 1) == b""

    asyncio.run(history())
    assert os.read(reader, 99) == b"through"
    assert doors == ["model"]
    os.close(reader)
    os.close(writer)


def test_a_meeting_nobody_comes_to_leaves_nothing(tmp_path: Path) -> None:
    """The command may never be started."""
    (tmp_path / "letter").write_text("TOKEN=s3cret")

    async def history() -> None:
        meeting = ShimConnection(tmp_path, [], None)
        meeting.close()
        meeting.close()

    asyncio.run(history())
    assert list(tmp_path.iterdir()) == []


def test_a_door_that_nobody_asked_for_is_closed(tmp_path: Path) -> None:
    """Where the caller takes no listeners, none is kept."""

    async def history() -> None:
        meeting = ShimConnection(tmp_path, [], None)
        with await asyncio.to_thread(meet, tmp_path) as shim, socket.create_server(("127.0.0.1", 0)) as door:
            assert await asyncio.to_thread(shim.recv, 1) == b"1"
            socket.send_fds(shim, [b"model\n"], [door.fileno()])
            shim.shutdown(socket.SHUT_WR)
            assert await asyncio.to_thread(shim.recv, 1) == b""
        meeting.close()

    asyncio.run(history())
