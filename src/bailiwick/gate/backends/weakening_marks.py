"""Comments that silence a tool: those that a change adds."""

from __future__ import annotations

import io
import re
import tokenize
from collections import Counter

from bailiwick.gate.diffs.lines import added
from bailiwick.gate.model import Finding

_MARKS: dict[str, re.Pattern[str]] = {
    "noqa": re.compile(r"#\s*(?:ruff:\s*|flake8[:=]\s*)?noqa\b", re.IGNORECASE),
    "type: ignore": re.compile(r"#\s*type:\s*ignore|#\s*(?:based)?pyright:\s*\w*ignore|#\s*ty:\s*ignore"),
    "mypy setting": re.compile(r"#\s*mypy:\s*\w"),
    "nosec": re.compile(r"#\s*nosec\b|#\s*nosemgrep|#\s*noqa:\s*S\d|//\s*nosemgrep|#\s*lgtm\b"),
    "no cover": re.compile(
        r"#\s*pragma:\s*no\s*(?:cover|branch)|(?:istanbul|c8|v8)\s+ignore|LCOV_EXCL|#\[coverage\(off\)"
    ),
    "pylint disable": re.compile(r"#\s*pylint:\s*(?:disable|skip-file)"),
    "eslint-disable": re.compile(r"eslint-disable|tslint:disable|biome-ignore|prettier-ignore|oxlint-disable"),
    "ts-ignore": re.compile(r"@ts-(?:ignore|nocheck|expect-error)"),
    "allow attribute": re.compile(r"#!?\[\s*(?:allow|expect)\s*\("),
    "nolint": re.compile(r"//\s*nolint|//\s*#nosec|//lint:ignore"),
    "other linter's mark": re.compile(
        r"rubocop:disable|shellcheck\s+disable|@SuppressWarnings|phpcs:ignore|noinspection"
    ),
}
_IGNORED_FAILURE = re.compile(
    r"\|\|\s*(?:true|:|exit\s+0)(?:\s|$|;|\")|continue-on-error:\s*true|allow_failure:\s*true|--no-verify|--exit-zero"
    r"|--passWithNoTests|^\t-[A-Za-z./$(]"
)
_TOOL = re.compile(
    r"(?<![\w./-])(?:pytest|tox|nox|unittest|ruff|mypy|pyright|flake8|pylint|bandit|coverage|pre-commit|eslint|tsc|jest"
    r"|vitest|mocha|golangci-lint|shellcheck)(?![\w-])|\b(?:go|cargo|npm|pnpm|yarn|make|just|mvn|gradle|rake)\s+(?:run\s+)?"
    r"(?:test|lint|check|vet|clippy|verify)\b"
)
"""A tool that checks, as a step of a pipeline or a script starts it."""
_INSTALLS = re.compile(
    r"\b(?:pip|uv|poetry|pdm|conda|apt(?:-get)?|brew|npm|yarn|pnpm)\s+(?:\w+\s+)?(?:install|add|ci)\b|^\s*#"
)
_UNCHECKED = re.compile(r"\bcheck\s*=\s*False\b")
_CHECKED = re.compile(r"\bcheck\s*=\s*True\b|\bcheck_(?:call|output)\s*\(|\.check_returncode\s*\(")
_TYPES_OFF = re.compile(r"@(?:\w+\.)?no_type_check\b|\bcast\(\s*[\"']?(?:\w+\.)?Any\b")
_LONGEST_LINE = 4000
_MOST_LINES = 40_000
"""Longer files and lines are not taken apart: no person wrote them, and it would take too long."""
_SCRIPTED = re.compile(
    r"(?:.*/)?(?:\.github/|\.gitlab-ci|\.forgejo/|\.gitea/|\.circleci/|\.ci/|(?:GNU)?[Mm]akefile|justfile|noxfile"
    r"|tox\.ini|Taskfile|package\.json|azure-pipelines|Jenkinsfile|bitbucket-pipelines).*|.*\.(?:sh|bash|mk)",
)


def mark_findings(path: str, old: str, new: str) -> list[Finding]:
    """Marks that are in the new text and not in the old one; a mark that moved or stayed is none."""
    found = []
    used = {name: pattern for name, pattern in _MARKS.items() if pattern.search(new)}
    before, after = (_commented(path, old), _commented(path, new)) if used else ([], [])
    for name, pattern in used.items():
        for number, line in _added(pattern, before, after):
            found.append(
                Finding("silenced", f"a new mark silences a tool ({name}): {_shown(line)}", path, number, blocks=False)
            )
    if _SCRIPTED.fullmatch(path):
        for number, line in _added(_IGNORED_FAILURE, _numbered(old), _numbered(new)):
            found.append(
                Finding("failure-ignored", f"a failure is ignored: {_shown(line)}", path, number, blocks=False)
            )
        found += _steps_gone(path, old, new)
    if path.endswith((".py", ".pyi")):
        found += _python_marks(path, old, new)
    return found


def _steps_gone(path: str, old: str, new: str) -> list[Finding]:
    """Tools that a pipeline or a script started and starts no more."""
    before, after = (
        Counter(tool for line in text.splitlines() if not _INSTALLS.search(line) for tool in _TOOL.findall(line))
        for text in (old, new)
    )
    return [
        Finding("check-removed", f"{tool} is started less often than before", path, blocks=False)
        for tool in sorted(before - after)
    ]


def _python_marks(path: str, old: str, new: str) -> list[Finding]:
    """Types that are switched off, and a script that goes on although a tool failed."""
    found = [
        Finding("silenced", f"types are not checked here: {_shown(line)}", path, number, blocks=False)
        for number, line in _added(_TYPES_OFF, _numbered(old), _numbered(new))
    ]
    starts = _TOOL.search(re.sub(r"[\"']", " ", old)) is not None and "subprocess" in old
    if starts and len(_CHECKED.findall(new)) < len(_CHECKED.findall(old)):
        line = next((n for n, text in _numbered(new) if _UNCHECKED.search(text)), 0)
        what = "a script that starts a tool goes on where it failed"
        found.append(Finding("failure-ignored", what, path, line, blocks=False))
    return found


Lines = list[tuple[int, str]]


def _added(pattern: re.Pattern[str], before: Lines, after: Lines) -> Lines:
    """Lines with the pattern that are new, as many as there are more of them than before."""
    was, now = ([one for one in lines if pattern.search(one[1])] for lines in (before, after))
    more = len(now) - len(was)
    fresh = list(added((line.strip() for _, line in was), now, key=lambda one: one[1].strip()))
    return fresh[-more:] if more > 0 else []


def _commented(path: str, text: str) -> Lines:
    """The lines in which marks count: for Python the comments, so that a string is no mark; else all."""
    lines = _numbered(text)
    if (
        not path.endswith((".py", ".pyi"))
        or len(lines) > _MOST_LINES
        or any(len(line) > _LONGEST_LINE for _, line in lines)
    ):
        return lines
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    except (tokenize.TokenError, SyntaxError, ValueError):
        return lines
    return [
        (token.start[0], token.line.strip() if token.line.count("\n") <= 1 else token.string)
        for token in tokens
        if token.type == tokenize.COMMENT
    ]


def _numbered(text: str) -> Lines:
    return list(enumerate(text.splitlines(), 1))


def _shown(line: str) -> str:
    bare = "".join(sign for sign in line.strip() if sign.isprintable())
    return bare if len(bare) <= 120 else f"{bare[:119]}…"
