"""Builds values from YAML events. Hostile files are refused while they are read, before anything large exists."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NoReturn

from bailiwick.errors import InputInvalid, Place, Problem
from bailiwick.lang import codes
from bailiwick.lang.values import Value, describe
from bailiwick.lang.yaml11 import Workhorse, same

if TYPE_CHECKING:
    from collections.abc import Callable

    from bailiwick.ids import Json

MAX_DEPTH = 64
MAX_VALUES = 200_000
MAX_EXPANSION = 10_000
MAX_PROBLEMS = 100

_INT = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufffe\uffff]")
_CONSTANTS: dict[str, bool | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_CORE = "tag:yaml.org,2002:"


def build(data: bytes, file: str, warnings: list[Problem] | None = None) -> Value | None:
    """The root value of one YAML document, None where there is none; raises `InputInvalid` with every problem found.

    With `warnings`, a mapping without `version:` is read as workhorse read it; where that differs is added to them.
    """
    builder = _Builder(file)
    root = builder.build(data)
    if warnings is not None and root is not None and isinstance(root.data, dict) and root.data.get("version") is None:
        builder = _Builder(file, Workhorse())
        root = builder.build(data)
        warnings += builder.warnings
    if builder.problems:
        raise InputInvalid(builder.problems)
    return root


class _Frame:
    """A collection that is still open."""

    __slots__ = ("anchor", "key", "key_mark", "mapping", "merges", "merging", "value", "weight")

    def __init__(self, value: Value, anchor: str | None) -> None:
        self.value = value
        self.anchor = anchor
        self.key: str | None = None
        self.key_mark = (0, 0)
        self.mapping = isinstance(value.data, dict)
        self.merging = False
        self.merges: list[tuple[Value, tuple[int, int]]] = []
        self.weight = 1


class _Builder:
    """Builds values from parser events; keeps going after a problem where what follows still makes sense."""

    def __init__(self, file: str, workhorse: Workhorse | None = None) -> None:
        self.file = file
        self.workhorse = workhorse
        self.problems: list[Problem] = []
        self.warnings: list[Problem] = []
        self.root: Value | None = None
        self.stack: list[_Frame] = []
        self.anchors: dict[str, tuple[Value, int] | None] = {}
        self.count = 0
        self.expanded = 0
        self.documents = 0
        self.text = ""

    def build(self, data: bytes) -> Value | None:
        import yaml

        self.text = data.decode("utf-8", "replace")
        loader: Any = (yaml.CBaseLoader if yaml.__with_libyaml__ else yaml.BaseLoader)(data)
        actions: dict[type, Callable[[Any], None]] = {
            yaml.ScalarEvent: self._scalar,
            yaml.MappingStartEvent: self._open_mapping,
            yaml.SequenceStartEvent: self._open_list,
            yaml.MappingEndEvent: self._close,
            yaml.SequenceEndEvent: self._close,
            yaml.AliasEvent: self._alias,
            yaml.DocumentStartEvent: self._document,
        }
        try:
            while (event := loader.get_event()) is not None:
                action = actions.get(type(event))
                if action is not None:
                    action(event)
                if len(self.problems) >= MAX_PROBLEMS:
                    break
        except yaml.YAMLError as error:
            self._syntax(error)
        except (ValueError, OverflowError, RecursionError):
            self._note(
                codes.SYNTAX, "the file can't be parsed as YAML", Place(self.file), "check escapes such as `\\U...`"
            )
        finally:
            loader.dispose()
        return self.root

    def _syntax(self, error: Any) -> None:
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        place = self._place(mark) if mark else Place(self.file)
        what = getattr(error, "problem", None) or getattr(error, "reason", None) or "the file can't be parsed"
        context = getattr(error, "context", None)
        hint = "check the indentation, quotes and brackets just before this place"
        if mark is not None and self._is_tab(mark):
            what, context = "there is a tab where YAML takes only spaces", None
            hint = "replace the tab by spaces; most editors can show tabs"
        self._note(codes.SYNTAX, f"YAML: {what}" + (f" ({context})" if context else ""), place, hint)

    def _is_tab(self, mark: Any) -> bool:
        """Whether a line that can't be parsed is indented with a tab, or has one at that place."""
        lines = self.text.split("\n")
        line = lines[mark.line] if mark.line < len(lines) else ""
        return "\t" in line[: len(line) - len(line.lstrip())] or line[mark.column : mark.column + 1] == "\t"

    def _document(self, event: Any) -> None:
        self.documents += 1
        if self.documents > 1:
            self._stop(codes.DOCUMENT, "a second document begins here", event, "keep one document per file")

    def _scalar(self, event: Any) -> None:
        text: str = event.value
        if not text.isprintable() and (bad := CONTROL.search(text)):
            what = f"the control character U+{ord(bad[0]):04X} is not allowed"
            hint = "leave the escape out; a script can print such characters"
            self._note(codes.CHARACTERS, what, self._place(event.start_mark), hint)
            text = CONTROL.sub("", text)
        self._count(event)
        frame = self.stack[-1] if self.stack else None
        if frame is not None and frame.key is None and frame.mapping:
            self._key(frame, text, event)
            return
        data = self._resolve(text, event) if event.implicit[0] or event.tag else text
        self._add(self._value(data, event), event.anchor, 1 + len(text) // 256)

    def _key(self, frame: _Frame, text: str, event: Any) -> None:
        mark = event.start_mark
        if event.tag not in (None, "!", _CORE + "str"):
            self._note(
                codes.TAG, f"the tag {_short(event.tag)} can't be used on a key", self._place(mark), "remove the tag"
            )
        if event.anchor:
            self.anchors[event.anchor] = (self._value(text, event), 1)
        if text == "<<" and event.implicit[0]:
            frame.merging = True
        elif text in frame.value.marks:
            line, column = frame.value.marks[text]
            what = f"the key {text!r} is given twice, first at {line}:{column}"
            self._note(codes.DUPLICATE_KEY, what, self._place(mark), "remove or rename one of the two")
        frame.key, frame.key_mark = text, (mark.line + 1, mark.column + 1)

    def _open_mapping(self, event: Any) -> None:
        self._open(event, {}, "map")

    def _open_list(self, event: Any) -> None:
        self._open(event, [], "seq")

    def _open(self, event: Any, data: Json, tag: str) -> None:
        if len(self.stack) >= MAX_DEPTH:
            self._stop(codes.TOO_DEEP, f"values are nested deeper than {MAX_DEPTH}", event, "flatten the structure")
        if self.stack and self.stack[-1].key is None and self.stack[-1].mapping:
            self._stop(
                codes.WRONG_TYPE,
                "a key has to be text, found a collection",
                event,
                "quote text that begins with [ or {",
            )
        if event.tag not in (None, "!", _CORE + tag):
            what = f"the tag {_short(event.tag)} is not known"
            self._note(codes.TAG, what, self._place(event.start_mark), "remove the tag")
        if event.anchor:
            self.anchors[event.anchor] = None
        self._count(event)
        self.stack.append(_Frame(self._value(data, event), event.anchor))

    def _close(self, _: Any) -> None:
        frame = self.stack.pop()
        for merged, mark in frame.merges:
            self._merge(frame.value, merged, Place(self.file, *mark))
        self._add(frame.value, frame.anchor, frame.weight)

    def _merge(self, into: Value, merged: Value, place: Place) -> None:
        for source in merged.items or [merged]:
            if not isinstance(source.data, dict):
                what = f"`<<` takes a mapping or a list of them, found {describe(source.data)}"
                self._note(codes.WRONG_TYPE, what, place, "merge a mapping by its alias: `<<: *name`")
                continue
            for key, value in source.entries.items():
                if key not in into.entries:
                    into.entries[key] = value
                    into.data[key] = value.data
                    into.marks[key] = source.marks[key]

    def _alias(self, event: Any) -> None:
        name = event.anchor
        if self.stack and self.stack[-1].key is None and self.stack[-1].mapping:
            self._stop(codes.WRONG_TYPE, f"a key has to be text, found the alias *{name}", event, "write the key out")
        if name not in self.anchors:
            self._stop(
                codes.SYNTAX, f"the alias *{name} has no anchor before it", event, f"write &{name} at the value meant"
            )
        found = self.anchors[name]
        if found is None:
            self._stop(codes.TOO_DEEP, f"the alias *{name} is inside its own value", event, "write the value out")
        value, weight = found
        self.expanded += weight
        if self.expanded > MAX_EXPANSION:
            what = f"aliases expand this file by more than {MAX_EXPANSION:,} values"
            self._stop(codes.TOO_DEEP, what, event, "write fewer or smaller aliases")
        self._count(event)
        shown = self._value(value.data, event)
        shown.entries, shown.marks, shown.items = value.entries, value.marks, value.items
        self._add(shown, None, weight)

    def _add(self, value: Value, anchor: str | None, weight: int) -> None:
        if anchor:
            self.anchors[anchor] = (value, weight)
        if not self.stack:
            self.root = value
            return
        frame = self.stack[-1]
        frame.weight += weight
        if frame.key is None:
            frame.value.items.append(value)
            frame.value.data.append(value.data)
        elif frame.merging:
            frame.merges.append((value, frame.key_mark))
            frame.key, frame.merging = None, False
        else:
            if frame.key not in frame.value.entries:
                frame.value.entries[frame.key] = value
                frame.value.marks[frame.key] = frame.key_mark
                frame.value.data[frame.key] = value.data
            frame.key = None

    def _resolve(self, text: str, event: Any) -> Json:
        tag: str | None = event.tag
        if tag in ("!", _CORE + "str"):
            return text
        if tag is not None and tag not in _SCALAR_TAGS:
            self._note(
                codes.TAG, f"the tag {_short(tag)} is not known", self._place(event.start_mark), "remove the tag"
            )
            return text
        data = self._core(text, event) if self.workhorse is None else self._old(text, event, self.workhorse)
        if tag is not None and not isinstance(data, _SCALAR_TAGS[tag]):
            self._note(
                codes.TAG, f"{describe(data)} is not a {_short(tag)}", self._place(event.start_mark), "remove the tag"
            )
        return data

    def _core(self, text: str, event: Any) -> Json:
        if text in _CONSTANTS:
            return _CONSTANTS[text]
        if text[0] not in "-+.0123456789":
            return text
        if _INT.fullmatch(text):
            return self._int(text, event)
        if _FLOAT.fullmatch(text):
            number = float(text)
            if abs(number) != float("inf"):
                return number
        elif not _NOT_FINITE.fullmatch(text):
            return text
        what = f"{_cut(text)} is not a finite number"
        self._note(codes.NUMBER, what, self._place(event.start_mark), "quote it if it is meant as text")
        return 0

    def _old(self, text: str, event: Any, workhorse: Workhorse) -> Json:
        """The scalar as workhorse read it, with a warning where `version: 1` makes something else of it."""
        before = len(self.problems)
        new = self._core(text, event)
        modern = "an error" if len(self.problems) > before else describe(new)
        del self.problems[before:]
        place = self._place(event.start_mark)
        try:
            old = workhorse.read(text, event.tag)
        except ValueError as error:
            what = f"{_cut(text)} can't be read as YAML 1.1 reads it: {error}"
            self._note(codes.NUMBER, what, place, "quote it if it is meant as text")
            return 0
        if isinstance(old, int | float) and not -(1 << 63) <= old < 1 << 63:
            what = f"{_cut(text)} is not a finite number of 64 bits"
            self._note(codes.NUMBER, what, place, "quote it if it is meant as text")
            return 0
        if modern == "an error" or not same(old, new):
            what = f"{_cut(text)} is read as {describe(old)}, as in every file without `version:`"
            hint = f"with `version: 1` it is {modern}; quote it, or write the value plainly"
            self.warnings.append(Problem(codes.YAML_1_1, what, place, hint, warning=True))
        return old

    def _int(self, text: str, event: Any) -> int:
        base = {"0o": 8, "0x": 16}.get(text[:2], 10)
        digits = text[2:] if base != 10 else text
        if len(digits.lstrip("+-0")) <= 24:
            sign = -1 if digits.startswith("-") else 1
            number = sign * int(digits.lstrip("+-").lstrip("0") or "0", base)
            if -(1 << 63) <= number < 1 << 63:
                return number
        what = f"the integer {_cut(text)} does not fit in 64 bits"
        self._note(codes.NUMBER, what, self._place(event.start_mark), "quote it if it is meant as text")
        return 0

    def _count(self, event: Any) -> None:
        self.count += 1
        if self.count > MAX_VALUES:
            self._stop(codes.TOO_DEEP, f"the file holds more than {MAX_VALUES:,} values", event, "split it")

    def _value(self, data: Json, event: Any) -> Value:
        mark = event.start_mark
        return Value(data, self.file, mark.line + 1, mark.column + 1)

    def _place(self, mark: Any) -> Place:
        return Place(self.file, mark.line + 1, mark.column + 1)

    def _note(self, code: str, what: str, place: Place, hint: str) -> None:
        self.problems.append(Problem(code, what, place, hint))

    def _stop(self, code: str, what: str, event: Any, hint: str) -> NoReturn:
        self._note(code, what, self._place(event.start_mark), hint)
        raise InputInvalid(self.problems)


_SCALAR_TAGS: dict[str, tuple[type, ...]] = {
    _CORE + "int": (int,),
    _CORE + "float": (float, int),
    _CORE + "bool": (bool,),
    _CORE + "null": (type(None),),
}


def _short(tag: str) -> str:
    return "!!" + tag[len(_CORE) :] if tag.startswith(_CORE) else _cut(tag)


def _cut(text: str) -> str:
    return text if len(text) <= 40 else text[:40] + "…"
