"""What pages say in tables is what the code has."""

from __future__ import annotations

import re
import tomllib

from bailiwick.agents.registry import TABLE
from bailiwick.config.display import worded
from bailiwick.config.keys import KEYS
from bailiwick.engine.failures import Kind
from tests.unit.docs.pages import ROOT

DOCS = ROOT / "docs"


def rows(page: str, heading: str) -> list[list[str]]:
    """The cells of the first table below a heading, without their code marks."""
    text = (DOCS / page).read_text("utf-8").split(f"\n{heading}\n", 1)[1]
    lines = re.findall(r"^\|(.+)\|$", re.split(r"\n#+ ", text)[0], re.MULTILINE)
    return [[cell.strip().strip("`") for cell in line.split("|")] for line in lines[2:]]


def test_the_knobs_of_the_ladder_have_the_defaults_that_its_page_names() -> None:
    """Whoever tunes a week-long run trusts these numbers."""
    keys = {key.name: key for key in KEYS}
    shown = rows("explanation/ladder.md", "## Knobs")
    had = [[name, variable, worded(keys[name].default, keys[name])] for name, variable, _ in shown]
    strange = [variable for name, variable, _ in shown if variable not in keys[name].variables]
    assert shown == had
    assert strange == []


def test_the_ladder_page_tells_every_class_of_failure_in_the_order_it_is_looked_for() -> None:
    """A class in `attempts.jsonl` that the page lacks can't be looked up, and the order decides which one is taken."""
    assert [row[0] for row in rows("explanation/ladder.md", "## Classes")] == [kind.value for kind in Kind]


def test_every_backend_is_in_the_tables_of_the_agents_page() -> None:
    """A backend that nobody describes is not used; what it may do unattended has to be said."""
    assert [row[0] for row in rows("how-to/run-agents.md", "## Backends")] == list(TABLE)
    allowed = rows("how-to/run-agents.md", "## What an agent may do unattended")
    told = {name.strip(" `") for row in allowed for name in row[0].split(",")}
    assert told == set(TABLE) - {"simulate"}


def test_every_dependency_says_why_it_is_there() -> None:
    """A package that was added without a reason, or stayed in the list after it left, is noticed here."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    needed = [re.split(r"[<>=~!\[; ]", line, maxsplit=1)[0] for line in project["dependencies"]]
    assert sorted(row[0] for row in rows("dependencies.md", "## Needed to run")) == sorted(needed)


def test_every_decision_is_listed_by_its_title() -> None:
    """A decision that the list lacks is not found; one whose title changed is found under the wrong words."""
    titles = {path.name: path.read_text("utf-8").splitlines()[0] for path in sorted((DOCS / "adr").glob("0*.md"))}
    listed = re.findall(
        r"^\| (\d{4}) \| \[(.+)\]\((\S+)\) \|$", (DOCS / "adr/README.md").read_text("utf-8"), re.MULTILINE
    )
    assert {name: f"# {number}. {title}" for number, title, name in listed} == titles
