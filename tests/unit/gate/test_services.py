"""What a gate file says about containers for tests, and what stands in their way, without an engine."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest

from bailiwick.egress.relay import Address
from bailiwick.errors import InputInvalid
from bailiwick.gate.services import ServiceContainers, open_services, ports_of, refuse_shared
from bailiwick.gate.spec import Service
from bailiwick.sandbox.failures import EnvironmentFailed
from bailiwick.sandbox.service import Sandboxes
from bailiwick.sandbox.toolchains import Toolchains
from tests.unit.gate.gate_stage import spec_of

CHECKS = "checks: [{name: a, run: [x]}]\n"
DB = Service("db", "postgres:16")


@dataclass(frozen=True, slots=True)
class NamedSandbox:
    """A sandbox that is known by its name alone: nothing is run in it."""

    name: str


def sandboxes(sandbox: str, place: Path) -> Sandboxes:
    """A fence with such a sandbox."""
    return Sandboxes(cast("Any", NamedSandbox(sandbox)), Toolchains(path="/usr/bin:/bin"), place)


def opened(sandbox: str, place: Path, services: tuple[Service, ...]) -> tuple[Sandboxes, EnvironmentFailed | None]:
    """What comes of services where no engine answers."""

    async def go() -> tuple[Sandboxes, EnvironmentFailed | None]:
        means = ServiceContainers(
            asyncio.Event(), lambda _: None, {"DOCKER_HOST": f"unix://{place}/nobody", "PATH": str(place)}
        )
        async with open_services(services, sandboxes(sandbox, place), means) as found:
            return found

    return asyncio.run(go())


def test_a_service_says_its_ports_and_its_environment() -> None:
    """They decide what tests find, so they are part of the policy's digest."""
    text = "services: {db: {image: 'postgres:16', ports: [5432], env: {POSTGRES_PASSWORD: x, N: 3}}}\n"
    spec = spec_of(text + CHECKS)
    assert spec.services == (Service("db", "postgres:16", (), {"POSTGRES_PASSWORD": "x", "N": "3"}, (5432,)),)
    assert spec.digest != spec_of(text.replace("5432", "5433") + CHECKS).digest


@pytest.mark.parametrize(
    ("service", "words"),
    [
        ("{image: --privileged}", "the name of an image"),
        ("{image: 'a b'}", "the name of an image"),
        ("{image: x, ports: [80]}", "from 1024 to 65535"),
        ("{image: x, ports: [70000]}", "from 1024 to 65535"),
        ("{image: x, ports: []}", "not empty"),
        ("{image: x, ports: 5432}", "a list"),
        ("{image: x, env: {A: '${secret:token}'}}", "'A' refers to a secret"),
        ("{image: x, env: {'A B': c}}", "A B"),
    ],
)
def test_what_no_container_could_be_given_is_told_at_its_place(service: str, words: str) -> None:
    """An image whose name is an option would be told to the engine as one; a secret would reach a container as text."""
    with pytest.raises(InputInvalid) as failed:
        spec_of(f"{CHECKS}services: {{db: {service}}}\n")
    assert any(str(p.place).startswith(".bailiwick/gate.yaml:2:") and words in p.what for p in failed.value.problems())


def test_the_ports_of_the_file_come_before_those_of_the_image() -> None:
    """Images expose more than tests use; a person's word is the narrower one."""
    assert ports_of(DB, ("5432/tcp", "5433/udp", "80/tcp", "9000")) == (5432, 9000)
    assert ports_of(Service("db", "x", ports=(6000, 5432, 6000)), ("5432/tcp",)) == (6000, 5432)


@pytest.mark.parametrize(
    ("exposed", "words", "hint"),
    [
        ((), "exposes no port", "ports: [5432]"),
        (("53/udp",), "exposes no port", "ports: [5432]"),
        (("80/tcp", "443/tcp"), "only 80, 443", "higher port"),
        (tuple(f"{port}/tcp" for port in range(3000, 3017)), "exposes 17 ports", "name those"),
    ],
)
def test_a_service_that_could_not_be_reached_is_refused_with_a_way_out(
    exposed: tuple[str, ...], words: str, hint: str
) -> None:
    """Tests that can't connect would be red, and the agent would be told to repair what is none of its work."""
    with pytest.raises(EnvironmentFailed) as failed:
        ports_of(DB, exposed)
    assert words in failed.value.what
    assert hint in failed.value.hint


def test_two_services_on_one_port_are_refused() -> None:
    """Inside there is one address: one of them would be taken for the other."""
    refuse_shared({"a": (5432, 1), "b": (5433,)})
    with pytest.raises(EnvironmentFailed, match="a and b both listen on port 5432"):
        refuse_shared({"a": (5432,), "b": (5433, 5432)})


def test_without_a_sandbox_services_are_refused_in_words(tmp_path: Path) -> None:
    """Ports of the host are everybody's: another's database would answer the tests."""
    found, failed = opened("none", tmp_path, (DB,))
    assert found.relay is None
    assert failed is not None
    assert "without a sandbox" in failed.what
    assert "bubblewrap" in failed.hint


def test_who_is_not_root_is_told_so_before_anything_is_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only root reaches into a container's loopback; tests that can't connect would be red instead."""
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    found, failed = opened("bwrap", tmp_path, (DB,))
    assert found.relay is None
    assert failed is not None
    assert failed.what == "containers for tests (db) are reached on their own loopback, which only root can"
    assert "as root" in failed.hint
    assert "leave `services` out" in failed.hint


def test_without_an_engine_the_way_to_get_one_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not installed or not running: both are the operator's to repair, and never the agent's."""
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    found, failed = opened("bwrap", tmp_path, (DB,))
    assert found.relay is None
    assert failed is not None
    assert failed.what.startswith("containers for tests (db): ")
    assert "docker" in failed.hint


def test_a_gate_without_services_asks_no_engine(tmp_path: Path) -> None:
    """Most gates have none, and must not get slower."""
    before = sandboxes("bwrap", tmp_path)
    assert opened("bwrap", tmp_path, ()) == (before, None)


def test_only_cages_of_the_gate_get_the_doors(tmp_path: Path) -> None:
    """A database of the tests is none of the agent's business, nor of `prepare`'s."""
    relay = {"service-5432": Address(1, None)}
    reaching = Sandboxes(cast("Any", NamedSandbox("bwrap")), Toolchains(path=""), tmp_path, relay=relay)
    assert reaching.sandbox_spec("gate", tmp_path).doors == ("service-5432",)
    assert reaching.sandbox_spec("agent", tmp_path).doors == ()
    assert reaching.sandbox_spec("prepare", tmp_path, doors=("egress",)).doors == ("egress",)
