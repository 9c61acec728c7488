"""The self-test tells a sandbox from none."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING

from bailiwick.processes import children
from bailiwick.sandbox.backends.bwrap import BwrapBackend
from bailiwick.sandbox.backends.none import NoSandboxBackend
from bailiwick.sandbox.port import SandboxBackend
from bailiwick.sandbox.selftest import self_test
from bailiwick.sandbox.service import Sandboxes
from bailiwick.sandbox.toolchains import Toolchains
from tests.needs import need

if TYPE_CHECKING:
    import pytest


def _held(sandbox: SandboxBackend, scratch: Path) -> dict[str, bool]:
    scratch.chmod(0o700)
    probes = asyncio.run(self_test(Sandboxes(sandbox, Toolchains(), scratch)))
    assert list(scratch.iterdir()) == [], "it leaves nothing behind"
    assert all(probe.found for probe in probes)
    return {probe.name: probe.protected for probe in probes}


def test_a_sandbox_holds_everywhere(tmp_path: Path) -> None:
    """This is what `doctor` shows on a good machine."""
    need("sandbox")
    held = _held(BwrapBackend(), tmp_path)
    assert set(held.values()) == {True}, held
    assert len(held) == 10


def test_without_a_sandbox_it_gets_through(tmp_path: Path) -> None:
    """An attempt that never succeeds anywhere would prove nothing."""
    held = _held(NoSandboxBackend(tmp_path), tmp_path)
    open_ways = {name for name, protected in held.items() if not protected}
    assert open_ways >= {"files", "writes", "processes", "network", "rights"}
    assert held["descriptors"]
    assert held["end"]


def test_one_that_can_t_be_carried_out_is_not_called_a_success(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Silence is not protection."""
    monkeypatch.setattr("bailiwick.sandbox.selftest_probes.__file__", "/dev/null")
    assert _held(NoSandboxBackend(tmp_path), tmp_path) == {"self-test": False}
    assert children.read_stat(os.getpid()) is not None
