"""The sandboxes keep every promise of the port."""

from __future__ import annotations

from pathlib import Path

from bailiwick.sandbox.backends.bwrap import BwrapBackend
from bailiwick.sandbox.backends.none import NoSandboxBackend
from bailiwick.sandbox.cgroups import CgroupRoots
from bailiwick.sandbox.port import SandboxBackend
from bailiwick.testing.sandbox_conformance import SandboxConformance
from tests.needs import need


class TestBwrap(SandboxConformance):
    """The suite, with bubblewrap."""

    def sandbox(self, tmp_path: Path) -> SandboxBackend:
        need("sandbox")
        return BwrapBackend()


class TestBwrapWithoutControlGroups(SandboxConformance):
    """The suite, on a machine that lets us make no control groups."""

    def sandbox(self, tmp_path: Path) -> SandboxBackend:
        need("sandbox")
        return BwrapBackend(ground=CgroupRoots())


class TestNone(SandboxConformance):
    """What holds without any sandbox."""

    isolates = False
    bounds = False

    def sandbox(self, tmp_path: Path) -> SandboxBackend:
        return NoSandboxBackend(tmp_path / "scratch")
