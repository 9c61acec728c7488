"""Replays routing policies side by side: `python -m benchmarks.routing.run [--log FILE | --simulate SEED]`.

Without a source it does the whole study (minutes) and, with `--write`, the page, the plots and the numbers behind them.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.measure import ROOT, Bench, Spread
from benchmarks.report import Figure, number, table
from benchmarks.routing.plot import Chart, PlotLine, draw
from benchmarks.routing.policies import replay
from benchmarks.routing.recorded import cases_of, read_log
from benchmarks.routing.study import (
    CHAIN,
    ORACLE,
    POLICIES,
    WORLDS,
    Course,
    Row,
    against_mistakes,
    compare,
    over_time,
    rows,
)
from benchmarks.routing.world import World, cases

DOCS = ROOT / "docs" / "routing"
SEEDS = (1, 2, 3, 4, 5)
FEW_SEEDS = (1, 2, 3)
SAVED, KEPT = 60.0, 99.0
"""The targets: percent saved, percent of the strongest's right results kept."""

MEASURE = (
    "Money is held against always using the strongest tier. So are right results, of which a policy can have more: a "
    "checked cheap output may be right where the unchecked last tier is wrong."
)

Rows = Mapping[str, Row]


@dataclass(frozen=True, slots=True)
class Study:
    """Everything the page shows."""

    worlds: Mapping[str, Rows]
    time: Mapping[str, Course]
    mistakes: Mapping[float, Rows]
    calls: int


def main(argv: Sequence[str] | None = None) -> int:
    """Replay, print, write; 0 unless the log holds nothing."""
    options = _options(argv)
    if options.log or options.simulate is not None:
        found = _one(options)
        if found is None:
            print("the log holds no call with attempts", file=sys.stderr)
            return 2
        text, body = _table(found), {"policies": _plain(found)}
    else:
        study = _study(options.calls)
        text, body = page(study), asdict(study)
        if options.write:
            _write(study, text, body)
    if options.json:
        options.json.write_text(json.dumps(body, indent=1) + "\n", "utf-8")
    print(text)
    return 0


def measure(bench: Bench) -> list[Figure]:
    """The two targets, for the page of all benchmarks."""
    world = World(calls=bench.pick(10_000, 1_500))
    return figures(compare(world, SEEDS[: bench.pick(len(SEEDS), 1)], bench.say))


def figures(found: Rows) -> list[Figure]:
    """What a chain saves and keeps, held against the targets and beside who knows every outcome."""
    ours = found[CHAIN]
    away = found[ORACLE].saved.middle - ours.saved.middle
    return [
        Figure(
            "routing-saved",
            "money saved by a chain",
            f"≥ {SAVED:g} %",
            ours.saved,
            "%",
            {ORACLE: found[ORACLE].saved},
            ours.saved.middle,
            "%",
            SAVED,
            at_least=True,
            note=f"simulated; beside always the strongest tier; {number(away)} points below the oracle",
        ),
        Figure(
            "routing-kept",
            "right results kept by a chain",
            f"≥ {KEPT:g} %",
            ours.kept,
            "%",
            {ORACLE: found[ORACLE].kept},
            ours.kept.middle,
            "%",
            KEPT,
            at_least=True,
        ),
    ]


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.routing.run", description=(__doc__ or "").split("\n")[0]
    )
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--log", type=Path, help="a call log, one JSON entry a line")
    source.add_argument("--simulate", type=int, metavar="SEED", help="one simulated world")
    parser.add_argument("--calls", type=int, default=10_000, help="how many calls a world has")
    parser.add_argument("--json", type=Path, metavar="OUT", help="where the numbers go")
    parser.add_argument("--write", action="store_true", help="write docs/routing and benchmarks/results/routing.json")
    return parser.parse_args(argv)


def _one(options: argparse.Namespace) -> Rows | None:
    world = World(seed=options.simulate or 1, calls=options.calls)
    calls = list(cases_of(read_log(options.log)) if options.log else cases(world))
    if not calls:
        return None
    return rows([{name: replay(policy, calls) for name, policy in POLICIES.items()}])


