"""What the brain costs when it is large: a question, the index from nothing, a look at every file, a write."""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import time
from collections.abc import Awaitable, Callable, Sequence
from itertools import accumulate
from pathlib import Path
from statistics import median, quantiles

from bailiwick.brain.frontmatter import write
from bailiwick.brain.index import LOOK_EVERY, Index
from bailiwick.brain.model import Note
from bailiwick.brain.notes import NoteFolder, NoteWriter
from bailiwick.brain.service import Brain
from bailiwick.clock import ManualClock
from bailiwick.config.variables import Environment
from benchmarks.measure import Bench, Reading, Spread, column
from benchmarks.report import Figure

BOUND = 0.1
"""Times a search through all files, for 95 of 100 questions."""
SCOPES = tuple(f"project-{number:02}" for number in range(20))
VOCABULARY = 20_000


def measure(bench: Bench) -> list[Figure]:
    """Ask the same brain many questions."""
    notes, questions = bench.pick(50_000, 2_000), bench.pick(400, 40)
    found = bench.in_turn(
        {"asked": lambda: bench.part("brain_query", "asked", notes=notes, questions=questions)}, bench.pick(3, 1)
    )["asked"]
    slow, middle, grep = (Spread.of(column(found, name), 1000) for name in ("p95", "middle", "grep"))
    build, look, written = (Spread.of(column(found, name)) for name in ("build", "look", "write"))
    note = (
        f"median {middle.middle:.3g} ms; of one to six words, from one project; every {LOOK_EVERY:g} s the first "
        f"question also looks at every file: {look.middle * 1000:.3g} ms"
    )
    what = f"a question to {notes:,} notes, 95 of 100 below"
    return [
        Figure(
            "brain-query",
            what,
            f"≤ {BOUND:g} × `grep -r` over the files",
            slow,
            "ms",
            {"`grep -r`": grep},
            slow.middle / grep.middle,
            "× `grep -r`",
            BOUND,
            note=note,
        ),
        Figure("brain-index", f"the index of {notes:,} notes from nothing", ours=build, unit="s"),
        Figure("brain-write", f"a note filed and committed beside {notes:,}", ours=written, unit="s"),
    ]


def asked(folder: Path, notes: int, questions: int) -> Reading:
    """One brain: made, indexed, asked, written to."""
    dice = random.Random(5)  # noqa: S311 - the same notes every time
    words = [_word(dice) for _ in range(VOCABULARY)]
    weights = list(accumulate(1 / (rank + 10) for rank in range(VOCABULARY)))
    root = folder / "brain"
    _fill(root, notes, lambda count: dice.choices(words, cum_weights=weights, k=count), dice)
    environment = Environment()
    clock = ManualClock()
    place = NoteFolder(root)
    brain = Brain(place, Index(folder / "index.db", place, clock.now), NoteWriter(place, environment), clock)

    async def all_of_it() -> Reading:
        build = await _seconds(brain.reindex)
        taken = []
        for number in range(questions):
            text = " ".join(dice.choices(words, cum_weights=weights, k=1 + number % 6))
            scope = dice.choice(SCOPES)
            taken.append(await _seconds(lambda text=text, scope=scope: brain.query(text, scope)))  # type: ignore[misc]
        clock.advance(LOOK_EVERY + 1)
        look = await _seconds(lambda: brain.query(words[0], SCOPES[0]))
        writes = [await _seconds(lambda: brain.write("A note", scope=SCOPES[0])) for _ in range(5)]
        p95 = quantiles(taken, n=20)[-1]
        found = {"p95": p95, "middle": median(taken), "build": build, "look": look, "write": median(writes)}
        return {**found, "grep": median(_grep(root, words[number]) for number in range(5))}

    reading = asyncio.run(all_of_it())
    brain.close()
    return reading


def _grep(root: Path, word: str) -> float:
    began = time.perf_counter()
    subprocess.run(["grep", "-rliw", word, str(root / "notes")], capture_output=True, check=False)
    return time.perf_counter() - began


async def _seconds(work: Callable[[], Awaitable[object]]) -> float:
    began = time.perf_counter()
    await work()
    return time.perf_counter() - began


def _word(dice: random.Random) -> str:
    return "".join(dice.choices("abcdefghijklmnopqrstuvwxyz", k=dice.randint(2, 10)))


def _fill(root: Path, notes: int, text: Callable[[int], Sequence[str]], dice: random.Random) -> None:
    """Notes of some eighty words in folders as we would make them, in one commit."""
    for number in range(notes):
        scope = dice.choice((*SCOPES, "global"))
        path = f"notes/{scope}/2026-{1 + number % 12:02}/n-{number:08x}-note.md"
        note = Note(
            f"n-{number:08x}",
            " ".join(text(5)),
            " ".join(text(80)),
            tags=tuple(text(3)),
            scope=scope,
            status=dice.choice(("approved", "approved", "pending", "stale")),
            created=number,
            updated=number,
        )
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(write(note))
    who = ("-c", "user.name=bench", "-c", "user.email=bench@example.org", "-c", "gc.auto=0")
    for words in (("init", "-q", "-b", "main"), ("add", "."), ("commit", "-q", "-m", "notes")):
        subprocess.run(["git", *who, *words], cwd=root, check=True, capture_output=True, env=dict(os.environ))


PARTS = {"asked": asked}
