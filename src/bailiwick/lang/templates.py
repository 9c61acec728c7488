"""Renders the templates of one workflow. Jinja2 is loaded only for templates that need more than `{{ a.b }}`.

A rendered value is never read as a template again. A missing variable renders empty and is named in the result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bailiwick.engine.render import Lookup, Rendered, Renderer, RenderFailed
from bailiwick.lang.paths import PathRefused, regular, regular_or_shared
from bailiwick.lang.reading import NoSuchFile, is_plain, simple_parts

if TYPE_CHECKING:
    from pathlib import Path

    from bailiwick.ids import Json
    from bailiwick.lang.jinja import JinjaTemplates

MAX_OUTPUT = 4 << 20
_MAX_FILE = 4 << 20
_CACHED = 4096
_ABSENT = object()


class _NeedsJinja(Exception):
    """A dotted name touches something that only Jinja2's own rules can decide."""


class Templates(Renderer):
    """The renderer of a workflow whose files lie in `root`; with `strict` a missing name fails the rendering.

    With `shared`, parts that come with Bailiwick are found too: a run has them among its own files, a workflow not.
    """

    def __init__(
        self, root: Path | None = None, strict: bool = False, limit: int = MAX_OUTPUT, *, shared: bool = False
    ) -> None:
        self._root = root
        self._find = regular_or_shared if shared else regular
        self._strict = strict
        self._limit = limit
        self._plans: dict[str, list[str] | None] = {}
        self._files: dict[str, str] = {}
        self._engine: JinjaTemplates | None = None

    def text(self, template: str, lookup: Lookup) -> Rendered:
        return self._render(_inline(template), lookup)

    def value(self, template: Json, lookup: Lookup) -> Rendered:
        missing: dict[str, None] = {}
        value = self._value(template, lookup, missing)
        return Rendered(value, tuple(missing))

    def file(self, name: str, lookup: Lookup) -> Rendered:
        """The text of a template file of the workflow directory; unlike inline text it keeps its last newline."""
        return self._render(self.source(name), lookup)

    def source(self, name: str) -> str:
        """The text of a file of the workflow directory, with plain newlines; read once."""
        if name not in self._files:
            self._files[name] = self._read(name)
        return self._files[name]

    def _read(self, name: str) -> str:
        if self._root is None:
            raise RenderFailed(f"there is no directory to read {name!r} from")
        try:
            path = self._find(self._root, name)
            if path.stat().st_size > _MAX_FILE:
                raise RenderFailed(f"the file {name!r} is larger than {_MAX_FILE:,} bytes")
            return _newlines(path.read_bytes().decode("utf-8").removeprefix("\ufeff"))
        except PathRefused as refused:
            if not self._root.is_dir():
                what = f"the pinned copy of {name!r} is gone with its directory {self._root}"
                raise RenderFailed(f"{what}; `bailiwick runs reload` makes it again") from None
            raise (NoSuchFile if refused.missing else RenderFailed)(refused.what) from None
        except UnicodeDecodeError as error:
            raise RenderFailed(f"the file {name!r} is not UTF-8 at offset {error.start}") from None
        except OSError as error:
            raise RenderFailed(f"the file {name!r} can't be read: {error.strerror}") from None

    def _value(self, template: Json, lookup: Lookup, missing: dict[str, None]) -> Json:
        if isinstance(template, str):
            rendered = self._lone(template.strip(), lookup) or self.text(template, lookup)
            missing.update(dict.fromkeys(rendered.missing))
            return rendered.value
        if isinstance(template, list):
            return [self._value(item, lookup, missing) for item in template]
        if isinstance(template, dict):
            return {key: self._value(item, lookup, missing) for key, item in template.items()}
        return template

    def _lone(self, text: str, lookup: Lookup) -> Rendered | None:
        """The typed value of a text that is one expression and nothing else; None where it is more than that."""
        if not (text.startswith("{{") and text.endswith("}}")):
            return None
        parts = self._plan(text)
        if parts is not None and len(parts) == 3 and parts[0] == parts[2] == "":
            missing: dict[str, None] = {}
            try:
                value = self._dotted(parts[1], lookup, missing)
                return Rendered("" if value is _ABSENT else value, tuple(missing))
            except _NeedsJinja:
                pass
        elif parts is not None:
            return None
        return self._jinja().evaluate(text, lookup)

    def _render(self, text: str, lookup: Lookup) -> Rendered:
        if is_plain(text):
            self._fits(len(text))
            return Rendered(text)
        parts = self._plan(text)
        if parts is not None:
            missing: dict[str, None] = {}
            try:
                done = [self._print(part, lookup, missing) if odd % 2 else part for odd, part in enumerate(parts)]
                self._fits(sum(map(len, done)))
                return Rendered("".join(done), tuple(missing))
            except _NeedsJinja:
                pass
        return self._jinja().render(text, lookup)

    def _plan(self, text: str) -> list[str] | None:
        if text not in self._plans:
            if len(self._plans) >= _CACHED:
                self._plans.clear()
            self._plans[text] = simple_parts(text)
        return self._plans[text]

    def _print(self, path: str, lookup: Lookup, missing: dict[str, None]) -> str:
        value = self._dotted(path, lookup, missing)
        return "" if value is _ABSENT else value if isinstance(value, str) else str(value)

    def _dotted(self, path: str, lookup: Lookup, missing: dict[str, None]) -> Any:
        """The value at a dotted path by Jinja2's rules; notes a missing one. Methods of values are left to Jinja2."""
        first, *rest = path.split(".")
        try:
            value = lookup(first)
        except KeyError:
            return self._missed(path, missing)
        for part in rest:
            if hasattr(value, part):
                raise _NeedsJinja
            if not isinstance(value, dict) or part not in value:
                return self._missed(path, missing)
            value = value[part]
        return value

    def _missed(self, path: str, missing: dict[str, None]) -> object:
        if self._strict:
            raise RenderFailed(f"{path!r} is missing")
        missing[path] = None
        return _ABSENT

    def _fits(self, size: int) -> None:
        if size > self._limit:
            raise RenderFailed(f"the rendered text is larger than {self._limit:,} characters")

    def _jinja(self) -> JinjaTemplates:
        if self._engine is None:
            from bailiwick.lang.jinja import JinjaTemplates

            self._engine = JinjaTemplates(self.source, self._strict, self._limit)
        return self._engine


def _newlines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def _inline(text: str) -> str:
    """Inline text loses one newline at its end, as YAML's `|` adds one."""
    return _newlines(text).removesuffix("\n")
