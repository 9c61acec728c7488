"""`bailiwick skill` as a person types it: options, paths, what is printed where, and exit codes."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from bailiwick.cli.commands.skill import skill
from bailiwick.errors import InputInvalid, NotReady, UsageError
from tests.unit.skills import opened
from tests.unit.skills.opened import Fake, outcome
from tests.unit.skills.test_folders import Shelves, text

FINDING = {"file": "a.py", "line": 3, "severity": "major", "title": "wrong\x1b[2J", "detail": "why", "suggestion": "so"}


@dataclass
class SkillUser:
    """Somebody in their repository."""

    shelves: Shelves
    out: str = ""
    err: str = ""

    @property
    def root(self) -> Path:
        return self.shelves.repository

    def runs(self, *args: str) -> int:
        """Give a command; errors of ours are raised."""
        runner = CliRunner()
        with runner.isolation() as (out, err, _):
            try:
                code = skill.main(list(args), prog_name="bailiwick skill", standalone_mode=False) or 0
            finally:
                self.out, self.err = out.getvalue().decode(), err.getvalue().decode()
        return int(code)

    def answers(self, fake: Fake) -> Fake:
        """From now on this is what answers."""
        opened.CURRENT.append(fake)
        return fake

    def json(self) -> Any:
        return json.loads(self.out)


@pytest.fixture
def person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SkillUser]:
    """A person whose calls are answered by a fake."""
    shelves = Shelves(tmp_path)
    shelves.git("init", "-q")
    (shelves.repository / "src").mkdir()
    monkeypatch.setenv("BAILIWICK_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("SUPERVISOR_CONFIG_DIR", raising=False)
    monkeypatch.setattr("bailiwick.app.service.open_skills", opened.open_fake)
    monkeypatch.chdir(shelves.repository)
    opened.CURRENT.clear()
    yield SkillUser(shelves)
    opened.CURRENT.clear()


def test_a_call_is_told_for_people(person: SkillUser) -> None:
    """Status, message, findings with their places, who tried, and why these models; progress beside it."""
    person.answers(Fake(outcome(findings=(FINDING,), details={"notes": [{"a": 1, "b": "x"}], "root": "cause"})))
    assert person.runs("review", "--files", "a.py") == 0
    assert person.out.splitlines() == [
        "pass  review  ollama/small",
        "  One finding.",
        "a.py:3: major: wrong\\x1b[2J",
        "    why",
        "    so",
        "  notes:",
        "    - a: 1",
        "      b: x",
        "  root: cause",
        "  1. ollama/small (local): accept, 1.2 s: fine",
        "  why   review: chain of models.yaml:9",
    ]
    assert person.err == "  … asks ollama/small\\x1b[31m\n"


def test_a_call_is_one_document_for_programs(person: SkillUser) -> None:
    """Standard output carries nothing else, whatever the progress says."""
    person.answers(Fake(outcome(findings=(FINDING,))))
    assert person.runs("review", "--files", "a.py", "--json") == 0
    told = person.json()
    assert (told["status"], told["call"], told["findings"], told["attempts"][0]["model"]) == (
        "pass",
        "c-1",
        [FINDING],
        "ollama/small",
    )


def test_options_become_arguments(person: SkillUser, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files with commas or repeated; paths as the person sees them, told as the project knows them."""
    fake = person.answers(Fake(outcome()))
    monkeypatch.chdir(person.root / "src")
    inside = str(person.root / "b.py")
    assert (
        person.runs("review", "--files", "a.py, ../c.py", "--files", inside, "--session-id", "s-1", "--model", "m") == 0
    )
    tool, arguments, caller = fake.calls[0]
    assert (tool, caller.origin, caller.roots) == ("review", "cli", (person.root,))
    assert arguments == {
        "project_root": str(person.root),
        "files": ["src/a.py", "c.py", "b.py"],
        "session_id": "s-1",
        "model": "m",
    }


def test_a_path_outside_of_the_project_stays_as_it_was_typed(person: SkillUser) -> None:
    """It is refused later, in the person's own words."""
    fake = person.answers(Fake(outcome()))
    person.runs("review", "--files", "../x.py,/etc/passwd")
    assert fake.calls[0][1]["files"] == ["../x.py", "/etc/passwd"]


def test_another_project_can_be_named(person: SkillUser, tmp_path: Path) -> None:
    """Paths are that project's then: the person is somewhere else."""
    other = tmp_path / "other"
    other.mkdir()
    fake = person.answers(Fake(outcome()))
    person.runs("review", "--project-root", "../other", "--files", "a.py", "--models", "m.yaml")
    assert fake.calls[0][1] == {"project_root": str(other), "files": ["a.py"]}
    assert fake.calls[0][2].roots == (other,)
    assert fake.models == fake.calls[0][2].models_file == person.root / "m.yaml"


@pytest.mark.parametrize("words", [("tdd", "red"), ("tdd_red",), ("tdd-red",)])
def test_a_phase_can_be_named_in_three_ways(person: SkillUser, words: tuple[str, ...]) -> None:
    """As a step of tdd, and by the tool's name with either stroke."""
    fake = person.answers(Fake(outcome()))
    assert person.runs(*words, "--spec", "adds", "--test-cmd", "pytest -q") == 0
    assert (fake.calls[0][0], fake.calls[0][1]["spec"]) == ("tdd_red", "adds")


