"""What is inside a sandbox stays inside: every way out that we know of is tried for real."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from bailiwick.sandbox.backends.bwrap import BwrapBackend
from bailiwick.sandbox.backends.none import NoSandboxBackend
from bailiwick.sandbox.port import SandboxBackend
from tests.security.escapes import ATTEMPTS, Attempt
from tests.security.prison import Verdict, attempt, open_host

SHOWN_ANYWHERE = ("the-database", "the-signing-key", "write-the-canary", "our-loopback-service", "abstract-socket")
"""Attempts that get through where there is no sandbox: proof that they can succeed."""


@pytest.fixture(scope="session")
def bwrap() -> BwrapBackend:
    """The sandbox under test; one that does not work here is a failure where CI says so, else a loud skip."""
    box = BwrapBackend()
    standing = asyncio.run(box.check())
    if not standing.ok:
        if os.environ.get("CI") == "true":
            pytest.fail(f"bwrap has to work here: {standing.found}")
        pytest.skip(f"ESCAPES NOT TRIED: {standing.found}; {standing.fix}")
    return box


def tried(folder: Path, sandbox: SandboxBackend, how: Attempt) -> tuple[Verdict, str]:
    """How an attempt ended, and the canary afterwards."""

    async def main() -> Verdict:
        async with open_host(folder) as host:
            return await attempt(host, sandbox, how)

    return asyncio.run(main()), (folder / "canary/canary").read_text()


@pytest.mark.parametrize("how", ATTEMPTS, ids=lambda how: how.name)
def test_nothing_gets_out_of_bwrap(how: Attempt, bwrap: BwrapBackend, tmp_path: Path) -> None:
    """An agent is not trusted: no secret is read, nothing outside is written, nobody is reached, nothing is left."""
    found, canary = tried(tmp_path, bwrap, how)
    assert "ESCAPED" not in found.text, found.text
    assert "Traceback" not in found.text, found.text
    assert not found.knocked, "one of our listeners was reached"
    assert not found.left, "a process is left"
    assert canary == "whole"


def test_there_are_enough_ways_out() -> None:
    """The catalogue only grows: at least sixty ways, ten of them on containers in every run."""
    assert len({how.name for how in ATTEMPTS}) >= 60
    assert sum(how.container for how in ATTEMPTS) >= 10


@pytest.mark.parametrize("how", [how for how in ATTEMPTS if how.name in SHOWN_ANYWHERE], ids=lambda how: how.name)
def test_without_a_sandbox_the_same_attempts_get_through(how: Attempt, tmp_path: Path) -> None:
    """An attempt that could never succeed would prove nothing."""
    found, canary = tried(tmp_path, NoSandboxBackend(), how)
    assert "ESCAPED" in found.text or found.knocked or canary != "whole", found.text
