"""The document people read: complete, in the right order, within a forge's limits, and harmless whatever it quotes."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from bailiwick.gate.model import CheckResult, Doubt, Finding, GateReport, RevertedChange
from bailiwick.git.objects import TreeChange
from bailiwick.proposals.document import LONGEST, ProposalFacts, is_ours, marker, render
from bailiwick.proposals.message import ChangeOrigin, commit_message, subject
from bailiwick.proposals.model import ChangeCost, Proposal, proposal_id, read_proposal
from bailiwick.proposals.neutral import block, cell, code, inert, one_line, plain, printable

if TYPE_CHECKING:
    from markdown_it.token import Token

HOSTILE = (
    "@everyone look\nfixes #1, closes acme/shop#2 and GH-3, resolves https://github.com/acme/shop/issues/4\n"
    "<!-- hidden --><script>alert(1)</script><img src=x onerror=y>\n"
    "[click](javascript:alert(1)) ![x](http://e.org/x.png)\n"
    "```\n## Evidence\n| all | green |\n````\n\u202etxt.exe\u202c \x1b[31mred\x1b[0m zero\u200bwidth\n"
    "www.example.org mailto:a@b.org\n"
    "Signed-off-by: Somebody Else <x@y.org>\n"
)
PIECES = [
    "@all", "#1", "GH-2", "`", "```", "~~~", "<!--", "-->", "<b>", "http://e.org", "\n", "|", "\\", " ", "a",
    "[x](y)", "![i](j)", "\u202e", "$", "*", "_", "&#64;x", "www.e.org",
]  # fmt: skip
texts = st.lists(st.sampled_from(PIECES) | st.text(max_size=4), max_size=30).map("".join)


CHANGE = TreeChange("shop.py", status="M", old_mode="100644", new_mode="100644", added=3, deleted=1)


def make_proposal(**more: Any) -> Proposal:
    made = Proposal(
        id="abc1234567",
        run="run-1",
        repository="/r",
        branch="agent/x-1",
        base="b" * 40,
        commit="c" * 40,
        tree="d" * 40,
        title="discount",
        kind="issue-to-pr",
        report="e" * 64,
        created=1.0,
        updated=1.0,
    )
    return replace(made, **more)


def make_report(**more: Any) -> GateReport:
    checks = (
        CheckResult("lint", "command", "exit-code", "passed", ("ruff", "check", "."), 0),
        CheckResult("tests", "pytest", "tests", "passed", ("pytest", "-q"), 0, counts=(("passed", 41),)),
    )
    return replace(GateReport("green", "d" * 40, "b" * 40, "d" * 40, "p1", "e1", "bwrap", checks), **more)


def make_exhibit(report: GateReport | None = None, **more: Any) -> ProposalFacts:
    return ProposalFacts(make_proposal(**more), report or make_report(), (CHANGE,))


def _headings(text: str) -> list[str]:
    return re.findall(r"^## (.*)$", text, re.MULTILINE)


def _acting(text: str) -> list[Token]:
    """All tokens of a document, those inside lines too."""
    parsed = MarkdownIt("commonmark", {"html": True}).enable(["table"]).parse(text)
    return [inner for token in parsed for inner in (token, *(token.children or ()))]


def test_new_tests_are_called_new_and_healed_ones_healed() -> None:
    """A healed test was there before: it is no new proof, and the words say so."""
    text = render(make_exhibit(make_report(proof=("t.py::test_a", "t.py::test_b"), healed=("t.py::test_c",))))
    assert "2 new tests fail on the base and pass here:" in text
    assert "1 test that was red on the base passes now:" in text
    assert "No test shows this fix" not in text
    text = render(make_exhibit(make_report(proof=("t.py::test_a",), healed=("x", "y", "z"))))
    assert "1 new test fails on the base and passes here:" in text
    assert "3 tests that were red on the base pass now:" in text


def test_that_no_test_exercises_the_change_is_the_first_line_of_the_evidence() -> None:
    """Green checks that never ran the change are the first thing to know."""
    text = render(make_exhibit(make_report(unexercised="no test exercises this change")))
    assert text.partition("## Evidence\n\n")[2].startswith("**`no test exercises this change`**")
    text = render(make_exhibit(make_report(exercised=("a", "b", "c", "d"))))
    assert "Tests that exercise this change: `a`, `b`, `c` and 1 other." in text


def test_what_a_person_approved_is_shown_before_what_was_asked_with_its_hunk() -> None:
    """Whoever merges sees where the gate was not sure."""
    doubt = Doubt("shop.py", "reads sys.modules @all", 3, "+import sys")
    text = render(make_exhibit(make_report(doubts=(doubt,)), asked="please"))
    assert _headings(text)[:2] == ["Look here first: approved doubts", "What was asked"]
    assert "+import sys" in text
    assert "`shop.py:3`" in text


def test_what_a_person_must_not_miss_comes_first_and_everything_is_there() -> None:
    """Allowed protected changes lead; then what was asked, the change, the evidence, and what is not certain."""
    report = make_report(
        taken=(
            RevertedChange("tests/test_a.py", "changed", "-1\n+2", allowed=True, rule="tests/**"),
            RevertedChange("Makefile", "added"),
        ),
        weakening=(Finding("noqa", "a new noqa", "shop.py", 3, blocks=False),),
        proof=("tests/test_new.py::test_x",),
        unprotected=("no limit on memory",),
    )
    text = render(make_exhibit(report, asked="please", said="done", issue="#7"))
    assert _headings(text) == [
        "Look here first: allowed changes to protected paths",
        "What was asked",
        "What the agent says",
        "Changes",
        "Evidence",
        "Proof",
        "Reverted (protected)",
        "Possible weakening of checks",
        "What is not protected here",
        "How to undo",
        "Facts",
    ]
    for part in (
        "exit-code",
        "`tests`",
        "41",
        "tests/test_new.py::test_x",
        "no limit on memory",
        "git revert cccccccccccc",
    ):
        assert part in text


def test_a_fix_that_no_test_shows_says_so() -> None:
    """The absence of a proof is stated, not left out."""
    assert "**No test shows this fix.**" in render(make_exhibit(make_report(unproven="no new test")))


@pytest.mark.parametrize(("can_merge", "said"), [(True, "yes"), (False, "no"), (None, "unknown")])
def test_merge_rights_are_said(can_merge: bool | None, said: str) -> None:
    """Yes, no or unknown; unknown is not no."""
    assert f"merge it alone: **{said}**" in render(replace(make_exhibit(), can_merge=can_merge))


@pytest.mark.parametrize(
    ("cost", "said"),
    [
        (ChangeCost(), "unknown"),
        (ChangeCost(0.0), "$0.00"),
        (ChangeCost(1.234), "$1.23"),
        (ChangeCost(0.0012), "$0.0012"),
        (ChangeCost(2.0, subscription=True), "≈ $2.00 (subscription)"),
        (ChangeCost(2.0, partly=True), "at least $2.00; the rest is unknown"),
    ],
)
def test_a_cost_says_what_is_known(cost: ChangeCost, said: str) -> None:
    """Unknown is not zero, and a subscription's dollars are an estimate."""
    assert str(cost) == said
    assert f"\nCost: {said}\n" in commit_message("issue-to-pr", "x", ChangeOrigin("r", "d", (), cost))


