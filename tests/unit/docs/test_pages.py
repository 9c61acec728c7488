"""What pages show can be typed, loaded and followed."""

from __future__ import annotations

from pathlib import Path

import pytest

from bailiwick.lang.load import load
from tests.unit.docs.pages import ROOT, Bundle, anchors, bundles, command_lines, commands, links, mistake, pages

BUNDLES = [bundle for page in pages() for bundle in bundles(page)]


def _shown(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_every_relative_link_leads_somewhere() -> None:
    """A page that was moved takes its readers along only if the links to it are moved too."""
    lost = []
    for page in pages():
        for link in links(page):
            name, _, anchor = link.partition("#")
            target = (page.parent / name).resolve() if name else page
            if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
                lost.append(f"{_shown(page)}: {link}")
    assert lost == []


def test_every_command_that_a_page_shows_exists_with_its_flags() -> None:
    """People copy commands; one that was renamed fails in their hands first."""
    wrong = [f"{_shown(page)}: {found}" for page in pages() for words in commands(page) if (found := mistake(words))]
    assert wrong == []


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("bailiwick run hello --fresh && bailiwick status", ["", ""]),
        ("bailiwick rnu hello", ["bailiwick has no command rnu"]),
        ("cd x; bailiwick runs stop hello --nwo", ["bailiwick runs stop has no flag --nwo"]),
        ("bailiwick runs lst | cat", ["bailiwick runs has no command lst"]),
        ("make demo", []),
    ],
)
def test_a_command_that_does_not_exist_is_noticed(line: str, found: list[str]) -> None:
    """The check of the pages is worth something only if it can fail."""
    assert [mistake(words) for words in command_lines(line)] == found


@pytest.mark.parametrize("bundle", BUNDLES, ids=[f"{b.page.stem}-{n}" for n, b in enumerate(BUNDLES)])
def test_every_complete_workflow_in_a_page_loads_without_a_remark(bundle: Bundle, tmp_path: Path) -> None:
    """An example that does not load teaches the wrong thing; one with warnings teaches a bad habit."""
    loaded = load(bundle.write(tmp_path / "shown"), strict=True)
    assert [str(problem) for problem in loaded.warnings] == []


def test_the_pages_show_complete_workflows() -> None:
    """Without this the test above would pass on pages that show none."""
    assert {"tutorial.md", "write-a-workflow.md", "fan-out.md"} <= {bundle.page.name for bundle in BUNDLES}
