"""Tests in languages whose syntax tree is not at hand, read by pattern: JavaScript, TypeScript, Go, Rust and others."""

from __future__ import annotations

import re
from dataclasses import dataclass

from bailiwick.gate.model import Finding


@dataclass(frozen=True, slots=True)
class _Language:
    """How tests, what skips them and what they assert is written."""

    test: re.Pattern[str]
    skip: re.Pattern[str]
    check: re.Pattern[str]
    strict: re.Pattern[str]
    loose: re.Pattern[str]


_NEVER = re.compile(r"(?!)")
_JS = _Language(
    test=re.compile(
        r"""\b(?:it|test|specify)(?:\.\w{1,40}(?:\([^()]{0,400}\))?){0,4}\s*\(\s*(['"`])(?P<name>.{1,200}?)\1"""
    ),
    skip=re.compile(
        r"\b(?:it|test|describe|suite|context|specify)\.(?:skip|todo|only|fails|skipIf|fixme)\b"
        r"|\b(?:x|f)(?:it|describe|test|context)\s*\(|\bthis\.skip\(\)|\btest\.fail\("
    ),
    check=re.compile(r"\bexpect\s*\(|\bassert(?:\.\w+)?\s*\("),
    strict=re.compile(
        r"\.(?:toBe|toEqual|toStrictEqual|toThrow\w*|toMatch\w*|toHaveBeenCalledWith)\s*\(|\bassert\.\w*[eE]qual"
    ),
    loose=re.compile(
        r"\.(?:toBeTruthy|toBeFalsy|toBeDefined|toBeUndefined|toBeNull)\s*\(|\.not\.|expect\.any|\bassert\.ok"
    ),
)
_LANGUAGES: dict[str, _Language] = {
    ".go": _Language(
        test=re.compile(r"^func\s+(?P<name>(?:Test|Fuzz|Example)\w*)\s*\(", re.MULTILINE),
        skip=re.compile(r"\b\w+\.(?:Skip|SkipNow|Skipf)\("),
        check=re.compile(r"\b\w+\.(?:Error|Errorf|Fatal|Fatalf|Fail|FailNow)\(|\b(?:assert|require)\.\w+\("),
        strict=re.compile(r"\b(?:assert|require)\.(?:Equal|Exactly|JSONEq|ErrorIs)\w*\("),
        loose=re.compile(r"\b(?:assert|require)\.(?:NotNil|NotEmpty|True|NoError)\("),
    ),
    ".rs": _Language(
        test=re.compile(
            r"#\[(?:\w+::)*(?:test|rstest)\b[^\]]{0,200}\]\s*(?:#\[[^\]]{0,200}\]\s*){0,6}(?:pub\s+)?(?:async\s+)?fn\s+(?P<name>\w+)"
        ),
        skip=re.compile(r"#\[ignore\b"),
        check=re.compile(r"\bassert(?:_eq|_ne|_matches)?!\s*\(|#\[should_panic"),
        strict=re.compile(r"\bassert_(?:eq|matches)!\s*\("),
        loose=re.compile(r"\bassert!\s*\("),
    ),
    ".rb": _Language(
        test=re.compile(
            r"""^[ \t]*(?:it|specify|test)\s+(['"])(?P<name>.{1,200}?)\1|^[ \t]*def\s+(?P<other>test_\w+)""",
            re.MULTILINE,
        ),
        skip=re.compile(r"^[ \t]*(?:xit|xdescribe|skip|pending)\b", re.MULTILINE),
        check=re.compile(r"\bexpect\b|\bassert\w*\b"),
        strict=_NEVER,
        loose=_NEVER,
    ),
}
_UNSAID = re.compile(
    r"""//[^\n]*|/\*.*?(?:\*/|\Z)|'(?:\\(?:.|\Z)|[^'\\\n])*+(?:'|(?=\n)|\Z)|"(?:\\(?:.|\Z)|[^"\\\n])*+(?:"|(?=\n)|\Z)|`(?:\\(?:.|\Z)|[^`\\])*+(?:`|\Z)""",
    re.DOTALL,
)
"""Comments and what is quoted; what is not closed goes on to the end, so that each sign is looked at once."""
_COMMENTED_OUT = re.compile(r"^[ \t]*//.*$", re.MULTILINE)


def other_findings(path: str, old: str, new: str) -> list[Finding]:
    """Tests that are gone, newly left out, or assert less."""
    language = _language(path)
    if language is None or not old:
        return []
    found = [*_gone(language, path, old, new), *_skipped(language, path, old, new)]
    before, after = (len(language.check.findall(_code(text))) for text in (old, new))
    if after < before:
        found.append(Finding("assert-removed", f"{before - after} fewer assertions than before", path, blocks=False))
    strict_before, strict_after = (len(language.strict.findall(_code(text))) for text in (old, new))
    loose_before, loose_after = (len(language.loose.findall(_code(text))) for text in (old, new))
    if strict_after < strict_before and loose_after > loose_before:
        found.append(
            Finding("assert-loosened", "assertions of a value became assertions of its presence", path, blocks=False)
        )
    return found


def _language(path: str) -> _Language | None:
    if re.search(r"\.[cm]?[jt]sx?$", path):
        return _JS
    return _LANGUAGES.get("." + path.rpartition(".")[2])


def _code(text: str) -> str:
    """The text without comments and without what is quoted."""
    return _UNSAID.sub(" ", text)


def _names(language: _Language, text: str) -> dict[str, int]:
    kept = _COMMENTED_OUT.sub("", text)
    names: dict[str, int] = {}
    line, last = 1, 0
    for found in language.test.finditer(kept):
        groups = found.groupdict()
        line, last = line + kept.count("\n", last, found.start()), found.start()
        names[groups.get("name") or groups.get("other") or ""] = line
    return names


def _gone(language: _Language, path: str, old: str, new: str) -> list[Finding]:
    """Tests whose names are gone. Where there are as many as before they may have got other names."""
    was, now = _names(language, old), _names(language, new)
    fewer = len(now) < len(was)
    code = "test-deleted" if fewer else "test-renamed"
    what = "the test {!r} is deleted" if fewer else "the test {!r} is gone or has another name"
    return [
        Finding(code, what.format(name[:120]), path, line, blocks=fewer)
        for name, line in was.items()
        if name not in now
    ]


def _skipped(language: _Language, path: str, old: str, new: str) -> list[Finding]:
    before, after = (language.skip.findall(_code(text)) for text in (old, new))
    if len(after) <= len(before):
        return []
    what = f"{len(after) - len(before)} more places leave tests out ({', '.join(sorted(set(after)))[:120]})"
    return [Finding("test-skipped", what, path)]
