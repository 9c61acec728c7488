"""Making a skill, copying a bundled one, and checking what was made."""

from __future__ import annotations

from pathlib import Path

import pytest

from bailiwick.errors import InputInvalid, NotFound, UsageError
from bailiwick.skills.authoring import check_library, check_path, make_skill
from bailiwick.skills.folders import BUNDLED, SkillSet, bundled_skills, find_skills, load_skill
from bailiwick.skills.tools import USUAL, tool_of
from tests.unit.skills.test_folders import Shelves


def test_a_new_skill_is_valid_and_a_tool_at_once(tmp_path: Path) -> None:
    """The first thing a person sees must work before they change a word."""
    file = make_skill(tmp_path, "change-log")
    assert check_path(file).valid
    skill, notes = load_skill(file.parent, "person")
    assert (skill.name, notes) == ("change-log", [])
    assert [one.name for one in tool_of(skill).arguments] == [one.name for one in USUAL]
    assert "my-skill" not in skill.body
    assert '"skill": "change-log"' in skill.body


def test_a_bundled_skill_is_copied_with_all_its_texts(tmp_path: Path) -> None:
    """To be changed: the copy is what the original says, under the same or another name."""
    make_skill(tmp_path, "trainer", like="trainer")
    copied, original = load_skill(tmp_path / "trainer", "person")[0], bundled_skills()["trainer"]
    assert (copied.body, copied.parts, copied.digest) == (original.body, original.parts, original.digest)
    make_skill(tmp_path, "strict-review", like="review")
    assert load_skill(tmp_path / "strict-review", "person")[0].name == "strict-review"


@pytest.mark.parametrize(
    ("name", "like", "kind"),
    [
        ("Bad Name", "", UsageError),
        ("../up", "", UsageError),
        ("review", "", UsageError),
        ("review", "debug", UsageError),
        ("list", "", InputInvalid),
        ("tdd-red", "", InputInvalid),
        ("mine", "nothing", NotFound),
    ],
)
def test_what_can_not_be_made_leaves_nothing(tmp_path: Path, name: str, like: str, kind: type[UsageError]) -> None:
    """A name that could never be called, or an original that is not there."""
    with pytest.raises(kind):
        make_skill(tmp_path / "shelf", name, like)
    assert list(tmp_path.iterdir()) == []


def test_what_is_there_is_not_overwritten(tmp_path: Path) -> None:
    """Somebody's work of an evening."""
    file = make_skill(tmp_path, "diary")
    file.write_text("mine", "utf-8")
    with pytest.raises(UsageError):
        make_skill(tmp_path, "diary")
    assert file.read_text("utf-8") == "mine"


def test_a_check_takes_a_folder_or_its_file(tmp_path: Path) -> None:
    """Whichever the shell completes."""
    file = make_skill(tmp_path, "diary")
    for path in (file, file.parent):
        assert check_path(path).name == "diary"
        assert check_path(path).valid
    missing = check_path(tmp_path / "nothing")
    assert (missing.valid, missing.problems[0].code) == (False, "BW101")


def test_a_check_tells_faults_of_the_name_and_of_the_file(tmp_path: Path) -> None:
    """All in one go."""
    folder = tmp_path / "tier"
    folder.mkdir()
    (folder / "SKILL.md").write_text("---\nname: tier\ndescription: x\n---\n", "utf-8")
    assert [problem.code for problem in check_path(folder).problems] == ["BW165", "BW162"]


def test_a_check_of_all_names_every_skill_and_every_note(tmp_path: Path) -> None:
    """Valid, broken and refused ones, each once."""
    shelves = Shelves(tmp_path)
    shelves.git("init", "-q")
    shelves.write(shelves.person / "skills" / "debug" / "SKILL.md", "nothing")
    shelves.repository_skill("spec")
    shelves.commit()
    found = check_library(find_skills(shelves.load(), environment=shelves.environment()))
    told = {(one.name, one.valid, len(one.problems)) for one in found}
    assert ("debug", False, 1) in told
    assert {("review", True, 0), ("spec", True, 0), ("spec", True, 1)} <= told
    assert len(found) == len(bundled_skills()) + 1


def test_the_bundled_ones_pass_the_check_without_a_word() -> None:
    """People copy them."""
    assert [problem for name in bundled_skills() for problem in check_path(BUNDLED / name).problems] == []
    assert all(one.valid for one in check_library(SkillSet(bundled_skills())))
