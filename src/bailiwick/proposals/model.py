"""What a proposal is, and what may become of it. Pure: no I/O here."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Literal

from bailiwick.ids import Json, digest

Status = Literal["open", "published", "discarded", "rejected", "merged", "closed"]
"""`open`: on this machine only. `merged` and `closed` are what people did on the forge; nobody here can do it."""
ProposalKind = Literal["issue-to-pr", "self-heal"]
LIVE: frozenset[Status] = frozenset({"open", "published"})
"""A proposal that people may still act on."""
ID_LENGTH = 10

_ISSUE = re.compile(r"(?:(?P<owner>[\w.-]+(?:/[\w.-]+)*)/(?P<name>[\w.-]+))?#?(?P<number>[1-9]\d{0,9})", re.ASCII)
_ISSUE_URL = re.compile(
    r"(?P<site>https?://[^/\s@]+)/(?P<owner>[\w.-]+(?:/[\w.-]+)*?)/(?P<name>[\w.-]+)/(?:-/)?issues/(?P<number>[1-9]\d{0,9})/?(?:[?#]\S*)?",
    re.ASCII,
)


@dataclass(frozen=True, slots=True)
class IssueRef:
    """An issue on a forge; without an owner it is one of the proposal's own repository."""

    number: int
    owner: str = ""
    name: str = ""
    site: str = ""

    def __str__(self) -> str:
        return f"{self.owner}/{self.name}#{self.number}" if self.owner else f"#{self.number}"


def parse_issue(text: str) -> IssueRef | None:
    """The issue that `123`, `#123`, `owner/repo#123` or a URL names; None for anything else."""
    text = text.strip()
    if found := _ISSUE_URL.fullmatch(text):
        return IssueRef(int(found["number"]), found["owner"], found["name"], found["site"])
    found = _ISSUE.fullmatch(text)
    if found is None or (found["owner"] and "#" not in text):
        return None
    return IssueRef(int(found["number"]), found["owner"] or "", found["name"] or "")


@dataclass(frozen=True, slots=True)
class ChangeCost:
    """What a change cost in dollars. None is unknown; `partly`: some of it is not known, so it is at least this."""

    usd: float | None = None
    partly: bool = False
    subscription: bool = False

    def __str__(self) -> str:
        if self.usd is None:
            return "unknown"
        words = f"${self.usd:.2f}" if self.usd >= 0.01 or self.usd == 0 else f"${self.usd:.4f}"
        if self.subscription:
            words = f"≈ {words} (subscription)"
        return f"at least {words}; the rest is unknown" if self.partly else words


@dataclass(frozen=True, slots=True)
class Proposal:
    """A branch with a gated commit, and what happened to it. `base` is where the branch began, `commit` its end.

    `commits` are all that we made for it, `pushed` those that left, `people` the ends of the branch that others made
    and we build upon; `handled` names the rounds that were started, `heard` is the time of the last remark in them.
    `onto` is the branch that it is meant for. Times are seconds since the epoch.
    """

    id: str
    run: str
    repository: str
    branch: str
    base: str
    commit: str
    tree: str
    title: str
    kind: ProposalKind
    report: str
    created: float
    updated: float
    models: tuple[str, ...] = ()
    cost: ChangeCost = field(default_factory=ChangeCost)
    status: Status = "open"
    forge: str = ""
    url: str = ""
    number: int | None = None
    rounds: int = 0
    reasons: tuple[str, ...] = ()
    commits: tuple[str, ...] = ()
    pushed: tuple[str, ...] = ()
    people: tuple[str, ...] = ()
    handled: tuple[str, ...] = ()
    heard: float = 0.0
    runs: tuple[str, ...] = ()
    onto: str = ""
    issue: str = ""
    asked: str = ""
    """What was asked for, as it was said: untrusted, and cut."""
    said: str = ""
    """What the agent says it did: untrusted, and cut."""
    notes: tuple[str, ...] = ()

    @property
    def live(self) -> bool:
        """Whether people may still act on it."""
        return self.status in LIVE

    def to_json(self) -> dict[str, Json]:
        """As a document."""
        return {"version": 1, **{name: _plain(value) for name, value in asdict(self).items()}}


def _plain(value: Json) -> Json:
    return list(value) if isinstance(value, tuple) else value


_TUPLES = ("models", "reasons", "commits", "pushed", "people", "handled", "runs", "notes")


def read_proposal(data: Json) -> Proposal:
    """A proposal from its document; raises `KeyError`, `TypeError` or `ValueError` where it is none.

    Names that this version does not know are passed over.
    """
    if not isinstance(data, dict) or data.get("version") != 1:
        raise ValueError("it is not a proposal of version 1")
    known = {one.name for one in fields(Proposal)}
    body = {name: value for name, value in data.items() if name in known}
    body |= {name: tuple(body.get(name) or ()) for name in _TUPLES}
    return Proposal(**{**body, "cost": ChangeCost(**body["cost"])})


def proposal_id(run: str) -> str:
    """The one proposal of a run."""
    return digest(f"proposal\0{run}")[:ID_LENGTH]


def find(proposals: Sequence[Proposal], text: str) -> list[Proposal]:
    """Those that a person means: by id or its beginning, by run, by branch."""
    exact = [p for p in proposals if text in (p.id, p.run, p.branch)]
    return exact or [p for p in proposals if len(text) >= 3 and p.id.startswith(text)]


@dataclass(frozen=True, slots=True)
class Round:
    """A further round that a proposal asks for: on `base`, the end of its branch, with the words that ask for it.

    `key` names the round: the same findings make the same round, which is started once. The texts are untrusted.
    """

    proposal: str
    key: str
    number: int
    branch: str
    base: str
    repository: str
    run: str
    why: tuple[str, ...]
    texts: tuple[str, ...]
    until: float = 0.0

    def to_json(self) -> dict[str, Json]:
        """As a document."""
        return {name: _plain(value) for name, value in asdict(self).items()}


def make_round(proposal: Proposal, base: str, found: Sequence[tuple[str, str]], until: float = 0.0) -> Round:
    """The round that some findings, each a reason and an untrusted text, ask for; `until`: the last one's time."""
    key = digest("\0".join(("round", proposal.id, base, *(f"{why}\0{text}" for why, text in found))))[:16]
    why = tuple(dict.fromkeys(why for why, _ in found))
    texts = tuple(text for _, text in found)
    number = proposal.rounds + 1
    return Round(
        proposal.id,
        key=key,
        number=number,
        branch=proposal.branch,
        base=base,
        repository=proposal.repository,
        run=proposal.run,
        why=why,
        texts=texts,
        until=until,
    )


def began(proposal: Proposal, one: Round, now: float) -> Proposal:
    """The proposal once a round was started; the same one where it was before."""
    if one.key in proposal.handled:
        return proposal
    heard = max(proposal.heard, one.until)
    return replace(proposal, rounds=proposal.rounds + 1, handled=(*proposal.handled, one.key), heard=heard, updated=now)
