"""How an engine of containers is found, and what its answers mean."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from bailiwick.errors import NotReady
from bailiwick.sandbox.backends.container import ContainerBackend
from bailiwick.sandbox.backends.container_engine import Engine, find_engine, owner_label

DOCKER = {"ServerVersion": "24.0.7", "SecurityOptions": ["name=seccomp,profile=default"], "SwapLimit": True}


def command_line(
    folder: Path, name: str = "docker", *, info: object = None, version: str = "Docker version 1", code: int = 0
) -> Path:
    """A program that answers like an engine's command line; what it was asked and told is in `asked`."""
    folder.mkdir(exist_ok=True)
    (folder / "info").write_text(json.dumps(DOCKER if info is None else info))
    path = folder / name
    path.write_text(
        f'#!/bin/sh\necho "$@" >> {folder}/asked; env | sort > {folder}/told\n'
        f"case $1 in --version) echo '{version}';; info) cat {folder}/info; echo 'no socket' >&2; exit {code};;\n"
        f"ps) cat {folder}/containers 2>/dev/null;; esac; exit 0\n"
    )
    path.chmod(0o755)
    return folder


def find(folder: Path, **variables: str) -> Engine:
    """Find the engine behind a command line."""
    return asyncio.run(find_engine({"PATH": f"{folder}:/usr/bin:/bin", **variables}))


def asked(folder: Path) -> list[str]:
    """What a command line was asked."""
    return (folder / "asked").read_text().splitlines()


def test_an_engine_tells_what_it_can_bound(tmp_path: Path) -> None:
    """An option that it can't honour would be a warning among the program's output, and no bound."""
    weak = {**DOCKER, "SwapLimit": False, "MemoryLimit": False, "PidsLimit": False, "CpuCfsQuota": False}
    strong, poor = find(command_line(tmp_path / "a")), find(command_line(tmp_path / "b", info=weak))
    assert (strong.kind, strong.version) == ("docker", "24.0.7")
    assert (strong.memory, strong.swap, strong.processes, strong.processors, strong.seccomp) == (True,) * 5
    assert (poor.memory, poor.swap, poor.processes, poor.processors) == (False,) * 4


def test_an_engine_without_root_and_one_with_other_uids_are_told(tmp_path: Path) -> None:
    """Who the files belong to depends on it."""
    rootless = {**DOCKER, "SecurityOptions": ["name=seccomp", "name=rootless"]}
    remapped = {**DOCKER, "SecurityOptions": ["name=userns"]}
    assert find(command_line(tmp_path / "a", info=rootless)).rootless
    assert find(command_line(tmp_path / "b", info=remapped)).remapped
    assert not find(command_line(tmp_path / "c")).rootless


def test_podman_is_known_also_under_the_name_of_docker(tmp_path: Path) -> None:
    """Some systems install it so; its options differ."""
    info = {"version": {"Version": "4.3.1"}, "host": {"security": {"rootless": True}, "cgroupControllers": ["memory"]}}
    found = find(command_line(tmp_path / "a", info=info, version="podman version 4.3.1"))
    assert (found.kind, found.version, found.rootless) == ("podman", "4.3.1", True)
    assert (found.memory, found.processes) == (True, False)


def test_the_command_line_is_told_where_the_engine_is_and_nothing_else(tmp_path: Path) -> None:
    """The operator's tokens are none of its business."""
    folder = command_line(tmp_path / "a")
    find(folder, DOCKER_HOST="unix:///somewhere", GITHUB_TOKEN="s3cret")
    told = dict(line.split("=", 1) for line in (folder / "told").read_text().splitlines())
    assert told["DOCKER_HOST"] == "unix:///somewhere"
    assert set(told) <= {"DOCKER_HOST", "PATH", "PWD", "_", "SHLVL"}


@pytest.mark.parametrize("info", [{"ServerErrors": ["no socket"]}, "text", []])
def test_an_engine_that_does_not_answer_is_told_with_its_own_words(tmp_path: Path, info: object) -> None:
    """The person has to start it, or to get the right to use it."""
    folder = command_line(tmp_path / "a", info=info, code=1)
    with pytest.raises(NotReady, match="no socket") as caught:
        find(folder)
    assert caught.value.code == "BW401"
    assert "systemctl start docker" in caught.value.hint


def test_a_second_engine_is_asked_where_the_first_does_not_answer(tmp_path: Path) -> None:
    """docker is often installed and not running where podman is used."""
    silent = command_line(tmp_path / "a", info={}, code=1)
    other = command_line(tmp_path / "b", "podman", info={"version": {"Version": "5"}}, version="podman version 5")
    found = asyncio.run(find_engine({"PATH": f"{silent}:{other}:/usr/bin:/bin"}))
    assert (found.kind, found.version) == ("podman", "5")


def test_a_check_without_an_engine_says_what_to_do(tmp_path: Path) -> None:
    """It never raises: whoever asks wants to compare the ways there are."""
    folder = command_line(tmp_path / "a", info={}, code=1)
    standing = asyncio.run(ContainerBackend(tmp_path, {"PATH": f"{folder}:/usr/bin:/bin"}).check())
    assert not standing.ok
    assert "does not answer" in standing.found
    assert standing.fix


def test_what_a_dead_process_left_is_removed_and_nothing_else(tmp_path: Path) -> None:
    """A living owner, one of another machine and a label that can't be read are left alone."""
    folder = command_line(tmp_path / "a")
    host, boot, pidns, _, _ = owner_label().split("/")
    lines = [
        f"dead {host}/{boot}/{pidns}/4194304/1",
        f"rebooted {host}/before/{pidns}/1/1",
        f"alive {owner_label()}",
        f"elsewhere other/{boot}/{pidns}/4194304/1",
        "odd nonsense",
        "bare",
    ]
    (folder / "containers").write_text("\n".join(lines) + "\n")

    async def history() -> None:
        await (await find_engine({"PATH": f"{folder}:/usr/bin:/bin"})).sweep()

    asyncio.run(history())
    assert [line for line in asked(folder) if line.startswith("rm ")] == ["rm --force --volumes dead rebooted"]


def test_an_engine_that_died_is_not_waited_for(tmp_path: Path) -> None:
    """Its containers may live on: whoever leaves the room has to know, and ends the processes by itself."""
    folder = command_line(tmp_path / "a")

    async def history() -> bool:
        found = await find_engine({"PATH": f"{folder}:/usr/bin:/bin"})
        (folder / "docker").write_text(f"#!/bin/sh\necho $1 >> {folder}/asked; exit 1\n")
        return await found.remove("r1")

    assert not asyncio.run(history())
    assert asked(folder).count("ps") == 3


def test_a_room_is_removed_until_the_engine_says_that_it_is_gone(tmp_path: Path) -> None:
    """One answer may come from the middle of a removal."""
    folder = command_line(tmp_path / "a")
    (folder / "containers").write_text("one two\n")
    script = (folder / "docker").read_text()
    (folder / "docker").write_text(script.replace("ps)", f"rm) rm {folder}/containers;; ps)"))

    async def history() -> bool:
        return await (await find_engine({"PATH": f"{folder}:/usr/bin:/bin"})).remove("r1")

    assert asyncio.run(history())
    look = "ps --all --quiet --filter label=bailiwick.room=r1"
    assert [line for line in asked(folder) if line[:2] in ("ps", "rm")] == [look, "rm --force --volumes one two", look]
