"""What templates read, and that the fast path can't be told from Jinja2."""

from __future__ import annotations

from typing import Any

import jinja2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bailiwick.engine.render import Rendered, RenderFailed
from bailiwick.lang.reading import TemplateBroken, read_template, simple_parts
from bailiwick.lang.templates import Templates

CONTEXT: dict[str, Any] = {
    "name": "Ada",
    "user": {"id": 7, "none": None, "items": "shadowed", "_own": 1},
    "rows": [{"n": 1}, {"n": 2}],
    "flag": True,
}
NAMES = st.sampled_from(
    [
        "name",
        "user",
        "user.id",
        "user.none",
        "user.nope",
        "nope",
        "nope.x",
        "rows",
        "user.items",
        "flag",
        "user.id.real",
        "name.upper",
        "true",
        "rows.x",
    ]
)
BITS = NAMES.map(lambda name: "{{ " + name + " }}") | st.sampled_from(
    ["a", " ", "{", "}", "\n", "%", "#", "{{name}}", "é"]
)


@given(st.lists(BITS, max_size=6).map("".join))
def test_the_fast_path_gives_what_jinja_gives(template: str) -> None:
    """Skipping the engine is an optimisation nobody can see."""
    plain = jinja2.Environment(undefined=jinja2.ChainableUndefined)
    try:
        expected = plain.from_string(template).render(**CONTEXT)
    except jinja2.TemplateSyntaxError:
        expected = None
    try:
        found = Templates().text(template, CONTEXT.__getitem__).value
    except RenderFailed:
        found = None
    if expected is None or "built-in method" in expected:
        assert found is None
    else:
        assert found == expected


MARKS = st.sampled_from(["{%", "%}", "{{", "}}", "if", "for", "|", "'"])


@given(st.text(max_size=60) | st.lists(BITS | MARKS).map("".join))
def test_any_text_renders_or_fails_as_promised(template: str) -> None:
    """Templates come from files people edit: nothing else may be raised."""
    templates = Templates()
    for render in (templates.text, templates.value):
        try:
            rendered = render(template, CONTEXT.__getitem__)
        except RenderFailed:
            continue
        assert isinstance(rendered, Rendered)


def test_variables_are_those_nobody_in_the_template_sets() -> None:
    """The check warns about names that nothing provides."""
    looped = "{% for x in rows %}{{ x.n + y }}{{ loop.index }}{% endfor %}{% set z = 1 %}{{ z }}"
    assert read_template("plain").variables == set()
    assert read_template("{{ a.b }} {{ c }}").variables == {"a", "c"}
    assert read_template(looped).variables == {"rows", "y"}
    assert read_template("{{ range(3) }}{{ self }}").variables == set()
    with pytest.raises(RenderFailed):
        read_template("{{ a")


def test_a_reading_names_included_files_and_lines_of_faults() -> None:
    """The check follows includes and points at the line."""
    reading = read_template("{% include 'a.md' %}{% include ['b', 'c'] ignore missing %}{% extends name %}")
    assert [include.names for include in reading.includes] == [("a.md",), ("b", "c")]
    assert [include.optional for include in reading.includes] == [False, True]
    assert reading.dynamic
    assert read_template("{% include 3 %}").dynamic
    for template in ("a\n\n{{ x | nope }}", "a\n\n{{ x is nope }}", "a\n\n{% endfor %}"):
        with pytest.raises(TemplateBroken) as caught:
            read_template(template)
        assert caught.value.line == 3


def test_simple_parts_are_only_taken_where_jinja_sees_the_same() -> None:
    """`{{{ a }}}` is a dictionary to Jinja2, not a brace and a name."""
    assert simple_parts("a {{ b.c }} d") == ["a ", "b.c", " d"]
    for template in ("{{{ a }}}", "{{ a | b }}", "{% x %}{{ a }}", "{{ true }}", "{{ a", "{# {{ a }} #}"):
        assert simple_parts(template) is None


@pytest.mark.parametrize("template", ["{{ " + "9" * 5000 + " }}", "{{ " + "[" * 3000 + " }}", "{{ '\\N{no such}' }}"])
def test_what_python_cannot_read_is_a_fault_of_the_template(template: str) -> None:
    """The check and the rendering fail in the same way, with words."""
    with pytest.raises(TemplateBroken):
        read_template(template)
    with pytest.raises(TemplateBroken):
        Templates().text(template, CONTEXT.__getitem__)
