"""Making a skill to start from, and checking one before it is used."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bailiwick.bundled_files import BUNDLED_FILES
from bailiwick.errors import InputInvalid, NotFound, Place, Problem, UsageError
from bailiwick.lang.fields import Findings
from bailiwick.lang.wording import suggestion
from bailiwick.skills.folders import BUNDLED, FILE, SkillSet, bundled_skills, check_name, load_skill
from bailiwick.skills.model import NAME

STARTER = BUNDLED_FILES / "starters" / "skill"
STARTER_NAME = "my-skill"


@dataclass(frozen=True, slots=True)
class SkillVerdict:
    """What was found out about one skill."""

    name: str
    path: str
    problems: tuple[Problem, ...]

    @property
    def valid(self) -> bool:
        """Whether it can be used; warnings don't keep it from that."""
        return all(problem.warning for problem in self.problems)


def check_path(path: Path) -> SkillVerdict:
    """Check the skill in a folder, or the folder of a SKILL.md."""
    folder = path.absolute()
    folder = folder.parent if folder.name == FILE and not folder.is_dir() else folder
    found = Findings()
    check_name(folder.name, Place(str(folder)), found)
    try:
        found.problems += load_skill(folder, "person")[1]
    except InputInvalid as error:
        found.problems += error.problems()
    return SkillVerdict(folder.name, str(folder / FILE), tuple(found.problems))


def check_library(library: SkillSet) -> list[SkillVerdict]:
    """What is known of every skill that was found."""
    noted = [(problem.place.file if problem.place else "", problem) for problem in library.notes]
    out = [
        SkillVerdict(one.name, one.path, tuple(problem for file, problem in noted if file == one.path))
        for one in library.skills.values()
    ]
    for name, problems in library.broken.items():
        out.append(SkillVerdict(name, str(problems[0].place.file if problems[0].place else ""), problems))
    told = {one.path for one in out}
    out += [SkillVerdict(Path(file).parent.name, file, (problem,)) for file, problem in noted if file not in told]
    return sorted(out, key=lambda one: one.name)


def make_skill(shelf: Path, name: str, like: str = "") -> Path:
    """A new folder with a commented skill, or with a copy of a bundled one; nothing that is there is changed."""
    if like and like not in bundled_skills():
        known = sorted(bundled_skills())
        hint = suggestion(like, known, f"one of {', '.join(known)}")
        raise NotFound(f"there is no bundled skill '{like}'", hint=hint)
    if not NAME.fullmatch(name):
        hint = "lower-case letters, digits and '-', at most 64, a letter first"
        raise UsageError(f"'{name}' can't be a skill's name", hint=hint)
    if name in bundled_skills() and like != name:
        hint = f"start from it: bailiwick skill new {name} --from {name}"
        raise UsageError(f"'{name}' is a bundled skill", hint=hint)
    found = Findings()
    if not check_name(name, Place(str(shelf / name)), found):
        raise InputInvalid(found.problems)
    target = shelf / name
    source = BUNDLED / like if like else STARTER
    try:
        target.mkdir(parents=True)
    except FileExistsError:
        raise UsageError(f"{target} exists already", hint="choose another name; nothing was changed") from None
    for path in sorted(source.glob("*.md")):
        text = path.read_text("utf-8")
        if path.name == FILE:
            text = _renamed(text, like or STARTER_NAME, name)
        (target / path.name).write_text(text, "utf-8")
    return target / FILE


def _renamed(text: str, old: str, new: str) -> str:
    """The text under another name: in its front matter, and in the example of the starter."""
    out = text.replace(f"\nname: {old}\n", f"\nname: {new}\n", 1)
    if old == STARTER_NAME:
        title = new.replace("-", " ").capitalize()
        out = out.replace(f'"{old}"', f'"{new}"').replace("\n# My skill\n", f"\n# {title}\n")
    return out
