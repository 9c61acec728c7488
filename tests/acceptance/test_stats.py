"""Statistics from the command line: from an empty home to the money of an agent's run."""

from __future__ import annotations

import asyncio
from pathlib import Path

from bailiwick.clock import SystemClock, day
from bailiwick.journal.rows import AttemptRow, CallRow, Reservation
from bailiwick.journal.sqlite import SqliteStore
from tests.acceptance.command import Person

FLOW = """
version: 1
start: think
nodes:
  - {id: think, type: agent, prompt_text: hello, outputs: [{key: x, schema: {type: integer}}], next: done}
  - {id: done, type: terminal}
returns: [x]
"""


def called(home: Path) -> None:
    """A call of an hour ago that went from a local model to an agent, and one that was cut off."""
    clock = SystemClock()
    then = clock.now() - 3600
    row = CallRow("c-1", "s1", "review", "review", "/p", "", "ann", "cli", "", "", then, chain=("small", "big"))
    facts = ("review", "small", "local", "escalate", None, True, 900)

    async def fill() -> None:
        (home / "state").mkdir(mode=0o700, parents=True)
        store = await SqliteStore.open(home / "state" / "bailiwick.db", now=clock.now)
        await store.begin_call(row, [Reservation(f"day:{day(then)}", "", "usd", 1.0, 40.0)])
        done = CallRow(
            *("c-1", "s1", "review", "review", "/p", "", "ann", "cli", "", "", then), then + 5, "pass", "big"
        )
        tries = [
            AttemptRow("c-1", 1, then + 1, *facts, cost=0.0, feedback="no such line"),
            AttemptRow(
                "c-1", 2, then + 4, "review", "big", "subagent", "accept_unverified", None, False, 3000, cost=0.5
            ),
        ]
        await store.end_call(done, tries, {"usd": 0.5})
        cut = CallRow("c-2", "s1", "debug", "debug", "/p", "", "ann", "mcp", "", "", then, until=then + 600)
        await store.begin_call(cut)
        await store.close()

    asyncio.run(fill())


def test_an_empty_home_gets_a_sentence_and_no_error(person: Person) -> None:
    """Whoever looks first learns how to get data."""
    result = person.runs("costs")
    assert (result.code, result.out.startswith("Nothing is on record yet.")) == (0, True)


def test_calls_show_in_models_sessions_and_costs(person: Person) -> None:
    """The three views are of the same records, each as one document."""
    called(person.home)
    models = person.runs("stats", "models", "--since", "1d", "--json").json()
    assert [(one["skill"], one["model"], one["calls"]) for one in models["models"]] == [
        ("review", "big", 1),
        ("review", "small", 1),
    ]
    assert models["calls"] == {"interrupted": 1, "pass": 1}
    (session,) = person.runs("stats", "sessions", "--json").json()["sessions"]
    assert (session["session_id"], session["statuses"]) == ("s1", {"interrupted": 1, "pass": 1})
    spent = person.runs("costs", "--json").json()
    assert [(one["name"], one["usd"]) for one in spent["workflows"]] == [("skill review", 0.5)]


def test_an_agents_run_is_counted_too(person: Person) -> None:
    """Models are asked by nodes as well; a statistic without them would mislead."""
    flow = person.workflow("ask", FLOW)
    assert person.runs("run", flow, "--simulate").code == 0
    (found,) = person.runs("stats", "models", "--json").json()["models"]
    assert (found["skill"], found["calls"], found["accepted"]) == ("workflow ask", 1, 1)


def test_a_time_that_is_none_exits_2_with_an_example(person: Person) -> None:
    """A typo must not show everything."""
    result = person.runs("stats", "models", "--since", "soon")
    assert (result.code, result.out) == (2, "")
    assert "7d" in result.err
