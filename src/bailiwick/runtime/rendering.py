"""Values as the texts of a run directory: big ones by reference, secrets taken out, long texts cut."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterable
from typing import Any

from bailiwick.engine.state import Deferred, Fetch, Scope
from bailiwick.ids import Json, digest
from bailiwick.runtime.layout import BLOBS

INLINE = 4096
"""A value whose JSON has more bytes stands as a reference to its blob."""
CAP = 1 << 20
"""A text file has at most this many bytes."""
Redact = Callable[[str], str]
Keep = Callable[[str, str], None]
_SMALL_TEXT = 680
_PLAIN = (int, float, bool, type(None))


def unredacted(text: str) -> str:
    """The text as it is."""
    return text


def is_small(value: Json) -> bool:
    """Whether a value surely stands inline, told without encoding it."""
    kind = type(value)
    return kind in _PLAIN or (kind is str and len(value) <= _SMALL_TEXT)


class Rendering:
    """Encodes values; `keep` gets the digest and the JSON of each one that is too big to stand inline."""

    def __init__(self, redact: Redact, fetch: Fetch, keep: Keep) -> None:
        self._redact = redact
        self._secrets = redact is not unredacted
        self._fetch = fetch
        self._keep = keep
        self._deferred: dict[str, str] = {}
        self._canonical = json.JSONEncoder(
            sort_keys=True, separators=(",", ":"), ensure_ascii=False, check_circular=False, default=self._resolve
        ).encode
        self._ordered = json.JSONEncoder(ensure_ascii=False, check_circular=False, default=self._resolve).encode
        self._indented = json.JSONEncoder(ensure_ascii=False, indent=2, default=self._resolve).encode

    def value(self, value: Json) -> str:
        """The canonical JSON of a value, or a reference to its blob."""
        if type(value) is not Deferred:
            return self._encoded(value)
        text = self._deferred.get(value.digest)
        if text is None:
            text = self._deferred[value.digest] = self._encoded(self._fetch(value.digest))
        return text

    def entry(self, name: str, value: Json) -> str:
        """One member of an object: the name and its value."""
        return f"{self._ordered(self._clean(name))}: {self.value(value)}"

    def line(self, value: Json) -> str:
        """A JSON value in one line, its keys in their order, nothing by reference."""
        return self._ordered(self._clean(value)) + "\n"

    def document(self, value: Json) -> str:
        """A JSON value over several lines, its keys in their order, nothing by reference."""
        return self._indented(self._clean(value)) + "\n"

    def plain(self, text: str) -> str:
        """A text for people, cut to what a file may have; its last line then says so."""
        text = self._redact(text)
        if len(text) * 4 <= CAP:
            return text
        data = text.encode("utf-8", "backslashreplace")
        if len(data) <= CAP:
            return text
        note = f"\n… cut here: {len(data)} bytes in all; the rest is in the journal\n"
        return data[: CAP - len(note.encode())].decode("utf-8", "ignore") + note

    def lines(self, values: Iterable[Json]) -> str:
        """One JSON value per line, as many as a file may have; a last line then says so."""
        out: list[str] = []
        size = 0
        for value in values:
            line = self.line(value)
            size += byte_count(line)
            if size > CAP - len(CUT_LINE.encode()):
                out.append(CUT_LINE)
                break
            out.append(line)
        return "".join(out)

    def resolved(self, value: Json) -> Json:
        """A value, fetched if it was deferred."""
        return self._fetch(value.digest) if type(value) is Deferred else value

    def _encoded(self, value: Json) -> str:
        text = self._canonical(value)
        shown = self._canonical(self._clean(value)) if self._secrets else text
        if len(text) * 4 <= INLINE or byte_count(text) <= INLINE:
            return shown
        name = digest(text)
        self._keep(name, shown)
        return f'{{"$ref": "{BLOBS}/{name}"}}'

    def _clean(self, value: Json) -> Json:
        """The value with secrets taken out of each text in it, before escapes in JSON make them look different."""
        if not self._secrets:
            return value
        match value:
            case str():
                return self._redact(value)
            case dict():
                return {self._redact(str(key)): self._clean(item) for key, item in value.items()}
            case list() | tuple():
                return [self._clean(item) for item in value]
            case Deferred():
                return self._clean(self._fetch(value.digest))
            case _:
                return value

    def _resolve(self, value: Any) -> Json:
        if type(value) is Deferred:
            return self._fetch(value.digest)
        raise TypeError(f"{type(value).__name__} is not a JSON value")


CUT_LINE = '{"cut": "the file is full; the rest is in the journal"}\n'


def byte_count(text: str) -> int:
    """How many bytes a text has in a file."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "backslashreplace"))


def joined(entries: Iterable[str]) -> str:
    """An object of encoded members, one per line."""
    body = ",\n".join(entries)
    return f"{{\n{body}\n}}\n" if body else "{}\n"


def prompt_text(rendering: Rendering, request: Json, log: dict[str, Json]) -> str:
    """What was asked or run: the prompt, else the command line, else the request."""
    asked = rendering.resolved(log.get("prompt"))
    command = rendering.resolved(log.get("command"))
    request = rendering.resolved(request)
    if isinstance(request, dict):
        asked = asked or rendering.resolved(request.get("prompt"))
        if not command and "script" in request:
            command = [request["script"], *(request.get("args") or ())]
    if isinstance(asked, str) and asked:
        text = asked
    elif isinstance(command, list):
        text = shlex.join(str(part) for part in command)
    elif command or request is None:
        text = str(command or "")
    else:
        return rendering.document(request)
    return rendering.plain(text if text.endswith("\n") else f"{text}\n")


class Contexts:
    """Contexts as texts. A value is encoded when it changed, not when it is shown: the rest is joined."""

    def __init__(self, rendering: Rendering) -> None:
        self._rendering = rendering
        self._layers: dict[str, dict[str, tuple[Json, str]]] = {}
        self._orders: dict[str, list[str]] = {}

    def text(self, scope: Scope) -> str:
        """The whole context as the scope sees it."""
        if scope.parent is None:
            layer = self.layer(scope)
            order = self._orders.get(scope.path)
            if order is None or len(order) != len(layer):
                order = self._orders[scope.path] = sorted(layer)
            return joined([layer[name][1] for name in order])
        seen = self._seen(scope)
        return joined([seen[name][1] for name in sorted(seen)])

    def layer(self, scope: Scope) -> dict[str, tuple[Json, str]]:
        """What the scope itself adds to its parent's context: each name with its value and its text."""
        layer = self._layers.setdefault(scope.path, {})
        entry = self._rendering.entry
        for source in (scope.writes, scope.inputs):
            for name, value in source.items():
                if source is scope.inputs and name in scope.writes:
                    continue
                known = layer.get(name)
                if known is None or known[0] is not value:
                    layer[name] = (value, entry(name, value))
        return layer

    def note(self, scope: Scope, name: str, value: Json) -> None:
        """Encode one value now, so that its blob does not depend on when somebody looks."""
        self._layers.setdefault(scope.path, {})[name] = (value, self._rendering.entry(name, value))

    def only(self, paths: Iterable[str]) -> None:
        """Forget every scope but these."""
        kept = set(paths)
        self._layers = {path: layer for path, layer in self._layers.items() if path in kept}

    def clear(self) -> None:
        """Forget everything."""
        self._layers.clear()
        self._orders.clear()

    def _seen(self, scope: Scope) -> dict[str, tuple[Json, str]]:
        if scope.parent is None:
            return self.layer(scope)
        return {**self._seen(scope.parent), **self.layer(scope)}
