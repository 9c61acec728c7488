"""What a run of the benchmarks found, as data and as the page people read. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from benchmarks.measure import Spread


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure. `score` is what is held against `bound`; without a bound it is only told.

    `unit` is that of `ours` and `others`; `scale` says what the score is, such as "× LangGraph". `problem` says why a
    figure could not be measured.
    """

    name: str
    what: str
    target: str = ""
    ours: Spread | None = None
    unit: str = ""
    others: Mapping[str, Spread] = field(default_factory=dict)
    score: float | None = None
    scale: str = ""
    bound: float | None = None
    at_least: bool = False
    note: str = ""
    problem: str = ""

    @property
    def reached(self) -> bool | None:
        """Whether the score keeps to its bound; None where there is nothing to compare."""
        if self.score is None or self.bound is None:
            return None
        return self.score >= self.bound if self.at_least else self.score <= self.bound


@dataclass(frozen=True, slots=True)
class Report:
    """A whole run."""

    figures: Sequence[Figure]
    machine: Mapping[str, str]
    versions: Mapping[str, str]
    command: str
    date: str
    quick: bool = False


def verdict(figure: Figure) -> str:
    """`yes`, or how far it is, or why there is nothing to say."""
    if figure.problem:
        return "not measured"
    if figure.reached is None or figure.score is None or figure.bound is None:
        return "–"
    if figure.reached:
        return "yes"
    off = abs(figure.score - figure.bound) / figure.bound if figure.bound else 0.0
    return f"**no**: {number(off * 100)} % {'below' if figure.at_least else 'over'} the target"


def number(value: float) -> str:
    """Three digits that matter, thousands with commas."""
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    text = f"{value:.3g}"
    return f"{value:.0f}" if "e" in text and abs(value) >= 1 else text


def quantity(spread: Spread | None, unit: str) -> str:
    """A median with its unit and, where readings differ, from where to where they go."""
    if spread is None:
        return "–"
    middle = f"{number(spread.middle)} {unit}".strip()
    if number(spread.low) == number(spread.high):
        return middle
    return f"{middle} ({number(spread.low)} to {number(spread.high)})"


def table(figures: Sequence[Figure]) -> str:
    """The figures as a Markdown table."""
    rows = [("figure", "target", "Bailiwick", "beside it", "score", "reached"), ("---",) * 6]
    for figure in figures:
        others = ", ".join(f"{name} {quantity(spread, figure.unit)}" for name, spread in figure.others.items())
        score = f"{number(figure.score)} {figure.scale}".strip() if figure.score is not None else "–"
        ours = quantity(figure.ours, figure.unit)
        rows.append((figure.what, figure.target or "–", ours, others or "–", score, verdict(figure)))
    return "".join(f"| {' | '.join(_cell(text) for text in row)} |\n" for row in rows)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def page(report: Report) -> str:
    """The page `docs/benchmarks.md`."""
    missed = [figure for figure in report.figures if figure.reached is False]
    unmeasured = [figure for figure in report.figures if figure.problem]
    counted = sum(figure.reached is not None for figure in report.figures)
    parts = [
        "# Benchmarks\n",
        f"Written by `{report.command}` on {report.date}. Do not edit: run it again.\n",
    ]
    if report.quick:
        parts.append(
            "**A smoke run with small sizes: it shows that everything can be measured, not how fast it is.**\n"
        )
    parts += [
        f"{counted - len(missed)} of {counted} targets reached"
        + (f"; missed: {', '.join(figure.name for figure in missed)}" if missed else "")
        + (f"; not measured: {', '.join(figure.name for figure in unmeasured)}" if unmeasured else "")
        + ".\n",
        table(report.figures),
        _notes(report.figures),
        "## How it was measured\n",
        METHOD,
        "## Machine\n",
        _pairs(report.machine) + _pairs(report.versions),
    ]
    return "\n".join(part for part in parts if part)


METHOD = """\
All contenders ran in one go on the same disk, each reading in a process of its own, in turns: every round begins with
another contender, so a machine that slows down slows all of them. A number is the median of its rounds, with the
least and the most of them in brackets. Each process does a warm-up that is not counted. Everything Bailiwick does for
a node counts, the files of the run directory included: the clock stops when the last of them is written.

Folders stay until everything is measured: ext4 makes files up to ten times slower beside ones that were just removed,
which would hit only the engine that writes a run directory.

Differences below about 10 % are noise on a shared machine: read them as equal. Other engines ran with their own
defaults for durability on SQLite (LangGraph: a checkpoint before each next step, `durability="sync"`; DBOS: a recorded
step). They promise different things: LangGraph and DBOS write no run directory, DBOS records a result but not that an
attempt began.
"""


def _notes(figures: Sequence[Figure]) -> str:
    lines = [f"- **{f.name}**: {f.problem or f.note}\n" for f in figures if f.problem or f.note]
    return "".join(["## Notes\n\n", *lines]) if lines else ""


def _pairs(pairs: Mapping[str, str]) -> str:
    return "".join(f"- {name}: {value}\n" for name, value in pairs.items())