def _study(calls: int) -> Study:
    worlds: dict[str, Rows] = {}
    for name, world in WORLDS.items():
        _say(name)
        worlds[name] = compare(replace(world, calls=calls), FEW_SEEDS if worlds else SEEDS, _say)
    base = World(calls=calls)
    time = over_time(list(cases(base)))
    return Study(worlds, time, against_mistakes(replace(base, calls=calls // 2), FEW_SEEDS[:2], _say), calls)


def _table(found: Rows) -> str:
    lines = ["| policy | saved | right results kept | tries a call |", "| --- | --- | --- | --- |"]
    for name, row in found.items():
        cells = (_percent(row.saved), _percent(row.kept), number(row.tries.middle))
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _percent(spread: Spread) -> str:
    """One place behind the point: the target is one percent away from everything."""
    middle, low, high = (f"{value:.1f}" for value in (spread.middle, spread.low, spread.high))
    return f"{middle} %" if low == high else f"{middle} % ({low} to {high})"


def page(study: Study) -> str:
    """The page docs/routing/results.md."""
    worlds = list(study.worlds.items())
    parts = [
        "# Routing: what the simulation says",
        "Written by `python -m benchmarks.routing.run --write`. Do not edit: run it again.",
        "What is simulated, and where its numbers come from: [routing](../explanation/routing.md#the-simulated-world).",
        table(figures(worlds[0][1])).strip(),
        f"{study.calls:,} calls, {len(SEEDS)} seeds; medians, with the least and the most in brackets. " + MEASURE,
        _table(worlds[0][1]),
        "## Over time",
        "Half way through, two local models are swapped under their names: one gets worse, one better.",
        "![Regret and right results over time](over-time.svg)",
        "## Against the verifier's mistakes",
        "How many of the wrong outputs the verifier lets through decides what a chain is worth.",
        "![Savings and quality against the false-accept rate](false-accepts.svg)",
        "## In other worlds",
        *(f"### {name[0].upper()}{name[1:]}\n\n{_table(found)}" for name, found in worlds[1:]),
    ]
    return "\n\n".join(parts) + "\n"


def over_time_charts(time: Mapping[str, Course]) -> list[Chart]:
    """Money above the oracle's, and right results more than the strongest's."""
    shown = {name: course for name, course in time.items() if name != ORACLE}
    regret = [PlotLine(name, list(zip(one.calls, one.regret, strict=True))) for name, one in shown.items()]
    ahead = [PlotLine(name, list(zip(one.calls, one.ahead, strict=True))) for name, one in shown.items()]
    return [
        Chart("Regret over time", "calls", "money above the oracle's, in calls of the strongest", regret, low=0),
        Chart("Right results over time", "calls", "right results more than always the strongest", ahead),
    ]


def mistake_charts(mistakes: Mapping[float, Rows]) -> list[Chart]:
    """Quality and savings against the false-accept rate."""
    kept = [PlotLine(CHAIN, [(100 * rate, found[CHAIN].kept.middle) for rate, found in mistakes.items()])]
    saved = [PlotLine(CHAIN, [(100 * rate, found[CHAIN].saved.middle) for rate, found in mistakes.items()])]
    across = "wrong outputs that are accepted, in percent"
    return [
        Chart("Right results kept", across, "percent of the strongest's", kept, mark=(KEPT, "wanted: 99 %")),
        Chart("Money saved", across, "percent of the strongest's", saved, mark=(SAVED, "wanted: 60 %"), low=0),
    ]


def _write(study: Study, text: str, body: Mapping[str, Any]) -> None:
    DOCS.mkdir(parents=True, exist_ok=True)
    (DOCS / "results.md").write_text(text, "utf-8")
    (DOCS / "over-time.svg").write_text(draw(over_time_charts(study.time)), "utf-8")
    (DOCS / "false-accepts.svg").write_text(draw(mistake_charts(study.mistakes)), "utf-8")
    target = ROOT / "benchmarks" / "results" / "routing.json"
    target.write_text(json.dumps(body, indent=1) + "\n", "utf-8")


def _plain(found: Rows) -> dict[str, Any]:
    return {name: asdict(row) for name, row in found.items()}


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
