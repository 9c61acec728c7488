"""Approved notes in the briefs of the patterns: which ones, where, and when none."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from bailiwick.app.service import open_app
from bailiwick.brain.frontmatter import write
from bailiwick.brain.model import Note, Status
from bailiwick.brain.service import scope_of
from bailiwick.pipelines.briefing import notes_about
from bailiwick.pipelines.model import ISSUE_TO_PR, SELF_HEAL, Pattern, PreflightLine
from bailiwick.pipelines.simulation import write_repository
from tests.unit.pipelines.graphs import Stand, gate, walk

TASK = "Discounted prices are not rounded to cents"


@pytest.fixture
def builder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project, and a brain with notes of it, of another one, and of nobody in particular."""
    monkeypatch.setenv("BAILIWICK_HOME", str(tmp_path / "home"))
    root = write_repository(tmp_path / "shop", {"a.txt": "1\n"})
    monkeypatch.chdir(root)
    told: tuple[tuple[str, Status, str], ...] = (
        (scope_of(root), "approved", "Rounding is half to even."),
        (scope_of(root), "pending", "Rounding is down."),
        ("bank-1", "approved", "Rounding is never done."),
        ("global", "approved", "Prices are decimals."),
    )
    for number, (scope, status, text) in enumerate(told):
        file = tmp_path / "home" / "state" / "brain" / "notes" / scope / f"{number}.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(write(Note(f"n-{number}", "Rounding", text, scope=scope, status=status)))
    return root


def _about(task: str, root: Path) -> tuple[str, list[str]]:
    """The notes for a task, and what was told about them."""
    lines: list[PreflightLine] = []

    async def ask() -> str:
        async with open_app({}) as app:
            return await notes_about(task, root, app.config, app.runtime.clock, lines.append)

    return asyncio.run(ask()), [line.text for line in lines]


def test_a_brief_gets_what_a_person_approved_for_this_project(builder: Path) -> None:
    """Neither what waits nor what another project learned; the person sees which notes are used."""
    text, told = _about(TASK, builder)
    assert "Rounding is half to even." in text
    assert "Prices are decimals." in text
    assert [words for words in ("Rounding is down.", "Rounding is never done.") if words in text] == []
    assert len(told) == 1
    assert told[0].startswith("with notes n-")
    assert _about("Nothing like it", builder) == ("", [])


def test_switched_off_nothing_is_read(builder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The feature is one switch."""
    monkeypatch.setenv("BAILIWICK_FEATURES_BRAIN", "false")
    assert _about(TASK, builder) == ("", [])
    assert not (builder.parent / "home" / "cache" / "brain").exists()


def test_a_brain_that_cannot_be_read_stops_no_work(builder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The person is told, and the work goes on without."""

    def broken(self: object, wanted: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("bailiwick.brain.index.Index.search", broken)
    text, told = _about(TASK, builder)
    assert text == ""
    assert told == ["without notes: [Errno 13] Permission denied"]


@pytest.mark.parametrize("pattern", [ISSUE_TO_PR, SELF_HEAL])
def test_notes_stand_in_every_brief_and_none_leave_no_trace(tmp_path: Path, pattern: Pattern) -> None:
    """Before the task, as they are: what a note says is never a template."""
    stand = Stand(gates=[gate("red", "t1"), gate("green", "t2")])
    asyncio.run(walk(tmp_path / "with", pattern, stand, notes="NOTES {{ run.id }} NOTES"))
    prompts = [spec["prompt"] for node in ("implement", "fix") for spec in stand.calls(node)]
    assert len(prompts) >= 2 - (pattern == SELF_HEAL)
    for prompt in prompts:
        assert prompt.count("NOTES {{ run.id }} NOTES") == 1
        assert prompt.index("NOTES") < prompt.index("===== begin " + ("issue" if pattern == ISSUE_TO_PR else "gate"))
    bare = Stand()
    asyncio.run(walk(tmp_path / "without", pattern, bare))
    assert "otes from earlier" not in str(bare.asked)
