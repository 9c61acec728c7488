"""The one error tree. People see what, where, a hint and a stable code; the docstring of a class is its remedy.

BailiwickError
├── UsageError            exit 2   the command line or a value is wrong
│   ├── InputInvalid      exit 2   a file has problems, each with file:line:column
│   └── NotFound          exit 2   a run, node, file or name does not exist
├── NotReady              exit 8   nothing was spent; something has to be there first
│   └── HeldByAnother     exit 8   a live owner holds the run
├── StoreError            exit 70  the journal could not be used
│   ├── Fenced            exit 8   another process took the run over
│   ├── StoreUnavailable  exit 8   disk full, read-only or an I/O error: tried again later
│   ├── StoreTooNew       exit 8   a newer version wrote this state directory
│   └── JournalCorrupt    exit 70  a gap or an unreadable event
└── InternalBug           exit 70  ours
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Place:
    """A position in a file, 1-based; `line` 0 means the file as a whole."""

    file: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}" if self.line else self.file


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong in a file: code, what, where and how to fix it."""

    code: str
    what: str
    place: Place | None = None
    hint: str = ""
    warning: bool = False

    def __str__(self) -> str:
        kind = "warning" if self.warning else "error"
        where = f" {self.place}:" if self.place else ""
        tail = f"\n  try: {self.hint}" if self.hint else ""
        return f"{kind}[{self.code}]:{where} {self.what}{tail}"


class BailiwickError(Exception):
    """Anything Bailiwick tells a person about on purpose."""

    exit_code = 70
    default_code = "BW900"

    def __init__(self, what: str, *, hint: str = "", code: str = "", place: Place | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.hint = hint
        self.code = code or self.default_code
        self.place = place

    @property
    def sentence(self) -> str:
        """What, and how to fix it, for a place that holds one text."""
        return f"{self.what}; {self.hint}" if self.hint else self.what

    def problems(self) -> list[Problem]:
        """Everything to print, one entry per finding."""
        return [Problem(self.code, self.what, self.place, self.hint)]


class UsageError(BailiwickError):
    """Correct the command line or the value; nothing was started."""

    exit_code = 2
    default_code = "BW200"


class InputInvalid(UsageError):
    """Correct the file at the places listed; nothing was started or written."""

    default_code = "BW100"

    def __init__(self, found: list[Problem]) -> None:
        first = next((p for p in found if not p.warning), found[0])
        super().__init__(first.what, hint=first.hint, code=first.code, place=first.place)
        self.found = found

    def problems(self) -> list[Problem]:
        return list(self.found)


class NotFound(UsageError):
    """Check the name; the hint lists the nearest ones."""

    default_code = "BW204"


class NotReady(BailiwickError):
    """Do what the hint says, then run the same command again; nothing was spent."""

    exit_code = 8
    default_code = "BW800"


class HeldByAnother(NotReady):
    """Wait for the holder, or stop it: it is named in the message."""

    default_code = "BW801"


class StoreError(BailiwickError):
    """The journal could not be used."""

    default_code = "BW300"


class LeaseLost(StoreError):
    """Another process took the run over; this one lets go and ends its children."""

    exit_code = 8
    default_code = "BW301"


class DocumentChanged(StoreError):
    """Another process changed it in between; read it again and repeat the change."""

    exit_code = 8
    default_code = "BW305"


class StoreUnavailable(StoreError):
    """Free disk space or repair the mount; the holder tries again every 5 s and nothing is lost."""

    exit_code = 8
    default_code = "BW302"


class StoreTooNew(StoreError):
    """Upgrade Bailiwick: a newer version has written this state directory."""

    exit_code = 8
    default_code = "BW303"


class JournalCorrupt(StoreError):
    """Keep the state directory as it is and restore the database from a backup."""

    default_code = "BW304"


class BudgetExceeded(StoreError):
    """A reservation of `unit` did not fit the `limit` of `scope`; the run parks and asks for more."""

    exit_code = 5
    default_code = "BW500"

    def __init__(self, what: str, *, hint: str = "", unit: str = "", scope: str = "", limit: float = 0.0) -> None:
        super().__init__(what, hint=hint)
        self.unit = unit
        self.scope = scope
        self.limit = limit


class InternalBug(BailiwickError):
    """Report it with `runs export`; the journal is intact."""
