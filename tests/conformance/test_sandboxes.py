"""The sandboxes keep every promise of the port."""

from __future__ import annotations

from pathlib import Path

from bailiwick.fence.backends.bwrap import BwrapSandbox
from bailiwick.fence.backends.none import NoSandbox
from bailiwick.fence.cgroups import Ground
from bailiwick.fence.port import Sandbox
from bailiwick.testing.sandbox_conformance import SandboxConformance
from tests.needs import need


class TestBwrap(SandboxConformance):
    """The suite, with bubblewrap."""

    def sandbox(self, tmp_path: Path) -> Sandbox:
        need("sandbox")
        return BwrapSandbox()


class TestBwrapWithoutControlGroups(SandboxConformance):
    """The suite, on a machine that lets us make no control groups."""

    def sandbox(self, tmp_path: Path) -> Sandbox:
        need("sandbox")
        return BwrapSandbox(ground=Ground())


class TestNone(SandboxConformance):
    """What holds without any sandbox."""

    isolates = False
    bounds = False

    def sandbox(self, tmp_path: Path) -> Sandbox:
        return NoSandbox(tmp_path / "scratch")
