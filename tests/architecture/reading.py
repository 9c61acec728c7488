"""Reads the repository's own files for the architecture tests."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "bailiwick"
CODE_FOLDERS = ("src", "tests", "benchmarks", "docs", "tools")
TEXT_ENDINGS = {".py", ".md", ".toml", ".yaml", ".yml", ".sh", ".html", ".css", ".js", ".sql", ".j2", ""}
SKIPPED_PARTS = {"__pycache__", "golden", "transcripts", "node_modules", "vendor"}


@cache
def _kept() -> tuple[Path, ...]:
    """What git keeps or would keep; outside a checkout every file that no tool made."""
    command = ["git", "-C", str(ROOT), "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(command, capture_output=True, text=True, check=False)
    if listed.returncode == 0:
        return tuple(ROOT / name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file())
    return tuple(p for p in ROOT.rglob("*") if p.is_file() and not SKIPPED_PARTS.intersection(p.parts))


def python_files(*folders: str) -> list[Path]:
    """Every Python file below these folders of the repository, in order."""
    tops = {ROOT / folder for folder in folders}
    return sorted(p for p in _kept() if p.suffix == ".py" and tops.intersection(p.parents))


def package_files() -> list[Path]:
    """Every Python file of the package."""
    return [path for path in python_files("src") if "bundled" not in path.parts]


def text_files() -> list[Path]:
    """Every text file that people write here."""
    return sorted(p for p in _kept() if p.suffix in TEXT_ENDINGS and p.name != "uv.lock")


def module_name(path: Path) -> str:
    """The dotted name of a file of the package."""
    parts = path.relative_to(ROOT / "src").with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def tree(path: Path) -> ast.Module:
    """The syntax tree of a file."""
    return ast.parse(path.read_text("utf-8"), str(path))


def where(path: Path, node: ast.AST | int) -> str:
    """How a finding's place is written."""
    line = node if isinstance(node, int) else getattr(node, "lineno", 1)
    return f"{path.relative_to(ROOT)}:{line}"


def dotted(node: ast.AST) -> str:
    """`a.b.c` of a name or attribute chain; a part that is no name reads `?`."""
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else "?"


def uses(path: Path) -> Iterator[tuple[ast.AST, str]]:
    """Every dotted name a file uses or imports; `from os import environ` makes `environ` read `os.environ`."""
    aliases: dict[str, str] = {}
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.ImportFrom) and node.module:
            for name in node.names:
                aliases[name.asname or name.name] = f"{node.module}.{name.name}"
                yield node, f"{node.module}.{name.name}"
        elif isinstance(node, ast.Import):
            for name in node.names:
                aliases[name.asname or name.name] = name.name if name.asname else name.name.split(".")[0]
                yield node, name.name
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Attribute | ast.Name):
            head, _, rest = dotted(node).partition(".")
            full = aliases.get(head, head)
            yield node, f"{full}.{rest}" if rest else full
