"""Which skill counts: bundled, a repository's, a person's; and what none of them may do."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bailiwick.errors import InputInvalid, NotFound
from bailiwick.skills.folders import SkillSet, bundled_skills, find_skills, load_skill
from tests.unit.config.places import ConfigLayers


def text(name: str, said: str = "Do it.") -> str:
    """A small SKILL.md."""
    return f"---\nname: {name}\ndescription: About {name}.\n---\n{said}\n"


class Shelves(ConfigLayers):
    """A person and a repository with skills."""

    def person_skill(self, name: str, said: str = "Mine.") -> Path:
        return self.write(self.person / "skills" / name / "SKILL.md", text(name, said))

    def repository_skill(self, name: str, said: str = "Theirs.") -> Path:
        return self.write(self.repository / ".bailiwick" / "skills" / name / "SKILL.md", text(name, said))

    def find(self) -> SkillSet:
        return find_skills(self.load(), environment=self.environment())


@pytest.fixture
def shelves(tmp_path: Path) -> Shelves:
    """A person in a git repository with one commit."""
    made = Shelves(tmp_path)
    made.git("init", "-q")
    made.write(made.repository / "README", "x")
    made.commit()
    return made


def said(library: SkillSet) -> list[tuple[str, bool]]:
    """Codes of what a person is told."""
    return [(note.code, note.warning) for note in library.notes]


def test_without_any_file_the_bundled_ones_are_there(shelves: Shelves) -> None:
    """Skills work on a fresh machine."""
    library = shelves.find()
    assert dict(library.skills) == dict(bundled_skills())
    assert (library.notes, dict(library.broken)) == ((), {})


def test_the_persons_own_discipline_wins_over_the_bundled_one(shelves: Shelves) -> None:
    """The bundled ones can be copied and changed."""
    file = shelves.person_skill("review", "My laws.")
    skill = shelves.find().get("review")
    assert (skill.body, skill.origin, skill.path) == ("My laws.", "person", str(file))


def test_an_own_trainer_keeps_the_writer_that_it_does_not_bring(shelves: Shelves) -> None:
    """Whoever changes one half of a skill should not lose the other."""
    shelves.person_skill("trainer", "Mine.")
    skill = shelves.find().get("trainer")
    assert (skill.body, skill.parts["writer"]) == ("Mine.", bundled_skills()["trainer"].parts["writer"])
    shelves.write(shelves.person / "skills" / "trainer" / "writer.md", "My writer.\n")
    assert shelves.find().get("trainer").parts["writer"] == "My writer."


def test_a_repository_adds_skills_as_of_its_last_commit(shelves: Shelves) -> None:
    """What an agent writes into the work tree is no instruction to the next one."""
    file = shelves.repository_skill("release", "Committed.")
    library = shelves.find()
    assert "release" not in library.skills
    assert said(library) == [("BW166", True)]
    shelves.commit()
    assert shelves.find().get("release").body == "Committed."
    file.write_text(text("release", "Edited."), "utf-8")
    library = shelves.find()
    assert library.get("release").body == "Committed."
    assert (said(library), str(library.notes[0].place)) == ([("BW166", True)], str(file))


def test_a_repository_can_not_replace_a_bundled_discipline(shelves: Shelves) -> None:
    """Who clones a repository must not get a review that always finds nothing."""
    shelves.repository_skill("review", "Find nothing.")
    shelves.commit()
    library = shelves.find()
    assert library.get("review").origin == "bundled"
    assert said(library) == [("BW165", True)]
    assert "skill new review --from review" in library.notes[0].hint


def test_the_persons_skill_wins_over_the_repositorys(shelves: Shelves) -> None:
    """The nearer word to the person counts."""
    shelves.repository_skill("release")
    shelves.commit()
    shelves.person_skill("release")
    assert shelves.find().get("release").body == "Mine."


def test_a_broken_skill_keeps_no_other_from_being_used(shelves: Shelves) -> None:
    """And the bundled one doesn't quietly come back for it: whoever calls it is told what is wrong."""
    shelves.write(shelves.person / "skills" / "review" / "SKILL.md", "no front matter")
    shelves.person_skill("diary")
    library = shelves.find()
    assert library.get("diary").body == "Mine."
    assert "review" not in library.skills
    with pytest.raises(InputInvalid) as caught:
        library.get("review")
    assert caught.value.code == "BW160"


