"""The SQL of the SQLite store by name. Read from the files beside this one at the first use, once per process."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path

SQL = Path(__file__).with_name("sql")


@cache
def named() -> dict[str, str]:
    """Every query of every file, by the name in its `-- name:` line."""
    found: dict[str, str] = {}
    for file in sorted(SQL.glob("*.sql")):
        for section in file.read_text(encoding="utf-8").split("-- name: ")[1:]:
            name, _, body = section.partition("\n")
            lines = [line for line in body.splitlines() if not line.startswith("--")]
            found[name.strip()] = "\n".join(lines).strip()
    return found


@cache
def query(name: str) -> str:
    """One query; a name that is in no file is a `KeyError`."""
    return named()[name]


@cache
def query_for(name: str, count: int) -> str:
    """A query with a list `(:each)` of so many values, bound as each0, each1 and so on."""
    names = ", ".join(f":each{place}" for place in range(count))
    return query(name).replace("(:each)", f"({names})" if names else "('')")


def each(values: Iterable[str]) -> dict[str, str]:
    """The bindings of such a list."""
    return {f"each{place}": value for place, value in enumerate(values)}


@cache
def runs_where(name: str) -> str:
    """The query for whole run rows that ends with the named condition."""
    return query("run.columns") + "\n" + query(name)


def migrations() -> list[tuple[int, str]]:
    """The numbered schema changes in order."""
    files = sorted((SQL / "migrations").glob("*.sql"))
    return [(int(file.stem), file.read_text(encoding="utf-8")) for file in files]
