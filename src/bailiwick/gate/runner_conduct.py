"""What a change to product code of other languages newly uses to see that it is tested, or to change what judges it.

Read by pattern, before anything runs. Nothing here makes a gate red: the first group asks for a person, the second is a
note for the reader.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from bailiwick.gate.model import Finding
from bailiwick.gate.reading import read_versions
from bailiwick.gate.testfiles import is_test_file

if TYPE_CHECKING:
    from bailiwick.gate.port import CheckContext

_Rules = tuple[tuple[str, re.Pattern[str], bool], ...]


def _rules(*given: tuple[str, str, bool]) -> _Rules:
    return tuple((what, re.compile(pattern), parks) for what, pattern, parks in given)


_JS = _rules(
    (
        "loads a test tool",
        r"""(?:from|require\(|import\(|import)\s*['"](?:node:test|test|vitest(?:/[^'"]*)?|jest[^'"]*|@jest/[^'"]*|@vitest/[^'"]*|mocha|chai|expect)['"]""",
        True,
    ),
    ("replaces an assertion", r"\b(?:assert|expect|chai|should)(?:\.\w+|\[[^\]\n]{1,80}\])+\s*=(?![=>])", True),
    (
        "reaches for the globals of a test run",
        (
            r"\bglobal(?:This)?\s*(?:\.|\[\s*['\"`])(?:expect|test|it|describe|assert|jest|vi|before\w*|after\w*)\b"
            r"|Symbol\.for\(\s*['\"`](?:expect-global|\$\$jest|jest\.)"
        ),
        True,
    ),
    (
        "looks whether it is tested",
        r"\b(?:NODE_TEST_CONTEXT|JEST_WORKER_ID|VITEST\w*|BAILIWICK\w*|__vitest\w*)\b",
        True,
    ),
    ("answers for a matcher", r"\basymmetricMatch\b", True),
    (
        "reaches into Node itself",
        (
            r"\bprocess\.(?:binding|_linkedBinding|reallyExit|dlopen|send)\b|\bModule\._\w+|\brequire\.cache\b"
            r"|\bsyncBuiltinESMExports\b|/proc/(?:self|\d)|(?:from|require\(|import\()\s*['\"](?:node:)?(?:inspector|vm|v8)['\"]"
        ),
        True,
    ),
    (
        "replaces a part of the language",
        (
            r"\b(?:Object|Array|String|Number|Function|Promise|RegExp|Map|Set|Error|JSON|Reflect)(?:\.prototype)?\.\w+\s*=(?![=>])"
            r"|\bObject\.defineProperty\(\s*(?:Object|Array|String|Number|Function|Promise|global|globalThis|assert|process)\b"
        ),
        True,
    ),
    ("makes code from text", r"\beval\(|\bnew\s+Function\(", True),
    ("ends the process", r"\bprocess\.(?:exit|abort|kill)\b|\bprocess\.exitCode\s*=", False),
    ("decides how it is compared", r"\bvalueOf\s*[(:=]|Symbol\.toPrimitive|\bnew\s+Proxy\(", False),
)
_GO = _rules(
    ("uses the package of tests", r"\"testing(?:/\w+)?\"", True),
    ("looks whether it is tested", r"flag\.Lookup\(\s*\"test\.|\btesting\.Testing\(\)|\"-?-?test\.|_test\.go\b", True),
    ("prints what a test run prints", r"--- (?:PASS|FAIL|SKIP)|=== RUN", True),
    ("reaches below the language", r"\"unsafe\"|//go:linkname|/proc/(?:self|\d)|\"reflect/internal", True),
    ("ends the process", r"\bos\.Exit\(|\bsyscall\.(?:Exit|Kill)\b|\bruntime\.Goexit\b", False),
)
_RUST = _rules(
    ("is different under test", r"cfg!?\(\s*(?:not\(\s*test|test\s*\)\s*\{)|cfg!\(\s*test", True),
    ("replaces an assertion", r"macro_rules!\s+(?:assert|debug_assert|panic|matches)\w*", True),
    ("replaces what a panic does", r"\bpanic::set_hook\b", True),
    ("catches a panic", r"\bcatch_unwind\b|\bresume_unwind\b", False),
    ("prints what a test run prints", r"test result: ", True),
    ("reaches below the language", r"\.init_array|link_section|no_mangle|/proc/(?:self|\d)|--logfile", True),
    ("ends the process", r"\bprocess::(?:exit|abort)\b", False),
)
_BY_SUFFIX: tuple[tuple[re.Pattern[str], _Rules], ...] = (
    (re.compile(r".*\.[cm]?[jt]sx?"), _JS),
    (re.compile(r".*\.go"), _GO),
    (re.compile(r".*\.rs"), _RUST),
)


async def conduct(context: CheckContext) -> list[Finding]:
    """What changed product files newly do; where a person allowed a change it is that person's decision."""
    looked = [c for c in context.changes if c.status != "D" and not is_test_file(c.path) and _rules_of(c.path)]
    old, new = await read_versions(context.read, looked)
    found: list[Finding] = []
    for path in new:
        before, after = ((texts.get(path) or b"").decode("utf-8", "replace") for texts in (old, new))
        found += conduct_of(path, before, after, allowed=path in context.allowed)
    return found


def conduct_of(path: str, before: str, after: str, *, allowed: bool = False) -> list[Finding]:
    """What one file newly does."""
    found: list[Finding] = []
    for what, pattern, parks in _rules_of(path):
        known = {match[0] for match in pattern.finditer(before)}
        match = next((m for m in pattern.finditer(after) if m[0] not in known), None)
        if match is not None:
            line = after.count("\n", 0, match.start()) + 1
            shown = " ".join(match[0].split())[:80]
            text = f"the change {what}: {shown}"
            found.append(Finding("conduct", text, path, line, blocks=False, parks=parks and not allowed))
    return found


def _rules_of(path: str) -> _Rules:
    return next((rules for pattern, rules in _BY_SUFFIX if pattern.fullmatch(path)), ())
