"""Why a test failed: for the right reason (an assertion, a missing symbol) or because the test itself is broken. Pure.

What is read is foreign text, so a reason that is not recognised is not the right one.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Kind = Literal["assertion", "missing", "broken", "none", "unknown"]
"""An assertion; a symbol that is not there yet; a test that can never pass as it is; no test ran; anything else."""


@dataclass(frozen=True, slots=True)
class FailureReason:
    """The kind of a failure, the line that shows it, and the line of the test file at which it came to light."""

    kind: Kind
    line: str = ""
    at: int = 0

    @property
    def right(self) -> bool:
        """Whether a test that fails like this proves that something has to be written."""
        return self.kind in ("assertion", "missing")


_CRASH = re.compile(r"^(?P<path>\S.*?):(?P<line>\d+): (?P<name>[A-Za-z_][\w.]*)$", re.MULTILINE)
_STEP = re.compile(r"^(?P<path>\S.*?):(?P<line>\d+):(?: .*)?$", re.MULTILINE)
_SAID = re.compile(r"^E +(?P<name>[A-Za-z_][\w.]*(?:Error|Exception|Failed|Warning|Exit))(?:: (?P<text>.*))?$")
_NO_MODULE = re.compile(r"No module named '(?P<name>[\w.]+)'")
_NO_ATTRIBUTE = re.compile(r"(?P<what>module|type object)? ?'(?P<owner>[\w.]+)'(?: object)? has no attribute")
_SYNTAX = ("SyntaxError", "IndentationError", "TabError")
_ASSERTIONS = ("AssertionError", "Failed")
_NO_PARAMETER = re.compile(r"got an unexpected keyword argument|takes \d+ positional arguments? but \d+")
_TOOLS = frozenset({"pytest", "unittest", "mock", "hypothesis"})


def pytest_reason(text: str, test_file: str, declared: Iterable[str] = ()) -> FailureReason:
    """Why pytest says that a test, or its whole file, failed. `text` is its long form.

    `declared` are packages that the project says it needs: one that is missing is missing here, not in the code.
    """
    if "fixture '" in text and "' not found" in text:
        return FailureReason("broken", _line_with(text, "' not found"))
    name, said = _last_error(text)
    line = f"{name}: {said}".removesuffix(": ")
    if name in _SYNTAX:
        return FailureReason("broken", line)
    if name in _ASSERTIONS:
        return FailureReason("assertion", said or "assertion failed", _crash_line(text, test_file))
    if name in ("ImportError", "ModuleNotFoundError"):
        return FailureReason(_import_kind(said, declared), line)
    if name == "AttributeError":
        return FailureReason(_attribute_kind(said), line)
    if name == "NameError":
        return FailureReason("broken" if _crash_file(text).endswith(test_file) else "missing", line)
    if name == "NotImplementedError" or (name == "TypeError" and _NO_PARAMETER.search(said)):
        return FailureReason("missing", line)
    return FailureReason("unknown", line or _last_line(text))


def _last_error(text: str) -> tuple[str, str]:
    """The exception that ended a test, and what it said: as pytest marks its lines, else as it ends its report."""
    crash = [found["name"] for found in _CRASH.finditer(text)]
    said = [(found["name"], found["text"] or "") for line in text.splitlines() if (found := _SAID.match(line))]
    if crash:
        name = crash[-1].rpartition(".")[2]
        told = [words for kind, words in said if kind.rpartition(".")[2] == name]
        return name, told[-1] if told else _first_marked(text)
    if said:
        return said[-1][0].rpartition(".")[2], said[-1][1]
    return "", ""


def _first_marked(text: str) -> str:
    return next((line[1:].strip() for line in text.splitlines() if line.startswith("E  ")), "")


def _crash_file(text: str) -> str:
    found = [match["path"] for match in _CRASH.finditer(text)]
    return found[-1] if found else ""


def _crash_line(text: str, test_file: str) -> int:
    """The last line of the test file that is on the way to the failure; 0 where none is told."""
    lines = [int(found["line"]) for found in _STEP.finditer(text) if found["path"].endswith(test_file)]
    return lines[-1] if lines else 0


def fails_always(source: bytes, line: int) -> str:
    """The statement on a line of Python where it fails whatever the product does, such as `assert False`; else ""."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return ""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assert) and node.lineno <= line <= (node.end_lineno or line):
            constant = isinstance(node.test, ast.Constant)
            return ast.unparse(node) if constant else ""
    return ""


