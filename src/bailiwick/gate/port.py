"""The port of checks: what a check may use, and what it gives back."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

from bailiwick.gate.model import CheckResult
from bailiwick.ids import Json
from bailiwick.sandbox.spec import Bind

if TYPE_CHECKING:
    from bailiwick.gate.spec import CheckSpec
    from bailiwick.git.objects import TreeChange
    from bailiwick.sandbox.service import Sandboxes

Which = Literal["base", "proposed"]


class MakeCheckout(Protocol):
    """Makes checkouts."""

    async def __call__(self, which: Which, files: Mapping[str, bytes | None] | None = None, /) -> Path:
        """Another fresh checkout: a directory of the host, handed over to the sandbox's uid, removed with the bench.

        With `files` these paths hold these bytes instead of what the tree has (None: there is no such file). They are
        put into the tree before it is checked out, so that no link in it can lead the writing elsewhere.
        """


@dataclass(frozen=True, slots=True)
class Case:
    """What a judge is shown of a change: what was asked, the difference, what is known about it, its paths."""

    issue: str
    diff: str
    findings: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Opinion:
    """What a judge says: why it doubts, and the path that this is about; nothing where it doesn't.

    `trouble` says why there is no opinion at all, `hint` what helps then. `usd` is what it cost; None: not known.
    """

    doubt: str = ""
    path: str = ""
    trouble: str = ""
    hint: str = ""
    usd: float | None = 0.0


class Judge(Protocol):
    """Asks a model, by its name in the models file, what it thinks of a change."""

    async def __call__(self, model: str, case: Case, *, seconds: float, cancel: asyncio.Event) -> Opinion:
        """Its opinion; never raises for what a model or a server does."""


@dataclass(frozen=True, slots=True)
class Judging:
    """What a check that asks a judge needs: who asks it, what was asked of the author, and who the author is.

    `authors` are models as `backend/model`, where they are known. `findings` are known before any check is run.
    """

    judge: Judge | None = None
    issue: str = ""
    authors: tuple[str, ...] = ()
    findings: tuple[str, ...] = ()


async def _no_difference() -> str:
    return ""


@dataclass(frozen=True, slots=True)
class CheckContext:
    """What a check may use. Whoever makes it removes the directories that `fresh` made, after all checks."""

    sandboxes: Sandboxes
    environment: tuple[Bind, ...]
    """The prepared environment: to be given to every cage."""
    changes: tuple[TreeChange, ...]
    """From the base to the proposed tree: what was taken out is not among them."""
    fresh: MakeCheckout
    read: Callable[[Which, str], Awaitable[bytes | None]]
    """The bytes of a file; None where there is none. For a symbolic link: where it points to."""
    files: Callable[[Which], Awaitable[tuple[str, ...]]]
    """Every path of a tree."""
    cancel: asyncio.Event
    show: Callable[[str], None] = lambda _: None
    """Takes a line for whoever watches."""
    allowed: tuple[str, ...] = ()
    """Changed protected paths that a person allowed and that are therefore in the proposed tree."""
    base_results: dict[str, Json] | None = field(default=None)
    """What is known of the base, by the name of the check, as JSON: a check fills it, whoever made it keeps it.

    It may be kept for as long as base tree, policy, environment and fence are the same. None: nothing is kept.
    """
    brief: bool = False
    """Whether a person has to look at the change anyway: then nothing is looked at more closely before they did."""
    read_many: Callable[[Which, Iterable[str]], Awaitable[dict[str, bytes]]] | None = None
    """Many files at once, where that is faster than one by one."""
    diff: Callable[[], Awaitable[str]] = _no_difference
    """The difference from the base to the proposed tree as text, bounded."""
    judging: Judging = field(default_factory=Judging)


async def read_many(context: CheckContext, which: Which, paths: Iterable[str]) -> dict[str, bytes]:
    """The bytes of some files by their paths; those that are not there are left out."""
    if context.read_many is not None:
        return await context.read_many(which, paths)
    found = {path: await context.read(which, path) for path in paths}
    return {path: data for path, data in found.items() if data is not None}


class Check(Protocol):
    """A kind of check. It never raises for what it finds; `OSError` and `Problem`s are the service's to report."""

    async def run(self, spec: CheckSpec, context: CheckContext) -> CheckResult:
        """Check the proposed tree once."""
