"""What lists and pages show of runs: made from rows and waits alone, changing nothing."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import dataclass, field

from bailiwick.ids import Json, place
from bailiwick.journal.port import Store
from bailiwick.journal.rows import Owner, RunFilter, RunRow, WaitRow
from bailiwick.processes.owner import is_dead, shown
from bailiwick.runs.find import name_of

LATELY = 7 * 86400.0
"""How long a finished run is news."""
LISTED = ("failed", "stopped", "interrupted", "queued", "sleeping", "running", "done")
"""The states of runs that `status` lists, in its order; a run that waits for a person is there by its question."""


@dataclass(frozen=True, slots=True)
class OpenQuestion:
    """Something only a person can answer, and how: `commands` has one command per choice, or one with a placeholder."""

    run: str
    wait: str
    place: str
    kind: str
    text: str
    choices: tuple[str, ...]
    due_at: float | None
    command: str
    commands: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RunStatus:
    """Where a run with its children stands. `holder` walks it; `orphaned`: it could go on and nobody walks it."""

    row: RunRow
    state: str
    node: str
    note: str = ""
    holder: str = ""
    orphaned: bool = False
    due_at: float | None = None
    ended_at: float | None = None
    degraded: tuple[str, ...] = ()
    steps: int = 0

    @property
    def name(self) -> str:
        """What a person types."""
        return name_of(self.row)


@dataclass(slots=True)
class Overview:
    """All runs that matter now: what they ask, and where those in a state of `LISTED` stand."""

    questions: list[OpenQuestion] = field(default_factory=list)
    runs: list[RunStatus] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.questions or self.runs)

    def of(self, state: str) -> list[RunStatus]:
        """The runs in one state."""
        return [standing for standing in self.runs if standing.state == state]

    def next_commands(self) -> list[str]:
        """What a person would do next, the most pressing first."""
        out = [question.command for question in self.questions[:1]]
        out += [f"bailiwick why {standing.name}" for standing in self.of("failed")[:1]]
        idle = [*self.of("interrupted"), *self.of("stopped")]
        out += [f"bailiwick resume {standing.name}" for standing in idle[:1]]
        if self.of("queued") or any(standing.orphaned for standing in (*self.of("interrupted"), *self.of("sleeping"))):
            out.append("bailiwick worker")
        if not self:
            out += ["bailiwick demo", "bailiwick new hello"]
        return out


def facts(row: RunRow) -> dict[str, Json]:
    """A row's summary; a child that nobody walked yet has none."""
    return row.summary if isinstance(row.summary, dict) else {}


def state_of(row: RunRow) -> str:
    """What a run's journal says it does: running, waiting, sleeping, stopped, failed or done; `standing` says more."""
    return str(facts(row).get("state") or "running") if row.status == "ready" else row.status


def is_held(row: RunRow, me: Owner, now: float) -> bool:
    """Whether a process that may be alive walks the run."""
    return row.owner is not None and row.lease_until > now and is_dead(row.owner, me) is not True


def tree_state(rows: Iterable[RunRow]) -> str:
    """What a tree does as a whole: a parent that only waits for its children does what they do."""
    ready = [row for row in rows if row.status == "ready"]
    leaves = [row for row in ready if not _only_waits_for_children(row)] or ready
    states = {state_of(row) for row in leaves}
    return next((state for state in ("running", "sleeping", "waiting") if state in states), "over")


def _only_waits_for_children(row: RunRow) -> bool:
    return row.owner is None and row.wake_at is None and state_of(row) == "running"


def run_tree(row: RunRow, rows: Iterable[RunRow]) -> list[RunRow]:
    """A run with all the runs below it, of rows that may hold others too; `rows` know better how `row` stands now."""
    below: dict[str | None, list[RunRow]] = {}
    for member in rows:
        below.setdefault(member.parent, []).append(member)
        row = member if member.id == row.id else row
    found = [row]
    for member in found:
        found += below.get(member.id, ())
    return found


def _walked(state: str, holder: str, tree: Iterable[RunRow]) -> str:
    """Only what a live process holds is running; else it was interrupted, or nobody has begun it."""
    if state != "running" or holder:
        return state
    return "interrupted" if any(member.epoch for member in tree) else "queued"


