"""The checks of skills by phase: what can be found out about an answer without asking another model."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from bailiwick.git.names import shown
from bailiwick.ids import Json
from bailiwick.routing.model import CheckOutcome, FileOut, Result
from bailiwick.skills.checks_tdd import check_green, check_red, check_refactor
from bailiwick.skills.model import SEVERITIES
from bailiwick.skills.site import Check, CheckArguments, ProjectState, refused

SECTIONS = ("Purpose", "Scope", "Behaviour", "Acceptance criteria", "Open questions")
"""What a specification has to have, as headings of any level."""
LEAST_HYPOTHESES = 2
_REFERENCE = re.compile(r"(?<![\w/.-])(?P<file>[\w@+-][\w@+./-]*\.\w+):(?P<line>\d+)\b")
_CITED = re.compile(r"\b(n-[0-9a-f]{8})\b")
_HEADING = re.compile(r"^#{1,6}\s+(?:[\d.]+\s+)?(?P<title>.+?)\s*#*\s*$", re.MULTILINE)


async def check_review(result: Result, site: ProjectState, _asked: CheckArguments) -> CheckOutcome:
    """Every finding names a file and a line that exist, and how bad it is."""
    lines = _Lines(site)
    for number, finding in enumerate(result.findings, 1):
        fault = await _finding_fault(finding, lines)
        if fault:
            return refused(f"finding {number}: {fault}")
    return CheckOutcome(ok=True, ran=bool(result.findings))


async def _finding_fault(finding: Mapping[str, Json], lines: _Lines) -> str:
    if finding.get("severity") not in SEVERITIES:
        return f"severity has to be one of {', '.join(SEVERITIES)}"
    if not _text(finding, "title") and not _text(finding, "detail"):
        return "it says nothing: give a title"
    return await lines.fault(finding.get("file"), finding.get("line"))


async def check_debug(result: Result, site: ProjectState, asked: CheckArguments) -> CheckOutcome:
    """There are hypotheses, a root cause and a proposed fix, and every piece of evidence can be looked up."""
    details = result.details
    for key in ("root_cause", "proposed_fix"):
        if not _text(details, key):
            return refused(f"'{key}' is missing: say it in details.{key}")
    hypotheses, evidence = details.get("hypotheses"), details.get("evidence")
    if not isinstance(hypotheses, list) or len(hypotheses) < LEAST_HYPOTHESES:
        return refused(f"give at least {LEAST_HYPOTHESES} hypotheses in details.hypotheses")
    if not isinstance(evidence, list) or not evidence:
        return refused("'evidence' is missing: name the files and lines that show the root cause")
    lines = _Lines(site)
    for number, piece in enumerate(evidence, 1):
        if fault := await _evidence_fault(piece, lines, asked.material):
            return refused(f"evidence {number}: {fault}")
    return CheckOutcome(ok=True)


async def _evidence_fault(piece: Json, lines: _Lines, material: str) -> str:
    """Why a piece of evidence shows nothing: its place does not exist, or nobody said what it quotes."""
    if isinstance(piece, dict) and piece.get("file"):
        return await lines.fault(piece["file"], piece.get("line"))
    quote = _text(piece, "quote") if isinstance(piece, dict) else ""
    if quote:
        said = _flat(quote) in _flat(material)
        return "" if said else f"the quote is nowhere in the task: {shown(quote[:200])}"
    text = piece if isinstance(piece, str) else ""
    found = [(match["file"], int(match["line"])) for match in _REFERENCE.finditer(text)]
    if not found:
        return "it names no place: give file and line, or quote the error"
    faults = [await lines.fault(file, line) for file, line in found]
    return next((fault for fault in faults if fault), "")


def _flat(text: str) -> str:
    return " ".join(text.split())


async def check_spec(_result: Result, site: ProjectState, asked: CheckArguments) -> CheckOutcome:
    """The document is at its place, with every section, and nothing else was written."""
    path = asked.output_path
    where = str(site.root / path)
    others = [change.path for change in site.changes if change.path != path]
    if others:
        return refused(f"only {path} may be written, but {shown(others[0])} was changed too", file_path=where)
    text = (await site.read("after", path) or b"").decode("utf-8", "replace")
    if not site.changes or not text.strip():
        return refused(f"the document {path} was not written", file_path=where)
    missing = _missing_sections(text)
    if missing:
        return refused(f"the document has no section {', '.join(missing)}", file_path=where)
    return CheckOutcome(ok=True, file_path=where)


def _missing_sections(text: str) -> list[str]:
    """The sections that a document lacks: no heading of that name, or nothing below it."""
    heads = list(_HEADING.finditer(text))
    filled = set()
    for number, head in enumerate(heads):
        end = next((one.start() for one in heads[number + 1 :] if _level(one) <= _level(head)), len(text))
        if text[head.end() : end].strip():
            filled.add(head["title"].casefold())
    return [name for name in SECTIONS if name.casefold() not in filled]


def _level(head: re.Match[str]) -> int:
    return len(head[0]) - len(head[0].lstrip("#"))


TABLE: dict[tuple[str, str], Check] = {
    ("tdd", "red"): check_red,
    ("tdd", "green"): check_green,
    ("tdd", "refactor"): check_refactor,
    ("review", "review"): check_review,
    ("debug", "debug"): check_debug,
    ("spec", "spec"): check_spec,
}


def find_check(skill: str, phase: str) -> Check | None:
    """The check of a skill's phase; None where nothing can be found out."""
    return TABLE.get((skill, phase))


