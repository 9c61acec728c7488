"""Finding a workflow by path or name, and loading it with what it calls."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from pathlib import Path

from bailiwick.bundled_files import BUNDLED_FILES
from bailiwick.config.repository import is_work_tree
from bailiwick.errors import NotFound
from bailiwick.ids import NAME, Json
from bailiwick.lang.load import Finder, Loaded, load

FILE = "workflow.yaml"
BUNDLED = BUNDLED_FILES / "workflows"


@dataclass(frozen=True, slots=True)
class WorkflowFolder:
    """A place where workflows are looked up by name."""

    label: str
    path: Path


def shelves(cwd: Path, person: Path) -> list[WorkflowFolder]:
    """Where names are looked up, nearest first: the repository's, the person's, the bundled ones."""
    found = []
    for base in (cwd, *cwd.parents):
        found += [
            WorkflowFolder("repository", base / ".bailiwick" / "workflows"),
            WorkflowFolder("repository", base / ".agents" / "workflows"),
        ]
        if is_work_tree(base):
            break
    return [*found, *own_shelves(person)]


def own_shelves(person: Path) -> list[WorkflowFolder]:
    """The shelves that no repository, and so no agent, can write: the person's and the bundled one."""
    return [WorkflowFolder("person", person / "workflows"), WorkflowFolder("bundled", BUNDLED)]


def named(places: list[WorkflowFolder]) -> dict[str, tuple[str, Path]]:
    """Every workflow there is, by name, with its shelf; the nearest one wins."""
    out: dict[str, tuple[str, Path]] = {}
    for shelf in places:
        if shelf.path.is_dir():
            for item in sorted(shelf.path.iterdir()):
                if (item / FILE).is_file():
                    out.setdefault(item.name, (shelf.label, item))
    return out


@dataclass(frozen=True, slots=True)
class WorkflowEntry:
    """A workflow that could be run: by name or as a directory here, where it lies, and what it says it is for."""

    name: str
    label: str
    path: Path
    description: str

    def to_json(self) -> dict[str, Json]:
        """As a document."""
        return {"name": self.name, "where": self.label, "path": str(self.path), "description": self.description}


def listed(cwd: Path, person: Path) -> list[WorkflowEntry]:
    """Every workflow that can be run from here: directories below, then names, each group sorted."""
    here = [WorkflowEntry(f"{path.name}/", "here", path, _description(path)) for path in _beside(cwd)]
    known = sorted(named(shelves(cwd, person)).items())
    return [*here, *(WorkflowEntry(name, label, path, _description(path)) for name, (label, path) in known)]


def _beside(cwd: Path) -> list[Path]:
    """The directories below that hold a workflow."""
    try:
        return sorted(item for item in cwd.iterdir() if NAME.fullmatch(item.name) and (item / FILE).is_file())
    except OSError:
        return []


def _description(path: Path) -> str:
    """What a workflow says it is for; that it has problems where its file can't be read."""
    from bailiwick.errors import InputInvalid
    from bailiwick.lang.source import read_yaml

    try:
        data = read_yaml(path / FILE).data
    except InputInvalid:
        return f"has problems: bailiwick validate {path}"
    said = data.get("description") if isinstance(data, dict) else None
    return " ".join(said.split()) if isinstance(said, str) else ""


def locate(text: str, places: list[WorkflowFolder], cwd: Path) -> Path:
    """The directory or file that a person means: a path first, then a name."""
    path = Path(text)
    if path.exists() or "/" in text or text in (".", ".."):
        return path
    known = named(places)
    if text in known:
        return known[text][1]
    near = difflib.get_close_matches(text, [*(path.name for path in _beside(cwd)), *known], 2)
    hint = (
        f"did you mean {' or '.join(near)}?"
        if near
        else "give a directory with a workflow.yaml; `bailiwick run` lists the names"
    )
    raise NotFound(f"no workflow '{text}'", hint=hint)


def load_workflow(text: str, cwd: Path, person: Path, *, strict: bool = False) -> Loaded:
    """Load what a person means, with every problem in one go."""
    places = shelves(cwd, person)
    return load(locate(text, places, cwd), finder(places), strict=strict)


def finder(places: list[WorkflowFolder]) -> Finder:
    """Finds a called workflow: the one beside its caller, else the one of that name."""

    def find(name: str, caller: Path) -> Path | None:
        beside = caller.parent / name
        if NAME.fullmatch(name) and (beside / FILE).is_file():
            return beside
        known = named(places)
        return known[name][1] if name in known else None

    return find
