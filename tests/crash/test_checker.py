"""The checker itself: what it is there to find, it finds."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.crash.scene import Nursery, create, cut, go_on
from tests.crash.shapes import CHAIN


@pytest.mark.parametrize("bug", ["early start", "early answer"])
def test_writes_out_of_order_are_caught(nursery: Nursery, tmp_path: Path, bug: str) -> None:
    """An effect that begins before its start is durable, or after an append that was acknowledged too early."""
    case = create(CHAIN, tmp_path)
    done = nursery.run(case.home, "walk", case.root, crash="append.before_commit:1", bug=bug)
    assert done.killed, done.words
    cut(case)
    assert "a began before its start was durable" in go_on(case)


def test_the_same_cut_without_the_bug_is_clean(nursery: Nursery, tmp_path: Path) -> None:
    """So it is the bug that is found, not the cut."""
    case = create(CHAIN, tmp_path)
    done = nursery.run(case.home, "walk", case.root, crash="append.before_commit:1")
    assert done.killed, done.words
    cut(case)
    assert go_on(case) == []


def test_an_effect_that_runs_again_is_caught(nursery: Nursery, tmp_path: Path) -> None:
    """The promise of the product: a durable end is never repeated."""
    case = create(CHAIN, tmp_path)
    done = nursery.run(case.home, "walk", case.root, crash="effect.finished_after_commit:1")
    assert done.killed, done.words
    cut(case)
    first = case.home.lines()[0]
    again = f"{first.run} {first.node} {first.key} {first.attempt} {first.epoch + 1} start\n"
    case.home.effects.write_text(case.home.effects.read_text() + again)
    assert "a ran again although its end was durable" in go_on(case)


def test_a_run_directory_that_differs_is_caught(nursery: Nursery, tmp_path: Path) -> None:
    """People read it, so it has to say what the journal says."""
    case = create(CHAIN, tmp_path)
    done = nursery.run(case.home, "walk", case.root)
    assert done.code == 0, done.words
    (case.home.state / "runs" / "chain-default" / "a" / "output.json").write_text("{}")
    assert [text for text in go_on(case) if "differs from its journal at a/output.json" in text]
