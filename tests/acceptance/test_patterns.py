"""issue-to-pr and self-heal from the command line: a scripted agent, everything else real."""

from __future__ import annotations

import re
import shutil
import signal
from pathlib import Path

import pytest

from bailiwick.testing.polling import until
from tests.acceptance.command import Person, end
from tests.acceptance.next_steps import steps_in, unworkable
from tests.acceptance.shop import LONG, asks, branches, git, script, set_up_shop
from tests.acceptance.toolbox import python_with_pytest

__all__ = ["python_with_pytest"]
PASSED = "gate passed, proposing, NOT merging"


PLAYS: tuple[tuple[str, tuple[str, ...], int, str, tuple[str, ...]], ...] = (
    ("good", (), 0, PASSED, ("self-heal",)),
    ("bad", (), 0, PASSED, ()),
    ("bad", ("--attempts", "0"), 1, "No PR proposed", ()),
    ("stuck", (), 6, "gave up after 3 fix calls, handing off to a person", ("self-heal",)),
    ("cheat", (), 6, "; reverted (protected): .bailiwick/gate.yaml, conftest.py", ()),
    ("cheat", ("--attempts", "0"), 1, "No PR proposed", ()),
)
"""What is simulated, how it ends, and with which pattern it is tried in every run of the tests."""


@pytest.mark.parametrize(
    ("pattern", "play", "more", "code", "words"),
    [
        pytest.param(pattern, *ends, marks=() if pattern in often else pytest.mark.nightly)
        for *ends, often in PLAYS
        for pattern in ("issue-to-pr", "self-heal")
    ],
)
@pytest.mark.slow
def test_a_simulation_ends_as_promised_anywhere(
    person: Person, pattern: str, play: str, more: tuple[str, ...], code: int, words: str
) -> None:
    """Outside git, with the real gate, and nothing is left where the person is."""
    result = person.runs(pattern, "--simulate", play, *more, timeout=LONG)
    assert result.code == code, result.out + result.err
    assert words in result.out
    assert "Traceback" not in result.out + result.err
    assert steps_in(result.out) == [], "all of it is gone: no command could work on it"
    assert "rounds" not in result.out, "inner steps are not shown"
    assert list(person.cwd.iterdir()) == []
    assert not person.home.exists()


def test_an_issue_becomes_a_proposal_and_is_never_merged(person: Person) -> None:
    """A branch with one commit on the base, a clean work tree, HEAD where it was; the same command prints it again."""
    root = set_up_shop(person)
    (root / "mine.txt").write_text("not committed")
    before = git(root, "rev-parse", "HEAD")
    result = asks(person, "--simulate", script("issue-to-pr", "bad"))
    assert result.code == 0, result.out + result.err
    assert PASSED in result.out
    for label in ("base", "agent", "sandbox", "gate", "limits"):
        assert re.search(rf"^{label} +\S", result.out, re.MULTILINE), label
    (branch,) = branches(root)
    assert re.fullmatch(r"agent/round-discounted-prices-to-cents-[0-9a-f]{8}", branch)
    assert git(root, "rev-parse", f"{branch}~1", "HEAD") == before * 2
    assert git(root, "log", "-1", "--format=%s", branch) == "Agent: implement round-to-cents\n"
    assert set(git(root, "diff", "--name-only", f"HEAD..{branch}").split()) == {
        "shop/prices.py",
        "tests/test_cents.py",
    }
    assert git(root, "status", "--porcelain") == "?? mine.txt\n"
    assert list((person.home / "state" / "worktrees").glob("[!.]*")) == []
    again = asks(person, "--simulate", script("issue-to-pr", "bad"))
    assert (again.code, PASSED in again.out, branches(root)) == (0, True, [branch])


@pytest.mark.nightly
def test_a_changed_issue_is_pointed_out_and_fresh_starts_over(person: Person) -> None:
    """A run keeps the text it was started with; the person decides."""
    root = set_up_shop(person)
    assert asks(person, "--simulate", script("issue-to-pr", "good")).code == 0
    issue = root / "issues" / "round-to-cents.md"
    issue.write_text(issue.read_text() + "\nAnd round down.\n")
    again = asks(person)
    assert "the text of the issue has changed since" in again.out
    assert len(branches(root)) == 1
    assert asks(person, "--fresh", "--simulate", script("issue-to-pr", "good")).code == 0
    assert len(branches(root)) == 2