@dataclass(frozen=True, slots=True)
class CitationCheck:
    """The bench of an answer from notes: no files, and every note that it cites has to be one that it was given."""

    known: Collection[str]

    async def begin(self) -> None:
        """There is nothing to work on."""

    async def put(self, files: Iterable[FileOut]) -> str:
        """Nothing is written."""
        return "an answer writes no files" if tuple(files) else ""

    async def check(self, result: Result) -> CheckOutcome:
        """Look up each cited id. An answer without any has to say that the notes hold none."""
        return check_citations(result, self.known)

    async def keep(self) -> str:
        """There is nothing to bring."""
        return ""

    async def drop(self) -> None:
        """There is nothing to remove."""


def check_citations(result: Result, known: Collection[str]) -> CheckOutcome:
    """Every id in `details.cites` and in the answer is known; where there is an answer there is at least one."""
    given = result.details.get("cites", [])
    cited = given if isinstance(given, list) else [given]
    for one in cited:
        name = one.get("id") if isinstance(one, dict) else one
        if not isinstance(name, str) or name not in known:
            return refused(f"the answer cites {shown(str(name)[:80])}, which is none of the notes it was given")
    made_up = [name for name in _CITED.findall(_text(result.details, "answer")) if name not in known]
    if made_up:
        return refused(f"the answer cites {made_up[0]}, which is none of the notes it was given")
    if result.status == "pass" and not _text(result.details, "answer"):
        return refused("'answer' is missing: say it in details.answer")
    if result.status == "pass" and not cited:
        return refused("the answer cites no note: name each note it rests on in details.cites")
    return CheckOutcome(ok=True)


@dataclass(slots=True)
class _Lines:
    """How long the files of the project are."""

    site: ProjectState
    _counts: dict[str, int | None] = field(default_factory=dict)

    async def fault(self, file: Json, line: Json) -> str:
        """Why a reference leads nowhere; "" where it exists."""
        if not isinstance(file, str) or not file:
            return "it names no file"
        path = file.removeprefix(f"{self.site.root}/").removeprefix("./")
        if path not in self._counts:
            data = await self.site.read("before", path) if _is_plain(path) else None
            self._counts[path] = None if data is None else len(data.splitlines())
        count = self._counts[path]
        if count is None:
            return f"there is no file {shown(file[:200])} in the project"
        if not isinstance(line, int) or isinstance(line, bool):
            return f"{shown(path)}: the line has to be a number"
        return "" if 1 <= line <= max(count, 1) else f"{shown(path)} has {count} lines, so there is no line {line}"


def _is_plain(path: str) -> bool:
    return not path.startswith("/") and not any(part in ("", ".", "..") for part in path.split("/"))


def _text(values: Mapping[str, Json], key: str) -> str:
    value = values.get(key)
    return value.strip() if isinstance(value, str) else ""
