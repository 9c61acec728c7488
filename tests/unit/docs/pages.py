"""Reads the pages people read: their links, their code blocks, and the commands they tell people to type."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import click

from bailiwick.cli.root import root

ROOT = Path(__file__).resolve().parents[3]
GENERATED = ROOT / "docs" / "reference"

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[[^\]\n]*\]\(([^)\s]+)\)")
_INLINE = re.compile(r"`(bailiwick [^`\n]+)`")
_FILE = re.compile(r"# file: (\S+)\n")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
_SPLIT = {"&&", "||", ";", "|", "&"}


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block of a page."""

    page: Path
    language: str
    text: str


@dataclass(slots=True)
class Bundle:
    """A workflow that a page shows in full: its files by relative name."""

    page: Path
    files: dict[str, str] = field(default_factory=dict)

    def write(self, target: Path) -> Path:
        """Write the files below `target`; gives the workflow's directory."""
        for name, text in self.files.items():
            path = target / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
        return target


def pages() -> list[Path]:
    """Every page written for people, the generated ones too."""
    tops = [ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md")]
    return sorted([*tops, *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").glob("*.md")])


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page, in order."""
    return [Block(page, found[1], found[2]) for found in _FENCE.finditer(page.read_text("utf-8"))]


def links(page: Path) -> list[str]:
    """Relative links outside of code, with their anchors."""
    prose = _FENCE.sub("", page.read_text("utf-8"))
    return [link for link in _LINK.findall(prose) if not re.match(r"[a-z]+:", link)]


def anchors(page: Path) -> set[str]:
    """What a link may name in a page, by GitHub's rules."""
    prose = _FENCE.sub("", page.read_text("utf-8"))
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in _HEADING.findall(prose)}


def bundles(page: Path) -> list[Bundle]:
    """Complete workflows: a block that begins `# file: workflow.yaml`, with the `# file:` blocks that follow it."""
    found: list[Bundle] = []
    for block in blocks(page):
        name = _FILE.match(block.text)
        if name is None:
            continue
        if name[1] == "workflow.yaml":
            found.append(Bundle(page))
        found[-1].files[name[1]] = block.text
    return found


def commands(page: Path) -> Iterator[list[str]]:
    """Each command line of ours that a page shows: in `sh` blocks, after `$` in `console` blocks, in inline code."""
    for block in blocks(page):
        lines = block.text.splitlines()
        if block.language == "console":
            lines = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
        if block.language in ("sh", "console"):
            for line in lines:
                yield from command_lines(line)
    if not page.is_relative_to(GENERATED):
        for text in _INLINE.findall(_FENCE.sub("", page.read_text("utf-8"))):
            yield from command_lines(text)


def command_lines(line: str) -> Iterator[list[str]]:
    """The words of each command of ours in a shell line."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    words: list[str] = []
    for word in [*lexer, ";"]:
        if word in _SPLIT:
            if words[:1] == ["bailiwick"]:
                yield words[1:]
            words = []
        else:
            words.append(word)


def mistake(words: list[str]) -> str:
    """What is wrong with a command line: a command or a flag that does not exist. Empty when nothing is."""
    command: click.Command = root
    ctx = click.Context(root, info_name="bailiwick")
    for word in words:
        if word == "--":
            break  # what follows is another program's
        if word.startswith("-") and len(word) > 1:
            known = {name for param in command.get_params(ctx) for name in (*param.opts, *param.secondary_opts)}
            if word.partition("=")[0] not in known:
                return f"{ctx.command_path} has no flag {word}"
        elif isinstance(command, click.Group) and word not in ("COMMAND", "…"):
            below = command.get_command(ctx, word)
            if below is None:
                return f"{ctx.command_path} has no command {word}"
            command, ctx = below, click.Context(below, ctx, info_name=word)
    return ""
