"""A linter that a gate names and that is not there."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.acceptance.command import Person


def test_a_configured_linter_that_is_missing_is_a_failed_check_with_the_way_to_get_it(person: Person) -> None:
    """A check that is skipped in silence is a gate that says green and looked at nothing."""
    repository = person.cwd / "project"
    (repository / ".bailiwick").mkdir(parents=True)
    (repository / "a.py").write_text("a = 1\n")
    gate = "version: 1\nchecks:\n  - {name: lint, run: [ruff-of-the-house, check, .]}\n"
    (repository / ".bailiwick" / "gate.yaml").write_text(gate)
    git = ["git", "-c", "user.name=T", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "x"]):
        subprocess.run([*git, *words], cwd=repository, check=True)
    person.cwd = repository
    done = person.runs("gate", "--json", timeout=600)
    assert done.code != 0
    (lint,) = [one for one in done.json()["checks"] if one["name"] == "lint"]
    assert lint["outcome"] == "failed"
    assert [one["code"] for one in lint["findings"]] == ["missing-tool"]
    assert "ruff-of-the-house" in lint["hint"]
