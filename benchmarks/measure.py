"""Measuring fairly: each reading in a fresh process and folder, contenders in turn, medians with their spread."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[1]
SCRATCH = ROOT / "benchmarks" / "out"

Reading = dict[str, float]
"""What one part of a figure measured, by name."""


@dataclass(frozen=True, slots=True)
class Spread:
    """Several readings of one thing: the median, the least and the most."""

    middle: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float], factor: float = 1.0) -> Spread:
        """The spread of at least one value, each times `factor`."""
        return cls(median(values) * factor, min(values) * factor, max(values) * factor)


@dataclass(frozen=True, slots=True)
class Timed:
    """How long a walk took, and the processor time of all threads meanwhile."""

    seconds: float
    cpu: float


@dataclass(slots=True)
class Stopwatch:
    """Measures from its making on."""

    began: float = field(default_factory=time.perf_counter)
    cpu: float = field(default_factory=time.process_time)

    def read(self) -> Timed:
        """What passed since."""
        return Timed(time.perf_counter() - self.began, time.process_time() - self.cpu)


class PartFailed(Exception):
    """A part could not be measured; the message says why."""


@dataclass(frozen=True, slots=True)
class Bench:
    """How thorough this run is, and where it may write: on a disk, never in memory."""

    folder: Path
    quick: bool
    say: Callable[[str], None]

    def pick(self, full: int, quick: int) -> int:
        """A size: the full one, or the small one of a smoke run."""
        return quick if self.quick else full

    def part(self, figure: str, name: str, **sizes: int) -> Reading:
        """Measure one part of a figure in a process of its own and an empty folder."""
        return in_child(figure, name, self.empty(), **sizes)

    def empty(self) -> Path:
        """A new folder. It stays until the whole run is over: ext4 makes files slowly beside ones just removed."""
        return Path(tempfile.mkdtemp(dir=self.folder, prefix="part-"))

    def in_turn(self, parts: Mapping[str, Callable[[], Reading]], rounds: int) -> dict[str, list[Reading]]:
        """Measure all parts once per round; each round begins with another one, so that drift hits all alike."""
        names = list(parts)
        found: dict[str, list[Reading]] = {name: [] for name in names}
        for number in range(rounds):
            shift = number % len(names)
            for name in names[shift:] + names[:shift]:
                found[name].append(parts[name]())
                self.say(f"  round {number + 1}/{rounds} {name}: {_shown(found[name][-1])}")
        return found


@contextmanager
def scratch(base: Path = SCRATCH) -> Iterator[Path]:
    """A folder for one run of the benchmarks; removed at its end."""
    base.mkdir(parents=True, exist_ok=True)
    path = Path(tempfile.mkdtemp(dir=base.resolve(), prefix="run-"))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def in_child(figure: str, name: str, folder: Path, **sizes: int) -> Reading:
    """Run `benchmarks.<figure>.PARTS[name]` in a fresh interpreter; raises `PartFailed` with the last words it said."""
    command = [sys.executable, "-m", "benchmarks.child", figure, name, str(folder), json.dumps(sizes)]
    done = subprocess.run(command, cwd=ROOT, env=environment(), capture_output=True, text=True, check=False)
    lines = done.stdout.strip().splitlines()
    if done.returncode or not lines:
        words = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise PartFailed(f"{figure}/{name} ended with {done.returncode}: {words.replace(str(ROOT), '.')}")
    reading: Reading = json.loads(lines[-1])
    return reading


def environment() -> dict[str, str]:
    """The environment of every contender: no settings of the interpreter (bytecode is kept), `python3` is this one."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "BAILIWICK"))}
    kept["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{kept.get('PATH', os.defpath)}"
    return kept


def column(readings: Sequence[Reading], name: str) -> list[float]:
    """One value of every reading."""
    return [reading[name] for reading in readings]


def _shown(reading: Reading) -> str:
    return ", ".join(f"{name} {value:.4g}" for name, value in reading.items())
