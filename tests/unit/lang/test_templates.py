"""Rendering: what templates give, what they may not do, and what it costs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bailiwick.engine.render import Rendered, RenderFailed
from bailiwick.lang.templates import Templates

CONTEXT: dict[str, Any] = {
    "name": "Ada",
    "user": {"id": 7, "tags": ["x", "y"], "none": None, "items": "shadowed", "_own": 1},
    "rows": [{"n": 1}, {"n": 2}],
    "flag": True,
    "empty": "",
    "evil": "{{ name }}{% for %}",
    "long": "x" * 1_000_000,
}


def text(template: str, **options: Any) -> Rendered:
    return Templates(**options).text(template, CONTEXT.__getitem__)


def value(template: Any, **options: Any) -> Rendered:
    return Templates(**options).value(template, CONTEXT.__getitem__)


@pytest.mark.parametrize(
    ("template", "result"),
    [
        ("plain", "plain"),
        ("one newline goes\n", "one newline goes"),
        ("two\n\n", "two\n"),
        ("a\r\nb", "a\nb"),
        ("{{ name }}", "Ada"),
        ("{{name}} and {{ user.id }}", "Ada and 7"),
        ("{{ flag }} {{ user.none }} {{ user.tags }}", "True None ['x', 'y']"),
        ("{{ name | upper }}", "ADA"),
        ("{% for row in rows %}{{ row.n }},{% endfor %}", "1,2,"),
        ("{# gone #}kept", "kept"),
        ("{{ user['id'] + 1 }}", "8"),
        ("{{ true }} {{ none }}", "True None"),
        ("{{ range(3) | list }}", "[0, 1, 2]"),
        ("{{ user.items() | length }}", "5"),
        ("{{ 'a' ~ 1 ~ none }}", "a1None"),
        ("{{ '%s-%s' | format('a', 'b') }} {{ '%d' % 3 }} {{ '{}!'.format(name) }}", "a-b 3 Ada!"),
        ("{{ ','.join(user.tags) }} {{ rows | join('+', 'n') }} {{ 'aba'.replace('a', 'c') }}", "x,y 1+2 cbc"),
        ("{{ 'a\nb' | indent(2) }}|{{ 'a' | center(3) }}|{{ 'x'.rjust(3) }}", "a\n  b| a |  x"),
        ("{{ user.tags + ['z'] }} {{ 'ab' * 2 }} {{ 2 ** 3 }}", "['x', 'y', 'z'] abab 8"),
        ("{{ user | tojson }}", '{"_own": 1, "id": 7, "items": "shadowed", "none": null, "tags": ["x", "y"]}'),
        ("{{ user._own }}", "1"),
        ("{{{'a': 1}['a']}}", "1"),
        ("{ {name} } }}", "{ {name} } }}"),
    ],
)
def test_text_renders_as_the_author_expects(template: str, result: str) -> None:
    """The whole of Jinja2's everyday syntax works."""
    assert text(template) == Rendered(result)


@pytest.mark.parametrize(
    ("template", "result", "missing"),
    [
        ("[{{ nope }}]", "[]", ("nope",)),
        ("[{{ nope.deep.er }}]", "[]", ("nope.deep.er",)),
        ("[{{ user.nope }}]", "[]", ("user.nope",)),
        ("[{{ user.id.nope }}]", "[]", ("user.id.nope",)),
        ("[{{ user.nope.er | upper }}]", "[]", ("user.nope.er",)),
        ("[{{ nope['a'].b | upper }}]", "[]", ("nope.a.b",)),
        ("{% for row in rows %}{{ row.zip }}{% endfor %}", "", ("row.zip",)),
        ("{% for row in nope %}x{% endfor %}", "", ("nope",)),
        ("{% if nope %}a{% else %}b{% endif %}", "b", ("nope",)),
        ("{{ nope | length }}", "0", ("nope",)),
        ("{{ nope }}{{ nope }}{{ gone }}", "", ("nope", "gone")),
        ("{{ nope | default('x') }}{{ 'y' if nope is defined else 'z' }}", "xz", ()),
    ],
)
def test_a_missing_name_renders_empty_and_is_noted_as_written(
    template: str, result: str, missing: tuple[str, ...]
) -> None:
    """A long run goes on where an agent left a field out, and the person sees which."""
    assert text(template) == Rendered(result, missing)


