"""`du`: what takes space, and what of it is kept no longer."""

from __future__ import annotations

import click

from bailiwick.app.retention import StorageUsage, apply, look
from bailiwick.app.service import open_app
from bailiwick.cli.printing import printing
from bailiwick.ids import Json
from bailiwick.terminal.output import Printer, Styled, counted, size

SHOWN = 20


@click.command()
@click.option("--remove", is_flag=True, help="Remove what is kept no longer.")
@printing
async def du(out: Printer, remove: bool) -> int:
    """Show what takes space, by kind, and what retention would remove: never what waits for you or is the only copy.

    \b
    Examples:
      bailiwick du
      bailiwick du --remove
    """
    async with open_app() as app:
        usage = await look(app)
        freed = await apply(usage.going) if remove else 0
    if out.json:
        out.emit_json(_document(usage, freed))
        return 0
    rows = [(kind.kind, size(kind.size), str(kind.count)) for kind in usage.kinds if kind.size or kind.count]
    out.table(rows, ("kind", "size", "number"), right={1, 2})
    limit = f" of {size(usage.max_disk)} that it may (retention.max_disk)" if usage.max_disk is not None else ""
    room = f"{size(usage.free)} free; nothing new starts below {size(usage.min_free)} (retention.min_free)"
    out.line(f"{size(usage.size)}{limit}; {room}")
    if not usage.going:
        out.line("Everything is kept: nothing is old enough to go.")
        return 0
    out.line(Styled("Removed" if remove else "Kept no longer", "strong"))
    out.table([(f"  {one.kind}", one.name, size(one.size), one.why) for one in usage.going[:SHOWN]], right={2})
    if len(usage.going) > SHOWN:
        out.line(f"  {out.symbol('more')} {len(usage.going) - SHOWN} more: --json")
    total = sum(one.size for one in usage.going)
    out.line(f"{counted(len(usage.going), 'thing')}, {size(total)}" + ("" if remove else ":  bailiwick du --remove"))
    return 0


def _document(usage: StorageUsage, freed: int) -> dict[str, Json]:
    return {
        "kinds": [{"kind": one.kind, "bytes": one.size, "number": one.count} for one in usage.kinds],
        "bytes": usage.size,
        "free": usage.free,
        "max_disk": usage.max_disk,
        "min_free": usage.min_free,
        "would_go": [{"kind": o.kind, "name": o.name, "bytes": o.size, "why": o.why} for o in usage.going],
        "removed_bytes": freed,
    }