def test_hostile_text_acts_nowhere() -> None:
    """An issue can't notify, link, close, hide or draw anything, nor forge a heading or a row of evidence."""
    check = CheckResult(
        HOSTILE,
        "k",
        "tests",
        "passed",
        (HOSTILE,),
        0,
        counts=((HOSTILE, 1),),
        findings=(Finding("c", HOSTILE, HOSTILE, 1),),
    )
    report = make_report(
        checks=(check,),
        taken=(
            RevertedChange(HOSTILE, "added", HOSTILE, rule=HOSTILE),
            RevertedChange(HOSTILE, "changed", HOSTILE, allowed=True),
        ),
        weakening=(Finding("c", HOSTILE, HOSTILE),),
        proof=(HOSTILE,),
        unprotected=(HOSTILE,),
        policy=HOSTILE,
        sandbox=HOSTILE,
    )
    exhibit = make_exhibit(report, asked=HOSTILE, said=HOSTILE, run=HOSTILE, models=(HOSTILE,))
    text = render(replace(exhibit, changes=(replace(CHANGE, path=HOSTILE),), identity=HOSTILE, notes=(HOSTILE,)))
    rest = text.removeprefix(marker("abc1234567"))
    for bad in ("@everyone", "#1", "GH-3", "acme/shop#2", "://", "<!--", "<script", "<img", "\u202e", "\x1b", "\u200b"):
        assert bad not in rest
    kinds = {token.type for token in _acting(rest)}
    assert kinds.isdisjoint({"html_block", "html_inline", "link_open", "image"})
    headings = [
        t.content for t, before in zip(_acting(rest)[1:], _acting(rest), strict=False) if before.type == "heading_open"
    ]
    assert headings.count("Evidence") == 1