@pytest.mark.parametrize(
    "template", ["{{ nope }}", "{{ user.nope }}", "{{ nope | upper }}", "{% if nope %}a{% endif %}"]
)
def test_strict_makes_a_missing_name_a_failure(template: str) -> None:
    """`strict: true` is for authors who want to know at once."""
    with pytest.raises(RenderFailed, match=r"nope.* is missing"):
        text(template, strict=True)
    assert text("{{ nope | default('x') }}", strict=True).value == "x"


def test_a_value_is_never_read_as_a_template() -> None:
    """Text from agents, issues and logs is data."""
    for template in ("{{ evil }}", "{{ evil | trim }}", "a {{ evil }}"):
        assert "{{ name }}" in text(template).value
    assert value({"a": "{{ evil }}"}).value == {"a": CONTEXT["evil"]}


@pytest.mark.parametrize(
    ("template", "result"),
    [
        ("{{ user }}", CONTEXT["user"]),
        ("  {{ rows }}\n", CONTEXT["rows"]),
        ("{{ flag }}", True),
        ("{{ user.none }}", None),
        ("{{ user.id }}", 7),
        ("{{ user.id * 2 }}", 14),
        ("{{- user.id -}}", 7),
        ("{{ -1 }}", -1),
        ("{{ rows | map(attribute='n') | list }}", [1, 2]),
        ("{{ (1, 2) }}", [1, 2]),
        ("{{ {'a': name} }}", {"a": "Ada"}),
        ("{{ name | upper }}", "ADA"),
        ("id {{ user.id }}", "id 7"),
        ("{{ user.id }}{{ user.id }}", "77"),
        ("{{ user.id + 1 }} {{ user.id }}", "8 7"),
        ("{{ '}}' }}{{ 2 }}", "}}2"),
        ("{% if flag %}1{% endif %}", "1"),
        (5, 5),
        (None, None),
        (["{{ user.id }}", {"k": "{{ name }}!", "n": 1.5}], [7, {"k": "Ada!", "n": 1.5}]),
    ],
)
def test_a_lone_expression_keeps_its_type(template: Any, result: Any) -> None:
    """`set` and params carry lists and numbers, not their texts."""
    found = value(template)
    assert found == Rendered(result)
    assert type(found.value) is type(result)


def test_a_missing_lone_expression_is_an_empty_text_and_noted() -> None:
    """The same rule as in text."""
    assert value("{{ nope.a }}") == Rendered("", ("nope.a",))
    assert value(["{{ nope | upper }}", "{{ [gone] }}"]) == Rendered(["", [""]], ("nope", "gone"))


@pytest.mark.parametrize(
    "template", ["{{ name.upper }}", "{{ rows | map(attribute='n') }}", "{{ range }}", "{{ {1: 2} }}"]
)
def test_what_json_cannot_carry_fails(template: str) -> None:
    """A method or a generator in the context could not be journaled."""
    with pytest.raises(RenderFailed, match="JSON"):
        value(template)


@pytest.mark.parametrize("template", ["{{ name.upper }}", "{{ rows | map(attribute='n') }}", "{{ user.items }}!"])
def test_what_has_no_stable_text_is_not_printed(template: str) -> None:
    """The address of an object differs from run to run."""
    with pytest.raises(RenderFailed, match="can't be printed"):
        text(template)


@pytest.mark.parametrize(
    "template",
    [
        "{{ ''.__class__ }}",
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ name['__class__'] }}",
        "{{ name | attr('__class__') }}",
        "{{ [name] | map(attribute='__class__') | list }}",
        "{{ '{0.__class__}'.format(name) }}",
        "{{ '{a.__class__}'.format_map({'a': name}) }}",
        "{{ cycler.__init__.__globals__ }}",
        "{{ self._TemplateReference__context }}",
        "{{ user.pop('id') }}",
        "{{ user.update(a=1) }}",
        "{{ rows.append(1) }}",
        "{% set x = user.clear() %}",
    ],
)
def test_python_internals_and_changes_are_out_of_reach(template: str) -> None:
    """A template is text with holes, not code in our process."""
    with pytest.raises(RenderFailed, match="out of reach"):
        text(template)


