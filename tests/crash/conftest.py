"""What the crash tests share: a nursery of processes for each worker, and the choice to die at every point there is."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.crash.scene import Crowd, Nursery


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--all-points`: die at every system call, not at a sample of them."""
    parser.addoption("--all-points", action="store_true", help="crash tests: die at every point, not at a sample")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Give the tests more time where each tries all of its points."""
    if config.getoption("--all-points", default=False):
        for item in items:
            item.add_marker(pytest.mark.timeout(3600))


@pytest.fixture(scope="session")
def nursery() -> Iterator[Nursery]:
    """One nursery per worker."""
    made = Nursery()
    yield made
    made.close()


@pytest.fixture
def crowd() -> Iterator[Crowd]:
    """The processes of one test."""
    made = Crowd()
    yield made
    made.end()
