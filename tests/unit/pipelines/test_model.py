"""Names, params and the choice of conventions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bailiwick.ids import NAME
from bailiwick.pipelines.model import (
    ISSUE_TO_PR,
    BaseCommit,
    IssueText,
    PipelineRequest,
    branch_name,
    choose_conventions,
    params_of,
    run_key,
    slug,
    title_of,
)

ISSUE = IssueText("/x/cents.md", "cents", "Round to cents", "Please.")


@given(st.text(), st.text(), st.text())
def test_a_run_id_is_always_a_valid_name(repository: str, name: str, identity: str) -> None:
    """Whatever an issue is called."""
    assert NAME.fullmatch(run_key(repository, name, identity))


def test_a_run_id_stands_for_repository_and_issue() -> None:
    """The same two give the same run, another of either gives another."""
    key = run_key("/a", "cents", "/a/cents.md")
    assert key == run_key("/a", "cents", "/a/cents.md")
    assert key.startswith("cents-")
    assert len({key, run_key("/b", "cents", "/a/cents.md"), run_key("/a", "cents", "/b/cents.md")}) == 3


@given(st.text(), st.text())
def test_a_branch_is_one_that_git_takes(name: str, run: str) -> None:
    """Only agent/ followed by plain characters."""
    branch = branch_name(name, run)
    assert branch.startswith("agent/")
    assert set(branch.removeprefix("agent/")) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")
    assert len(branch) < 64


def test_runs_never_share_a_branch() -> None:
    """A run that starts again leaves the old branch to people."""
    assert branch_name("cents", "run1") != branch_name("cents", "run2")


@pytest.mark.parametrize(
    ("text", "made"), [("Ärger über Öl", "arger-uber-ol"), ("日本", "work"), ("--a__b--", "a-b"), ("x" * 90, "x" * 40)]
)
def test_a_slug_keeps_what_it_can(text: str, made: str) -> None:
    """Letters without their marks; something in any case."""
    assert slug(text) == made


def test_a_title_is_cut_and_never_empty() -> None:
    """It becomes a branch, a subject and a line on a terminal."""
    assert title_of("# \n\n## Real one", "x") == "Real one"
    assert len(title_of("# " + "word " * 100, "x")) <= 120
    assert title_of("", "fallback") == "fallback"


def test_params_hold_the_text_as_it_was_and_its_digest() -> None:
    """So that a run goes on with what it was started with, and a change is noticed."""
    order = PipelineRequest(ISSUE_TO_PR, "/repo", ISSUE, attempts=2, allow=("tests/x.py",))
    params = params_of(order, BaseCommit("c" * 40, "t" * 40, "main"), ["tests/a.py::t"])
    assert params["issue"]["digest"] == ISSUE.digest
    assert (params["base"], params["attempts"], params["known_red"]) == ("c" * 40, 2, ["tests/a.py::t"])
    changed = IssueText(ISSUE.ref, ISSUE.stem, ISSUE.title, "Please!")
    assert changed.digest != ISSUE.digest


@pytest.mark.parametrize(
    ("files", "configured", "chosen"),
    [
        (["CLAUDE.md", "AGENTS.md"], None, "AGENTS.md"),
        (["CLAUDE.md", ".agent/instructions.md"], None, ".agent/instructions.md"),
        (["AGENTS.md", "docs/style.md"], "docs/style.md", "docs/style.md"),
        (["AGENTS.md"], "docs/style.md", None),
        (["README.md"], None, None),
    ],
)
def test_the_first_conventions_file_counts(files: list[str], configured: str | None, chosen: str | None) -> None:
    """One file, and the person's word before the usual names."""
    assert choose_conventions(files, configured) == chosen
