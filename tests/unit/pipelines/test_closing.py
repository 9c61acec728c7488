"""The last words: what is proposed, or that nothing is, with commands that work."""

from __future__ import annotations

import pytest

from bailiwick.ids import Json
from bailiwick.pipelines.closing import Ended, closing

PROPOSAL = {"id": "p1", "text": "gate passed, proposing, NOT merging\ngit show agent/x-1", "needs_consent": False}
KEPT = {"branch": "agent/x-1", "commit": "c1", "base": "0123456789abcdef"}


def _done(**more: Json) -> Ended:
    return Ended("issue-to-pr-x", "issue-to-pr", "done", {**PROPOSAL, **more})


def test_a_proposal_is_announced_with_what_to_do_next() -> None:
    """The words of the proposal itself come first."""
    last = closing(_done(), 0, "open")
    assert last.lines[:2] == ("gate passed, proposing, NOT merging", "git show agent/x-1")
    assert "bailiwick proposals discard p1" in last.lines
    assert (last.code, last.consent) == (0, "")


def test_a_proposal_that_waits_for_consent_leaves_with_3() -> None:
    """Nothing left this machine: a person has to say so first."""
    last = closing(_done(needs_consent=True), 0, "open")
    assert (last.code, last.consent) == (3, "p1")


@pytest.mark.parametrize(
    ("now", "word"), [("published", "published since"), ("discarded", "discarded"), ("merged", "merged")]
)
def test_the_same_command_later_tells_what_became_of_the_proposal(now: str, word: str) -> None:
    """And asks for no consent any more."""
    last = closing(_done(needs_consent=True), 0, now)
    assert word in last.lines[0]
    assert (last.code, last.consent) == (0, "")


def test_a_failure_says_that_nothing_is_proposed_and_how_to_look() -> None:
    """What is kept is inspected and discarded with plain git."""
    last = closing(Ended("issue-to-pr-x", "issue-to-pr", "failed", None, KEPT), 6, None)
    assert last.lines == (
        "No PR proposed",
        "  why      bailiwick why issue-to-pr-x",
        "  inspect  git diff 0123456789ab..agent/x-1",
        "  go on    git switch agent/x-1",
        "  gate     bailiwick gate --base 0123456789ab",
        "  discard  git branch -D agent/x-1",
    )
    assert last.code == 6


def test_a_failure_names_what_the_gate_found() -> None:
    """The failing test, its line and what was said there, without another command."""
    found = ("t.py::test_a fails: t.py:3: assert 1 == 2", "t.py::test_b fails")
    last = closing(Ended("r", "issue-to-pr", "failed", None, KEPT, found), 6, None)
    assert last.lines[:3] == (
        "No PR proposed",
        "  gate     t.py::test_a fails: t.py:3: assert 1 == 2",
        "           t.py::test_b fails",
    )


def test_where_nothing_is_kept_no_branch_is_named() -> None:
    """A command that fails is worse than none."""
    last = closing(Ended("r", "issue-to-pr", "failed", None, {"branch": ""}), 1, None)
    assert not any("git" in line for line in last.lines)


def test_nothing_to_heal_is_said() -> None:
    """Exit code 0 alone could also mean: healed."""
    assert closing(Ended("r", "self-heal", "done"), 0, None).lines == ("nothing to heal",)


@pytest.mark.parametrize("status", ["running", "stopped"])
def test_a_run_that_is_not_over_has_no_last_words(status: str) -> None:
    """The view has said what it waits for."""
    assert closing(Ended("r", "issue-to-pr", status), 3, None).lines == ()
