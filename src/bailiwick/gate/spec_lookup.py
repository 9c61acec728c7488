"""Which gate it is: `gate.yaml` of the operator or of the base commit, or what is detected where there is none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from bailiwick.config.editing import write_atomically
from bailiwick.config.paths import make_private
from bailiwick.errors import InputInvalid, Place, Problem
from bailiwick.gate.detection import PlanAdditions, detect, wanted_files
from bailiwick.gate.spec import ALWAYS_PROTECTED, FILE, GateSpec, read_gate
from bailiwick.ids import canonical, digest

if TYPE_CHECKING:
    from bailiwick.config.paths import Paths
    from bailiwick.git.store import GitStore

OPERATOR_FILE = "gate.yaml"
NOT_COMMITTED = "BW440"


@dataclass(frozen=True, slots=True)
class SpecLookup:
    """Where a gate may be said: the operator's directories, and the person's work tree with its remote."""

    paths: Paths
    repository: Path
    protected: tuple[str, ...] = ()
    """Patterns of the configuration, added to those of any file."""
    has_tool: Callable[[str], bool] = lambda _: False
    """Whether a program is installed; a detected gate uses what is there."""


async def find_spec(git_store: GitStore, base: str, where: SpecLookup) -> GateSpec:
    """The gate for changes on `base`: the operator's, else the base commit's, else a detected one.

    What the work tree's own file says beyond its commit is not used; a note says so.
    """
    committed = await git_store.blob(base, FILE)
    operators = _operator_file(where)
    if operators is not None:
        from bailiwick.lang.source import MAX_BYTES, read_bytes

        spec = read_gate(read_bytes(operators, Place(str(operators)), MAX_BYTES), str(operators), "operator")
    elif committed is not None:
        spec = read_gate(committed, FILE, "base")
    else:
        spec = proven(where.paths.state, where.repository, await detect_spec(git_store, base, where))
    notes = spec.notes if operators is not None else (*spec.notes, *_uncommitted(where.repository, committed))
    return replace(spec, protected=protected_by(spec, where), notes=notes)


def protected_by(spec: GateSpec, where: SpecLookup) -> tuple[str, ...]:
    """The patterns of protected paths: of the gate, of the configuration, and those that always hold."""
    return tuple(dict.fromkeys((*ALWAYS_PROTECTED, *spec.protected, *where.protected)))


async def detect_spec(
    git_store: GitStore, base: str, where: SpecLookup, additions: PlanAdditions | None = None
) -> GateSpec:
    """The gate that the files of a base suggest."""
    files = await git_store.files(base)
    texts = await git_store.blobs(base, wanted_files(files))
    return detect(files, texts, where.has_tool, tags=await git_store.tags_of(base), additions=additions)


def proven(state: Path, repository: Path, detected: GateSpec) -> GateSpec:
    """What `init` found to be green in place of what is detected; the detected gate itself where it found nothing."""
    try:
        data = _proven_file(state, repository, detected).read_bytes()
        return replace(read_gate(data, FILE, "detected"), file="", notes=detected.notes)
    except (OSError, InputInvalid):
        return detected


def keep_proven(state: Path, repository: Path, detected: GateSpec, text: str) -> None:
    """Remember that the gate in `text` is green where `detected` is what the files suggest."""
    file = _proven_file(state, repository, detected)
    make_private(file.parent)
    write_atomically(file, text)


def _proven_file(state: Path, repository: Path, detected: GateSpec) -> Path:
    plan = [[list(command) for command in detected.prepare], [check.to_json() for check in detected.checks]]
    return state / "gates" / f"{digest(canonical([str(repository), *plan]))[:32]}.yaml"


def _operator_file(where: SpecLookup) -> Path | None:
    """The operator's file: the one for this repository before the one for all."""
    from bailiwick.config.repository import find_remote

    remote = find_remote(where.repository)
    candidates = [where.paths.config / OPERATOR_FILE]
    if remote is not None:
        beside = where.paths.repository_file(remote.host, remote.owner, remote.name)
        candidates.insert(0, beside.with_name(f"{remote.name}.gate.yaml"))
    return next((path for path in candidates if path.is_file()), None)


def _uncommitted(repository: Path, committed: bytes | None) -> tuple[Problem, ...]:
    path = repository / FILE
    try:
        here = path.read_bytes() if path.is_file() and not path.is_symlink() else None
    except OSError:
        here = None
    if (here or b"").splitlines() == (committed or b"").splitlines():
        return ()
    hint = "commit it to the base to use it" if here is not None else "the committed one counts"
    what = "the file differs from the base commit's; the change is not used"
    return (Problem(NOT_COMMITTED, what, Place(str(path)), hint, warning=True),)