def standing(row: RunRow, rows: Iterable[RunRow], me: Owner, now: float) -> RunStatus:
    """Where a run stands; `rows` hold the runs below it, and may hold others."""
    tree = run_tree(row, rows)
    row = tree[0]
    known = facts(row)
    ready = [member for member in tree if member.status == "ready"]
    holder = next((shown(m.owner) for m in ready if m.owner and is_held(m, me, now)), "")
    due = [m.wake_at is not None and m.wake_at <= now for m in ready]
    state = _walked(tree_state(tree), holder, tree) if row.status == "ready" else row.status
    sleeps = [facts(m).get("due_at") for m in ready if state_of(m) == "sleeping"]
    return RunStatus(
        row,
        state,
        str(known.get("node") or ""),
        note=str(known.get("reason") or ""),
        holder=holder,
        orphaned=row.status == "ready" and not holder and any(due),
        due_at=min((float(at) for at in sleeps if at is not None), default=None),
        ended_at=known.get("ended_at"),
        degraded=tuple(str(node) for node in known.get("degraded") or ()),
        steps=int(known.get("steps") or 0),
    )


def state_alone(row: RunRow, me: Owner, now: float) -> str:
    """The state of a run where the runs below it are not looked at: what only waits for them counts as running."""
    return "running" if _only_waits_for_children(row) else standing(row, (), me, now).state


def question(row: RunRow, wait: WaitRow, *, several: bool) -> OpenQuestion:
    """An open wait as a question; with `several` open in one run, the command says which one is meant."""
    body = wait.body if isinstance(wait.body, dict) else {}
    choices = tuple(str(choice) for choice in body.get("choices") or ())
    head = f"bailiwick runs answer {name_of(row)}"
    tail = f" --question {wait.id}" if several else ""
    commands = tuple(f"{head} {shlex.quote(choice)}{tail}" for choice in choices) or (f"{head} VALUE{tail}",)
    options = " | ".join(shlex.quote(choice) for choice in choices) or "VALUE"
    return OpenQuestion(
        run=name_of(row),
        wait=wait.id,
        place="" if wait.kind == "budget" else place(wait.scope, wait.node),
        kind=wait.kind,
        text=str(body.get("question") or ""),
        choices=choices,
        due_at=wait.due_at,
        command=f"{head}{tail} {options}",
        commands=commands,
    )


def is_question(wait: WaitRow) -> bool:
    """Whether a person can answer this wait."""
    return isinstance(wait.body, dict) and "choices" in wait.body


def questions(rows: Iterable[RunRow], waits: Iterable[WaitRow]) -> list[OpenQuestion]:
    """The open questions of runs that are not over or stopped."""
    asked: dict[str, list[WaitRow]] = {}
    for wait in waits:
        if is_question(wait):
            asked.setdefault(wait.run_id, []).append(wait)
    return [
        question(row, wait, several=len(asked[row.id]) > 1)
        for row in rows
        if row.status == "ready"
        for wait in asked.get(row.id, ())
    ]


async def overview(store: Store, me: Owner, now: float) -> Overview:
    """Everything `status` shows."""
    ready = await store.runs(RunFilter(status=("ready",)))
    trees: dict[str, list[RunRow]] = {}
    for row in ready:
        trees.setdefault(row.root_id, []).append(row)
    over = await store.runs(RunFilter(status=("failed", "stopped"), called=False))
    lately = await store.runs(RunFilter(status=("done",), called=False, ended_since=now - LATELY))
    tops = [row for row in (*ready, *over, *lately) if row.parent is None]
    found = [standing(row, trees.get(row.root_id, ()), me, now) for row in tops]
    return Overview(questions(ready, await store.waits()), [one for one in found if one.state in LISTED])


def children_of(row: RunRow, rows: Iterable[RunRow]) -> list[RunRow]:
    """The runs that this one called, oldest first."""
    return sorted((r for r in rows if r.parent == row.id), key=lambda r: (r.created_at, r.id))
