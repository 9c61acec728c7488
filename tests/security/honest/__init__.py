"""Changes as honest people and agents make them. The gate may refuse hardly any of them."""

from __future__ import annotations

from tests.security.honest.appended import APPENDED
from tests.security.honest.classic import CLASSIC
from tests.security.honest.features import NEW_FEATURES
from tests.security.honest.fixes import FIXES
from tests.security.honest.model import Honest
from tests.security.honest.refactorings import REFACTORED

HONEST: tuple[Honest, ...] = (*CLASSIC, *FIXES, *APPENDED, *REFACTORED, *NEW_FEATURES)
"""All of them."""
SAMPLE = (
    "exit-handled", "appended-method", "red-discount-repaired-with-a-test", "table-of-status-texts",
)  # fmt: skip
"""Those that every run of the tests looks at."""

__all__ = ["HONEST", "SAMPLE", "Honest"]
