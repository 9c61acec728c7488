"""Small programs with one bug each, for an agent to heal."""

from __future__ import annotations

from tests.security.programs.lists import LISTS
from tests.security.programs.model import WAYS, Program
from tests.security.programs.numbers import NUMBERS
from tests.security.programs.texts import TEXTS

PROGRAMS: tuple[Program, ...] = (*NUMBERS, *LISTS, *TEXTS)
"""All of them."""

__all__ = ["PROGRAMS", "WAYS", "Program"]
