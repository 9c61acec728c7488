"""Finding a workflow by path or name, and loading it with what it calls."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from pathlib import Path

from bailiwick.config.repository import is_work_tree
from bailiwick.errors import NotFound
from bailiwick.ids import NAME
from bailiwick.lang.load import Loaded, load

FILE = "workflow.yaml"
BUNDLED = Path(__file__).parent.parent / "bundled" / "workflows"


@dataclass(frozen=True, slots=True)
class Shelf:
    """A place where workflows are looked up by name."""

    label: str
    path: Path


def shelves(cwd: Path, person: Path) -> list[Shelf]:
    """Where names are looked up, nearest first: the repository's, the person's, the bundled ones."""
    found = []
    for base in (cwd, *cwd.parents):
        found += [
            Shelf("repository", base / ".bailiwick" / "workflows"),
            Shelf("repository", base / ".agents" / "workflows"),
        ]
        if is_work_tree(base):
            break
    return [*found, Shelf("person", person / "workflows"), Shelf("bundled", BUNDLED)]


def named(places: list[Shelf]) -> dict[str, tuple[str, Path]]:
    """Every workflow there is, by name, with its shelf; the nearest one wins."""
    out: dict[str, tuple[str, Path]] = {}
    for shelf in places:
        if shelf.path.is_dir():
            for item in sorted(shelf.path.iterdir()):
                if (item / FILE).is_file():
                    out.setdefault(item.name, (shelf.label, item))
    return out


def locate(text: str, places: list[Shelf]) -> Path:
    """The directory or file that a person means: a path first, then a name."""
    path = Path(text)
    if path.exists() or "/" in text or text in (".", ".."):
        return path
    known = named(places)
    if text in known:
        return known[text][1]
    beside = [item.parent.name for item in Path().glob(f"*/{FILE}")]
    near = difflib.get_close_matches(text, [*known, *beside], 2)
    hint = (
        f"did you mean {' or '.join(near)}?"
        if near
        else "give a directory with a workflow.yaml; `bailiwick run` lists the names"
    )
    raise NotFound(f"no workflow '{text}'", hint=hint)


def load_workflow(text: str, cwd: Path, person: Path, *, strict: bool = False) -> Loaded:
    """Load what a person means, with every problem in one go."""
    places = shelves(cwd, person)

    def find(name: str, caller: Path) -> Path | None:
        beside = caller.parent / name
        if NAME.fullmatch(name) and (beside / FILE).is_file():
            return beside
        known = named(places)
        return known[name][1] if name in known else None

    return load(locate(text, places), find, strict=strict)
