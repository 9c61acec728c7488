"""Runs that are cut off and go on: starting them, walking them to their end, and judging what a crash did to them.

Every script of a judged workflow appends `<run> <node> <effect key> <attempt> <epoch> start|end` to `Home.effects`, in
one write each: so the log tells what really ran, and the journal what the engine believes.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from bailiwick.clock import SystemClock
from bailiwick.config.variables import Environment
from bailiwick.engine.state import State
from bailiwick.ids import Json
from bailiwick.journal.rows import InboxRow, RunRow, StoredEvent, WaitFilter, WaitRow
from bailiwick.processes.children import find_children
from bailiwick.processes.owner import current_owner
from bailiwick.runs.control import Control
from bailiwick.runs.foreground import Foreground, RunExit
from bailiwick.runtime.assemble import Runtime, Watch
from bailiwick.runtime.facts import RunFacts
from bailiwick.runtime.history import RunReader
from bailiwick.runtime.layout import BOOKMARK
from bailiwick.runtime.record import row_status, summary
from bailiwick.runtime.worker import Worker

TURNS = 8
"""How often a walk may come back for an answer before it counts as stuck."""
OVER = ("done", "failed")


@dataclass(frozen=True, slots=True)
class Home:
    """Where one judged state directory lives, with the log of what ran beside it."""

    root: Path

    @property
    def state(self) -> Path:
        """The state directory."""
        return self.root / "state"

    @property
    def effects(self) -> Path:
        """What the scripts wrote."""
        return self.root / "effects.log"

    @property
    def stop(self) -> Path:
        """Is there when the run is to be stopped while it is walked."""
        return self.root / "stop"

    def lines(self) -> list[ScriptLogLine]:
        """What ran, in order."""
        text = self.effects.read_text("ascii") if self.effects.exists() else ""
        return [ScriptLogLine.read(line) for line in text.splitlines()]

    def copy_state(self, target: Path) -> Path:
        """The database and its blobs as a dead process left them; looking at a copy leaves them so."""
        target.mkdir(parents=True)
        for file in self.state.glob("bailiwick.db*"):
            shutil.copy(file, target)
        if (self.state / "blobs").is_dir():
            shutil.copytree(self.state / "blobs", target / "blobs")
        return target


@dataclass(frozen=True, slots=True)
class ScriptLogLine:
    """One line of the log: a script began or ended."""

    run: str
    node: str
    key: str
    attempt: int
    epoch: int
    word: str

    @classmethod
    def read(cls, text: str) -> ScriptLogLine:
        """A line from its text."""
        run, node, key, attempt, epoch, word = text.split(" ")
        return cls(run, node, key, attempt=int(attempt), epoch=int(epoch), word=word)


@asynccontextmanager
async def opened(state: Path, watch: Watch | None = None) -> AsyncIterator[Runtime]:
    """A state directory as a process of its own would open it."""
    from bailiwick.journal.opening import open_store

    clock = SystemClock()
    store = await open_store(state, clock)
    runtime = Runtime(store, clock, state, lambda: Environment().child_environment({}), watch=watch or Watch())
    try:
        yield runtime
    finally:
        await runtime.close()


async def begin(runtime: Runtime, workflow: Path, key: str | None = None) -> RunRow:
    """Start a run of a workflow directory, or find the one there is; called workflows lie beside it."""
    from bailiwick.lang.load import load  # only starting needs the language
    from bailiwick.runs.start import StartRequest, start

    loaded = load(workflow, lambda name, caller: caller.parent / name)
    return (await start(runtime, StartRequest(loaded, key=key))).row


class Quiet:
    """A process that hears no signals."""

    worker: Worker | None = None
    caught = ""
    hands_over = False


async def walk(runtime: Runtime, row: RunRow, name: str = "harness", answer: Json = "yes") -> RunExit:
    """Walk a run until it is over: questions are answered, a stopped run is resumed."""
    foreground = Foreground(runtime, current_owner(name))
    for _ in range(TURNS):
        row = await foreground.prepare(row, name)
        verdict = await foreground.walk(row, Quiet())
        row = verdict.row
        if row.status in OVER:
            return verdict
        for wait in await runtime.store.waits(WaitFilter(run_id=row.id)):
            if row.status == "ready" and "choices" in wait.body:
                await Control(runtime, name).answer(row, answer, wait.id)
    raise AssertionError(f"the run is stuck: {row}")


@dataclass(frozen=True, slots=True)
class RunRecord:
    """All that a state directory says of one run."""

    row: RunRow
    events: list[StoredEvent]
    state: State
    waits: list[WaitRow]
    inbox: list[InboxRow]

    def started(self) -> set[tuple[str, int]]:
        """Attempts whose start is durable."""
        return {(body["key"], body["attempt"]) for body in self.bodies("EffectStarted")}

    def finished(self) -> list[tuple[str, int]]:
        """Attempts whose end is durable, in order."""
        attempts: dict[str, int] = {}
        out = []
        for event in self.events:
            body = json.loads(event.body)
            if event.type == "EffectStarted":
                attempts[body["key"]] = body["attempt"]
            elif event.type == "EffectFinished":
                out.append((body["key"], attempts[body["key"]]))
        return out

    def bodies(self, kind: str) -> list[dict[str, Json]]:
        """The bodies of all events of a type."""
        return [json.loads(event.body) for event in self.events if event.type == kind]


Look = dict[str, RunRecord]
"""What was seen, by run id."""


async def look(state: Path) -> Look:
    """Everything a state directory says."""
    async with opened(state) as runtime:
        return await look_at(runtime)


async def look_at(runtime: Runtime) -> Look:
    """Everything an open state directory says."""
    store, library = runtime.store, RunReader(runtime.store)
    out: Look = {}
    for row in await store.runs():
        state = await library.state(row.id)
        out[row.id] = RunRecord(
            row,
            events=await store.read(row.id),
            state=state,
            waits=await store.waits(WaitFilter(run_id=row.id)),
            inbox=await store.inbox(row.id),
        )
    return out


@dataclass(slots=True)
class CrashCase:
    """A run that was cut off: what was there right after each cut, and what its end has to be."""

    home: Home
    root: str
    status: str
    context: dict[str, Json]
    cuts: list[Look] = field(default_factory=list)

    async def cut(self) -> None:
        """Look at what a dead process left, at a copy."""
        self.cuts.append(await look(self.home.copy_state(self.home.root / f"cut{len(self.cuts)}")))

    async def findings(self, runtime: Runtime) -> list[str]:
        """What is wrong at the end; an empty list is the proof that the crashes changed nothing that matters."""
        end = await look_at(runtime)
        lines = self.home.lines()
        found = self._verdict(end)
        for run, seen in end.items():
            found += [f"{run}: {text}" for text in (*journal_findings(seen), *index_findings(seen))]
            found += [f"{run}: {text}" for text in await directory_findings(runtime, seen.row, self.home)]
            found += [f"{run}: process {child.pid} is left" for child in find_children({"BAILIWICK_RUN": run})]
            if seen.row.owner is not None or seen.inbox:
                found.append(f"{run}: it is over but held or has messages")
        for cut, following in pairwise((*self.cuts, None)):
            found += cut_findings(cut or {}, following, end, lines)
        for cut in self.cuts:
            found += [f"at the cut: {text}" for seen in cut.values() for text in index_findings(seen)]
        return found + evidence_findings(end, lines)

    def _verdict(self, end: Look) -> list[str]:
        if self.root not in end:
            return [f"run {self.root} is gone"]
        seen = end[self.root]
        found = []
        if seen.row.status != self.status:
            found.append(f"the run is {seen.row.status}, not {self.status}: {seen.state.reason}")
        context = seen.state.context()
        if context != self.context:
            differing = [k for k in {*context, *self.context} if context.get(k) != self.context.get(k)]
            found.append(f"the context differs at {differing}: {str(context)[:500]}")
        return found


def journal_findings(seen: RunRecord) -> list[str]:
    """Gaps, ends without starts, and effects that ended twice."""
    found = []
    if [event.seq for event in seen.events] != list(range(1, seen.row.seq + 1)):
        found.append(f"seqs have a gap: {[event.seq for event in seen.events]} of {seen.row.seq}")
    twice = [key for key, count in Counter(seen.finished()).items() if count > 1]
    found += [f"attempt {key} finished twice" for key in twice]
    entries: dict[tuple[str, int], int] = {}
    lost: set[str] = set()
    for event in seen.events:
        body = json.loads(event.body)
        if event.type == "EffectLost":
            lost.add(body["key"])
        elif event.type == "EffectStarted":
            place, entry = (body["key"], body["attempt"]), body.get("entry", 1)
            if entry > 1 and body["key"] not in lost:
                found.append(f"{place} was entered again although it was not lost")
            if entry <= entries.get(place, 0):
                found.append(f"{place} was started twice as entry {entry}")
            entries[place] = entry
            lost.discard(body["key"])
    return found


def index_findings(seen: RunRecord) -> list[str]:
    """Where the rows for lists say something else than the journal. A run that nobody walked yet has only a sketch."""
    found = []
    row, state = seen.row, seen.state
    told = json.loads(json.dumps(summary(state)))
    if len(seen.events) > 1 and told != row.summary:
        found.append(f"the summary is {row.summary}, the journal says {told}")
    if row.status != row_status(state) and not seen.inbox:
        found.append(f"the row is {row.status}, the journal says {row_status(state)}")
    rows = sorted((wait.id, wait.scope, wait.kind, wait.due_at) for wait in seen.waits)
    open_waits = sorted((wait.id, scope.path, wait.kind, wait.due_at) for scope, wait in state.waits())
    if rows != open_waits:
        found.append(f"the open waits are {rows}, the journal says {open_waits}")
    return found


def cut_findings(cut: Look, following: Look | None, end: Look, lines: Iterable[ScriptLogLine]) -> list[str]:
    """What one crash broke: lost events, effects that began too early, ran again or twice."""
    found = []
    for run, seen in cut.items():
        kept = end[run].events[: len(seen.events)] if run in end else []
        if kept != seen.events:
            found.append(f"{run}: what was durable at the cut is not in the journal any more")
    again: Counter[tuple[str, int]] = Counter()
    for line in lines:
        if line.word != "start":
            continue
        seen_then = cut.get(line.run)
        place = (line.key, line.attempt)
        if seen_then is None or line.epoch > seen_then.row.epoch:
            if seen_then is not None and place in seen_then.finished():
                found.append(f"{line.node} ran again although its end was durable")
            last = following.get(line.run) if following else None
            if following is None or (last is not None and line.epoch <= last.row.epoch):
                again[place] += 1
        elif place not in seen_then.started():
            found.append(f"{line.node} began before its start was durable")
    return found + [f"{place} ran {count} times after one crash" for place, count in again.items() if count > 1]


def evidence_findings(end: Look, lines: Sequence[ScriptLogLine]) -> list[str]:
    """Where journal and log contradict each other: keys nobody started, successes of scripts that did not end."""
    nodes = {body["key"]: body["node"] for seen in end.values() for body in seen.bodies("EffectStarted")}
    found = [f"{line.node} ran with a key that is not its own" for line in lines if nodes.get(line.key) != line.node]
    ended = {line.key for line in lines if line.word == "end"}
    done = [body["key"] for seen in end.values() for body in seen.bodies("EffectFinished") if not body.get("failure")]
    return found + [f"{nodes[key]} succeeded without having run to its end" for key in done if key not in ended]


async def directory_findings(runtime: Runtime, row: RunRow, home: Home) -> list[str]:
    """Where the run directory is not what the journal makes of it."""
    from bailiwick.runtime.projection import rebuild

    await runtime.settle()
    library = RunReader(runtime.store)
    made = home.root / "rebuilt" / row.id
    shutil.rmtree(made, ignore_errors=True)
    made.parent.mkdir(exist_ok=True)
    events = await library.history(row.id)
    facts = RunFacts(row.workflow, row.run_key, row.id)
    rebuild(made, events, library.definitions.graph, library.fetch, run=facts)
    there, wanted = _files(runtime.run_dir(row)), _files(made)
    names = [name for name in sorted({*there, *wanted}) if there.get(name) != wanted.get(name)]
    return [f"the run directory differs from its journal at {', '.join(names[:5])}"] if names else []


def _files(root: Path) -> dict[str, bytes]:
    found = (path for path in root.rglob("*") if path.is_file() and path.name != BOOKMARK)
    return {str(path.relative_to(root)): path.read_bytes() for path in found}
