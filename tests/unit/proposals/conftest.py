"""Stores that a test opened are closed with it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.unit.proposals.stage import close_stores


@pytest.fixture(autouse=True)
def closed_stores() -> Iterator[None]:
    """No store outlives its test."""
    yield
    close_stores()
