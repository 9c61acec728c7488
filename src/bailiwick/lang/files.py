"""The files of a workflow directory: what a run is pinned to, and the prompts with all that they include."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from bailiwick.errors import Place
from bailiwick.lang import codes
from bailiwick.lang.fields import Findings
from bailiwick.lang.paths import PathRefused, confine, regular, regular_or_shared
from bailiwick.lang.reading import NOTHING, Include, Reading, TemplateBroken, read_template

PINNED = ("prompts", "scripts")
SKIPPED = frozenset({"__pycache__", ".git", ".venv"})
MAX_PINNED = 50 << 20
_MAX_PROMPT = 4 << 20


@dataclass(slots=True)
class WorkflowFiles:
    """The files of one workflow; `pinned` maps relative names to absolute paths and grows as references are found."""

    root: Path
    shown: str
    found: Findings
    pinned: dict[str, Path] = field(default_factory=dict)
    _readable: set[str] = field(default_factory=set)
    _readings: dict[str, tuple[str, Reading]] = field(default_factory=dict)

    def place(self, name: str, line: int = 0, column: int = 0) -> Place:
        """A place in a file of the directory, as people see it."""
        return Place(os.path.join(self.shown, name) if self.shown else name, line, column)  # noqa: PTH118 a label

    def scan(self) -> None:
        """Pin everything under `prompts` and `scripts`; note links out of the directory and special files."""
        for folder in PINNED:
            if (self.root / folder).is_symlink() or (self.root / folder).is_dir():
                for name in self._walk(folder):
                    self._pin(name)

    def _walk(self, folder: str) -> Iterator[str]:
        """The names of all files below a folder, sorted; a linked folder is not entered but noted."""
        if (self.root / folder).is_symlink():
            hint = "replace the link by the directory itself"
            self.found.error(codes.OUTSIDE, "a linked directory can't be pinned", self.place(folder), hint)
            return
        try:
            entries = sorted(os.scandir(self.root / folder), key=lambda entry: entry.name)
        except OSError as error:
            what = f"the directory can't be read: {error.strerror}"
            self.found.error(codes.UNREADABLE, what, self.place(folder), "check its rights")
            return
        for entry in entries:
            name = f"{folder}/{entry.name}"
            if entry.name in SKIPPED:
                continue
            if _is_folder(entry):
                yield from self._walk(name)
            else:
                yield name

    def _pin(self, name: str) -> None:
        try:
            self.pinned[name] = regular(self.root, name)
        except PathRefused as refused:
            self.found.error(_code(refused), refused.what, self.place(name), refused.hint)

    def need(self, name: str, place: Place) -> Path | None:
        """Pin a file that the workflow names at `place`; notes why where that is not possible."""
        name = name.removeprefix("./")
        if name in self._readable:
            return self.pinned[name]
        try:
            path = self.pinned[name] = regular_or_shared(self.root, name)
        except PathRefused as refused:
            self.found.error(_code(refused), refused.what, place, refused.hint)
            return None
        if not os.access(path, os.R_OK):
            self.found.error(codes.UNREADABLE, f"the file {name!r} can't be read", place, "check its permissions")
            return None
        self._readable.add(name)
        return path

    def prompt(self, name: str, place: Place) -> list[tuple[str, str, Reading]]:
        """A prompt and all it includes: name, text and reading of each; notes what is missing or broken."""
        ahead, seen = [(name, place)], dict[str, tuple[str, Reading]]()
        while ahead:
            current, where = ahead.pop()
            current = current.removeprefix("./")
            if current in seen:
                continue
            seen[current] = self._read(current, where)
            text, reading = seen[current]
            chosen = filter(None, map(self.choose, reading.includes))
            ahead.extend((file, self.find_word(current, text, file)) for file in chosen)
        return [(current, text, reading) for current, (text, reading) in seen.items()]

    def choose(self, include: Include) -> str:
        """The file an include takes, or misses; empty where it may. A name that leads out is never passed over."""
        for name in include.names:
            try:
                if not confine(self.root, name).exists():
                    regular_or_shared(self.root, name)
            except PathRefused as refused:
                if refused.missing:
                    continue
            return name
        return "" if include.optional else include.names[0]

    def _read(self, name: str, place: Place) -> tuple[str, Reading]:
        if name not in self._readings:
            self._readings[name] = self._read_new(name, place)
        return self._readings[name]

    def _read_new(self, name: str, place: Place) -> tuple[str, Reading]:
        path = self.need(name, place)
        if path is None:
            return "", NOTHING
        data = path.read_bytes() if path.stat().st_size <= _MAX_PROMPT else None
        if data is None:
            self.found.error(
                codes.UNREADABLE, f"the prompt is larger than {_MAX_PROMPT:,} bytes", self.place(name), "cut it"
            )
            return "", NOTHING
        try:
            text = data.decode("utf-8")
            return text, read_template(text)
        except UnicodeDecodeError as error:
            what = f"byte {data[error.start]:#04x} at offset {error.start} is not UTF-8"
            line = data.count(b"\n", 0, error.start) + 1
            self.found.error(codes.CHARACTERS, what, self.place(name, line, 1), "save the file as UTF-8")
        except TemplateBroken as broken:
            hint = "correct the template; `{% raw %}…{% endraw %}` keeps braces as they are"
            self.found.error(codes.TEMPLATE, f"template: {broken}", self.place(name, broken.line, 1), hint)
        return "", NOTHING

    def find_word(self, name: str, text: str, word: str) -> Place:
        """The place of a word in a file's text: where template syntax first holds it, else where it first stands."""
        held = re.search(r"\{[{%][^{}]*?(?<!\w)(" + re.escape(word) + r")(?!\w)", text)
        at = held.start(1) if held else text.find(word)
        if at < 0:
            return self.place(name, 1, 1)
        return self.place(name, text.count("\n", 0, at) + 1, at - (text.rfind("\n", 0, at) + 1) + 1)


def pinned_size(paths: set[Path]) -> int:
    """The bytes of some files."""
    return sum(path.stat().st_size for path in paths if stat.S_ISREG(path.stat().st_mode))


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link in a circle: no folder, and noted as no file either
        return False


def _code(refused: PathRefused) -> str:
    if refused.missing:
        return codes.MISSING_FILE
    return codes.OUTSIDE if refused.outside else codes.SPECIAL_FILE
