"""A state directory with a chain in it, and ways to meddle with its file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bailiwick.audit.file import chain_file, head_file
from bailiwick.audit.model import AuditEntry, ChainVerdict
from bailiwick.audit.service import append, verify
from bailiwick.clock import ManualClock


@dataclass
class Chain:
    """Appends and meddles."""

    state: Path
    clock: ManualClock
    added: int = 0

    @property
    def path(self) -> Path:
        return chain_file(self.state)

    def add(self, count: int = 1, kind: str = "test.done") -> list[AuditEntry]:
        made = []
        for _ in range(count):
            self.clock.advance(1)
            self.added += 1
            made.append(append(self.state, kind, {"number": self.added}, actor="ann", clock=self.clock))
        return made

    def lines(self) -> list[bytes]:
        return self.path.read_bytes().splitlines(keepends=True)

    def write(self, lines: list[bytes]) -> None:
        """Put other lines in place, as somebody would who also takes the local head away."""
        self.path.write_bytes(b"".join(lines))
        head_file(self.state).unlink(missing_ok=True)

    def kinds(self) -> list[str]:
        return [finding.kind for finding in self.verdict().findings]

    def verdict(self) -> ChainVerdict:
        return verify(self.state)
