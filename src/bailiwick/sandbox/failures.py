"""What keeps a change from being checked, and says nothing about it."""

from __future__ import annotations

from bailiwick.errors import NotReady

FAILED = "BW430"


class EnvironmentFailed(NotReady):
    """Repair what `prepare` needs (network, lock file, tool) and run the same again; the agent is never told."""

    default_code = FAILED

    def __init__(self, what: str, *, hint: str = "", output: str = "", code: str = "") -> None:
        super().__init__(what, hint=hint, code=code)
        self.output = output
