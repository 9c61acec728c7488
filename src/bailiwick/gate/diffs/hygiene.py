"""What a diff must not carry: characters that deceive the reader, files whose content is elsewhere, known secrets."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Sequence

from bailiwick.gate.diffs.changes import SourceChange
from bailiwick.gate.diffs.characters import BIDIRECTIONAL, invisible, named, odd_names
from bailiwick.gate.diffs.folding import ConstantFolder, constant_names
from bailiwick.gate.diffs.lines import added_bytes
from bailiwick.gate.diffs.syntax import parse_or_none
from bailiwick.gate.diffs.texts import texts_in
from bailiwick.gate.model import Finding
from bailiwick.redaction.redact import Redactor

BIDI_CODE = "hygiene-bidirectional"
INVISIBLE_CODE = "hygiene-invisible"
LOOK_ALIKE_CODE = "hygiene-look-alike"
POINTER_CODE = "hygiene-lfs-pointer"
BINARY_CODE = "hygiene-binary-module"
SECRET_CODE = "hygiene-secret"  # noqa: S105  the code of a finding
LARGEST = 8 << 20
MOST = 100
_POINTER = b"version https://git-lfs.github.com/spec/"
_BINARY = re.compile(r".*\.(?:so|pyd|pyc|pyo)", re.IGNORECASE)
"""Names under which Python imports what nobody can read, before a source of the same name."""
_BLANKS = re.compile(rb"([ \t]{120,})\S")
_LONE = re.compile(rb"\r(?!\n)")
_JOINTS = re.compile(r"""["'`]\s*(?:[+.&,\\]|\|\|)?\s*[rbufRBUF]{0,2}["'`]|["'`]\s*\\?\n\s*["'`]""")
"""Where one quoted text ends and the next begins."""
_CODE = re.compile(
    r".*\.(?:pyi?|[cm]?[jt]sx?|go|rs|c|h|cc|cpp|hpp|java|kt|rb|php|lua|sh|bash|ya?ml|toml|cfg|ini|sql|ps1|mk)|(?:.*/)?Makefile"
)


def read_hygiene(changes: Sequence[SourceChange], secrets: Collection[str]) -> tuple[Finding, ...]:
    """What the added lines carry. A secret blocks; what deceives a reader of code asks for a person; else a note."""
    plain = Redactor(secrets)
    backwards = Redactor(tuple(secret.strip()[::-1] for secret in secrets))
    found: list[Finding] = []
    for change in changes:
        if change.new is not None and change.new != change.old:
            found += _secrets(change, change.new, (plain, backwards))
            found += _pointer(change, change.new)
            found += _binary(change)
            found += _characters(change, change.new)
    found.sort(key=lambda finding: (not finding.blocks, not finding.parks))
    return tuple(found[:MOST])


def _pointer(change: SourceChange, new: bytes) -> Iterator[Finding]:
    if new.startswith(_POINTER):
        what = "this is a pointer of git LFS: the content is not here, so it can't be reviewed"
        yield Finding(POINTER_CODE, what, change.path, 1, blocks=False, parks=True)


def _binary(change: SourceChange) -> Iterator[Finding]:
    if _BINARY.fullmatch(change.path):
        what = "Python can import this instead of its source, and it can't be reviewed"
        yield Finding(BINARY_CODE, what, change.path, 0, blocks=False, parks=True)


def _is_text(data: bytes) -> bool:
    return b"\0" not in data and len(data) <= LARGEST


def _characters(change: SourceChange, new: bytes) -> Iterator[Finding]:
    if not _is_text(new):
        return
    parks = _CODE.fullmatch(change.path) is not None
    added = list(added_bytes(change.old or b"", new))
    for number, line in added:
        signs = dict.fromkeys(invisible(line.decode("utf-8", "replace"), first=number == 1))
        for sign in signs:
            code, kind = (BIDI_CODE, "turns the order of") if sign in BIDIRECTIONAL else (INVISIBLE_CODE, "hides among")
            what = f"{named(sign)} {kind} what is read here; write it as an escape, or not at all"
            yield Finding(code, what, change.path, number, blocks=False, parks=parks)
    for number, line in added if parks else ():
        if found := _BLANKS.search(line):
            what = f"{len(found[1])} blanks push what follows out of sight"
            yield Finding(INVISIBLE_CODE, what, change.path, number, blocks=False, parks=True)
    yield from _returns(change, new, parks=parks)
    if change.path.endswith((".py", ".pyi")):
        parsed = parse_or_none(new)
        text = parsed.text if parsed is not None else new.decode("utf-8", "replace")
        for number, name, why in odd_names(text, {number for number, _ in added}):
            what = f"the name {name!r} is not what it looks like: {why}"
            yield Finding(LOOK_ALIKE_CODE, what, change.path, number, blocks=False, parks=True)


def _returns(change: SourceChange, new: bytes, *, parks: bool) -> Iterator[Finding]:
    """A line that only a carriage return ends is one line to most readers and two to Python."""
    places = [found.start() for found in _LONE.finditer(new)]
    if b"\n" in new and len(places) > len(_LONE.findall(change.old or b"")):
        number = new[: places[0]].count(b"\n") + 1
        what = "a carriage return without a line feed hides where a line ends"
        yield Finding(INVISIBLE_CODE, what, change.path, number, blocks=False, parks=parks)


def _secrets(change: SourceChange, new: bytes, redactors: Sequence[Redactor]) -> Iterator[Finding]:
    """One finding for a file that gains a secret in any form; the secret itself is never repeated."""
    if not any(redactors):
        return
    place = _place(change, new, redactors)
    if place is not None:
        what = "the value of a configured secret is added, as it is or in another form; remove it, and revoke it"
        yield Finding(SECRET_CODE, what, change.path if not _held(change.path.encode(), redactors) else "", place)


def _place(change: SourceChange, new: bytes, redactors: Sequence[Redactor]) -> int | None:
    """The line of the first secret; 0 where it is in the name or in what is no text; None where there is none."""
    old = change.old or b""
    if change.old is None and _held(change.path.encode(), redactors):
        return 0
    if not _is_text(new):
        return 0 if _held(new, redactors) and not _held(old, redactors) else None
    added = list(added_bytes(old, new))
    for number, line in added:
        if _held(line, redactors):
            return number
    if _held(new, redactors) and not _held(old, redactors):
        return 0
    text = b"\n".join(line for _, line in added)
    joined = _JOINTS.sub("", text.decode("utf-8", "replace"))
    if _held(text, redactors) or _held(joined.encode(), redactors):
        return added[0][0]
    return _put_together(change, new, {number for number, _ in added}, redactors)


def _put_together(
    change: SourceChange, new: bytes, added: Collection[int], redactors: Sequence[Redactor]
) -> int | None:
    """The line of an expression of constants that is a secret."""
    parsed = parse_or_none(new) if change.path.endswith(".py") and added else None
    if parsed is None:
        return None
    try:
        folder = ConstantFolder(constant_names(ast.walk(parsed.tree)))
        for text, line in texts_in(parsed.tree, folder):
            if line in added and _held(text.encode("utf-8", "replace"), redactors):
                return line
    except RecursionError:
        return None
    return None


def _held(data: bytes, redactors: Sequence[Redactor]) -> bool:
    return any(redactor.spans(data) for redactor in redactors)
