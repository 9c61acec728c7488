"""Checking a run's params against the workflow's `params:` before anything starts."""

from __future__ import annotations

import difflib

from bailiwick.engine.graph import Graph
from bailiwick.ids import Json


def check_params(graph: Graph, params: dict[str, Json], *, complete: bool = True) -> str:
    """One sentence per problem, joined; empty when the params fit. Without `params:` any name is accepted.

    Without `complete`, a param that is missing is none of them.
    """
    if graph.params is None:
        return ""
    problems = [_unknown(name, graph) for name in params if name not in graph.params and name not in graph.vars]
    given = {**graph.vars, **params}
    for name, schema in graph.params.items():
        if name in given:
            problems += _misfit(name, given[name], schema)
        elif complete and not (isinstance(schema, dict) and "default" in schema):
            problems.append(f"param '{name}' is missing")
    return "; ".join(problems)


def unread_params(graph: Graph, reads: frozenset[str] | None, params: dict[str, Json]) -> list[str]:
    """A sentence for each param that no `vars` and no template knows; it is accepted, but may be misspelt."""
    if graph.params is not None or reads is None:
        return []
    known = {*graph.vars, *reads}
    return [_unread(name, known) for name in params if name not in known]


def _unread(name: str, known: set[str]) -> str:
    near = difflib.get_close_matches(name, sorted(known), 1)
    return f"nothing in the workflow reads the param '{name}'" + (f"; did you mean '{near[0]}'?" if near else "")


def first_context(graph: Graph, params: dict[str, Json]) -> dict[str, Json]:
    """The context a run of this definition begins with: defaults of `params:`, then `vars:`, then what is given."""
    found = (graph.params or {}).items()
    defaults = {name: schema["default"] for name, schema in found if isinstance(schema, dict) and "default" in schema}
    return {**defaults, **graph.vars, **params}


def check_values(graph: Graph, values: dict[str, Json]) -> str:
    """One sentence per value that does not fit the param of its name; other names are the context's own."""
    known = graph.params or {}
    return "; ".join(
        text for name, value in values.items() if name in known for text in _misfit(name, value, known[name])
    )


def _unknown(name: str, graph: Graph) -> str:
    near = difflib.get_close_matches(name, list(graph.params or {}), 1)
    known = ", ".join(graph.params or {}) or "none"
    return f"param '{name}' is not known" + (f", did you mean '{near[0]}'?" if near else f"; known: {known}")


def _misfit(name: str, value: Json, schema: Json) -> list[str]:
    from bailiwick.lang.schemas import validator_of

    return [f"param '{name}': {error.message}" for error in validator_of(schema).iter_errors(value)]
