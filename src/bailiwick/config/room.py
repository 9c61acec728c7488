"""Whether there is room on the disk for anything new."""

from __future__ import annotations

import shutil

from bailiwick.config.service import Config
from bailiwick.errors import NotReady, Place

NO_ROOM = "BW486"


def require_room(config: Config) -> None:
    """Raise `NotReady` where less is free than has to be: nothing new starts then."""
    least = int(config.get("retention.min_free") or 0)
    there = next(path for path in (config.paths.state, *config.paths.state.parents) if path.exists())
    free = shutil.disk_usage(there).free
    if free < least:
        raise NotReady(
            f"{free // 10**6:,} MB are free, and {least // 10**6:,} MB have to be (retention.min_free)",
            place=Place(str(config.paths.state)),
            hint="see what takes space: bailiwick du; remove what retention no longer keeps: bailiwick du --remove",
            code=NO_ROOM,
        )
