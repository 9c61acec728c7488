"""What templates and nodes tell about values that nothing describes."""

from __future__ import annotations

from bailiwick.dryrun.usage import plausible, uses_of
from bailiwick.engine.graph import Branch, End, Graph, Map, Node, Work
from bailiwick.ids import Json


def _value(name: str, *nodes: Node, texts: tuple[str, ...] = ()) -> Json:
    graph = Graph(name="g", start="x", nodes={node.id: node for node in nodes})
    return plausible(uses_of(graph, list(texts)).at([name]))


def test_dotted_names_make_objects() -> None:
    """A stand-in without the field would be reported as a missing variable."""
    assert _value("r", texts=("{{ r.a.b }} and {{ r.c | upper }}",)) == {"a": {"b": "example"}, "c": "example"}


def test_arithmetic_makes_numbers() -> None:
    """Text in a sum fails a template that is right."""
    assert _value("n", texts=("{{ n + 1 }}",)) == 1
    assert _value("n", texts=("{% if 3 < n %}x{% endif %}",)) == 1
    assert _value("r", texts=("{{ r.n * 2 }}",)) == {"n": 1}


def test_loops_make_lists_and_their_variable_stands_for_an_item() -> None:
    """The template below needs a list of objects with a name."""
    text = "{% for t in r.tests %}{{ t.name }}{% endfor %}"
    assert _value("r", texts=(text,)) == {"tests": [{"name": "example"}, {"name": "example"}]}
    assert _value("xs", texts=("{{ xs | join(', ') }}",)) == ["example", "example"]


def test_a_map_makes_a_list_of_what_its_body_reads() -> None:
    """The items have the fields that the body's templates and branches look at."""
    over = Map(id="m", over="found.items", as_="it", body="w", join="e")
    body = Work(id="w", type="script", spec={"args": ["{{ it.path }}"]}, next="b")
    branch = Branch(id="b", path="it.kind", default="e")
    made = _value("found", over, body, branch, End(id="e"))
    assert made == {"items": [{"path": "example", "kind": "example"}] * 2}


def test_methods_and_quoted_text_are_no_fields() -> None:
    """`r.items()` calls a method, and a name in quotes is text."""
    assert _value("r", texts=("{{ r.items() }}{{ 'r.quoted' }}",)) == "example"
