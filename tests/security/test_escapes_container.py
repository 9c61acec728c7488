"""The same ways out, tried from inside a container on a real engine."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest

from bailiwick.sandbox.backends.container import ContainerBackend
from tests.conformance.docker_engine import engine
from tests.security.escapes import ATTEMPTS, Attempt
from tests.security.prison import attempt, open_host

__all__ = ["engine"]
CASES = [pytest.param(how, id=how.name, marks=() if how.container else pytest.mark.nightly) for how in ATTEMPTS]


@pytest.mark.parametrize("how", CASES)
def test_nothing_gets_out_of_a_container(how: Attempt, engine: Mapping[str, str], tmp_path: Path) -> None:
    """A container is a sandbox only with everything switched off that an engine gives it by itself."""

    async def main() -> None:
        scratch = tmp_path / "scratch"
        scratch.mkdir()
        async with open_host(tmp_path / "host") as host:
            found = await attempt(host, ContainerBackend(scratch, engine), how)
        assert "ESCAPED" not in found.text, found.text
        assert "Traceback" not in found.text, found.text
        assert not found.knocked, "one of our listeners was reached"
        assert not found.left, "a process is left"

    (tmp_path / "host").mkdir()
    asyncio.run(main())
    assert (tmp_path / "host/canary/canary").read_text() == "whole"
