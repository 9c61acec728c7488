"""The named SQL: complete, valid, and planned as intended."""

from __future__ import annotations

import re
from pathlib import Path

import apsw
import pytest

from bailiwick.journal import queries


def database() -> apsw.Connection:
    db = apsw.Connection(":memory:")
    for _, text in queries.migrations():
        db.execute(text)
    return db


def plan(name: str) -> str:
    db = database()
    names = re.findall(r":([a-z_]+)", queries.query(name))
    rows = db.execute(f"EXPLAIN QUERY PLAN {queries.query(name)}", dict.fromkeys(names)).fetchall()
    return "\n".join(str(row[-1]) for row in rows)


CONDITIONS = ("run.by_id", "run.by_name", "run.listed", "run.listed_in_tree", "run.page", "run.held")


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


def test_a_page_of_the_list_is_read_from_an_index() -> None:
    """The newest twenty of a hundred thousand runs must not cost a look at all of them."""
    sql = queries.runs_where("run.page")
    rows = database().execute(f"EXPLAIN QUERY PLAN {sql}", dict.fromkeys(re.findall(r":([a-z_]+)", sql))).fetchall()
    text = "\n".join(str(row[-1]) for row in rows)
    assert "run_fact_recent" in text
    assert "TEMP B-TREE" not in text


def test_migrations_are_numbered_without_gaps() -> None:
    """Two changes with one number would leave some databases without one of them."""
    assert [number for number, _ in queries.migrations()] == list(range(1, len(queries.migrations()) + 1))


def test_the_live_runs_of_a_tree_are_found_by_an_index() -> None:
    """A tree of thousands of ended children is asked for the few that live with every one of them."""
    sql = queries.runs_where("run.listed_in_tree")
    names = re.findall(r":([a-z_]+)", sql)
    rows = database().execute(f"EXPLAIN QUERY PLAN {sql}", dict.fromkeys(names)).fetchall()
    assert "run_tree (root_id=? AND status=?)" in "\n".join(str(row[-1]) for row in rows)