def test_a_red_base_costs_nothing(person: Person) -> None:
    """Exit code 8 with the failing tests, and both ways out; no run, no branch."""
    root = set_up_shop(person)
    (root / "shop" / "prices.py").write_text("def discount(price, percent):\n    return 0\n")
    git(root, "-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-qam", "break it")
    result = asks(person, "--simulate", script("issue-to-pr", "good"))
    assert result.code == 8, result.out + result.err
    assert "test_ten_percent_off_200_is_180" in result.err
    assert "self-heal" in result.err
    assert "--known-red" in result.err
    assert branches(root) == []
    assert person.runs("runs", "list", "--json").json() in ([], {"runs": [], "more": False})


def test_a_refusal_is_handed_to_a_person(person: Person, tmp_path: Path) -> None:
    """Exit code 6 with the agent's reason; no gate was run for it and nothing is kept, as nothing was changed."""
    root = set_up_shop(person)
    play = tmp_path / "refuse.yaml"
    play.write_text("nodes: {implement: [{answer: {outcome: refused, reason: it is unclear}}]}\n")
    result = asks(person, "--simulate", play)
    assert (result.code, branches(root)) == (6, [])
    assert "the agent refused: it is unclear" in result.out
    assert "No PR proposed" in result.out


@pytest.mark.parametrize("edit", ["{}", "{build.log: made}"])
def test_no_change_or_only_ignored_files_is_no_proposal(person: Person, tmp_path: Path, edit: str) -> None:
    """Whatever the agent claims."""
    root = set_up_shop(person)
    play = tmp_path / "lazy.yaml"
    play.write_text(f"nodes: {{implement: [{{edit: {edit}, answer: {{outcome: done}}}}]}}\n")
    result = asks(person, "--simulate", play)
    assert (result.code, branches(root)) == (1, [])
    assert "No PR proposed" in result.out


@pytest.mark.needs("sandbox")
@pytest.mark.slow
def test_a_protected_path_waits_for_a_person(person: Person, tmp_path: Path) -> None:
    """Exit code 3 with the hunk; the person's word lets it through, and it is in the proposal then."""
    root = set_up_shop(person)
    test = (root / "tests" / "test_prices.py").read_text().replace("== 180", "== 180.0")
    play = tmp_path / "wants.yaml"
    indented = "".join(f"          {line}\n" if line else "\n" for line in test.splitlines())
    play.write_text(
        "nodes:\n  implement:\n    - edit:\n        shop/more.py: 'x = 1'\n        tests/test_prices.py: |\n"
        f"{indented}      answer: {{outcome: done, wants: [{{path: tests/test_prices.py, reason: it is a float}}]}}\n"
    )
    result = asks(person, "--simulate", play)
    assert result.code == 3, result.out + result.err
    assert "it is a float" in result.out
    run = re.search(r"bailiwick runs answer (\S+)", result.out)
    assert run is not None
    assert person.runs("runs", "answer", run[1], "allow-once", timeout=LONG).code == 0
    done = asks(person)
    assert done.code == 0, done.out + done.err
    (branch,) = branches(root)
    assert "tests/test_prices.py" in git(root, "diff", "--name-only", f"HEAD..{branch}").split()


@pytest.mark.nightly
def test_a_second_process_is_told_who_has_the_issue(person: Person, tmp_path: Path) -> None:
    """Exit code 8 and nothing done twice; kill -9 then, and the same command goes on with the same worktree."""
    root = set_up_shop(person)
    play = tmp_path / "slow.yaml"
    play.write_text("nodes: {implement: [{hang: true}]}\n")
    first = person.starts("issue-to-pr", "issues/round-to-cents.md", "--simulate", play)
    try:
        until(lambda: _has_begun(person), LONG, "the agent's turn")
        second = asks(person)
        assert second.code == 8, second.out + second.err
        assert str(first.pid) in second.err
    finally:
        end(first)
    trees = [path.name for path in (person.home / "state" / "worktrees").glob("[!.]*")]
    play.write_text(Path(script("issue-to-pr", "good")).read_text())
    done = asks(person)
    assert done.code == 0, done.out + done.err
    assert len(trees) == 1
    assert len(branches(root)) == 1


def _has_begun(person: Person) -> bool:
    listed = person.runs("runs", "list", "--json")
    return '"implement"' in listed.out


@pytest.mark.parametrize(
    ("name", "raw", "words"),
    [
        ("empty.md", b" \n", "empty"),
        ("binary.md", b"\x00\x01", "not text"),
        ("latin.md", b"caf\xe9", "UTF-8"),
        ("huge.md", b"x" * (10 << 20), "more than 1,024 KiB"),
        ("missing.md", None, "there is no file"),
    ],
)
def test_what_is_no_issue_is_refused_before_anything_starts(
    person: Person, name: str, raw: bytes | None, words: str
) -> None:
    """Exit code 2, one clear sentence, no traceback."""
    root = set_up_shop(person)
    if raw is not None:
        (root / name).write_bytes(raw)
    result = person.runs("issue-to-pr", name)
    assert (result.code, "Traceback" in result.err) == (2, False)
    assert words in result.err


