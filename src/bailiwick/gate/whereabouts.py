"""Which gate it is: `gate.yaml` of the operator or of the base commit, or what is detected where there is none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from bailiwick.errors import Place, Problem
from bailiwick.gate.detection import detect, wanted_files
from bailiwick.gate.spec import ALWAYS_PROTECTED, FILE, GateSpec, read_gate

if TYPE_CHECKING:
    from bailiwick.config.paths import Paths
    from bailiwick.fence.vault import Vault

OPERATOR_FILE = "gate.yaml"
NOT_COMMITTED = "BW440"


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """Where a gate may be said: the operator's directories, and the person's work tree with its remote."""

    paths: Paths
    repository: Path
    protected: tuple[str, ...] = ()
    """Patterns of the configuration, added to those of any file."""
    has_tool: Callable[[str], bool] = lambda _: False
    """Whether a program is installed; a detected gate uses what is there."""


async def find_spec(vault: Vault, base: str, where: Whereabouts) -> GateSpec:
    """The gate for changes on `base`: the operator's, else the base commit's, else a detected one.

    What the work tree's own file says beyond its commit is not used; a note says so.
    """
    committed = await vault.blob(base, FILE)
    operators = _operator_file(where)
    if operators is not None:
        from bailiwick.lang.source import MAX_BYTES, read_bytes

        spec = read_gate(read_bytes(operators, Place(str(operators)), MAX_BYTES), str(operators), "operator")
    elif committed is not None:
        spec = read_gate(committed, FILE, "base")
    else:
        files = await vault.files(base)
        texts = {path: await vault.blob(base, path) or b"" for path in wanted_files(files)}
        spec = detect(files, texts, where.has_tool)
    notes = spec.notes if operators is not None else (*spec.notes, *_uncommitted(where.repository, committed))
    patterns = dict.fromkeys((*ALWAYS_PROTECTED, *spec.protected, *where.protected))
    return replace(spec, protected=tuple(patterns), notes=notes)


def _operator_file(where: Whereabouts) -> Path | None:
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
