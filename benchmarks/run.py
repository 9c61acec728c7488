"""Measures every figure side by side and writes the page: `python -m benchmarks.run [--quick] [--only NAME …]`.

A full run writes benchmarks/results/latest.json and docs/benchmarks.md; a smoke run or a part writes benchmarks/out.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.machine import machine_facts, obstacles, version_facts
from benchmarks.measure import ROOT, SCRATCH, Bench, PartFailed, scratch
from benchmarks.report import Figure, Report, page, table

FIGURES = {
    "effect": "effect_node",
    "script": "script_node",
    "pure": "pure_nodes",
    "flat": "flat_cost",
    "calls": "many_children",
    "resume": "resuming",
    "parked": "parked",
    "startup": "startup",
    "agents": "agent_turns",
    "sandbox": "sandbox_start",
    "brain": "brain_query",
    "routing": "routing.run",
    "router": "router_overhead",
    "mcp": "mcp_http",
    "gate": "gate_cost",
}
"""Which file measures what, by the name that `--only` takes."""

Measure = Callable[[Bench], list[Figure]]


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, write, print the table; 0 unless something could not be measured."""
    options = _options(argv)
    names = options.only or list(FIGURES)
    began = datetime.now(UTC)
    with scratch(options.folder) as folder:
        bench = Bench(folder, options.quick, lambda text: print(text, file=sys.stderr, flush=True))
        for words in obstacles(folder):
            bench.say(f"notice: {words}")
        machine = machine_facts(folder)
        figures = [figure for name in names for figure in _measured(bench, name)]
    partial = options.quick or bool(options.only)
    report = Report(figures, machine, version_facts(), _command(options), began.strftime("%Y-%m-%d"), options.quick)
    _write(report, partial=partial)
    print(table(figures))
    return 1 if any(figure.problem for figure in figures) else 0


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run", description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, few rounds: a smoke run")
    parser.add_argument("--only", nargs="+", choices=FIGURES, metavar="NAME", help=f"of {', '.join(FIGURES)}")
    parser.add_argument("--folder", type=Path, default=SCRATCH, help="where readings are written: on a disk")
    return parser.parse_args(argv)


def _command(options: argparse.Namespace) -> str:
    """The command to make these numbers again, without names of this machine."""
    words = ["--quick"] if options.quick else []
    words += ["--only", *options.only] if options.only else []
    words += ["--folder", "DIR"] if options.folder != SCRATCH else []
    return f'make bench BENCH="{" ".join(words)}"' if words else "make bench"


def _measured(bench: Bench, name: str) -> list[Figure]:
    """The figures of one file; one that fails is told, the others go on."""
    bench.say(name)
    measure: Measure = importlib.import_module(f"benchmarks.{FIGURES[name]}").measure
    try:
        return measure(bench)
    except PartFailed as error:
        bench.say(f"  {error}")
        return [Figure(name, name, problem=str(error))]


def _write(report: Report, *, partial: bool) -> None:
    results, docs = (SCRATCH, SCRATCH) if partial else (ROOT / "benchmarks" / "results", ROOT / "docs")
    body = asdict(report)
    for figure, kept in zip(report.figures, body["figures"], strict=True):
        kept["reached"] = figure.reached
    for folder, name, text in (
        (results, "latest.json", json.dumps(body, indent=2, ensure_ascii=False) + "\n"),
        (docs, "benchmarks.md", page(report)),
    ):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf-8")


if __name__ == "__main__":
    sys.exit(main())