@pytest.mark.parametrize("template", ["{{ [1, 2] | random }}", "{{ lipsum() }}", "{{ config }}{{ request() }}"])
def test_there_are_no_dice_and_no_foreign_globals(template: str) -> None:
    """The same template and context give the same text."""
    with pytest.raises(RenderFailed):
        text(template)


@pytest.mark.parametrize(
    "template",
    [
        "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
        "{% for a in rows * 1000 %}{% for b in rows * 1000 %}{% endfor %}{% endfor %}",
        "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(60) }}",
        "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
        "{{ range(10 ** 9) }}",
        "{{ 'a' * 10 ** 9 }}",
        "{{ 10 ** 9 * [long] }}",
        "{{ [long] * 1000 }}",
        "{{ ([long] * 4) | string }}{{ (rows + [long, long, long, long, long]) | tojson }}",
        "{{ ([1, long] * 3) | join(long) }}",
        "{{ long.join(['a', 'b', 'c', 'd', 'e', 'f', 'g']) }}",
        "{{ long ~ long ~ long ~ long ~ long }}",
        "{{ long + long + long + long + long }}",
        "{% set x %}{{ long }}{{ long }}{{ long }}{{ long }}{{ long }}{% endset %}",
        "{{ long | replace('x', long) }}",
        "{{ long.replace('x', long) }}",
        "{{ 'a'.ljust(10 ** 9) }}",
        "{{ 'a' | center(1000000000) }}",
        "{{ ('a\n' * 1000) | indent(9999) }}",
        "{{ '%1000000000d' % 1 }}",
        "{{ '%*d' | format(100000000, 1) }}",
        "{{ '{:1000000000}'.format(1) }}",
        "{{ '{:{w}}'.format(1, w=1000000000) }}",
        "{{ 2 ** 1000000 }}",
        "{% set n = namespace(x=3) %}{% for i in range(64) %}{% set n.x = n.x * n.x %}{% endfor %}",
        "{% set n = namespace(x='ab') %}{% for i in range(64) %}{% set n.x = n.x ~ n.x %}{% endfor %}",
        "{{ long }}{{ long }}{{ long }}{{ long }}{{ long }}",
        "{% for i in range(100) %}{{ long }}{% endfor %}",
    ],
)
def test_bombs_are_cut_off(template: str) -> None:
    """A template neither stops a run for hours nor fills its memory."""
    with pytest.raises(RenderFailed):
        text(template)


@pytest.mark.parametrize(
    "template", ["plain text", "{{ name }} {{ name }} {{ name }}", "{{ name | upper }} {{ name }} !"]
)
def test_the_size_limit_holds_on_every_path(template: str) -> None:
    """Fast paths keep the same promise."""
    with pytest.raises(RenderFailed, match="larger than"):
        text(template, limit=8)


@pytest.mark.parametrize(
    ("template", "words"),
    [
        ("{{ name", "end of"),
        ("{% for %}", "block"),
        ("{{ name | nope }}", "nope"),
        ("a\nb\n{{ 1 / 0 }}", "line 3: division by zero"),
        ("{{ nope + 1 }}", "'nope' is undefined"),
        ("{{ " + "(" * 500 + "1" + ")" * 500 + " }}", "nested too deeply"),
        ("{{ name() }}", "line 1"),
    ],
)
def test_a_broken_template_fails_with_words(template: str, words: str) -> None:
    """Whatever goes wrong inside arrives as one kind of failure."""
    with pytest.raises(RenderFailed, match=words):
        text(template)


