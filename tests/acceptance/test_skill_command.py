"""`bailiwick skill list|show|check|new` from the command line: what is printed, where, and with which exit code."""

from __future__ import annotations

import subprocess

from tests.acceptance.command import Person

BUNDLED = {"brain", "debug", "retrospective", "review", "spec", "tdd", "trainer"}


def git(person: Person, *words: str) -> None:
    """Do something in the person's directory."""
    identity = ["-c", "user.name=T", "-c", "user.email=t@example.org"]
    subprocess.run(["git", *identity, *words], cwd=person.cwd, check=True, capture_output=True)


def test_a_fresh_machine_lists_the_bundled_skills_and_makes_nothing(person: Person) -> None:
    """A look leaves no trace."""
    listed = person.runs("skill", "list", "--json")
    assert (listed.code, listed.err) == (0, "")
    rows = {row["name"]: row for row in listed.json()["skills"]}
    assert set(rows) == BUNDLED
    assert rows["tdd"]["tools"] == ["tdd_red", "tdd_green", "tdd_refactor"]
    assert {row["origin"] for row in rows.values()} == {"bundled"}
    assert not person.home.exists()


def test_a_skill_is_made_checked_and_offered_as_a_command(person: Person) -> None:
    """From nothing to a tool of one's own in three commands, without code."""
    made = person.runs("skill", "new", "change-log")
    folder = person.home / "config" / "skills" / "change-log"
    assert (made.code, (folder / "SKILL.md").is_file()) == (0, True)
    assert f"bailiwick skill check {folder}" in made.out
    checked = person.runs("skill", "check", folder)
    assert (checked.code, checked.out) == (0, "change-log: valid\n")
    assert "--task TEXT" in person.runs("skill", "change_log", "--help").out
    assert "change-log" in person.runs("skill", "list").out
    again = person.runs("skill", "new", "change-log")
    assert (again.code, again.out) == (2, "")


def test_a_bundled_skill_is_copied_and_the_copy_counts(person: Person) -> None:
    """What the person changes is what a model is told from then on."""
    assert person.runs("skill", "new", "review").code == 2
    assert person.runs("skill", "new", "review", "--from", "review").code == 0
    file = person.home / "config" / "skills" / "review" / "SKILL.md"
    file.write_text(file.read_text("utf-8").replace("# Review", "# My review"), "utf-8")
    shown = person.runs("skill", "show", "review")
    assert shown.out.startswith("review  person  ")
    assert "# My review" in shown.out
    assert "review: project_root, files, [context], [session_id], [model]" in shown.out


def test_a_broken_skill_is_told_with_its_place(person: Person) -> None:
    """Exit 2, and the line to go to; the others are listed all the same."""
    folder = person.home / "config" / "skills" / "diary"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: dairy\ndescription: x\n---\nBody.\n", "utf-8")
    checked = person.runs("skill", "check")
    assert checked.code == 2
    assert f"error[BW161]: {folder / 'SKILL.md'}:2:7:" in checked.err
    assert "review: valid" in checked.out
    document = person.runs("skill", "check", folder, "--json")
    assert (document.code, document.json()["skills"][0]["problems"][0]["code"]) == (2, "BW161")
    assert person.runs("skill", "list").code == 0
    assert person.runs("skill", "diary").code == 2


def test_a_repositorys_skill_counts_once_it_is_committed(person: Person) -> None:
    """What lies in the work tree only is told and not used."""
    git(person, "init", "-q")
    assert person.runs("skill", "new", "release", "--here").code == 0
    before = person.runs("skill", "list")
    assert ("release" in before.out, "BW166" in before.err) == (False, True)
    git(person, "add", "-A")
    git(person, "commit", "-q", "-m", "x")
    after = person.runs("skill", "list")
    assert ("release           repository" in after.out, after.err) == (True, "")


def test_bad_options_exit_2_before_anything_is_opened(person: Person) -> None:
    """The person is told what to change, and no state is made."""
    result = person.runs("skill", "tdd", "red", "--spec", "x")
    assert (result.code, result.out) == (2, "")
    assert "--test-cmd is missing" in result.err
    assert not person.home.exists()
    unknown = person.runs("skill", "reveiw")
    assert unknown.code == 2
    assert "did you mean 'review'?" in unknown.err
