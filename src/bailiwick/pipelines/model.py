"""What the patterns are told and what they call things. Pure: no I/O here."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Literal

from bailiwick.brain.model import slug as file_name
from bailiwick.ids import Json, digest

Pattern = Literal["issue-to-pr", "self-heal"]
ISSUE_TO_PR: Pattern = "issue-to-pr"
SELF_HEAL: Pattern = "self-heal"

NOTES = "notes"
"""The param of a pattern that takes approved notes for its briefs; a copy of the workflow may be without it."""
CONVENTIONS = ("AGENTS.md", ".agent/instructions.md", "agent-config.md", "CLAUDE.md")
"""Where a repository's conventions are looked for, the first one counts."""
CONVENTIONS_KEPT = 64 * 1024
"""Bytes of a conventions file that go into the brief."""

_SHORT = 8
_TITLE_LENGTH = 120


@dataclass(frozen=True, slots=True)
class IssueText:
    """What was asked, as untrusted text. `ref` says which issue it is, `stem` what commits call it."""

    ref: str
    stem: str
    title: str
    text: str
    url: str = ""
    author: str = ""

    @property
    def digest(self) -> str:
        """The digest of what a person wrote, so that a later change can be pointed out."""
        return digest(f"issue\0{self.title}\0{self.text}")

    def to_json(self) -> dict[str, Json]:
        """As a document."""
        return {**asdict(self), "digest": self.digest}


@dataclass(frozen=True, slots=True)
class GateCommand:
    """A command of the gate as it is typed at the top of the work tree."""

    name: str
    command: str


@dataclass(frozen=True, slots=True)
class WorktreeInfo:
    """A claimed worktree as the workflow sees it. `tree` is a directory, `base_tree` the id of what it began with.

    `checks` are the commands of the gate; `can_try`: they work in the agent's own sandbox too.
    """

    tree: str
    base: str
    base_tree: str
    branch: str
    repository: str
    environment: str = ""
    marker: str = ""
    conventions_file: str = ""
    conventions: str = ""
    checks: tuple[GateCommand, ...] = ()
    can_try: bool = False

    def to_json(self) -> dict[str, Json]:
        """As a document."""
        return {**asdict(self), "checks": [asdict(check) for check in self.checks]}


@dataclass(frozen=True, slots=True)
class PipelineRequest:
    """What a person wants done by a pattern, before anything was looked at.

    `continues` names the proposal that a further round goes on with, on its own `branch`.
    """

    pattern: Pattern
    repository: str
    issue: IssueText | None = None
    base: str | None = None
    attempts: int = 3
    allow: tuple[str, ...] = ()
    known_red: bool = False
    branch: str = ""
    continues: str = ""


@dataclass(frozen=True, slots=True)
class BaseCommit:
    """The commit that the work begins from: its id, its tree, and how a person calls it."""

    commit: str
    tree: str
    name: str
    note: str = ""

    @property
    def shown(self) -> str:
        """In a few words."""
        return f"{self.name} at {self.commit[:12]}" + (f" ({self.note})" if self.note else "")


@dataclass(frozen=True, slots=True)
class PreflightLine:
    """One of the first lines of a run: what it is about, and what holds."""

    label: str
    text: str


def slug(text: str) -> str:
    """A short name that fits branches, run ids and directories; `work` where nothing of the text does."""
    return file_name(text, "work")


def run_key(repository: str, name: str, identity: str) -> str:
    """The run id that stands for this repository and this work: the same command finds the same run again."""
    return f"{slug(name)}-{digest(f'pattern{chr(0)}{repository}{chr(0)}{identity}')[:_SHORT]}"


def branch_name(name: str, run: str) -> str:
    """The branch of a run: never another run's, as each run has an id of its own."""
    return f"agent/{slug(name)}-{digest(f'branch{chr(0)}{run}')[:_SHORT]}"


def title_of(text: str, fallback: str) -> str:
    """The first heading of a Markdown text, else its first line, cut to what a title may have."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    chosen = next((line for line in lines if re.match(r"#{1,6}\s+\S", line)), lines[0] if lines else fallback)
    title = re.sub(r"^#{1,6}\s+|\s+#+$", "", chosen).strip() or fallback
    return title if len(title) <= _TITLE_LENGTH else title[: _TITLE_LENGTH - 1].rstrip() + "…"


def params_of(order: PipelineRequest, ground: BaseCommit, known_red: Sequence[str]) -> dict[str, Json]:
    """The params of a new run; they stay with it, so that whoever goes on with it does the same."""
    params: dict[str, Json] = {
        "repository": order.repository,
        "base": ground.commit,
        "base_name": ground.name,
        "attempts": order.attempts,
        "allow": list(order.allow),
        "known_red": list(known_red),
    }
    if order.issue is not None:
        params["issue"] = order.issue.to_json()
    if order.continues:
        params |= {"branch": order.branch, "continues": order.continues}
    return params


def choose_conventions(files: Iterable[str], configured: str | None) -> str | None:
    """The conventions file among a commit's files: the configured one, else the first usual one; None where none is."""
    there = set(files)
    if configured:
        return configured if configured in there else None
    return next((name for name in CONVENTIONS if name in there), None)
