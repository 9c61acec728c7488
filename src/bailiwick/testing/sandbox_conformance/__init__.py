"""What every sandbox has to pass: inherit `SandboxConformance` in a test class and say how to get one."""

from __future__ import annotations

from bailiwick.testing.sandbox_conformance.endings import Endings
from bailiwick.testing.sandbox_conformance.files import FilePromises
from bailiwick.testing.sandbox_conformance.plain import Plain
from bailiwick.testing.sandbox_conformance.walls import Walls


class SandboxConformance(Plain, FilePromises, Walls, Endings):
    """Every promise of `bailiwick.sandbox.port.SandboxBackend`; say how to get one in `sandbox`."""


__all__ = ["SandboxConformance"]
