"""Honest changes pass the gate; those that need a protected path wait for a person and are not refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.security.gatehouse import Gatehouse, reasons
from tests.security.honest import HONEST, SAMPLE, Honest

ALLOWED = 3
"""Of all honest changes so many may be refused at most."""


@pytest.fixture(scope="module")
def gatehouse(tmp_path_factory: pytest.TempPathFactory) -> Gatehouse:
    """One gate for all: it keeps what it learnt about the base."""
    return Gatehouse(Path(tmp_path_factory.mktemp("gate")))


@pytest.mark.parametrize("change", [c for c in HONEST if c.name in SAMPLE], ids=lambda change: change.name)
def test_an_honest_change_is_not_refused(change: Honest, gatehouse: Gatehouse) -> None:
    """A gate that cries wolf is switched off."""
    report = gatehouse.judge(change.files, change.base)
    assert report.verdict == change.expect, reasons(report)


@pytest.mark.nightly
@pytest.mark.timeout(1200)
def test_hardly_any_honest_change_is_refused(gatehouse: Gatehouse) -> None:
    """All of them: at most three are refused, and none that needs a person's word is among those."""
    refused = []
    for change in HONEST:
        report = gatehouse.judge(change.files, change.base)
        if report.verdict != change.expect:
            refused.append(f"{change.name}: {reasons(report)[:600]}")
        assert change.expect == "green" or report.verdict == "needs_person", change.name
    assert len(HONEST) >= 60
    assert len(refused) <= ALLOWED, "\n\n".join(refused)
