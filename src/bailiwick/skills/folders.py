"""Where skills are found and which one counts.

The bundled ones; then a repository's, which may only add names, as of the last commit; then the person's, which win.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

from bailiwick.bundled_files import BUNDLED_FILES
from bailiwick.config.repository import Repository, committed
from bailiwick.config.service import Config
from bailiwick.config.variables import Environment
from bailiwick.errors import InputInvalid, NotFound, Place, Problem
from bailiwick.ids import digest
from bailiwick.lang.fields import Findings
from bailiwick.lang.source import read_bytes
from bailiwick.lang.wording import suggestion
from bailiwick.skills.model import NAME, Origin, Skill
from bailiwick.skills.reading import FENCE, MAX_BODY, MAX_DESCRIPTION, MAX_FILE, check_body, decoded, read_skill
from bailiwick.skills.tools import TABLE

FILE = "SKILL.md"
BUNDLED = BUNDLED_FILES / "skills"
IN_REPOSITORY = ".bailiwick/skills"
COMMANDS = frozenset({"list", "show", "check", "new"})
"""Names that `bailiwick skill` uses itself."""
MAX_SKILLS = 200
MAX_ENTRIES = 1000
"""Of one folder."""

LINK_OUTSIDE = "BW164"
TAKEN = "BW165"
NOT_COMMITTED = "BW166"
TOO_MANY = "BW167"


@dataclass(frozen=True, slots=True)
class SkillSet:
    """The skills that count, by name. `broken` are those that can't be used; `notes` are for the person."""

    skills: Mapping[str, Skill]
    broken: Mapping[str, tuple[Problem, ...]] = field(default_factory=dict)
    notes: tuple[Problem, ...] = ()

    def get(self, name: str) -> Skill:
        """A skill by name; raises `InputInvalid` for one that is broken, `NotFound` for none."""
        if name in self.broken:
            raise InputInvalid(list(self.broken[name]))
        if name not in self.skills:
            known = sorted(self.skills)
            raise NotFound(f"there is no skill '{name}'", hint=suggestion(name, known, f"one of {', '.join(known)}"))
        return self.skills[name]


@dataclass(slots=True)
class _Shelves:
    """What was found so far."""

    skills: dict[str, Skill]
    broken: dict[str, tuple[Problem, ...]] = field(default_factory=dict)
    notes: list[Problem] = field(default_factory=list)

    def put(self, name: str, read: tuple[Skill, list[Problem]]) -> None:
        self.skills[name] = read[0]
        self.broken.pop(name, None)
        self.notes += read[1]

    def warn(self, code: str, what: str, place: Place, hint: str) -> None:
        self.notes.append(Problem(code, what, place, hint, warning=True))

    @contextmanager
    def reading(self, name: str) -> Iterator[None]:
        """A skill that can't be read is none: the one whose place it takes does not quietly come back."""
        try:
            yield
        except InputInvalid as error:
            self.skills.pop(name, None)
            self.broken[name] = tuple(error.problems())


def find_skills(config: Config, *, environment: Environment | None = None) -> SkillSet:
    """Every skill that counts for a person in a directory. A broken one is noted and keeps no other from being used."""
    found = _Shelves(dict(bundled_skills()))
    if config.repository is not None:
        _add_repository(config.repository, environment or Environment(), found)
    _add_person(person_folder(config), found)
    return SkillSet(found.skills, found.broken, tuple(found.notes))


def person_folder(config: Config) -> Path:
    """Where the person's own skills are."""
    chosen = config.get("skills_dir")
    return Path(chosen) if chosen else config.paths.config / "skills"


@cache
def bundled_skills() -> Mapping[str, Skill]:
    """The skills that come with Bailiwick."""
    return {path.parent.name: load_skill(path.parent, "bundled")[0] for path in sorted(BUNDLED.glob(f"*/{FILE}"))}


def load_skill(folder: Path, origin: Origin) -> tuple[Skill, list[Problem]]:
    """The skill in a folder, and warnings; raises `InputInvalid` with what is wrong and where."""
    file = folder / FILE
    found = Findings()
    _check_links(folder, found)
    if found.failed:
        raise InputInvalid(found.problems)
    data = read_bytes(file, Place(str(file)), MAX_FILE)
    return read_skill(data, str(file), name=folder.name, origin=origin, parts=dict(_parts(folder)))


def _parts(folder: Path) -> Iterator[tuple[str, str]]:
    """Further texts beside a SKILL.md, by stem."""
    for path in sorted(folder.glob("*.md")):
        if path.name != FILE and NAME.fullmatch(path.stem):
            yield path.stem, decoded(read_bytes(path, Place(str(path)), MAX_BODY), str(path)).strip("\n")


def _check_links(folder: Path, found: Findings) -> None:
    """Note every link that leads out of a folder, and a folder with too much in it."""
    real = Path(os.path.realpath(folder))
    count = 0
    for top, folders, files in os.walk(real):
        for name in (*folders, *files):
            count += 1
            path = Path(top, name)
            if path.is_symlink() and not Path(os.path.realpath(path)).is_relative_to(real):
                shown = folder / path.relative_to(real)
                found.error(
                    LINK_OUTSIDE, "a link that leads out of the skill's folder", Place(str(shown)), "copy it in"
                )
        if count > MAX_ENTRIES:
            what = f"the folder holds more than {MAX_ENTRIES} entries"
            found.error(TOO_MANY, what, Place(str(folder)), "a skill is a SKILL.md and a few texts")
            return