def test_a_text_can_come_from_standard_input(person: SkillUser, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stack trace is piped, not typed."""
    fake = person.answers(Fake(outcome()))
    runner = CliRunner()
    with runner.isolation(input=io.BytesIO(b"Traceback\n  boom\n")):
        skill.main(["debug", "--error", "-"], standalone_mode=False)
    assert fake.calls[0][1]["error"] == "Traceback\n  boom\n"


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (outcome(), 0),
        (outcome("fail"), 1),
        (outcome("error"), 1),
        (outcome("error", "all tiers exhausted after 2 attempt(s)"), 6),
        (outcome("fail", "all tiers exhausted after 1 attempt(s)"), 6),
        ({"tiers": []}, 0),
        ({**outcome("fail").result.to_json(), "call": "c"}, 1),
    ],
)
def test_the_exit_code_says_what_came_of_it(person: SkillUser, answer: Any, code: int) -> None:
    """Scripts decide by it: done, failed, or nothing that holds."""
    person.answers(Fake(answer))
    assert person.runs("review", "--files", "a.py") == code


def test_a_tool_without_a_model_is_told_in_words_and_as_a_document_where_that_is_asked_for(person: SkillUser) -> None:
    """People read lines; programs say --json."""
    tier = {"name": "ollama", "tier": "local", "reachable": False, "said": "nothing listens", "probed": "GET x"}
    cooling = {"models": ["ollama/phi4"], "cooling_until": "2026-01-01T00:00:00.000Z", "cooling_why": "HTTP 429"}
    person.answers(Fake({"tiers": [{**tier, **cooling}]}))
    assert person.runs("tier") == 0
    told = person.out
    assert told.splitlines()[0] == "ollama (local): NOT reachable, nothing listens"
    assert "ollama/phi4" in told
    assert "left alone until 2026-01-01T00:00:00.000Z: HTTP 429" in told
    assert person.runs("tier", "--json") == 0
    assert person.json() == {"tiers": [{**tier, **cooling}]}
    person.answers(Fake({"notes": [{"id": "n-1", "title": "Deploys"}]}))
    assert person.runs("brain_query", "--query", "deploys") == 0
    assert person.out == "notes:\n  - id: n-1\n    title: Deploys\n"


def test_what_the_tests_printed_is_shown_when_it_did_not_pass(person: SkillUser) -> None:
    """The reason for a failure is in there, and nothing of it reaches the terminal as a command."""
    person.answers(Fake(outcome("fail", runner_output="a\n\x1b]0;title\x07E  assert 1 == 2\n", file_path="/p/t.py")))
    assert person.runs("review", "--files", "a.py") == 1
    assert "  | \\x1b]0;title\\x07E  assert 1 == 2" in person.out.splitlines()
    assert "  file  /p/t.py" in person.out.splitlines()
    assert "\x1b" not in person.out


def test_bad_options_are_told_all_at_once_and_nothing_is_called(person: SkillUser) -> None:
    """In the words of the command line."""
    fake = person.answers(Fake(outcome()))
    with pytest.raises(UsageError) as caught:
        person.runs("tdd", "green", "--session-id", "a/b")
    for part in ("--test-path is missing", "--test-cmd is missing", "--session-id: use letters"):
        assert part in caught.value.what
    assert (caught.value.exit_code, fake.calls) == (2, [])


def test_a_machine_that_is_not_ready_says_so(person: SkillUser) -> None:
    """Exit 8, nothing spent."""
    with pytest.raises(NotReady):
        person.runs("tier")


def test_ctrl_c_cancels_the_call_and_exits_130(person: SkillUser) -> None:
    """The call ends by itself and is on record; the second Ctrl-C would end the process."""
    fake = person.answers(Fake(outcome("error", "cancelled"), interrupts=True))
    assert person.runs("review", "--files", "a.py") == 130
    assert fake.calls[0][2].cancel.is_set()


@pytest.mark.parametrize(("typed", "said"), [("reveiw", "did you mean 'review'?"), ("zzzz", "skill list")])
def test_an_unknown_name_is_told_with_the_nearest(person: SkillUser, typed: str, said: str) -> None:
    """A slip of the pen costs one look."""
    with pytest.raises(click.UsageError) as caught:
        person.runs(typed)
    assert said in str(caught.value)


@pytest.mark.parametrize("name", ["run_start", "approvals_list"])
def test_tools_about_runs_are_no_skills(person: SkillUser, name: str) -> None:
    """They have commands of their own."""
    with pytest.raises(click.UsageError):
        person.runs(name)


def test_a_folder_adds_a_command(person: SkillUser) -> None:
    """Its arguments are options at once."""
    head = "bailiwick:\n  arguments:\n    - {name: since, doc: From when., required: true}\n"
    made = text("change-log").replace("---\nDo", f"{head}---\nDo")
    person.shelves.write(person.shelves.person / "skills" / "change-log" / "SKILL.md", made)
    fake = person.answers(Fake(outcome()))
    assert person.runs("change-log", "--since", "v1") == 0
    assert person.runs("change_log", "--since", "v2") == 0
    assert [(call[0], call[1]) for call in fake.calls] == [
        ("change_log", {"since": "v1"}),
        ("change_log", {"since": "v2"}),
    ]


def test_a_broken_folder_is_told_when_it_is_named(person: SkillUser) -> None:
    """With its place, not as an unknown name."""
    person.shelves.write(person.shelves.person / "skills" / "diary" / "SKILL.md", "nothing")
    with pytest.raises(InputInvalid) as caught:
        person.runs("diary")
    assert caught.value.code == "BW160"
