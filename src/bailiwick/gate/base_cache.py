"""What is known of a base is kept in the cache, for as long as tree, policy, environment and sandbox are the same."""

from __future__ import annotations

import json
from contextlib import suppress
from functools import cache
from pathlib import Path

from bailiwick.config.paths import make_private
from bailiwick.gate.model import GateReport
from bailiwick.gate.report import FOLDER, read_document, write_document
from bailiwick.ids import Json, canonical, digest


def key_of(tree: str, policy: str, environment: str, sandboxes: str) -> str:
    """Under which key something about a base is kept; a gate of another make has other keys."""
    return digest(canonical([tree, policy, environment, sandboxes, _make()]))[:40]


@cache
def _make() -> str:
    """What this gate is made of: its own files."""
    own = Path(__file__).parent
    files = sorted(file for file in own.rglob("*") if file.suffix in (".py", ".cjs", ".mjs", ".sh"))
    return digest(b"".join(file.relative_to(own).as_posix().encode() + b"\0" + file.read_bytes() for file in files))


def read_base_report(cache: Path, key: str) -> GateReport | None:
    """The kept report of a base."""
    return read_document(cache / FOLDER / f"{key}.report.json")


def keep_base_report(cache: Path, key: str, report: GateReport) -> None:
    """Keep the report of a base; a cache that can't be written is no reason to fail."""
    with suppress(OSError):
        write_document(_folder(cache) / f"{key}.report.json", report.to_json())


def read_base_results(cache: Path, key: str) -> dict[str, Json]:
    """What checks have learnt about a base, by their names."""
    try:
        data = json.loads((cache / FOLDER / f"{key}.base.json").read_bytes())
    except (OSError, ValueError):
        return {}
    return data if isinstance(data, dict) else {}


def keep_base_results(cache: Path, key: str, results: dict[str, Json]) -> None:
    """Keep what checks have learnt about a base."""
    if results:
        with suppress(OSError):
            write_document(_folder(cache) / f"{key}.base.json", results)


def _folder(cache: Path) -> Path:
    return make_private(make_private(cache) / FOLDER)