def test_files_keep_their_last_newline_and_include_others(tmp_path: Path) -> None:
    """Prompts look as they do in the editor; parts are shared between them."""
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "main.md").write_text(
        "Hi {{ name }}\n{% include 'p/part.md' %}{% import 'p/m.md' as m %}{{ m.b(1) }}\n"
    )
    (tmp_path / "p" / "part.md").write_bytes(
        b"id {{ user.id }}\r\n{% for row in rows %}{% include 'p/row.md' %}{% endfor %}"
    )
    (tmp_path / "p" / "row.md").write_text("- {{ row.n }}\n")
    (tmp_path / "p" / "m.md").write_text("{% macro b(x) %}<{{ x }}>{% endmacro %}")
    (tmp_path / "p" / "plain.md").write_text("just text\n")
    templates = Templates(tmp_path)
    assert templates.file("p/main.md", CONTEXT.__getitem__).value == "Hi Ada\nid 7\n- 1\n- 2\n<1>\n"
    assert templates.file("p/plain.md", CONTEXT.__getitem__).value == "just text\n"


def test_files_outside_the_directory_are_never_read(tmp_path: Path) -> None:
    """A prompt can't carry the operator's files to a model."""
    root = tmp_path / "flow"
    root.mkdir()
    (tmp_path / "secret").write_text("s3cret")
    (root / "link").symlink_to(tmp_path / "secret")
    (root / "bytes").write_bytes(b"\xff")
    for name in (
        "../secret",
        str(tmp_path / "secret"),
        "link",
        "a/../../secret",
        "~/secret",
        "..\\secret",
        "",
        "bytes",
        "none",
    ):
        for template in (f"{{% include {name!r} %}}", f"{{% import {name!r} as x %}}{{{{ x.y }}}}"):
            with pytest.raises(RenderFailed) as caught:
                Templates(root).text(template, CONTEXT.__getitem__)
            assert "s3cret" not in str(caught.value)
        with pytest.raises(RenderFailed):
            Templates(root).file(name, CONTEXT.__getitem__)
    with pytest.raises(RenderFailed):
        Templates(None).file("a", CONTEXT.__getitem__)
    assert Templates(root).text("{% include 'none' ignore missing %}x", CONTEXT.__getitem__).value == "x"


def test_a_file_that_includes_itself_is_cut_off(tmp_path: Path) -> None:
    """A circle of includes ends with words."""
    (tmp_path / "a").write_text("{% include 'a' %}{% include 'a' %}")
    with pytest.raises(RenderFailed, match="too deeply"):
        Templates(tmp_path).file("a", CONTEXT.__getitem__)


@pytest.mark.parametrize("template", ["{{ name }}", "{{ user.id }} {{ name }}", "{{ name | upper }}{{ user.id }}"])
def test_only_the_names_a_template_uses_are_looked_up(template: str) -> None:
    """The cost of a rendering does not grow with the context."""
    asked: list[str] = []

    def lookup(name: str) -> Any:
        asked.append(name)
        return CONTEXT[name]

    Templates().text(template, lookup)
    assert set(asked) <= {"name", "user"}


def test_the_context_wins_over_what_jinja_brings() -> None:
    """An output called `range` or `dict` is the author's."""
    for template in ("{{ range }}", "{{ range | upper }}", "{% set x = 1 %}{{ range }}"):
        assert Templates().text(template, {"range": "mine"}.__getitem__).value.lower() == "mine"


def test_simple_templates_need_no_jinja() -> None:
    """A hello workflow starts without paying for a template engine."""
    program = (
        "import sys; from bailiwick.lang.reading import read_template;"
        "from bailiwick.lang.templates import Templates; t = Templates();"
        "r = t.text('a {{ b.c }}', {'b': {'c': 1}}.__getitem__).value;"
        "v = t.value('{{ b }}', {'b': [1]}.__getitem__).value;"
        "print(r, v, set(read_template('{{ b }}').variables), 'jinja2' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "a 1 [1] {'b'} False\n"


def test_many_templates_do_not_pile_up() -> None:
    """A week-long run renders templates without end; the caches stay small."""
    templates = Templates()
    for number in range(1100):
        assert templates.text(f"{{{{ {number} + 1 }}}}", CONTEXT.__getitem__).value == str(number + 1)
    assert templates._engine is not None
    assert len(templates._engine._texts) <= 1024
