"""Writes workflows to a directory and loads them."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

from bailiwick.lang.load import Loaded, load


def loaded(root: Path, text: str, files: dict[str, str] | None = None) -> Loaded:
    """A workflow from its nodes; each script it names exists and would leave a mark if it ran."""
    (root / "scripts").mkdir(parents=True, exist_ok=True)
    for name in ("a", "b", "c"):
        (root / "scripts" / f"{name}.sh").write_text(f'touch "{root}/ran"\n')
    for name, content in (files or {}).items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(content))
    (root / "workflow.yaml").write_text("version: 1\nname: tried\n" + dedent(text))
    return load(root)
