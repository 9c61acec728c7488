"""Compiles and runs templates with Jinja2. Whatever goes wrong inside comes out as `RenderFailed`, with the line."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jinja2 import BaseLoader, Environment, Template, TemplateError, TemplateNotFound, nodes
from jinja2.runtime import Undefined

from bailiwick.engine.render import Lookup, Rendered, RenderFailed
from bailiwick.lang.reading import NoSuchFile, TemplateBroken
from bailiwick.lang.template_sandbox import CURRENT, TemplateEnvironment, TemplateRender

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bailiwick.ids import Json

_CACHED = 1024
_RESULT = "_lone_value"


@dataclass(frozen=True, slots=True)
class _Compiled:
    template: Template
    chains: tuple[str, ...]


class JinjaTemplates:
    """Templates by their text, compiled once each; included files come from `source`."""

    def __init__(self, source: Callable[[str], str], strict: bool, limit: int) -> None:
        self._env = TemplateEnvironment(limit, loader=_Files(source))
        self._strict = strict
        self._limit = limit
        self._texts: dict[str, _Compiled] = {}
        self._values: dict[str, _Compiled | None] = {}

    def render(self, text: str, lookup: Lookup) -> Rendered:
        """The text of a template, cut off with `RenderFailed` where it grows over the limit."""
        if text not in self._texts:
            _make_room(self._texts)
            self._texts[text] = self._compile(self._parse(text))
        compiled = self._texts[text]
        current = TemplateRender(lookup, self._strict, compiled.chains)
        done: list[str] = []
        size = 0
        with _running(current, compiled.template):
            for chunk in compiled.template.root_render_func(compiled.template.new_context()):
                size += len(chunk)
                if size > self._limit:
                    raise RenderFailed(f"the rendered text is larger than {self._limit:,} characters")
                done.append(chunk)
        return Rendered("".join(done), tuple(current.missed))

    def evaluate(self, text: str, lookup: Lookup) -> Rendered | None:
        """The typed value of a text that is one lone expression; None if it is anything else."""
        if text not in self._values:
            _make_room(self._values)
            self._values[text] = self._compile_lone(self._parse(text))
        compiled = self._values[text]
        if compiled is None:
            return None
        current = TemplateRender(lookup, self._strict, compiled.chains)
        with _running(current, compiled.template):
            context = compiled.template.new_context()
            for _ in compiled.template.root_render_func(context):
                pass
            value = _json(context.vars[_RESULT])
        return Rendered(value, tuple(current.missed))

    def _parse(self, text: str) -> nodes.Template:
        with _compiling():
            return self._env.parse(text)

    def _compile(self, tree: nodes.Template) -> _Compiled:
        chains = tuple(dict.fromkeys(filter(None, map(_chain, tree.find_all(nodes.Getattr)))))
        with _compiling():
            return _Compiled(self._env.from_string(tree), chains)

    def _compile_lone(self, tree: nodes.Template) -> _Compiled | None:
        match tree.body:
            case [nodes.Output(nodes=[expression])] if not isinstance(expression, nodes.TemplateData):
                assign = nodes.Assign(nodes.Name(_RESULT, "store"), expression, lineno=1)
                return self._compile(nodes.Template([assign], lineno=1).set_environment(self._env))  # type: ignore[arg-type]
            case _:
                return None


class _Files(BaseLoader):
    """Finds included files through the workflow's own reader, which keeps to the workflow directory."""

    def __init__(self, source: Callable[[str], str]) -> None:
        self._source = source

    def get_source(self, environment: Environment, template: str) -> tuple[str, str | None, Callable[[], bool] | None]:
        try:
            return self._source(template), template, None
        except NoSuchFile as error:
            raise TemplateNotFound(template, str(error)) from None


def _chain(node: nodes.Expr) -> str:
    """`a.b.c` as written; empty for an attribute of anything but a name."""
    parts: list[str] = []
    while isinstance(node, nodes.Getattr):
        parts.append(node.attr)
        node = node.node
    return ".".join([node.name, *reversed(parts)]) if isinstance(node, nodes.Name) else ""


def _make_room(cache: dict[str, Any]) -> None:
    if len(cache) >= _CACHED:
        cache.clear()


@contextmanager
def _compiling() -> Iterator[None]:
    try:
        yield
    except TemplateError as error:
        raise TemplateBroken(error.message or type(error).__name__, getattr(error, "lineno", None) or 1) from None
    except (RecursionError, SyntaxError, MemoryError):
        raise TemplateBroken("the template is nested too deeply", 1) from None
    except (ValueError, OverflowError) as error:
        raise TemplateBroken(str(error), 1) from None


@contextmanager
def _running(current: TemplateRender, template: Template) -> Iterator[None]:
    token = CURRENT.set(current)
    try:
        yield
    except RenderFailed:
        raise
    except TemplateNotFound as error:
        raise RenderFailed(f"line {_line(error, template)}: {error.message or error.name}") from None
    except RecursionError:
        raise RenderFailed("the template calls itself too deeply") from None
    except Exception as error:  # noqa: BLE001 filters and operators raise what they like; it stops here
        raise RenderFailed(f"line {_line(error, template)}: {str(error) or type(error).__name__}") from None
    finally:
        CURRENT.reset(token)


def _line(error: BaseException, template: Template) -> int:
    """The line of the outermost template text that the error went through."""
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_globals.get("__jinja_template__") is template or "root" in trace.tb_frame.f_code.co_name:
            return template.get_corresponding_lineno(trace.tb_lineno)
        trace = trace.tb_next
    return 1


def _json(value: Any) -> Json:
    """A plain JSON value; tuples become lists, a missing name an empty text. Other objects are refused."""
    if isinstance(value, Undefined):
        return str(value)
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, str):
        return str(value)
    if isinstance(value, float) and math.isfinite(value):
        return value
    if isinstance(value, list | tuple):
        return [_json(item) for item in value]
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {key: _json(item) for key, item in value.items()}
    raise RenderFailed(
        f"the expression gives a {type(value).__name__}, which is not a JSON value; add `| list` or call it"
    )
