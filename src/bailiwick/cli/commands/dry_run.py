"""What `bailiwick run --dry-run` prints."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import click

from bailiwick.ids import Json

if TYPE_CHECKING:
    from bailiwick.lang.load import Loaded


def report(loaded: Loaded, params: dict[str, Json], *, as_json: bool = False) -> int:
    """Dry-run a workflow, print the report, and give the exit code: 0 if some pass came to an end, else 1."""
    from bailiwick.dryrun.service import dry_run

    found = dry_run(loaded, params)
    if as_json:
        click.echo(json.dumps(found.to_json(), ensure_ascii=False))
    else:
        click.echo(found.text(shutil.get_terminal_size().columns), nl=False)
    return found.exit_code
