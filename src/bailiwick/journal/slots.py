"""Slots of endpoints as locks on files: for stores that one machine has. The death of a holder frees its slot."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from bailiwick.errors import InternalBug, NotReady, Place
from bailiwick.ids import digest
from bailiwick.locks import first_free

NO_LOCK = "BW286"


class FileSlots:
    """The slots of a directory: whoever shares it shares them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @asynccontextmanager
    async def hold(self, endpoint: str, most: int) -> AsyncIterator[None]:
        """Hold one of so many slots of an endpoint; waits for one."""
        handle = await self._taken(endpoint, most)
        try:
            yield
        finally:
            os.close(handle)

    async def _taken(self, endpoint: str, most: int) -> int:
        """A descriptor that holds a slot.

        Who waits for one holds the turnstile, so that a busy process can't take each slot that it frees itself.
        """
        name = digest(endpoint)[:16]
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise self._refused(error) from error
        turnstile = await self._first_free([self._folder / f"{name}.next"])
        try:
            return await self._first_free([self._folder / f"{name}.{number}" for number in range(most)])
        finally:
            os.close(turnstile)

    async def _first_free(self, files: list[Path]) -> int:
        """A descriptor with the lock of the first file that nobody holds; waits while all are held."""
        try:
            taken = await first_free(files)
        except OSError as error:
            raise self._refused(error) from error
        if taken is None:
            raise InternalBug("a lock was released that is never released")
        return taken

    def _refused(self, error: OSError) -> NotReady:
        return NotReady(
            f"the lock of an endpoint can't be made: {error.strerror}",
            place=Place(str(self._folder)),
            hint="free some space, or make the state directory writable",
            code=NO_LOCK,
        )
