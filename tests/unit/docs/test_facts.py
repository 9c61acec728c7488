"""What pages say in tables is what the code has."""

from __future__ import annotations

import re
import tomllib

from bailiwick.agents.registry import TABLE
from bailiwick.cli.commands.gate import EXITS
from bailiwick.config.display import worded
from bailiwick.config.keys import KEYS
from bailiwick.engine.failures import FailureKind
from bailiwick.gate.backends import TABLE as CHECKS
from bailiwick.sandbox.service import PROFILES
from bailiwick.sandbox.spec import GB, SandboxLimits
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
    assert [row[0] for row in rows("explanation/ladder.md", "## Classes")] == [kind.value for kind in FailureKind]


def test_every_backend_is_in_the_tables_of_the_agents_page() -> None:
    """A backend that nobody describes is not used; what it may do unattended has to be said."""
    assert [row[0] for row in rows("how-to/run-agents.md", "## Backends")] == list(TABLE)
    allowed = rows("how-to/run-agents.md", "## What an agent may do unattended")
    told = {name.strip(" `") for row in allowed for name in row[0].split(",")}
    assert told == set(TABLE) - {"simulate"}


def test_every_profile_of_the_sandbox_is_in_its_table_with_its_limits_below() -> None:
    """Whoever chooses a profile has to find it; a limit that is told wrong is looked for in the wrong place."""
    assert [row[0] for row in rows("how-to/sandbox.md", "## Profiles")] == ["auto", *PROFILES]
    told = (DOCS / "how-to/sandbox.md").read_text("utf-8")
    limits = SandboxLimits()
    sizes = f"Memory {limits.memory // GB} GB, {limits.processes} processes, {limits.open_files} open files, "
    sizes += f"{limits.file_size // GB} GB in one file, {limits.tmp // GB} GB of `/tmp`, {limits.disk // 10**9} GB"
    assert f"{sizes} (`sandbox.disk`) and {limits.inodes:,} files (`sandbox.files`) in all" in told


def test_every_kind_of_check_is_in_the_table_of_the_gate_with_its_exit_codes() -> None:
    """A kind that nobody describes is not used; a pipeline goes by the codes."""
    cells = [row[0].removesuffix("` (the default)") for row in rows("how-to/gate.md", "### Kinds of check")]
    kinds = [kind for cell in cells for kind in cell.split("`, `")]
    assert sorted(kinds) == sorted(CHECKS)
    assert EXITS == {"green": 0, "red": 1, "needs_person": 1, "environment": 8}
    told = (DOCS / "how-to/gate.md").read_text("utf-8")
    assert "Exit codes: 0 green, 1 red or in need of your approval, 8 it could not be run." in told


def test_the_catalogue_of_the_threat_model_names_tests_that_are_there() -> None:
    """A page that promises a test which was moved or removed promises nothing."""
    named = [row[2] for row in rows("explanation/threat-model.md", "## Catalogue")]
    paths = [path for cell in named for path in re.findall(r"`?(tests/[\w/*.]+)`?", cell)]
    assert len(paths) >= len(named) - 1
    assert [path for path in paths if not list(ROOT.glob(path))] == []


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
