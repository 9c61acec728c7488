"""`stats` and `costs` as people see them: tables that say what is unknown, one document with --json."""

from __future__ import annotations

import json
import re
from datetime import datetime
from pathlib import Path

import pytest
from click.testing import CliRunner

from bailiwick.cli.commands.stats import (
    costs,
    describe_costs,
    describe_models,
    describe_sessions,
    stats,
)
from bailiwick.clock import SystemClock
from bailiwick.errors import UsageError
from bailiwick.ids import Json
from bailiwick.journal.port import Store
from bailiwick.lang.durations import beginning
from bailiwick.routing.costs import costs_since
from bailiwick.routing.reports import models_report, sessions_report
from tests.unit.routing.records import NOW, agent_log, attempt, call, routed, walked, with_store


async def filled(store: Store) -> None:
    """Two calls over a chain and an agent's node."""
    tries = [
        attempt(cost=0.0, input_tokens=12_345, output_tokens=600, warm_start=False),
        attempt(number=2, model="big", tier="subagent", verdict="accept_unverified", cost=None, duration_ms=4200),
    ]
    await routed(store, call(), tries, reserve=1.0)
    await routed(store, call("c-2"), [attempt("c-2", 1, verdict="accept", verified=True, cost=0.004)], 0.004, 1.0)
    await store.begin_call(call("c-3", until=NOW - 1))
    await walked(store, "r1", [agent_log()], workflow="fix")


def test_the_table_of_models_says_what_is_unknown(tmp_path: Path) -> None:
    """A dash of zeros would look like a free and perfect model."""

    async def look(store: Store) -> list[str]:
        await filled(store)
        return list(describe_models(await models_report(store, NOW)))

    lines = with_store(tmp_path, look)
    assert len({len(line) for line in lines[:4]}) == 1
    assert [re.split(" {2,}", line) for line in lines[:4]] == [
        [
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
        ],
        ["review", "small", "2", "50 %", "50 %", "0", "900 ms", "900 ms", "1", "12k/600+?", "$0.0040", "unknown"],
        ["review", "big", "1", "100 %", "0 %", "0", "4.2 s", "4.2 s", "0", "unknown", "unknown", "unknown"],
        ["workflow fix", "claude-sonnet", "1", "100 %", "0 %", "0", "2.5 s", "2.5 s", "0", "10/5", "$0.50", "unknown"],
    ]
    assert lines[4:] == [
        "accepted includes outputs that were not verified (see --json)",
        "+? more, of unknown count or price",
        "1 call was interrupted: the process ended first; what was reserved counts as spent",
    ]


def test_the_last_line_says_which_model_to_take_out(tmp_path: Path) -> None:
    """A table of rates leaves the conclusion to whoever has time for it."""

    async def look(store: Store) -> tuple[list[str], Json]:
        for number in range(25):
            name = f"c-{number}"
            tries = [
                attempt(name, 1, cost=0.02, verdict="escalate", verified=False),
                attempt(name, number=2, model="big", tier="subagent", verdict="accept_unverified", cost=0.1),
            ]
            await routed(store, call(name), tries)
        report = await models_report(store, NOW)
        return list(describe_models(report)), report.to_json()

    lines, document = with_store(tmp_path, look)
    assert lines[-1] == "small was accepted 0 of 25 times for review: take it out"
    assert document["advice"] == lines[-1:]


def test_the_table_of_sessions_counts_how_calls_ended(tmp_path: Path) -> None:
    """An interrupted call has an unknown price."""

    async def look(store: Store) -> list[str]:
        await filled(store)
        return list(describe_sessions(await sessions_report(store, NOW)))

    header, row, _ = with_store(tmp_path, look)
    assert header.split() == ["session", "last", "calls", "ended", "attempts", "tokens", "cost"]
    assert row.startswith("s1 ")
    assert row.endswith("3  1 interrupted, 2 pass         3  12k/600+?  $0.0040+?")


def test_the_tables_of_costs_keep_known_unknown_and_open_apart(tmp_path: Path) -> None:
    """What nobody priced counts as it was set aside, and is shown as that."""

    async def look(store: Store) -> list[str]:
        await filled(store)
        return list(describe_costs(await costs_since(store, NOW - 60, NOW), NOW - 60))

    lines = [line.split() for line in with_store(tmp_path, look)]
    assert ["skill", "review", "$0.0040", "$1.00", "$0.00", "2"] in lines
    assert ["small", "2", "12k/600+?", "$0.0040"] in lines
    assert ["big", "1", "unknown", "unknown"] in lines
    assert lines[-2][0] == "unknown:"


@pytest.mark.parametrize("command", ["models", "sessions", "costs"])
def test_an_empty_machine_says_how_to_get_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    """An empty table, or an error, would tell nobody what to do."""
    monkeypatch.setenv("BAILIWICK_HOME", str(tmp_path))
    said = CliRunner().invoke(stats, [command], standalone_mode=False)
    assert (said.return_value, said.output.splitlines()[0][:21]) == (0, "Nothing is on record ")
    told = CliRunner().invoke(stats, [command, "--json", "--since", "7d"], standalone_mode=False)
    assert not any(value for name, value in json.loads(told.output).items() if name != "since")


def test_costs_alone_is_the_same_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is what people ask for most."""
    monkeypatch.setenv("BAILIWICK_HOME", str(tmp_path))

    async def fill(store: Store) -> None:
        await routed(store, call(started_at=SystemClock().now()), [attempt(at=SystemClock().now(), cost=0.5)])

    with_store(tmp_path / "state", fill)
    first = CliRunner().invoke(costs, ["--json"], standalone_mode=False)
    second = CliRunner().invoke(stats, ["costs", "--json"], standalone_mode=False)
    assert first.output == second.output
    assert [one["cost"] for one in json.loads(first.output)["models"]] == [0.5]


@pytest.mark.parametrize("text", ["yesterday", "7 days", "-3d", "2026-13-01", ""])
def test_a_time_that_is_none_is_refused_with_examples(text: str) -> None:
    """Everything would be shown as if it were the last week."""
    with pytest.raises(UsageError, match="--since") as caught:
        beginning(text, NOW)
    assert "7d" in caught.value.hint


def test_since_is_a_span_or_a_local_date() -> None:
    """Both are how people say it."""
    assert beginning(None, NOW) is None
    assert beginning("2h", NOW) == NOW - 7200
    assert beginning("99999d", NOW) == 0
    assert beginning("2023-11-01", NOW) == datetime(2023, 11, 1).astimezone().timestamp()
