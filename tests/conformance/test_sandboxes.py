"""The sandboxes keep every promise of the port."""

from __future__ import annotations

import asyncio
import os
from functools import cache
from pathlib import Path

import pytest

from bailiwick.fence.backends.bwrap import BwrapSandbox
from bailiwick.fence.backends.none import NoSandbox
from bailiwick.fence.cage import Standing
from bailiwick.fence.cgroups import Ground
from bailiwick.fence.port import Sandbox
from bailiwick.testing.sandbox_conformance import SandboxConformance


@cache
def _standing() -> Standing:
    return asyncio.run(BwrapSandbox().check())


def _needs_bwrap() -> None:
    """Where it does not work the suite is skipped loudly; in CI that is a failure."""
    standing = _standing()
    if not standing.ok:
        if os.environ.get("CI") == "true":
            pytest.fail(f"bwrap has to work here: {standing.found}")
        pytest.skip(f"BWRAP NOT TESTED: {standing.found}; {standing.fix}")


class TestBwrap(SandboxConformance):
    """The suite, with bubblewrap."""

    def sandbox(self, tmp_path: Path) -> Sandbox:
        _needs_bwrap()
        return BwrapSandbox()


class TestBwrapWithoutControlGroups(SandboxConformance):
    """The suite, on a machine that lets us make no control groups."""

    def sandbox(self, tmp_path: Path) -> Sandbox:
        _needs_bwrap()
        return BwrapSandbox(ground=Ground())


class TestNone(SandboxConformance):
    """What holds without any sandbox."""

    isolates = False
    bounds = False

    def sandbox(self, tmp_path: Path) -> Sandbox:
        return NoSandbox(tmp_path / "scratch")