def test_outside_a_repository_the_way_out_is_named(person: Person) -> None:
    """Exit code 8, as for every command that needs a repository, and a way to see it work."""
    (person.cwd / "x.md").write_text("# Do it\n")
    for command in (("issue-to-pr", "x.md"), ("self-heal",)):
        result = person.runs(*command)
        assert result.code == 8, result.err
        assert "--simulate" in result.err


@pytest.mark.needs("sandbox")
def test_nothing_to_heal_is_said_and_no_agent_is_needed(person: Person) -> None:
    """A green tree is exit code 0, whatever is installed."""
    root = set_up_shop(person)
    result = person.runs("self-heal", timeout=LONG)
    assert (result.code, branches(root)) == (0, []), result.out + result.err
    assert "nothing to heal" in result.out


@pytest.mark.slow
def test_self_heal_heals_what_is_not_committed_yet(person: Person) -> None:
    """The copy is of the work tree as the person sees it; the person's own files stay as they are."""
    root = set_up_shop(person)
    broken = "def discount(price: float, percent: float) -> float:\n    return price * percent / 100\n"
    (root / "shop" / "prices.py").write_text(broken)
    result = person.runs("self-heal", "--simulate", script("self-heal", "good"), "--json", timeout=LONG)
    assert result.code == 0, result.out + result.err
    assert result.json()["context"]["proposal"]["branch"] == branches(root)[0]
    assert (root / "shop" / "prices.py").read_text() == broken
    assert "percent) / 100" in git(root, "show", f"{branches(root)[0]}:shop/prices.py")


AGENT = """import json, pathlib, sys
prompt = sys.stdin.read()
code = pathlib.Path("shop/prices.py")
text = code.read_text()
if "say so in the docstring" in prompt:
    text = text.replace("taken off.", "taken off, in whole cents.")
else:
    text = text.replace("return price * (100 - percent) / 100", "return round(price * (100 - percent) / 100, 2)")
code.write_text(text)
print(json.dumps({"outcome": "done", "reason": "", "summary": "Rounded.", "wants": []}))
"""


@pytest.mark.nightly
@pytest.mark.needs("sandbox")
def test_a_person_sends_a_proposal_back_and_the_branch_grows(person: Person) -> None:
    """A program of the person's is the agent, behind the sandbox; the second round builds upon the first."""
    root = set_up_shop(person)
    program = person.home.parent / "agent.py"
    program.write_text(AGENT)
    person.extra["AGENT_CMD"] = f"{shutil.which('python3')} {program}"
    person.extra["AGENT_CLI"] = "command"
    result = asks(person, "--json")
    assert result.code == 0, result.out + result.err
    name, branch = result.json()["context"]["proposal"]["id"], branches(root)[0]
    first = git(root, "rev-parse", branch)
    back = person.runs("proposals", "reject", name, "--because", "say so in the docstring", "--rework", timeout=LONG)
    assert back.code == 0, back.out + back.err
    assert git(root, "rev-parse", f"{branch}~1") == first
    assert "in whole cents" in git(root, "show", f"{branch}:shop/prices.py")
    assert branches(root) == [branch]


@pytest.mark.nightly
def test_a_kept_simulation_of_ones_own_issue_can_be_looked_at(person: Person) -> None:
    """The title is that of the issue; the printed commands work where the last lines say."""
    (person.cwd / "own.md").write_text("# Cents, please\n\nRound them.\n")
    result = person.runs("issue-to-pr", "own.md", "--simulate", "good", "--keep", "kept", timeout=LONG)
    assert result.code == 0, result.out + result.err
    assert "agent/cents-please-" in result.out
    told = re.search(r"export BAILIWICK_HOME=(\S+); cd (\S+)", result.out)
    assert told is not None
    there = Person(Path(told[1]), Path(told[2]), person.extra)
    steps = steps_in(result.out)
    assert any(step.startswith("bailiwick proposals show") for step in steps)
    assert not any(step.startswith("git push") for step in steps)
    assert unworkable(there, result.out) == []


@pytest.mark.slow
def test_an_interrupted_simulation_suggests_nothing_that_is_gone(person: Person) -> None:
    """It can't be resumed, and says so instead of naming a command."""
    process = person.starts("issue-to-pr", "--simulate", "stuck")
    try:
        assert process.stdout is not None
        seen = ""
        while " worktree " not in seen:
            line = process.stdout.readline()
            assert line, seen
            seen += line
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=LONG)
    finally:
        end(process)
    assert process.returncode == 130, seen + rest
    assert "can't be resumed" in rest
    assert steps_in(seen + rest) == []
