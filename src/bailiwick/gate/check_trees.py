"""What checks work on: fresh checkouts, each check its own, so that none can leave anything behind for another."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bailiwick.environments.generated import set_times
from bailiwick.environments.prepared import EnvironmentBuilder, PreparedEnvironment, furnish
from bailiwick.gate.port import CheckContext, Which
from bailiwick.ids import Json
from bailiwick.removal import sweep

DIFFERENCE = 256 << 10
"""Bytes of a difference that a check is given as text."""


@dataclass(slots=True)
class Trees:
    """Makes checkouts for one gate, and removes them all at its end."""

    builder: EnvironmentBuilder
    base: str
    environment: PreparedEnvironment
    folder: Path
    base_results: dict[str, Json] = field(default_factory=dict)
    _made: int = 0

    async def checkout(self, treeish: str, files: Mapping[str, bytes | None] | None = None) -> Path:
        """A fresh checkout, with these bytes instead of what the tree has."""
        tree = await self.builder.git_store.write(treeish, files) if files else treeish
        self._made += 1
        path = self.folder / f"{self._made:03}-{secrets.token_hex(4)}"
        await self.builder.git_store.checkout(tree, path)
        if self.environment.copied:
            changed = {change.path for change in await self.builder.git_store.changes(self.base, tree)}
            await asyncio.to_thread(set_times, path, changed)
        await furnish(self.environment, path, self.builder)
        return path

    async def context(self, proposed: str, allowed: tuple[str, ...] = (), *, brief: bool = False) -> CheckContext:
        """What checks of one proposed tree may use."""
        git_store = self.builder.git_store
        names: dict[Which, str] = {"base": self.base, "proposed": proposed}

        async def fresh(which: Which, files: Mapping[str, bytes | None] | None = None, /) -> Path:
            return await self.checkout(names[which], files)

        return CheckContext(
            sandboxes=self.builder.sandboxes,
            environment=self.environment.binds,
            changes=await git_store.changes(self.base, proposed),
            fresh=fresh,
            read=lambda which, path: git_store.blob(names[which], path),
            files=lambda which: git_store.files(names[which]),
            cancel=self.builder.cancel,
            show=self.builder.show,
            allowed=allowed,
            base_results=self.base_results,
            read_many=lambda which, paths: git_store.blobs(names[which], paths, limit=8 << 20),
            brief=brief,
            diff=lambda: git_store.diff(self.base, proposed, limit=DIFFERENCE),
        )

    async def close(self) -> None:
        """Remove every checkout."""
        await asyncio.to_thread(sweep, self.folder)
