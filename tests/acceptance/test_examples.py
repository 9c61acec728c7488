"""Every example runs with the installed command and ends as its README says."""

from __future__ import annotations

import json
import re

import pytest

from tests.acceptance.command import EXAMPLES, Person

ROWS = re.findall(r"^\| `([a-z-]+)` \|.*\| (\d+) \|$", (EXAMPLES / "README.md").read_text(), re.MULTILINE)


def test_every_example_is_listed() -> None:
    """An example that no table names would never be run here."""
    folders = {p.name for p in EXAMPLES.iterdir() if (p / "workflow.yaml").exists()}
    assert {name for name, _ in ROWS} == folders
    assert len(folders) >= 10


@pytest.mark.parametrize(
    ("name", "code"),
    [pytest.param(*row, marks=() if number % 2 == 0 else pytest.mark.nightly) for number, row in enumerate(ROWS)],
)
def test_an_example_ends_as_it_says(person: Person, name: str, code: str) -> None:
    """The exit code is the interface; the run directory and the JSON document agree with it; nothing is done again."""
    result = person.runs("run", EXAMPLES / name, "--json")
    assert result.code == int(code), result.out + result.err
    assert "warning" not in result.err, "examples are what people copy"
    if result.code == 2:
        assert "BW205" in result.err
        return
    document = result.json()
    assert document["code"] == result.code
    run = json.loads((person.home / "state" / "runs" / f"{name}-default" / "run.json").read_text())
    assert (run["uid"], run["state"]) == (document["uid"], document["state"])
    again = person.runs("run", EXAMPLES / name, "--json")
    assert again.code == result.code
    assert again.json()["steps"] == document["steps"]
