"""Who is at work: the person whose process this is, and that it is a person at all."""

from __future__ import annotations

import getpass

from bailiwick.config.variables import Environment
from bailiwick.errors import UsageError


def person() -> str:
    """Who acts, for records."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "somebody"


def require_person() -> None:
    """Refuse a person's decision in a process that belongs to a run."""
    if Environment().inside_run():
        raise UsageError(
            "this is a person's decision, and this process belongs to a run",
            hint="do it in a terminal of your own",
            code="BW477",
        )
