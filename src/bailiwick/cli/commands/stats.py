"""`bailiwick stats` and `bailiwick costs`: what models were worth, what sessions did, what it all cost."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import click

from bailiwick.cli.printing import JSON
from bailiwick.cli.stored import with_store
from bailiwick.clock import SystemClock, local
from bailiwick.config.service import load_config
from bailiwick.journal.port import Store
from bailiwick.lang.durations import beginning
from bailiwick.processes.proc import plain_line
from bailiwick.routing.costs import CostLine, Costs, ModelCost, costs_since
from bailiwick.routing.reports import ModelsReport, SessionsReport, models_report, sessions_report
from bailiwick.routing.stats import ModelStats, TokenUsage

T = TypeVar("T")
MONTH = 30 * 86_400.0
"""Seconds that costs look back where nobody says otherwise."""
UNKNOWN = "unknown"
ADVICE = 200
"""Characters of a sentence about a model."""
NOTHING = (
    "Nothing is on record yet.  Ask a skill:  bailiwick skill review --files FILE   ·   Run an agent:  bailiwick demo"
)
SINCE = click.option("--since", metavar="TIME", help="Only what is newer: a span such as 7d or 12h, or 2026-11-01.")


@click.group()
def stats() -> None:
    """What the records say about models, sessions and costs."""


@stats.command("models")
@SINCE
@JSON
def models_(*, since: str | None, as_json: bool) -> int:
    """Show each model by skill: how often it was asked, accepted, escalated, how fast, what it cost and saved.

    \b
    Example:  bailiwick stats models --since 7d
    """
    report = _reported(since, models_report)
    _show(report.to_json() if as_json else None, () if as_json else describe_models(report))
    return 0


@stats.command("sessions")
@SINCE
@JSON
def sessions_(*, since: str | None, as_json: bool) -> int:
    """Show each session: its calls, how they ended, the models and what they cost.

    \b
    Example:  bailiwick stats sessions --since 1d
    """
    report = _reported(since, sessions_report)
    _show(report.to_json() if as_json else None, () if as_json else describe_sessions(report))
    return 0


@stats.command("costs")
@SINCE
@JSON
def stats_costs(*, since: str | None, as_json: bool) -> int:
    """Show what days, workflows and models cost; the same as `bailiwick costs`.

    \b
    Example:  bailiwick stats costs --since 7d
    """
    return _costs(since, as_json=as_json)


@click.command()
@SINCE
@JSON
def costs(*, since: str | None, as_json: bool) -> int:
    """Show what each day, workflow and model cost; the last 30 days if not told otherwise.

    \b
    Example:  bailiwick costs --since 7d
    """
    return _costs(since, as_json=as_json)


def _costs(since: str | None, *, as_json: bool) -> int:
    clock = SystemClock()
    now = clock.now()
    start = beginning(since, now)
    first = now - MONTH if start is None else start
    found = with_store(_state(), lambda store: costs_since(store, first, now))
    _show(found.to_json() if as_json else None, () if as_json else describe_costs(found, first))
    return 0


def _reported(since: str | None, make: Callable[[Store, float, float | None], Awaitable[T]]) -> T:
    clock = SystemClock()
    start = beginning(since, clock.now())
    return with_store(_state(), lambda store: make(store, clock.now(), start))


def describe_models(report: ModelsReport) -> Iterable[str]:
    """The table of models, for people."""
    if not report.models and not report.calls:
        yield NOTHING
        return
    header = (
        "skill",
        "model",
        "calls",
        "accepted",
        "escalated",
        "errors",
        "mean",
        "p95",
        "cold",
        "tokens",
        "cost",
        "saved",
    )
    yield from _table(header, [_model_cells(one) for one in report.models], left=2)
    if any(one.unverified for one in report.models):
        yield "accepted includes outputs that were not verified (see --json)"
    yield from _footnote(one.use for one in report.models)
    if cut := report.calls.get("interrupted"):
        calls = "call was" if cut == 1 else "calls were"
        yield f"{cut} {calls} interrupted: the process ended first; what was reserved counts as spent"
    yield from (plain_line(one.encode("utf-8", "replace"), ADVICE) for one in report.advice)


def _model_cells(one: ModelStats) -> Sequence[str]:
    return (
        one.skill,
        one.model,
        str(one.calls),
        _rate(one.accepted, one.calls),
        _rate(one.escalated, one.calls),
        str(one.errors),
        _span(one.mean_ms),
        _span(one.p95_ms),
        str(one.cold_starts),
        _tokens(one.use),
        _cost(one.use),
        UNKNOWN if one.saved is None else _usd(one.saved),
    )


def describe_sessions(report: SessionsReport) -> Iterable[str]:
    """The table of sessions, for people."""
    if not report.sessions:
        yield NOTHING
        return
    header = ("session", "last", "calls", "ended", "attempts", "tokens", "cost")
    rows = [
        (
            one.session_id or "(none)",
            local(one.last_at),
            str(one.calls),
            _counts(one.how),
            str(one.attempts),
            _tokens(one.use),
            _cost(one.use),
        )
        for one in report.sessions
    ]
    yield from _table(header, rows, left=2)
    yield from _footnote(one.use for one in report.sessions)


def describe_costs(found: Costs, since: float) -> Iterable[str]:
    """The three tables of costs, for people."""
    if not found:
        yield NOTHING
        return
    yield f"since {local(since)}"
    for title, part in (("day", found.days), ("workflow", found.workflows)):
        yield ""
        yield from _table((title, "spent", "unknown", "open", "entries"), [_cost_cells(one) for one in part], left=1)
    yield ""
    yield from _table(("model", "calls", "tokens", "cost"), [_model_cost_cells(one) for one in found.models], left=1)
    if any(one.unknown_usd for one in found.days):
        yield "unknown: the price is not known; what was reserved counts as spent"
    yield from _footnote(one.use for one in found.models)


def _footnote(uses: Iterable[TokenUsage]) -> Iterable[str]:
    if any(use.cost_unknown or use.tokens_unknown for use in uses):
        yield "+? more, of unknown count or price"


def _cost_cells(one: CostLine) -> Sequence[str]:
    return one.name, _usd(one.usd), _usd(one.unknown_usd), _usd(one.open_usd), str(one.lines)


def _model_cost_cells(one: ModelCost) -> Sequence[str]:
    return one.model, str(one.calls), _tokens(one.use), _cost(one.use)


def _counts(how: Mapping[str, int]) -> str:
    return ", ".join(f"{number} {name}" for name, number in how.items())


def _rate(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f} %"


def _span(milliseconds: int | None) -> str:
    if milliseconds is None:
        return "-"
    return f"{milliseconds} ms" if milliseconds < 1000 else f"{milliseconds / 1000:.1f} s"


def _tokens(use: TokenUsage) -> str:
    if use.input_tokens is None and use.output_tokens is None:
        return UNKNOWN if use.tokens_unknown else "0"
    more = "+?" if use.tokens_unknown else ""
    return f"{_short(use.input_tokens)}/{_short(use.output_tokens)}{more}"


def _short(count: int | None) -> str:
    if count is None:
        return "?"
    return str(count) if count < 10_000 else f"{count / 1000:.0f}k"


def _cost(use: TokenUsage) -> str:
    if use.cost is None:
        return UNKNOWN if use.cost_unknown else _usd(0.0)
    return _usd(use.cost) + ("+?" if use.cost_unknown else "")


def _usd(amount: float) -> str:
    """Dollars; a small amount is not rounded to nothing."""
    digits = 2 if amount == 0 or abs(amount) >= 0.1 else 4
    return f"{'-' if amount < 0 else ''}${abs(amount):.{digits}f}"


def _table(header: Sequence[str], rows: Sequence[Sequence[str]], left: int) -> Iterable[str]:
    """Aligned columns, the first `left` of them to the left."""
    clean = [[plain_line(cell.encode("utf-8", "replace"), 60) for cell in row] for row in (header, *rows)]
    widths = [max(len(row[column]) for row in clean) for column in range(len(header))]
    for row in clean:
        cells = [
            cell.ljust(w) if i < left else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        ]
        yield "  ".join(cells).rstrip()


def _show(document: object, lines: Iterable[str]) -> None:
    if document is not None:
        click.echo(json.dumps(document, indent=2))
    for line in lines:
        click.echo(line)


def _state() -> Path:
    return load_config(Path.cwd(), {}).paths.make_state()