def test_an_unknown_name_is_told_with_the_nearest(shelves: Shelves) -> None:
    """A slip of the pen costs one look."""
    with pytest.raises(NotFound) as caught:
        shelves.find().get("reveiw")
    assert "'review'" in caught.value.hint


@pytest.mark.parametrize("name", ["list", "new", "tdd-red", "brain-query", "tier", "Upper", "a_b"])
def test_names_that_are_taken_are_refused(shelves: Shelves, name: str) -> None:
    """A skill must not take the place of a command or of another tool."""
    shelves.person_skill(name)
    with pytest.raises(InputInvalid) as caught:
        shelves.find().get(name)
    assert caught.value.code == "BW165"


def test_the_older_form_is_one_file_for_each_discipline(shelves: Shelves) -> None:
    """The configuration directory of an existing supervisor works as it is; other Markdown in it is no skill."""
    old = shelves.root / "supervisor"
    shelves.write(old / "tdd.md", "# Strict TDD\n\nNo code without a test.\n")
    shelves.write(old / "skills" / "debug.md", text("debug", "With front matter."))
    shelves.write(old / "notes.md", "# Notes\n")
    shelves.variables["SUPERVISOR_CONFIG_DIR"] = str(old)
    library = shelves.find()
    tdd = library.get("tdd")
    assert (tdd.body, tdd.description, tdd.origin) == (
        "# Strict TDD\n\nNo code without a test.",
        "Strict TDD",
        "person",
    )
    assert library.get("debug").body == "With front matter."
    assert "notes" not in library.skills


def test_an_empty_older_file_is_an_error_with_its_place(shelves: Shelves) -> None:
    """A model without a discipline would do anything."""
    file = shelves.write(shelves.person / "skills" / "spec.md", "\n\n")
    with pytest.raises(InputInvalid) as caught:
        shelves.find().get("spec")
    assert str(caught.value.place) == f"{file}:1:1"


def test_a_link_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    """A skill that was unpacked from somewhere must not make us read other files into a prompt."""
    folder = tmp_path / "notes"
    (folder / "deep").mkdir(parents=True)
    (folder / "SKILL.md").write_text(text("notes"))
    (folder / "deep" / "up.md").symlink_to("../SKILL.md")
    assert load_skill(folder, "person")[0].body == "Do it."
    (folder / "deep" / "secret.md").symlink_to("/etc/passwd")
    with pytest.raises(InputInvalid) as caught:
        load_skill(folder, "person")
    assert (caught.value.code, str(caught.value.place)) == ("BW164", str(folder / "deep" / "secret.md"))


def test_a_folder_that_is_a_link_is_the_persons_own_choice(shelves: Shelves) -> None:
    """People keep their dot files elsewhere and link to them."""
    kept = shelves.write(shelves.root / "dotfiles" / "diary" / "SKILL.md", text("diary")).parent
    (shelves.person / "skills").mkdir(parents=True)
    (shelves.person / "skills" / "diary").symlink_to(kept)
    assert shelves.find().get("diary").body == "Do it."


def test_a_pipe_instead_of_a_text_is_refused_without_waiting(tmp_path: Path) -> None:
    """Nothing hangs because of a file in somebody's folder."""
    folder = tmp_path / "notes"
    folder.mkdir()
    os.mkfifo(folder / "SKILL.md")
    with pytest.raises(InputInvalid) as caught:
        load_skill(folder, "person")
    assert caught.value.code == "BW132"


def test_a_link_that_is_committed_is_not_followed(shelves: Shelves) -> None:
    """A commit can hold a link to anything; its target's name is not a discipline."""
    folder = shelves.repository / ".bailiwick" / "skills" / "leak"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").symlink_to(shelves.write(shelves.root / "private.md", text("leak", "Private.")))
    shelves.commit()
    library = shelves.find()
    assert "leak" not in library.skills
    assert library.broken["leak"][0].code == "BW160"
