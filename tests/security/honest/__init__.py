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
    "other-formula", "into-a-package", "vat", "raises", "exit-handled", "unicode", "version-bumped",
    "new-behaviour-with-its-test", "red-discount-repaired-with-a-test", "hard-exit-repaired", "appended-function",
    "appended-method", "table-of-status-texts", "equality-added-to-the-basket", "more-stock",
)  # fmt: skip
"""Those that every run of the tests looks at."""

__all__ = ["HONEST", "SAMPLE", "Honest"]
