"""The templates of `new` and the examples: valid, complete, walkable."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import bailiwick
from bailiwick.dryrun.service import dry_run
from bailiwick.lang.load import load

TEMPLATES = Path(bailiwick.__file__).parent / "bundled" / "templates"
EXAMPLES = Path(__file__).parents[3] / "examples"
SHIPPED = [path.parent for root in (TEMPLATES, EXAMPLES) for path in sorted(root.glob("*/workflow.yaml"))]


@pytest.mark.parametrize("folder", SHIPPED, ids=lambda path: path.name)
def test_it_is_valid_without_warnings_and_reaches_a_terminal(folder: Path) -> None:
    """People copy these: a warning in one of them is copied as well."""
    work = load(folder)
    assert [str(warning) for warning in work.warnings] == []
    found = dry_run(work, {})
    assert any(p.outcome == "done" for p in found.passes)
    assert found.warnings == ()
    assert work.graph.description


@pytest.mark.parametrize("folder", SHIPPED, ids=lambda path: path.name)
def test_nothing_is_left_over(folder: Path) -> None:
    """A script that no node runs confuses whoever reads the example."""
    used = set(re.findall(r"(?:scripts|prompts)/[\w.]+", "".join(p.read_text() for p in folder.rglob("workflow.yaml"))))
    there = {f"{path.parent.name}/{path.name}" for kind in ("scripts", "prompts") for path in folder.rglob(f"{kind}/*")}
    assert there == used


def test_the_index_lists_every_template_with_a_line() -> None:
    """`bailiwick new --list` prints it."""
    listed: dict[str, str] = json.loads((TEMPLATES / "index.json").read_text("utf-8"))
    assert set(listed) == {path.name for path in TEMPLATES.iterdir() if path.is_dir()}
    assert all(line and "\n" not in line for line in listed.values())


@pytest.mark.parametrize("folder", sorted(p for p in TEMPLATES.iterdir() if p.is_dir()), ids=lambda path: path.name)
def test_a_template_is_named_after_its_directory(folder: Path) -> None:
    """`new` puts the person's own name in that line's place."""
    assert f"\nname: {folder.name}\n" in (folder / "workflow.yaml").read_text("utf-8")


def test_the_readme_has_a_row_with_an_exit_code_for_every_example() -> None:
    """The rows are the promise that the acceptance run keeps."""
    rows = re.findall(r"^\| `([\w-]+)` \|.*\| (\d+) \|$", (EXAMPLES / "README.md").read_text("utf-8"), re.MULTILINE)
    assert sorted(name for name, _ in rows) == sorted(path.parent.name for path in EXAMPLES.glob("*/workflow.yaml"))
