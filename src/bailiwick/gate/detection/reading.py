"""Reads the files in which Python projects say what they need. Pure, and never raises: what can't be read is empty."""

from __future__ import annotations

import ast
import configparser
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from bailiwick.gate.diffs.syntax import called_name

NAME = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)")
_COMMENT = re.compile(r"(?:^|\s)#.*$")


def normal(name: str) -> str:
    """The name of a distribution, an extra or a group as indexes compare them."""
    return re.sub(r"[-_.]+", "-", name).lower()


def name_of(requirement: str) -> str:
    """The normal name of the distribution that a requirement asks for; empty where there is none."""
    found = NAME.match(requirement)
    return normal(found[1]) if found else ""


def text_of(texts: Mapping[str, bytes], path: str) -> str:
    """A file as text; empty where it is not there."""
    return texts.get(path, b"").decode("utf-8", "replace")


def toml_of(texts: Mapping[str, bytes], path: str) -> dict[str, Any]:
    """A TOML file as a document."""
    try:
        return tomllib.loads(text_of(texts, path))
    except (tomllib.TOMLDecodeError, RecursionError):
        return {}


def ini_of(texts: Mapping[str, bytes], path: str) -> configparser.RawConfigParser:
    """An INI file as sections."""
    parser = configparser.RawConfigParser(strict=False, allow_no_value=True)
    try:
        parser.read_string(text_of(texts, path))
    except configparser.Error:
        return configparser.RawConfigParser()
    return parser


def dig(document: object, *keys: str) -> Any:
    """What stands below some keys; None where one of them is not there."""
    for key in keys:
        if not isinstance(document, dict):
            return None
        document = document.get(key)
    return document


def strings(value: object) -> tuple[str, ...]:
    """The texts in a list, or the lines of a text."""
    if isinstance(value, str):
        return lines_of(value)
    return tuple(entry for entry in value if isinstance(entry, str)) if isinstance(value, (list, tuple)) else ()


def lines_of(text: str) -> tuple[str, ...]:
    """The lines of a text that say something, without comments."""
    cut = (_COMMENT.sub("", line).strip() for line in text.replace("\\\n", " ").splitlines())
    return tuple(line for line in cut if line)


def table(value: object) -> dict[str, Any]:
    """A mapping, or an empty one."""
    return value if isinstance(value, dict) else {}


class SetupPy:
    """What a `setup.py` says in words that need no running: literals, and names that literals were given."""

    def __init__(self, text: str) -> None:
        self.arguments: dict[str, object] = {}
        try:
            module = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError):
            return
        self._names: dict[str, ast.expr] = {}
        for node in ast.walk(module):
            if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
                self._names[node.targets[0].id] = node.value
        for call in ast.walk(module):
            if isinstance(call, ast.Call) and called_name(call) == "setup":
                self._read(call)

    def _read(self, call: ast.Call) -> None:
        for keyword in call.keywords:
            if keyword.arg is not None:
                self.arguments[keyword.arg] = self._value(keyword.value, 0)
            elif isinstance(given := self._value(keyword.value, 0), dict):
                self.arguments.update(given)

    def _value(self, node: ast.expr, depth: int) -> object:
        """The value of an expression as far as it is written out; None for the rest."""
        if depth > 8:
            return None
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Name):
            known = self._names.get(node.id)
            return self._value(known, depth + 1) if known is not None else None
        if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
            return [value for item in node.elts if (value := self._value(item, depth + 1)) is not None]
        if isinstance(node, ast.Dict):
            pairs = ((key, self._value(value, depth + 1)) for key, value in zip(node.keys, node.values, strict=True))
            return {key.value: value for key, value in pairs if isinstance(key, ast.Constant)}
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            return _joined(self._value(node.left, depth + 1), self._value(node.right, depth + 1))
        if isinstance(node, ast.Call) and called_name(node) == "dict":
            return {k.arg: self._value(k.value, depth + 1) for k in node.keywords if k.arg is not None}
        return None


def _joined(left: object, right: object) -> object:
    if isinstance(left, list) and isinstance(right, list):
        return [*left, *right]
    return left if left is not None else right


def sections(parser: configparser.RawConfigParser) -> dict[str, dict[str, str]]:
    """Every section with its values, names of keys with `_` for `-`."""
    return {
        section: {key.replace("-", "_"): value or "" for key, value in parser.items(section)}
        for section in parser.sections()
    }


def requirement_lines(text: str) -> Iterator[str]:
    """The requirements of a requirements file; options, files and addresses are left out."""
    for line in lines_of(text):
        if NAME.match(line) and "://" not in line.partition(";")[0].partition("@")[0]:
            yield re.split(r"\s--hash", line)[0].strip()


def unique(words: Iterable[str]) -> tuple[str, ...]:
    """Each once, in order."""
    return tuple(dict.fromkeys(words))