def _import_kind(said: str, declared: Iterable[str]) -> Kind:
    if "attempted relative import" in said or "circular import" in said:
        return "broken"
    module = _NO_MODULE.search(said)
    top = module["name"].partition(".")[0] if module else ""
    known = {name.replace("-", "_").casefold() for name in declared} | _TOOLS | sys.stdlib_module_names
    if module and (top.casefold() in known or top.startswith("pytest_")):
        return "broken"
    return "missing"


def _attribute_kind(said: str) -> Kind:
    found = _NO_ATTRIBUTE.search(said)
    owner = found["owner"].partition(".")[0] if found else ""
    if owner in _TOOLS or owner in sys.stdlib_module_names or re.match(r"Test|.*TestCase$", owner):
        return "broken"
    return "missing"


_NOTHING_RAN = (
    r"no tests? ran|NO TESTS RAN|Ran 0 tests|collected 0 items|No tests found|No test files found|no test files\]"
    r"|no tests to run|# tests 0\b|0 tests? passed, 0|Tests: +0 total|no such test"
)
_BROKEN = (
    r"\b(?:SyntaxError|IndentationError|TabError): (?!.*does not provide an export named)"
    r"|: syntax error[:,]|\bexpected (?:declaration|statement|';'|expression|operand), found|error: expected .*, found"
    r"|error: (?:unexpected closing|this file contains an unclosed|mismatched closing)|Parsing error:|Unexpected token"
    r"|fixture '\w+' not found|panic: runtime error|Segmentation fault"
)
_MISSING = (
    r"Cannot find module|ERR_MODULE_NOT_FOUND|does not provide an export named|is not a function|is not a constructor"
    r"|Failed to resolve import|has no exported member|ReferenceError: \w+ is not defined"
    r"|: undefined: \w|undefined \(type .* has no field or method|is not in std|undefined reference to"
    r"|error\[E0(?:425|432|433|412|599|560|609|061)\]|ModuleNotFoundError|ImportError: cannot import name"
    r"|AttributeError: (?:module|type object)|NotImplementedError|NoMethodError|uninitialized constant"
)
_ASSERTED = (
    r"AssertionError|ERR_ASSERTION|expect\(received\)|AssertionFailedError|assertion .*failed|assertion `"
    r"|^\s*--- FAIL: |^FAILED \(failures=|\d+ examples?, [1-9]\d* failures?"
)


def output_reason(text: str) -> FailureReason:
    """Why another runner failed, by the shapes that node, go, cargo, unittest and their like print."""
    for kind, shape in (("broken", _BROKEN), ("missing", _MISSING), ("assertion", _ASSERTED), ("none", _NOTHING_RAN)):
        found = re.search(shape, text, re.MULTILINE)
        if found:
            return FailureReason(_KINDS[kind], _line_at(text, found.start()))
    return FailureReason("unknown", _last_line(text))


_KINDS: dict[str, Kind] = {"broken": "broken", "missing": "missing", "assertion": "assertion", "none": "none"}


def nothing_ran(text: str) -> str:
    """The line by which a runner says that it ran no test; "" where it says no such thing."""
    found = re.search(_NOTHING_RAN, text, re.MULTILINE)
    return _line_at(text, found.start()) if found else ""


def _line_at(text: str, place: int) -> str:
    start = text.rfind("\n", 0, place) + 1
    return text[start:].partition("\n")[0].strip()[:300]


def _line_with(text: str, words: str) -> str:
    return next((line.lstrip("E ").strip()[:300] for line in text.splitlines() if words in line), "")


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("[")]
    return lines[-1][:300] if lines else ""
