"""The named SQL: complete, valid, and planned as intended."""

from __future__ import annotations

import re
from pathlib import Path

import apsw
import pytest

from bailiwick.journal import lists, queries
from bailiwick.journal.rows import RunFilter, WaitFilter


def database() -> apsw.Connection:
    db = apsw.Connection(":memory:")
    for _, text in queries.migrations():
        db.execute(text)
    return db


def plan(name: str) -> str:
    db = database()
    names = re.findall(r":([a-z_]+)", queries.query(name))
    bindings = dict.fromkeys(names) or (None,) * queries.query(name).count("?")
    rows = db.execute(f"EXPLAIN QUERY PLAN {queries.query(name)}", bindings).fetchall()
    return "\n".join(str(row[-1]) for row in rows)


CONDITIONS = ("run.by_id", "run.by_name", "run.held")


@pytest.mark.parametrize("name", sorted(set(queries.named()) - set(CONDITIONS)))
def test_every_query_fits_the_schema(name: str) -> None:
    """A query that is rarely used would else fail when it is needed."""
    assert compiles(queries.query(name))


@pytest.mark.parametrize("name", CONDITIONS)
def test_every_condition_on_runs_fits_the_schema(name: str) -> None:
    """They share their columns, so they are checked together with them."""
    assert compiles(queries.runs_where(name))


def compiles(sql: str) -> bool:
    named = dict.fromkeys(re.findall(r":([a-z_]+)", sql))
    bindings = named or (None,) * sql.count("?")
    return bool(database().execute(f"EXPLAIN {sql}", bindings).fetchall())


def test_every_query_that_the_code_names_exists_and_is_used() -> None:
    """A name is found only when it is used; a query that nobody names is dead."""
    folder = Path(queries.__file__).parent
    code = "\n".join(file.read_text() for file in folder.glob("*.py"))
    used = set(re.findall(r'"([a-z]+\.[a-z_]+)"', code))
    assert set(queries.named()) <= used


def test_claiming_walks_the_index_of_due_runs() -> None:
    """A thousand parked runs must not make a claim slower."""
    assert "run_due" in plan("run.claim")
    assert "TEMP B-TREE" not in plan("run.claim")


def test_the_next_wake_is_read_from_an_index() -> None:
    """It is asked by every idle worker."""
    assert "run_free" in plan("run.next_wake")
    assert "TEMP B-TREE" not in plan("run.next_wake")


LISTS = {
    "a page of all": (lists.runs(RunFilter(), 20, (1.0, 1)), "run_fact_recent"),
    "a page of those that were started": (lists.runs(RunFilter(called=False, since=1.0), 20, None), "run_fact_recent"),
    "those that live of a tree": (lists.runs(RunFilter(root_id="a", status=("ready",)), None, None), "run_tree"),
    "what ended lately": (lists.runs(RunFilter(status=("done",), ended_since=1.0), None, None), "run_fact_ended"),
    "a page of calls": (lists.runs(RunFilter(kind="call", since=1.0), 20, (1.0, 1)), "run_fact_calls"),
    "a name": (lists.runs(RunFilter(workflow="a", run_key="b"), 7, None), "run_named"),
    "the beginning of an id": (lists.runs(RunFilter(id="ab"), 7, None), "PRIMARY KEY"),
    "calls of the last days": (lists.calls(since=1.0, session=None, id=None, limit=-1), "call_started"),
    "a page of the newest calls": (lists.calls(since=None, session=None, id=None, limit=10), "call_started"),
    "a session": (lists.calls(since=None, session="s", id=None, limit=-1), "call_session"),
    "the beginning of a call's id": (lists.calls(since=None, session=None, id="c-", limit=-1), "autoindex_call"),
    "the waits of a run": (lists.waits(WaitFilter(run_id="a"), None, None), "PRIMARY KEY"),
}


@pytest.mark.parametrize("name", LISTS)
def test_a_list_is_read_from_an_index(name: str) -> None:
    """The newest twenty of a hundred thousand runs, or the few that live of a large tree, cost a look at no others."""
    (sql, bindings), index = LISTS[name]
    rows = database().execute(f"EXPLAIN QUERY PLAN {sql}", bindings).fetchall()
    text = "\n".join(str(row[-1]) for row in rows)
    assert index in text, text
    assert "SCAN r" not in text, text
    assert "SCAN call\n" not in f"{text}\n", text
    assert "page" not in name or "TEMP B-TREE" not in text


INDEXED = {
    "attempt.listed": ("SEARCH a USING INDEX attempt_at (at>?)", "SEARCH r USING", "SEARCH root USING"),
    "attempt.of_call": ("USING INDEX attempt_call (call=?)",),
    "spend.read": ("SEARCH spend USING PRIMARY KEY (scope=?)",),
    "spend.spenders": ("SEARCH spend USING PRIMARY KEY (scope=?)", "SEARCH r ", "SEARCH root ", "SEARCH c "),
}


@pytest.mark.parametrize("name", INDEXED)
def test_statistics_look_at_nothing_but_what_they_show(name: str) -> None:
    """Ten thousand calls and ten thousand attempts of nodes on record cost what a hundred do: no journal is read."""
    text = plan(name)
    assert [step for step in INDEXED[name] if step not in text] == [], text
    assert not re.search(r"\b(SCAN|event)\b(?! s\b)", text), text


def test_an_attempt_is_found_by_its_run_when_that_is_removed() -> None:
    """Pruning would else look at every attempt there is, for each run."""
    rows = database().execute("EXPLAIN QUERY PLAN DELETE FROM attempt WHERE run_id = 'r'").fetchall()
    assert "attempt_run (run_id=?)" in str(rows)


def test_migrations_are_numbered_without_gaps() -> None:
    """Two changes with one number would leave some databases without one of them."""
    assert [number for number, _ in queries.migrations()] == list(range(1, len(queries.migrations()) + 1))