@given(texts, st.integers(1, 300))
def test_a_code_span_holds_any_text_and_nothing_else(text: str, most: int) -> None:
    """Whatever is put in, out comes one code span: also in a table."""
    for made in (code(text, most), cell(text, most)):
        inner = _acting(f"- {made}")
        kinds = [
            token.type
            for token in inner
            if token.type in ("code_inline", "text", "html_inline", "link_open", "image", "em_open")
        ]
        assert kinds == ["code_inline"]
    row = _acting(f"| a | b |\n|---|---|\n| {cell(text, most)} | end |\n")
    assert [token.content for token in row if token.type == "text"] == ["a", "b", "end"]


@given(texts)
def test_a_block_holds_any_text_and_nothing_else(text: str) -> None:
    """No text can end its own fence."""
    tokens = MarkdownIt("commonmark").parse(block(text, 10_000) + "\nafter\n")
    assert [token.type for token in tokens] == ["fence", "paragraph_open", "inline", "paragraph_close"]


@given(texts)
def test_nothing_acts_after_it_was_made_inert(text: str) -> None:
    """No mention, reference, address or tag survives, and doing it twice changes nothing."""
    made = inert(printable(text))
    assert not re.search(r"@[\w-]|[#!]\d|(?i:\bgh-)\d|\w://|<[!/?A-Za-z]", made)
    assert inert(made) == made


@given(texts, st.integers(1, 120))
def test_a_commits_subject_is_one_harmless_line(text: str, most: int) -> None:
    """Forges act on commit messages too, and trailers must be ours."""
    assert len(plain(text, most)) <= most
    message = commit_message("issue-to-pr", text, ChangeOrigin("r", "d"))
    lines = message.splitlines()
    assert lines[1] == ""
    assert [line.partition(":")[0] for line in lines[2:]] == ["Run", "Gate-Report", "Models", "Cost"]
    assert not re.search(r"@[\w-]|#\d|<[!A-Za-z]", lines[0])


def test_an_issue_without_a_usable_name_still_has_a_subject() -> None:
    """An empty title is no reason for an empty line."""
    assert subject("issue-to-pr", " \u200b\n") == "Agent: implement an issue"


@given(st.integers(0, 400), st.integers(0, 200_000))
def test_a_document_always_fits(rows: int, length: int) -> None:
    """A forge that refuses a text of 65,537 characters would leave no pull request at all."""
    long = "x" * length
    report = make_report(
        taken=tuple(RevertedChange(f"{long[:300]}{n}", "changed", long, allowed=n % 2 == 0) for n in range(rows)),
        proof=tuple(f"{long[:500]}{n}" for n in range(rows)),
        weakening=tuple(Finding("c", long, long) for _ in range(rows)),
    )
    text = render(make_exhibit(report, asked=long, said=long))
    assert len(text) <= LONGEST
    assert is_ours(text)
    assert "## How to undo" in text


def test_our_words_are_known_by_their_beginning_only() -> None:
    """A person who quotes us is still a person."""
    ours = render(make_exhibit())
    assert is_ours(ours)
    assert not is_ours("> " + ours)


def test_one_line_is_cut_with_a_mark() -> None:
    """People see that something is missing."""
    assert one_line("a\tb\n c", 10) == "a b c"
    assert one_line("x" * 50, 10) == "x" * 9 + "…"


def test_a_proposals_id_follows_from_its_run_and_its_document_reads_back() -> None:
    """One proposal per run, over restarts and versions of the file."""
    assert proposal_id("run-1") == proposal_id("run-1") != proposal_id("run-2")
    made = make_proposal(cost=ChangeCost(1.0), models=("a",), pushed=("c",), heard=3.0)
    assert read_proposal(made.to_json()) == made
    with pytest.raises(ValueError, match="version"):
        read_proposal({**made.to_json(), "version": 2})
