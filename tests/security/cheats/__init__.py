"""Ways to sell a wrong product as a right one, by kind."""

from __future__ import annotations

from tests.security.cheats.classic import CHEATS as CLASSIC
from tests.security.cheats.deciding import DECIDING
from tests.security.cheats.detection import UNDER_TEST
from tests.security.cheats.ending import ENDING
from tests.security.cheats.equality import EQUALITY
from tests.security.cheats.expectations import EXPECTATIONS
from tests.security.cheats.healed import HEALED
from tests.security.cheats.hygiene import HYGIENE
from tests.security.cheats.installed import INSTALLED
from tests.security.cheats.libraries import LIBRARIES
from tests.security.cheats.model import Cheat
from tests.security.cheats.new_tests import NEW_TESTS
from tests.security.cheats.rewriting import REWRITING
from tests.security.cheats.source_known import SOURCE_KNOWN
from tests.security.cheats.spelling import SPELLING
from tests.security.cheats.values import VALUES
from tests.security.cheats.weakening import WEAKENING

CHEATS: tuple[Cheat, ...] = (
    *CLASSIC,
    *UNDER_TEST,
    *DECIDING,
    *ENDING,
    *EQUALITY,
    *EXPECTATIONS,
    *HEALED,
    *HYGIENE,
    *INSTALLED,
    *LIBRARIES,
    *NEW_TESTS,
    *REWRITING,
    *SOURCE_KNOWN,
    *SPELLING,
    *VALUES,
    *WEAKENING,
)
"""All of them."""

__all__ = ["CHEATS", "Cheat"]