def check_name(name: str, place: Place, found: Findings) -> bool:
    """Whether a skill of a person or repository may have a name; notes why not."""
    tools = {tool.name for tool in TABLE if tool.name.replace("_", "-") not in {one.skill for one in TABLE}}
    if not NAME.fullmatch(name):
        found.error(TAKEN, f"{name!r} can't be a skill's name", place, "use lower-case letters, digits and '-'")
    elif name in COMMANDS:
        found.error(TAKEN, f"'{name}' is a command of `bailiwick skill`", place, "choose another name")
    elif name.replace("-", "_") in tools:
        found.error(TAKEN, f"'{name.replace('-', '_')}' is a tool already", place, "choose another name")
    else:
        return True
    return False


def _folders(shelf: Path, found: _Shelves) -> list[Path]:
    """The folders of a shelf that hold a SKILL.md, in order."""
    try:
        there = sorted(path for path in shelf.iterdir() if (path / FILE).is_file())
    except OSError:
        return []
    if len(there) > MAX_SKILLS:
        what = f"more than {MAX_SKILLS} skills; the others are not used"
        found.warn(TOO_MANY, what, Place(str(shelf)), "remove some")
    return there[:MAX_SKILLS]


def _add_person(shelf: Path, found: _Shelves) -> None:
    """The person's: folders, and the older form, which is one Markdown file for each discipline."""
    for place in (shelf, shelf / "skills"):
        for name in bundled_skills():
            path = place / f"{name}.md"
            if path.is_file():
                with found.reading(name):
                    found.put(name, _load_older(path, name))
        for folder in _folders(place, found):
            with found.reading(folder.name):
                found.put(folder.name, _load_own(folder, "person"))


def _add_repository(repository: Repository, environment: Environment, found: _Shelves) -> None:
    """A repository's, as of its last commit; outside git what belongs to the person."""
    for folder in _folders(repository.root / IN_REPOSITORY, found):
        name, place = folder.name, Place(str(folder / FILE))
        if name in bundled_skills():
            hint = f"rename it, or make it your own: bailiwick skill new {name} --from {name}"
            found.warn(TAKEN, f"a repository can't replace the bundled skill '{name}'; it is not used", place, hint)
            continue
        with found.reading(name):
            if repository.git:
                _add_committed(folder, repository.root, environment, found)
            elif (folder / FILE).stat().st_uid in (0, os.geteuid()):
                found.put(name, _load_own(folder, "repository"))
            else:
                found.warn(NOT_COMMITTED, "the file belongs to another user and is not used", place, "copy it")


def _add_committed(folder: Path, root: Path, environment: Environment, found: _Shelves) -> None:
    """What the last commit says; a change in the work tree is a warning and not used."""
    name, file = folder.name, folder / FILE
    _check(name, Place(str(file)))
    texts: dict[str, bytes] = {}
    for path in (file, *(path for path in sorted(folder.glob("*.md")) if NAME.fullmatch(path.stem))):
        data = committed(root, f"{IN_REPOSITORY}/{name}/{path.name}", environment)
        if data is None or data.splitlines() != _here(path).splitlines():
            hint = "commit it to use it"
            found.warn(
                NOT_COMMITTED, "the file differs from its last commit; the change is not used", Place(str(path)), hint
            )
        if data is not None:
            texts[path.name] = data
    if FILE in texts:
        parts = {Path(key).stem: decoded(data, str(folder / key)) for key, data in texts.items() if key != FILE}
        found.put(name, read_skill(texts[FILE], str(file), name=name, origin="repository", parts=parts))


def _here(path: Path) -> bytes:
    try:
        return read_bytes(path, Place(str(path)), MAX_FILE)
    except InputInvalid:
        return b""


def _load_own(folder: Path, origin: Origin) -> tuple[Skill, list[Problem]]:
    """A skill that is not bundled; one that stands for a bundled skill has that one's further texts too."""
    _check(folder.name, Place(str(folder)))
    skill, notes = load_skill(folder, origin)
    return _with_parts(skill), notes


def _load_older(path: Path, name: str) -> tuple[Skill, list[Problem]]:
    """A discipline without front matter; its first heading describes it."""
    data = read_bytes(path, Place(str(path)), MAX_FILE)
    text = decoded(data, str(path))
    if text.startswith(f"{FENCE}\n"):
        skill, notes = read_skill(data, str(path), name, "person")
        return _with_parts(skill), notes
    found = Findings()
    check_body(text, Place(str(path), 1, 1), found)
    if found.failed:
        raise InputInvalid(found.problems)
    first = next(line for line in text.splitlines() if line.strip()).lstrip("#").strip()
    description = (first or bundled_skills()[name].description)[:MAX_DESCRIPTION]
    return _with_parts(
        Skill(
            name, description=description, body=text.strip("\n"), origin="person", path=str(path), digest=digest(text)
        )
    ), []


def _with_parts(skill: Skill) -> Skill:
    bundled = bundled_skills().get(skill.name)
    return replace(skill, parts={**bundled.parts, **skill.parts}) if bundled else skill


def _check(name: str, place: Place) -> None:
    found = Findings()
    if not check_name(name, place, found):
        raise InputInvalid(found.problems)
