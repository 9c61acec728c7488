"""What a template reads: the variables nobody in it sets, the files it includes. For checks; nothing is rendered."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from bailiwick.engine.render import RenderFailed

MARKS = ("{{", "{%", "{#")
WORDS = frozenset({
    "true", "false", "none", "True", "False", "None", "not", "and", "or", "in", "is", "if", "else",
    "self", "super", "loop", "caller", "varargs", "kwargs", "range", "dict", "cycler", "joiner", "namespace",
})  # fmt: skip
"""Names that Jinja2 gives a meaning of its own."""

_SIMPLE = re.compile(r"\{\{[ \t]*([A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*)[ \t]*\}\}")


class TemplateBroken(RenderFailed):
    """A template that can't be parsed; `line` counts from 1 in the template's own text."""

    def __init__(self, what: str, line: int) -> None:
        super().__init__(what)
        self.line = line


class NoSuchFile(RenderFailed):
    """A template file that is not there."""


@dataclass(frozen=True, slots=True)
class Include:
    """Files of which a template takes the first that exists; `optional` if it may be none."""

    names: tuple[str, ...]
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Reading:
    """What a template reads; `dynamic` says that it also includes files whose names are only known when it runs."""

    variables: frozenset[str] = frozenset()
    includes: tuple[Include, ...] = ()
    dynamic: bool = False


NOTHING = Reading()


def is_plain(text: str) -> bool:
    """Whether a text holds no template syntax at all."""
    return "{" not in text or not any(mark in text for mark in MARKS)


def simple_parts(text: str) -> list[str] | None:
    """Literals and dotted names in turn, where a text has no other syntax than `{{ a.b }}`; None where it has."""
    parts = _SIMPLE.split(text)
    for literal in parts[::2]:
        if literal.endswith("{") or not is_plain(literal):
            return None
    if any(name.split(".", 1)[0] in WORDS for name in parts[1::2]):
        return None
    return parts


def read_template(text: str) -> Reading:
    """What a template reads; raises `TemplateBroken` if it can't be parsed or uses a filter that does not exist."""
    if is_plain(text):
        return NOTHING
    parts = simple_parts(text)
    if parts is not None:
        return Reading(frozenset(name.split(".", 1)[0] for name in parts[1::2]))
    return _parsed(text)


def _parsed(text: str) -> Reading:
    from jinja2 import meta, nodes
    from jinja2.exceptions import TemplateSyntaxError

    env = _environment()
    try:
        tree = env.parse(text)
    except TemplateSyntaxError as error:
        raise TemplateBroken(error.message or "syntax error", error.lineno) from None
    except RecursionError:
        raise TemplateBroken("the template is nested too deeply", 1) from None
    except (ValueError, OverflowError, MemoryError) as error:
        raise TemplateBroken(str(error), 1) from None
    for kind, known in ((nodes.Filter, env.filters), (nodes.Test, env.tests)):
        for node in tree.find_all(kind):
            if node.name not in known:
                raise TemplateBroken(f"there is no {kind.__name__.lower()} named {node.name!r}", node.lineno)
    names = frozenset(meta.find_undeclared_variables(tree)) - WORDS
    includes, dynamic = _includes(tree)
    return Reading(names, includes, dynamic)


def _includes(tree: Any) -> tuple[tuple[Include, ...], bool]:
    from jinja2 import nodes

    found: list[Include] = []
    dynamic = False
    for node in tree.find_all((nodes.Include, nodes.Import, nodes.FromImport, nodes.Extends)):
        optional = bool(getattr(node, "ignore_missing", False))
        try:
            names = node.template.as_const()
        except nodes.Impossible:
            dynamic = True
            continue
        listed = (names,) if isinstance(names, str) else tuple(names) if isinstance(names, list | tuple) else ()
        if listed:
            found.append(Include(tuple(str(name) for name in listed), optional))
        dynamic = dynamic or not listed
    return tuple(found), dynamic


_cached: list[Any] = []


def _environment() -> Any:
    """One environment for all readings: it holds no state of a workflow."""
    if not _cached:
        from bailiwick.lang.template_sandbox import TemplateEnvironment

        _cached.append(TemplateEnvironment(limit=1))
    return _cached[0]
