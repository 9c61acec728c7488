"""The maps for newcomers: every function in the pictures exists, every search of the page finds what it says."""

from __future__ import annotations

import ast
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.architecture.reading import PACKAGE, ROOT, tree

PICTURES = {"One script node": 20, "One agent turn": 18, "One tool call": 18, "One gate": 16}
"""The pictures of ARCHITECTURE.md, and how many names each has at least."""
QUESTIONS = 14
_NAME = re.compile(r"(?<![\w/.`])[a-z_]+(?:\.\w+)+")
_FILE = re.compile(r"\.(?:yaml|md|json|py)$")


def _picture(title: str) -> list[str]:
    """The dotted names in the picture below a heading."""
    text = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    drawn = text.split(f"### {title}\n", 1)[1].split("```text\n", 1)[1].split("```", 1)[0]
    return [name for name in _NAME.findall(drawn) if not _FILE.search(name)]


def _module(parts: list[str]) -> Path | None:
    path = PACKAGE.joinpath(*parts)
    return next((file for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file()), None)


def _exists(name: str) -> bool:
    """Whether `package.module`, or a class, function or method of it, is there."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        if (file := _module(parts[:length])) is not None:
            return _defines(tree(file), parts[length:])
    return False


def _defines(scope: ast.Module | ast.ClassDef, names: list[str]) -> bool:
    if not names:
        return True
    for node in scope.body:
        if isinstance(node, ast.ClassDef) and node.name == names[0]:
            return _defines(node, names[1:])
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and names == [node.name]:
            return True
    return False


@pytest.mark.parametrize("title", PICTURES)
def test_what_a_picture_names_exists(title: str) -> None:
    """A map with a street that was renamed sends newcomers into the wrong file."""
    names = _picture(title)
    assert len(names) >= PICTURES[title]
    assert [name for name in names if not _exists(name)] == []


def test_a_name_that_is_gone_is_noticed() -> None:
    """The test above would be worth nothing if everything existed."""
    assert _exists("engine.decide.decide")
    assert _exists("journal.port.Store.append")
    assert not any(map(_exists, ("engine.decide.decided", "journal.port.Store.appended", "engines.decide")))


def _searches() -> list[tuple[str, list[str]]]:
    """Each search of CONTRIBUTING.md with the files that it should find."""
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    rows = re.findall(r"^\| [^|]+ \| `(grep [^`]+)` \| ([^|]+) \|", text, re.MULTILINE)
    return [(command, re.findall(r"`([^`]+)`", files)) for command, files in rows]


def test_each_question_of_a_newcomer_has_a_search() -> None:
    """Fourteen questions that people who are new here asked."""
    assert len(_searches()) == QUESTIONS


@pytest.mark.parametrize(("command", "files"), _searches())
def test_a_search_finds_the_files_that_the_page_names(command: str, files: list[str]) -> None:
    """One search, at most two files: else the answer has no home."""
    done = subprocess.run([*shlex.split(command), "-l"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert sorted(done.stdout.splitlines()) == sorted(f"src/bailiwick/{file}" for file in files)
    assert len(files) <= 2
